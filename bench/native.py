#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/native.py [--quick] - what sampling a native program at 1 kHz adds, beside perf.

A program of a fixed amount of work and stacks of 20 frames runs bare, under `sonde run --sample=1000` and under
`perf record -F 1000` with and without --call-graph dwarf, in turn, round after round. Two things are measured: the processor
time of the whole command (the program, the sampler, and all that is done when the program has ended) and that of the program
itself, as it measures it. A figure is of the best rounds; its spread that of the paired rounds. Then the same program with 64 busy threads.
Prints as bench/run does and puts its figures into bench/results.json. Exit status: 1 if a budget is missed.
"""
import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile

from figures import conclude, deciles, figure, leave_out, say

SONDE = os.environ.get("SONDE") or shutil.which("sonde") or os.path.join(os.path.dirname(sys.executable), "sonde")
PROGRAM = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static long steps;
static volatile unsigned long sink;
__attribute__((noinline)) static void deep(int depth, long n)
{
    if (depth > 0)
        deep(depth - 1, n);
    else
        for (long i = 0; i < n; i++)
            sink += i;
    sink++;
}
static void *work(void *nothing)
{
    for (int i = 0; i < 1000; i++)
        deep(4 + i % 16, steps / 1000);
    return nothing;
}
int main(int argc, char **argv)
{
    int             count = atoi(argv[1]);
    pthread_t       threads[256];
    struct timespec at;

    steps = atol(argv[2]) / count;
    for (int i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
    printf("%.6f\n", at.tv_sec + at.tv_nsec * 1e-9);
    return argc - 3;
}
"""


def measure(command):
    """Seconds of processor time: (of the whole command, of the program as it says)."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    whole = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return whole, float(done.stdout.split()[-1])


def in_turn(sides, rounds):
    """{side: [(whole, program), ..]}"""
    found = {side: [] for side in sides}
    for _ in range(rounds):
        for side, command in sides.items():
            found[side].append(measure(command))
    return found


def show(name, what, value, pairs, budget):
    return say(figure(name, what, value, "x", budget, deciles(pairs), median=statistics.median(pairs)))


def best(values, part):
    return min(value[part] for value in values)


def added(found, side, other, part):
    """What `side` adds over what `other` adds: of the best rounds, and of the pairs."""
    bare = best(found["bare"], part)
    floor = 1e-4  # what cannot be measured
    pairs = [max(x[part] - bare, floor) / max(y[part] - bare, floor) for x, y in zip(found[side], found[other])]
    value = max(best(found[side], part) - bare, floor) / max(best(found[other], part) - bare, floor)
    return value, pairs


def over_bare(found, side, part):
    pairs = [x[part] / y[part] for x, y in zip(found[side], found["bare"])]
    return best(found[side], part) / best(found["bare"], part), pairs


def commands(folder, program):
    perf = ["perf", "record", "-q", "-F", "1000", "-e", "cpu-clock", "-o", f"{folder}/perf.data"]
    return {"bare": program,
            "sonde": [SONDE, "run", "-q", "--sample=1000", "-o", f"{folder}/t.sonde", "--", *program],
            "dwarf": [*perf, "--call-graph", "dwarf", "--", *program],
            "flat": [*perf, "--", *program]}


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--quick", action="store_true")
    quick = options.parse_args().quick
    if not shutil.which("perf"):
        leave_out("samples of native programs", "perf is not installed (linux-perf)")
    rounds, steps = (3, 300_000_000) if quick else (7, 1_500_000_000)
    with tempfile.TemporaryDirectory(prefix="sonde-bench-") as folder:
        program = f"{folder}/busy"
        subprocess.run(["gcc", "-O1", "-x", "c", "-", "-pthread", "-o", program], input=PROGRAM.encode(), check=True)
        one = in_turn(commands(folder, [program, "1", str(steps)]), rounds)
        many = in_turn(commands(folder, [program, "64", str(steps)]), rounds)
    figures = [
        show("native_sample_dwarf", "processor time that sonde run adds over perf record --call-graph dwarf, whole",
             *added(one, "sonde", "dwarf", 0), 1.0),
        show("native_sample_program", "one busy thread under sonde run over bare, in the program itself",
             *over_bare(one, "sonde", 1), None),
        show("native_sample_flat", "the same, over perf record without call chains, whole", *added(one, "sonde", "flat", 0),
             None),
        show("native_sample_threads", "64 busy threads under sonde run over bare, in the program itself",
             *over_bare(many, "sonde", 1), 1.02),
        show("native_sample_threads_perf", "64 busy threads under perf record --call-graph dwarf over bare, likewise",
             *over_bare(many, "dwarf", 1), None),
    ]
    conclude(figures)


if __name__ == "__main__":
    main()
