# SPDX-License-Identifier: Apache-2.0
"""What sonde writes for other tools of Python programs, opened by those tools."""
import os
import pathlib
import pickle
import pstats
import re
import shutil
import subprocess
import sys

import mprof
import pytest
import snakeviz.stats

import cli_tools
from cli_tools import needs_tools, read, read_json

pytestmark = needs_tools
needs_annotate = pytest.mark.skipif(not shutil.which("callgrind_annotate"),
                                    reason="callgrind_annotate is not installed: tools/setup test")


@pytest.fixture
def trace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return cli_tools.generate("python", tmp_path / "t.sonde")


def run(*words):
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def functions(trace):
    """(file, line, function) to its row, as the view has it."""
    rows = read_json("report", trace, "--view", "functions", "--json")["rows"]
    return {(row["file"], row["line"], row["function"]): row for row in rows}


def find_pythons():
    """Every Python 3 of this machine that starts, this one included."""
    pyenv = pathlib.Path(os.environ.get("PYENV_ROOT") or pathlib.Path.home() / ".pyenv")
    found = {shutil.which(f"python3.{minor}") for minor in range(8, 16)} - {None}
    found |= {str(path) for path in pyenv.glob("versions/3.*/bin/python3")}
    works = [path for path in sorted(found)
             if subprocess.run([path, "-c", ""], stderr=subprocess.DEVNULL).returncode == 0]
    return [sys.executable, *works]


# ------------------------------------------------------------------------- pstats

def test_pstats_opens_the_profile(trace):
    read("export", trace, "--to", "pstats")
    stats = pstats.Stats("t.sonde.prof").stats
    assert stats["/app/prog.py", 1, "fib"] == (
        3, 15, 0.0035, 0.0035, {("/app/prog.py", 6, "main"): (3, 3, 0.0012, 0.0035),
                                ("/app/prog.py", 1, "fib"): (12, 6, 0.0023, 0.0023)})
    assert stats["~", 0, "<built-in method builtins.len>"][:2] == (1, 1)
    assert stats["/app/prog.py", 1, "<module>"][4] == {}


def test_every_python_opens_the_profile(trace):
    """marshal has versions; the file is in the one that all of them read."""
    read("export", trace, "--to", "pstats", "-o", "t.prof")
    code = "import pstats; s = pstats.Stats('t.prof'); print(s.total_calls, s.prim_calls)"
    for python in find_pythons():
        assert run(python, "-c", code) == "20 8\n"


def test_names_of_any_bytes_pass(tmp_path):
    """Bytes that are not UTF-8 come out as surrogateescape has them."""
    trace = cli_tools.generate("python_names", tmp_path / "t.sonde")
    read("export", trace, "--to", "pstats", "-o", tmp_path / "t.prof")
    read("export", trace, "--to", "lprof", "-o", tmp_path / "t.lprof")
    names = {name for _file, _line, name in pstats.Stats(str(tmp_path / "t.prof")).stats}
    assert b"not UTF-8: \xff".decode("utf-8", "surrogateescape") in names
    assert "\u4e2d\u6587 \U0001f680" in names
    with open(tmp_path / "t.lprof", "rb") as file:
        timings = pickle.load(file).timings
    assert {name for _file, _line, name in timings} == names
    assert timings["a.py", 7, "\u4e2d\u6587 \U0001f680"] == [(8, 2**64 - 1, 2**60)]


def test_snakeviz_and_gprof2dot_open_the_profile(trace):
    read("export", trace, "--to", "pstats", "-o", "t.prof")
    rows = snakeviz.stats.table_rows(pstats.Stats("t.prof"))
    assert len(rows) == 5
    tree = snakeviz.stats.json_stats(pstats.Stats("t.prof"))
    assert any("fib" in name for name in tree)
    dot = run(sys.executable, "-m", "gprof2dot", "-f", "pstats", "-n0", "-e0", "t.prof")
    assert "prog:1:fib" in dot and "15" in dot


# ---------------------------------------------------------------------- callgrind

@needs_annotate
def test_callgrind_annotate_adds_up(trace):
    read("export", trace, "--to", "callgrind", "-o", "t.callgrind")
    text = run("callgrind_annotate", "--threshold=100", "t.callgrind")
    assert re.search(r"^5,300,000 \(100\.0%\)\s+PROGRAM TOTALS$", text, re.M), text
    assert re.search(r"^3,500,000 \(66\.04%\)\s+/app/prog\.py:fib", text, re.M), text
    inclusive = run("callgrind_annotate", "--inclusive=yes", "--threshold=100", "t.callgrind")
    assert re.search(r"^5,000,000 \(94\.34%\)\s+/app/prog\.py:<module>", inclusive, re.M), inclusive


@needs_annotate
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_callgrind_has_every_function(seed, tmp_path):
    trace = cli_tools.generate("python_random", tmp_path / "t.sonde", str(seed))
    read("export", trace, "--to", "callgrind", "-o", tmp_path / "t.callgrind")
    text = run("callgrind_annotate", "--threshold=100", tmp_path / "t.callgrind")
    found = {name: int(number.replace(",", "")) for number, name in
             re.findall(r"^\s*([\d,]+) \([ \d.]+%\)\s+\S+?:(\S.*?)(?: \[\])?$", text, re.M)}
    for (_file, _line, name), row in functions(trace).items():
        assert found[name] == row["self_ns"]


