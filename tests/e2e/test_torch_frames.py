# SPDX-License-Identifier: Apache-2.0
"""with_stack=True: Python's calls on the timeline, as torch.profiler has them.

Each comparison runs in two forms: the two profilers one after the other, and both at once.
"""
import collections
import gc
import inspect
import json
import os
import re
import sys
import threading
import warnings

import pytest

torch = pytest.importorskip("torch")

import torch.profiler  # noqa: E402
from torch import nn  # noqa: E402

import sonde  # noqa: E402

CPU = [torch.profiler.ProfilerActivity.CPU]
HERE = os.path.basename(__file__)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.rest = nn.Sequential(nn.ReLU(), nn.Linear(4, 2))

    def forward(self, x):
        return self.rest(self.first(x))


def numbers():
    for i in range(3):
        yield i


def recurse(n):
    return n if n == 0 else recurse(n - 1)


def fail():
    raise ValueError


def work(model, x):
    model(x).sum().backward()
    recurse(4)
    try:
        fail()
    except ValueError:
        pass
    return sum(numbers())


def record(profile, path, **options):
    model, x = Net(), torch.randn(2, 4)
    work(model, x)
    with profile(activities=CPU, with_stack=True, **options) as prof:
        with torch.profiler.record_function("outer"):
            work(model, x)
    prof.export_chrome_trace(str(path))
    return prof, load(path)


def load(path):
    with open(path) as file:
        return json.load(file)["traceEvents"]


def functions_of(events):
    return [event for event in events if event.get("cat") == "python_function"]


def is_compared(name):
    """Not what the profilers do themselves, and not C functions, which torch names by address."""
    return (name.startswith("nn.Module: ") or HERE in name.split("(")[0] or
            name.startswith("torch/nn/modules/"))


def plain(name):
    """File and function: of what is resumed torch shows the line where it goes on."""
    return re.sub(r"\(\d+\)", "", name)


def is_harness(name):
    """The functions of this file that are around what is recorded."""
    return name.endswith((": record", ": <module>")) or ": test_" in name


def counts(events):
    return collections.Counter(plain(event["name"]) for event in functions_of(events)
                               if is_compared(event["name"]) and not is_harness(event["name"]))


def links(events):
    """(child, parent) by name, past functions that are not compared."""
    by_id = {(e["pid"], e["args"]["Python id"]): e for e in functions_of(events)}
    found = collections.Counter()
    for event in by_id.values():
        if not is_compared(event["name"]):
            continue
        above = by_id.get((event["pid"], event["args"].get("Python parent id")))
        while above is not None and not is_compared(above["name"]):
            above = by_id.get((above["pid"], above["args"].get("Python parent id")))
        if above is not None and not is_harness(above["name"]):
            found[plain(event["name"]), plain(above["name"])] += 1
    return found


@pytest.mark.parametrize("form", ["apart", "together"])
def test_the_same_calls_as_torch(form, tmp_path):
    if form == "apart":
        _, theirs = record(torch.profiler.profile, tmp_path / "torch.json")
        _, ours = record(sonde.profile, tmp_path / "sonde.json")
    else:
        with torch.profiler.profile(activities=CPU, with_stack=True) as outer:
            _, ours = record(sonde.profile, tmp_path / "sonde.json")
        outer.export_chrome_trace(str(tmp_path / "torch.json"))
        theirs = load(tmp_path / "torch.json")
        span = next(e for e in theirs if e.get("name") == "outer")
        inside = {e["args"]["Python id"] for e in functions_of(theirs)
                  if span["ts"] <= e["ts"] <= span["ts"] + span["dur"]}
        theirs = [e for e in theirs if e.get("cat") != "python_function"
                  or e["args"]["Python id"] in inside]
        span = next(e for e in ours if e.get("name") == "outer")
        ours = [e for e in ours if e.get("cat") != "python_function"
                or span["ts"] <= e["ts"] <= span["ts"] + span["dur"]]
    wanted = counts(theirs)
    assert wanted and counts(ours) == wanted
    assert any(name.startswith("nn.Module: Linear_1") for name in wanted)
    assert links(ours) == links(theirs)


def test_calls_and_ranges_of_a_thread_nest(tmp_path):
    """A range that outlives the function that opened it (record_function) ends neither late."""
    prof, events = record(sonde.profile, tmp_path / "trace.json")
    by_name = {event["name"].split("/")[-1]: event for event in functions_of(events)}
    enter = next(e for name, e in by_name.items() if name.endswith("__enter__"))
    called = next(e for name, e in by_name.items() if name.endswith(": work"))
    assert enter["ts"] + enter["dur"] <= called["ts"]
    threads = collections.defaultdict(list)
    for event in events:
        if event.get("cat") in ("python_function", "cpu_op"):
            threads[event["tid"]].append((event["ts"], -event["dur"], event["name"]))
    checked = 0
    for spans in threads.values():
        open_ends = []
        for start, negative, name in sorted(spans):
            while open_ends and open_ends[-1] <= start:
                open_ends.pop()
            if open_ends:
                assert start - negative <= open_ends[-1] + 0.002, name
                checked += 1
            open_ends.append(start - negative)
    assert checked > 50


