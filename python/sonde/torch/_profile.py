# SPDX-License-Identifier: Apache-2.0
"""sonde.profile: torch.profiler's profile: start, stop and schedule, and its results."""
import os
import warnings

from .. import _steps
from . import _config, _cuda, _operators
from ._arguments import (check_flops, check_timeout, checked, left_out, observer_of_environment,
                         read_activities)
from ._installed import torch_module
from ._metadata import Metadata
from ._result import Result, RunResult
from ._schedule import (ProfilerAction, ProfilerActivity, first_recorded_step, record_always,
                        schedule, supported_activities, tensorboard_trace_handler)

_torch_profiler = torch_module("torch.profiler")

if _torch_profiler is not None:
    from torch.autograd import DeviceType
    from torch.profiler import ExecutionTraceObserver, record_function
else:
    from ._range import record_function

    DeviceType = ExecutionTraceObserver = None


def kineto_available():
    """Whether profiles with activities work: here always, with or without torch's Kineto."""
    return True


NONE, WARMUP, RECORD, SAVE = (ProfilerAction.NONE, ProfilerAction.WARMUP, ProfilerAction.RECORD,
                              ProfilerAction.RECORD_AND_SAVE)

# What moving from one action to the next does, in torch's words; None is the end.
_MOVES = {
    (NONE, WARMUP): ("prepare_trace",),
    (NONE, RECORD): ("prepare_trace", "start_trace"),
    (NONE, SAVE): ("prepare_trace", "start_trace"),
    (WARMUP, NONE): ("_say_incorrect", "_discard"),
    (WARMUP, RECORD): ("start_trace",),
    (WARMUP, SAVE): ("start_trace",),
    (RECORD, NONE): ("_say_incorrect", "stop_trace"),
    (RECORD, WARMUP): ("_say_incorrect", "stop_trace"),
    (SAVE, NONE): ("stop_trace", "_trace_ready"),
    (SAVE, WARMUP): ("stop_trace", "_trace_ready", "prepare_trace"),
    (SAVE, RECORD): ("stop_trace", "_trace_ready", "prepare_trace", "start_trace"),
    (SAVE, SAVE): ("stop_trace", "_trace_ready", "prepare_trace", "start_trace"),
    (WARMUP, None): ("_discard",),
    (RECORD, None): ("stop_trace", "_trace_ready"),
    (SAVE, None): ("stop_trace", "_trace_ready"),
}


# The count of steps that profilers and optimizers share in torch; its users read it, not we.
_tracker = getattr(torch_module("torch.autograd.profiler"), "KinetoStepTracker", None)
_STEP_NAME = "ProfilerStep"


def _always_counts():
    """Whether torch's own step() moves that count whatever the environment says, as 2.4's does."""
    code = getattr(torch_module("torch.profiler").profile.step, "__code__", None)
    return code is not None and "KINETO_USE_DAEMON" not in code.co_consts


