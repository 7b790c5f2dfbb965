# SPDX-License-Identifier: Apache-2.0
"""The wheel of a CPython, in an environment that has nothing but that wheel: no compiler, no torch, no other package. What can be
counted is counted right, and every format is written. `tools/test wheels` runs it for each CPython of the machine."""
import json
import os
import pathlib
import pstats
import shutil
import subprocess
import time

import pytest

ENV = pathlib.Path(os.environ.get("SONDE_WHEEL_ALONE", "/nonexistent"))
PYTHON = ENV / "bin/python"
# Nothing is found but what the wheel brings: no compiler, no other tool.
ENVIRONMENT = {"PATH": str(ENV / "bin"), "LANG": "C.UTF-8", **{name: os.environ[name] for name in ("HOME", "TMPDIR") if name in os.environ}}

pytestmark = pytest.mark.skipif(not ENV.exists(), reason="no environments of wheels: run `tools/test wheels`")

PROGRAM = """\
import sys
import time


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def fill(count):
    kept = []
    for i in range(count):
        kept.append(bytes(1000))
    return kept


if __name__ == "__main__":
    until = time.monotonic() + float(sys.argv[1])
    fib(15)
    kept = fill(100)
    while time.monotonic() < until:
        fib(15)
    print("done")
"""
FIB_CALLS = 1973  # of fib(15)


def sonde(*words, status=0, **extra):
    done = subprocess.run([ENV / "bin/sonde", *map(str, words)], env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=100, **extra)
    assert done.returncode == status, f"sonde {words}: {done.returncode}: {done.stderr}"
    return done


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("alone")
    (folder / "prog.py").write_text(PROGRAM)
    return folder


def record(place, name, *options, seconds=0):
    done = sonde("run", "-q", *options, "-o", f"{name}.sonde", "--", PYTHON, "prog.py", seconds, cwd=place)
    assert done.stdout == "done\n"
    return place / f"{name}.sonde"


def rows(trace, view):
    return json.loads(sonde("report", trace, "--view", view, "--json").stdout)["rows"]


def test_it_is_alone():
    assert not [name for name in ("cc", "gcc", "c++", "g++", "clang") if shutil.which(name, path=ENVIRONMENT["PATH"])]
    found = subprocess.run([PYTHON, "-c", "import importlib.util as u; print([n for n in ('torch', 'numpy', 'sonde') if u.find_spec(n)])"],
                           env=ENVIRONMENT, stdout=subprocess.PIPE, text=True, check=True).stdout
    assert found == "['sonde']\n"


def test_calls_are_cprofiles(place):
    trace = record(place, "functions", "--functions")
    own = {row["function"]: row["calls"] for row in rows(trace, "functions") if row["file"].endswith("prog.py")}
    assert own["fib"] == FIB_CALLS and own["fill"] == 1
    # cProfile of this very Python, whose file any Python reads
    subprocess.run([PYTHON, "-m", "cProfile", "-o", "theirs.prof", "prog.py", "0"], cwd=place, env=ENVIRONMENT, check=True, stdout=subprocess.DEVNULL)
    sonde("export", trace, "--to", "pstats", "-o", place / "ours.prof")
    ours, theirs = ({key[2]: value[:2] for key, value in pstats.Stats(str(place / name)).stats.items() if key[0].endswith("prog.py")}
                    for name in ("ours.prof", "theirs.prof"))
    assert ours == theirs and ours["fib"] == (1, FIB_CALLS)


def test_hits_of_lines(place):
    hits = {row["line"]: row["hits"] for row in rows(record(place, "lines", "--lines", "fill"), "lines")}
    assert hits == {10: 1, 11: 101, 12: 100, 13: 1}


def test_bytes_of_lines(place):
    found = {row["line"]: row for row in rows(record(place, "bytes", "--line-memory", "fill"), "line-memory")}
    assert found[12]["occurrences"] == 100 and 100_000 <= found[12]["increment_bytes"] < 120_000, found


def test_samples_have_the_busy_function(place):
    trace = record(place, "samples", "--sample=500", seconds=0.6)
    folded = sonde("export", trace, "--to", "folded", "-o", "-").stdout.splitlines()
    total = sum(int(line.rpartition(" ")[2]) for line in folded)
    busy = sum(int(line.rpartition(" ")[2]) for line in folded if "fib" in line)
    assert total > 0 and busy > 0.8 * total, folded


def test_a_running_process(place):
    with subprocess.Popen([PYTHON, "prog.py", "30"], cwd=place, env=ENVIRONMENT, stdout=subprocess.DEVNULL) as running:
        try:
            time.sleep(0.5)
            sonde("attach", running.pid, "--duration", "0.5", "--sample=200", "-q", "-o", "attached.sonde", cwd=place)
        finally:
            running.kill()
    assert "fib" in sonde("export", place / "attached.sonde", "--to", "folded", "-o", "-").stdout


def test_every_format_of_ranges_is_written(place):
    trace = record(place, "spans", "--functions", "--timeline")
    listed = [line.split()[0] for line in sonde("export", "--list").stdout.splitlines()]
    assert {"html", "chrome", "perfetto", "sqlite", "parquet"} <= set(listed)
    for name in ("html", "chrome", "perfetto", "speedscope", "pprof", "callgrind", "json", "csv", "sqlite", "parquet"):
        sonde("export", trace, "--to", name, "-o", place / f"out.{name}")
        assert (place / f"out.{name}").exists(), name
    assert json.loads((place / "out.chrome").read_text())["traceEvents"]


def test_other_commands(place):
    trace = record(place, "kept", "--functions")
    assert "whole" in sonde("check", trace).stdout + sonde("check", trace).stderr
    sonde("pack", trace, "-o", place / "packed.sonde")
    assert rows(place / "packed.sonde", "functions") == rows(trace, "functions")
    sonde("diff", trace, trace)
    assert "--functions" in sonde("doctor").stdout
    missing = sonde("model", "torchvision:resnet18", status=1)
    assert "torch" in missing.stderr and len(missing.stderr.strip().splitlines()) == 1, missing.stderr


def test_python_reads_what_it_records(place):
    program = ("import sonde\nwith sonde.functions(path='own.sonde'):\n    sorted([3, 1])\n"
               "with sonde.Trace('own.sonde') as trace:\n    print('built-in method builtins.sorted' in trace.report(view='functions'))\n")
    done = subprocess.run([PYTHON, "-c", program], cwd=place, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr
