# SPDX-License-Identifier: Apache-2.0
"""torch.profiler, in sonde: the same names, arguments, methods and results.

    from sonde import profile, record_function, ProfilerActivity     # was: from torch.profiler

    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as prof:
        model(inputs)
    print(prof.key_averages().table(sort_by="cpu_time_total", row_limit=10))

docs/TORCH.md lists the differences: every thread is recorded, FLOPs are counted in full, the table is
ready at once, and mistakes of torch are corrected.

Names are loaded when they are first asked for: importing a module of this package does not import
torch.
"""
__all__ = ["profile", "schedule", "record_function", "ProfilerActivity", "ProfilerAction",
           "supported_activities", "tensorboard_trace_handler", "ExecutionTraceObserver",
           "DeviceType", "kineto_available"]


def __getattr__(name):
    """Public names that are not ours are torch.profiler's: those of backends, for example."""
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import _profile
    from ._installed import torch_module
    home = _profile
    if name not in __all__:
        home = torch_module("torch.profiler")
        if home is None or name not in home.__all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(home, name)
    return value


def __dir__():
    return sorted({*globals(), *__all__})
