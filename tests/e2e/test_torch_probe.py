# SPDX-License-Identifier: Apache-2.0
"""PyTorch's probe against torch.profiler, both on in one run and apart, and what must hold besides."""
import contextlib
import gc
import itertools
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
import weakref

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: nothing to probe")
from torch import nn  # noqa: E402

sonde = pytest.importorskip("sonde")
_record = pytest.importorskip("sonde._record", reason="sonde was built without its recorder")
from sonde.torch import _attach as _torch_probe  # noqa: E402

import warm_torch  # noqa: E402
from cli_tools import SONDE, sonde as run_sonde  # noqa: E402
from torch_tools import TORCH  # noqa: E402

try:
    _torch_probe.library()
except sonde.Error as error:
    pytest.skip(f"no probe for this torch: {error}", allow_module_level=True)

pytestmark = pytest.mark.skipif(not SONDE, reason="the program sonde is not built: run `make`")
warnings.filterwarnings("ignore", module="torch")

USER_SCOPE, BACKWARD = 7, 1
ALL = dict(shapes=True, memory=True, stacks=True, modules=True, overloads=True)


# ------------------------------------------------------------------- reading a trace

def exported(path):
    done = run_sonde("export", path, "--to", "json", "-o", "-")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class Range(dict):
    """One range: name, thread (torch's number), begin, end, parent, and its attributes."""
    __getattr__ = dict.get


def read(path):
    """Ranges in the order of their begins, per thread, and allocations; as the reader rules."""
    trace = exported(path)
    meta = {(i, pair["key"]): pair["value"] for i, process in enumerate(trace["processes"])
            for pair in process["metadata"]}
    numbers = {i: int(meta.get((thread["process"], f"torch.thread {thread['tid']}"), 0))
               for i, thread in enumerate(trace["threads"])}
    ranges, memory, open_ranges, by_key = [], [], {}, {}
    for event in trace["events"]:
        stack = open_ranges.setdefault(event["thread"], [])
        kind = event["kind"]
        if kind == "begin":
            one = Range(name=event["name"], thread=numbers[event["thread"]], lane=event["thread"],
                        process=trace["threads"][event["thread"]]["process"],
                        begin=event["time_ns"], shapes=event.get("shapes"),
                        parent=stack[-1] if stack else None, scope=0, sequence=-1, forward=0)
            stack.append(one)
            ranges.append(one)
        elif kind == "attr" and stack:
            read_attribute(stack[-1], event, by_key)
        elif kind == "end" and stack:
            stack.pop()["end"] = event["time_ns"]
        elif kind == "end_at" and stack:
            stack.pop(-1 - event["inner"])["end"] = event["time_ns"]
        elif kind == "end_key":
            one = by_key.pop(event["key"], None)
            if one is not None:
                one["end"], one["ended_by"] = event["time_ns"], numbers[event["thread"]]
                open_ranges[one.lane].remove(one)
        elif kind in ("alloc", "free"):
            memory.append(event)
    ranges.sort(key=lambda one: (one.process, one.thread, one.begin))
    settle_backward(ranges)
    return ranges, memory, meta, trace


ATTRIBUTES = {"SEQUENCE": "sequence", "FWD_THREAD": "forward", "OVERLOAD": "overload",
              "ARGUMENTS": "arguments", "MODULE": "module"}


def read_attribute(one, event, by_key):
    key = event["key"]
    if key == "SCOPE":
        one["scope"] = event["value"] - 1
    elif key == "KEY":
        by_key[event["value"]] = one
    elif key == "STACK":
        one["stack"] = event["stack"]
    elif key == "STRIDES":
        one["strides"] = event["shapes"]
    elif key in ATTRIBUTES:
        one[ATTRIBUTES[key]] = event["value"]


def settle_backward(ranges):
    """torch's rules: evaluate_function has what the node it runs has; no thread without sequence."""
    for one, after in zip(ranges, ranges[1:]):
        if (one.name.startswith("autograd::engine::evaluate_function: ") and after.scope == BACKWARD
                and after.lane == one.lane):
            one["sequence"], one["forward"] = after.sequence, after.forward
    for one in ranges:
        if one.sequence < 0:
            one["forward"] = 0


def row_major(shape):
    strides, step = [], 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= size
    return strides


def is_list(item):
    return bool(item) and isinstance(item[0], list)


def strides_of(one):
    if one.strides is not None:
        return one.strides
    return [[row_major(x) for x in item] if is_list(item) else row_major(item)
            for item in one.shapes or []]


def paired(memory):
    """(size or -size) in order, frees by address; memory from before is not known to torch either."""
    live, sizes = {}, []
    for event in memory:
        if event["kind"] == "alloc":
            live[event["address"]] = event["size_bytes"]
            sizes.append(event["size_bytes"])
        elif event["address"] in live:
            sizes.append(-live.pop(event["address"]))
    return sizes


def assert_same_memory(theirs, ours):
    """torch also tells of blocks that an earlier recording of its own had seen being taken."""
    rest = iter(theirs)
    for size in ours:
        for other in rest:
            if other == size:
                break
            assert other < 0, (other, size)
        else:
            pytest.fail(f"torch does not tell of {size}")
    assert all(size < 0 for size in rest)
    assert len(ours) >= 0.9 * len(theirs) > 0


# ------------------------------------------------------------------- both in one run

def is_python(event):
    """A Python function, not an operator; older torch does not say."""
    if hasattr(event, "is_python_function"):
        return event.is_python_function()
    return bool(re.match(r"<built-in |nn\.Module: |.*\(\d+\): ", event.name()))


def both(path, work, form="together", start=None, config=None, **options):
    """Runs `work` under both, at once or apart; theirs as kineto events in thread and time order.

    `start`: begins our recording in another way than by the probe's start(). `config`: torch's
    experimental one.
    """
    from torch.profiler import ProfilerActivity, profile
    theirs = profile(activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True,
                     with_stack=options.get("stacks", False), experimental_config=config)
    if form == "apart":
        with theirs:
            work()
    (start or _torch_probe.start)(path, **options)
    try:
        with contextlib.nullcontext() if form == "apart" else theirs:
            work()
    finally:
        _torch_probe.stop()
    events = [event for event in theirs.profiler.kineto_results.events() if not is_python(event)]
    operators = [event for event in events if event.name() not in ("[memory]", "[OutOfMemory]")]
    operators.sort(key=lambda event: (event.start_thread_id(), event.start_ns()))
    sizes = [event.nbytes() for event in sorted((e for e in events if e.name() == "[memory]"),
                                                key=lambda e: e.start_ns())]
    return operators, sizes


def parents(events, begin, end, thread):
    """Index of the range around each, by containment in time."""
    found, stacks = [], {}
    for i, event in enumerate(events):
        stack = stacks.setdefault(thread(event), [])
        while stack and begin(event) >= end(events[stack[-1]]):
            stack.pop()
        found.append(stack[-1] if stack else None)
        stack.append(i)
    return found


def plain(value):
    return [plain(x) for x in value] if isinstance(value, (list, tuple)) else value


def concrete(text):
    """What torch's Python API gives for an entry of "Concrete Inputs"."""
    names = {"True": True, "False": False, "inf": float("inf"), "nan": float("nan")}
    if text == "":
        return None
    if text.endswith("j"):  # "1.+2.j"
        return complex(text.replace(".+", "+").replace(".-", "-").replace(".j", "j"))
    return eval(text, {"__builtins__": {}}, names)  # numbers and lists of them


def counted(numbers):
    """Sequence numbers from the first of them on: they are counted on from one run to the next."""
    first = min((number for number in numbers if number >= 0), default=0)
    return [number - first if number >= 0 else number for number in numbers]


def assert_equal(theirs, ours, form="together"):
    assert [event.name() for event in theirs] == [one.name for one in ours]
    index = {id(one): i for i, one in enumerate(ours)}
    above = parents(theirs, lambda e: e.start_ns(), lambda e: e.start_ns() + e.duration_ns(),
                    lambda e: e.start_thread_id())
    assert counted([event.sequence_nr() for event in theirs]) == \
           counted([one.sequence for one in ours])
    for i, (event, one) in enumerate(zip(theirs, ours)):
        where = (i, one.name)
        shapes = one.shapes or []
        if hasattr(event, "structured_input_shapes"):
            assert plain(event.structured_input_shapes()) == shapes, where
            assert plain(event.structured_input_strides()) == strides_of(one), where
        else:  # older torch tells of no lists and no strides
            assert plain(event.shapes()) == [[] if is_list(item) else item for item in shapes], where
        texts = json.loads(one.arguments) if one.arguments else [""] * len(shapes)
        expected = plain(event.concrete_inputs())
        assert len(expected) == len(texts), where
        values = [concrete(text) for text in texts]
        if form == "apart":  # an optimizer's factors change from run to run
            values, expected = ([float if isinstance(value, float) else value for value in each]
                                for each in (values, expected))
        assert repr(values) == repr(expected), where
        assert event.fwd_thread_id() == one.forward, where
        assert event.scope() == one.scope, where
        assert event.start_thread_id() == one.thread, where
        if one.scope != USER_SCOPE:
            assert (index[id(one.parent)] if one.parent else None) == above[i], where


