# SPDX-License-Identifier: Apache-2.0
"""The process's one recording, and whose it is.

A process records once at a time. Who finds it taken is told by whom, and changes nothing.
"""
import os
import sys
import threading
import warnings

from . import _record, _recordings, _steps
from ._core import Error
from .torch._installed import torch_module

# Options of the operators' probe; the others are the recording's.
_ATTACHED = ("shapes", "memory", "stacks", "modules", "overloads", "notes")

_HERE = os.path.dirname(__file__) + os.sep
_lock = threading.Lock()
_owner = None
_said_guest = False
_guest = None  # "run", "session": the recording is theirs, and goes on whatever the owner does
_collections = False  # with them, garbage collections too
_frames = None  # whether Python's calls are recorded for the owner now; None: they are not asked for


def _forget_in_child():
    """The lock may have been held by a thread that the child does not have."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_forget_in_child)


def start(owner, path, **options):
    """Begins to record into `path` on behalf of `owner`; returns where it really goes."""
    global _owner, _guest, _frames, _collections
    with _lock:
        if _owner is not None:
            raise RuntimeError(
                f"sonde: {_owner!r} is already recording, and a process has one recording at a "
                "time: stop it first (a `with` block stops at its end)")
        _guest = _host()
        _collections = options.pop("collections", False)
        if _guest == "run":
            path = None
            _say_guest()
        elif _guest == "session":
            path = _recordings.recording_path()
            _join(options)
        else:
            _begin(path, options)
        _owner = owner
        _frames = False if options.get("stacks") and _guest != "run" and torch_module() else None
        return path


def warn_under_run(text):
    """A warning that raises nothing, even with `python -W error`: the program did not ask."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        level, frame = level + 1, frame.f_back
    try:
        warnings.warn(f"sonde: {text}", stacklevel=level)
    except Warning as warning:
        print(warning, file=sys.stderr)


def _say_guest():
    """Once a process: cycles of a schedule come here again and again."""
    global _said_guest
    if not _said_guest:
        _said_guest = True
        path = _record.path() or os.environ.get("SONDE_TRACE", "")
        warn_under_run(f"this process is recorded by `sonde run` into {path}; a profile shows "
                       "what is in that trace so far")


def is_guest_of_run():
    """Whether the recording that is on, or would be joined, is that of `sonde run`."""
    return _record.under_run()


def _host():
    if is_guest_of_run():
        return "run"
    return "session" if _recordings.recording_path() is not None else None


def _join(options):
    """Operators go into the recording of sonde.functions and its like."""
    if torch_module() is not None:
        from .torch import _probe
        _steps.watch_optimizers()
        options = {name: value for name, value in options.items() if name in _ATTACHED}
        try:
            _probe.attach(**options)
        except Error as error:
            raise RuntimeError(f"sonde: {error}") from error


def _record_frames(on):
    """with_stack: Python's calls are on the timeline while operators are recorded."""
    global _frames
    if _frames is None or _frames == on:
        return
    from .python import _functions
    from .torch import _probe
    if not on:
        _functions.stop_timeline()
    elif not _functions.start_timeline(_probe.module_code(torch_module()),
                                       _collections):
        on = None
        warnings.warn("sonde: Python calls are already being recorded (sonde.functions): with_stack=True "
                      "adds no Python functions to the timeline", stacklevel=6)
    _frames = on


def _begin(path, options):
    bare = options.pop("bare", False)  # nothing is marked but what is marked by hand
    try:
        if bare or torch_module() is None:
            _record.start(path)
        else:
            from .torch import _probe
            _probe.start(path, **options)
            _steps.restart()
            _steps.watch_optimizers()
    except Error as error:
        raise RuntimeError(f"sonde: {error}") from error


def stop(owner):
    """Ends `owner`'s recording; without effect if it has none."""
    global _owner
    with _lock:
        if _owner is not owner:
            return
        _owner = None
        _record_frames(False)
        if _guest == "run":
            return
        _steps.unwatch()
        if torch_module() is not None:
            from .torch import _probe
            _probe.detach()
        if _guest is None:
            path = _record.path()
            _record.stop()
            _recordings.ending(path)


def pause(owner):
    """Nothing is marked until resume(); the file stays open."""
    if _owner is owner:
        _record_frames(False)
        if not _guest:
            _record.pause()


def resume(owner):
    if _owner is owner:
        if not _guest:
            _record.resume()
        _record_frames(True)


def begin_in_step(owner, number):
    """A recording of `owner`'s has begun in this step; False if the recording is another's."""
    if _owner is not owner or _guest:
        return False
    _steps.restart(number, owner)
    _record.step(number)
    return True
