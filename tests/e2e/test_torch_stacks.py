# SPDX-License-Identifier: Apache-2.0
"""with_stack=True: the functions in C of an operator's stack, innermost and between Python's, as torch.profiler has them.

torch names a method's by the address of what it is called for, another for each tensor: that alone is left out.
"""
import collections
import json
import re
import threading

import pytest

torch = pytest.importorskip("torch")

import torch.profiler  # noqa: E402
from torch import nn  # noqa: E402

import sonde  # noqa: E402

CPU = [torch.profiler.ProfilerActivity.CPU]
PROFILES = {"torch": torch.profiler.profile, "sonde": sonde.profile}


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient.neg()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.then = nn.Linear(4, 4), nn.ReLU()

    def forward(self, x):
        return Twice.apply(self.then(self.first(x)))


def work(net, x):
    net(x).sum().backward()  # forward and backward
    sorted([3, 1], key=lambda value: float((x * value).sum()))  # a function in C in the middle of the stack
    max([1.0], key=lambda value: sum(part.cos() for part in x.unbind()))
    x.relu(), torch.relu(x), torch.Tensor.relu(x), net.first.weight.detach().relu_()
    with torch.no_grad():
        net.first.bias.add_(1)  # of a type that Python made
    list(map(torch.relu, [x]))  # called by C: no profiler sees it begin
    x @ x.t(), x + 1, x[:1], torch.tensor([1.]), torch.ops.aten.sin(x)
    hook = x.clone().requires_grad_()
    hook.register_hook(lambda gradient: gradient.mul(2))
    hook.exp().sum().backward()


def record(profile, path=None, run=work):
    net, x = Net(), torch.randn(2, 4)
    for _ in range(3):
        run(net, x)
    config = torch._C._profiler._ExperimentalConfig(verbose=True)
    with profile(activities=CPU, with_stack=True, experimental_config=config) as prof:
        run(net, x)
    if path:
        prof.export_chrome_trace(str(path))
    return prof


def together():
    """Both at once: torch around, so that its operators are those of ours."""
    found = {}
    config = torch._C._profiler._ExperimentalConfig(verbose=True)
    net, x = Net(), torch.randn(2, 4)
    work(net, x)
    with torch.profiler.profile(activities=CPU, with_stack=True, experimental_config=config) as found["torch"]:
        with sonde.profile(activities=CPU, with_stack=True) as found["sonde"]:
            work(net, x)
    return found


def without_address(frame):
    return re.sub(r" at 0x[0-9a-f]+>", ">", frame)


def shown(stack):
    """Up to the function that is recorded: what is around it differs between the two."""
    stack = [without_address(frame) for frame in stack]
    inner = next((i for i, frame in enumerate(stack) if frame.endswith(": work")), None)
    return stack[:inner + 1] if inner is not None else []


def is_operator(event):
    return not getattr(event, "is_python_function", False) and not re.match(r"<built-in |nn\.Module: |.*\(\d+\): ",
                                                                             event.name)


def stacks_of(prof):
    return [(event.name, shown(event.stack)) for event in prof.events() if is_operator(event)]


@pytest.mark.parametrize("form", ["apart", "together"])
def test_stacks_with_functions_in_c(form):
    found = together() if form == "together" else {name: record(profile) for name, profile in PROFILES.items()}
    theirs, ours = (stacks_of(found[name]) for name in PROFILES)
    assert [one for one in ours if one[1]] == [one for one in theirs if one[1]]
    innermost = collections.defaultdict(set)
    for name, stack in ours:
        innermost[name].update(stack[:1])
    assert innermost["aten::linear"] == {"<built-in function linear>"}
    assert {"<built-in method relu of Tensor object>", "<built-in method relu of type object>"} <= innermost["aten::relu"]
    assert "<built-in method add_ of Parameter object>" in innermost["aten::add_"]
    assert any(frame.endswith(": work") for frame in innermost["aten::matmul"]), "an operator of Python's syntax"
    assert any("<built-in function sorted>" in stack[1:-1] for _name, stack in ours)
    assert "<built-in method run_backward of torch._C._EngineBase object>" in \
           innermost["autograd::engine::evaluate_function: AddmmBackward0"]
    assert innermost["AddmmBackward0"] == {"<built-in function linear>"}, "of its forward operator"


