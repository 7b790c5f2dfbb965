# SPDX-License-Identifier: Apache-2.0
"""Rows, columns and timelines of a trace, as Python has them: over a synthetic trace, without torch."""
import ctypes
import gc
import gzip
import json
import subprocess

import pytest

import sonde
from cli_tools import GEN, needs_tools

pytestmark = needs_tools


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "torch.sonde"
    subprocess.run([GEN, "torch", path], check=True)
    return path


@pytest.fixture
def trace(path):
    with sonde.Trace(path) as trace:
        yield trace


def test_averages_have_torchs_attributes(trace):
    rows = trace.averages()
    assert len(rows) == len(list(rows)) == 24
    conv = rows[1]
    assert (conv.key, conv.count, conv.scope) == ("aten::conv2d", 2, 0)
    assert conv.cpu_time_total == 84.0 and conv.self_cpu_time_total == 4.0 and conv.cpu_time == 42.0
    assert conv.self_cpu_time_total_str == "4.000us"
    assert conv.cpu_memory_usage == 4096 and conv.self_cpu_memory_usage == 0
    assert conv.flops == 55296 and conv.macs == 27648
    assert conv.input_shapes == "" and conv.stack == [] and conv.overload_name == ""
    assert conv.device_time_total == 0 and conv.use_device is None and conv.node_id == -1
    assert rows[0].key == "ProfilerStep*" and rows[0].is_user_annotation and rows[0].scope == 7
    assert rows[-1].key == "[memory]"
    assert [row.key for row in rows[1:3]] == ["aten::conv2d", "aten::convolution"]
    assert rows.self_cpu_time_total == 308.0 and rows.has_memory and rows.unmatched_frees == 2
    total = rows.total_average()
    assert total.key == "Total" and total.self_cpu_time_total == 308.0
    with pytest.raises(IndexError):
        rows[24]
    conv.self_cpu_percent = "mine"  # as torch's own table code does
    assert conv.self_cpu_percent == "mine"
    assert "aten::conv2d" in repr(conv)


def test_averages_by_shape_and_flops(trace):
    conv = next(row for row in trace.averages(True) if row.key == "aten::conv2d")
    assert conv.input_shapes == [[2, 3, 8, 8], [4, 3, 3, 3], [4], [], [], [], []]
    torchs = {row.key: row.flops for row in trace.averages(flops="torch") if row.flops}
    assert torchs == {"aten::conv2d": 55296, "aten::addmm": 20480, "aten::mm": 20480}
    assert not any(row.flops for row in trace.averages(flops="none"))
    with pytest.raises(sonde.Error, match="full, torch or none"):
        trace.averages(flops="some")


def test_table_is_the_reports(trace):
    table = trace.averages().table(sort_by="self_cpu_time_total", profile_memory=True,
                                   with_flops=True)
    report = trace.report(sort="self_cpu_time_total")
    assert report.startswith(table)  # the report adds the ledger
    assert "CPU Mem" not in trace.averages().table()
    assert trace.averages().table(row_limit=0).count("\n") == 5
    top = trace.averages().table(top_level_events_only=True, header="Mine")
    assert "Mine" in top and "ProfilerStep*" in top and "aten::relu" not in top
    with pytest.raises(sonde.Error, match="self_cpu_time_total"):
        trace.averages().table(sort_by="nothing")


def test_events_know_their_family(trace):
    events = trace.events()
    step, conv, inner = events[0], events[1], events[2]
    assert step.name == "ProfilerStep*" and step.trace_name == "ProfilerStep#0"
    assert conv.cpu_parent == step and inner.cpu_parent == conv and inner in conv.cpu_children
    assert step.cpu_parent is None and len({conv, events[1]}) == 1
    assert conv.time_range.start == 11.0 and conv.time_range.elapsed_us() == 42.0
    assert conv.input_shapes == [[2, 3, 8, 8], [4, 3, 3, 3], [4], [], [], [], []]
    assert conv.structured_input_strides[0] == [192, 64, 8, 1]
    assert conv.input_dtypes == ["float"] * 3 + ["ScalarList"] * 3 + ["Scalar"]
    assert conv.concrete_inputs == [None, None, None, [1, 1], [1, 1], [1, 1], 1]
    assert conv.module == "Net.features.0" and conv.thread == 1 and conv.tid == 4242
    backward = next(event for event in events if event.name == "AddmmBackward0")
    assert (backward.sequence_nr, backward.fwd_thread, backward.scope) == (2, 1, 1)
    assert backward.cpu_parent.sequence_nr == 2  # borrowed
    assert events[-1].name == "[memory]" and events[-1].trace_name is None
    assert "aten::is_leaf" not in [event.name for event in events]
    assert events.total_average().self_cpu_time_total == events.self_cpu_time_total == 308.0
    assert "aten::conv2d" in events.table(row_limit=3)


