# SPDX-License-Identifier: Apache-2.0
"""What the sessions of the Python probes share: on and off, and what was recorded.

Sessions of a process share its recording (_recording.py). A trace without a path of its own lies in a
temporary folder, which goes when the last session that has counted in it goes. Results are libsonde's, read
from the trace on request; while the recording is still on, that is what was counted so far.
"""
import os
import sys

from .. import _record, _recording, _scratch
from . import _parts


def _error(text):
    from .._core import Error
    return Error(text)


def refuse_path(name, kind, value):
    """The trace's path in the place of the first argument, which is another: it would be taken for "yes"."""
    if isinstance(value, (str, bytes, os.PathLike)):
        raise TypeError(f"sonde: {name}: expected {kind}, got {value!r}; the trace's path is path={value!r}")


class Session:
    """A probe, on and off, and its results: a context manager and a decorator.

    `with` records one stretch. enable() and disable() turn the probe on and off as often as one
    likes in one recording, which ends with stop(). A subclass says how to attach and detach its
    probe, and the names of its view and of its peer's file format.
    """

    _kind = "summary"  # what is counted: sessions of one kind share counts
    _view = "summary"
    _format = "json"
    _events = False, False, False  # that are its own beside its counts: samples, counters, ranges

    def __init__(self, path=None, whole=False, **options):
        self._path = os.fspath(path) if path is not None else None
        self._options = options
        self._whole = whole  # the recording is made for this session alone
        if not whole:
            from .. import _core  # noqa: F401 - not later, when imports may be recorded
        self._part = None
        self._depth = 0
        self._folder = None
        self._number = 0
        self._trail = None
        self._finished = []  # Parts, in order

    # -------------------------------------------------------------- for subclasses

    def _attach(self):
        """Turns the probe on; an exception reaches the user."""
        raise NotImplementedError

    def _detach(self):
        raise NotImplementedError

    def _own_all(self, number):
        """All counts from now on belong to that session; 0: to several."""

    def _split_counts(self, is_on):
        """Gives the counts so far to this session, under its own number."""

    def _forgetting(self):
        """The function to call with (number, has) when this session is collected."""
        return lambda number, has: None

    def _is_numbered(self):
        """Whether it counts for itself, beside others."""
        return self._part is not None and not self._part.is_alone(self._kind)

    # -------------------------------------------------------------------- on and off

    def enable(self):
        """Turns the probe on, in a recording that goes on until stop()."""
        with _recording.lock:
            self._depth += 1
            if self._depth > 1:
                return
            try:
                self._begin()
                self._attach()
            except BaseException:
                self._depth = 0
                self._end(keep=False)
                raise

    def disable(self):
        """Turns the probe off; the recording is kept open for another enable()."""
        with _recording.lock:
            if self._depth > 0:
                self._depth -= 1
                if self._depth == 0:
                    self._turn_off()

    def start(self):
        self.enable()

    def stop(self):
        """Turns the probe off and ends the recording, if it is this session's alone."""
        with _recording.lock:
            if self._depth > 0:
                self._depth = 0
                self._turn_off()
            self._end(keep=True)

    def _turn_off(self):
        self._detach()
        self._close_span(self._part)

    def _begin(self):
        """Joins or begins a recording, with a Part of its own."""
        if self._number == 0:
            self._number, self._trail = _parts.number_of(self, self._forgetting())
        if self._part is None:
            if self._path is not None and self._finished:
                raise _error(f"cannot record into {self._path} again: it holds this session's "
                            "trace; create a new session, or omit the path")
            recording = _recording.join(self._path, self._options)
            if self._finished and self._finished[-1].recording.counted is recording.counted:
                self._part = self._finished.pop()  # it goes on in the same one
                self._part.recording = recording
            else:
                self._part = _parts.Part(self, recording, self._whole)
            self._trail[:] = recording.path, recording
        self._part.claim(self._kind, self)
        if any(self._events) and self._is_numbered() and len(self._part.spans) % 2 == 0:
            self._part.spans.append(self._now() + 1)

    def _now(self):
        """The recorder's clock: what was recorded until here is no later."""
        return _record.clock()

    def _close_span(self, part):
        if part is not None and len(part.spans) % 2:
            part.spans.append(self._now())

    def _split(self, part):
        """Another session begins to count in the recording of `part`, in which this one was alone."""
        is_on = part is self._part and self._depth > 0
        if any(self._events):
            part.spans[:] = [0] if is_on else [0, self._now()]
        if part is self._part or part.recording.path == _record.path():
            self._split_counts(is_on)

    def _end(self, keep):
        part, self._part = self._part, None
        if part is None:
            return
        self._close_span(part)
        part.recording.leave()
        del self._trail[1:]
        if keep:
            self._finished.append(part)
            self._write_asked(part)

    def _write_asked(self, part):
        """The file that was asked for, where the recording is in another."""
        if self._path is None or part.recording.owned and self._is_at(part.recording.path) \
                or self._path.endswith("/") or os.path.isdir(self._path):
            return
        part.cut(self, os.path.abspath(self._path))

    def _is_at(self, path):
        return path == os.path.abspath(self._path) or path.startswith(os.path.abspath(self._path) + ".")

    def __enter__(self):
        self.enable()
        return self

    def __exit__(self, *_):
        with _recording.lock:
            if self._depth > 1:
                self.disable()
            else:
                self.stop()

    def __call__(self, function):
        """A decorator: the probe is on while the function runs."""
        from . import _wrapped
        return _wrapped.wrap(self, function)

    @classmethod
    def _decorate(cls, function):
        """Without parentheses: a session of the function's own, whose results it has."""
        session = cls()
        wrapped = session(function)
        for name in _RESULTS:
            if hasattr(session, name):
                setattr(getattr(wrapped, "__func__", wrapped), name, getattr(session, name))
        return wrapped

    # ------------------------------------------------------------------------ results

    def _parts(self):
        return self._finished + ([self._part] if self._part else [])

    def trace(self):
        """sonde.Trace of what was recorded, or of what there is so far."""
        with _recording.lock:
            parts = self._parts()
            if not parts:
                raise _error("nothing was recorded yet: call enable(), or use `with`")
            self._settle()
            if len(parts) == 1:
                return parts[0].trace(self)
            return _parts.open_trace(self._gathered(parts))

    def _settle(self):
        """What is counted but not yet in the trace is put there."""

    def _gathered(self, parts):
        """A folder with the files of several recordings, and nothing else."""
        if self._folder is None:
            self._folder = _scratch.folder_for(self)
        for number, part in enumerate(parts):
            source = part.file(self)
            for ending in _parts.with_children(source):
                link = os.path.join(self._folder, f"{number}.sonde{ending}")
                if os.path.lexists(link):
                    os.unlink(link)
                os.symlink(source + ending, link)
        return self._folder

    def report(self, **options):
        """The view as text; options of sonde.Trace.report."""
        return self.trace().report(**{"view": self._view, **options})

    def print(self, file=None, **options):
        print(self.report(**options), end="", file=file or sys.stdout)

    def save(self, path):
        """The trace itself, and those of forked children beside it."""
        path = os.fspath(path)
        with _recording.lock:
            if self._part is not None and self._part.recording.owned and self._depth == 0:
                self._end(keep=True)
            parts = self._parts()
            self._settle()
        if not parts:
            raise _error(f"cannot save {path}: nothing was recorded yet")
        if len(parts) == 1 and not os.path.isdir(path):
            _copy_with_children(parts[0].file(self), path)
            return
        os.makedirs(path, exist_ok=True)
        for number, part in enumerate(parts):
            _copy_with_children(part.file(self), os.path.join(path, f"{number}.sonde"))

    def to_html(self, path, *, source=True):
        """The report page: one file for a browser; source=False: without the text of source files."""
        self.trace().export(path, to="html", source=source)

    def _repr_html_(self):
        """In a notebook, the report page; before there are results, nothing of its own."""
        if self._part is not None and self._depth > 0 or not self._parts():
            return None
        from .. import _page
        return _page.inline(self.trace())

    def dump_stats(self, path):
        """The file that the peer tool's own viewers read."""
        self.trace().export(path, to=self._format)


_RESULTS = ("trace", "report", "print", "save", "to_html", "dump_stats", "stats", "print_callers",
            "print_callees", "stop")


def _copy_with_children(source, target):
    from .._core import copy_trace
    if os.path.exists(target) and os.path.samefile(source, target):
        return
    for ending in _parts.with_children(source):
        copy_trace(source + ending, target + ending)
