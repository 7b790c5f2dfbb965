# SPDX-License-Identifier: Apache-2.0
"""What the faces of the Python probes share: a recording, and what it has to say.

A process has one recording. The first session that needs one begins it, later ones join it, the
last one ends it; one that is already on (of `sonde run`, of sonde.profile, of the program's own C
code) is joined and left as it is. A trace without a path of its own lies in a temporary folder,
which goes when the session goes. Every answer is libsonde's, read from the trace when it is asked
for; while the recording is still on, that is what was counted so far.
"""
import functools
import os
import sys
import threading
import warnings
import weakref

from . import _record
from ._core import Error, Trace

_lock = threading.RLock()
_current = None  # the Recording that sessions share, while it is on
_guests = weakref.WeakSet()  # Recordings whose file is someone else's


def _forget_in_child():
    """The lock may have been held by a thread that the child does not have."""
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_forget_in_child)


# ------------------------------------------------------------------------ recordings

def _is_on():
    """Whether this process is being recorded by someone else."""
    return _record.epoch() != 0 or ("SONDE_TRACE" in os.environ and _record.path() != "")


class Recording:
    """One file, and how many sessions are in it."""

    def __init__(self, path, options):
        self.owned = not _is_on()
        if self.owned:
            _record.start(path, **options)
        self.path = _record.path()
        self.users = 1
        self.kept = None  # read for the last time when its owner took the file away
        if not self.owned:
            _guests.add(self)

    def leave(self):
        global _current
        self.users -= 1
        if self.users > 0:
            return
        if _current is self:
            _current = None
        if self.owned:
            self.path = _record.path()  # a forked child's own
            _record.stop()

    def trace(self):
        return self.kept or Trace(self.path)


def _join(path, options):
    """The recording that is on, or a new one at `path`."""
    global _current
    if _current is None:
        _current = Recording(path, options)
    else:
        _current.users += 1
    return _current


def recording_path():
    """Where sessions record to by themselves, or None."""
    with _lock:
        return _current.path if _current is not None and _current.owned else None


def ending(path):
    """Whoever owns the recording at `path` has ended it, and is about to move the file."""
    with _lock:
        for guest in list(_guests):
            if guest.path == path and guest.kept is None:
                guest.kept = Trace(path)


# -------------------------------------------------------------------------- sessions

def _remove(folder, owner):
    """A forked child has the object too, but the folder is its parent's."""
    if os.getpid() == owner:
        import shutil
        shutil.rmtree(folder, ignore_errors=True)


