# SPDX-License-Identifier: Apache-2.0
"""How every benchmark makes, prints and keeps its figures; no benchmark by itself.

A benchmark prints one line for each figure and nothing else (`say`), puts them into bench/results.json, from
which tools/overhead makes docs/OVERHEAD.md, and exits with status 1 if a budget is missed (`conclude`).
"""
import contextlib
import json
import os
import platform
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RESULTS = f"{ROOT}/bench/results.json"
BUILD = f"{ROOT}/build-bench"


def build(*targets):
    """Programs to be measured, in a build of its own, configured after the peers' packages are there."""
    quiet = dict(stdout=subprocess.DEVNULL)
    if not os.path.exists(f"{BUILD}/build.ninja"):
        subprocess.run([os.environ.get("MESON", "meson"), "setup", BUILD, ROOT, "--buildtype=release", "-Dpython=disabled"],
                       check=True, **quiet)
    subprocess.run(["ninja", "-C", BUILD, *targets], check=True, **quiet)


# ------------------------------------------------------------------------ making

def deciles(values):
    values = sorted(values)
    return [values[len(values) // 10], values[len(values) * 9 // 10]]


def figure(name, what, value, unit, budget=None, spread=None, at_least=False, **more):
    """`more`: median; best_ns, both sides of a ratio; both, the two sides as a text; limit, what it cannot be better than, as a
    number of this unit or as a text; why, said where the budget is missed: what was measured of it."""
    met = None if budget is None else (value >= budget if at_least else value <= budget)
    return {"name": name, "what": what, "value": value, "unit": unit, "budget": budget,
            "at_least": at_least, "met": met, "spread": spread, **more}


def ratio(name, what, over, under, budget=None, **more):
    """Of the best rounds; median and spread are those of the paired rounds."""
    pairs = [a / b for a, b in zip(over, under)]
    return figure(name, what, min(over) / min(under), "x", budget, deciles(pairs), median=statistics.median(pairs), **more)


def added(name, what, bare, ours, theirs, budget=None):
    """What ours adds to bare over what theirs adds: lists of nanoseconds, an entry for each round."""
    best = [min(ours) - min(bare), min(theirs) - min(bare)]
    pairs = [(a - c) / (b - c) for a, b, c in zip(ours, theirs, bare) if b > c] or [best[0] / best[1]]
    return figure(name, what, best[0] / best[1], "x", budget, deciles(pairs), median=statistics.median(pairs),
                  best_ns=best, bare_ns=min(bare))


# ---------------------------------------------------------------------- printing

def number(value):
    if abs(value) >= 1e6:
        return f"{value / 1e6:.1f} M"
    return f"{value:.2f}" if abs(value) >= 0.1 or value == 0 else f"{value:.2g}"


def limit(f):
    """The limit of a figure, as a text; empty: it has none that was measured."""
    found = f.get("limit")
    return "" if found is None else found if isinstance(found, str) else number(found)


def shown(f):
    text = f"{f['what']:<66} {number(f['value']):>9} {f['unit']:<10}"
    if "median" in f:
        text += f" median {number(f['median'])}"
    if f["spread"]:
        text += f" spread {number(f['spread'][0])} .. {number(f['spread'][1])}"
    if f["budget"] is not None:
        text += f"  {'at least' if f['at_least'] else 'at most'} {number(f['budget'])}: {'met' if f['met'] else 'MISSED'}"
    if f.get("limit") is not None:
        text += f"  limit {limit(f)}"
    if "best_ns" in f:
        text += f"  ({f['best_ns'][0]:.1f} / {f['best_ns'][1]:.1f} ns)"
    if f.get("both"):
        text += f"  ({f['both']})"
    return text.rstrip()


def say(f):
    """Prints the figure, and returns it."""
    print(shown(f), flush=True)
    return f


def leave_out(what, why):
    """Ends the program: the machine lacks something that the benchmark needs."""
    print(f"left out: {what}: {why}", flush=True)
    sys.exit(0)


# ----------------------------------------------------------------------- keeping

def machine():
    model = platform.processor()
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as lines:
        for line in lines:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    compiler = subprocess.run(["cc", "--version"], check=True, text=True, stdout=subprocess.PIPE).stdout
    return {"cpu": model or platform.machine(), "cores": os.cpu_count(), "kernel": platform.release(),
            "arch": platform.machine(), "compiler": compiler.splitlines()[0]}


def keep(figures, command):
    """Puts them into bench/results.json, in the place of those of the same names; bench/run begins it anew."""
    bench = os.path.splitext(os.path.basename(sys.argv[0]))[0]
    results = {"command": command, "date": time.strftime("%Y-%m-%d"), "machine": machine(), "figures": []}
    if bench != "run":
        with contextlib.suppress(FileNotFoundError), open(RESULTS) as file:
            results = json.load(file)
    names = {one["name"] for one in figures}
    results["figures"] = [one for one in results["figures"] if one["name"] not in names]
    results["figures"] += [{**one, "bench": bench} for one in figures]
    with open(RESULTS, "w") as file:
        json.dump(results, file, indent=2)
        file.write("\n")


def kept(name):
    """A figure of the same `make bench`, made before this one; None: there is none."""
    with contextlib.suppress(FileNotFoundError), open(RESULTS) as file:
        return next((one for one in json.load(file)["figures"] if one["name"] == name), None)
    return None


def clock_reads_ns(count):
    """What so many readings of the clock take, as bench/run found it: no event has its time for less. None: not measured."""
    pair = kept("range_1")
    return pair and pair["best_ns"][1] * count / 2


def over_added(limit_ns, f):
    """A figure of `added`, with the least that could be added as its limit; None: not known."""
    return f if limit_ns is None else {**f, "limit": limit_ns / f["best_ns"][1]}


def conclude(figures, command="make bench", keeps=True):
    """Keeps the figures and ends the program: with status 1 if a budget is missed."""
    if keeps:
        keep(figures, command)
    missed = [one["what"] for one in figures if one["met"] is False]
    if missed:
        sys.exit(f"{os.path.basename(sys.argv[0])}: over budget: {'; '.join(missed)}")
    sys.exit(0)