def test_tables_do_not_have_them(tmp_path):
    """They are in no row, and take nothing from an operator's or a range's self time."""
    prof, _ = record(sonde.profile, tmp_path / "trace.json")
    rows = {row.key: row for row in prof.key_averages()}
    assert not any("(" in key for key in rows)
    outer = rows["outer"]
    children = sum(event.cpu_time_total for event in prof.events()
                   if event.cpu_parent is not None and event.cpu_parent.name == "outer")
    assert outer.self_cpu_time_total == pytest.approx(outer.cpu_time_total - children, abs=0.01)
    total = prof.key_averages().self_cpu_time_total
    assert total == pytest.approx(sum(row.self_cpu_time_total for row in rows.values()))


def test_events_have_them(tmp_path):
    prof, exported = record(sonde.profile, tmp_path / "trace.json")
    found = [event for event in prof.events() if event.is_python_function]
    assert len(found) == len(functions_of(exported))
    by_id = {event.python_id: event for event in found}
    assert len(by_id) == len(found)
    module = next(event for event in found if event.name == "nn.Module: Linear_1")
    assert module.python_module_id == 1 and module.activity_type == "python_function"
    above = by_id[module.python_parent_id]
    assert above.time_range.start <= module.time_range.start
    assert above.time_range.end >= module.time_range.end
    assert module.cpu_parent == above
    inner = [event for event in found if event.python_parent_id == above.python_id]
    spent = above.cpu_time_total - sum(event.cpu_time_total for event in inner)
    assert above.self_cpu_time_total == pytest.approx(spent, abs=0.01)
    operator = next(event for event in prof.events() if event.name == "aten::linear")
    assert not operator.is_python_function and operator.python_id == -1
    averages = {row.key: row for row in prof.key_averages(include_python_functions=True)}
    assert averages["nn.Module: Linear_1"].count == 1
    assert sum(row.count for key, row in averages.items() if key.endswith(": recurse")) == 5
    assert sum(row.count for key, row in averages.items() if key.endswith(": numbers")) == 4


def test_without_the_option_there_are_none(tmp_path):
    with sonde.profile(activities=CPU) as prof:
        recurse(3)
        torch.ones(2) + 1
    assert not any(event.is_python_function for event in prof.events())


def test_each_cycle_has_its_own(tmp_path):
    seen = []

    def keep(prof):
        seen.append([e.name for e in prof.events() if e.is_python_function])

    with sonde.profile(activities=CPU, with_stack=True, on_trace_ready=keep,
                       schedule=sonde.schedule(wait=1, warmup=1, active=1, repeat=2)) as prof:
        for step in range(6):
            recurse(step)
            torch.ones(2) + 1
            prof.step()
    assert [sum(name.endswith(": recurse") for name in names) for names in seen] == [3, 6]


def test_threads_that_are_in_a_call_already(tmp_path):
    """What a thread had open when it began, and when it ended, is there."""
    began, go, done = threading.Event(), threading.Event(), threading.Event()

    def waits():
        began.set()
        go.wait()
        recurse(2)
        done.set()
        stay.wait()

    stay = threading.Event()
    thread = threading.Thread(target=waits)
    thread.start()
    began.wait()
    with sonde.profile(activities=CPU, with_stack=True) as prof:
        go.set()
        done.wait()
        torch.ones(2) + 1
    stay.set()
    thread.join()
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    mine = [e for e in functions_of(load(path)) if e["tid"] == thread.native_id]
    names = [event["name"] for event in mine]
    assert sum(name.endswith(": recurse") for name in names) == 3
    opened = next(event for event in mine if event["name"].endswith(": waits"))
    inner = next(event for event in mine if event["name"].endswith(": recurse"))
    assert opened["ts"] <= inner["ts"]
    assert opened["ts"] + opened["dur"] >= inner["ts"] + inner["dur"]


