#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/torch_start.py [--quick] - what `with profile(): pass` takes, against torch.profiler's.

The two in turn, round after round, in one process, after a few that do not count; a figure is the
ratio of the best rounds, its spread that of the paired rounds, first to ninth decile. The temporary
trace is written where $TMPDIR says: on a disk that others keep busy, its file system's journal is
part of the figure; TMPDIR=/dev/shm leaves it out. Prints as bench/run does and puts its figures
into bench/results.json. Exit status: 1 if the budget is missed.
"""
import argparse
import sys
import time
import warnings

import torch_ops  # the same folder: how figures are shown and kept

BUDGET = 1.2
OPTIONS = {"plain": {}, "shapes+memory": {"record_shapes": True, "profile_memory": True}}
warnings.simplefilter("ignore")


def once(profiler, options):
    before = time.perf_counter_ns()
    with profiler.profile(**options):
        pass
    return time.perf_counter_ns() - before


def measure(rounds, options):
    import torch
    import torch.profiler

    import sonde
    options = {"activities": [torch.profiler.ProfilerActivity.CPU], **options}
    for _ in range(5):
        once(torch.profiler, options), once(sonde, options)
    pairs = [(once(torch.profiler, options), once(sonde, options)) for _ in range(rounds)]
    theirs, ours = (min(side) for side in zip(*pairs))
    return theirs, ours, sorted(mine / other for other, mine in pairs)


def figure(name, options, rounds):
    theirs, ours, ratios = measure(rounds, options)
    value = ours / theirs
    return {"name": f"torch_start_{name}", "what": f"with profile(): pass, {name}, over torch's",
            "value": value, "unit": "x", "budget": BUDGET, "at_least": False,
            "met": value <= BUDGET, "spread": torch_ops.deciles(ratios),
            "median": ratios[len(ratios) // 2], "best_ns": [ours, theirs]}


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--quick", action="store_true")
    rounds = 20 if options.parse_args().quick else 200
    try:
        import torch  # noqa: F401
    except ImportError as error:
        print(f"left out: torch's start: {error}")
        return
    figures = []
    for name, chosen in OPTIONS.items():
        figures.append(figure(name, chosen, rounds))
        print(torch_ops.shown(figures[-1]), flush=True)
    torch_ops.merge(figures)
    missed = [one["what"] for one in figures if not one["met"]]
    if missed:
        sys.exit(f"bench/torch_start.py: over budget: {'; '.join(missed)}")


if __name__ == "__main__":
    main()
