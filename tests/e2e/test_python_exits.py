# SPDX-License-Identifier: Apache-2.0
"""However a Python program ends, its exit status and what it says stay, and so does its trace."""
import pytest

from python_tools import PROGRAMS, python, rows, run, SONDE, sonde_run

SCRIPT = PROGRAMS / "endings.py"
STATUS = {"return": 0, "raise": 1, "hook": 1, "exit": 3, "exit-text": 1, "_exit": 4,
          "interrupt": -2, "sigint": -2, "sigterm": -15, "sigkill": -9, "abort": -6, "exec": 5,
          "exec-other": 6, "fork": 0}


def row_of(trace, view, function):
    found = [row for row in rows(trace, view) if row.get("function") == function]
    assert found, rows(trace, view)
    return found


def check_functions(trace, forked):
    (row,) = row_of(trace, "functions", "work")
    assert row["calls"] == 20 + forked


def check_lines(trace, forked):
    hits = {row["line"]: row["hits"] for row in row_of(trace, "lines", "work")}
    first = min(hits)
    assert hits[first] == 20 + forked and hits[first + 2] == 20 * 2000 + 500 * forked


def check_line_memory(trace, forked):
    counts = {row["line"] - row["first_line"]: row for row in row_of(trace, "line-memory", "work")}
    assert counts[1]["occurrences"] == 20 + forked
    assert counts[3]["allocated_bytes"] >= 20 * sum(range(2000))  # bytes(i), and its header


def is_seen(trace):
    return any(row["function"] == "work" and row["samples"] > 0 for row in rows(trace, "samples"))


def check_samples(trace, forked):
    assert is_seen(trace)


PROBES = {
    "functions": (["--functions"], [[]], check_functions),
    "lines": (["--lines", "work"], [[]], check_lines),
    "line-memory": (["--line-memory", "endings.py:work"], [[]], check_line_memory),
    "sample": (["--sample", "500"], [["0.3"], ["1"], ["3"]], check_samples),
}


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """What the program says and returns when it is run by itself."""
    folder = tmp_path_factory.mktemp("alone")
    return {how: python(SCRIPT, how, cwd=folder, status=status) for how, status in STATUS.items()}


@pytest.mark.parametrize("how", STATUS)
@pytest.mark.parametrize("probe", PROBES)
def test_it_ends_as_if_alone(probe, how, alone, tmp_path):
    options, seconds, check = PROBES[probe]
    for more in seconds:
        done = sonde_run([*options, "-o", "t.sonde"], SCRIPT, how, *more, cwd=tmp_path,
                         status=STATUS[how])
        assert (done.stdout, done.stderr) == (alone[how].stdout, alone[how].stderr)
        if more != seconds[-1] and not is_seen(tmp_path / "t.sonde"):
            continue  # the machine was too busy to let the sampler run: the same for longer
        check(tmp_path / "t.sonde", how == "fork")
        break


@pytest.mark.parametrize("how", ["raise", "_exit", "sigkill", "interrupt", "exec"])
def test_the_runner_shows_what_there_is(how, alone, tmp_path):
    done = python("-m", "sonde", "-s", "ncalls", SCRIPT, how, cwd=tmp_path, status=STATUS[how])
    assert done.stderr == alone[how].stderr
    table = done.stdout[len(alone[how].stdout):]
    assert "function calls" in table and "endings.py:9(work)" in table
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("how", ["exit", "sigkill"])
def test_the_runner_writes_what_there_is(how, tmp_path):
    import pstats
    python("-m", "sonde", "-o", "p.prof", SCRIPT, how, cwd=tmp_path, status=STATUS[how])
    stats = pstats.Stats(str(tmp_path / "p.prof")).stats
    assert {key[2]: entry[1] for key, entry in stats.items()}["work"] == 20
    assert [path.name for path in tmp_path.iterdir()] == ["p.prof"]


def sleeps(trace):
    return [row for row in rows(trace, "functions") if row["function"] == "<built-in method time.sleep>"]


@pytest.mark.parametrize("how", ["_exit", "sigkill", "exec"])
@pytest.mark.parametrize("options", [[], ["--python-only"]])
def test_calls_that_are_open_are_counted(options, how, tmp_path):
    """Those that a program never returns from, and what they called has them for callers."""
    sonde_run(["--functions", *options, "-o", "t.sonde"], SCRIPT, how, cwd=tmp_path,
              status=STATUS[how])
    found = {(row["function"], row["calls"]) for row in rows(tmp_path / "t.sonde", "functions")
             if row["file"].endswith("endings.py")}
    assert {("<module>", 1), ("main", 1), ("work", 20), ("<lambda>", 1)} <= found


def test_an_interrupt_is_passed_on_and_waited_for(tmp_path):
    """The program has it once, does what it does about it, and its status is ours."""
    import os
    import signal
    import subprocess
    import sys
    import time
    (tmp_path / "wait.py").write_text(
        "import time\n"
        "try:\n    print('ready', flush=True)\n    time.sleep(60)\n"
        "except KeyboardInterrupt:\n    print('told', flush=True)\n    raise SystemExit(7)\n")
    child = subprocess.Popen([SONDE, "run", "-q", "--functions", "-o", "t.sonde", "--", sys.executable,
                              "wait.py"], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    end = time.monotonic() + 60
    while not sleeps(tmp_path / "t.sonde"):  # the trace has a call from its begin on
        assert child.poll() is None and time.monotonic() < end
    os.kill(child.pid, signal.SIGINT)
    assert child.stdout.read() == "told\n" and child.wait(60) == 7
    (row,) = sleeps(tmp_path / "t.sonde")
    assert row["calls"] == 1 and row["total_ns"] > 0