def test_garbage_collections(tmp_path):
    config = pytest.importorskip("torch._C._profiler")._ExperimentalConfig
    try:
        asked = config(record_python_gc_info=True)
    except TypeError:
        pytest.skip("this torch does not record garbage collections")

    def collect(profile, path, **options):
        with profile(activities=CPU, with_stack=True, **options) as prof:
            torch.ones(2) + 1
            gc.collect()
        prof.export_chrome_trace(str(path))
        return [e for e in load(path) if e.get("name") == "Python GC"]

    gc.disable()
    try:
        theirs = collect(torch.profiler.profile, tmp_path / "torch.json", experimental_config=asked)
        ours = collect(sonde.profile, tmp_path / "sonde.json", experimental_config=asked)
        assert len(theirs) == len(ours) == 1
        assert ours[0]["cat"] == theirs[0]["cat"] and ours[0]["dur"] > 0
        assert collect(sonde.profile, tmp_path / "none.json") == []
    finally:
        gc.enable()
    assert not any("sonde" in repr(callback) for callback in gc.callbacks)


def test_where_calls_are_recorded_already():
    with sonde.functions():
        with pytest.warns(UserWarning, match="adds no Python functions"):
            with sonde.profile(activities=CPU, with_stack=True) as prof:
                torch.ones(2) + 1
    assert not any(event.is_python_function for event in prof.events())
    with sonde.profile(activities=CPU, with_stack=True) as prof:
        with pytest.raises(RuntimeError, match="with_stack=True is recording"):
            sonde.functions().__enter__()
        recurse(2)
    assert sum(event.name.endswith(": recurse") for event in prof.events()) == 3


def test_the_module_view_of_tensorboard(tmp_path):
    data = pytest.importorskip("torch_tb_profiler.profiler.data", reason="torch-tb-profiler is not "
                               "installed")
    cache = pytest.importorskip("torch_tb_profiler.io.cache")
    names = {}
    for name, profile in (("torch", torch.profiler.profile), ("sonde", sonde.profile)):
        path = tmp_path / f"{name}.pt.trace.json"
        record(profile, path)
        run = data.RunProfileData.parse(name, "", str(path), cache.Cache(str(tmp_path)))
        run.process()
        names[name] = [(stats.name, stats.occurences) for stats in run.pl_tree.children] \
            if getattr(run, "pl_tree", None) else [module_shape(root) for root in modules_of(run)]
    assert names["torch"] and names["sonde"] == names["torch"]


def modules_of(run):
    from torch_tb_profiler.profiler.module_op import aggegate_module_view
    stats = aggegate_module_view(run.tid2tree, run.events)
    return stats[0] if isinstance(stats, tuple) else stats


def module_shape(node):
    return (node.name, node.occurences, [module_shape(child) for child in node.children])


def depths_in_hta(folder):
    """How deep HTA's call graph has the model's linear layers."""
    from hta.common.trace import Trace
    from hta.common.trace_call_graph import CallGraph
    trace = Trace(trace_dir=str(folder))
    trace.parse_traces(use_multiprocessing=False)
    graph = CallGraph(trace, ranks=[0])
    table, names = trace.get_trace(0), trace.symbol_table.get_sym_table()
    linear = {i for i, symbol in zip(table.index, table["name"]) if names[symbol] == "aten::linear"}
    return sorted(node.depth for stack in graph.call_stacks
                  for i, node in stack.nodes.items() if i in linear)


@pytest.fixture
def hta_with_new_pandas(monkeypatch):
    """HTA 0.5 makes an array of objects with pandas 3, which numpy.unique refuses by rows."""
    pytest.importorskip("hta")
    import numpy
    unique = numpy.unique
    monkeypatch.setattr(numpy, "unique", lambda array, *args, **kwargs: unique(
        array.astype(float) if getattr(array, "dtype", None) == object else array, *args, **kwargs))


def test_the_call_graph_of_hta(tmp_path, hta_with_new_pandas):
    """HTA rounds what is shorter than a microsecond to a duration of -1, which its call graph then
    refuses, in torch's traces as in ours: both are given to it without those."""
    depths = {}
    for name, profile in (("torch", torch.profiler.profile), ("sonde", sonde.profile)):
        folder = tmp_path / name
        folder.mkdir()
        record(profile, folder / "all.json")
        with open(folder / "all.json") as file:
            trace = json.load(file)
        os.remove(folder / "all.json")
        trace["traceEvents"] = [event for event in trace["traceEvents"]
                                if event.get("ph") != "X" or event.get("dur", 0) >= 2]
        trace["distributedInfo"] = {"rank": 0}
        (folder / "rank0.json").write_text(json.dumps(trace))
        depths[name] = depths_in_hta(folder)
    assert len(depths["sonde"]) == 2 and min(depths["sonde"]) > 3
    assert depths["sonde"] == depths["torch"]


# ------------------------------------------------------------- frames that were open, deep stacks

