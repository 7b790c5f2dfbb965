#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/torch_start.py [--quick] - what `with profile(): pass` takes, against torch.profiler's.

The two in turn, round after round, in one process, after a few that do not count; a figure is the
ratio of the best rounds, its spread that of the paired rounds, first to ninth decile. The temporary
trace is written where $TMPDIR says: on a disk that others keep busy, its file system's journal is
part of the figure; a second one leaves it out (/dev/shm). Prints as bench/run does and puts its figures
into bench/results.json. Exit status: 1 if the budget is missed.
"""
import argparse
import os
import tempfile
import time
import warnings

from figures import conclude, leave_out, ratio, say

BUDGET = 1.2
OPTIONS = {"plain": {}, "shapes+memory": {"record_shapes": True, "profile_memory": True}}
warnings.simplefilter("ignore")
os.environ.setdefault("KINETO_LOG_LEVEL", "99")


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
    return zip(*pairs)


def measure_in_memory(rounds, options):
    """Ours and theirs, with the temporary trace on no disk."""
    before, tempfile.tempdir = tempfile.gettempdir(), "/dev/shm"
    try:
        theirs, ours = measure(rounds, options)
    finally:
        tempfile.tempdir = before
    return ours, theirs


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--quick", action="store_true")
    rounds = 20 if options.parse_args().quick else 200
    try:
        import torch  # noqa: F401
    except ImportError as error:
        leave_out("torch's start", error)
    figures = []
    for name, chosen in OPTIONS.items():
        in_memory = ratio(f"torch_start_{name}_memory", f"the same, {name}, the trace in memory", *measure_in_memory(rounds, chosen))
        theirs, ours = measure(rounds, chosen)
        figures.append(say(ratio(f"torch_start_{name}", f"with profile(): pass, {name}, over torch's", ours, theirs, BUDGET,
                                 best_ns=[min(ours), min(theirs)],
                                 why=f"with the temporary trace in memory (/dev/shm) it is {in_memory['value']:.2f}; the rest is the "
                                 "file on disk, which torch.profiler does not make.")))
        figures.append(say(in_memory))
    conclude(figures)


if __name__ == "__main__":
    main()
