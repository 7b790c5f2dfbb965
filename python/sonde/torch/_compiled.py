# SPDX-License-Identifier: Apache-2.0
"""Which module each kernel of compiled code came from, noted when inductor makes or loads the code.

Inductor writes a Python function that calls the kernels of a graph, line by line, and knows which nodes of the
graph each kernel is made of; the nodes know the modules that they were traced in (`nn_module_stack`). While
modules are recorded, that is noted with the compiled graph, so that torch's cache on disk keeps it, and handed
to the probe: a line of generated code has a module. A kernel that several modules are fused in is their nearest
common ancestor's. What was compiled before is not known.
"""
import ast
import functools
import re
import sys

from .. import _record

_NOTE = "sonde_modules"  # of a CompiledFxGraph: lines as torch_compiled() takes them, and whether backward
_KERNELS = "sonde_kernels"  # of a GraphLowering: (name of the kernel, path within, path alone), as they are called
_TRACER = "set_kernel_post_grad_provenance_tracing"
_CPP = re.compile(r"^(\w+) = async_compile\.cpp\w*\(", re.M)
_INLINED = "L['fn']"  # of torch._dynamo.external_utils.wrap_inline: a module of torch.nn itself was compiled
_ROOT = re.compile(r"^[LG]\['[^']*'\](?:\[[^\]]*\])*")

_watch = None  # while somebody wants to know
_owners = set()
_codes_known = []  # arguments of torch_compiled(), for the life of the process: a later profile runs the same code
_is_recorded = False
_has_kernels = False  # C++ kernels are ranges


def watch(owner):
    """Begins to note what inductor compiles, on behalf of `owner`."""
    global _watch
    _owners.add(owner)
    if _watch is None:
        _watch = _Watch()
        _watch.put_on()


def unwatch(owner):
    global _watch
    _owners.discard(owner)
    if not _owners and _watch is not None:
        _watch.take_off()
        _watch = None


def record(wanted, kernels=False):
    """With the probe on: its ranges have the modules of compiled code; `kernels`: C++ kernels are ranges."""
    global _has_kernels, _is_recorded
    _is_recorded, _has_kernels = wanted, wanted and kernels
    if wanted:
        watch(record)
        for code in _codes_known:
            _record.torch_compiled(*code)
        if kernels:
            _watch.see_loaded()
    elif _watch is not None:
        _watch.put_kernels_back()
        unwatch(record)


# ------------------------------------------------------------------- modules of a kernel

def _stack(node):
    """(path, class) of the modules that a node of a graph was traced in; None: nobody knows."""
    meta = node.meta
    stack = meta.get("nn_module_stack") or meta.get("fwd_nn_module_stack")
    if stack:
        return [(value[0], value[1]) for value in stack.values()]
    return [] if "seq_nr" in meta else None  # a pass of inductor's may have made it


def _class_name(cls):
    return (cls if isinstance(cls, str) else cls.__name__).rsplit(".", 1)[-1]


def _paths(stack):
    """A module's path below the one that runs the code, and its path where none does; as lists of names.

    "L['self'].one.act": `self` is the module that runs. "G['net'].one": the graph itself calls `net`, of which
    then only the class is known; unless it is torch's name of what an OptimizedModule runs.
    """
    if not stack:
        return [], []
    outer, inner = stack[0][0], stack[-1][0]
    root = _ROOT.match(inner)
    if root is None or not outer.startswith(root.group()):
        return [], []
    alone = [_class_name(stack[0][1]), *inner[len(outer):].strip(".").split(".")]
    below = inner[root.end():].strip(".").split(".")
    within = below if outer != root.group() else ["_orig_mod", *below] if outer == _INLINED else alone
    return [name for name in within if name], [name for name in alone if name]


def _common(lists):
    first = min(lists, key=len)
    for i, name in enumerate(first):
        if any(other[i] != name for other in lists):
            return first[:i]
    return first


def _origins(schedule):
    """The nodes that a kernel is made of."""
    exact = getattr(schedule, "origin_node", None)
    if exact is not None and _stack(exact) is not None:
        return [exact]
    from torch._inductor.utils import aggregate_origins
    return list(aggregate_origins(schedule))


def _note_kernel(schedule, name):
    from torch._inductor.virtualized import V
    graph = V.graph
    while getattr(graph, "parent", None) is not None:
        graph = graph.parent
    found = [_paths(stack) for stack in map(_stack, _origins(schedule)) if stack is not None]
    if found:
        entry = (name, ".".join(_common([one[0] for one in found])), ".".join(_common([one[1] for one in found])))
        graph.__dict__.setdefault(_KERNELS, []).append(entry)


# ------------------------------------------------------------------- lines of generated code

