# SPDX-License-Identifier: Apache-2.0
"""Runs a model and has it recorded; every number is then libsonde's, from the traces.

For each batch size: timed runs, in which nothing but the runs is marked (timing-N.sonde), and
passes with operators, shapes, memory and modules (pass-N.sonde, train-N.sonde with the backward pass).
For one of them, if asked: the same node by node (graph-time-N.sonde, graph-N.sonde).
docs/MODEL.md names the ranges and the metadata.
"""
import contextlib
import gc
import os
import time

from .. import _record, _recording
from ..torch import _operators
from . import _machine
from ._graph import Graph, NoGraph
from ._module_calls import Calls, DeviceTimes
from ._structures import byte_count, describe, describe_error, move, tensors_of

PASSES = 3
_PEAK_SIZES = {"cpu": 1024, "cuda": 8192}
_PEAK_SECONDS = 0.3


class ModelError(RuntimeError):
    """The model failed; one line says where and why. What was measured is kept."""


# ------------------------------------------------------------------------ one recording

class _Recording:
    """A trace file of this process; operators are in it if options are given."""

    def __init__(self, path, **options):
        self._path = path
        self._options = options or {"bare": True}

    def __repr__(self):
        return "sonde's benchmark"

    def __enter__(self):
        _operators.start(self, self._path, **self._options)
        return self

    def __exit__(self, kind, value, traceback):
        _operators.stop(self)


def note(kind, subject="", number=0, /, **members):
    """A fact of the trace; a list is a field that occurs several times."""
    pairs = [(field, one) for field, value in members.items()
             for one in (value if isinstance(value, list) else [value])]
    _record.fact(kind, pairs, subject, number)


def _name(name, number):
    """A range whose name the reader knows."""
    return f"{_record.NAMES[name]}{number}"


@contextlib.contextmanager
def _range(name):
    _record.begin(name)
    try:
        yield
    finally:
        _record.end()


@contextlib.contextmanager
def _without_collector():
    """As timeit: no garbage collection in the middle of a run."""
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


# ------------------------------------------------------------------------------ bench

