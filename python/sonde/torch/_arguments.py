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


# Kineto's activity types by group, and the category that each has in a Chrome trace.
_TYPES = {
    "CPU": {"CPU_OP": "cpu_op", "USER_ANNOTATION": "user_annotation",
            "CPU_INSTANT_EVENT": "cpu_instant_event", "PYTHON_FUNCTION": "python_function",
            "CUDA_RUNTIME": "cuda_runtime", "CUDA_DRIVER": "cuda_driver", "EXTERNAL_CORRELATION": "",
            "XPU_RUNTIME": "", "XPU_DRIVER": "", "PRIVATEUSE1_RUNTIME": "", "PRIVATEUSE1_DRIVER": ""},
    "CUDA": {"CONCURRENT_KERNEL": "kernel", "GPU_MEMCPY": "gpu_memcpy", "GPU_MEMSET": "gpu_memset",
             "GPU_USER_ANNOTATION": "gpu_user_annotation", "CUDA_RUNTIME": "cuda_runtime",
             "CUDA_DRIVER": "cuda_driver", "OVERHEAD": ""},
}


def _items(activities):
    """(activity, its types or None for all of them), of torch's list."""
    for item in activities:
        for one, types in item.items() if isinstance(item, dict) else [(item, None)]:
            name = getattr(one, "name", None)
            if not hasattr(ProfilerActivity, name or ""):
                raise TypeError(f"Expected ProfilerActivity or dict, got {type(one)}")
            yield getattr(ProfilerActivity, name), getattr(types, "activity_types", types)


def read_activities(activities):
    """The set of activities that torch's list means; ours and torch's enums are both taken."""
    if activities is None:
        return supported_activities()
    found = set()
    for one, _types in _items(activities):
        if one in found:
            raise ValueError(f"Activity {one} specified more than once")
        found.add(one)
    return found


def left_out(activities):
    """Categories that a Chrome trace is without, by the activity types that were chosen; as torch,
    nothing else is without them."""
    shown, chosen = set(), False
    for one, types in _items(activities or ()):
        known = _TYPES.get(one.name, {})
        if types is not None and one.name in _TYPES:
            chosen = True
            for name in types:
                if name not in known:
                    raise RuntimeError(f"Unknown or non-member activity type name: {name!r}")
        shown.update(category for name, category in known.items() if types is None or name in types)
    every = {category for known in _TYPES.values() for category in known.values()} - {""}
    return tuple(sorted(every - shown)) if chosen else ()


def check_timeout(seconds):
    """Results are made when they are asked for, at once: only what torch refuses is refused."""
    if seconds is not None and seconds < 0:
        raise ValueError("post_processing_timeout_s must be non-negative")


def check_flops(with_flops):
    """Refuses what is neither a switch nor a way to count."""
    if isinstance(with_flops, str) and with_flops not in ("torch", "full"):
        raise ValueError(f"with_flops: expected True, False or 'torch', got {with_flops!r}")
