# SPDX-License-Identifier: Apache-2.0
"""Runs the layers of a model one after another and marks each run; nothing is computed here.

The whole model runs once for each iteration, layer by layer, so that every layer is measured with
the inputs and in the surroundings that it has in the model, and nothing is made twice. What was
marked is put into the results file by the C library, after every layer of the first pass and
after every pass.
"""
import contextlib
import ctypes
import gc
import os

import torch

from .. import _core, _record
from ._cut import leaves

_NAMES = _record.NAMES
_LAYER, WARMUP = _NAMES["LAYER"], _NAMES["LAYER_WARMUP"]
BACKWARD, COPY = _NAMES["LAYER_BACKWARD"], _NAMES["LAYER_COPY"]

class LayerFailed(Exception):
    def __init__(self, layer, error):
        lines = str(error).strip().splitlines() or [""]
        super().__init__(f"layer {layer.number} ({layer.name}) failed: {type(error).__name__}: "
                         f"{lines[0]}")
        self.number = layer.number


# -------------------------------------------------------------------------- what is said

def _tensors(field, tensors, batch):
    """Without the batch dimension, where there is one; the type of each before it."""
    for tensor in tensors:
        shape = list(tensor.shape)
        yield "dtype", str(tensor.dtype)
        yield field, (shape[1:] if shape and shape[0] == batch else shape, tensor.nbytes)


def say_head(environment, **members):
    pairs = [(("key", key), ("value", str(value))) for key, value in environment.items()]
    _record.fact("layers", [*members.items(), *(one for pair in pairs for one in pair)])


def say_layer(layer, takes, gives, batch, rss=None, same_as=None):
    numbers = {"parameter_count": sum(one.numel() for one in layer.parameters),
               "parameter_bytes": sum(one.nbytes for one in layer.parameters),
               "buffer_bytes": sum(one.nbytes for one in layer.buffers),
               "rss_bytes": rss, "same_as": same_as}
    _record.fact("layer", [("name", layer.name),
                           *((key, value) for key, value in numbers.items() if value is not None),
                           *_tensors("in", takes, batch), *_tensors("out", gives, batch)],
                 "", layer.number)


# -------------------------------------------------------------------------- clocks

class HostClock:
    """Layers run when they are called."""

    def begin(self, layer, what=""):
        _record.begin(f"{_LAYER}{layer.number}{what}")

    def end(self, layer, what=""):
        _record.end()

    def finish(self):
        pass


class CudaClock(HostClock):
    """Events on the stream; read after the pass, so that nothing waits between the layers."""

    def __init__(self, device):
        self.device, self.pending, self.spare = device, [], []

    def _event(self):
        event = self.spare.pop() if self.spare else torch.cuda.Event(enable_timing=True)
        event.record(torch.cuda.current_stream(self.device))
        return event

    def begin(self, layer, what=""):
        super().begin(layer, what)
        self.pending.append([layer.number, what, self._event(), None])

    def end(self, layer, what=""):
        self.pending[-1][3] = self._event()
        super().end(layer, what)

    def finish(self):
        torch.cuda.synchronize(self.device)
        words = {"": _NAMES["LAYER_DEVICE"], BACKWARD: _NAMES["LAYER_DEVICE_BACKWARD"],
                 COPY: _NAMES["LAYER_DEVICE_COPY"]}
        for number, what, start, stop in self.pending:
            if what in words and stop is not None:
                _record.counter(f"{_LAYER}{number}{words[what]}", start.elapsed_time(stop) * 1e6)
            self.spare += [one for one in (start, stop) if one is not None]
        self.pending.clear()


# -------------------------------------------------------------------------- passes