def test_functions_in_c_on_the_timeline():
    """Each call of one is an event with the name that it has in stacks."""
    counts = {}
    for name, profile in PROFILES.items():
        events = record(profile).events()
        inside = [event for event in events if not is_operator(event) and event.name.startswith("<built-in ")]
        outer = next(event for event in events if event.name.endswith(": work"))
        counts[name] = collections.Counter(without_address(event.name) for event in inside
                                           if outer.time_range.start <= event.time_range.start
                                           and event.time_range.end <= outer.time_range.end)
    assert counts["sonde"] == counts["torch"]
    assert counts["sonde"]["<built-in method sum of Tensor object>"] >= 3


@pytest.mark.parametrize("frames", [1, 2, 5])
def test_rows_by_stack(frames):
    """torch has a row for each tensor: put together, they are ours."""
    rows = {}
    for name, profile in PROFILES.items():
        rows[name] = collections.Counter()
        for row in record(profile).key_averages(group_by_stack_n=frames):
            stack = tuple(without_address(frame) for frame in row.stack)
            if any(frame.endswith(": work") for frame in stack):
                rows[name][row.key, stack] += row.count
    assert rows["sonde"] == rows["torch"]
    assert sum(rows["sonde"].values()) > 20 or frames == 1


def test_exports_have_them(tmp_path):
    ours = record(sonde.profile, tmp_path / "t.json")
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    stacks = {event["args"]["Call stack"] for event in events if event.get("name") == "aten::linear"}
    assert len(stacks) == 1 and stacks.pop().startswith("<built-in function linear>;torch/nn/modules/linear.py(")
    calls = {event["name"] for event in events if event.get("cat") == "python_function"}
    assert "<built-in function linear>" in calls
    assert {event.stack[0] for event in ours.events() if event.name == "aten::linear"} == {"<built-in function linear>"}
    line = next(line for line in ours.key_averages(group_by_stack_n=5).table(row_limit=-1).splitlines()
                if "aten::linear" in line)
    assert "<built-in function linear>" in line
    long = record(sonde.profile, run=lambda *_: [nn.functional.linear(*[torch.ones(300, 300)] * 2) for _ in range(20)])
    long.export_stacks(str(tmp_path / "t.txt"), "self_cpu_time_total")
    lines = (tmp_path / "t.txt").read_text().splitlines()
    assert any(";<built-in_function_linear> " in line for line in lines)


def test_each_thread_has_its_own():
    """A thread in a function in C, while another calls others."""
    inside, go = threading.Event(), threading.Event()

    def waits(net, x):
        sorted([1], key=lambda _: (inside.set(), go.wait(), x.tan())[1])

    with sonde.profile(activities=CPU, with_stack=True) as prof:
        thread = threading.Thread(target=waits, args=(None, torch.ones(2)))
        thread.start()
        inside.wait()
        torch.ones(2).cos()
        go.set()
        thread.join()
    stacks = {event.name: event.stack for event in prof.events()}
    assert stacks["aten::cos"][0] == "<built-in method cos of Tensor object>"
    assert not any("sorted" in frame for frame in stacks["aten::cos"])
    assert stacks["aten::tan"][0] == "<built-in method tan of Tensor object>"
    assert "<built-in function sorted>" in stacks["aten::tan"]


def test_each_cycle_has_its_own():
    """Names are given anew in each file."""
    found, x = [], torch.ones(2)

    def keep(prof):
        found.append([event.stack[0] for event in prof.events() if event.name in ("aten::cos", "aten::sin")])

    with sonde.profile(activities=CPU, with_stack=True, on_trace_ready=keep,
                       schedule=sonde.schedule(wait=0, warmup=1, active=1, repeat=3)) as prof:
        for _ in range(6):
            x.cos(), torch.sin(x)
            prof.step()
    assert found == [["<built-in method cos of Tensor object>", "<built-in method sin of type object>"]] * 3


def test_classes_that_come_and_go():
    """A method in C has the name of the class that it is called for, whatever else had that class's address."""
    with sonde.profile(activities=CPU, with_stack=True) as prof:
        for number in range(40):
            made = type(f"Made{number}", (torch.Tensor,), {})
            torch.ones(2).as_subclass(made).detach()
            del made
    innermost = [event.stack[0] for event in prof.events() if event.name == "aten::detach"]
    assert [re.sub(r".* of (\S+) object>", r"\1", frame) for frame in innermost] == \
           [f"Made{number}" for number in range(40)]
