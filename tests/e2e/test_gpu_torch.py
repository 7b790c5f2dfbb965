# SPDX-License-Identifier: Apache-2.0
"""What torch.profiler shows of a GPU, to the byte: tables, and every attribute of rows and events.

tests/data/gpu has what torch 2.11 said of five programs on an H200; torch_gpu_traces.py makes traces of sonde
from its Chrome traces, so that both show the same events.

torch 2.11 counts some kernels twice: "Activity Buffer Request", the time that CUPTI took for itself,
has the number of the operator around it, and so its kernels as well. Later versions of torch do
not, nor do we. What torch shows without that is made by torch's own code from torch's own events
(`mended`), once it is seen that the same code makes torch's tables from them as they are.
"""
import math
import re
import warnings
from fractions import Fraction

import pytest

import torch_gpu_traces
from cli_tools import read
from torch_gpu_traces import NAMES, convert, needs_gen_lines, original

torch = pytest.importorskip("torch", reason="torch is not installed: nothing to compare with")
from torch.autograd import DeviceType, profiler_util  # noqa: E402

import sonde  # noqa: E402
from sonde.torch._lists import EventList, Events  # noqa: E402

if not hasattr(profiler_util.FunctionEventAvg(), "overload_name"):
    pytest.skip("this torch has another table", allow_module_level=True)
if profiler_util._format_memory(1024) != "1.00 KB":
    pytest.skip("this torch prints Kb, not KB", allow_module_level=True)

pytestmark = needs_gen_lines
OVERHEAD = "Activity Buffer Request"


@pytest.fixture(scope="module", params=["recorded", "imported"])
def traces(request, tmp_path_factory):
    """Traces as the probes would have recorded them, and torch's own files as they are."""
    folder = tmp_path_factory.mktemp("gpu")
    make = convert if request.param == "recorded" else original
    return {name: make(name, folder) for name in NAMES}


class Result:
    """Stands for a profile."""

    def __init__(self, path, name):
        options = torch_gpu_traces.load(name, "trace")
        self.opened = sonde.Trace(str(path))
        self.flops = "torch" if options.get("with_flops") else "none"
        self.columns = {"profile_memory": bool(options.get("profile_memory")),
                        "with_flops": bool(options.get("with_flops"))}

    def key_averages(self, by_shape=False, stack_depth=0):
        return EventList(self.opened.averages(by_shape, stack_depth, flops=self.flops), self)

    def events(self):
        return Events(self.opened.events(flops=self.flops), self)


# ------------------------------------------------------------------- torch's own, again

def rebuilt(name, mended):
    """torch's list of events, from what it said of each; its own code does the rest."""
    stored = torch_gpu_traces.load(name, "events")["events"]
    options = torch_gpu_traces.load(name, "trace")
    rows = profiler_util.EventList(use_device="cuda", profile_memory=bool(options.get("profile_memory")),
                                   with_flops=bool(options.get("with_flops")))
    for row in stored:
        event = profiler_util.FunctionEvent(
            id=row["id"], name=row["name"], overload_name=row["overload_name"], thread=row["thread"],
            start_us=row["start_us"], end_us=row["end_us"], input_shapes=row["input_shapes"], stack=[],
            use_device=row["use_device"], cpu_memory_usage=row["cpu_memory_usage"],
            device_memory_usage=row["device_memory_usage"], is_async=row["is_async"],
            sequence_nr=row["sequence_nr"], device_index=row["device_index"],
            device_type=getattr(DeviceType, row["device_type"].split(".")[1]), flops=row["flops"],
            is_user_annotation=row["is_user_annotation"], is_legacy=row["is_legacy"],
            device_resource_id=row["device_resource_id"])
        if not (mended and row["name"] == OVERHEAD):
            event.kernels = [profiler_util.Kernel(*kernel) for kernel in row["kernels"]]
        rows.append(event)
    rows._populate_cpu_children()
    rows._tree_built = True
    return rows


def call(what, averages, events):
    """What `key_averages().table({...})` and its like come to."""
    if what == "events().table()":
        return events().table(row_limit=40)
    m = re.fullmatch(r"key_averages\((.*)\)\.table\((.*)\)", what)
    groups = eval(m[1] or "{}")
    options = dict(sort_by="cuda_time_total", row_limit=12) if m[1] else eval(m[2])
    return averages(groups.get("group_by_input_shape", False),
                    groups.get("group_by_stack_n", 0)).table(**options)


def rows_of(what, ours):
    """The rows of that table."""
    if what == "events().table()":
        return ours.events()
    return ours.key_averages("shape" in what, 3 if "stack" in what else 0)


def same(text):
    return text.rstrip("\n")


UNITS = {"us": 1000, "ms": 10 ** 6, "s": 10 ** 9, "%": 1}