class Runner:
    """The layers `first` to `last` of a cut, those of `wanted` marked."""

    def __init__(self, cut, values, wanted, batch, device, repeat_once=False, rss=None):
        self.cut, self.values, self.wanted = cut, values, wanted
        self.first, self.last = min(wanted), max(wanted)
        self.batch, self.device = batch, device
        self.repeat_once, self.rss = repeat_once, rss or {}
        self.clock = CudaClock(device) if device.type == "cuda" else HostClock()
        self.said, self.same, self.seen = set(), {}, {}

    def _like(self, layer, takes):
        """An earlier layer that does the same with tensors of the same shapes; None."""
        if not self.repeat_once or layer.alike is None:
            return None
        if layer.number in self.same:
            return self.same[layer.number]
        key = (layer.alike, tuple((one.dtype, tuple(one.shape)) for one in takes))
        like = self.seen.setdefault(key, layer.number)
        if like == layer.number or like not in self.wanted:
            return None
        self.same[layer.number] = like
        return like

    def inputs(self):
        """A copy: a layer may work in place on what it takes."""
        return tuple(one.clone() if torch.is_tensor(one) else one for one in self.values)

    def _describe(self, layer, takes, values, like):
        if layer.number in self.said or layer.number not in self.wanted:
            return
        say_layer(layer, takes, leaves(values), self.batch, self.rss.get(layer.number), like)
        self.said.add(layer.number)

    def run_pass(self, what="", after_layer=None):
        """Every layer once; LayerFailed when one of them fails."""
        values, given = self.inputs(), {}
        repeated = self.repeat_once
        for number in range(self.first, self.last + 1):
            layer = self.cut.layers[number]
            takes = leaves(values) if repeated or number not in self.said else None
            like = self._like(layer, takes) if repeated else None
            if like is not None:
                values = given[like]
                self._describe(layer, takes, values, like)
                continue
            marked = number in self.wanted
            try:
                if marked:
                    self.clock.begin(layer, what)
                values = layer.run(*values)  # if it fails its range stays open: no sample
                if marked:
                    self.clock.end(layer, what)
                self._describe(layer, takes, values, None)
            except Exception as error:  # the model's own, whatever it is
                raise LayerFailed(layer, error) from error
            if repeated:
                given[number] = values
            if after_layer:
                after_layer()
        self.clock.finish()
        return values

    def measure_backward(self):
        """One pass forward that keeps its graph, and one back, a layer at a time."""
        values, kept = self.values, []
        with torch.enable_grad():
            for number in range(self.first, self.last + 1):
                layer = self.cut.layers[number]
                leaf = tuple(_as_leaf(one) for one in values)
                # A copy: a layer may work in place on what it takes, but not on a leaf.
                fed = tuple(one.clone() if _has_gradient(one) else one for one in leaf)
                try:
                    values = layer.run(*fed)
                except Exception as error:
                    raise LayerFailed(layer, error) from error
                kept.append((layer, leaf, values))
                values = tuple(values)
            gradients = None
            while kept:
                layer, leaf, values = kept.pop()
                pairs = _pair_gradients(values, gradients)
                if pairs:
                    self._back(layer, pairs)
                gradients = [one.grad if torch.is_tensor(one) else None for one in leaf]
        self.clock.finish()
        self.cut.model.zero_grad(set_to_none=True)

    def _back(self, layer, pairs):
        marked = layer.number in self.wanted
        try:
            if marked:
                self.clock.begin(layer, BACKWARD)
            torch.autograd.backward([one for one, _ in pairs], [grad for _, grad in pairs])
            if marked:
                self.clock.end(layer, BACKWARD)
        except Exception as error:
            raise LayerFailed(layer, error) from error

    def measure_copies(self, iterations):
        """What a layer takes from the host to the device, and what it gives back."""
        values = self.inputs()
        for number in range(self.first, self.last + 1):
            layer = self.cut.layers[number]
            takes = [one.cpu() for one in leaves(values)]
            values = layer.run(*values)
            for _ in range(iterations if number in self.wanted else 0):
                self.clock.begin(layer, COPY)
                for one in takes:
                    one.to(self.device)
                for one in leaves(values):
                    one.cpu()
                self.clock.end(layer, COPY)
            self.clock.finish()


def _has_gradient(value):
    return torch.is_tensor(value) and value.requires_grad


def _as_leaf(value):
    if not torch.is_tensor(value):
        return value
    leaf = value.detach()
    return leaf.requires_grad_() if leaf.dtype.is_floating_point else leaf


def _pair_gradients(values, gradients):
    """Outputs that have a gradient, each with one of its shape."""
    pairs = []
    for place, value in enumerate(values):
        for one in leaves((value,)):
            if one.requires_grad:
                known = gradients[place] if gradients and one is value else None
                pairs.append((one, torch.ones_like(one) if known is None else known))
    return pairs


# -------------------------------------------------------------------------- saving

class Saver:
    """Puts what the trace has into the results file."""

    def __init__(self, trace, results):
        self.trace, self.results = trace, results

    def save(self):
        return _core.layers_save(self.trace, self.results)


@contextlib.contextmanager
def steady():
    """No garbage collection in the middle of a layer."""
    on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()


# ------------------------------------------------------------------------ resident memory

def _resident_bytes():
    """Less what is mapped from files: a library's code that is paged in meanwhile is not the layer's."""
    with open("/proc/self/statm", "rb") as file:
        _, resident, mapped, *_ = map(int, file.read().split())
    return (resident - mapped) * os.sysconf("SC_PAGE_SIZE")


def _grow_by(layer):
    """How much larger the process gets by weights of the layer's sizes, in the host's memory."""
    torch.set_num_threads(1)  # a forked process has no threads of the pool
    held = [(one.shape, one.dtype) for one in (*layer.parameters, *layer.buffers)]
    for shape, dtype in held[:1]:  # once before: the code that fills them is paged in
        torch.zeros(shape, dtype=dtype).fill_(1)
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)  # returns free memory, so that the copy cannot reuse it
    before = _resident_bytes()
    made = [torch.empty(shape, dtype=dtype).fill_(1) for shape, dtype in held]
    grown = _resident_bytes() - before
    del made
    return max(grown, 0)


def measure_resident(layer):
    """In a process of its own; None if that fails."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.write(write_end, str(_grow_by(layer)).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as file:
        said = file.read()
    os.waitpid(child, 0)
    return int(said) if said else None