def train():
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(),
                          nn.Conv2d(8, 8, 3), nn.Flatten(), nn.Linear(8 * 14 * 14, 10))
    optimizer = torch.optim.AdamW(model.parameters())

    def work():
        x, y = torch.randn(4, 3, 16, 16), torch.randint(0, 10, (4,))
        with torch.profiler.record_function("forward"):
            loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        torch.cat([x, x]), torch.stack([y, y]), x.sum((1, 2), keepdim=True), torch.empty(3, 0)
        x[:, 1:2].contiguous(), torch.clamp(x, 0.1, 1.5), x.half().to(torch.complex64)
    return work


def resnet():
    vision = pytest.importorskip("torchvision", reason="torchvision is not installed")
    model = vision.models.resnet18()
    optimizer = torch.optim.SGD(model.parameters(), lr=.1, momentum=.9)

    def work():
        model(torch.randn(2, 3, 64, 64)).sum().backward()
        optimizer.step()
    return work


def lstm():
    model = nn.LSTM(16, 32, 2)
    return lambda: model(torch.randn(5, 3, 16))[0].sum().backward()


def encoder():
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, 128, batch_first=True), 2)
    return lambda: model(torch.randn(2, 9, 64)).sum().backward()


def scripted():
    model = torch.jit.trace(nn.Sequential(nn.Linear(4, 4), nn.ReLU()), torch.randn(2, 4))
    return lambda: model(torch.randn(2, 4))


def custom():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2

    def work():
        x = torch.ones(3, requires_grad=True)
        Twice.apply(x).sum().backward()
        with torch.profiler.record_function("naïve \"name\" with\n a line"):
            x.detach().add_(1)
    return work


def arguments():
    """Every kind of argument."""
    def work():
        x = torch.randn(3, 4)
        for number in (1e10, 1e-7, float("inf"), float("nan"), -3.0, 123456789.125, 1 / 3, 2, True):
            x.add(number)
        torch.clamp(x, -0.0, 1.5), torch.full((2,), 1 + 2j), torch.full((2,), -1.5 - 0.25j)
        x.sum((0, 1)), x.to(torch.float64), torch.zeros([], dtype=torch.bool), x.reshape(2, -1)
        x.index_select(0, torch.tensor([0])), x[torch.tensor([0]), :], x[None, ..., 0]
        torch.arange(0, 1, 0.1), torch.linspace(0, 1, 5), torch.einsum("ij,jk->ik", x, x.t())
        torch._foreach_add([x] * 40, [x] * 40), x.t().to_sparse().coalesce()
    return work


@pytest.mark.parametrize("form", ["together", "apart"])
@pytest.mark.parametrize("make", [train, resnet, lstm, encoder, scripted, custom, arguments])
def test_equal_to_torch(tmp_path, make, form):
    torch.manual_seed(0)
    work = make()
    for _ in range(3):
        work()
    theirs, sizes = both(tmp_path / "t.sonde", work, form, shapes=True, memory=True)
    ours, memory, _, _ = read(tmp_path / "t.sonde")
    assert len(ours) > 5
    assert_equal(theirs, ours, form)
    assert_same_memory(sizes, paired(memory))


@pytest.mark.parametrize("form", ["together", "apart"])
@pytest.mark.parametrize("options", [{}, dict(memory=True), dict(stacks=True), dict(modules=True),
                                     ALL], ids=lambda options: "+".join(options) or "plain")
def test_each_set_of_options(tmp_path, options, form):
    """Names, nesting, sequence numbers are the same whatever else is recorded."""
    work = train()
    work()
    theirs, _ = both(tmp_path / "t.sonde", work, form, **options)
    ours, memory, meta, _ = read(tmp_path / "t.sonde")
    assert [e.name() for e in theirs] == [one.name for one in ours]
    assert counted([e.sequence_nr() for e in theirs]) == counted([one.sequence for one in ours])
    assert any(one.shapes for one in ours) == bool(options.get("shapes"))
    assert bool(memory) == bool(options.get("memory"))
    assert any(one.stack for one in ours) == bool(options.get("stacks"))
    assert any(one.module for one in ours) == bool(options.get("modules"))
    assert any(one.overload for one in ours) == bool(options.get("overloads"))
    described = json.loads(meta[0, "torch.probe"])
    assert described["missing"] == "" and described["records"][0] == "ops"


def in_front(path, **options):
    _record.start(path)
    _torch_probe.attach(more_flags=_record.TORCH_WRAP_ALLOCATOR, **options)
    assert json.loads(_record.torch_describe())["cpu_memory"] == "wrapped"


