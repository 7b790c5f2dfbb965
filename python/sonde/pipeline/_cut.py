# SPDX-License-Identifier: Apache-2.0
"""A model as layers that run one after another, each taking what the one before gives.

PipeEdge's models have their layers. Any other is cut where one module ends and the next begins:
its graph (torch.fx; torch.export where that fails) is taken apart in the order in which it runs,
and what crosses a border is what is made before it and used after it, skips included.
"""
import contextlib
import inspect
import logging
import os

import torch
from torch import fx, nn
from torch.utils import _pytree as pytree

from . import _pipeedge_models as pipeedge
from ..model._spec import SpecError
from ..model._structures import describe_error

_CONTAINERS = (nn.Sequential, nn.ModuleList, nn.ModuleDict)


class Layer:
    """`run(*values)` returns the inputs of the next layer as a tuple."""

    def __init__(self, number, name, module, alike=None):
        self.number, self.name, self.module = number, name, module
        self.alike = alike  # equal for layers that do the same with other weights
        self.run = module


class Cut:
    """Layers of a model by number; `count` is how many the whole model has."""

    def __init__(self, name, layers, count, model, names=None):
        """`names`: of the inputs, where the model is given them by name."""
        self.name, self.layers, self.count, self.model, self.names = name, layers, count, model, names
        self._own_weights()

    def _own_weights(self):
        """Parameters of several layers count for the first one, so that the sum is the model's."""
        seen = set()
        for layer in self.layers.values():
            parameters = [one for one in layer.module.parameters() if id(one) not in seen]
            buffers = [one for one in layer.module.buffers() if id(one) not in seen]
            seen.update(map(id, (*parameters, *buffers)))
            layer.parameters, layer.buffers = parameters, buffers

    def run(self, first, last, values):
        for number in range(first, last + 1):
            values = self.layers[number].run(*values)
        return values

    def run_whole(self, values):
        """The model as it is."""
        return self.model(**dict(zip(self.names, values))) if self.names else self.model(*values)

    def dtype(self):
        """The parameters' type, in which the model computes."""
        for layer in self.layers.values():
            for one in (*layer.parameters, *layer.buffers):
                if one.dtype.is_floating_point:
                    return one.dtype
        return torch.get_default_dtype()


# ----------------------------------------------------------------- PipeEdge's models

def cut_pipeedge(name, first, last, paired=False, weights=None):
    size = pipeedge.SIZES[name]
    made = pipeedge.build_layers(size, range(first, last + 1), paired)
    if weights:
        pipeedge.load_weights(size, made, weights)
    count = pipeedge.layer_count(name)
    layers = {number: Layer(number, pipeedge.layer_name(number), module,
                            alike=((number - 1) % 4, number == 1, number == count))
              for number, module in made.items()}
    return Cut(name, layers, count, pipeedge.Model(made.values()))


# ----------------------------------------------------------------------- any model

def _is_block(module):
    """Whether it has submodules, and is not just a container of them."""
    return type(module) not in _CONTAINERS and next(module.children(), None) is not None


def _block_kinds(model):
    """Classes with several instances in a row: the blocks that a network repeats."""
    found = set()
    for part in model.modules():
        kinds = [type(child) for child in part.children() if _is_block(child)]
        row = 2 if isinstance(part, _CONTAINERS) else 3  # an encoder and a decoder are not a row
        found.update(kind for kind in kinds if kinds.count(kind) >= row)
    return found


def find_units(model, cuts=()):
    """Paths of the modules that are never taken apart, in the order of the model.

    With `cuts`: what holds a module named there is opened, and nothing else. Otherwise lists of
    modules are, and what holds blocks that the network repeats; such a block is not.
    """
    kinds, units = _block_kinds(model), []

    def is_opened(path, module):
        if cuts:
            return any(cut.startswith(path + ".") for cut in cuts)
        if type(module) in _CONTAINERS:
            return True
        return type(module) not in kinds and any(type(part) in kinds for part in module.modules())

    def visit(path, module):
        if path and not is_opened(path, module):
            units.append(path)
            return
        for name, child in module.named_children():
            visit(f"{path}.{name}" if path else name, child)

    visit("", model)
    return units


def _check_names(model, names):
    known = inspect.signature(model.forward).parameters
    if any(one.kind is one.VAR_KEYWORD for one in known.values()):
        return
    for name in names:
        if name not in known:
            raise SpecError(f"--input {name}: the model takes no such input; it takes {', '.join(known)}")


def _check_cuts(model, cuts):
    names = [name for name, _ in model.named_modules() if name]
    for cut in cuts:
        if cut not in names:
            some = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
            raise SpecError(f"--cut {cut}: the model has no module of that name; it has {some}")


def _wrapped(model, count, given):
    """A module that takes `count` values and no options, so that only they are symbols."""
    names = [f"value{i}" for i in range(count)]
    passed = [f"{name}={value}" for name, value in zip(given, names)] if given else names
    space = {}  # fx reads the signature of what is made here
    exec(f"def forward(self, {', '.join(names)}): return self.model({', '.join(passed)})", space)
    whole = type("Whole", (nn.Module,), {"forward": space["forward"]})()
    whole.model = model
    return whole.train(model.training)


