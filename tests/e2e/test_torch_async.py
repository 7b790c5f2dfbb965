# SPDX-License-Identifier: Apache-2.0
"""Ranges that wait for others: collectives, futures, scripts that fork."""
import json
import os
import pathlib
import threading
import warnings

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: nothing to compare with")

import sonde  # noqa: E402
from torch_tools import FORMS, TORCH, settle  # noqa: E402
import warm_torch  # noqa: E402

PROGRAMS = pathlib.Path(__file__).parent / "programs"


@pytest.fixture(scope="module")
def reduced(tmp_path_factory):
    """What two ranks of programs/collectives.py saw, and the folder that has their traces."""
    folder = tmp_path_factory.mktemp("reduced")
    environment = {**os.environ, "MASTER_ADDR": "127.0.0.1", "WORLD_SIZE": "2",
                   "RENDEZVOUS": f"file://{folder}/rendezvous", "OMP_NUM_THREADS": "1"}
    ranks = warm_torch.run_together([((PROGRAMS / "collectives.py", folder / f"{rank}.json"), {
        "env": {**environment, "RANK": str(rank)}}) for rank in range(2)])
    assert [rank.returncode for rank in ranks] == [0, 0], ranks
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(2)], folder


@pytest.mark.parametrize("form", list(FORMS))
def test_collectives_wait(reduced, form):
    """As torch has them: asynchronous, outside the tree, with no self time; steps are 100 %."""
    for rank in reduced[0]:
        theirs, ours = rank[form]
        assert ours["events"] == theirs["events"]
        assert ours["async"] == theirs["async"]
        assert ours["async"]["gloo:all_reduce"] and ours["waiting"] == theirs["waiting"] == 0
        assert ours["steps"] == theirs["steps"] == "100.00%"


def test_waiting_is_apart_from_work(reduced):
    trace = sonde.Trace(str(reduced[1] / "0.json.sonde"))
    tree = json.loads(trace.report(view="tree", format="json"))
    waits = [row for row in tree["rows"] if row["name"] == "gloo:all_reduce"]
    works = [row for row in tree["rows"] if row["name"] != "gloo:all_reduce"]
    assert waits and all(row["total_ns"] == 0 < row["waiting_ns"] for row in waits)
    assert all(row["waiting_ns"] == 0 <= row["total_ns"] for row in works)
    waited = sum(row["waiting_ns"] for row in waits)
    threads = json.loads(trace.report(view="threads", format="json"))["rows"]
    assert sum(row["waiting_ns"] for row in threads) == waited
    assert all(row["busy_ns"] == 0 for row in threads if row["waiting_ns"])
    assert json.loads(trace.report(view="summary", format="json"))["totals"]["waiting_ns"] == waited


@pytest.mark.parametrize("form", list(FORMS))
def test_a_future_that_another_thread_ends(form):
    def run():
        future = torch.futures.Future()
        with torch.profiler.record_function("outer"):
            with torch.autograd.profiler.record_function("waiting") as waiting:
                done = waiting._call_end_callbacks_on_future(future)
            thread = threading.Thread(target=future.set_result, args=(1,))
            thread.start()
            thread.join()
            done.wait()
            torch.ones(1)

    theirs, ours = FORMS[form](run)
    seen = [[(event.name, event.is_async, event.cpu_parent and event.cpu_parent.name)
             for event in one.events()] for one in (theirs, ours)]
    assert seen[0] == seen[1]
    assert ("waiting", True, None) in seen[1]


def test_a_range_still_open_at_stop():
    """A parent like others, up to the stop, and counted; torch takes it for an asynchronous one, and
    up to 2.11 leaves it out."""
    opened = []

    def run():
        opened.append(torch.profiler.record_function("open"))
        opened[-1].__enter__()
        torch.ones(1)

    theirs, ours = FORMS["apart"](run)
    for one in opened:
        one.__exit__(None, None, None)
    seen = [[(event.name, event.is_async, event.cpu_parent and event.cpu_parent.name)
             for event in one.events()] for one in (theirs, ours)]
    inside = [("aten::empty", False, "aten::ones"), ("aten::fill_", False, "aten::ones")]
    assert seen[0] == [("open", True, None)] * (TORCH > (2, 11)) + [("aten::ones", False, None)] + inside
    assert seen[1] == [("open", False, None), ("aten::ones", False, "open")] + inside
    assert ("unfinished_ranges", 1) in [entry[:2] for entry in ours.ledger()]


@pytest.mark.parametrize("form", list(FORMS))
def test_scripts_that_fork(form):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")

        @torch.jit.script
        def slow(x):
            y = x
            for _ in range(20):
                y = torch.mm(y, x)
            return y

        @torch.jit.script
        def forked(x):
            first = torch.jit.fork(slow, x)
            second = torch.jit.fork(slow, x)
            return torch.jit.wait(first) + torch.jit.wait(second)

    x = torch.randn(100, 100)
    for _ in range(4):
        forked(x)

    def run():
        forked(x)
        settle()

    theirs, ours = FORMS[form](run)
    # Whether the script itself goes on on another thread depends on who is first.
    seen = [sorted((event.name, event.name != "forked" and event.is_async)
                   for event in one.events()) for one in (theirs, ours)]
    assert seen[0] == seen[1]
    if form == "together":
        asynchronous = [[event.is_async for event in one.events() if event.name == "forked"]
                        for one in (theirs, ours)]
        assert asynchronous[0] == asynchronous[1]
    for event in ours.events():
        assert not event.is_async or event.self_cpu_time_total == 0