@pytest.mark.parametrize("form", ["together", "apart"])
def test_allocator_in_front(tmp_path, form):
    """The second way to see memory gives the same sizes, and is gone afterwards."""
    work = train()
    work()
    _, sizes = both(tmp_path / "t.sonde", work, form, start=in_front, memory=True)
    _, memory, _, trace = read(tmp_path / "t.sonde")
    assert_same_memory(sizes, paired(memory))
    gc.collect()
    torch.ones(10) + 1  # no longer through the wrapper, and freeing still works


# ----------------------------------------------------------------- stacks and modules

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList([nn.Linear(4, 4), nn.ReLU()])

    def forward(self, x):
        for part in self.parts:
            x = part(x)
        return x


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Block(), Block()

    def forward(self, x):
        return self.second(self.first(x)) + 1


@pytest.mark.parametrize("form", ["together", "apart"])
def test_stacks_are_torch_s(tmp_path, form):
    """Every Python frame that torch shows with verbose stacks; functions in C are seen with Python's calls: test_torch_stacks."""
    from torch._C._profiler import _ExperimentalConfig
    from torch.profiler.python_tracer import _prefix_regex
    net, x = Net(), torch.randn(2, 4)

    def step():
        loss = net(x).sum()
        loss.backward()
        sorted([3, 1], key=lambda value: float((x * value).sum()))

    step()
    events, _ = both(tmp_path / "t.sonde", step, form, config=_ExperimentalConfig(verbose=True),
                     stacks=True)
    ours, _, meta, _ = read(tmp_path / "t.sonde")
    prefixes = json.loads(meta[0, "python.prefixes"])
    assert prefixes == list(_prefix_regex())

    def text(frame):
        if not frame["file"]:
            return frame["function"]
        file = frame["file"]
        cut = next((p for p in prefixes if file.startswith(p)), "")
        return f"{file[len(cut):]}({frame['first_line']}): {frame['function']}"

    assert [e.name() for e in events] == [one.name for one in ours]
    compared = 0
    for event, one in zip(events, ours):
        if not one.stack:
            continue
        expected = [line for line in event.stack() if not line.startswith("<built-in")]
        mine = [text(frame) for frame in one.stack]
        # Frames that were there before torch's start have the current line there.
        depth = next(i for i, line in enumerate(mine) if line.endswith(": step"))
        assert mine[:depth + 1] == expected[:depth + 1]
        compared += 1
    assert compared > 10
    linear = next(one for one in ours if one.name == "aten::linear")
    frame = next(f for f in linear.stack if f["function"] == "forward" and "linear.py" in f["file"])
    source = pathlib.Path(frame["file"]).read_text().splitlines()
    assert "F.linear(" in source[frame["line"] - 1]


def test_modules(tmp_path):
    net, x = Net(), torch.randn(2, 4)
    _torch_probe.start(tmp_path / "t.sonde", modules=True)
    net(x).sum().backward()
    Block()(x)
    lone = [nn.Linear(4, 4)]  # in no module's children

    class Outer(nn.Module):
        def forward(self, y):
            return lone[0](y)
    Outer()(x)
    torch.zeros(2)
    _torch_probe.stop()
    ours, _, meta, _ = read(tmp_path / "t.sonde")
    linears = [one.module for one in ours if one.name == "aten::linear"]
    assert linears == ["Net.first.parts.0", "Net.second.parts.0", "Block.parts.0", "Outer.Linear"]
    assert [one.module for one in ours if one.name == "aten::add"][0] == "Net"
    assert next(one for one in ours if one.name == "aten::zeros").module is None
    assert all(one.module is None for one in ours if one.scope == BACKWARD)
    note = json.loads(meta[0, "module Net.first.parts.0"])
    assert note == {"class": "Linear", "parameters": 20, "parameter_bytes": 80}


def test_scripted_modules(tmp_path):
    """Which module of a scripted model an operator belongs to, as torch's hierarchy has it.

    A list of modules is not called, so that the interpreter does not know its name: `parts` is not there.
    """
    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inside = scripted

        def forward(self, y):
            return self.inside(y)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scripted = torch.jit.script(Net())
        traced = torch.jit.trace(Block(), torch.randn(2, 4))
    outer, x = Outer(), torch.randn(2, 4)
    for _ in range(4):  # profiled and optimized by the interpreter
        outer(x), traced(x)
    _torch_probe.start(tmp_path / "t.sonde", modules=True)
    scripted(x), outer(x), traced(x)
    torch.zeros(2)
    _torch_probe.stop()
    ours, _, meta, _ = read(tmp_path / "t.sonde")
    linears = [one.module for one in ours if one.name == "aten::linear"]
    assert linears == ["Net.first.0", "Net.second.0", "Outer.inside.first.0", "Outer.inside.second.0",
                       "Block.0"]
    assert [one.module for one in ours if one.name == "aten::add"][0] == "Net"
    assert next(one for one in ours if one.name == "aten::zeros").module is None
    assert json.loads(meta[0, "module Net"]) == {"class": "Net"}, "parameters are not known, not 0"
    shown = run_sonde("report", tmp_path / "t.sonde", "--view", "modules", "--json")
    calls = {row["path"]: row["calls"] for row in json.loads(shown.stdout)["rows"]}
    assert calls["Net"] == calls["Net.first"] == calls["Net.second.0"] == 1
    assert calls["Outer.inside"] == calls["Outer.inside.first.0"] == 1


