# SPDX-License-Identifier: Apache-2.0
"""Programs with more than one Python interpreter: one after the other, and one beside the other."""
import os
import subprocess
import sysconfig

import pytest

from python_tools import PROGRAMS, SONDE, rows, run

# What differs between lives has the life's number in its name.
SCRIPT = """\
import os, time
def f(n):
    t = 0
    for i in range(n):
        t += i
    return t
for _ in range(10):
    f(100)
source = "def only_{0}():\\n    while time.process_time() < until: pass\\n"
exec(source.format(os.environ["LIFE"]))
until = time.process_time() + 0.1
globals()["only_" + os.environ["LIFE"]]()
"""
LIVES = 3


@pytest.fixture(scope="module")
def embedding(tmp_path_factory):
    """A program that has this Python's library in it, or a skip."""
    ask = sysconfig.get_config_var
    program = tmp_path_factory.mktemp("lives") / "lives"
    words = [os.environ.get("CC", "cc"), PROGRAMS / "lives.c", "-o", program, f"-I{ask('INCLUDEPY')}",
             f"-L{ask('LIBDIR')}", f"-Wl,-rpath,{ask('LIBDIR')}", f"-lpython{ask('LDVERSION')}"]
    done = subprocess.run(list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        pytest.skip(f"this Python has no library to link with: {done.stdout.strip().splitlines()[-1]}")
    return program


def record(embedding, folder, *options):
    """The trace of a program of several lives, which has nothing to complain of."""
    (folder / "prog.py").write_text(SCRIPT)
    done = run(SONDE, "run", *options, "-o", "t.sonde", "--", embedding, "prog.py", LIVES, cwd=folder)
    assert done.stderr.splitlines() == ["sonde: recorded t.sonde; next: sonde report t.sonde"]
    return folder / "t.sonde"


@pytest.mark.parametrize("options", [["--lines", "f"], ["--lines", "f", "--line-memory", "f", "--functions", "--sample"]],
                         ids=["alone", "with others"])
def test_lines_of_every_life_are_counted(embedding, tmp_path, options):
    trace = record(embedding, tmp_path, *options)
    hits = {row["line"]: row["hits"] for row in rows(trace, "lines")}
    assert (hits[3], hits[4], hits[5], hits[6]) == (10 * LIVES, 1010 * LIVES, 1000 * LIVES, 10 * LIVES)


def test_line_memory_of_every_life(embedding, tmp_path):
    """What was in use at the first call counts once."""
    trace = record(embedding, tmp_path, "--line-memory", "f")
    found = {row["line"]: row for row in rows(trace, "line-memory")}
    assert found[2]["occurrences"] == 10 * LIVES and found[5]["occurrences"] == 1000 * LIVES
    assert found[2]["increment_bytes"] < 1.5 * found[2]["usage_bytes"]


@pytest.mark.parametrize("way", [[], ["--python-only"]], ids=["with C functions", "Python alone"])
def test_calls_of_every_life_are_counted(embedding, tmp_path, way):
    trace = record(embedding, tmp_path, "--functions", *way)
    calls = {row["function"]: row["calls"] for row in rows(trace, "functions")}
    assert calls["f"] == 10 * LIVES
    assert [calls[f"only_{life + 1}"] for life in range(LIVES)] == [1] * LIVES


def test_every_life_is_sampled(embedding, tmp_path):
    trace = record(embedding, tmp_path, "--sample=500")
    run(SONDE, "export", trace, "--to", "folded", "-o", "t.folded", cwd=tmp_path)
    text = (tmp_path / "t.folded").read_text()
    assert all(f"only_{life + 1}" in text for life in range(LIVES))
