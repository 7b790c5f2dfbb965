# SPDX-License-Identifier: Apache-2.0
"""The results of a profile's recording.

The trace lies in a temporary folder, which goes when the last object that reads it goes. Results are
libsonde's, read from the trace on request; while the recording is still on, that is what was published so
far. Pickled, a result is the bytes of its trace.
"""
import json
import os
import warnings
import zlib

from .. import _record, _scratch
from .._core import Trace, copy_trace
from . import _operators
from ._lists import EventList, Events


_FIRST = "first.sonde"  # what the first recording's file is called when it has ended


class _Answers:
    """The questions that a result answers, from its trace()."""

    def __init__(self, columns, flops):
        self.columns = columns
        self.flops = flops
        self.metadata = {}
        self.left_out = ()   # categories that a Chrome trace is without
        self.writing = None  # the path of the recording that is on

    def key_averages(self, by_shape=False, stack_depth=0, by_overload=False):
        return EventList(self.trace().averages(by_shape, stack_depth, by_overload,
                                               flops=self.flops), self)

    def events(self):
        return Events(self.trace().events(flops=self.flops), self)

    def ledger(self):
        return self.trace().ledger()

    def export_chrome_trace(self, path):
        self.trace().export(path, to="chrome", metadata=self.metadata,
                            left_out=self.left_out)

    def export_stacks(self, path, metric):
        self.trace().export_stacks(path, metric)

    def export_memory_timeline(self, path, device):
        self.trace().memory_timeline(device).export(path)

    def to_html(self, path, source=True):
        self.trace().export(path, to="html", source=source)

    def inline_page(self):
        from .. import _page
        return _page.inline(self.trace())


def _options(profile_memory, with_flops):
    return ({"profile_memory": bool(profile_memory), "with_flops": bool(with_flops)},
            "torch" if with_flops == "torch" else "full" if with_flops else "none")


class Result(_Answers):
    """One recording, or several that are added up, each under way or finished."""

    def __init__(self, profile_memory, with_flops):
        super().__init__(*_options(profile_memory, with_flops))
        self._folder = _scratch.folder_for(self)
        self._several = os.path.join(self._folder, "own")  # made for the second
        self._owner = os.getpid()
        self._count = 0
        self._opened = None
        self._shared = None  # the path of a trace that another owner keeps

    def next_path(self):
        """For a recording that is about to begin."""
        return os.path.join(self._folder, f"{self._count}.sonde")

    def _finished(self):
        """The paths of those that have ended, in order."""
        if self._count == 1:
            return [os.path.join(self._folder, _FIRST)]
        return [os.path.join(self._several, f"{i}.sonde") for i in range(self._count)]

    def _finish(self, path):
        """`path` is one more; out of reach of forked children's, which torch does not show."""
        if self._count == 1:
            os.mkdir(self._several)
            os.rename(*self._finished(), os.path.join(self._several, "0.sonde"))
        self._count += 1
        os.rename(path, self._finished()[-1])

    def begin(self, path):
        """The recording began, into `path`."""
        self.writing = path

    def end(self, keep=True):
        """The recording ended; `keep`: it is one of those that are shown."""
        path, self.writing, self._opened = self.writing, None, None
        if os.path.dirname(path) != self._folder:
            self._opened, self._shared = Trace(path), path  # a session's, which goes on
        elif os.getpid() != self._owner:
            # A forked child's own file; what its parent recorded is its parent's to show.
            self._opened = Trace(f"{path}.{os.getpid()}")
        elif keep:
            self._finish(path)
        else:
            os.unlink(path)

    def trace(self):
        if self.writing is not None:
            return Trace(self.writing)
        if self._opened is None:
            self._opened = Trace(self._several if self._count > 1 else
                                 os.path.join(self._folder, _FIRST))
        return self._opened

    def save(self, path):
        """A file, those of forked children beside it; or a folder, if it was several cycles."""
        own = self._finished()
        if not own and self._shared:  # a script that saves must not fail because it is recorded
            warnings.warn(f"sonde: {os.fspath(path)} is not written: what was recorded is in "
                          f"{self._shared}", stacklevel=3)
            return
        if not own:
            raise RuntimeError("sonde: the profile is not finished, or recorded nothing")
        children = [name for name in sorted(os.listdir(self._folder)) if ".sonde." in name]
        path = os.fspath(path)
        if len(own) == 1 and not os.path.isdir(path):
            copy_trace(own[0], path)
            for name in children:
                copy_trace(os.path.join(self._folder, name), path + name[len("0.sonde"):])
            return
        os.makedirs(path, exist_ok=True)
        for number, one in enumerate(own):
            copy_trace(one, os.path.join(path, f"{number}.sonde"))
        for name in children:
            copy_trace(os.path.join(self._folder, name), os.path.join(path, name))

    # -------------------------------------------------------------------- pickling

    def _files(self):
        if self.writing is not None:
            return [self.writing]
        if self._shared is not None:
            return [self._shared]
        return self._finished()

    def __reduce__(self):
        packed = []
        for path in self._files():
            with open(path, "rb") as file:
                packed.append(zlib.compress(file.read(), 1))
        return _unpack, (packed, self.columns, self.flops, self.metadata, self.left_out)


