#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/python_functions.py [--quick] - what recording adds to a Python call.

fib(24), as the time that sonde adds to a call over what cProfile adds: with functions in C (the
default of both) and without. Bare, ours and theirs run in turn in one process, round after round;
a figure is the ratio of the best rounds' added times, its spread that of the paired rounds, first
to ninth decile. The Python of .venv, and every other that tools/test has built the probes for
(build-py3.*). Prints as bench/run does and puts its figures into bench/results.json. Exit status:
1 if a budget is missed.

The budget is that of calls between Python functions, which is all that fib does. For functions in C a profiler has to be told of every call by the interpreter, which costs
more than that by itself up to 3.11; the figure with them is shown without a budget.
"""
import argparse
import glob
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RESULTS = f"{ROOT}/bench/results.json"
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


# ----------------------------------------------------------------------- figures

def deciles(values):
    values = sorted(values)
    return [values[len(values) // 10], values[len(values) * 9 // 10]]


def figure(version, name, what, times, mode, budget):
    bare, mine, other = times["bare"], times[f"ours{mode}"], times[f"theirs{mode}"]
    added = [min(mine) - min(bare), min(other) - min(bare)]
    pairs = [(a - c) / (b - c) for a, b, c in zip(mine, other, bare) if b > c]
    value = added[0] / added[1]
    return {"name": f"python_functions_{name}_{version}",
            "what": f"Python {version} call, fib({NUMBER}), {what}: added, over cProfile's",
            "value": value, "unit": "x", "budget": budget, "at_least": False,
            "met": None if budget is None else value <= budget, "spread": deciles(pairs),
            "median": statistics.median(pairs), "best_ns": added, "bare_ns": min(bare)}


def shown(f):
    text = (f"{f['what']:<66} {f['value']:>9.2f} {f['unit']:<10} spread {f['spread'][0]:.2f} .. "
            f"{f['spread'][1]:.2f}")
    if f["budget"] is not None:
        text += f"  at most {f['budget']:.2f}: {'met' if f['met'] else 'MISSED'}"
    return text + f"  ({f['best_ns'][0]:.0f} / {f['best_ns'][1]:.0f} ns)"


def merge(figures):
    """Into bench/results.json, in the place of figures of the same names."""
    try:
        with open(RESULTS) as file:
            results = json.load(file)
    except FileNotFoundError:
        results = {"command": "make bench", "date": time.strftime("%Y-%m-%d"), "figures": []}
    names = {one["name"] for one in figures}
    results["figures"] = [one for one in results["figures"] if one["name"] not in names] + figures
    with open(RESULTS, "w") as file:
        json.dump(results, file, indent=2)
        file.write("\n")


def conclude(figures, decimals):
    """Prints the figures with their budgets, keeps them, and ends the program: with 1 if one is missed."""
    for one in figures:
        limit = "at least" if one["at_least"] else "at most"
        print(f"{one['what']}: {one['value']:.{decimals}f} {one['unit']} (budget: {limit} {one['budget']:g})"
              f"{' ' if one['both'] else ''}{one['both']}{'' if one['met'] else ' MISSED'}")
    merge(figures)
    sys.exit(0 if all(one["met"] for one in figures) else 1)


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
        print(json.dumps({"version": "%d.%d" % sys.version_info[:2], "times": measure(rounds)}))
        return
    figures = []
    command = [os.path.abspath(__file__), "--times"] + ["--quick"] * options.quick
    for python, env in [(sys.executable, None), *other_pythons()]:
        done = subprocess.run([python, *command], env=env, check=True, stdout=subprocess.PIPE,
                              text=True)
        said = json.loads(done.stdout)
        for name, what, mode, budget in (("python", "Python alone", "", BUDGET),
                                         ("all", "functions in C too", ", C too", None)):
            figures.append(figure(said["version"], name, what, said["times"], mode, budget))
            print(shown(figures[-1]), flush=True)
    merge(figures)
    missed = [one["what"] for one in figures if one["met"] is False]
    if missed:
        sys.exit(f"bench/python_functions.py: over budget: {'; '.join(missed)}")


if __name__ == "__main__":
    main()
