#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/python_programs.py [--quick] [NAME..] - what profiling costs on five real programs.

Other people's programs (tests/programs/programs.py, installed by tools/programs), each alone, sampled,
with every call counted, and under cProfile: whole processes, start and end among it, in turn, round
after round. A figure is the ratio of the best rounds by the wall's clock; its spread, first to ninth
decile, that of the paired rounds by the processor time of all their processes. Prints as bench/run does
and puts its figures into bench/results.json. --quick: two rounds.
"""
import argparse
import os
import pathlib
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/programs"))

from figures import conclude, deciles, figure, say  # noqa: E402
from programs import PROGRAMS  # noqa: E402

NAMES = ("black", "django", "sphinx", "jinja2", "pandas")
SCRATCH = ROOT / "build-programs"
PYTHON = f"{SCRATCH}/venv/bin/python"
SONDE = f"{ROOT}/.venv/bin/sonde"

# In front of the program's own words, `python` being the first of them.
WAYS = {
    "alone": [PYTHON],
    "sample": [SONDE, "run", "-o", "t.sonde", "--sample", "--", PYTHON],
    "functions": [SONDE, "run", "-o", "t.sonde", "--functions", "--", PYTHON],
    "cProfile": [PYTHON, "-m", "cProfile", "-o", "t.prof"],
}
SHOWN = {"sample": "sampled 100 times a second", "functions": "sonde run --functions",
         "cProfile": "cProfile"}


def run(program, way, folder):
    """Seconds by the wall's clock, and of processor time."""
    shutil.copytree(ROOT / "tests/programs/scripts", folder, dirs_exist_ok=True)
    words = shlex.split(program.words.format(python="", bin=f"{SCRATCH}/venv/bin",
                                             sources=f"{SCRATCH}/sources", port=0))
    begin = time.monotonic()
    child = subprocess.Popen([*WAYS[way], *words], cwd=folder, stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             env={**os.environ, "PYTHONHASHSEED": "1"})
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.monotonic() - begin
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != program.status and way != "cProfile":  # which exits as it likes
        sys.exit(f"bench/python_programs.py: {program.name}, {way}: exit status {child.returncode}")
    return wall, usage.ru_utime + usage.ru_stime


def measure(program, rounds):
    """By way, its rounds. The first, which fills caches, is not among them."""
    found = {way: [] for way in WAYS}
    for turn in range(rounds + 1):
        for way in WAYS:
            with tempfile.TemporaryDirectory(prefix="sonde-bench-") as folder:
                cost = run(program, way, folder)
            if turn > 0:
                found[way].append(cost)
    return found


def compare(program, way, found):
    best = {name: min(wall for wall, _ in costs) for name, costs in found.items()}
    pairs = [cost[1] / alone[1] for cost, alone in zip(found[way], found["alone"])]
    return figure(f"python_programs_{program.name}_{way}", f"{program.name}: {SHOWN[way]} / alone", best[way] / best["alone"], "x",
                  spread=deciles(pairs), median=statistics.median(pairs))


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--quick", action="store_true")
    options.add_argument("names", nargs="*", default=NAMES, metavar="NAME")
    chosen = options.parse_args()
    if not os.path.exists(PYTHON):
        sys.exit("bench/python_programs.py: the programs are not installed: run tools/programs .venv/bin/python")
    figures = []
    for program in PROGRAMS:
        if program.name in chosen.names:
            found = measure(program, 2 if chosen.quick else 6)
            for way in SHOWN:
                figures.append(say(compare(program, way, found)))
    conclude(figures)


if __name__ == "__main__":
    main()
