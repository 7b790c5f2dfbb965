# SPDX-License-Identifier: Apache-2.0
"""python_times.py PROGRAM[.FUNCTION] ROUNDS CHOSEN..: its times by its peers and by sonde, as JSON.

FUNCTION, or main, is run. cProfile times its functions; line_profiler times those lines of the chosen
functions that call nothing, or, with a * after the name, all of them. The two sides of a pair take
turns. What a tool adds is measured with functions and lines that do nothing, and taken off: a call
adds to the function and to its caller, a line to itself. Of each number the least of all rounds
counts, since a busy machine only ever adds.
"""
import cProfile
import contextlib
import dis
import glob
import itertools
import json
import multiprocessing.process
import operator
import os
import pickle
import pstats
import sys
import tempfile
import threading
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


# ---------------------------------------------------------------- threads and children

@contextlib.contextmanager
def everywhere(measure):
    """A peer sees the thread that it is turned on in: measure(run) runs those that start meanwhile."""
    kinds = {kind: kind.run for kind in (threading.Thread, multiprocessing.process.BaseProcess)}

    def measured(run):
        return lambda self: measure(lambda: run(self))

    for kind, run in kinds.items():
        kind.run = measured(run)
    try:
        yield
    finally:
        for kind, run in kinds.items():
            kind.run = run


# ------------------------------------------------------------------------------ functions

def forget_cprofile():
    """In a forked child of 3.12 or later the parent's profile is still on, and there can be one."""
    monitoring = getattr(sys, "monitoring", None)
    if monitoring is not None and monitoring.get_tool(monitoring.PROFILER_ID) is not None:
        monitoring.set_events(monitoring.PROFILER_ID, 0)
        monitoring.free_tool_id(monitoring.PROFILER_ID)


def by_cprofile(work):
    """Each thread and each forked child leaves a file; they are added up."""
    number, parent = itertools.count(), os.getpid()
    with tempfile.TemporaryDirectory() as folder:
        def measure(run):
            if os.getpid() != parent:
                forget_cprofile()
            profile = cProfile.Profile()
            profile.runcall(run)
            profile.dump_stats(f"{folder}/{os.getpid()}.{next(number)}")

        with everywhere(measure):
            measure(work)
        stats = pstats.Stats(*glob.glob(f"{folder}/*")).stats
    return {(file, line, name): (self_s, {caller: counts[0] for caller, counts in callers.items()})
            for (file, line, name), (_, _, self_s, _, callers) in stats.items()}


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
    """Threads share one profile; a forked child has a copy, in which nothing is yet, and leaves a file."""
    from line_profiler import LineProfiler
    profile, parent, found = LineProfiler(*chosen), os.getpid(), {}
    with tempfile.TemporaryDirectory() as folder:
        def measure(run):
            profile.runcall(run)
            if os.getpid() != parent:
                profile.dump_stats(f"{folder}/{os.getpid()}")

        with everywhere(measure):
            measure(work)
        profile.dump_stats(f"{folder}/{parent}")
        for path in glob.glob(f"{folder}/*"):
            with open(path, "rb") as file:
                stats = pickle.load(file)
            for (_, _, name), rows in stats.timings.items():
                for line, hits, count in rows:
                    key = name.split(".")[-1], line
                    taken, before = found.get(key, (0, 0))
                    found[key] = taken + count * stats.unit, before + hits
    return found


def lines_by_sonde(chosen, work):
    with sonde.lines(*chosen) as profile:
        work()
    with profile.trace() as trace:
        found = json.loads(trace.report(view="lines", rows=-1, format="json"))["rows"]
    return {(row["function"].split(".")[-1], row["line"]): (row["time_ns"] / 1e9, row["hits"])
            for row in found if row["hits"]}


def lines(main, names, rounds):
    """`names`: {function: whether all of its lines are taken, or those that call nothing}."""
    chosen, sides = list(names), {"theirs": lines_by_line_profiler, "ours": lines_by_sonde}
    times, empty = {side: {} for side in sides}, {side: {} for side in sides}
    for _ in range(rounds):
        for side, measure in sides.items():
            times[side] = least(times[side], measure(chosen, main))
            empty[side] = least(empty[side], measure([lines_of_nothing],
                                                     lambda: lines_of_nothing(COUNT)))
    result = {}
    for side in sides:
        cost = min(taken / hits for taken, hits in empty[side].values() if hits == COUNT)
        result[side] = {}
        for function, whole in names.items():
            few = leaves(function)
            pairs = [pair for (name, line), pair in times[side].items()
                     if name == function.__name__ and (whole or line in few)]
            result[side][function.__qualname__] = [sum(taken - hits * cost for taken, hits in pairs),
                                                   sum(taken for taken, _ in pairs)]
    return result


def main():
    program, _, entry = sys.argv[1].partition(".")
    module, rounds = __import__(program), int(sys.argv[2])
    work = getattr(module, entry or "main")
    chosen = {operator.attrgetter(name.rstrip("*"))(module): name.endswith("*")
              for name in sys.argv[3:]}
    # Since 3.12 cProfile is one for all threads, and mixes what they call.
    is_mixed = program == "threads" and hasattr(sys, "monitoring")
    json.dump({"functions": {"ours": {}, "theirs": {}} if is_mixed else functions(work, module.__file__, rounds),
               "lines": lines(work, chosen, rounds)}, sys.stdout)


if __name__ == "__main__":
    main()
