# SPDX-License-Identifier: Apache-2.0
"""Which steps are recorded: torch.profiler's schedule, with torch's enums where there is a torch.

Without torch the enums are ours, of the same names and numbers, so that programs that only
mark their own ranges have schedules as well.
"""
import enum
import math
import os
import warnings

from .. import _record
from . import _cuda
from ._installed import torch_module

_MOST = 2**32 - 1  # of a field: more steps than a program has
_profiler = torch_module("torch.profiler")

if _profiler is not None:
    ProfilerAction = _profiler.ProfilerAction
    ProfilerActivity = _profiler.ProfilerActivity
else:
    class ProfilerAction(enum.Enum):
        """What happens during a step."""
        NONE = 0
        WARMUP = 1
        RECORD = 2
        RECORD_AND_SAVE = 3

    class ProfilerActivity(enum.Enum):
        """What is recorded."""
        CPU = 0
        XPU = 1
        MTIA = 2
        CUDA = 3
        HPU = 4
        PrivateUse1 = 5


_ACTIONS = (ProfilerAction.NONE, ProfilerAction.WARMUP, ProfilerAction.RECORD,
            ProfilerAction.RECORD_AND_SAVE)  # in the order of enum sonde_action


def supported_activities():
    """The activities that are recorded here: those of the CPU, and of NVIDIA's GPUs where there are any."""
    return {ProfilerActivity.CPU} | ({ProfilerActivity.CUDA} if _cuda.is_usable() else set())


def schedule(*, wait, warmup, active, repeat=0, skip_first=0, skip_first_wait=0):
    """A function from the number of a step to its action, for profile(schedule=...).

    After `skip_first` steps come cycles of `wait` steps that are not recorded, `warmup` steps
    that only prepare, and `active` steps that are recorded: `repeat` cycles, 0 for no end.
    With `skip_first_wait` the first cycle does not wait.
    """
    if wait < 0 or warmup < 0 or active <= 0 or repeat < 0 or skip_first < 0:
        raise AssertionError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} "
            f"(need >= 0), active={active} (need > 0), repeat={repeat} (need >= 0), "
            f"skip_first={skip_first} (need >= 0).")
    if warmup == 0:
        warnings.warn("Profiler won't be using warmup, this can skew profiler results",
                      stacklevel=2)
    fields = tuple(min(math.ceil(value), _MOST) for value in (wait, warmup, active, repeat, skip_first,
                                                       bool(skip_first_wait)))

    def action_of(step):
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        return _ACTIONS[_record.schedule_action(fields, int(step))]

    return action_of


def record_always(_step):
    """The schedule of a profile that was given none."""
    return ProfilerAction.RECORD


def first_recorded_step(action_of, most=100_000):
    """The number of the first recorded step; None if none is found."""
    recorded = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
    return next((step for step in range(most) if action_of(step) in recorded), None)


def tensorboard_trace_handler(dir_name, worker_name=None, use_gzip=False, use_python_export=False):
    """An on_trace_ready that writes each trace into `dir_name`, named as TensorBoard expects."""
    import socket
    import time

    def write(prof):
        try:
            os.makedirs(dir_name, exist_ok=True)
        except OSError as error:
            raise RuntimeError("Can't create directory: " + dir_name) from error
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json" + (".gz" if use_gzip else "")
        prof.export_chrome_trace(os.path.join(dir_name, name))

    return write