def open_main(profile, path):
    x = torch.ones(3)
    return open_inner(profile, x,
                      path)


def open_inner(profile, x, path):
    verbose = torch._C._profiler._ExperimentalConfig(verbose=True)
    with profile(activities=CPU, with_stack=True, experimental_config=verbose) as prof:
        open_never(x)
        x.cos()
    prof.export_chrome_trace(str(path))
    calls = sorted(event["name"] for event in load(path)
                   if event.get("cat") == "python_function" and ": open_" in event["name"])
    return calls, [[frame for frame in event.stack if ": open_" in frame]
                   for event in prof.events() if event.name in ("aten::sin", "aten::cos")]


def open_never(x):
    return x.sin()


def test_frames_that_were_open_have_the_line_that_they_are_in(tmp_path):
    """On the timeline and in the stacks of operators; one that is called later has that of its definition."""
    theirs = open_main(torch.profiler.profile, tmp_path / "torch.json")
    ours = open_main(sonde.profile, tmp_path / "sonde.json")
    assert ours == theirs and [len(stack) for stack in ours[1]] == [3, 2]


class Scripted(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        y = self.fc(x)
        return torch.relu(y)


def test_stacks_inside_torchscript(tmp_path):
    """The lines of the script are those of torch; ours have the Python frames around them besides."""
    verbose = torch._C._profiler._ExperimentalConfig(verbose=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scripted = torch.jit.script(Scripted())
    x, found = torch.ones(2, 4), []
    for _ in range(3):
        scripted(x)
    for profile in (torch.profiler.profile, sonde.profile):
        with profile(activities=CPU, with_stack=True, experimental_config=verbose) as prof:
            scripted(x)
        found.append({event.name: [re.sub(r".*/", "", frame) for frame in event.stack]
                      for event in prof.events() if event.name in ("aten::linear", "aten::relu")})
    theirs, ours = found
    assert {name: stack[:len(theirs[name])] for name, stack in ours.items()} == theirs
    assert len(theirs["aten::linear"]) == 2
    assert all("nn.Module: RecursiveScriptModule_0" in stack for stack in ours.values())


def dive(depth, x):
    return x.sin() if depth == 0 else dive(depth - 1, x)


@pytest.mark.parametrize("depth,is_cut", [(300, False), (900, False), (1100, True)])
def test_stacks_are_whole_up_to_a_limit_that_is_stated(depth, is_cut, tmp_path):
    limit, x = sys.getrecursionlimit(), torch.ones(3)
    sys.setrecursionlimit(3000)
    try:
        with sonde.profile(activities=CPU, with_stack=True) as prof:
            dive(depth, x)
    finally:
        sys.setrecursionlimit(limit)
    stack = next(event.stack for event in prof.events() if event.name == "aten::sin")
    assert sum(frame.endswith(": dive") for frame in stack) == (1024 if is_cut else depth + 1)
    assert (stack[-1] == "(outer frames left out)") == is_cut
    assert [key for key, _count, _text in prof.ledger() if key == "deep_stacks"] == ["deep_stacks"] * is_cut
    prof.export_chrome_trace(str(tmp_path / "t.json"))
    shown = next(event["args"]["Call stack"] for event in load(tmp_path / "t.json")
                 if event.get("name") == "aten::sin")
    assert shown.count(": dive;") == (1024 if is_cut else depth + 1)


# ------------------------------------------------------------------------ memory of Python functions

def take_and_free():
    kept = torch.ones(1000)
    del kept
    return torch.ones(500)


def test_memory_in_a_function_is_the_functions():
    """As torch: no row [memory], and the function has what was freed between its operators."""
    found = []
    for profile in (torch.profiler.profile, sonde.profile):
        with profile(activities=CPU, with_stack=True, profile_memory=True) as prof:
            held = take_and_free()
        del held
        rows = prof.key_averages()
        functions = {re.sub(r".*: ", "", event.name): (event.cpu_memory_usage, event.self_cpu_memory_usage)
                     for event in prof.events() if event.name.endswith(": take_and_free")}
        found.append(([row.key for row in rows if row.key == "[memory]"], functions))
    assert found[0] == found[1] == ([], {"take_and_free": (2000, -4000)})


def test_the_table_with_functions_has_the_columns_of_memory():
    with sonde.profile(activities=CPU, with_stack=True, profile_memory=True) as prof:
        take_and_free()
    if "include_python_functions" not in inspect.signature(torch.profiler.profile.key_averages).parameters:
        pytest.skip("this torch has no include_python_functions")
    rows = prof.key_averages(include_python_functions=True)
    assert "Self CPU Mem" in rows.table() and any(row.key.endswith(": take_and_free") for row in rows)