def test_they_outlive_the_trace(path):
    trace = sonde.Trace(path)
    events, rows = trace.events(), trace.averages()
    event = events[1]
    trace.close()
    del events
    gc.collect()
    assert event.name == "aten::conv2d" and rows[1].key == "aten::conv2d"
    with pytest.raises(sonde.Error, match="closed"):
        trace.events()


def test_columns_without_a_copy(trace):
    numpy = pytest.importorskip("numpy", reason="numpy is not installed")
    events = trace.events()
    start = numpy.asarray(events.column("start_ns"))
    assert start.dtype == numpy.int64 and list(start[:3]) == [10000, 11000, 12000]
    assert start.ctypes.data == events.column("start_ns").__array_interface__["data"][0]
    assert not start.flags.writeable
    flops = numpy.asarray(events.column("flops"))
    del events
    gc.collect()
    assert flops.sum() == sum(row.flops for row in trace.averages())
    names = trace.events()
    assert names.text(names.column("name")[1]) == "aten::conv2d"
    assert "parent" in names.columns
    with pytest.raises(KeyError):
        names.column("nothing")


def test_arrow(trace):
    """By a reader of its own, so that nothing needs to be installed: structs of the C interface."""
    capsule = trace.events().__arrow_c_schema__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    schema = (ctypes.c_void_p * 9).from_address(pointer(capsule, b"arrow_schema"))
    assert ctypes.string_at(schema[0]) == b"+s" and schema[4] == len(trace.events().columns)
    schema_capsule, array_capsule = trace.averages().__arrow_c_array__()
    array = (ctypes.c_int64 * 5).from_address(pointer(array_capsule, b"arrow_array"))
    assert (array[0], array[4]) == (24, len(trace.averages().columns))
    assert pointer(trace.events().__arrow_c_stream__(), b"arrow_array_stream")


def test_arrow_by_pyarrow(trace):
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    table = pyarrow.table(trace.events())
    table.validate(full=True)
    assert table.column("name").to_pylist()[1] == "aten::conv2d"
    rows = pyarrow.table(trace.averages())
    rows.validate(full=True)
    assert dict(zip(rows.column("key").to_pylist(), rows.column("count").to_pylist()))["aten::mm"] == 2


def test_memory_timeline(trace, tmp_path):
    timeline = trace.memory_timeline("cpu")
    kinds = {timeline.categories[timeline.column("category")[i]] for i in range(len(timeline))}
    assert kinds == {"ACTIVATION", "GRADIENT", "INPUT"}
    timeline.export(tmp_path / "m.json")
    times, sizes = json.loads((tmp_path / "m.json").read_text())
    assert len(times) == len(sizes) and all(len(row) == 9 for row in sizes)
    held = sum(timeline.column("bytes")[i] for i in range(len(timeline)))
    assert sum(sizes[-1]) == held
    timeline.export(tmp_path / "m.json.gz")
    assert json.loads(gzip.open(tmp_path / "m.json.gz").read()) == [times, sizes]
    timeline.export(tmp_path / "m.raw.json.gz")
    assert len(json.loads(gzip.open(tmp_path / "m.raw.json.gz").read())) == len(timeline)
    timeline.export(tmp_path / "m.html")
    assert "<svg" in (tmp_path / "m.html").read_text()
    assert len(trace.memory_timeline("cuda:0")) == 0
    with pytest.raises(sonde.Error, match="cuda"):
        trace.memory_timeline("abacus")


def test_chrome_with_metadata(trace, tmp_path):
    trace.export(tmp_path / "t.json", metadata={"with_stack": "1", "mine": '{"a": [1]}',
                                                "broken": "{", "traceEvents": "[]"}, name="N")
    document = json.loads((tmp_path / "t.json").read_text())
    assert document["with_stack"] == 1 and document["mine"] == {"a": [1]}
    assert document["broken"] == "{" and document["traceName"] == "N"
    assert len(document["traceEvents"]) > 50
    flows = [event for event in document["traceEvents"] if event.get("cat") == "fwdbwd"]
    assert sorted(event["ph"] for event in flows) == ["f"] * 8 + ["s"] * 8
    with pytest.raises(TypeError):
        trace.export(tmp_path / "u.json", metadata={"a": 1})


def test_what_a_trace_says_of_itself(trace):
    assert ("unmatched_frees", 2) in [(key, count) for key, count, text in trace.ledger()]
    assert trace.metadata()["torch.thread 4242"] == "1"


def test_rows_are_not_made_by_hand():
    from sonde import _core
    for name in ("Average", "Averages", "Event", "Events", "Column", "Interval", "Timeline"):
        with pytest.raises(TypeError):
            getattr(_core, name)()


def test_an_average_is_added_by_name_too(trace):
    """As torch's add(self, other) may be called."""
    row, other = trace.averages()[1], trace.averages()[1]
    assert row.add(other=other) is row and row.count == 4
    with pytest.raises(TypeError):
        row.add()
