# SPDX-License-Identifier: Apache-2.0
"""A CPython that is newer than sonde: its probes compile without what is known of a version, and count the same.

The module is compiled here for the Python at hand, as if that were such a one.
"""
import concurrent.futures
import glob
import importlib
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import sysconfig

import pytest

import sonde
from python_tools import python

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAME = f"_python{sysconfig.get_config_var('EXT_SUFFIX')}"

PROGRAM = """
import cProfile, json, sys, time, sonde
from sonde import _python
assert _python.__file__.startswith(sys.argv[1]), _python.__file__

def leaf(n):
    return n

def work(n):
    total = 0
    for i in range(n):
        total += leaf(i)
    return total

def numbers(n):
    for i in range(n):
        yield leaf(i)

def all_of_it():
    work(500)
    sum(numbers(100))
    sorted([3, 1, 2], key=leaf)

def table(stats):
    return {key[2]: value[:2] for key, value in stats.items() if "_lsprof" not in key[2]}

all_of_it()
profiler = cProfile.Profile()
profiler.enable(); all_of_it(); profiler.disable()
profiler.create_stats()
theirs = table(profiler.stats)
del theirs["numbers"]  # cProfile takes resumptions for calls
for c_functions in (True, False):
    with sonde.functions(c_functions=c_functions) as seen:
        all_of_it()
    said = _python.functions_describe()["switched"]
    assert said is None if c_functions else "are not known" in said, said
    assert c_functions or "are not known" in seen.report(view="ledger"), seen.report(view="ledger")
    ours = table(seen.stats().stats)
    assert ours.pop("numbers") == (1, 1)
    for name, counts in theirs.items():
        assert ours.get(name) == counts or (not c_functions and name[0] == "<"), (name, ours, theirs)
with sonde.lines(work) as seen:
    work(300)
hits = {row["line"]: row["hits"] for row in json.loads(seen.report(format="json"))["rows"]}
first = work.__code__.co_firstlineno
assert hits[first + 3] == 300 and hits[first + 2] == 301 and hits[first + 1] == 1, hits
with sonde.sample(hz=500) as seen:
    end = time.thread_time() + 0.3
    while time.thread_time() < end: work(1000)
assert "work" in seen.report(), seen.report()
print(_python.functions_describe()["way"])
"""


def commands():
    """The compiler's commands for this Python's module, of whichever build folder has them."""
    for path in sorted(glob.glob(f"{ROOT}/build*/compile_commands.json")):
        found = [one for one in json.load(open(path)) if f"/{NAME}.p/" in "/" + one["output"]]
        if found:
            return found
    return []


def folder_of_the_recorder():
    """Of the library that this process, which has imported sonde, uses."""
    importlib.import_module("sonde._record")
    with open("/proc/self/maps") as lines:
        return next(os.path.dirname(line.split(None, 5)[5]) for line in lines if "/libsonde_record.so" in line)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="before 3.12 every version is known")
def test_probes_without_what_is_known_of_a_version(tmp_path):
    made = commands()
    if not made:
        pytest.skip(f"no build folder of this tree has {NAME}")
    package = tmp_path / "sonde"
    shutil.copytree(os.path.dirname(sonde.__file__), package, ignore=shutil.ignore_patterns("__pycache__", "_python.*.so"))

    def compile_one(number):
        words = [word for word in shlex.split(made[number]["command"]) if os.path.basename(word) != "ccache"]
        words[words.index("-o") + 1] = str(tmp_path / f"{number}.o")
        for option in ("-MQ", "-MF"):
            words[words.index(option) + 1] = str(tmp_path / f"{number}.d")
        subprocess.run([*words, "-DSND_PY_UNKNOWN", "-O0"], cwd=made[number]["directory"], check=True)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(compile_one, range(len(made))))
    library = glob.glob(f"{made[0]['directory']}/src/libsonde_record.so.1")[0]
    compiler = shlex.split(made[0]["command"])
    compiler = compiler[os.path.basename(compiler[0]) == "ccache"]
    subprocess.run([compiler, "-shared", "-o", package / NAME, *glob.glob(f"{tmp_path}/*.o"), library, "-lpthread", "-ldl",
                    f"-Wl,-rpath,{folder_of_the_recorder()}"], check=True)
    (tmp_path / "prog.py").write_text(PROGRAM)
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    done = python("prog.py", tmp_path, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path})
    assert done.stdout == "sys.monitoring\n" and done.stderr == ""
