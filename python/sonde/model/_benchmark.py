# SPDX-License-Identifier: Apache-2.0
"""sonde.benchmark, sonde.summary and sonde.graph: what a model costs, from Python.

    >>> result = sonde.benchmark(model, torch.randn(8, 3, 224, 224), num_runs=100)
    >>> result["timing"]["batch_size_8"]["on_device_inference"]["metrics"]
    >>> result.print(); result.save("resnet.yml")
    >>> sonde.summary(model, torch.randn(1, 3, 224, 224)).print()
    >>> sonde.graph(model, torch.randn(1, 3, 224, 224)).print(sort="mean_ns")

All run the model, recorded; the numbers, tables and files are libsonde's.
"""
import collections.abc
import contextlib
import json
import os
import shutil
import tempfile

from .. import _scratch
from ._bench import Bench, ModelError
from .._core import Trace
from ._structures import move, tensors_of

_EXPORTS = {".yml": "benchmark", ".yaml": "benchmark", ".json": "benchmark-json"}


class _Measured:
    """The traces of a benchmark, in a folder that goes with the last object that reads it."""

    def __init__(self):
        self._folder = _scratch.folder_for(self, "sonde-model-")

    def _passes(self):
        """The passes of the largest batch; those with a backward pass, if there are any."""
        sizes = {}
        for name in os.listdir(self._folder):
            kind, _, number = name.removesuffix(".sonde").partition("-")
            if kind in ("pass", "train"):
                sizes[int(number), kind] = name
        return Trace(os.path.join(self._folder, sizes[max(sizes)]))

    def report(self, view="model", **options):
        """One view as text, or as JSON or CSV: model, modules, depths, ops, memory, .."""
        whole = view in ("model", "graph")
        with Trace(self._folder) if whole else self._passes() as trace:
            return trace.report(view=view, **options)

    def save_trace(self, folder):
        """Keeps the traces themselves, in a new folder."""
        shutil.copytree(self._folder, folder)


class Benchmark(_Measured, collections.abc.Mapping):
    """pytorch-benchmark's mapping: device, machine_info, params, flops, memory, timing, energy."""

    _members = None

    def _all(self):
        if self._members is None:
            with tempfile.TemporaryDirectory(prefix="sonde-") as folder:
                path = os.path.join(folder, "benchmark.json")
                with Trace(self._folder) as trace:
                    trace.export(path, to="benchmark-json")
                with open(path, encoding="utf-8", errors="surrogateescape") as file:
                    self._members = json.load(file)
        return self._members

    def __getitem__(self, key):
        return self._all()[key]

    def __iter__(self):
        return iter(self._all())

    def __len__(self):
        return len(self._all())

    def __repr__(self):
        return f"<sonde.Benchmark of {self['model']['name']}>"

    def print(self, level="model", rows=20):
        """level: model, layer, op, or several with commas."""
        views = {"model": ["model"], "layer": ["modules", "depths"], "op": ["ops"]}
        for one in level.split(","):
            if one not in views:
                raise ValueError(f"sonde.benchmark: {one!r} is not one of model, layer, op")
            for view in views[one]:
                sort = "self_cpu_time_total" if view == "ops" else None
                print(self.report(view, sort=sort, rows=rows if view == "ops" else -1))

    def save(self, path):
        """YAML (.yml), JSON (.json)."""
        ending = os.path.splitext(os.fspath(path))[1]
        if ending not in _EXPORTS:
            raise ValueError(f"sonde.benchmark: unknown file extension of {os.fspath(path)!r}; "
                             f"extensions: {', '.join(_EXPORTS)}")
        with Trace(self._folder) as trace:
            trace.export(path, to=_EXPORTS[ending])


class Summary(_Measured):
    """The tree of modules, as torchinfo and flops-profiler show it."""

    def __str__(self):
        return self.report("modules", rows=-1)

    __repr__ = __str__

    def print(self):
        print(self)

    def print_model_profile(self):
        """flops-profiler's name: the tree, and what each class costs at each depth."""
        print(self)
        print(self.report("depths", rows=-1))

    def rows(self):
        """A dict a module, depth first; times in nanoseconds, memory in bytes."""
        return json.loads(self.report("modules", rows=-1, format="json"))["rows"]


class Graph(_Measured):
    """What each node of a model's graph costs."""

    def __str__(self):
        return self.report("graph", rows=-1)

    __repr__ = __str__

    def print(self, sort=None):
        """sort: a key of a row, the greatest first (`mean_ns`, `flops`, ..)."""
        print(self.report("graph", rows=-1, sort=sort))

    def rows(self):
        """A dict a node, in the order in which they run; times in nanoseconds, memory in bytes."""
        return json.loads(self.report("graph", rows=-1, format="json"))["rows"]


