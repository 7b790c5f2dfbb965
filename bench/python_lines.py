#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/python_lines.py [--quick] - what recording adds to a line of Python.

A loop of two lines: the time that sonde.lines adds over what line_profiler adds, the time that
sonde.line_memory adds over what memory_profiler adds, and what a function that was not chosen pays
while one that was is running. Bare, ours and theirs run in turn in one process, round after round;
a figure is the ratio of the best rounds' added times, its spread that of the paired rounds, first to
ninth decile. Needs the installed package and the peers. Prints as bench/run does and puts its
figures into bench/results.json. Exit status: 1 if a budget is missed. The limit of the loop: a reading of the clock for each line,
as bench/run measured it before.
"""
import argparse
import os
import sys
import tempfile
import time
import warnings

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from figures import added, clock_reads_ns, conclude, leave_out, over_added, say  # noqa: E402

SOURCE = """
def loop(n):
    t = 0
    for i in range(n):
        t += i

def not_chosen(i):
    return i

def calls(n):
    for i in range(n):
        not_chosen(i)

def caller(n):
    calls(n)
"""
BUDGETS = {"lines": 1 / 2, "memory": 1 / 100}


def make(folder, name):
    """A copy of the functions for each tool: some change the code they look at."""
    path = os.path.join(folder, f"{name}.py")
    with open(path, "w") as file:
        file.write(SOURCE)
    space = {}
    exec(compile(SOURCE, path, "exec"), space)
    return space


def best_ns(function, count, repeats):
    """Nanoseconds an iteration, of the run that was disturbed least."""
    best = float("inf")
    for _ in range(repeats):
        begin = time.perf_counter_ns()
        function(count)
        best = min(best, time.perf_counter_ns() - begin)
    return best / count


def under(session, function, *size):
    with session:
        function(10)
        return best_ns(function, *size)


def measure(folder, rounds):
    """{what: ([bare], [ours], [theirs])}, nanoseconds an iteration in each round."""
    import line_profiler
    import memory_profiler
    import sonde
    bare, mine, other, more = (make(folder, name) for name in ("bare", "ours", "theirs", "memory"))
    timer, memory = line_profiler.LineProfiler(), memory_profiler.LineProfiler()
    timed, measured = timer(other["loop"]), memory(more["loop"])
    calling = timer(other["caller"])
    times = {what: ([], [], []) for what in ("lines", "memory", "others")}
    size, few = (2000, 12), (20, 2)
    for _ in range(rounds):
        for what, session, theirs, at_size in (
                ("lines", sonde.lines(mine["loop"]), timed, size),
                ("memory", sonde.line_memory(mine["loop"]), measured, few)):
            times[what][0].append(best_ns(bare["loop"], *size))
            times[what][1].append(under(session, mine["loop"], *size))
            times[what][2].append(best_ns(theirs, *at_size))
        times["others"][0].append(best_ns(bare["caller"], *size))
        times["others"][1].append(under(sonde.lines(mine["caller"]), mine["caller"], *size))
        times["others"][2].append(best_ns(calling, *size))
    return times


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--quick", action="store_true")
    options = options.parse_args()
    warnings.simplefilter("ignore")
    try:
        with tempfile.TemporaryDirectory(prefix="sonde-bench-") as folder:
            times = measure(folder, 8 if options.quick else 30)
    except ImportError as error:
        leave_out("lines", error)
    figures = [
        over_added(clock_reads_ns(2), added("python_lines", "a loop of two lines: added, over line_profiler's", *times["lines"],
                                            BUDGETS["lines"])),
        added("python_line_memory", "the same, memory: added, over memory_profiler's", *times["memory"],
               BUDGETS["memory"]),
        added("python_lines_others", "a call of a function not chosen: added, over line_profiler's",
               *times["others"], None),
    ]
    for one in figures:
        say(one)
    conclude(figures)


if __name__ == "__main__":
    main()
