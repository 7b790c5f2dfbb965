# SPDX-License-Identifier: Apache-2.0
"""The graph of a model: traced by torch.fx or torch.export, run node by node with each one marked.

Nothing is computed here: ranges and what each node is go into traces (docs/MODEL.md names them),
and src/model/network/network_graph.c makes the numbers.
"""
import contextlib
import inspect
import io

from .. import _record
from ._structures import byte_count, describe_error, shapes, tensors_of


class NoGraph(RuntimeError):
    """The model cannot be traced; the message has the reason of each tracer."""


# ---------------------------------------------------------------------------- tracing

def _unused_defaults(model, inputs):
    """Arguments that are not given keep their defaults while torch.fx traces, instead of a Proxy."""
    signature = inspect.signature(model.forward)
    given = (signature.bind(**inputs) if isinstance(inputs, dict) else
             signature.bind(*inputs)).arguments
    return {name: one.default for name, one in signature.parameters.items()
            if name not in given and one.default is not inspect.Parameter.empty}


def _erase(node):
    for user in list(node.users):
        _erase(user)
    node.graph.erase_node(node)


def _by_fx(model, inputs):
    from torch import fx
    defaults = _unused_defaults(model, inputs)
    traced = fx.symbolic_trace(model, concrete_args=defaults or None)
    names = list(inspect.signature(model.forward).parameters)
    given = inputs if isinstance(inputs, dict) else dict(zip(names, inputs))
    arguments = []
    for name, node in zip(names, [one for one in traced.graph.nodes if one.op == "placeholder"]):
        if name in defaults:
            _erase(node)  # with torch.fx's checks that it is the default still
        else:
            arguments.append(given[name])
    return traced, arguments


def _by_export(model, inputs):
    from torch import export
    args, kwargs = ((), inputs) if isinstance(inputs, dict) else (tuple(inputs), None)
    # Where it fails, it prints what it has traced so far.
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        traced = export.export(model, args, kwargs, strict=False).module()
    return traced, [*args, *(kwargs or {}).values()]


_TRACERS = {"torch.fx": _by_fx, "torch.export": _by_export}


# ---------------------------------------------------------------------------- running

def _interpreter(traced, around):
    """An fx.Interpreter whose nodes run in `around(interpreter, node, run)`."""
    from torch import fx

    class Marked(fx.Interpreter):
        def run_node(self, node):
            return around(self, node, super().run_node)
    return Marked(traced)


def _target_words(node):
    target = node.target
    if isinstance(target, str):
        return target
    try:
        return node._pretty_print_target(target)
    except Exception:  # torch's own, private
        return getattr(target, "__name__", str(target))


def _own_tensors(node, traced):
    """A module's parameters and buffers."""
    if node.op != "call_module":
        return "", []
    module = traced.get_submodule(node.target)
    return type(module).__name__, [*module.parameters(), *module.buffers()]


class Graph:
    """The model traced, for inputs that are on its device."""

    def __init__(self, model, inputs, outputs, done):
        """`outputs`: the shapes that the model itself gives."""
        self._done = done
        self._names, self.nodes = {}, []
        reasons = []
        for self.tracer, trace in _TRACERS.items():
            try:
                self._traced, self._arguments = trace(model, inputs)
                given = self._learn()
                if outputs is not None and given != outputs:
                    raise NoGraph(f"the graph gives {given} where the model gives {outputs}")
                return
            except Exception as error:  # whatever tracing the user's code leads to
                reasons.append(f"{self.tracer}: {describe_error(error)}")
        raise NoGraph("The model cannot be traced, so there is no graph of it. "
                      + "; ".join(reasons))

    def _learn(self):
        """The first run: inputs and outputs of each node. Returns the shapes of the outputs."""
        self._names, self.nodes = {}, []

        def around(interpreter, node, run):
            args, kwargs = interpreter.fetch_args_kwargs_from_env(node)
            result = run(node)
            module, own = _own_tensors(node, self._traced)
            self._names[node] = f"{_record.NAMES['MODEL_NODE']}{len(self.nodes)}"
            self.nodes.append({
                "name": node.name, "kind": node.op, "target": _target_words(node),
                "module": module, "in": shapes([args, kwargs]), "out": shapes(result),
                "in_bytes": byte_count(tensors_of([args, kwargs])),
                "out_bytes": byte_count(tensors_of(result)), "parameter_bytes": byte_count(own)})
            return result
        return shapes(_interpreter(self._traced, around).run(*self._arguments))

    def run(self, name, times):
        """So many runs, each in a range of this name, each node in its own."""
        begin, end, names, done = _record.begin, _record.end, self._names, self._done

        def around(interpreter, node, run):
            begin(names[node])
            try:
                result = run(node)
                done()
                return result
            finally:
                end()
        interpreter = _interpreter(self._traced, around)
        for _ in range(times):
            begin(name)
            try:
                interpreter.run(*self._arguments)
            finally:
                end()