def _unpack(packed, columns, flops, metadata, left_out=()):
    """A result again, in whatever process; its trace is its own."""
    result = Result(**columns)
    result.flops, result.metadata, result.left_out = flops, metadata, left_out
    for data in packed:
        path = result.next_path()
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(zlib.decompress(data))
        result._finish(path)
    return result


# ------------------------------------------------------------------------ under `sonde run`

class RunResult(_Answers):
    """What `sonde run` recorded of this process so far; the trace is the runner's.

    Between two cycles of its schedule that is the last cycle, and before the first one nothing.
    A failure is only a warning: it must not reach the recorded program.
    """

    def __init__(self, profile_memory, with_flops):
        super().__init__(*_options(profile_memory, with_flops))
        self._kept = None
        self._path = ""

    def next_path(self):
        return None

    def begin(self, _path):
        self.writing = "sonde run"

    def end(self, keep=True):
        self._kept, self.writing = self._open(), None

    def _open(self):
        self._path = _record.path()
        if not self._path or not os.path.exists(self._path):
            return None
        return Trace(self._path)

    def trace(self):
        return self._kept if self.writing is None else self._open()

    def _attempt(self, ask, otherwise):
        """What `ask` returns; if there is no trace, or it fails, what `otherwise` does."""
        try:
            return ask() if self.trace() is not None else otherwise()
        except Exception as error:  # whatever it is
            _operators.warn_under_run(f"a profile under `sonde run` has no result: {error}")
            return otherwise()

    def key_averages(self, *groups):
        return self._attempt(lambda: super(RunResult, self).key_averages(*groups),
                             lambda: EventList([], self))

    def events(self):
        return self._attempt(super().events, lambda: Events([], self))

    def ledger(self):
        return self._attempt(super().ledger, list)

    def export_chrome_trace(self, path):
        self._attempt(lambda: super(RunResult, self).export_chrome_trace(path),
                      lambda: _write(path, json.dumps({"schemaVersion": 1, "traceEvents": []})))

    def export_stacks(self, path, metric):
        self._attempt(lambda: super(RunResult, self).export_stacks(path, metric),
                      lambda: _write(path, ""))

    def export_memory_timeline(self, path, device):
        self._attempt(lambda: super(RunResult, self).export_memory_timeline(path, device),
                      lambda: _write(path, "[[], []]"))

    def to_html(self, path, source=True):
        self._attempt(lambda: super(RunResult, self).to_html(path, source), lambda: _write(path, ""))

    def inline_page(self):
        return self._attempt(super().inline_page, lambda: None)

    def save(self, path):
        _operators.warn_under_run(f"{os.fspath(path)} is not written: `sonde run` has it in its "
                                 f"trace, {self._path or os.environ.get('SONDE_TRACE')}")

    def __reduce__(self):
        packed = []
        if self.trace() is not None:
            with open(self._path, "rb") as file:
                packed.append(zlib.compress(file.read(), 1))
        return _unpack, (packed, self.columns, self.flops, self.metadata, self.left_out)


def _write(path, text):
    """A file without events, for a program that reads what it wrote."""
    import gzip
    data = text.encode()
    try:
        with open(path, "wb") as file:
            file.write(gzip.compress(data) if os.fspath(path).endswith(".gz") else data)
    except OSError as error:
        _operators.warn_under_run(f"cannot write {os.fspath(path)}: {error}")
