# SPDX-License-Identifier: Apache-2.0
"""Hugging Face Accelerate: its profiler, with sonde inside.

    from accelerate import Accelerator
    from sonde import ProfileKwargs                      # was: from accelerate import ProfileKwargs

    accelerator = Accelerator(kwargs_handlers=[ProfileKwargs(activities=["cpu"])])
    with accelerator.profile() as prof:
        model(inputs)

Arguments, schedule and one trace for each rank (output_trace_dir) are Accelerate's.
"""
import dataclasses
from typing import Union

import accelerate.utils

from .torch import _profile
from .torch._arguments import check_flops

_Theirs = accelerate.utils.ProfileKwargs


@dataclasses.dataclass
class ProfileKwargs(_Theirs):
    """accelerate.ProfileKwargs that builds a sonde.profile. `with_flops` may also be "torch"."""

    with_flops: Union[bool, str] = False

    def __post_init__(self):
        check_flops(self.with_flops)

    # An Accelerator finds its handlers by exact class, so that a subclass would be refused.
    __class__ = property(lambda self: _Theirs)

    def build(self):
        activities = None
        if self.activities is not None:
            activities = [self._get_profiler_activity(name) for name in self.activities]
        plan = None
        if self.schedule_option is not None:
            plan = _profile.schedule(**self.schedule_option)
        return _profile.profile(activities=activities, schedule=plan,
                             on_trace_ready=self.on_trace_ready, record_shapes=self.record_shapes,
                             profile_memory=self.profile_memory, with_stack=self.with_stack,
                             with_flops=self.with_flops, with_modules=self.with_modules)
