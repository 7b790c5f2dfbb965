# SPDX-License-Identifier: Apache-2.0
"""Operators, and with them steps and Python's calls, in a recording of an owner's (_recording.py)."""
import os
import sys
import warnings

from .. import _record, _recording, _steps
from .._core import Error
from ._installed import torch_module

# Options of the operators' probe; the others are the recording's.
_ATTACHED = ("shapes", "memory", "stacks", "modules", "overloads", "cuda", "notes")

_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep
_said_guest = False
_collections = False  # with Python's calls, garbage collections too
_frames = None  # whether Python's calls are recorded for the owner now; None: they are not asked for
_lent = None  # options of the operators that the owner has in the recording of `sonde run`, which has none


# ------------------------------------------------------------------------- under `sonde run`

def is_guest_of_run():
    """Whether the recording that is on, or would be joined, is that of `sonde run`."""
    return _record.under_run()


def warn_under_run(text):
    """A warning that raises nothing, even with `python -W error`: the program did not ask."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
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


# ---------------------------------------------------------------------------- start and stop

def start(owner, path, *, bare=False, collections=False, **options):
    """Begins to record into `path` on behalf of `owner`; returns the path that is really written.

    `bare`: nothing is recorded but what is marked by hand.
    """
    global _frames, _collections, _lent
    with_torch = not bare and torch_module() is not None
    try:
        if with_torch and not is_guest_of_run() and not _recording.has_owner():
            _prepare()
        if with_torch:
            path = _recording.take(owner, path, lambda path: _begin(path, options),
                                   lambda: _join(options))
        else:
            path = _recording.take(owner, path)
    except Error as error:
        raise RuntimeError(f"sonde: {error}") from error
    if path is None:
        _say_guest()
    _lent = _attached(options) if path is None and with_torch and not _run_has_operators() else None
    _collections = collections
    _frames = False if options.get("stacks") and path is not None and with_torch else None
    return path


def _prepare():
    """What can fail, and may take a minute: sessions of other threads do not wait for it."""
    from ._probe import library
    library()


def _begin(path, options):
    from . import _attach
    _attach.start(path, **options)
    _steps.restart()
    _steps.watch_optimizers()


def _join(options):
    """Operators go into the recording of sonde.functions and its like."""
    from . import _attach
    _steps.watch_optimizers()
    _attach.attach(**_attached(options))


def _attached(options):
    return {name: value for name, value in options.items() if name in _ATTACHED}


def stop(owner):
    """Ends `owner`'s recording; without effect if it has none."""
    global _lent
    if _recording.has(owner) and _lent is not None:
        leave_run()
        _lent = None
    _recording.give_back(owner, _detach)


def _run_has_operators():
    attach = sys.modules.get("sonde.torch._attach")  # `sonde run --ops` has loaded it
    return attach is not None and attach.is_of_run()


def _lend():
    """`sonde run` was not asked for operators: while the owner records they are in its trace."""
    try:
        join_run(**_lent)
    except Error as error:  # nothing under `sonde run` raises in the program
        warn_under_run(f"a profile under `sonde run` has no operators: {error}")


def join_run(**options):
    """Operators with these options in the recording of `sonde run`, until leave_run()."""
    if torch_module() is not None:
        from . import _attach
        _attach.attach(**options)


def leave_run():
    """They are recorded as `sonde run` asks for, or not at all."""
    if torch_module() is not None:
        from . import _attach
        _attach.detach()


def watch_compiled(owner, wanted):
    """Notes the modules of what torch.compile compiles, from a profile's start, in steps that are not recorded too."""
    if torch_module() is not None:
        from . import _compiled
        (_compiled.watch if wanted else _compiled.unwatch)(id(owner))


def _detach():
    _record_frames(False)
    _steps.unwatch()
    if torch_module() is not None:
        from . import _attach
        _attach.detach()


def pause(owner):
    """Nothing is marked until resume(); the file stays open."""
    if _recording.has(owner):
        _record_frames(False)
        if _recording.is_its_own(owner):
            _record.pause()
        elif _lent is not None:
            leave_run()


def resume(owner):
    if _recording.has(owner):
        if _recording.is_its_own(owner):
            _record.resume()
        elif _lent is not None:
            _lend()
        _record_frames(True)


def begin_in_step(owner, number):
    """A recording of `owner`'s has begun in this step; False if the recording is another's."""
    if not _recording.is_its_own(owner):
        return False
    _steps.restart(number, id(owner))
    _record.step(number)
    return True


def _record_frames(on):
    """with_stack: Python's calls are on the timeline while operators are recorded."""
    global _frames
    if _frames is None or _frames == on:
        return
    from ..python import _functions
    from . import _attach
    if not on:
        _functions.stop_timeline()
    elif not _functions.start_timeline(_attach.module_code(torch_module()), _collections):
        on = None
        warnings.warn("sonde: Python calls are already being recorded (sonde.functions): with_stack=True "
                      "adds no Python functions to the timeline", stacklevel=6)
    _frames = on
