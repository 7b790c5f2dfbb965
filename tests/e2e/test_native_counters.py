# SPDX-License-Identifier: Apache-2.0
"""sonde run --counters --per-function on native programs: which functions cause the events, beside perf and the truth."""
import collections
import contextlib
import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import tempfile

import pytest

from cli_tools import SONDE, read, read_json
from native_tools import POINTS, build, needs_perf, needs_samples, perf_script, truth  # noqa: F401

pytestmark = needs_samples
# From 6.13 on, samples of inherited events have the count of their thread. Before, only the period that the kernel keeps
# adapting, which takes some runs to level out.
HAS_COUNTS = tuple(int(n) for n in re.findall(r"\d+", os.uname().release)[:2]) >= (6, 13)
RUNS, SUM_ERROR = (1, 0.001) if HAS_COUNTS else (3, 0.05)
PARTS = ("touch_many", "touch_few", "touch_deep", "touch_in_child")
NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]


def count(tmp_path, program, counters="page-faults", *options, before=()):
    """The trace, what the program said and what sonde did."""
    trace = tmp_path / "c.sonde"
    done = subprocess.run([*before, SONDE, "run", f"--counters={counters}", "--per-function", *options, "-o", trace, "--",
                           program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=100)
    assert done.returncode == 7, done.stderr
    return trace, done.stdout, done.stderr.decode()


def counted(trace):
    return read_json("report", trace, "--view", "function-counters", "--rows", "-1", "--json")["rows"]


def functions(trace):
    return {row["function"]: row for row in counted(trace)}


def all_faults(trace):
    return sum(row["self_page_faults"] for row in counted(trace))  # several functions may have one name


def shares(values):
    return {part: values[part] / sum(values[p] for p in PARTS) for part in PARTS}


def whole_count(trace, counter):
    rows = read_json("report", trace, "--view", "counters", "--json")["rows"]
    return next(row["value"] for row in rows if row["counter"] == counter)


def perfs_faults(tmp_path, program):
    """Page faults by function, as perf samples them: each sample stands for as many as its period."""
    data, counts = tmp_path / "perf.data", collections.Counter()
    done = subprocess.run(["perf", "record", "-q", "-e", "page-faults", "-c", "13", "-o", data, "--", program], timeout=100,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if done.returncode not in (0, 7):
        pytest.skip(f"perf cannot record here: {done.stderr.decode()[-200:]}")
    for sample in perf_script(data, "period,ip,sym", "--no-inline"):
        for line in sample:
            period, _, function = line.split()[:3]
            counts[function] += int(period)
    return counts


@needs_perf
def test_shares_are_those_of_the_program_and_of_perf(tmp_path, build):
    """Of the 50 children, too, each of which lives for a few samples."""
    trace, said, _ = count(tmp_path, build("faults"), "page-faults", "-r", str(RUNS))
    rows, known = functions(trace), truth(said, PARTS)
    ours = shares({part: rows[part]["self_page_faults"] for part in PARTS})
    theirs = shares(perfs_faults(tmp_path, build("faults")))
    for part in PARTS:
        assert abs(ours[part] - known[part]) < POINTS, (part, ours, known)
        assert abs(ours[part] - theirs[part]) < POINTS, (part, ours, theirs)


def test_samples_stand_for_all_events(tmp_path, build):
    """The sum over the functions of all runs is what was counted, and a function that calls itself counts once."""
    trace, said, _ = count(tmp_path, build("faults"), "page-faults", "-r", "2")
    rows, whole = functions(trace), 2 * whole_count(trace, "page-faults")
    assert abs(all_faults(trace) / whole - 1) < SUM_ERROR
    assert abs(rows["main"]["page_faults"] / whole - 1) < 0.1 and rows["main"]["self_page_faults"] < 0.01 * whole
    assert rows["touch_deep"]["page_faults"] == rows["touch_deep"]["self_page_faults"]
    assert rows["touch_many"]["file"].endswith("faults.c")
    for row in rows.values():  # of which samples of events say nothing
        assert row["calls"] is None and row["total_ns"] is None and row["self_ns"] is None


def test_events_are_no_time(tmp_path, build):
    """Nothing that shows time, or samples by time, has them; exports of stacks have them under their names."""
    trace, *_ = count(tmp_path, build("faults"))
    assert b"The trace has no samples" in read("report", trace, "--view", "samples")
    stacks = folded(trace)
    assert {stack.split(";")[0] for stack in stacks} == {"page-faults"}
    assert sum(stacks.values()) == all_faults(trace)


def folded(trace, *options):
    stacks = collections.Counter()
    for line in read("export", trace, "--to", "folded", *options, "-o", "-").decode().splitlines():
        stack, number = line.rsplit(" ", 1)
        stacks[stack] += int(number)
    return stacks


def test_exports_have_them_beside_time(tmp_path, build):
    """A trace with both exports time, unless a counter is named: then what the report has of that one."""
    trace, *_ = count(tmp_path, build("faults"), "page-faults,context-switches", "--sample")
    own = all_faults(trace)
    stacks = folded(trace)
    assert stacks and not any(stack.startswith("page-faults;") for stack in stacks)
    assert sum(folded(trace, "--counter", "page-faults").values()) == own
    script = read("export", trace, "--to", "perf-script", "--counter", "page-faults", "-o", "-").decode()
    assert sum(int(n) for n in re.findall(r": +(\d+) page-faults: $", script, re.M)) == own
    assert "cpu-clock" not in script and "context-switches" not in script
    callgrind = read("export", trace, "--to", "callgrind", "--counter", "page-faults", "-o", "-").decode()
    assert re.findall(r"^summary: (.*)", callgrind, re.M) == [str(own)]
    scope = json.loads(read("export", trace, "--to", "speedscope", "--counter", "all", "-o", "-"))
    assert {p["name"]: p["endValue"] for p in scope["profiles"]}["page-faults"] == own
    read("export", trace, "--to", "sqlite", "-o", tmp_path / "t.db")
    with contextlib.closing(sqlite3.connect(tmp_path / "t.db")) as db:
        found = dict(db.execute("select counter, sum(events) from stack_counters group by 1"))
        inner = db.execute("""select count(*) from stack_counters c where stack is not null and not exists
                              (select 1 from stacks s where s.process = c.process and s.stack = c.stack)""").fetchone()
    assert found["page-faults"] == own and inner == (0,)


def test_each_counter_has_its_columns(tmp_path, build):
    """With samples by time beside them; what the machine does not count is said."""
    trace, _, said = count(tmp_path, build("faults"), "page-faults,context-switches,cycles", "--sample")
    row = functions(trace)["touch_many"]
    assert {"page_faults", "self_page_faults", "context_switches", "self_context_switches"} < set(row)
    assert "cycles" in row or re.search(r"functions have no cycles \(not supported: ", said), said
    assert b"touch_many" in read("report", trace, "--view", "samples", "--show-all")
    waits = functions(trace)["touch_in_child"]["context_switches"]  # for its child, each time
    assert waits >= 5


@contextlib.contextmanager
def open_folder():
    """A folder that another user may write to."""
    if subprocess.run([*NOBODY, SONDE, "--version"], stdout=subprocess.PIPE, stderr=subprocess.PIPE).returncode != 0:
        pytest.skip("another user may not run what was built here")
    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        folder = pathlib.Path(place)
        folder.chmod(0o777)
        yield folder


@pytest.mark.skipif(os.getuid() != 0, reason="becomes another user")
def test_who_may_not_see_the_kernel(build):
    """Faults of user mode are there; what happens in the kernel is refused with the reason."""
    if int(pathlib.Path("/proc/sys/kernel/perf_event_paranoid").read_text()) != 2:
        pytest.skip("kernel.perf_event_paranoid is not 2, the usual value")
    with open_folder() as folder:
        program = shutil.copy(build("faults"), folder)
        trace, said, _ = count(folder, program, before=NOBODY)
        rows = functions(trace)
        ours = shares({part: rows[part]["self_page_faults_u"] for part in PARTS})
        assert abs(ours["touch_many"] - truth(said, PARTS)["touch_many"]) < 2 * POINTS  # one run
        assert b"user_only" in read("report", trace, "--view", "ledger")
        _, _, why = count(folder, program, "context-switches", "--sample", before=NOBODY)
        assert "context-switches happen in the kernel" in why


@pytest.mark.skipif(os.getuid() != 0, reason="becomes another user")
def test_two_samplers_of_one_user(build):
    """What the first has locked of the user's memory, the second has not: its rings are smaller, and it samples all the same."""
    with open_folder() as folder:
        program = shutil.copy(build("faults"), folder)
        ours = [subprocess.Popen([*NOBODY, SONDE, "run", "--counters=page-faults", "--per-function", "-o", folder / f"{n}.sonde",
                                  "--", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE) for n in range(2)]
        said = [process.communicate(timeout=100)[1] for process in ours]
        assert [process.returncode for process in ours] == [7, 7], said
        for n in range(2):
            assert "touch_many" in functions(folder / f"{n}.sonde"), said[n]
