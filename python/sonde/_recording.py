# SPDX-License-Identifier: Apache-2.0
"""The process's one recording: who owns it, and who shares it. Only this module begins and ends one.

A process records once at a time. An owner (a profile, a benchmark, a profile of layers) has it for
itself: another one gets an error that names the owner. Sessions (sonde.functions and its like) share
it: the first begins it, later ones join it, the last one ends it. A recording that is already on is
joined and left as it is, whether it is that of `sonde run`, of an owner, of sessions, or of the
program's own C code.
"""
import os
from _thread import RLock  # what threading has; in a recorded program that may not be loaded yet

from . import _record, _scratch

lock = RLock()  # of all of this, and of what sessions count
forks = 0  # of this process and its ancestors
before_moving = []  # called with the path of an owner's recording that has ended

_owner = None
_host = None  # the recording that the owner joined: "run", "sessions"; None: its own
_shared = None  # the Recording that sessions share, while it is on
_counted = {}  # by path, of recordings that are not the sessions': who has counted there, of each kind


def _forget_in_child():
    """The lock may have been held by a thread that the child does not have."""
    global lock, forks
    lock = RLock()
    forks += 1


def _note_fork():
    global forks
    forks += 1


os.register_at_fork(after_in_child=_forget_in_child, after_in_parent=_note_fork)


def allow_fork():
    """Python's warning of a fork() beside threads is from now on of the program's threads alone."""
    from . import _python
    _python.allow_fork()


def begin(path, **options):
    """Begins it; `options` are those of sonde._record.start."""
    _record.start(path, **options)


def end():
    _record.stop()


# ------------------------------------------------------------------------------ owners

def _already():
    return (f"{_owner!r} is already recording, and a process has one recording at a time: stop it first "
            "(a `with` block stops at its end)")


def take(owner, path, begin_at=begin, join=None):
    """Records into `path` on behalf of `owner`; returns the path that is really written.

    `begin_at(path)` begins it. Where sessions have one on, join() is called instead, and under
    `sonde run` neither: the path is then None.
    """
    global _owner, _host
    with lock:
        if _owner is not None:
            raise RuntimeError(f"sonde: {_already()}")
        _host = "run" if _record.under_run() else "sessions" if shared_path() is not None else None
        if _host is None:
            begin_at(path)
        elif _host == "sessions":
            path = _shared.path
            if join is not None:
                join()
        _owner = owner
        return path if _host != "run" else None


def why_not_alone(what):
    """Why `what`, which measures for itself, cannot have a recording now; None if it can."""
    with lock:
        if _record.under_run():
            return (f"this process is recorded by `sonde run`, and {what} needs a recording of its own: "
                    "run it without")
        if _owner is not None:
            return _already()
        if shared_path() is not None:
            return (f"this process is being recorded into {shared_path()} (sonde.functions, sonde.sample or the like), "
                    f"and {what} needs a recording of its own: stop that first (a `with` block stops at its end)")
    return None


def has_owner():
    return _owner is not None


def has(owner):
    return _owner is owner


def is_its_own(owner):
    """Whether `owner` has the recording, and it is no one else's."""
    return _owner is owner and _host is None


def give_back(owner, detach=None):
    """Ends the recording of `owner`; detach() comes first, but not under `sonde run`."""
    global _owner
    with lock:
        if _owner is not owner:
            return
        _owner = None
        if detach is not None and _host != "run":
            detach()
        if _host is None:
            path = _record.path()
            end()
            for told in before_moving:
                told(path)
            _counted.pop(path, None)


# ---------------------------------------------------------------------------- sessions

def is_on():
    """Whether this process is being recorded."""
    return _record.epoch() != 0 or _record.under_run()


class Recording:
    """One file, how many sessions are in it, and who has counted what."""

    def __init__(self, path, options):
        self.owned = not is_on()
        if self.owned:
            if path is None:
                path = os.path.join(_scratch.folder_for(self), "0.sonde")
            begin(path, **options)
            allow_fork()
        self.path = _record.path()
        self.users = 1
        # By kind: the one Part (python/_parts.py) that all counts belong to, or SEVERAL.
        self.counted = {} if self.owned else _counted.setdefault(self.path, {})

    def leave(self):
        global _shared
        self.users -= 1
        if self.users > 0:
            return
        if _shared is self:
            _shared = None
        if self.owned:
            self.path = _record.path()  # a forked child's own
            end()


def join(path, options):
    """The recording that is on, or a new one at `path`."""
    global _shared
    if _shared is None:
        _shared = Recording(path, options)
    else:
        _shared.users += 1
    return _shared


def shared_path():
    """Where sessions record to by themselves, or None."""
    with lock:
        return _shared.path if _shared is not None and _shared.owned else None
