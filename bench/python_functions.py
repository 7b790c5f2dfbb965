#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/python_functions.py [--quick] - what recording adds to a Python call.

fib(24), as the time that sonde adds to a call over what cProfile adds: with functions in C (the
default of both) and without. Bare, ours and theirs run in turn in one process, round after round;
a figure is the ratio of the best rounds' added times, its spread that of the paired rounds, first
to ninth decile. The Python of .venv, and every other that tools/test has built the probes for
(build-py3.*). Prints as bench/run does and puts its figures into bench/results.json. Exit status:
1 if a budget is missed.

The budget is that of calls between Python functions, which is all that fib does. For functions in C the
interpreter has to call a profiler at every call, which costs more than that by itself up to 3.11; the figure with them is
shown without a budget. The limit is two readings of the clock, as bench/run measured them before.
"""
import argparse
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import time

from figures import added, clock_reads_ns, conclude, over_added, say

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUDGET = 1 / 3
NUMBER = 24
# A run of fib(24) is long enough to be disturbed on any machine that does something else: it is
# measured in pieces that add up to it, of which most are not.
PIECE, PIECES = 17, 29


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def count_calls(n):
    return 1 if n < 2 else 1 + count_calls(n - 1) + count_calls(n - 2)


# --------------------------------------------------------------------- measuring

def best_ns():
    """Nanoseconds a call, of the piece that was disturbed least."""
    best = float("inf")
    for _ in range(PIECES):
        begin = time.perf_counter_ns()
        fib(PIECE)
        best = min(best, time.perf_counter_ns() - begin)
    return best / count_calls(PIECE)


def ours(folder, c_functions):
    import sonde
    with sonde.functions(c_functions=c_functions, path=f"{folder}/{time.monotonic_ns()}.sonde"):
        fib(5)
        return best_ns()


def theirs(builtins):
    import cProfile
    profiler = cProfile.Profile(builtins=builtins)
    profiler.enable()
    fib(5)
    best = best_ns()
    profiler.disable()
    return best


def measure(rounds):
    """{mode: [ns a call in each round]}, the modes in turn."""
    times = {name: [] for name in ("bare", "ours", "ours, C too", "theirs", "theirs, C too")}
    with tempfile.TemporaryDirectory(prefix="sonde-bench-") as folder:
        for _ in range(rounds):
            times["bare"].append(best_ns())
            times["ours"].append(ours(folder, False))
            times["theirs"].append(theirs(False))
            times["ours, C too"].append(ours(folder, True))
            times["theirs, C too"].append(theirs(True))
    return times


# -------------------------------------------------------------------------- pythons

def other_pythons():
    """(interpreter, environment) of those that tools/test built the probes for."""
    own = "%d.%d" % sys.version_info[:2]
    for package in sorted(glob.glob(f"{ROOT}/build-py3.*/package"),
                          key=lambda path: int(re.search(r"py3\.(\d+)", path).group(1))):
        version = re.search(r"py(3\.\d+)", package).group(1)
        try:
            with open(f"{ROOT}/build-pythons/py{version}.ini") as file:
                python = re.search(r"python = '(.*)'", file.read()).group(1)
        except (OSError, AttributeError):
            continue
        if version != own:
            yield python, {**os.environ, "PYTHONPATH": package,
                           "LD_LIBRARY_PATH": f"{ROOT}/.venv/lib"}


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--quick", action="store_true")
    options.add_argument("--times", action="store_true", help="only measure, and print JSON")
    options = options.parse_args()
    rounds = 8 if options.quick else 30
    if options.times:
        json.dump({"version": "%d.%d" % sys.version_info[:2], "times": measure(rounds)}, sys.stdout)
        return
    figures = []
    command = [os.path.abspath(__file__), "--times"] + ["--quick"] * options.quick
    for python, env in [(sys.executable, None), *other_pythons()]:
        done = subprocess.run([python, *command], env=env, check=True, stdout=subprocess.PIPE,
                              text=True)
        said = json.loads(done.stdout)
        for name, what, mode, budget in (("python", "Python alone", "", BUDGET),
                                         ("all", "functions in C too", ", C too", None)):
            times = said["times"]
            found = added(f"python_functions_{name}_{said['version']}",
                          f"Python {said['version']} call, fib({NUMBER}), {what}: added, over cProfile's",
                          times["bare"], times[f"ours{mode}"], times[f"theirs{mode}"], budget)
            reads = clock_reads_ns(2)
            if reads is not None:
                found["why"] = (f"sonde adds {found['best_ns'][0]:.0f} ns to a call, of which two readings of the clock are {reads:.0f}; "
                                f"cProfile adds {found['best_ns'][1]:.0f}.")
            figures.append(say(over_added(reads, found)))
    conclude(figures)


if __name__ == "__main__":
    main()
