# SPDX-License-Identifier: Apache-2.0
"""Calls of a model's modules, seen by hooks: their inputs and outputs, and their time on a GPU."""
from ._structures import byte_count, shapes, tensors_of

_DEVICE_PASSES = 128  # whose times on the GPU fit into a note, with the shapes


class _Hooked:
    """While it is entered, every call of a module begins with _enter() and ends with _leave()."""

    def __enter__(self):
        from torch.nn.modules import module as hooks
        self._handles = [hooks.register_module_forward_pre_hook(self._enter),
                         hooks.register_module_forward_hook(self._leave, with_kwargs=True)]
        return self

    def __exit__(self, kind, value, traceback):
        for handle in self._handles:
            handle.remove()


class Calls(_Hooked):
    """Which module runs, and the inputs and outputs of each."""

    def __init__(self, model):
        root = type(model).__name__
        self.paths = {}
        self._own = {}  # parameters of each module itself; a shared one is the first module's
        counted = set()
        for name, module in model.named_modules():
            path = self.paths[id(module)] = f"{root}.{name}" if name else root
            own = [one for one in module.parameters(recurse=False) if id(one) not in counted]
            counted.update(map(id, own))
            self._own[path] = {"parameters": sum(one.numel() for one in own),
                               "parameter_bytes": byte_count(own)}
        self._open = []
        self._seen = {}

    def _enter(self, module, args):
        self._open.append(module)

    def _leave(self, module, args, kwargs, output):
        if self._open:
            self._open.pop()
        path = self.paths.get(id(module))
        if path and path not in self._seen:
            self._seen[path] = {"in": shapes([args, kwargs]), "out": shapes(output),
                                "out_bytes": byte_count(tensors_of(output))}

    def add_device_times(self, passes):
        """Time on the GPU of each module in each pass, between two events on its stream."""
        for one in passes[:_DEVICE_PASSES]:
            for path, milliseconds in one.items():
                self._own[path].setdefault("device_ns", []).append(round(milliseconds * 1e6))

    def where(self):
        """The module in which it failed."""
        known = [module for module in self._open if id(module) in self.paths]
        if not known:
            return ""
        module = known[-1]
        return f"in {self.paths[id(module)]} ({type(module).__name__})"

    def known(self):
        """By path, what is known of each module."""
        return {path: {**own, **self._seen.get(path, {})} for path, own in self._own.items()}


class DeviceTimes(_Hooked):
    """One pass with an event on the GPU's stream before and after each call, without waiting."""

    def __init__(self, torch, paths):
        self._torch = torch
        self._paths = paths
        self._open, self._pairs = [], []

    def _event(self):
        event = self._torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def _enter(self, module, args):
        self._open.append(self._event())

    def _leave(self, module, args, kwargs, output):
        begun = self._open.pop()
        path = self._paths.get(id(module))
        if path:
            self._pairs.append((path, begun, self._event()))

    def milliseconds(self):
        """By path; the device is done by then."""
        total = {}
        for path, begun, ended in self._pairs:
            total[path] = total.get(path, 0.0) + begun.elapsed_time(ended)
        return total
