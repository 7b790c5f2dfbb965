# SPDX-License-Identifier: Apache-2.0
from typing import Any

from ._profile import DeviceType as DeviceType
from ._profile import ExecutionTraceObserver as ExecutionTraceObserver
from ._profile import ProfilerAction as ProfilerAction
from ._profile import ProfilerActivity as ProfilerActivity
from ._profile import kineto_available as kineto_available
from ._profile import profile as profile
from ._profile import record_function as record_function
from ._profile import schedule as schedule
from ._profile import supported_activities as supported_activities
from ._profile import tensorboard_trace_handler as tensorboard_trace_handler

def __getattr__(name: str) -> Any: ...