class Session:
    """A probe, on and off, and its results: a context manager and a decorator.

    `with` records one stretch. enable() and disable() turn the probe on and off as often as one
    likes in one recording, which ends with stop(). A subclass says how to attach and detach its
    probe, and the names of its view and of its peer's file format.
    """

    _view = "summary"
    _format = "json"

    def __init__(self, path=None, **options):
        self._path = os.fspath(path) if path is not None else None
        self._options = options
        self._recording = None
        self._depth = 0
        self._folder = None
        self._finished = []  # Recordings, in order

    # -------------------------------------------------------------- for subclasses

    def _attach(self):
        """Turns the probe on; what it raises is the user's to see."""
        raise NotImplementedError

    def _detach(self):
        raise NotImplementedError

    # -------------------------------------------------------------------- on and off

    def enable(self):
        """Turns the probe on, in a recording that goes on until stop()."""
        with _lock:
            self._depth += 1
            if self._depth > 1:
                return
            try:
                if self._recording is None:
                    self._begin()
                self._attach()
            except BaseException:
                self._depth = 0
                self._end(keep=False)
                raise

    def disable(self):
        """Turns the probe off; the recording is kept open for another enable()."""
        with _lock:
            if self._depth > 0:
                self._depth -= 1
                if self._depth == 0:
                    self._detach()

    def start(self):
        self.enable()

    def stop(self):
        """Turns the probe off and ends the recording, if it is this session's alone."""
        with _lock:
            if self._depth > 0:
                self._depth = 0
                self._detach()
            self._end(keep=True)

    def _begin(self):
        if self._path is not None and self._finished:
            raise Error(f"cannot record into {self._path} again: it holds this session's trace; "
                        "make a new session, or leave out the path")
        path = self._path
        if path is None and _current is None and not _is_on():
            path = os.path.join(self._own_folder(), f"{len(self._finished)}.sonde")
        self._recording = _join(path, self._options)
        if self._path is not None and self._recording.path != os.path.abspath(self._path) \
                and not self._path.endswith("/") and not os.path.isdir(self._path):
            warnings.warn(f"sonde: a recording is on already; what was asked to go to {self._path} "
                          f"is in {self._recording.path}", stacklevel=4)

    def _own_folder(self):
        if self._folder is None:
            import tempfile  # not in programs that are recorded from outside
            self._folder = tempfile.mkdtemp(prefix="sonde-")
            weakref.finalize(self, _remove, self._folder, os.getpid())
        return self._folder

    def _end(self, keep):
        recording, self._recording = self._recording, None
        if recording is None:
            return
        recording.leave()
        if keep:
            self._finished.append(recording)

    def __enter__(self):
        self.enable()
        return self

    def __exit__(self, *_):
        with _lock:
            if self._depth > 1:
                self.disable()
            else:
                self.stop()

    def __call__(self, function):
        """A decorator: the probe is on while the function runs."""
        return _wrap(self, function)

    # ------------------------------------------------------------------------ results

    def trace(self):
        """sonde.Trace of what was recorded, or of what there is so far."""
        with _lock:
            parts = self._finished + ([self._recording] if self._recording else [])
            if not parts:
                raise Error("nothing was recorded yet: call enable(), or use `with`")
            if len(parts) == 1:
                return parts[0].trace()
            return Trace(self._gathered(parts))

    def _gathered(self, parts):
        """A folder with the files of several recordings, and nothing else."""
        folder = os.path.join(self._own_folder(), "all")
        os.makedirs(folder, exist_ok=True)
        for number, part in enumerate(parts):
            link = os.path.join(folder, f"{number}.sonde")
            if not os.path.lexists(link):
                os.symlink(part.path, link)
        return folder

    def report(self, **options):
        """The view as text; options of sonde.Trace.report."""
        return self.trace().report(**{"view": self._view, **options})

    def print(self, file=None, **options):
        print(self.report(**options), end="", file=file or sys.stdout)

    def save(self, path):
        """The trace itself, and those of forked children beside it."""
        path = os.fspath(path)
        with _lock:
            if self._recording is not None and self._recording.owned and self._depth == 0:
                self._end(keep=True)
            parts = self._finished + ([self._recording] if self._recording else [])
        if not parts:
            raise Error(f"cannot save {path}: nothing was recorded yet")
        if len(parts) == 1 and not os.path.isdir(path):
            _copy_with_children(parts[0].path, path)
            return
        os.makedirs(path, exist_ok=True)
        for number, part in enumerate(parts):
            _copy_with_children(part.path, os.path.join(path, f"{number}.sonde"))

    def dump_stats(self, path):
        """The file that the peer tool's own viewers read."""
        self.trace().export(path, to=self._format)


def _copy_with_children(source, target):
    import shutil
    if os.path.exists(target) and os.path.samefile(source, target):
        return
    shutil.copy(source, target)
    folder, name = os.path.split(source)
    for other in os.listdir(folder or "."):
        if other.startswith(f"{name}.") and other[len(name) + 1:].isdigit():
            shutil.copy(os.path.join(folder, other), target + other[len(name):])


# ------------------------------------------------------------------------ decorators

def _wrap_coroutine(function, enter, leave):
    async def wrapper(*args, **kwargs):
        enter()
        try:
            return await function(*args, **kwargs)
        finally:
            leave()
    return wrapper


def _wrap_generator(function, enter, leave):
    def wrapper(*args, **kwargs):
        enter()
        try:
            return (yield from function(*args, **kwargs))
        finally:
            leave()
    return wrapper


def _wrap_async_generator(function, enter, leave):
    async def wrapper(*args, **kwargs):
        inner, sent, error = function(*args, **kwargs), None, None
        enter()
        try:
            while True:
                try:
                    value = await (inner.asend(sent) if error is None else inner.athrow(error))
                except StopAsyncIteration:
                    return
                sent = error = None
                try:
                    sent = yield value
                except GeneratorExit:
                    raise
                except BaseException as raised:
                    error = raised
        finally:
            try:
                await inner.aclose()
            finally:
                leave()
    return wrapper


def wrap_suspended(function, enter, leave):
    """What can be suspended, entered from its first step to its last; None if it is another kind."""
    import inspect
    for is_kind, wrap in ((inspect.iscoroutinefunction, _wrap_coroutine),
                          (inspect.isasyncgenfunction, _wrap_async_generator),
                          (inspect.isgeneratorfunction, _wrap_generator)):
        if is_kind(function):
            return functools.wraps(function)(wrap(function, enter, leave))
    return None


def _wrap(session, function):
    def wrapper(*args, **kwargs):
        session.enable()
        try:
            return function(*args, **kwargs)
        finally:
            session.disable()
    return (wrap_suspended(function, session.enable, session.disable)
            or functools.wraps(function)(wrapper))
