# SPDX-License-Identifier: Apache-2.0
"""table(): our numbers, printed by torch's own code, are the same text, byte for byte.

Where torch is wrong, ours is right, and the tests at the end say so.
"""
import inspect
import itertools

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: nothing to compare with")

import torch.profiler  # noqa: E402
from torch.autograd import DeviceType, profiler_util  # noqa: E402
from torch_tools import CPU, quiet, training  # noqa: E402

import sonde  # noqa: E402

if profiler_util._format_memory(1024) != "1.00 KB":
    pytest.skip("this torch prints Kb, not KB", allow_module_level=True)

SORT_KEYS = [None, "cpu_time", "cpu_time_total", "self_cpu_time_total", "cuda_time",
             "cuda_time_total", "self_cuda_time_total", "device_time_total", "cpu_memory_usage",
             "self_cpu_memory_usage", "cuda_memory_usage", "self_cuda_memory_usage", "count",
             "flops", "key", "xpu_time_total"]
# What was recorded decides the columns; each set is a recording of its own.
OPTIONS = [dict(zip(("record_shapes", "profile_memory", "with_flops", "with_stack"), on))
           for on in itertools.product((False, True), repeat=4)]


def name_of(options):
    return "+".join(word for word, on in options.items() if on) or "plain"


def record(options):
    run = training()
    run()
    config = torch._C._profiler._ExperimentalConfig(capture_overload_names=True)
    options = {**options, "with_flops": "torch" if options["with_flops"] else False}
    with quiet(), sonde.profile(activities=[CPU], experimental_config=config, **options) as prof:
        run()
        with sonde.record_function("a name that is longer than the column of names is wide, ünïcode"):
            run()
    return prof


@pytest.fixture(scope="module")
def recorded():
    made = {}

    def get(options):
        if name_of(options) not in made:
            made[name_of(options)] = record(options)
        return made[name_of(options)]

    return get


def theirs_of(averages, options):
    """torch's objects, filled with our numbers."""
    events = profiler_util.EventList(use_device=None, profile_memory=options["profile_memory"],
                                     with_flops=options["with_flops"])
    for row in averages:
        event = profiler_util.FunctionEventAvg()
        for field in ("key", "count", "node_id", "is_async", "is_remote", "cpu_time_total",
                      "device_time_total", "self_cpu_time_total", "self_device_time_total",
                      "input_shapes", "overload_name", "stack", "scope", "cpu_memory_usage",
                      "device_memory_usage", "self_cpu_memory_usage", "self_device_memory_usage",
                      "flops", "is_user_annotation"):
            setattr(event, field, getattr(row, field))
        event.cpu_parent = object() if row.has_parent else None
        event.device_type = DeviceType.CPU
        event.use_device = None
        events.append(event)
    return events


def compare(prof, options, groups=None, **table_options):
    averages = prof.key_averages(**(groups or {}))
    theirs = theirs_of(averages, options)
    swapped = any(row.stack for row in theirs) and options["with_flops"]
    if swapped:  # torch puts each of the two under the other's header: compare the rest
        theirs._with_flops = False
    ours = averages.table(**table_options)
    if swapped:
        ours = without_flops(ours)
    assert ours == theirs.table(**table_options)


def without_flops(text):
    """The table less its last column (12 wide, 2 blanks); title and footer have no columns."""
    lines = text.splitlines(keepends=True)
    rule = next(line for line in lines if line.startswith("---"))
    return "".join(line[:-15] + "\n" if len(line) == len(rule) and line[-3:] == "  \n" or
                   set(line) == set("=\n") and len(line) == len(rule) - 2
                   else line for line in lines)


@pytest.mark.parametrize("options", OPTIONS, ids=name_of)
@pytest.mark.parametrize("groups", [
    {}, {"group_by_input_shape": True}, {"group_by_stack_n": 3}, {"group_by_overload_name": True},
    {"group_by_input_shape": True, "group_by_stack_n": 2, "group_by_overload_name": True}],
    ids=lambda groups: "+".join(groups) or "name")
def test_columns(recorded, options, groups):
    prof = recorded(options)
    for key in ("self_cpu_time_total", None):
        compare(prof, options, groups, sort_by=key)
        compare(prof, options, groups, sort_by=key, row_limit=-1)


@pytest.mark.parametrize("key", SORT_KEYS)
def test_sort_keys(recorded, key):
    compare(recorded(OPTIONS[-2]), OPTIONS[-2], sort_by=key, row_limit=-1)


