# SPDX-License-Identifier: Apache-2.0
"""torch.autograd.profiler, in sonde.

    from sonde import autograd_profiler as profiler      # was: from torch.autograd import profiler

    with profiler.profile(record_shapes=True) as prof:
        with profiler.record_function("forward"):
            model(inputs)
    print(prof.key_averages().table(sort_by="self_cpu_time_total"))
"""
import warnings

from .torch._installed import torch_module
from .torch._profile import profile as _profile
from .torch._profile import record_function
from .torch._schedule import ProfilerActivity, supported_activities

__all__ = ["profile", "record_function"]


class profile(_profile):
    """The older interface: a context manager without schedule, with results of its own."""

    def __init__(self, enabled=True, *, use_cuda=False, use_device=None, record_shapes=False,
                 with_flops=False, profile_memory=False, with_stack=False, with_modules=False,
                 use_kineto=False, use_cpu=True, experimental_config=None, acc_events=False,
                 custom_trace_id_callback=None, post_processing_timeout_s=None,
                 activity_filters=None):
        self.enabled = enabled
        self.use_cpu = use_cpu
        self.activity_filters = activity_filters
        if activity_filters:
            warnings.warn("sonde: activity_filters choose among GPU activities, which are all "
                          "recorded", stacklevel=2)
        device = "cuda" if use_cuda else use_device
        with_cuda = device == "cuda" and ProfilerActivity.CUDA in supported_activities()
        if device is not None and not with_cuda:
            warnings.warn(f"sonde: {device} is not recorded, only the CPU is", stacklevel=2)
        if not use_cpu:
            warnings.warn("sonde: the CPU is recorded even with use_cpu=False", stacklevel=2)
        super().__init__(activities=[ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * with_cuda, record_shapes=record_shapes,
                         profile_memory=profile_memory, with_stack=with_stack,
                         with_flops=with_flops, with_modules=with_modules,
                         experimental_config=experimental_config, acc_events=acc_events,
                         custom_trace_id_callback=custom_trace_id_callback,
                         post_processing_timeout_s=post_processing_timeout_s)
        self.entered = False

    def __enter__(self):
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self.entered = True
        return super().__enter__()

    def __exit__(self, kind, value, traceback):
        if self.enabled:
            super().__exit__(kind, value, traceback)
        return False

    def __repr__(self):
        return repr(self.events()) if self._finished() else "<unfinished sonde.autograd_profiler>"

    def __str__(self):
        return str(self.events()) if self._finished() else repr(self)

    def table(self, sort_by=None, row_limit=100, max_src_column_width=75,
              max_name_column_width=55, max_shapes_column_width=80, header=None,
              top_level_events_only=False):
        """Every event a row."""
        return self.events().table(sort_by, row_limit, max_src_column_width,
                                   max_name_column_width, max_shapes_column_width, header,
                                   top_level_events_only)

    def total_average(self):
        return self.events().total_average()

    @property
    def self_cpu_time_total(self):
        return self.events().self_cpu_time_total

    def export_chrome_trace(self, path, metadata=None, use_python_export=False,
                            cuda_graph_annotations=None, graph_lanes="none", default_stream=7):
        """The same, with words for its top level: a dict of str to JSON text."""
        for key, value in (metadata or {}).items():
            self.add_metadata_json(key, value)
        super().export_chrome_trace(path, use_python_export, cuda_graph_annotations, graph_lanes,
                                    default_stream)

    def toggle_collection_dynamic(self, enabled, activities):
        super().toggle_collection_dynamic(enabled, activities)


def __getattr__(name):
    """All other names of torch.autograd.profiler are torch's: emit_nvtx, EventList, ..."""
    theirs = torch_module("torch.autograd.profiler")
    if theirs is not None and not name.startswith("_") and hasattr(theirs, name):
        return getattr(theirs, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
