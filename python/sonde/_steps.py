# SPDX-License-Identifier: Apache-2.0
"""Where the steps of a program begin: what `--schedule` counts and `--view steps` shows.

A training step is marked by whichever of these the program calls: sonde.step(), step() of a
profile (of sonde's, of torch's, and so of Accelerate's and Lightning's), or the step of an
optimizer. Most programs call several of them in each training step, and it is still one step:

- A new step begins when a source comes that already came since the last step began.
- While step() is called by hand, optimizers do not begin steps. A profile numbers its steps, as torch's
  does: with its first step() those that optimizers began before are steps no longer.

As in torch.profiler the recording begins in step 0, and step() ends a step and begins the next.
"""
import functools
import os
import sys
import threading

from . import _record

_FUNCTION = "sonde.step"  # as a source

_lock = threading.Lock()
_number = 0          # of the step that the program is in
_came = set()        # sources since it began
_by_hand = set()     # sources that are step() calls, while they are in use
_only_counted = False  # the steps so far were begun by optimizers
_first = None        # the first step that began while this recording was on, once one has
_undo = []           # what ends the watching of optimizers and profilers
_is_wrapped = False  # optimizers' steps are counted by watch_new_optimizers: a hook would count them twice
on_step = None       # of torch/_standby.py: called with the source that ended a step; the number of the next, or None


def _forget_in_child():
    """The lock may have been held by a thread that the child does not have."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_forget_in_child)


def step():
    """A step of the program ends, and the next begins. Without effect if nothing records."""
    came(_FUNCTION, by_hand=True)


def came(source, *, by_hand=False, number=None):
    """`source` ended a step; `number`: that of the step that begins, if the source counts."""
    global _number, _only_counted
    with _lock:
        if by_hand:
            _by_hand.add(source)
        elif _by_hand:
            return
        anew = number is not None and _only_counted
        if not anew and _came and source not in _came:
            _came.add(source)
            return
        if anew:
            _number = 0
            _record.metadata(_record.METADATA["STEPS_FROM"], str(_record.clock()))
        _came.clear()
        _came.add(source)
        _only_counted = not by_hand and (_only_counted or _number == 0)
        _number = max(_number + 1, number or 0)  # no number twice, even if others count too
        number = _number
        if anew or _first is None:
            if by_hand and _record.epoch() != 0 and not _record.under_run():
                _record.metadata(_record.METADATA["STEPS_BEGAN"], str(number - 1))
            _note_first(number)
    if on_step is not None:
        number = on_step(source)
    if number is not None:
        _record.step(number)


def _note_first(number):
    """The one before began before the recording did, and what follows the last mark is no step."""
    global _first
    _first = number
    _record.metadata(_record.METADATA["STEPS_FIRST"], str(number))


def ended(number):
    """The recording ends with the end of this step."""
    _record.metadata(_record.METADATA["STEPS_ENDED"], str(number))


def by_hand(source):
    """Its step() calls are the steps, until forget()."""
    with _lock:
        _by_hand.add(source)


def forget(source):
    """The source ends no more steps: others may begin them."""
    with _lock:
        _by_hand.discard(source)
        _came.discard(source)


def restart(number=0, source=None):
    """A recording begins in step `number`, which `source` has begun."""
    global _number, _only_counted, _first
    with _lock:
        _number = number
        _only_counted = False
        _first = None
        _by_hand.discard(_FUNCTION)
        _came.clear()
        if source is not None:
            _came.add(source)
            _note_first(number)


# ------------------------------------------------------------------- optimizers, torch's own

def _after_optimizer(optimizer, _args, _kwargs):
    came(id(optimizer))


def watch_optimizers():
    """Has the step of every optimizer counted, until unwatch()."""
    module = sys.modules.get("torch.optim.optimizer")
    register = getattr(module, "register_optimizer_step_post_hook", None)
    if register is not None and not _undo and not _is_wrapped:
        _undo.append(register(_after_optimizer).remove)


def unwatch():
    while _undo:
        _undo.pop()()


def watch_new_optimizers(optimizer, is_compiling):
    """Has the step of every optimizer counted whose class has no object yet, as they return.

    A hook would come too early for a schedule: it is called inside the range of the step.
    """
    global _is_wrapped
    theirs, _is_wrapped = optimizer.profile_hook_step, True

    def profile_hook_step(function):
        inner = theirs(function)

        @functools.wraps(inner)
        def step(self, *args, **kwargs):
            result = inner(self, *args, **kwargs)
            if not is_compiling():  # torch.compile must not trace what follows
                came(id(self))
            return result

        return step

    optimizer.profile_hook_step = staticmethod(profile_hook_step)


def watch_running():
    """As watch_run(), of a program whose optimizers exist: by a hook, which is called inside the range of the step."""
    global _is_wrapped
    if not _is_wrapped:
        sys.modules["torch.optim.optimizer"].register_optimizer_step_post_hook(_after_optimizer)
        _is_wrapped = True
    profiler = sys.modules.get("torch.profiler")
    if profiler is not None:
        watch_torch_profiler(profiler)


def watch_torch_profiler(profiler):
    """Has step() of torch.profiler's profiles counted; `profiler` is the module torch.profiler."""
    theirs = profiler.profile
    next_step, stop = theirs.step, theirs.stop

    @functools.wraps(next_step)
    def step(self):
        came(id(self), by_hand=True)
        return next_step(self)

    @functools.wraps(stop)
    def stop_and_forget(self):
        forget(id(self))
        return stop(self)

    theirs.step, theirs.stop = step, stop_and_forget


def watch_run(torch, after_import):
    """Under `sonde run`, once `torch` is imported: its optimizers and its own profiler."""
    is_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None)
    if is_compiling is not None:
        watch_new_optimizers(torch.optim.Optimizer, is_compiling)
    profiler = sys.modules.get("torch.profiler")
    if profiler is not None:
        watch_torch_profiler(profiler)
    else:
        after_import("torch.profiler", watch_torch_profiler)
