# SPDX-License-Identifier: Apache-2.0
"""What counting costs a program: bare, under `perf stat` and under `sonde run --counters`, in turn.

The program computes and touches memory, for a fixed amount of work; its own elapsed time (what the
program itself measures, so that starting the tool is not in it) is compared round by round, and so is
the time of a whole `true`, start of the tool included.

Of ranges and of Python functions: what reading their counters adds to a range (begin and end) and to a call, over
the same recording without; by the program's own processor time, of which the least of the rounds counts.

    python bench/counters.py [--rounds N] [--sonde PATH]
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

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


def elapsed(command):
    """(ns that the program measured, ns of the whole command)."""
    start = time.perf_counter_ns()
    text = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    whole = time.perf_counter_ns() - start
    return (int(text) if text.strip() else whole), whole


def compare(name, sides, rounds, part):
    times = {side: [] for side in sides}
    for _ in range(rounds):
        for side, command in sides.items():
            times[side].append(elapsed(command)[part])
    best = {side: min(values) for side, values in times.items()}
    for side in sides:
        if side != "bare":
            paired = statistics.median(one / bare for one, bare in zip(times[side], times["bare"]))
            print(f"{name:28} {side:6} {best[side] / best['bare']:7.4f} x bare (best), {paired:7.4f} x (median of pairs), "
                  f"{(best[side] - best['bare']) / 1e6:8.3f} ms more")


def compare_added(name, run, without, option, program, rounds):
    """ns that `option` adds to each range or call, with each of LISTS."""
    sides = {"none": [*run, *without, "--", *program]}
    for words in LISTS:
        sides[words] = [*run, *without, f"--counters={words}", option, "--", *program]
    best = {side: min(elapsed(command)[0] for _ in range(rounds)) for side, command in sides.items()}
    print(f"{name:28} {best['none']} ns without counters; " +
          ", ".join(f"{words} +{best[words] - best['none']} ns" for words in LISTS))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--sonde", default=f"{ROOT}/.venv/bin/sonde")
    options = parser.parse_args()
    perf = shutil.which("perf")
    with tempfile.TemporaryDirectory() as folder:
        program, trace = f"{folder}/program", f"{folder}/t.sonde"
        subprocess.run(["cc", "-O2", "-x", "c", "-", "-o", program], input=PROGRAM, text=True, check=True)
        tools = {"bare": [], "sonde": [options.sonde, "run", "-q", "-o", trace, "--counters", "--"]}
        if perf:
            tools["perf"] = [perf, "stat", "-o", f"{folder}/stat", "--"]
        compare("a program of 0.2 s", {side: [*words, program] for side, words in tools.items()}, options.rounds, 0)
        ranges = f"{folder}/ranges"
        prefix = os.path.dirname(os.path.dirname(os.path.abspath(options.sonde)))
        subprocess.run(["cc", "-O2", "-x", "c", "-", f"-I{prefix}/include", f"-L{prefix}/lib", f"-Wl,-rpath,{prefix}/lib",
                        "-lsonde_record", "-o", ranges], input=RANGES, text=True, check=True)
        run = [options.sonde, "run", "-q", "-o", trace]
        rounds = max(3, options.rounds // 3)
        compare_added("a range, --per-range", run, ["--ops"], "--per-range", [ranges], rounds)
        compare_added("a call, --per-function", run, ["--functions"], "--per-function", [sys.executable, "-c", CALLS], rounds)
        compare("true, whole", {side: [*words, "true"] for side, words in tools.items()}, options.rounds, 1)


if __name__ == "__main__":
    main()
