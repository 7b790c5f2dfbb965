# SPDX-License-Identifier: Apache-2.0
"""Programs with more than one Python interpreter: one after the other, and one beside the other."""
import os
import subprocess
import sys
import sysconfig

import pytest

from python_tools import PROGRAMS, SONDE, rows, run, sonde_run

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
    # Or it takes the first Python of the PATH for its own, which may be another version's.
    home = {"PYTHONHOME": f"{sys.base_prefix}:{sys.base_exec_prefix}"}
    done = run(SONDE, "run", *options, "-o", "t.sonde", "--", embedding, "prog.py", LIVES, cwd=folder, env={**os.environ, **home})
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


# ------------------------------------------------------------------------- subinterpreters

BESIDE = """\
import sys
try:
    import _interpreters as made
except ImportError:
    import _xxsubinterpreters as made
legacy = {"config": "legacy"} if sys.version_info >= (3, 13) else {"isolated": False}
def f(x):
    return x
for options in (legacy, {}):
    for _ in range(2):
        f(1)
        other = made.create(*options.values()) if "config" in options else made.create(**options)
        failed = made.run_string(other, "def f(x): return x\\nimport json\\nfor i in range(100): f(i)")
        assert not failed, failed
        made.destroy(other)
        f(2)
print("done")
"""
UNSEEN = "sonde: subinterpreters are not recorded by {}, which see the main interpreter only\n"


@pytest.mark.parametrize("options, unseen", [
    (["--functions"], "--functions"), (["--functions", "--python-only"], "--functions"),
    (["--lines", "f", "--sample=500"], "--lines"), (["--lines", "f", "--line-memory", "f"], "--lines and --line-memory"),
    (["--sample=500"], None), (["--sample=500", "--native"], None),
], ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_subinterpreters_leave_the_main_one_as_it_is(tmp_path, options, unseen):
    """Nothing is raised in the program; what is not seen is said once."""
    (tmp_path / "prog.py").write_text(BESIDE)
    done = sonde_run([*options, "-o", "t.sonde"], "prog.py", cwd=tmp_path)
    assert done.stdout == "done\n" and done.stderr == (UNSEEN.format(unseen) if unseen else "")
    if "--functions" in options:
        calls = {row["function"]: row["calls"] for row in rows(tmp_path / "t.sonde", "functions")}
        assert calls["f"] == 8
    if "--lines" in options:
        assert [row["hits"] for row in rows(tmp_path / "t.sonde", "lines") if row["line"] == 8] == [8]


def test_threads_of_a_subinterpreter_are_sampled(tmp_path):
    (tmp_path / "prog.py").write_text(BESIDE.split("def f")[0] + '''
other = made.create(*legacy.values()) if "config" in legacy else made.create(**legacy)
text = """
import threading, time
def inside():
    until = time.monotonic() + 0.5
    while time.monotonic() < until: pass
thread = threading.Thread(target=inside)
thread.start()
thread.join()
"""
assert not made.run_string(other, text)
made.destroy(other)
''')
    done = sonde_run(["--sample=500", "-o", "t.sonde"], "prog.py", cwd=tmp_path)
    assert done.stderr == ""
    run(SONDE, "export", "t.sonde", "--to", "folded", "-o", "t.folded", cwd=tmp_path)
    assert ";inside (" in (tmp_path / "t.folded").read_text()
