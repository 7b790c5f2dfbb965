# SPDX-License-Identifier: Apache-2.0
from . import autograd_profiler as autograd_profiler
from ._core import Error as Error
from ._core import Trace as Trace
from ._core import __version__ as __version__
from ._layers import LayersError as LayersError
from ._layers import layers as layers
from .accelerate import ProfileKwargs as ProfileKwargs
from .torch import ExecutionTraceObserver as ExecutionTraceObserver
from .torch import ProfilerAction as ProfilerAction
from .torch import ProfilerActivity as ProfilerActivity
from .torch import profile as profile
from .torch import record_function as record_function
from .torch import schedule as schedule
from .torch import supported_activities as supported_activities
from .torch import tensorboard_trace_handler as tensorboard_trace_handler