def is_tie(ours, theirs, rows):
    """Two texts of a mean that lies exactly between them: torch's floats fall to either side."""
    a, b = (re.fullmatch(r"(\d+\.\d+)(us|ms|s)", text) for text in (ours, theirs))
    if not (a and b and a[2] == b[2]):
        return False
    low, high = sorted(Fraction(m[1]) * UNITS[m[2]] for m in (a, b))
    means = {Fraction(round(total * 1000), row.count) for row in rows
             for total in (row.cpu_time_total, row.device_time_total)}
    return high - low == Fraction(UNITS[a[2]], 1000) and (low + high) / 2 in means


def assert_same(ours, theirs, rows):
    """To the byte, but for such ties."""
    if ours == theirs:
        return
    pieces = [re.split(r"(\s+)", text) for text in (ours, theirs)]
    assert len(pieces[0]) == len(pieces[1]), "the tables differ in their form"
    different = [(a, b) for a, b in zip(*pieces) if a != b and not is_tie(a, b, rows)]
    assert not different, different[:5]


TABLES = [(name, what) for name in NAMES for what, _ in torch_gpu_traces.tables(name)]


@pytest.mark.parametrize("name,what", TABLES, ids=[f"{n}-{i}" for i, (n, _) in enumerate(TABLES)])
def test_tables(traces, name, what):
    printed = dict(torch_gpu_traces.tables(name))[what]
    theirs, mended, ours = rebuilt(name, False), rebuilt(name, True), Result(traces[name], name)
    if printed.startswith("raises"):  # torch 2.11 cannot show FLOPs of memory: we can
        assert "Self CUDA time total" in call(what, ours.key_averages, ours.events)
        return
    assert same(call(what, theirs.key_averages, lambda: theirs)) == same(printed)
    wanted = call(what, mended.key_averages, lambda: mended)
    assert_same(call(what, ours.key_averages, ours.events), wanted, rows_of(what, ours))
    if name in ("graph", "compile"):  # no kernel is counted twice there
        assert same(wanted) == same(printed)


SORT_KEYS = ["cuda_time", "cuda_time_total", "device_time", "device_time_total", "self_cuda_time_total",
             "self_device_time_total", "cuda_memory_usage", "self_cuda_memory_usage", "xpu_time_total",
             "device_memory_usage", "self_device_memory_usage", "count", "key", "cpu_time", "flops"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("unit", [None, "us", "ms", "s"])
def test_sort_keys(traces, name, unit):
    mended, ours = rebuilt(name, True).key_averages(), Result(traces[name], name).key_averages()
    for key in SORT_KEYS:
        options = dict(sort_by=key, time_unit=unit, row_limit=-1)
        assert_same(ours.table(**options), mended.table(**options), ours)


def test_bad_sort_key(traces):
    ours, theirs = Result(traces["train"], "train").key_averages(), rebuilt("train", True).key_averages()
    for rows in (ours, theirs):
        with pytest.raises(AttributeError):
            rows.table(sort_by="cuda_tim")


@pytest.mark.parametrize("name", NAMES)
def test_report_is_the_same_table(traces, name):
    """The command line's table is Python's."""
    ours = Result(traces[name], name)
    text = read("report", "--view", "ops", "--sort", "cuda_time_total", "--rows", "1000", "--flops",
                ours.flops, traces[name]).decode()
    assert re.sub(r"ledger: .*\n$", "", text) == ours.key_averages().table(sort_by="cuda_time_total",
                                                                         row_limit=1000)


# -------------------------------------------------------------------------- attributes

def close(ours, theirs):
    """Equal; times are differences of floats with torch, and whole nanoseconds with us."""
    if isinstance(theirs, float) or isinstance(ours, float):
        return math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-6)
    return ours == theirs


SKIPPED = {"id", "parent", "kernels", "start_us", "end_us", "device_type", "flops"}


def differences(ours, theirs, index):
    for key, value in theirs.items():
        if key in SKIPPED:
            continue
        own = getattr(ours, key)
        if not close(own, value):
            yield index, theirs["name" if "name" in theirs else "key"], key, own, value
    if f"DeviceType.{ours.device_type.name}" != theirs["device_type"]:
        yield index, "device_type", ours.device_type, theirs["device_type"]
    if (ours.flops or 0) != (theirs.get("flops") or 0):
        yield index, "flops", ours.flops, theirs.get("flops")


def doubled(name):
    """Events of the stored list whose times have the overhead's kernels in them: it, and what is around it."""
    stored = torch_gpu_traces.load(name, "events")["events"]
    found = set()
    for i, row in enumerate(stored):
        if row["name"] == OVERHEAD and row["kernels"]:
            found.add(i)
            found |= {k for k, outer in enumerate(stored) if outer["device_type"] == "DeviceType.CPU" and
                      outer["thread"] == row["thread"] and outer["start_us"] <= row["start_us"] and
                      outer["end_us"] >= row["end_us"]}
    return found


