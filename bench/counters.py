# SPDX-License-Identifier: Apache-2.0
"""What counting costs a program: bare, under `perf stat` and under `sonde run --counters`, in turn.

The program computes and touches memory, for a fixed amount of work; its own elapsed time (what the
program itself measures, so that starting the tool is not in it) is compared round by round, and so is
the time of a whole `true`, start of the tool included.

    python bench/counters.py [--rounds N] [--sonde PATH] [--program PATH]
"""
import argparse
import os
import shutil
import statistics
import subprocess
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
        compare("true, whole", {side: [*words, "true"] for side, words in tools.items()}, options.rounds, 1)


if __name__ == "__main__":
    main()
