# SPDX-License-Identifier: Apache-2.0
"""Rows and lists of a profile are real objects: pickled, copied, added up, set, told apart."""
import copy
import json
import os
import pathlib
import pickle
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: there is nothing to profile")

import sonde  # noqa: E402
from torch.autograd import profiler_util  # noqa: E402
from torch_tools import CPU, FULL, X, quiet, record, training  # noqa: E402
import warm_torch  # noqa: E402

PROGRAMS = pathlib.Path(__file__).parent / "programs"
WAYS = {"pickle": lambda value: pickle.loads(pickle.dumps(value)), "deepcopy": copy.deepcopy,
        "old pickle": lambda value: pickle.loads(pickle.dumps(value, 2)), "copy": copy.copy}
FIELDS = ("key", "count", "cpu_time_total", "self_cpu_time_total", "cpu_time", "cpu_memory_usage",
          "self_cpu_memory_usage", "flops", "macs", "moved_bytes", "input_shapes", "stack", "scope",
          "is_async", "is_user_annotation", "overload_name", "module")


@pytest.fixture(scope="module")
def prof():
    with quiet():
        return record(training(), with_stack=True, with_modules=True, **FULL)


def fields(rows):
    return [[getattr(row, name) for name in FIELDS] for row in rows]


@pytest.mark.parametrize("way", list(WAYS))
def test_averages(prof, way):
    for groups in ({}, {"group_by_input_shape": True}, {"group_by_stack_n": 3}):
        ours = prof.key_averages(**groups)
        again = WAYS[way](ours)
        assert isinstance(again, list) and len(again) == len(ours) > 10
        assert fields(again) == fields(ours)
        assert again.total_average().count == ours.total_average().count
        assert again.self_cpu_time_total == pytest.approx(ours.self_cpu_time_total)
    plain = prof.key_averages()  # stacks and FLOPs together are torch's to print, and it swaps them
    assert WAYS[way](plain).table(sort_by="count").count("\n") == \
        plain.table(sort_by="count").count("\n")


@pytest.mark.parametrize("way", list(WAYS))
def test_events(prof, way):
    ours = prof.events()
    again = WAYS[way](ours)
    assert fields(again) == fields(ours) and again.table() == ours.table()
    assert [event.cpu_parent and event.cpu_parent.name for event in again] == \
        [event.cpu_parent and event.cpu_parent.name for event in ours]
    assert again.columns == ours.columns
    assert [row.key for row in again.key_averages()] == [row.key for row in prof.key_averages()]


def test_some_events(prof):
    """A part of a list, one event, its interval; a list that was changed."""
    some = [event for event in prof.events() if event.name.startswith("aten::")][:50]
    assert fields(pickle.loads(pickle.dumps(some))) == fields(some)
    one = pickle.loads(pickle.dumps(some[0]))
    assert one.time_range.elapsed_us() == some[0].time_range.elapsed_us()
    assert pickle.loads(pickle.dumps(one.time_range)).start == one.time_range.start
    changed = prof.events()
    changed.sort(key=lambda event: event.name)
    assert fields(pickle.loads(pickle.dumps(changed))) == fields(changed)


def test_in_another_process(prof, tmp_path):
    """Where there is no profile, and while torch is not loaded yet."""
    (tmp_path / "rows").write_bytes(pickle.dumps((prof.key_averages(), prof.events())))
    code = ("import json, pickle, sys; averages, events = pickle.load(open(sys.argv[1], 'rb')); "
            "print(json.dumps([[r.key for r in averages], len(events), events[3].name]))")
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "rows"], text=True,
                          stdout=subprocess.PIPE, check=True, timeout=300)
    names, count, fourth = json.loads(done.stdout)
    assert names == [row.key for row in prof.key_averages()]
    assert (count, fourth) == (len(prof.events()), prof.events()[3].name)


