#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/native_report.py [--quick] - how long the report of a million samples takes, beside perf's.

A program with deep stacks in two threads is sampled by `sonde run` and by `perf record --call-graph fp`, at the same rate and for the
same processor time; then `sonde report --view functions` and `perf report --stdio` read what each recorded, in turn. The figure is
perf's time a sample over sonde's: best rounds, spread of the paired rounds. A million samples take half a minute to record and perf
about as long to report: one round. --quick takes 20,000 of them, in three: the time a sample is that of
those, and opening a file costs sonde more of it. Prints as bench/run does and puts its
figure into bench/results.json. Exit status: 1 if the budget is missed.
"""
import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from figures import conclude, deciles, figure, leave_out, say

BUDGET = 5.0
HZ = 20000
SONDE = os.environ.get("SONDE") or shutil.which("sonde") or os.path.join(os.path.dirname(sys.executable), "sonde")
PROGRAM = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#define F(n, m) __attribute__((noinline)) double f##n(int d, double x) { \
    if (d <= 0) { for (int i = 0; i < 200; i++) x = x * 0.999 + n; return x; } \
    x = d & 1 ? f##m(d - 1, x) : f##n(d - 1, x); __asm__ volatile(""); return x + 1; }
double f1(int, double), f2(int, double), f3(int, double), f0(int, double);
F(0, 1) F(1, 2) F(2, 3) F(3, 0)
static clock_t end;
static void *work(void *of)
{
    double *x = of;
    for (int i = 0; clock() < end; i++) *x += f0(10 + i % 12, *x);
    return of;
}
int main(int argc, char **argv)
{
    double    x = 0, y = 0;
    pthread_t other;
    end = clock() + atoi(argv[argc - 1]) * CLOCKS_PER_SEC; /* of both threads together */
    pthread_create(&other, NULL, work, &y);
    work(&x);
    pthread_join(other, NULL);
    printf("%f\n", x + y);
}
"""


def seconds(command):
    begin = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.monotonic() - begin


def record(folder, duration):
    """Both recordings, and how many samples each has."""
    source, program = f"{folder}/deep.c", f"{folder}/deep"
    trace, data = f"{folder}/deep.sonde", f"{folder}/perf.data"
    with open(source, "w") as file:
        file.write(PROGRAM)
    subprocess.run(["gcc", "-O1", "-g", "-fno-omit-frame-pointer", "-pthread", source, "-o", program], check=True)
    quiet = dict(check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    subprocess.run([SONDE, "run", "-o", trace, f"--sample={HZ}", "--", program, str(duration)], **quiet)
    told = subprocess.run(["perf", "record", "-F", str(HZ), "--call-graph", "fp", "-o", data, program, str(duration)],
                          check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True).stderr
    report = subprocess.run([SONDE, "report", trace, "--view", "samples", "--json"], check=True, capture_output=True)
    ours = json.loads(report.stdout)["totals"]["samples"]
    theirs = int(re.search(r"\((\d+) samples\)", told)[1])
    return trace, data, ours, theirs


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--quick", action="store_true")
    quick = options.parse_args().quick
    if not shutil.which("perf"):
        leave_out("the report of native samples", "perf is not installed (linux-perf)")
    with tempfile.TemporaryDirectory(prefix="sonde-bench-") as folder:
        trace, data, ours, theirs = record(folder, 1 if quick else 1_000_000 // HZ)
        rounds = [(seconds([SONDE, "report", trace, "--view", "functions"]) / ours,
                   seconds(["perf", "report", "--stdio", "-i", data]) / theirs) for _ in range(3 if quick else 1)]
    ours_s, theirs_s = zip(*rounds)
    pairs = [perf / sonde for sonde, perf in rounds]
    conclude([say(figure("native_report_perf", f"perf report --stdio over sonde report, a sample of {ours:,}",
                         min(theirs_s) / min(ours_s), "x", BUDGET, deciles(pairs), at_least=True,
                         median=statistics.median(pairs), best_ns=[1e9 * min(theirs_s), 1e9 * min(ours_s)]))])


if __name__ == "__main__":
    main()