@pytest.mark.parametrize("name", NAMES)
def test_events(traces, name):
    stored = torch_gpu_traces.load(name, "events")["events"]
    ours, wrong, found = Result(traces[name], name).events(), doubled(name), []
    assert len(ours) == len(stored)
    for i, (own, theirs) in enumerate(zip(ours, stored)):
        for difference in differences(own, theirs, i):
            if not (i in wrong and difference[2] in ("device_time_total", "device_time",
                                                     "self_device_time_total")):
                found.append(difference)
        if not (close(own.time_range.start, theirs["start_us"]) and
                close(own.time_range.end, theirs["end_us"])):
            found.append((i, own.name, "time_range", own.time_range.start, theirs["start_us"]))
        kernels = [] if theirs["name"] == OVERHEAD else theirs["kernels"]
        if [k[:2] for k in own.kernels] != [tuple(k[:2]) for k in kernels] or \
                not all(close(a.duration, b[2]) for a, b in zip(own.kernels, kernels)):
            found.append((i, own.name, "kernels", own.kernels, kernels))
        parent = own.cpu_parent
        if (None if parent is None else stored[parent.index]["id"]) != theirs.get("parent"):
            found.append((i, own.name, "parent", parent, theirs.get("parent")))
        if own.activity_type in ("kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "cuda_driver") and \
                own.id != theirs["id"]:
            found.append((i, own.name, "id", own.id, theirs["id"]))
    assert not found, found[:10]


def test_stacks(tmp_path):
    """Of calls of CUDA as of operators, and of both in a backward pass: by torch's own code (_set_backward_stacktraces).

    Before it, an event of torch's has the Python functions around its operator, a call of CUDA that of the operator
    that it is linked to. torch has them with an experimental option alone, so that they are not in the stored events.
    """
    name = "train_stack"
    converter = torch_gpu_traces.Converter(name)
    around = {(e["tid"], converter.when(e), e["name"]): [f"{file}({line}): {function}" for file, line, function in
                                                        converter.frames_around(e)] for e in converter.of("cpu_op")}
    tids = {number: tid for tid, number in enumerate_threads(converter)}
    ours = [e for e in Result(convert(name, tmp_path, stacks=True), name).events() if e.device_type.name == "CPU"]
    theirs = profiler_util.EventList()
    for e in ours:
        start = e.time_range.start
        own = around.get((tids[e.thread], round(start * 1000), e.name), [])
        if e.activity_type in ("cuda_runtime", "cuda_driver"):
            parent = e.cpu_parent
            while parent is not None and parent.is_user_annotation:
                parent = parent.cpu_parent
            own = [] if parent is None else around[tids[e.thread], round(parent.time_range.start * 1000), parent.name]
        theirs.append(profiler_util.FunctionEvent(
            id=len(theirs), name=e.name, thread=e.thread, start_us=start, end_us=e.time_range.end,
            stack=[entry for entry in own if profiler_util._filter_stack_entry(entry)],
            scope=e.scope, fwd_thread=e.fwd_thread, sequence_nr=e.sequence_nr, use_device="cuda"))
    theirs._populate_cpu_children()
    theirs._set_backward_stacktraces()
    assert [list(e.stack) for e in ours] == [e.stack for e in theirs]
    backward = [e for e in ours if e.activity_type == "cuda_runtime" and e.stack and e.thread != ours[0].thread]
    assert len(backward) > 10


def enumerate_threads(converter):
    """(tid, torch's number) of each thread."""
    names = sorted({e["tid"] for e in converter.of("cpu_op", "user_annotation")}, key=lambda tid: tid != converter.pid)
    return [(tid, number + 1) for number, tid in enumerate(names)]


@pytest.mark.parametrize("name", NAMES)
def test_averages(traces, name):
    stored = torch_gpu_traces.load(name, "events")
    mended = rebuilt(name, True).key_averages()
    ours = Result(traces[name], name).key_averages()
    assert len(ours) == len(stored["averages"])
    found = []
    for i, (own, theirs, right) in enumerate(zip(ours, stored["averages"], mended)):
        theirs = dict(theirs)
        for key in ("device_time_total", "self_device_time_total", "device_time"):
            theirs[key] = getattr(right, key)
        found += differences(own, theirs, i)
        assert own.use_device == "cuda"
        assert (own.cpu_parent is None) == (own.cpu_parent is None)
    assert not found, found[:10]
    assert close(ours.self_cpu_time_total, stored["self_cpu_time_total"])
    total, right = ours.total_average(), mended.total_average()
    theirs = {**stored["total_average"], "device_time_total": right.device_time_total,
              "self_device_time_total": right.self_device_time_total, "device_time": right.device_time}
    assert not list(differences(total, theirs, 0))


@pytest.mark.parametrize("attribute", ["cuda_time", "cuda_time_total", "self_cuda_time_total",
                                       "self_cuda_memory_usage"])
def test_deprecated_names(traces, attribute):
    """The same warning as torch's, and the same number."""
    ours, theirs = Result(traces["train"], "train").events()[4], rebuilt("train", True)[4]
    messages = []
    for event in (ours, theirs):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            value = getattr(event, attribute)
        messages.append([(w.category, str(w.message)) for w in caught])
        assert close(value, getattr(ours, attribute.replace("cuda", "device")))
    assert messages[0] == messages[1] and messages[0]