def test_gathered_over_ranks(tmp_path):
    """all_gather_object, then one sum over all ranks (programs/gather.py)."""
    environment = {**os.environ, "WORLD_SIZE": "2", "OMP_NUM_THREADS": "1",
                   "RENDEZVOUS": f"file://{tmp_path}/rendezvous"}
    ranks = warm_torch.run_together([((PROGRAMS / "gather.py",), {"env": {**environment, "RANK": str(rank)}})
                                     for rank in range(2)])
    assert [rank.returncode for rank in ranks] == [0, 0], ranks
    assert [json.loads(rank.stdout.splitlines()[-1]) for rank in ranks] == [{"aten::mul": 3, "events": 6}] * 2


def test_add():
    first, second = record(lambda: [X.mul(X), X.add(X)]), record(lambda: [X.mul(X), X.mul(X)])
    row, other = first.key_averages()[0], second.key_averages()[0]
    total = row.cpu_time_total + other.cpu_time_total
    assert row.add(other) is row
    row += second.events()[0]
    total += second.events()[0].cpu_time_total
    assert (row.count, row.cpu_time_total) == (4, pytest.approx(total))
    assert row.cpu_time == pytest.approx(total / 4)
    assert row.cpu_time_total_str == profiler_util._format_time(row.cpu_time_total)
    assert pickle.loads(pickle.dumps(row)).count == 4
    with pytest.raises(AssertionError, match="Expected keys to match, but got aten::add vs aten::mul"):
        row.add(first.key_averages()[1])


def test_add_to_rows_of_torch():
    """Ours into theirs, theirs into ours."""
    ours = record(lambda: [X.mul(X), X.mul(X)])
    with quiet(), torch.profiler.profile(activities=[CPU]) as theirs:
        X.mul(X)
    theirs_row, our_row = theirs.key_averages()[0], ours.key_averages()[0]
    assert isinstance(our_row, profiler_util.FunctionEventAvg)
    assert isinstance(ours.events()[0], profiler_util.FunctionEvent)
    wanted = our_row.cpu_time_total + theirs_row.cpu_time_total
    theirs_row.add(our_row)
    assert (theirs_row.count, theirs_row.cpu_time_total) == (3, pytest.approx(wanted))
    empty = profiler_util.FunctionEventAvg()
    for event in ours.events():
        empty.add(event)
    assert (empty.key, empty.count) == ("aten::mul", 2)


def test_attributes_can_be_set(prof):
    row = prof.key_averages()[0]
    assert row.self_cpu_percent == row.total_cpu_percent == -1
    row.key, row.mine = "renamed", 1
    assert (row.key, row.mine) == ("renamed", 1) and copy.deepcopy(row).key == "renamed"
    event = prof.events()[0]
    event.name = "renamed"
    assert event.name == "renamed" and pickle.loads(pickle.dumps(event)).name == "renamed"


@pytest.mark.parametrize("key", ["nope", "name of nothing", "self_cpu_time"])
def test_a_bad_sort_key(prof, key):
    """AttributeError with the name in it, as torch; and nothing for a list without rows."""
    with quiet(), torch.profiler.profile(activities=[CPU]) as theirs:
        X.mul(X)
    for rows in (theirs.key_averages(), prof.key_averages(), prof.events()):
        with pytest.raises(AttributeError, match=f"no attribute '{key}'"):
            rows.table(sort_by=key)
    assert record(lambda: None).key_averages().table(sort_by=key) == ""


@pytest.mark.parametrize("key", ["node_id", "is_async", "scope", "overload_name"])
def test_an_attribute_that_is_no_column(key):
    """torch sorts by whatever its rows have."""
    rows = record(lambda: [X.mul(X), X.add(X)]).key_averages()
    assert rows.table(sort_by=key).count("aten::") == 2


def test_names_of_torch_profiler():
    assert sonde.kineto_available() is True
    assert sonde.DeviceType is torch.profiler.DeviceType
    events = record(lambda: [X.mul(X), X.add(X)]).events()
    assert [event.external_id for event in events] == [1, 2]
    assert [event.metadata for event in events] == [None, None]
    assert [event.activity_type for event in events] == ["cpu_op"] * 2