def test_gprof2dot_opens_callgrind(trace):
    read("export", trace, "--to", "callgrind", "-o", "t.callgrind")
    dot = run(sys.executable, "-m", "gprof2dot", "-f", "callgrind", "-n0", "-e0", "t.callgrind")
    assert "fib" in dot and "main" in dot


# -------------------------------------------------------------------------- lprof

def test_line_profiler_opens_the_lines(trace):
    read("export", trace, "--to", "lprof", "-o", "t.lprof")
    text = run(sys.executable, "-m", "line_profiler", "-m", "-u", "1e-9", "t.lprof")
    assert "Total time: 3.50013 s" in text
    assert re.search(r"^ +3 +9 +1800\.0 +200\.0 +0\.0", text, re.M)
    assert text.endswith("  0.00 seconds - /app/prog.py:12 - never\n")


# -------------------------------------------------------------------------- mprof

def test_mprof_reads_memory_over_time(trace):
    read("export", trace, "--to", "mprof", "-o", "t.dat")
    result = mprof.read_mprofile_file("t.dat")
    assert result["cmd_line"] == "prog.py --fast\n"
    assert result["mem_usage"] == [40.0, 41.0, 42.0, 43.0]
    assert result["timestamp"] == [1700000000.001, 1700000000.101, 1700000000.201, 1700000000.301]
    assert result["func_timestamp"] == {
        "prog.main": [[1700000000.15, 1700000000.35, 41.0, 43.0, 1]]}


def test_mprof_peak(trace):
    read("export", trace, "--to", "mprof", "-o", "t.dat")
    text = run(sys.executable, "-c", "import sys, mprof; sys.argv = ['mprof', 'peak', 't.dat']; "
               "mprof.main()")
    assert text.split() == ["t.dat", "43.000", "MiB"]


# --------------------------------------------------------------------- speedscope

def check_sampled(profile, frames):
    assert len(profile["samples"]) == len(profile["weights"]) > 0
    assert all(0 <= i < frames for stack in profile["samples"] for i in stack)
    assert all(weight >= 0 for weight in profile["weights"])
    assert sum(profile["weights"]) == profile["endValue"] - profile["startValue"]


def check_evented(profile, frames):
    """Times never fall, and what closes is what was opened last: speedscope refuses the rest."""
    open_frames, last = [], profile["startValue"]
    for event in profile["events"]:
        assert last <= event["at"] <= profile["endValue"]
        assert 0 <= event["frame"] < frames
        last = event["at"]
        if event["type"] == "O":
            open_frames.append(event["frame"])
        else:
            assert open_frames.pop() == event["frame"]
    assert not open_frames


@pytest.mark.parametrize("case", ["samples", "python_random", "python_trace", "async", "torch",
                                  "threads", "gaps", "unfinished", "names", "keep_last", "warmup",
                                  "two_processes", "empty"])
def test_speedscope_files_are_what_speedscope_takes(case, tmp_path):
    """The rules of its file-format-spec.ts."""
    trace = cli_tools.generate(case, tmp_path / "t.sonde")
    scope = read_json("export", trace, "--to", "speedscope", "-o", "-")
    assert scope["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = scope["shared"]["frames"]
    assert all(isinstance(frame["name"], str) for frame in frames)
    for profile in scope["profiles"]:
        assert profile["unit"] == "nanoseconds" and isinstance(profile["name"], str)
        {"sampled": check_sampled, "evented": check_evented}[profile["type"]](profile, len(frames))
    kinds = {profile["type"] for profile in scope["profiles"]}
    sampled = case in ("samples", "python_random")
    assert kinds == ({"sampled"} if sampled else {"evented"} if case != "empty" else set())


def test_speedscope_and_folded_agree(tmp_path):
    trace = cli_tools.generate("python_random", tmp_path / "t.sonde", "5")
    scope = read_json("export", trace, "--to", "speedscope", "-o", "-")
    frames = [f"{frame['name']} ({frame['file']}{':%d' % frame['line'] if 'line' in frame else ''})"
              for frame in scope["shared"]["frames"]]
    expected = {}
    for stack, weight in zip(scope["profiles"][0]["samples"], scope["profiles"][0]["weights"]):
        path = ";".join(["main", *(frames[i] for i in stack)])
        expected[path] = expected.get(path, 0) + weight
    lines = read("export", trace, "--to", "folded", "-o", "-").decode().splitlines()
    assert {line.rsplit(" ", 1)[0]: int(line.rsplit(" ", 1)[1]) for line in lines} == {
        path: weight // 1000 for path, weight in expected.items()}


# --------------------------------------------------------------- traces without it

@pytest.mark.parametrize("case, form, what", [
    ("convnet", "pstats", "--functions"), ("convnet", "lprof", "--lines"), ("convnet", "mprof", "--line-memory"),
    ("counters", "callgrind", "--functions"), ("counters", "pprof", "--sample")])  # which take ranges, too
def test_what_is_not_there_is_said(case, form, what, tmp_path):
    trace = cli_tools.generate(case, tmp_path / "t.sonde")
    out = tmp_path / "out"
    done = cli_tools.sonde("export", trace, "--to", form, "-o", out)
    assert done.returncode == 1
    assert what in done.stderr.decode() and done.stderr.count(b"\n") == 1
    assert not out.exists() and os.listdir(tmp_path) == [pathlib.Path(trace).name]