# ------------------------------------------------------- threads, order, processes

def test_every_thread(tmp_path):
    """torch.profiler sees the operators of its own thread only."""
    started, go = threading.Event(), threading.Event()

    def work():
        started.set()
        go.wait(10)
        for _ in range(50):
            torch.ones(3).add(1)

    before = threading.Thread(target=work)
    before.start()
    started.wait(10)
    _torch_probe.start(tmp_path / "t.sonde", **ALL)
    go.set()
    others = [threading.Thread(target=work) for _ in range(3)]
    for thread in others:
        thread.start()
    for thread in [before, *others]:
        thread.join()
    _torch_probe.stop()
    ours, memory, _, trace = read(tmp_path / "t.sonde")
    adds = [one for one in ours if one.name == "aten::add"]
    assert len(adds) == 200 and len({one.thread for one in adds}) == 4
    assert len({event["thread"] for event in memory}) == 4
    assert trace["ledger"] == []


def test_ends_out_of_order(tmp_path):
    _torch_probe.start(tmp_path / "t.sonde")
    first, second = (torch.profiler.record_function(name) for name in ("first", "second"))
    first.__enter__()
    second.__enter__()
    torch.ones(1)
    first.__exit__(None, None, None)
    torch.zeros(1)
    second.__exit__(None, None, None)
    torch.empty(1)
    _torch_probe.stop()
    ours = {one.name: one for one in read(tmp_path / "t.sonde")[0]}
    assert ours["aten::ones"].parent.name == "second"
    assert ours["aten::zeros"].parent.name == "second"
    assert ours["aten::empty"].parent is None
    assert ours["first"].end < ours["aten::zeros"].begin < ours["second"].end


def test_end_on_another_thread(tmp_path):
    """As record_function does with a future: the range ends where the future is done."""
    _torch_probe.start(tmp_path / "t.sonde")
    future = torch.futures.Future()
    with torch.profiler.record_function("outer"):
        with torch.autograd.profiler.record_function("waiting") as waiting:
            done = waiting._call_end_callbacks_on_future(future)
        thread = threading.Thread(target=lambda: (torch.zeros(1), future.set_result(1)))
        thread.start()
        thread.join()
        done.wait()
        torch.ones(1)
    torch.empty(1)
    _torch_probe.stop()
    ranges = read(tmp_path / "t.sonde")[0]
    ours = {one.name: one for one in ranges}
    assert ours["waiting"].ended_by == ours["aten::zeros"].thread != ours["waiting"].thread
    assert ours["aten::ones"].parent.name == "outer"
    last = max(ranges, key=lambda one: one.begin)
    assert last.name == "aten::empty" and last.parent is None


def run_script(tmp_path, text, *options, status=0, prefix=(), name="script.py", **extra):
    """`sonde run --ops ..` of a program that knows nothing of sonde."""
    script = tmp_path / name
    script.write_text(textwrap.dedent(text))
    trace = tmp_path / "run.sonde"
    done = run_sonde("run", "-q", "-o", trace, "--ops", *options, "--", *(prefix or [sys.executable]),
                     script, env=plain_environment(), **extra)
    assert done.returncode == status, done.stderr.decode()
    return trace, done


def plain_environment():
    package = str(pathlib.Path(sonde.__file__).parent)
    return {**os.environ, "SONDE_PYTHON": package, "OMP_NUM_THREADS": "1"}


def test_run_unchanged_script(tmp_path):
    trace, done = run_script(tmp_path, """
        import sys
        assert not any("_autostart" in folder for folder in sys.path)
        assert "sonde" not in sys.modules
        import torch
        model = torch.nn.Linear(3, 4)
        model(torch.randn(2, 3)).sum().backward()
        print("its own output")
        sys.exit(7)
    """, "--shapes", "--memory", "--modules", "--stacks", status=7)
    assert done.stdout == b"its own output\n" and done.stderr == b""
    ours, memory, meta, data = read(trace)
    linear = next(one for one in ours if one.name == "aten::linear")
    assert linear.shapes == [[2, 3], [4, 3], [4]] and linear.module == "Linear"
    assert linear.stack[-1]["function"] == "<module>" and memory
    assert data["processes"][0]["closed"]


