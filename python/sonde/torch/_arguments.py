# SPDX-License-Identifier: Apache-2.0
"""Arguments of a profile: what torch accepts is accepted, and what it refuses is refused."""
from ._installed import torch_module
from ._schedule import ProfilerActivity, supported_activities

_Observer = getattr(torch_module("torch.profiler"), "ExecutionTraceObserver", None)


def checked(action):
    """The action of a step as the schedule gives it."""
    if getattr(action, "name", None) == "DEVICE_STOPPED":
        raise ValueError("ProfilerAction.DEVICE_STOPPED is set by torch's profiler itself; a "
                         "schedule must not return it")
    return action


def observer_of_environment():
    """The one that ENABLE_PYTORCH_EXECUTION_TRACE=1 asks for."""
    build = getattr(_Observer, "build_execution_trace_obs_from_env", None)
    return build() if build else None


def read_activities(activities):
    """The set of activities that torch's list means; ours and torch's enums are both taken."""
    if activities is None:
        return supported_activities()
    found = set()
    for item in activities:
        for one in item if isinstance(item, dict) else (item,):
            name = getattr(one, "name", None)
            if not hasattr(ProfilerActivity, name or ""):
                raise TypeError(f"Expected ProfilerActivity or dict, got {type(one)}")
            one = getattr(ProfilerActivity, name)
            if one in found:
                raise ValueError(f"Activity {one} specified more than once")
            found.add(one)
    return found


def check_flops(with_flops):
    """Refuses what is neither a switch nor a way to count."""
    if isinstance(with_flops, str) and with_flops not in ("torch", "full"):
        raise ValueError(f"with_flops: expected True, False or 'torch', got {with_flops!r}")