class profile(Metadata):
    """Records what PyTorch does between start and stop, or inside a `with` block.

    `with_flops=True` counts every operator that has a formula; "torch" counts as torch does.
    `gpu="light"` records the GPUs' work without CUDA's calls (docs/GPU.md): for less of the host's time.
    """

    def __init__(self, *, activities=None, schedule=None, on_trace_ready=None,
                 record_shapes=False, profile_memory=False, with_stack=False, with_flops=False,
                 with_modules=False, experimental_config=None, execution_trace_observer=None,
                 acc_events=False, custom_trace_id_callback=None, post_processing_timeout_s=None,
                 use_cuda=None, gpu="full"):
        check_flops(with_flops)
        check_timeout(post_processing_timeout_s)
        self.gpu = _cuda.checked_level(gpu)
        if activities is not None:
            activities = list(activities)  # it may be a generator
        self.activities = read_activities(activities)
        self._left_out = left_out(activities)
        if use_cuda is not None:  # older torch has it
            warnings.warn("`use_cuda` is deprecated, use `activities` argument instead",
                          FutureWarning, stacklevel=2)
            change = self.activities.add if use_cuda else self.activities.discard
            change(ProfilerActivity.CUDA)
        if not self.activities:
            raise AssertionError("No valid profiler activities found")
        recorded = self.activities & supported_activities()
        self.use_device = "cuda" if ProfilerActivity.CUDA in recorded else None
        configured = _config.options_set(experimental_config)
        self._say_ignored(_config.reasons(configured))
        # If the config cannot be read, overload names are recorded to be safe.
        self._with_overloads = configured is None or "capture_overload_names" in configured
        self._with_collections = "record_python_gc_info" in (configured or ())
        self.record_shapes = record_shapes or bool(with_flops)
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_flops = with_flops
        self.with_modules = with_modules
        self.experimental_config = experimental_config
        self.execution_trace_observer = execution_trace_observer or observer_of_environment()
        self.acc_events = acc_events
        self.custom_trace_id_callback = custom_trace_id_callback
        self.post_processing_timeout_s = post_processing_timeout_s
        self.on_trace_ready = on_trace_ready
        self.schedule = schedule or record_always
        self.record_steps = schedule is not None
        self.step_num = 0
        self.current_action = checked(self.schedule(0))
        self.preset_metadata = {}
        self._metadata = {}
        self._trace_id = None
        self._step_range = None
        self._step_marked = False
        self._next = None    # what is being prepared or recorded
        self._result = None  # what was recorded last, or is being recorded
        if _tracker is not None:
            _tracker.init_step_count(_STEP_NAME)

    def _say_ignored(self, words):
        """One warning for all arguments that are accepted but have no effect, with the reasons."""
        if ProfilerActivity.CPU not in self.activities:
            words.append("activities without CPU (operators are recorded all the same)")
        beyond = sorted(one.name for one in self.activities - supported_activities())
        if beyond:
            words.append(f"activities {', '.join(beyond)} (not available here: of devices, CUDA's GPUs are recorded)")
        if words:
            warnings.warn(f"sonde.profile: without effect: {'; '.join(words)}", stacklevel=3)

    def __repr__(self):
        return f"<sonde.profile at step {self.step_num}, {self.current_action.name}>"

    # ------------------------------------------------------------ start, stop, step

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, kind, value, traceback):
        self.stop()
        if _tracker is not None:
            _tracker.erase_step_count(_STEP_NAME)
        if self.execution_trace_observer:
            self.execution_trace_observer.cleanup()

    def start(self):
        """Begins, as the schedule's first step says."""
        if self.record_steps and not _operators.is_guest_of_run():
            _steps.by_hand(id(self))
        if self.with_modules:
            _operators.watch_compiled(self, True)
        self._move(NONE, self.current_action)
        self._enter_step()

    def stop(self):
        """Ends; calls on_trace_ready if something was being recorded."""
        self._leave_step()
        _steps.forget(id(self))
        self._move(self.current_action, None)
        if self.with_modules:
            _operators.watch_compiled(self, False)
        if self.record_steps and self._result is None:
            self._say_never_recorded()

    def step(self):
        """The next step of the program begins."""
        self._leave_step()
        before, after = self.current_action, checked(self.schedule(self.step_num + 1))
        self.step_num += 1
        self.current_action = after
        self._step_marked = False
        if "stop_trace" in _MOVES.get((before, after), ()) and not _operators.is_guest_of_run():
            _steps.ended(self.step_num - 1)
        self._move(before, after)
        if not self._step_marked:
            of_run = _operators.is_guest_of_run()  # whose steps have their own numbers
            _steps.came(id(self), by_hand=True, number=None if of_run else self.step_num)
        if _tracker is not None and (os.environ.get("KINETO_USE_DAEMON") or _always_counts()):
            _tracker.increment_step(_STEP_NAME)
        self._enter_step()

    def _move(self, before, after):
        self._between = (before, after)
        for name in _MOVES.get((before, after), ()):
            getattr(self, name)()

    def _enter_step(self):
        if self.record_steps:
            self._step_range = record_function(f"ProfilerStep#{self.step_num}")
            self._step_range.__enter__()

    def _leave_step(self):
        if self._step_range:
            self._step_range.__exit__(None, None, None)
            self._step_range = None

    def _say_incorrect(self):
        before, after = self._between
        warnings.warn(f"Incorrect schedule: {before.name} followed by {after.name}", stacklevel=4)

    def _say_never_recorded(self):
        first = first_recorded_step(self.schedule)
        goal = "never records" if first is None else f"first records step {first}"
        warnings.warn(f"sonde.profile: nothing was recorded: step() was called {self.step_num} "
                      f"times, and the schedule {goal}. Call step() at the end of each iteration.",
                      stacklevel=3)

    # ------------------------------------------------------------------ one cycle

    def prepare_trace(self):
        """Warm-up: all is set up and the file is there, but nothing is marked yet."""
        result, kind = self._result, RunResult if _operators.is_guest_of_run() else Result
        if type(result) is not kind or not self.acc_events:
            result = kind(self.profile_memory, self.with_flops)
        result.begin(_operators.start(
            self, result.next_path(), shapes=self.record_shapes, memory=self.profile_memory,
            stacks=self.with_stack, modules=self.with_modules,
            overloads=self._with_overloads, collections=self._with_collections,
            cuda=self.gpu if self.use_device == "cuda" else None))
        _operators.pause(self)
        result.left_out = self._left_out
        self._next = result
        self._trace_id = self.create_trace_id()

    def start_trace(self):
        """From here on things are recorded."""
        if self._next is None:
            raise AssertionError("sonde.profile: call prepare_trace() before start_trace()")
        self._result = self._next
        if self.execution_trace_observer:
            self.execution_trace_observer.start()
        _operators.resume(self)
        if self.record_steps:
            self._step_marked = _operators.begin_in_step(self, self.step_num)

    def stop_trace(self):
        if self._next is None:
            raise AssertionError("sonde.profile: stop() without start(): not recording")
        if self.execution_trace_observer:
            self.execution_trace_observer.stop()
        _operators.stop(self)
        self._next = None
        self._result.end()
        self._result.metadata = self._all_metadata()

    def _discard(self):
        """The warm-up was not followed by a recording; earlier results stay available."""
        _operators.stop(self)
        result, self._next = self._next, None
        result.end(keep=False)

    def _trace_ready(self):
        if self.on_trace_ready:
            self.on_trace_ready(self)

    def toggle_collection_dynamic(self, enable, activities):
        """Stops and resumes recording in the middle of a cycle."""
        if self._next is not None and ProfilerActivity.CPU in read_activities(activities):
            (_operators.resume if enable else _operators.pause)(self)

    # -------------------------------------------------------------------- results

    def _results(self, what):
        if self._result is None:
            raise AssertionError(f"sonde.profile: there is nothing {what}: nothing was recorded"
                                 + " (did the program call step()?)" * self.record_steps)
        return self._result

    def _finished(self):
        return self._result is not None and self._result.writing is None

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0,
                     group_by_overload_name=False, include_python_functions=False):
        """One row for each operator; or for each with these shapes, stack frames, overload."""
        groups = group_by_input_shape, group_by_stack_n, group_by_overload_name
        if include_python_functions:
            return self.events().key_averages(*groups, include_python_functions=True)
        return self._results("to average").key_averages(*groups)

    def events(self):
        """Every single event, in the order they began."""
        return self._results("to list").events()

    def export_chrome_trace(self, path, use_python_export=False, cuda_graph_annotations=None,
                            graph_lanes="none", default_stream=7):
        """For Perfetto, chrome://tracing, HTA, TensorBoard; compressed if it ends in .gz."""
        if cuda_graph_annotations or graph_lanes != "none":
            warnings.warn("sonde.profile: without effect: annotations and lanes of CUDA graphs",
                          stacklevel=2)
        result = self._results("to export")
        result.metadata = self._all_metadata()
        result.export_chrome_trace(path)

    def export_stacks(self, path, metric="self_cpu_time_total"):
        """Folded stacks, a line each, for a flame graph."""
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        self._results("to export").export_stacks(path, metric)

    def export_memory_timeline(self, path, device=None):
        """Bytes over time by category: .html, .json, .json.gz, or .raw.json.gz."""
        if not self.profile_memory:
            raise ValueError("profile_memory=True required for memory profiling.")
        self._results("to export").export_memory_timeline(path, device or "cpu")

    def to_html(self, path, *, source=True):
        """The report page: one file for a browser, with tables, timeline, flame graphs, memory; source=False: without
        the text of source files."""
        self._results("to export").to_html(path, source)

    def _repr_html_(self):
        """In a notebook, the report page; before there are results, nothing of its own."""
        return self._result.inline_page() if self._finished() else None

    def save(self, path):
        """Keeps the trace itself, for `sonde report`; forked children lie beside it."""
        self._results("to save").save(path)

    def ledger(self):
        """What is missing, cut or uncertain: (key, count, sentence) each. Empty: nothing is."""
        return self._results("to account for").ledger()

    @property
    def profiler(self):
        """torch keeps its results in an inner object; here it is this one."""
        return self if self._result is not None else None

    @property
    def function_events(self):
        return self.events()

    def wait_for_exports(self):
        """An export is written when its call returns: there is nothing to wait for."""

    def take_pending_cuspy_export(self):
        """As torch's without its cuspy backend: None."""
