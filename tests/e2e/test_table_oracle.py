# SPDX-License-Identifier: Apache-2.0
"""The ops table against torch's own: the same rows, the same text, byte for byte.

Rows come from `sonde report --json`; torch's EventList.table prints them; our text must be
that. Where torch is known to be wrong (stacks and FLOPs together) the comparison leaves out
the one column that it misplaces.
"""
import itertools
import re

import pytest

from cli_tools import generate, needs_tools, read, read_json

torch = pytest.importorskip("torch", reason="torch is not installed: nothing to compare with")
from torch.autograd import DeviceType, profiler_util  # noqa: E402

if not hasattr(profiler_util.FunctionEventAvg(), "overload_name"):
    pytest.skip("this torch has another table", allow_module_level=True)
if profiler_util._format_memory(1024) != "1.00 KB":
    pytest.skip("this torch prints Kb, not KB", allow_module_level=True)

pytestmark = needs_tools

CASES = ["convnet", "names", "threads", "steps", "fold", "memory", "stacks", "unfinished", "large"]
SORT_KEYS = ["self_cpu_time_total", "cpu_time_total", "cpu_time", "count", "cpu_memory_usage",
             "self_cpu_memory_usage", "device_memory_usage", "cuda_memory_usage",
             "self_cuda_memory_usage", "cuda_time_total", "cuda_time", "self_device_time_total",
             "xpu_time", "flops", "key"]


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    folder = tmp_path_factory.mktemp("traces")
    return {case: generate(case, folder / case, "800") for case in CASES}


def shown(name):
    """Control characters and bytes that are not UTF-8 are spelled out in our text."""
    def spell(match):
        point = ord(match.group())
        if match.group() in "\n\t\r":
            return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}[match.group()]
        return "\\x%02x" % (point - 0xdc00 if point >= 0xdc80 else point)
    return re.sub("[\x00-\x1f\x7f-\x9f\udc80-\udcff]", spell, name)


def averages(document, groups):
    """torch's objects for our rows."""
    has_memory = any(row["cpu_memory_usage"] or row["self_cpu_memory_usage"] or
                     row["device_memory_usage"] for row in document["rows"])
    events = profiler_util.EventList(use_device="cuda", profile_memory=has_memory, with_flops=True)
    for row in document["rows"]:
        event = profiler_util.FunctionEventAvg()
        for key, value in row.items():
            if key not in ("cpu_time", "device_time", "key", "process", "thread"):
                setattr(event, key, value)
        event.key = shown(row["key"])
        event.input_shapes = row["input_shapes"] if "shape" in groups else ""
        event.overload_name = ""
        event.node_id = -1
        event.use_device = "cuda"
        event.device_type = DeviceType.CPU
        event.is_user_annotation = False
        events.append(event)
    return events


def without_ledger(text):
    return re.sub(r"ledger: .*\n$", "", text)


def without_last_column(text, width=14):
    """Of the table proper, whose lines end in blanks, and of the bar above its title."""
    return "".join(line[:-width - 1] + "\n" if line.endswith("  \n") or set(line) == set("=\n") else line
                   for line in text.splitlines(keepends=True))


def compare(trace, groups=(), table_options=None, report_options=()):
    """With torch's FLOPs to the character; with all of them but for that column, whose numbers have
    units of their own."""
    group_options = ("--group-by", ",".join(groups)) if groups else ()
    for flops in ("torch", "full"):
        options = (*group_options, "--flops", flops)
        document = read_json("report", trace, "--json", "--sort", "none", "--rows", "-1", *options)
        ours = without_ledger(read("report", trace, *options, *report_options).decode())
        events = averages(document, groups)
        has_flops = any(e.flops > 0 for e in events)
        if has_flops and (flops == "full" or any(e.stack for e in events)):
            events._with_flops = False
            ours = without_last_column(ours)
        theirs = events.table(**(table_options or {}))
        assert ours == theirs


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("key", SORT_KEYS)
def test_sort_keys(traces, case, key):
    compare(traces[case], (), {"sort_by": key}, ("--sort", key))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("rows", [-1, 0, 1, 3, 100])
def test_row_limits(traces, case, rows):
    compare(traces[case], (), {"row_limit": rows}, ("--sort", "none", "--rows", str(rows)))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("groups", [("shape",), ("stack",), ("shape", "stack")])
@pytest.mark.parametrize("key", ["self_cpu_time_total", "count"])
def test_groups(traces, case, groups, key):
    compare(traces[case], groups, {"sort_by": key}, ("--sort", key))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("unit", ["us", "ms", "s"])
def test_time_units(traces, case, unit):
    compare(traces[case], (), {"time_unit": unit}, ("--sort", "none", "--time-unit", unit))


@pytest.mark.parametrize("case", ["convnet", "names", "stacks"])
@pytest.mark.parametrize("name,shapes,source", list(itertools.product([8, 20, 55, 200],
                                                                      [9, 30, 80], [8, 20, 75])))
def test_widths(traces, case, name, shapes, source):
    compare(traces[case], ("shape", "stack"),
            {"max_name_column_width": name, "max_shapes_column_width": shapes,
             "max_src_column_width": source},
            ("--sort", "none", "--max-name", str(name), "--max-shapes", str(shapes),
             "--max-source", str(source)))


@pytest.mark.parametrize("case", ["convnet", "names", "stacks"])
def test_no_widths(traces, case):
    compare(traces[case], ("shape", "stack"),
            {"max_name_column_width": None, "max_shapes_column_width": None,
             "max_src_column_width": None},
            ("--sort", "none", "--max-name", "0", "--max-shapes", "0", "--max-source", "0"))


@pytest.mark.parametrize("case", CASES)
def test_header(traces, case):
    compare(traces[case], (), {"header": "A title"}, ("--sort", "none", "--header", "A title"))


def test_an_empty_trace_is_an_empty_text(tmp_path):
    trace = generate("empty", tmp_path / "empty")
    assert read("report", trace) == b""
    assert profiler_util.EventList().table() == ""