class Bench:
    """One model on one device, measured into `folder`."""

    def __init__(self, model, folder, *, name="", device=None, say=None, source="given"):
        """`source`: where the inputs come from, in words."""
        import torch
        why = _recording.why_not_alone("a benchmark")
        if why:  # before the model runs, while another recording would see it
            raise ModelError(f"sonde: {why}")
        self.torch = torch
        self.model = model
        self.folder = folder
        self.name = name
        self._source = source
        first = next(iter([*model.parameters(), *model.buffers()]), None)
        self.device = torch.device(device) if device is not None else (
            first.device if first is not None else torch.device("cpu"))
        self.dtype = str(first.dtype).removeprefix("torch.") if first is not None else "float32"
        self._say = say or (lambda text: None)
        self._calls = None

    def _path(self, kind, batch=None):
        number = "" if batch is None else f"-{batch}"
        return os.path.join(self.folder, f"{kind}{number}.sonde")

    def _done(self):
        """Waits for the GPU: its work is launched, not done, when a call returns."""
        if self.device.type == "cuda":
            self.torch.cuda.synchronize(self.device)

    def _note_model(self):
        parameters = list(self.model.parameters())
        note("model", name=self.name or type(self.model).__name__,
             **{"class": type(self.model).__name__}, device=str(self.device), dtype=self.dtype,
             parameters=sum(one.numel() for one in parameters),
             trainable=sum(one.numel() for one in parameters if one.requires_grad),
             parameter_bytes=byte_count(parameters), buffer_bytes=byte_count(self.model.buffers()))
        _record.fact("machine", _machine.describe(self.torch))

    # ------------------------------------------------------------------- the machine

    def measure_peak(self):
        """Measures the machine's peak: matrix products of the model's type."""
        torch = self.torch
        dtype = getattr(torch, self.dtype, torch.float32)
        size = _PEAK_SIZES.get(self.device.type, 1024)
        if not dtype.is_floating_point or (self.device.type == "cpu" and dtype.itemsize < 4):
            size = 256
        if not dtype.is_floating_point:
            dtype = torch.float32
        self._say("matrix products for the machine's peak")
        left = torch.randn(size, size, device=self.device).to(dtype)
        right, result = left.t().contiguous(), torch.empty_like(left)
        torch.mm(left, right, out=result)
        self._done()
        with torch.no_grad(), _Recording(self._path("peak")):
            self._note_model()
            end, name = time.perf_counter() + _PEAK_SECONDS, _name("MODEL_PEAK", 2 * size ** 3)
            for done in range(200):
                if done >= 3 and time.perf_counter() > end:
                    break
                with _range(name):
                    torch.mm(left, right, out=result)
                    self._done()

    # --------------------------------------------------------------------- one batch

    def measure(self, batch, inputs, *, warmup=3, runs=20, passes=PASSES, backward=False):
        """Everything for one batch size; `inputs` are on the host."""
        inputs = inputs if isinstance(inputs, (tuple, list, dict)) else (inputs,)
        self._learn(batch, inputs)
        if runs:
            self._time(batch, inputs, warmup, runs)
        if passes:
            self._record_passes(batch, inputs, passes)
        if backward and passes:
            self._record_training(batch, inputs, passes)

    def _call(self, inputs):
        return self.model(**inputs) if isinstance(inputs, dict) else self.model(*inputs)

    def _learn(self, batch, inputs):
        """The first pass: inputs and outputs of each module, and whether the model runs at all."""
        self._calls = Calls(self.model)
        try:
            with self.torch.no_grad(), self._calls:
                self._call(move(inputs, self.device))
                self._done()
        except Exception as error:
            failure = (f"batch {batch}: the forward pass failed {self._calls.where()}: "
                       f"{describe_error(error)}").replace(" :", ":")
            self._keep_partial(batch, inputs, failure)
            raise ModelError(failure) from error

    def _keep_partial(self, batch, inputs, failure):
        """Records the pass up to where it fails: the modules before it are measured."""
        with self._recording("pass", batch, inputs):
            note("failure", reason=failure)
            with contextlib.suppress(Exception), self.torch.no_grad():
                with _range(f"model.partial batch={batch}"):
                    self._call(move(inputs, self.device))

    def _time(self, batch, inputs, warmup, runs):
        on_gpu = self.device.type == "cuda"
        names = {part: _name(f"MODEL_{part.upper()}", batch)
                 for part in ("total", "to_device", "forward", "to_host", "gpu")}
        begin, end, call, done, device = (_record.begin, _record.end, self._call, self._done,
                                          self.device)
        placed = inputs if on_gpu else move(inputs, device)
        meter, why = _machine.energy_meter(device)
        with self.torch.no_grad(), _without_collector():
            self._say(f"batch {batch}: warm-up runs: {warmup}, timed runs: {runs}")
            for _ in range(warmup):
                call(move(placed, device))
            done()
            with _Recording(self._path("timing", batch)):
                self._note_model()
                before = meter.microjoules() if meter else None
                if on_gpu:
                    self._time_with_copies(names, placed, runs)
                else:
                    name = names["forward"]
                    for _ in range(runs):
                        begin(name)
                        result = call(placed)
                        end()
                        del result
                after = meter.microjoules() if meter else None
                if meter and after == before:
                    meter, why = None, (f"the counter ({meter.source}) did not move in {runs} runs "
                                        "of this batch size: ask for more")
                if meter:
                    note("energy", batch=batch, source=meter.source, before_uj=before,
                         after_uj=after, runs=runs)
                else:
                    note("energy", absent=why)

    def _time_with_copies(self, names, inputs, runs):
        begin, end, event = _record.begin, _record.end, self.torch.cuda.Event
        marks = [(event(enable_timing=True), event(enable_timing=True)) for _ in range(runs)]
        stream = self.torch.cuda.current_stream(self.device)
        for first, last in marks:
            begin(names["total"])
            begin(names["to_device"])
            placed = move(inputs, self.device)
            self._done()
            end()
            begin(names["forward"])
            first.record(stream)
            result = self._call(placed)
            last.record(stream)
            self._done()
            end()
            begin(names["to_host"])
            result = [one.to("cpu") for one in tensors_of(result)]
            end()
            end()
        for first, last in marks:
            _record.counter(names["gpu"], first.elapsed_time(last) * 1e6)

    def _recording(self, kind, batch, inputs):
        stack = contextlib.ExitStack()
        stack.enter_context(_Recording(self._path(kind, batch), shapes=True, memory=True,
                                       modules=True))
        self._note_model()
        held = byte_count(tensors_of(inputs))
        before = (self.torch.cuda.memory_allocated(self.device) if self.device.type == "cuda" else
                  byte_count([*self.model.parameters(), *self.model.buffers()]) + held)
        note("batch", batch=batch, input_bytes=held, before_bytes=before,
             backward=int(kind == "train"), input=describe(inputs),
             input_source=self._source)
        for path, members in self._calls.known().items():
            note("io", path, **members)
        return stack

    def _record_passes(self, batch, inputs, passes):
        self._say(f"batch {batch}: {passes} passes with operators")
        placed, name = move(inputs, self.device), _name("MODEL_PASS", batch)
        with self.torch.no_grad():
            if self.device.type == "cuda":
                self._calls.add_device_times([self._time_modules(placed) for _ in range(passes)])
            with self._recording("pass", batch, placed):
                for _ in range(passes):
                    _record.begin(name)
                    result = self._call(placed)
                    self._done()
                    _record.end()
                    del result

    def measure_graph(self, batch, inputs, *, warmup=3, runs=20, passes=PASSES):
        """Node by node, of the graph that tracing gives. Returns why there is none, or None."""
        inputs = inputs if isinstance(inputs, (tuple, list, dict)) else (inputs,)
        self._say(f"batch {batch}: tracing the graph")
        placed = move(inputs, self.device)
        known = self._calls.known() if self._calls else {}
        outputs = known.get(type(self.model).__name__, {}).get("out")
        with self.torch.no_grad():
            try:
                graph = Graph(self.model, placed, outputs, self._done)
            except NoGraph as reason:
                with _Recording(self._path("graph", batch)):
                    self._note_model()
                    note("graph", absent=str(reason))
                return str(reason)
            self._say(f"batch {batch}: runs node by node: {runs}")
            self._time_graph(graph, batch, warmup, runs)
            with _Recording(self._path("graph", batch), shapes=True, memory=True):
                self._note_model()
                note("graph", batch=batch, tracer=graph.tracer)
                for number, node in enumerate(graph.nodes):
                    note("node", "", number, **node)
                graph.run(_name("MODEL_GRAPH_PASS", batch), passes)
        return None

    def _time_graph(self, graph, batch, warmup, runs):
        """Marks the nodes only, so that no node's time includes the recording of operators."""
        graph.run("", warmup)  # nothing records
        with _without_collector(), _Recording(self._path("graph-time", batch)):
            self._note_model()
            note("graph", batch=batch, tracer=graph.tracer)
            graph.run(_name("MODEL_GRAPH", batch), runs)

    def _time_modules(self, placed):
        times = DeviceTimes(self.torch, self._calls.paths)
        with self.torch.cuda.device(self.device), times:
            self._call(placed)
        self._done()
        return times.milliseconds()

    def _record_training(self, batch, inputs, passes):
        """Forward and backward, of the sum of all outputs."""
        self._say(f"batch {batch}: {passes} passes forward and backward")
        placed = move(inputs, self.device)
        kept = {one: one.grad for one in self.model.parameters()}
        try:
            with self.torch.enable_grad():
                self._train(batch, placed, False)
                with self._recording("train", batch, placed):
                    for _ in range(passes):
                        self._train(batch, placed, True)
        except Exception as error:
            raise ModelError(f"batch {batch}: the backward pass failed: "
                             f"{describe_error(error)}") from error
        finally:
            for one, grad in kept.items():
                one.grad = grad

    def _train(self, batch, placed, is_marked):
        self.model.zero_grad(set_to_none=True)
        with _range(_name("MODEL_TRAIN", batch)) if is_marked else contextlib.nullcontext():
            results = [one for one in tensors_of(self._call(placed)) if one.requires_grad]
            self._done()
        if not results:
            raise ModelError("no output of the model depends on a parameter")
        with _range(_name("MODEL_BACKWARD", batch)) if is_marked else contextlib.nullcontext():
            self.torch.autograd.backward([one.float().sum() for one in results])
            self._done()
