# SPDX-License-Identifier: Apache-2.0
"""python_times.py PROGRAM [ROUNDS]: its times by cProfile and line_profiler, and by sonde, as JSON.

The two sides of a pair take turns. What a tool adds is measured with functions and lines that do
nothing, and taken off: a call adds to the function and to its caller, a line to itself. Of each
number the least of all rounds counts, since a busy machine only ever adds.
"""
import cProfile
import dis
import json
import operator
import os
import pstats
import sys
import time

import sonde

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "python"))
COUNT = 2000


def nothing():
    pass


def call_nothing(count):
    for _ in range(count):
        nothing()


def call_c(count, text=""):
    for _ in range(count):
        hash(text)


def lines_of_nothing(count):
    for _ in range(count):
        x = 1
        x = 1
        x = 1
        x = 1
    return x


def loop(count):
    for _ in range(count):
        pass


# ------------------------------------------------------------------------------ functions

def by_cprofile(work):
    profile = cProfile.Profile()
    profile.runcall(work)
    return {(file, line, name): (self_s, {caller: counts[0] for caller, counts in callers.items()})
            for (file, line, name), (_, _, self_s, _, callers) in pstats.Stats(profile).stats.items()}


def by_sonde(work):
    with sonde.functions() as calls:
        work()
    with calls.trace() as trace:
        found = json.loads(trace.report(view="functions", rows=-1, format="json"))["rows"]
    return {(row["file"], row["line"], row["function"]): (row["self_ns"] / 1e9, None)
            for row in found}


def least(old, new):
    """Of each key the least time."""
    return {key: min(old[key], value, key=lambda pair: pair[0]) if key in old else value
            for key, value in new.items()}


def self_time(stats, name):
    return next(pair[0] for key, pair in stats.items() if key[2] == name)


def costs(stats, bare):
    """(in a Python function, in the caller of one, in a C function, in the caller of one)."""
    return (self_time(stats, "nothing") / COUNT, (self_time(stats, "call_nothing") - bare) / COUNT,
            self_time(stats, "<built-in method builtins.hash>") / COUNT,
            (self_time(stats, "call_c") - bare) / COUNT)


def corrected(stats, counts, cost):
    """Self times without what the tool adds. `counts`: cProfile's, the same events for both."""
    inside, outside, inside_c, outside_c = cost
    calls, made = {}, {}
    for key, (_, callers) in counts.items():
        is_c = key[0] == "~"
        for caller, count in callers.items():
            calls[key] = calls.get(key, 0) + count
            made[caller] = made.get(caller, 0) + count * (outside_c if is_c else outside)
    return {key: pair[0] - calls.get(key, 0) * (inside_c if key[0] == "~" else inside)
            - made.get(key, 0) for key, pair in stats.items()}


def time_loop():
    start = time.perf_counter()
    loop(COUNT)
    return time.perf_counter() - start


def functions(main, path, rounds):
    sides = {"theirs": by_cprofile, "ours": by_sonde}
    stats, empty, bare = {side: {} for side in sides}, {side: {} for side in sides}, time_loop()
    counts = by_cprofile(main)
    for _ in range(rounds):
        bare = min(bare, time_loop())
        for side, measure in sides.items():
            stats[side] = least(stats[side], measure(main))
            empty[side] = least(empty[side],
                                measure(lambda: (call_nothing(COUNT), call_c(COUNT))))
    result = {}
    for side in sides:
        times = corrected(stats[side], counts, costs(empty[side], bare))
        result[side] = {f"{key[1]}:{key[2]}": [value, stats[side][key][0]]
                        for key, value in times.items() if key[0] == path}
    return result


# --------------------------------------------------------------------------------- lines

def leaves(function):
    """Lines that call nothing: line_profiler adds to whatever runs below a line, too."""
    calls, found = set(), set()
    line = None
    for step in dis.get_instructions(function):
        line = step.starts_line if isinstance(step.starts_line, int) \
            and not isinstance(step.starts_line, bool) else getattr(step, "line_number", line) or line
        found.add(line)
        if step.opname.startswith(("CALL", "MAKE_FUNCTION", "YIELD", "RETURN", "FOR_ITER")):
            calls.add(line)
    return found - calls


def lines_by_line_profiler(chosen, work):
    from line_profiler import LineProfiler
    profile = LineProfiler(*chosen)
    profile.runcall(work)
    stats = profile.get_stats()
    return {(name.split(".")[-1], line): (count * stats.unit, hits)
            for (_, _, name), rows in stats.timings.items() for line, hits, count in rows}


def lines_by_sonde(chosen, work):
    with sonde.lines(*chosen) as profile:
        work()
    with profile.trace() as trace:
        found = json.loads(trace.report(view="lines", rows=-1, format="json"))["rows"]
    return {(row["function"].split(".")[-1], row["line"]): (row["time_ns"] / 1e9, row["hits"])
            for row in found if row["hits"]}


def lines(main, chosen, rounds):
    sides = {"theirs": lines_by_line_profiler, "ours": lines_by_sonde}
    times, empty = {side: {} for side in sides}, {side: {} for side in sides}
    for _ in range(rounds):
        for side, measure in sides.items():
            times[side] = least(times[side], measure(chosen, main))
            empty[side] = least(empty[side], measure([lines_of_nothing],
                                                     lambda: lines_of_nothing(COUNT)))
    result = {}
    for side in sides:
        cost = min(taken / hits for taken, hits in empty[side].values() if hits == COUNT)
        result[side] = {function.__qualname__: [
            sum(taken - hits * cost for taken, hits in of_leaves(times[side], function)),
            sum(taken for taken, _ in of_leaves(times[side], function))] for function in chosen}
    return result


def of_leaves(times, function):
    lines = leaves(function)
    return [pair for (name, line), pair in times.items() if name == function.__name__
            and line in lines]


def main():
    program, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 7
    module = __import__(program)
    chosen = [operator.attrgetter(name)(module) for name in sys.argv[3:]]
    json.dump({"functions": functions(module.main, module.__file__, rounds),
               "lines": lines(module.main, chosen, rounds) if chosen else {}}, sys.stdout)


if __name__ == "__main__":
    main()