@contextlib.contextmanager
def _evaluating(model):
    """Restores the mode of every module afterwards: parts of a model are often frozen."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, was_training in modes:
            module.training = was_training


def _batch_of(sample, dim=0):
    """The size of that dimension of the first tensor that has it; None: none has."""
    return next((one.shape[dim] for one in tensors_of(sample) if one.dim() > dim), None)


def _with_batch(sample, batch, size, dim=0):
    """The same with another batch size: its rows, repeated."""
    import torch
    if isinstance(sample, torch.Tensor):
        if sample.dim() <= dim or sample.shape[dim] != batch:
            return sample
        rows = torch.arange(size) % batch
        return sample.index_select(dim, rows.to(sample.device))
    if isinstance(sample, dict):
        return {key: _with_batch(one, batch, size, dim) for key, one in sample.items()}
    if isinstance(sample, (tuple, list)):
        return tuple(_with_batch(one, batch, size, dim) for one in sample)
    return sample


def _find_batch_dim(model, sample, is_certain, device):
    """Which dimension is the batch: as the model says, or the first. None: there is none.

    Without certainty the model runs once with a batch of 1: with one of a graph's nodes, or of a picture's
    channels, it fails, or does not return one.
    """
    import torch
    if getattr(model, "batch_first", None) is False:  # torch's recurrent networks, attention, transformers
        return 1 if any(one.dim() > 2 for one in tensors_of(sample)) else None
    batch = _batch_of(sample)
    if is_certain:
        return 0
    if not batch or batch == 1:
        return 0 if batch else None
    with torch.no_grad():
        whole = _outputs(model, sample, device)  # if this fails, the benchmark says why
        if whole is None:
            return 0
        other = _outputs(model, _with_batch(sample, batch, 1), device)
    follows = other is not None and len(whole) == len(other) and all(
        one.dim() == two.dim() and (one.dim() == 0 or one.shape[0] != batch or two.shape[0] == 1)
        for one, two in zip(whole, other))
    return 0 if follows else None


def _outputs(model, sample, device):
    """The tensors that a run returns; None: it fails."""
    inputs = move(sample if isinstance(sample, (tuple, list, dict)) else (sample,), device)
    try:
        return tensors_of(model(**inputs) if isinstance(inputs, dict) else model(*inputs))
    except Exception:  # the model's own, whatever it is
        return None


def benchmark(model, sample, num_runs=100, *, batch_size=None, batch_sizes=None, batch_dim="auto", warmup=None,
              passes=3, backward=False, device=None, measure_peak=True, print_fn=None):
    """Latency, throughput, FLOPs and memory of `model` at batch size 1 and at that of `sample`.

    `sample`: a tensor, a tuple of them, or a dict for keyword arguments. `batch_sizes` gives other
    sizes than those two. `batch_dim` is the sample's dimension that is the batch; None: it has none, and is
    measured as it is, as batch size 1. Without it: the first, unless the model does not run with another size
    of it; the second of torch's modules that say `batch_first=False`. The model is not changed: mode, gradients
    and device stay as they are.
    """
    if batch_dim not in ("auto", None) and (not isinstance(batch_dim, int) or batch_dim < 0):
        raise ValueError(f"sonde.benchmark: batch_dim must be an integer >= 0, or None, got {batch_dim!r}")
    result = Benchmark()
    bench = Bench(model, result._folder, device=device, say=print_fn)
    if batch_dim == "auto":
        with _evaluating(model):
            batch_dim = _find_batch_dim(model, sample, batch_size or batch_sizes is not None, bench.device)
    batch = batch_size or (1 if batch_dim is None else _batch_of(sample, batch_dim))
    if batch is None:
        raise ValueError(f"sonde.benchmark: the sample has no tensor with a dimension {batch_dim}; "
                         "batch_dim=None measures it as it is")
    sizes = sorted(set(batch_sizes if batch_sizes is not None else (1, batch)))
    if batch_dim is None and sizes != [1]:
        raise ValueError(f"sonde.benchmark: batch_sizes {sizes}, but the sample has no batch")
    if not sizes or any(not isinstance(one, int) or one < 1 for one in sizes):
        raise ValueError(f"sonde.benchmark: batch sizes must be integers >= 1, got {sizes}")
    if num_runs < 1:
        raise ValueError(f"sonde.benchmark: num_runs must be >= 1, got {num_runs}")
    with _evaluating(model):
        for size in sizes:
            inputs = sample if size == batch else _with_batch(sample, batch, size, batch_dim)
            bench.measure(size, inputs, runs=num_runs, passes=passes, backward=backward,
                          warmup=max(1, num_runs // 10) if warmup is None else warmup)
        if measure_peak:
            bench.measure_peak()
    return result


def graph(model, inputs, *, num_runs=20, warmup=3, passes=1, device=None):
    """Kind, target, shapes, time, FLOPs, bytes and memory of each node of the model's graph.

    Nodes are calls of modules, of functions (`x + y`, `torch.flatten`) and of methods. torch.fx
    traces the model, or torch.export; where neither can, a RuntimeError says why.
    """
    if num_runs < 1 or passes < 1:
        raise ValueError("sonde.graph: num_runs and passes must be >= 1, got "
                         f"{min(num_runs, passes)}")
    result = Graph()
    bench = Bench(model, result._folder, device=device)
    with _evaluating(model):
        batch = _batch_of(inputs) or 1
        bench.measure(batch, inputs, runs=0, passes=0)
        reason = bench.measure_graph(batch, inputs, warmup=warmup, runs=num_runs, passes=passes)
    if reason:
        raise ModelError(f"sonde.graph: {reason}")
    return result


def summary(model, inputs, *, backward=False, passes=1, device=None):
    """Shapes, parameters, MACs, FLOPs, time and memory of each module, for one input."""
    result = Summary()
    bench = Bench(model, result._folder, device=device)
    with _evaluating(model):
        bench.measure(_batch_of(inputs) or 1, inputs, runs=0, passes=passes, backward=backward)
    return result