def test_run_of_a_script_that_looks_for_torch_first(tmp_path):
    """As transformers and accelerate do; to look is not to load."""
    trace, done = run_script(tmp_path, """
        import importlib.util, sys
        for _ in range(3):
            assert importlib.util.find_spec("torch").name == "torch" and "torch" not in sys.modules
        import torch
        torch.ones(2)
        assert importlib.util.find_spec("torch") is torch.__spec__
        assert torch.__loader__ is torch.__spec__.loader and "sonde" not in type(torch.__loader__).__module__
        assert not any(type(one).__module__ == "sitecustomize" for one in sys.meta_path)
    """)
    assert done.stderr == b"" and "aten::ones" in [one.name for one in read(trace)[0]]


def test_run_outlives_a_profiler_of_the_script(tmp_path):
    """What the script starts and stops itself does not end what `sonde run` records."""
    trace, _ = run_script(tmp_path, """
        import torch
        from sonde.torch import _attach as _torch_probe
        torch.ones(2)
        _torch_probe.start("own.sonde", shapes=True)
        torch.zeros(2)
        _torch_probe.stop()
        torch.empty(2).neg()
    """, prefix=[warm_torch.python()])
    names = [one.name for one in read(trace)[0]]
    assert {"aten::ones", "aten::zeros", "aten::neg"} <= set(names)


def test_run_keeps_an_exception_and_what_was_recorded(tmp_path):
    trace, done = run_script(tmp_path, """
        import torch
        torch.ones(3).add(1)
        raise RuntimeError("of the script")
    """, status=1, prefix=[warm_torch.python()])
    assert b"of the script" in done.stderr
    assert "aten::add" in [one.name for one in read(trace)[0]]


def test_run_killed(tmp_path):
    """kill -9: all that was recorded before is there."""
    script = tmp_path / "script.py"
    script.write_text("import torch, os, signal\n"
                      "for _ in range(1000): torch.ones(3).add(1)\n"
                      "os.kill(os.getpid(), signal.SIGKILL)\n")
    done = run_sonde("run", "-q", "-o", tmp_path / "k.sonde", "--ops", "--shapes", "--", sys.executable,
                     script, env=plain_environment())
    assert done.returncode == -signal.SIGKILL
    names = [one.name for one in read(tmp_path / "k.sonde")[0]]
    assert names.count("aten::add") == 1000


def test_run_finds_the_shadowed_sitecustomize(tmp_path):
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text("import builtins; builtins.was_here = True\n")
    script = tmp_path / "script.py"
    script.write_text("import torch; torch.ones(1); print(was_here)\n")
    environment = plain_environment()
    environment["PYTHONPATH"] = os.pathsep.join(
        [str(folder), *filter(None, [environment.get("PYTHONPATH")])])
    done = run_sonde("run", "-q", "-o", tmp_path / "s.sonde", "--ops", "--", sys.executable, script,
                     env=environment)
    assert done.stdout == b"True\n", done.stderr
    assert "aten::ones" in [one.name for one in read(tmp_path / "s.sonde")[0]]


@pytest.mark.parametrize("context", ["fork", pytest.param("spawn", marks=pytest.mark.long)])
def test_run_with_loader_workers(tmp_path, context):
    trace, _ = run_script(tmp_path, f"""
        import os, torch
        from torch.utils.data import DataLoader, Dataset

        class Data(Dataset):
            def __len__(self): return 8
            def __getitem__(self, i): return torch.full((2,), float(i)).mul(2)

        if __name__ == "__main__":
            loader = DataLoader(Data(), batch_size=2, num_workers=2, multiprocessing_context="{context}")
            total = sum(batch.sum().item() for batch in loader)
            assert total == 2 * 2 * 28
            torch.ones(1).neg()
    """, "--shapes", prefix=[sys.executable if context == "spawn" else warm_torch.python()])
    ours, _, _, data = read(trace)
    pids = {p["pid"]: i for i, p in enumerate(data["processes"])}
    assert len(pids) == 3
    per_process = {i: [one.name for one in ours if one.process == i] for i in pids.values()}
    workers = [names for names in per_process.values() if "aten::mul" in names]
    assert len(workers) == 2 and sum(names.count("aten::mul") for names in workers) == 8
    assert sum("aten::neg" in names for names in per_process.values()) == 1


