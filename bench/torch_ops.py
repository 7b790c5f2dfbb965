#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/torch_ops.py [--quick] - what recording adds to a PyTorch operator.

For {plain, shapes, shapes+memory, shapes+memory+stacks (with Python's calls)}: the time that sonde adds to an operator
over what torch.profiler adds with the same options, in small-operator inference and in a training
step. Bare, ours and theirs run in turn in one process, round after round; a figure is the ratio of
the best rounds' added times, its spread that of the paired rounds, first to ninth decile. Needs
torch and the installed package. Prints as bench/run does and puts its figures into
bench/results.json. Exit status: 1 if a budget is missed.

Of plain and shapes also over the floor of any probe that goes through at::RecordFunction: what
torch adds by itself, with a callback that does nothing, and the same inputs (for shapes torch
boxes the arguments); and that floor over torch.profiler's added time, the limit of each figure over
torch.profiler's.
"""
import argparse
import gc
import json
import os
import tempfile
import time
import warnings

from figures import added, conclude, leave_out, over_added, say

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUDGET = 1 / 3
# with_stack: Python's calls are on the timeline too, on both sides.
FRAMES_BUDGET = 1 / 2
# What sonde adds, torch's own part included, over that part alone.
FLOOR_BUDGET = 1.15
FLOORS = ("plain", "shapes")
OVER_FLOOR = ("in instructions (callgrind, torch 2.15, inference), which repeat, an operator takes 539 more with an empty callback and some 635 "
              "with sonde; with inputs 867 and some 1120. Of sonde's, the begin takes 63 (the operator is found by its schema's address, an event "
              "written), with inputs 220 (154 where they are those that came here before, the rest where they are others), the end 37.")
OPTIONS = {
    "plain": {},
    "shapes": dict(shapes=True),
    "shapes+memory": dict(shapes=True, memory=True),
    "shapes+memory+stacks": dict(shapes=True, memory=True, stacks=True),
}
THEIRS = {"shapes": "record_shapes", "memory": "profile_memory", "stacks": "with_stack"}
warnings.simplefilter("ignore")
# torch.profiler's library writes two lines each time it starts and stops: not its cost, and not a figure.
os.environ.setdefault("KINETO_LOG_LEVEL", "99")


# --------------------------------------------------------------------- workloads

def inference(torch):
    nn = torch.nn
    layers = [layer for _ in range(16) for layer in (nn.Linear(16, 16), nn.ReLU())]
    model, x = nn.Sequential(*layers).eval(), torch.randn(4, 16)

    def work():
        with torch.no_grad():
            for _ in range(4):
                model(x)
    return work


def training(torch):
    nn = torch.nn
    layers = [layer for _ in range(8) for layer in (nn.Linear(16, 16), nn.ReLU())]
    model, x = nn.Sequential(*layers), torch.randn(4, 16)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def work():
        model(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    return work


# --------------------------------------------------------------------- measuring

def best_ns(work, repeats):
    """Of many short runs the quickest: most are disturbed by nothing."""
    best = float("inf")
    for _ in range(repeats):
        begin = time.perf_counter_ns()
        work()
        best = min(best, time.perf_counter_ns() - begin)
    return best


def ours(folder, options, more_flags=0):
    import torch
    from sonde import _record
    from sonde.python import _functions
    from sonde.torch import _attach

    def measure(work, repeats):
        _record.start(f"{folder}/ops.sonde")
        _attach.attach(**options, more_flags=more_flags)
        frames = options.get("stacks") and _functions.start_timeline(_attach.module_code(torch),
                                                                     False)
        try:
            work()  # the first time everything is looked up
            return best_ns(work, repeats)
        finally:
            if frames:
                _functions.stop_timeline()
            _attach.stop()
    return measure


def theirs(options):
    from torch.profiler import ProfilerActivity, profile

    def measure(work, repeats):
        with profile(activities=[ProfilerActivity.CPU],
                     **{THEIRS[name]: True for name in options}):
            work()
            return best_ns(work, repeats)
    return measure


def count_operators(folder, work):
    import sonde
    from sonde.torch import _attach
    _attach.start(f"{folder}/count.sonde")
    work()
    _attach.stop()
    with sonde.Trace(f"{folder}/count.sonde") as trace:
        rows = json.loads(trace.report(view="ops", rows=-1, format="json"))["rows"]
    return sum(row["count"] for row in rows)


def measure(folder, work, modes, rounds, repeats):
    """{mode: [ns an operator in each round]}, the modes in turn."""
    count = count_operators(folder, work)
    times = {mode: [] for mode in modes}
    gc.disable()
    for _ in range(rounds):
        for mode, run in modes.items():
            times[mode].append(run(work, repeats) / count)
        # once more at the end: a round that was disturbed at one moment is no pair
        times["bare"][-1] = min(times["bare"][-1], best_ns(work, repeats) / count)
        gc.collect()
    gc.enable()
    return times


# ----------------------------------------------------------------------- figures

def bench(torch, folder, name, make, rounds, repeats):
    from sonde import _record
    work = make(torch)
    for _ in range(5):
        work()
    modes = {"bare": best_ns}
    for words, options in OPTIONS.items():
        modes["ours", words] = ours(folder, options)
        modes["theirs", words] = theirs(options)
    for words in FLOORS:
        modes["floor", words] = ours(folder, OPTIONS[words], _record.TORCH_EMPTY)
    times = measure(folder, work, modes, rounds, repeats)
    for words in OPTIONS:
        found = added(f"torch_{name}_{words}", f"torch operator, {name}, {words}: added, over torch's",
                      times["bare"], times["ours", words], times["theirs", words],
                      FRAMES_BUDGET if "stacks" in words else BUDGET)
        found = over_added(min(times["floor", FLOORS["shapes" in words]]) - min(times["bare"]), found)
        yield {**found, "why": f"torch's own part of it, a callback that does nothing, is {found['limit']:.2f} of torch.profiler's."}
    for words in FLOORS:
        found = added(f"torch_{name}_{words}_floor", f"torch operator, {name}, {words}: added, over an empty callback's",
                      times["bare"], times["ours", words], times["floor", words], FLOOR_BUDGET)
        yield {**found, "limit": 1, "why": OVER_FLOOR}
        yield added(f"torch_{name}_{words}_null", f"torch operator, {name}, {words}: an empty callback, over torch's",
                     times["bare"], times["floor", words], times["theirs", words])


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--quick", action="store_true")
    options = options.parse_args()
    try:
        import torch
        from sonde import Error
        from sonde.torch import _attach
        _attach.library()
    except ImportError as error:
        leave_out("torch operators", error)
    except Error as error:
        leave_out("torch operators", error)
    torch.set_num_threads(1)
    rounds, repeats = (8, 10) if options.quick else (40, 15)
    figures = []
    with tempfile.TemporaryDirectory(prefix="sonde-bench-") as folder:
        for make in (inference, training):
            for one in bench(torch, folder, make.__name__, make, rounds, repeats):
                figures.append(say(one))
    conclude(figures)


if __name__ == "__main__":
    main()
