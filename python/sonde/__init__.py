# SPDX-License-Identifier: Apache-2.0
"""sonde: profile, and read what was recorded.

    >>> from sonde import profile, record_function       # was: from torch.profiler import ...
    >>> with profile(record_shapes=True) as prof:
    ...     model(inputs)
    >>> print(prof.key_averages().table(sort_by="cpu_time_total", row_limit=10))

    >>> import sonde
    >>> with sonde.functions() as calls:                 # as cProfile; also lines, line_memory, sample
    ...     main()
    >>> calls.print(sort="cumulative")

    >>> with sonde.Trace("prog.sonde") as trace:
    ...     print(trace.report(view="ops", sort="self_cpu_time_total", rows=10))
    ...     trace.export("prog.json.gz", to="chrome")

This package is thin: the numbers and the text come from the C library. Importing it does not import
torch; using one of torch.profiler's names does, where torch is installed.
"""
_PLACES = {
    **dict.fromkeys(("Error", "Trace", "__version__"), "._core"),  # not in programs that are only recorded
    **dict.fromkeys(("profile", "schedule", "record_function", "ProfilerActivity",
                     "ProfilerAction", "supported_activities", "tensorboard_trace_handler",
                     "ExecutionTraceObserver", "DeviceType", "kineto_available"), ".torch"),
    "step": "._steps",
    **dict.fromkeys(("diff", "Diff"), "._diff"),
    "functions": ".python._functions",
    "lines": ".python._lines",
    "line_memory": ".python._line_memory",
    "sample": ".python._sample",
    **dict.fromkeys(("benchmark", "summary", "graph"), ".model._benchmark"),
    **dict.fromkeys(("memory_report", "tensor_lines"), ".model._tensors"),
    **dict.fromkeys(("layers", "LayersError"), ".pipeline._layers"),
}
__all__ = [*_PLACES]
_PLACES.update(ProfileKwargs=".accelerate", autograd_profiler=None)  # not for `import *`
_PLACES.update(dict.fromkeys(("CuspyConfig", "PerformanceMetricsConfig", "ProfilerActivityConfig"),
                             ".torch"))  # where torch has them


def __getattr__(name):
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib
    place = _PLACES[name]
    module = importlib.import_module(place or f".{name}", __name__)
    value = getattr(module, name) if place else module
    globals()[name] = value
    return value


def load_ipython_extension(shell):
    """%load_ext sonde"""
    from . import _magics
    _magics.load(shell)


def __dir__():
    return sorted({*globals(), *_PLACES})