@pytest.mark.parametrize("limit", [-1, 0, 1, 7, 100, 10000])
def test_row_limits(recorded, limit):
    compare(recorded(OPTIONS[-2]), OPTIONS[-2], row_limit=limit, sort_by="count")


@pytest.mark.parametrize("unit", [None, "us", "ms", "s"])
@pytest.mark.parametrize("header", [None, "A title"])
@pytest.mark.parametrize("top", [False, True])
def test_units_titles_top_level(recorded, unit, header, top):
    options = {"time_unit": unit} if unit else {}
    if unit and "time_unit" not in inspect.signature(profiler_util.EventList.table).parameters:
        pytest.skip("this torch's tables have no time_unit")
    compare(recorded(OPTIONS[0]), OPTIONS[0], header=header, top_level_events_only=top, **options)


@pytest.mark.parametrize("name", [None, 8, 20, 200])
@pytest.mark.parametrize("shapes", [None, 9, 30])
@pytest.mark.parametrize("source", [None, 8, 40])
def test_widths(recorded, name, shapes, source):
    options = dict(OPTIONS[-1], with_flops=False)
    compare(recorded(options), options, {"group_by_input_shape": True, "group_by_stack_n": 2},
            max_name_column_width=name, max_shapes_column_width=shapes,
            max_src_column_width=source)


def test_wrong_sort_key(recorded):
    with pytest.raises((AttributeError, sonde.Error)) as caught:
        recorded(OPTIONS[0]).key_averages().table(sort_by="nothing")
    assert "nothing" in str(caught.value)


def test_nothing_recorded_prints_nothing():
    with sonde.profile(activities=[CPU]) as prof:
        pass
    assert prof.key_averages().table() == "" == profiler_util.EventList().table()


def test_a_list_that_was_changed_prints_its_rows(recorded):
    averages = recorded(OPTIONS[0]).key_averages()
    averages.sort(key=lambda row: row.key)
    theirs = theirs_of(averages, OPTIONS[0])
    assert averages.table() == theirs.table()
    assert averages[0].key == min(row.key for row in averages)


def test_events_as_rows(recorded):
    """events().table(): every event a row, as torch prints its list of events."""
    options = dict(OPTIONS[0])
    events = recorded(options).events()
    rows = profiler_util.EventList(use_device=None)
    for event in events:
        row = profiler_util.FunctionEvent(event.id, event.name, event.thread,
                                          event.time_range.start, event.time_range.end,
                                          overload_name=event.overload_name, input_shapes=[],
                                          stack=[], scope=event.scope, flops=0)
        rows.append(row)
    for row, event in zip(rows, events):
        row.cpu_children = [rows[child.index] for child in event.cpu_children]
    assert events.table(row_limit=20).splitlines()[2:] == rows.table(row_limit=20).splitlines()[2:]


# --------------------------------------------------------------- where torch is wrong

def cells(line, header):
    """The line's texts by column; columns are two blanks apart, right-aligned but for the last."""
    found, at = {}, 0
    for dashes in header.split("  "):
        if dashes:
            found[len(found)] = line[at:at + len(dashes)].strip()
            at += len(dashes) + 2
    return list(found.values())


def test_stacks_and_flops_are_under_their_own_headers(recorded):
    """torch appends the two values the other way round than their headers."""
    prof = recorded(OPTIONS[-1])
    text = prof.key_averages(group_by_stack_n=2).table(sort_by="flops", row_limit=1)
    rule, header, _, row = text.splitlines()[:4]
    names, values = cells(header, rule), cells(row, rule)
    flops = next(n for n, name in enumerate(names) if "FLOPs" in name)
    source = names.index("Source Location")
    assert float(values[flops]) > 0
    assert values[source].startswith("<built-in method conv2d")  # the function in C that was called, as torch has it


def test_top_level_with_stacks(recorded):
    """torch hangs every operator under Python frames then, and so shows none."""
    prof = recorded(dict(OPTIONS[0], with_stack=True))
    text = prof.key_averages().table(top_level_events_only=True)
    assert "aten::conv2d" in text and "aten::convolution" not in text
    run = training()
    with quiet(), torch.profiler.profile(activities=[CPU], with_stack=True) as theirs:
        run()
    newer = tuple(int(part) for part in torch.__version__.split(".")[:2]) > (2, 11)
    if newer and "aten::conv2d" in theirs.key_averages().table(top_level_events_only=True):
        pytest.fail("torch does it right now: the docs should not say otherwise")