def _calls(source):
    """Calls in generated code, in order: what is called, first and last line."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute)):
            found.append((node.lineno, node.end_lineno, ast.unparse(node.func)))
    return sorted(found)


def _lines(source, kernels):
    """(first, last, within, alone) of the calls of kernels in the source.

    The calls of a kernel come in the order in which they were written. If there are more or fewer of them, only
    those of a kernel that always has the same module are known.
    """
    wanted, written, lines = {}, {}, []
    for name, within, alone in kernels:
        wanted.setdefault(name, []).append((within, alone))
    for first, last, name in _calls(source):
        name = name if name in wanted else name.removesuffix(".run")  # as Triton's kernels are called
        if name in wanted:
            written.setdefault(name, []).append((first, last))
    for name, places in written.items():
        paths = wanted[name]
        if len(paths) != len(places):
            paths = paths[:1] * len(places) if len(set(paths)) == 1 else []
        lines += [place + path for place, path in zip(places, paths)]
    return sorted(lines)


def _codes(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, type(code)):
            yield from _codes(constant)


def _space_of(graph):
    """The globals of the generated module that a compiled graph calls, or None."""
    call = getattr(graph, "current_callable", None)
    return getattr(getattr(call, "__func__", call), "__globals__", None)


# --------------------------------------------------------------------------------- hooks

def _quietly(function):
    """What fails here fails for us alone: a program is compiled as it would be."""
    @functools.wraps(function)
    def call(*args):
        try:
            return function(*args)
        except Exception:
            return None
    return call


class _Watch:
    """inductor's functions, replaced while modules are recorded. Whatever of them this torch lacks stays unknown."""

    def __init__(self):
        import torch
        self.torch = torch
        self.replaced = []  # (object, name, its own value)
        self.kernels = []  # (globals of a generated module, name, kernel)

    def put_on(self):
        if "torch._inductor.output_code" in sys.modules:
            self._hook()
            return
        wrapper = getattr(self.torch, "_TorchCompileInductorWrapper", None)  # which imports inductor
        if wrapper is not None:
            own = wrapper.__call__

            @functools.wraps(own)
            def compiles(backend, *args, **kwargs):
                self._hook()
                return own(backend, *args, **kwargs)
            self._replace(wrapper, "__call__", compiles)

    def take_off(self):
        for owner, name, value in reversed(self.replaced):
            setattr(owner, name, value)
        if any(name == _TRACER for _, name, _ in self.replaced):
            self._trace_with(next(value for _, name, value in self.replaced if name == _TRACER))
        self.replaced = []

    @_quietly
    def see_loaded(self):
        """The kernels of all generated modules become ranges."""
        codecache = sys.modules.get("torch._inductor.codecache")
        for module in list(codecache.PyCodeCache.modules) if codecache else ():
            self._see_kernels(vars(module))

    def put_kernels_back(self):
        for space, name, kernel in self.kernels:
            space[name] = kernel
        self.kernels = []

    def _replace(self, owner, name, value):
        self.replaced.append((owner, name, owner.__dict__[name]))
        setattr(owner, name, value)

    def _trace_with(self, function):
        """Some of inductor's modules have imported the function by name."""
        for module in list(sys.modules.values()):
            if getattr(module, "__name__", "").startswith("torch._inductor.") and _TRACER in vars(module):
                setattr(module, _TRACER, function)

    @_quietly
    def _hook(self):
        if any(name == _TRACER for _, name, _ in self.replaced):
            return
        from torch._inductor import codecache, compile_fx, debug, output_code  # noqa: F401
        if not hasattr(debug, _TRACER):  # before torch 2.7
            return
        self._hook_kernels(debug)
        self._hook_graphs(output_code.CompiledFxGraph)
        self._hook_keys(codecache.FxGraphHashDetails)

    def _hook_kernels(self, debug):
        own, note = getattr(debug, _TRACER), _quietly(_note_kernel)

        @functools.wraps(own)
        def trace(schedule, name, *args, **kwargs):
            note(schedule, name)
            return own(schedule, name, *args, **kwargs)
        self._replace(debug, _TRACER, trace)
        self._trace_with(trace)

    def _hook_graphs(self, cls):
        make, load = cls.__init__, cls.post_compile

        @functools.wraps(make)
        def init(graph, *args, **kwargs):
            make(graph, *args, **kwargs)
            self._note_graph(graph, args, kwargs)

        @functools.wraps(load)
        def post_compile(graph, *args, **kwargs):
            self._see_graph(graph)
            return load(graph, *args, **kwargs)
        self._replace(cls, "__init__", init)
        self._replace(cls, "post_compile", post_compile)

    def _hook_keys(self, cls):
        """Graphs in torch's cache on disk that have no note, or that of a model with other names, are others."""
        make = cls.__init__

        @functools.wraps(make)
        def init(details, gm, *args, **kwargs):
            make(details, gm, *args, **kwargs)
            self._add_key(details, gm)
        self._replace(cls, "__init__", init)

    @_quietly
    def _add_key(self, details, gm):
        stacks = [_paths(_stack(node) or []) for node in gm.graph.nodes]
        details.sonde_modules = str([".".join(within) + "|" + ".".join(alone) for within, alone in stacks])

    @_quietly
    def _note_graph(self, graph, args, kwargs):
        lowered = next((one for one in (*args, *kwargs.values()) if _KERNELS in getattr(one, "__dict__", {})), None)
        if lowered is not None and isinstance(graph.source_code, str):
            lines = _lines(graph.source_code, lowered.__dict__[_KERNELS])
            graph.__dict__[_NOTE] = (bool(getattr(lowered, "is_backward", False)), lines)

    @_quietly
    def _see_graph(self, graph):
        space = _space_of(graph)
        is_backward, lines = graph.__dict__.get(_NOTE, (False, None))
        if space is None or lines is None:
            return
        if _has_kernels:
            self._see_kernels(space)
        for value in list(space.values()):
            for function in (value, *vars(value).values()) if isinstance(value, type) else (value,):
                code = getattr(function, "__code__", None)
                if code is not None and getattr(function, "__globals__", None) is space:
                    self._know([(one, is_backward, lines) for one in _codes(code)])

    def _know(self, codes):
        _codes_known.extend(codes)
        for code in codes if _is_recorded else ():
            _record.torch_compiled(*code)

    @_quietly
    def _see_kernels(self, space):
        """The C++ kernels of a generated module become ranges."""
        with open(space["__file__"], encoding="utf-8") as file:
            names = _CPP.findall(file.read())
        for name in names:
            kernel = space.get(name)
            made = _record.torch_kernel(kernel, name) if callable(kernel) else None
            if made is not None and type(kernel) is not type(made):
                self.kernels.append((space, name, kernel))
                space[name] = made