@pytest.mark.long
def test_run_two_ranks(tmp_path):
    """torchrun: one file per rank, with its rank; none for torchrun itself."""
    script = tmp_path / "ddp.py"
    script.write_text(textwrap.dedent("""
        import torch, torch.distributed as dist
        dist.init_process_group("gloo")
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
        model(torch.randn(2, 4)).sum().backward()
        dist.destroy_process_group()
    """))
    done = run_sonde("run", "-q", "-o", tmp_path / "d.sonde", "--ops", "--", sys.executable, "-m",
                     "torch.distributed.run", "--nproc-per-node=2", "--master-port=0",
                     "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", script,
                     env=plain_environment())
    assert done.returncode == 0, done.stderr.decode()
    ours, _, _, data = read(tmp_path / "d.sonde")
    assert sorted(p["rank"] for p in data["processes"]) == [0, 1]
    assert {p["world_size"] for p in data["processes"]} == {2}
    for i in range(2):
        assert "aten::linear" in [one.name for one in ours if one.process == i]


def test_fork_in_the_middle(tmp_path):
    path = tmp_path / "t.sonde"
    _torch_probe.start(path, **ALL)
    with torch.profiler.record_function("around"):
        torch.ones(3)
        child = os.fork()
        if child == 0:
            torch.zeros(3)
            os._exit(0)
        os.waitpid(child, 0)
        torch.empty(3)
    _torch_probe.stop()
    ours, _, meta, data = read(path)
    assert all((i, "torch.probe") in meta for i in range(2)), "each file says what the probe did"
    assert all(one.thread == 1 for one in ours)
    own = [one.name for one in ours if data["processes"][one.process]["pid"] == os.getpid()]
    born = [one.name for one in ours if data["processes"][one.process]["pid"] == child]
    assert {"around", "aten::ones", "aten::empty"} <= set(own) and "aten::zeros" not in own
    assert "aten::zeros" in born and "aten::ones" not in born


# ------------------------------------------------------------------ compiled code

@pytest.mark.parametrize("form", ["together", "apart"])
def test_compiled(tmp_path, form):
    """The same rows as torch.profiler, its C++ kernels' launch ranges included."""
    if not any(os.access(os.path.join(folder, "g++"), os.X_OK)
               for folder in os.environ["PATH"].split(os.pathsep)):
        pytest.skip("torch.compile needs g++")
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))
    compiled = torch.compile(model)
    x = torch.randn(4, 8)
    for _ in range(2):
        compiled(x).sum().backward()
    theirs, _ = both(tmp_path / "t.sonde", lambda: compiled(x).sum().backward(), form)
    ours, _, _, _ = read(tmp_path / "t.sonde")
    assert [e.name() for e in theirs] == [one.name for one in ours]
    has_calls = TORCH >= (2, 11)  # 2.4 and 2.8 have no ranges around its compiled graphs
    assert any("CompiledFxGraph" in one.name for one in ours) == has_calls
    # and alone, without torch's own being on; also after that one has been on in between
    for between in (False, True):
        _torch_probe.start(tmp_path / "u.sonde")
        if between:
            with torch.profiler.profile():
                pass
        compiled(x).sum().backward()
        _torch_probe.stop()
        alone = [one.name for one in read(tmp_path / "u.sonde")[0]]
        calls = [name for name in alone if name.startswith("## Call CompiledFxGraph")]
        assert bool(calls) == has_calls and len(alone) > 3
    import torch.autograd.profiler as profiler
    assert not profiler._is_profiler_enabled
    assert profiler._run_on_profiler_stop.__module__ == "torch.autograd.profiler"


# ------------------------------------------------------------------ leaving no trace

def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("times", [100, pytest.param(1000, marks=pytest.mark.long)])
def test_start_and_stop_many_times(tmp_path, times):
    path = tmp_path / "t.sonde"

    def turn():
        _torch_probe.start(path, **ALL)
        torch.ones(2).add(1)
        _torch_probe.stop()

    for _ in range(100):
        turn()
    gc.collect()
    before = resident_bytes()
    for _ in range(times):
        turn()
    gc.collect()
    assert resident_bytes() - before < 1 << 20


def test_tensors_are_let_go(tmp_path):
    _torch_probe.start(tmp_path / "t.sonde", **ALL)
    x = torch.randn(10)
    y = torch.cat([x, x]).mul(2)
    gone = [weakref.ref(x), weakref.ref(y)]
    del x, y
    assert [ref() for ref in gone] == [None, None]
    _torch_probe.stop()


