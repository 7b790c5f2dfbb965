# SPDX-License-Identifier: Apache-2.0
"""What the recording of a profile has to say.

The trace lies in a temporary folder, which goes when the last object that reads it goes. Every
answer is libsonde's, read from the trace when it is asked for; while the recording is still on,
that is what was published so far.
"""
import os
import shutil
import tempfile
import warnings
import weakref

from ._core import Trace
from ._lists import EventList, Events


def _remove(folder, owner):
    """A forked child has the object too, but the folder is its parent's."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


class Result:
    """One recording, or several that are added up, each under way or finished."""

    def __init__(self, profile_memory, with_flops):
        self.columns = {"profile_memory": bool(profile_memory), "with_flops": bool(with_flops)}
        self.flops = "torch" if with_flops == "torch" else "full" if with_flops else "none"
        self.metadata = {}
        self._folder = tempfile.mkdtemp(prefix="sonde-")
        self._finished = os.path.join(self._folder, "own")
        os.mkdir(self._finished)
        self._owner = os.getpid()
        self._count = 0
        self._opened = None
        self._shared = None  # the path of a trace that is not ours to give away
        self.writing = None  # the path of the recording that is on
        weakref.finalize(self, _remove, self._folder, self._owner)

    def next_path(self):
        """For a recording that is about to begin."""
        return os.path.join(self._folder, f"{self._count}.sonde")

    def end(self, keep=True):
        """The recording ended; `keep`: it is one of those that are shown."""
        path, self.writing, self._opened = self.writing, None, None
        if os.path.dirname(path) != self._folder:
            self._opened, self._shared = Trace(path), path  # that of `sonde run`, which goes on
        elif os.getpid() != self._owner:
            # A forked child's own file; what its parent recorded is its parent's to show.
            self._opened = Trace(f"{path}.{os.getpid()}")
        elif keep:
            # Out of reach of the files of forked children, which torch does not show either.
            os.rename(path, os.path.join(self._finished, f"{self._count}.sonde"))
            self._count += 1
        else:
            os.unlink(path)

    def trace(self):
        if self.writing is not None:
            return Trace(self.writing)
        if self._opened is None:
            self._opened = Trace(self._finished if self._count > 1 else
                                 os.path.join(self._finished, "0.sonde"))
        return self._opened

    def key_averages(self, by_shape=False, stack_depth=0, by_overload=False):
        return EventList(self.trace().averages(by_shape, stack_depth, by_overload,
                                               flops=self.flops), self)

    def events(self):
        return Events(self.trace().events(flops=self.flops), self)

    def export_chrome_trace(self, path):
        self.trace().export(path, to="chrome", metadata=self.metadata)

    def export_stacks(self, path, metric):
        self.trace().export_stacks(path, metric)

    def export_memory_timeline(self, path, device):
        self.trace().memory_timeline(device).export(path)

    def save(self, path):
        """A file, those of forked children beside it; or a folder, if it was several cycles."""
        own = sorted(os.listdir(self._finished))
        if not own and self._shared:  # a script that saves must not fail because it is recorded
            warnings.warn(f"sonde: {os.fspath(path)} is not written: `sonde run` has it in its trace, "
                          f"{self._shared}", stacklevel=3)
            return
        if not own:
            raise RuntimeError("sonde: the profile is not finished, or recorded nothing")
        children = [name for name in sorted(os.listdir(self._folder)) if ".sonde." in name]
        path = os.fspath(path)
        if len(own) == 1 and not os.path.isdir(path):
            shutil.copy(os.path.join(self._finished, own[0]), path)
            for name in children:
                shutil.copy(os.path.join(self._folder, name), path + name[len(own[0]):])
            return
        os.makedirs(path, exist_ok=True)
        for folder, names in ((self._finished, own), (self._folder, children)):
            for name in names:
                shutil.copy(os.path.join(folder, name), os.path.join(path, name))
