# SPDX-License-Identifier: Apache-2.0
from . import autograd_profiler as autograd_profiler
from ._benchmark import benchmark as benchmark
from ._benchmark import summary as summary
from ._core import Error as Error
from ._core import Trace as Trace
from ._core import __version__ as __version__
from ._functions import functions as functions
from ._line_memory import line_memory as line_memory
from ._lines import lines as lines
from ._sample import sample as sample
from ._layers import LayersError as LayersError
from ._layers import layers as layers
from ._tensors import memory_report as memory_report
from ._tensors import tensor_lines as tensor_lines
from .accelerate import ProfileKwargs as ProfileKwargs
from .torch import ExecutionTraceObserver as ExecutionTraceObserver
from .torch import ProfilerAction as ProfilerAction
from .torch import ProfilerActivity as ProfilerActivity
from .torch import profile as profile
from .torch import record_function as record_function
from .torch import schedule as schedule
from .torch import supported_activities as supported_activities
from .torch import tensorboard_trace_handler as tensorboard_trace_handler

def load_ipython_extension(shell: object) -> None: ...