def test_stop_inside_a_range_and_start_again(tmp_path):
    """What was begun before does not end anything of the next recording."""
    around = torch.profiler.record_function("around")
    _torch_probe.start(tmp_path / "a.sonde")
    around.__enter__()
    _torch_probe.stop()
    _torch_probe.start(tmp_path / "b.sonde")
    with torch.profiler.record_function("inner"):
        around.__exit__(None, None, None)
        torch.ones(2)
    _torch_probe.stop()
    ours = {one.name: one for one in read(tmp_path / "b.sonde")[0]}
    assert "around" not in ours and ours["aten::ones"].parent.name == "inner"
    assert ours["inner"].end >= ours["aten::ones"].end


def test_pause(tmp_path):
    _torch_probe.start(tmp_path / "t.sonde", **ALL)
    torch.ones(2)
    _record.pause()
    torch.zeros(2)
    _record.resume()
    torch.empty(2)
    _torch_probe.stop()
    names = [one.name for one in read(tmp_path / "t.sonde")[0]]
    assert "aten::ones" in names and "aten::empty" in names and "aten::zeros" not in names


def test_speed_afterwards(tmp_path, capsys):
    """Printed, not judged: the machine is shared."""
    x = torch.randn(4, 4)

    def measure():
        best = float("inf")
        for _ in range(30):
            begin = time.perf_counter_ns()
            for _ in range(300):
                torch.add(x, x)
            best = min(best, time.perf_counter_ns() - begin)
        return best / 300

    before = measure()
    _torch_probe.start(tmp_path / "t.sonde", **ALL)
    during = measure()
    _torch_probe.stop()
    with capsys.disabled():
        print(f"\ntorch.add: {before:.0f} ns before, {during:.0f} during, {measure():.0f} after")


# -------------------------------------------------------------------------- _record

def test_cycles_of_a_schedule(tmp_path):
    told = []
    _record.start(tmp_path / "c.sonde", schedule=(1, 1, 2, 2, 0, 0),
                  on_cycle=lambda path, index, step: told.append((path, index, step)))
    _torch_probe.attach(shapes=True)
    actions = []
    for step in range(10):
        actions.append(_record.schedule_action((1, 1, 2, 2, 0, 0), step))
        with torch.profiler.record_function(f"step {step}"):
            torch.ones(step + 1)
        _record.step()
    _torch_probe.stop()
    assert actions == [0, 1, 2, 3, 0, 1, 2, 3, 0, 0]
    assert [one[1:] for one in told] == [(0, 4), (1, 8)]
    for (path, index, _), steps in zip(told, ([2, 3], [6, 7])):
        ours = read(path)[0]
        assert [one.name for one in ours if one.name.startswith("step")] == \
            [f"step {step}" for step in steps]


def test_an_error_in_the_callback_is_raised(tmp_path):
    def fail(path, index, step):
        raise KeyError("of the callback")

    _record.start(tmp_path / "c.sonde", on_cycle=fail)
    with pytest.raises(KeyError, match="of the callback"):
        _record.stop()
    assert _record.epoch() == 0


def test_recorder_says_what_is_wrong(tmp_path):
    with pytest.raises(sonde.Error, match="not recording"):
        _record.stop()
    _record.start(tmp_path / "a.sonde")
    with pytest.raises(sonde.Error, match="already recording"):
        _record.start(tmp_path / "b.sonde")
    _record.stop()
    with pytest.raises(sonde.Error, match="nowhere"):
        _record.start("/nowhere/at/all.sonde")
    with pytest.raises(sonde.Error, match="torch probe"):
        subprocess_error(tmp_path)


def subprocess_error(tmp_path):
    """A library that is none of ours; in a fresh process, since one is loaded here."""
    code = ("from sonde import _record, Error\n"
            "try: _record.torch_start('/nowhere.so', 0)\n"
            "except Error as e: print(e)\n")
    done = subprocess.run([sys.executable, "-c", code], text=True, stdout=subprocess.PIPE)
    raise sonde.Error(done.stdout)


def test_ranges_by_hand(tmp_path):
    _record.start(tmp_path / "h.sonde")
    _record.begin("outer ü")
    _record.begin("inner")
    _record.mark("here")
    _record.end()
    _record.end()
    _record.metadata("who", "me")
    assert _record.path() == str(tmp_path / "h.sonde")
    _record.stop()
    _record.begin("nobody records")
    _record.end()
    trace = exported(tmp_path / "h.sonde")
    assert [e["kind"] for e in trace["events"]] == ["begin", "begin", "mark", "end", "end"]
    assert {"key": "who", "value": "me"} in trace["processes"][0]["metadata"]
    assert list(itertools.chain(e["name"] for e in trace["events"] if e["kind"] == "begin")) == \
        ["outer ü", "inner"]