def test_names_are_kept(tmp_path):
    """Not ASCII, quotes, newlines: torch's Chrome trace says "unknown" or changes them."""
    import json
    names = ["ünïcode 名前", 'with "quotes" and \\', "two\nlines", "tab\there", "x" * 300]
    with sonde.profile(activities=[CPU]) as prof:
        for name in names:
            with sonde.record_function(name):
                pass
    assert [event.name for event in prof.events()] == names
    prof.export_chrome_trace(str(tmp_path / "t.json"))
    events = json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))["traceEvents"]
    assert [event["name"] for event in events if event.get("cat") == "user_annotation"] == names


def test_stacks_are_exported(tmp_path):
    """torch writes an empty file unless an experimental option is set."""
    run = training()
    with sonde.profile(activities=[CPU], with_stack=True) as ours:
        for _ in range(20):
            run()
    ours.export_stacks(str(tmp_path / "ours"), "self_cpu_time_total")
    lines = (tmp_path / "ours").read_text().splitlines()
    assert any("torch_tools.py" in line and line.split(" ")[-1].isdigit() for line in lines)
    with quiet(), torch.profiler.profile(activities=[CPU], with_stack=True) as theirs:
        run()
    theirs.export_stacks(str(tmp_path / "theirs"), "self_cpu_time_total")
    if (tmp_path / "theirs").stat().st_size > 0:
        pytest.fail("torch does it right now: the docs should not say otherwise")


def test_events_table_with_flops_and_memory():
    """torch raises TypeError here."""
    x = torch.randn(8, 8)
    with sonde.profile(activities=[CPU], with_flops=True, profile_memory=True) as prof:
        x.mm(x)
    assert "aten::mm" in prof.events().table()


def test_ranges_in_ranges_of_the_same_name_count_as_torch_counts_them():
    """torch folds an only child of the same name, record_function's too."""
    def work(mark):
        with mark("outer"), mark("outer"):
            torch.ones(2)
        with mark("outer"):
            with mark("outer"):
                torch.ones(2)
            with mark("outer"):
                torch.ones(2)

    with quiet(), torch.profiler.profile(activities=[CPU]) as theirs:
        work(torch.profiler.record_function)
    with quiet(), sonde.profile(activities=[CPU]) as ours:
        work(torch.profiler.record_function)

    def calls(prof):
        return {row.key: row.count for row in prof.key_averages() if row.key == "outer"}

    assert calls(ours) == calls(theirs) == {"outer": 4}


def test_each_flops_cell_has_its_unit():
    """Counted in full, some operators do a million times what others do; torch has one unit."""
    x = torch.randn(700, 700)
    with sonde.profile(activities=[CPU], with_flops=True) as prof:
        x.mm(x)
        x.add(x)
        torch.ones(3).add(1)
        torch.ones(5).mul(1)
    table = prof.key_averages().table()
    cells = {line.split()[0]: line for line in table.splitlines() if line.lstrip().startswith("aten::")}
    assert "Total FLOPs" in table
    assert cells["aten::mm"].rstrip().endswith(" 686.000 M")
    assert cells["aten::add"].rstrip().endswith(" 490.003 K")
    assert cells["aten::mul"].rstrip().endswith("  5")
    assert cells["aten::ones"].rstrip().endswith("  --")


def test_the_guides_flops():
    """Accelerate's guide: ResNet-18 on five pictures, and a product of thirty numbers."""
    torchvision = pytest.importorskip("torchvision", reason="torchvision is not installed")
    model, inputs = torchvision.models.resnet18(), torch.randn(5, 3, 224, 224)
    with quiet(), sonde.profile(activities=[CPU], with_flops="torch") as prof:
        model(inputs)
        torch.ones(30).mul(2)
    lines = prof.key_averages().table(sort_by="flops", row_limit=10).splitlines()
    assert lines[1].rstrip().endswith("Total FLOPs")
    found = [(line.split()[0], line.split()[-1]) for line in lines[3:6]]
    assert found == [("aten::conv2d", "18135613440.000"), ("aten::addmm", "5120000.000"),
                     ("aten::mul", "30.000")]
    assert {line.split()[-1] for line in lines[6:13]} == {"--"}