class _Tracer(fx.Tracer):
    def __init__(self, units):
        super().__init__()
        self.units = {f"model.{path}" if path else "model" for path in units}

    def is_leaf_module(self, module, path):
        return path in self.units or super().is_leaf_module(module, path)


@contextlib.contextmanager
def _quiet():
    """Silences torch.export: its exception repeats what it logs."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stderr(nowhere), \
                contextlib.redirect_stdout(nowhere):
            yield
    finally:
        logging.disable(before)


def _trace(model, units, inputs, name, names):
    """The graph and the module that it belongs to."""
    whole = _wrapped(model, len(inputs), names)
    try:
        return _Tracer(units).trace(whole), whole
    except Exception as error:  # whatever the model's own code does with a symbol
        why = describe_error(error)
    try:
        with torch.no_grad(), _quiet():
            made = torch.export.export(whole, tuple(inputs), strict=False)
        options = ({"check_guards": False}
                   if "check_guards" in inspect.signature(made.module).parameters else {})
        found = made.module(**options)
        return found.graph, found
    except Exception as error:
        raise SpecError(f"{name}: cannot be cut: torch.fx: {why}; torch.export: "
                        f"{describe_error(error)}") from error


def _paths(node):
    """The modules that a node lies in, outermost first."""
    stack = node.meta.get("nn_module_stack") or {}
    found = [entry[0] if isinstance(entry, tuple) else key for key, entry in stack.items()]
    if node.op == "call_module":
        found.append(node.target)
    return [path[len("model."):] for path in found if path.startswith("model.")]


def _begins(node, starts):
    """The first of `starts` that the node lies in; None."""
    return next((path for path in reversed(_paths(node)) if path in starts), None)


def _number_nodes(graph, starts, opening):
    """{node: layer} of what is computed, and the layers' names.

    What comes before the first start is a layer of its own (`opening`), or the first one's.
    """
    places, names, current = {}, [], None
    for node in graph.nodes:
        if node.op in ("placeholder", "get_attr", "output"):
            continue
        start = _begins(node, starts)
        if start is not None and start != current:
            current = start
            names.append(start)
        elif not names and opening:
            names.append("(start)")
        places[node] = max(len(names), 1)
    return places, names or ["model"]


def _borders(graph, places, count):
    """What crosses from layer k to layer k + 1, for k from 0; nodes in their order."""
    borders = [[] for _ in range(count + 1)]
    output = next(node for node in graph.nodes if node.op == "output")
    for node in graph.nodes:
        if node.op in ("get_attr", "output"):
            continue
        made = places.get(node, 0)
        used = max((places.get(user, count) for user in node.users), default=made)
        for place in range(made, min(used, count)):
            borders[place].append(node)
        if made == 0 and node not in borders[0]:
            borders[0].append(node)  # an input that nothing uses is still given
    borders[count] = list(output.all_input_nodes)
    return borders


def _part(root, graph, places, place, takes, gives):
    """The nodes of one layer as a module of its own."""
    made, known = fx.Graph(), {}
    for node in takes:
        known[node] = made.placeholder(node.name)

    def find(node):
        if node not in known and node.op == "get_attr":
            known[node] = made.node_copy(node)
        return known[node]

    for node in graph.nodes:
        if places.get(node) == place:
            known[node] = made.node_copy(node, find)
    made.output(tuple(find(node) for node in gives))
    return fx.GraphModule(root, made)


def _alike(module):
    """A description of what a layer does, with its modules and values named by their order."""
    names, lines = {}, []
    for node in module.graph.nodes:
        names[node] = f"%{len(names)}"
    for node in module.graph.nodes:
        target = node.target
        if node.op == "call_module":
            target = repr(module.get_submodule(node.target))
        elif node.op in ("get_attr", "placeholder", "output"):
            target = node.op
        args = fx.node.map_arg((node.args, node.kwargs), lambda one: names[one])
        lines.append(f"{node.op} {target} {args}")
    shapes = [tuple(one.shape) for one in (*module.parameters(), *module.buffers())]
    return "\n".join(lines), str(shapes)


def cut_model(model, name, inputs, cuts=(), input_names=None):
    """`inputs` are the model's own: their number counts, and torch.export runs on them."""
    if input_names:
        _check_names(model, input_names)
    _check_cuts(model, cuts)
    units = find_units(model, cuts)
    graph, root = _trace(model, units, inputs, name, input_names)
    starts = set(cuts) if cuts else set(units)
    places, names = _number_nodes(graph, starts, opening=bool(cuts))
    for cut in cuts:
        if cut not in names:
            raise SpecError(f"--cut {cut}: the module exists, but computes nothing")
    count = len(names)
    borders = _borders(graph, places, count)
    layers = {}
    for place in range(1, count + 1):
        module = _part(root, graph, places, place, borders[place - 1], borders[place])
        layers[place] = Layer(place, names[place - 1], module, alike=_alike(module))
    return Cut(name, layers, count, model, input_names)


def leaves(values):
    """The tensors of a layer's inputs or outputs."""
    return [one for one in pytree.tree_leaves(values) if torch.is_tensor(one)]
