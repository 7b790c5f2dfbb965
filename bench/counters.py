#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/counters.py [--quick] [--sonde PATH] - what counting costs a program, beside perf stat.

Bare, under `perf stat` and under `sonde run --counters`, in turn.

The program computes and touches memory, for a fixed amount of work; its own elapsed time (what the
program itself measures, so that starting the tool is not in it) is compared round by round, and so is
the time of a whole `true`, start of the tool included.

Of ranges and of Python functions: what reading their counters adds to a range (begin and end) and to a call, over
the same recording without; by the program's own processor time, of which the least of the rounds counts. The limit is what the
kernel takes for two readings of a thread's page faults. Prints as
bench/run does and puts its figures into bench/results.json.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time

from figures import conclude, figure, ratio, say

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
int main(void)
{
    struct timespec a, b;
    volatile double x = 1;
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (int round = 0; round < 20; round++) {
        char *memory = malloc(4 << 20);
        for (int i = 0; i < 4 << 20; i += 4096)
            memory[i] = 1;
        for (int i = 0; i < 2000000; i++)
            x = x * 1.0000001;
        free(memory);
    }
    clock_gettime(CLOCK_MONOTONIC, &b);
    printf("%lld\n", (b.tv_sec - a.tv_sec) * 1000000000LL + b.tv_nsec - a.tv_nsec);
    return 0;
}
"""

RANGES = r"""
#include <sonde/record.h>
#include <stdio.h>
#include <time.h>
int main(void)
{
    struct timespec a, b;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
    for (int i = 0; i < 200000; i++) {
        sonde_begin("range");
        sonde_end();
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
    printf("%lld\n", ((b.tv_sec - a.tv_sec) * 1000000000LL + b.tv_nsec - a.tv_nsec) / 200000);
    return 0;
}
"""
# What the kernel takes for the two readings of a range, of its cheapest counters.
READS = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
int main(void)
{
    struct timespec a, b;
    struct rusage usage;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
    for (int i = 0; i < 400000; i++)
        getrusage(RUSAGE_THREAD, &usage);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
    printf("%lld\n", ((b.tv_sec - a.tv_sec) * 1000000000LL + b.tv_nsec - a.tv_nsec) / 200000);
    return 0;
}
"""
CALLS = """
import time
def empty():
    pass
start = time.process_time_ns()
for _ in range(200000):
    empty()
print((time.process_time_ns() - start) // 200000)
"""
LISTS = ("task-clock", "page-faults", "default")
SIDES = {"sonde": "sonde run --counters", "perf": "perf stat"}


def elapsed(command):
    """(ns that the program measured, ns of the whole command)."""
    start = time.perf_counter_ns()
    text = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    whole = time.perf_counter_ns() - start
    return (int(text) if text.strip() else whole), whole


def compare(name, what, sides, rounds, part):
    """Each side over bare: of the best rounds, and of the pairs."""
    times = {side: [] for side in sides}
    for _ in range(rounds):
        for side, command in sides.items():
            times[side].append(elapsed(command)[part])
    for side in list(sides)[1:]:
        more = (min(times[side]) - min(times["bare"])) / 1e6
        yield ratio(f"counters_{name}_{side}", f"{what} under {SIDES[side]}, over bare", times[side], times["bare"],
                    both=f"{more:+.3f} ms")


def compare_added(name, what, run, without, option, program, reads, rounds):
    """ns that `option` adds to each range or call, with each of LISTS; `reads`: the program of READS."""
    sides = {"none": [*run, *without, "--", *program]}
    for words in LISTS:
        sides[words] = [*run, *without, f"--counters={words}", option, "--", *program]
    best = {side: min(elapsed(command)[0] for _ in range(rounds)) for side, command in sides.items()}
    best["reads"] = min(elapsed([reads])[0] for _ in range(rounds))
    for words in LISTS:
        yield figure(f"counters_{name}_{words}", f"{what}: {option} --counters={words} adds", best[words] - best["none"], "ns",
                     limit=best["reads"], both=f"{best['none']} ns without")


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--quick", action="store_true")
    options.add_argument("--sonde", default=f"{ROOT}/.venv/bin/sonde", metavar="PATH")
    options = options.parse_args()
    rounds, figures = 4 if options.quick else 15, []
    with tempfile.TemporaryDirectory(prefix="sonde-bench-") as folder:
        program, ranges, reads, trace = (f"{folder}/{name}" for name in ("program", "ranges", "reads", "t.sonde"))
        prefix = os.path.dirname(os.path.dirname(os.path.abspath(options.sonde)))
        for made, source in ((program, PROGRAM), (reads, READS)):
            subprocess.run(["cc", "-O2", "-x", "c", "-", "-o", made], input=source, text=True, check=True)
        subprocess.run(["cc", "-O2", "-x", "c", "-", f"-I{prefix}/include", f"-L{prefix}/lib", f"-Wl,-rpath,{prefix}/lib",
                        "-lsonde_record", "-o", ranges], input=RANGES, text=True, check=True)
        run = [options.sonde, "run", "-q", "-o", trace]
        tools = {"bare": [], "sonde": [*run, "--counters", "--"]}
        if shutil.which("perf"):
            tools["perf"] = ["perf", "stat", "-o", f"{folder}/stat", "--"]
        fewer = max(3, rounds // 3)
        for part in (compare("program", "a program of 0.2 s", {side: [*words, program] for side, words in tools.items()}, rounds, 0),
                     compare_added("range", "a range", run, ["--ops"], "--per-range", [ranges], reads, fewer),
                     compare_added("call", "a Python call", run, ["--functions"], "--per-function", [sys.executable, "-c", CALLS],
                                   reads, fewer),
                     compare("true", "true, start to end,", {side: [*words, "true"] for side, words in tools.items()}, rounds, 1)):
            figures += map(say, part)
    conclude(figures)


if __name__ == "__main__":
    main()
