#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/native_report.py [--quick] - how long symbols and the report of a million samples take, beside perf's.

A program with deep stacks in two threads is sampled by `sonde run` and by `perf record --call-graph fp`, at the same rate and for the
same processor time; then `sonde report --view functions` and `perf report --stdio` read what each recorded, in turn. The figure is
perf's time a sample over sonde's: best rounds, spread of the paired rounds. A million samples take half a minute to record and perf
about as long to report: one round. --quick takes 20,000 of them, in three: the time a sample is that of
those, and opening a file costs sonde more of it.

Symbols: `sonde run` looks up all names once, after the program's end, and keeps them in the trace; perf does so in each report. A
program of templates, with DWARF and a few hundred samples, so that little is to be done but that: from its last instruction to the
end of `sonde run`, beside `perf report --sort sym,srcline` of the same program's recording. Both find functions and lines, sonde
inlined functions too. A report of perf's with names alone is printed for comparison.

Prints as bench/run does and puts its figures into bench/results.json. Exit status: 1 if a budget is missed.
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

TEMPLATES = r"""
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <functional>
#include <map>
#include <regex>
#include <string>
#include <vector>
static double now(clockid_t of) { timespec t; clock_gettime(of, &t); return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec; }
int main()
{
    size_t sum = 0;
    while (now(CLOCK_PROCESS_CPUTIME_ID) < 0.3) {
        std::map<std::string, std::vector<int>> words;
        for (int i = 0; i < 300; i++) words["key " + std::to_string(i * 7919 % 300)].push_back(i);
        std::regex pattern("k(e|y)+ ([0-9]+)7");
        for (const auto &[word, list] : words) sum += std::regex_search(word, pattern) + list.size();
        std::vector<std::function<int(int)>> calls(300, [](int x) { return x * 31 % 101; });
        std::sort(calls.begin(), calls.end(), [&](const auto &a, const auto &b) { return a(7) < b(7); });
    }
    std::printf("%zu %.9f\n", sum, now(CLOCK_MONOTONIC));
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


def measure_symbols(folder, rounds):
    """Seconds of each round: sonde's, perf's, perf's without lines."""
    source, program = f"{folder}/templates.cc", f"{folder}/templates"
    trace, data = f"{folder}/templates.sonde", f"{folder}/templates.data"
    with open(source, "w") as file:
        file.write(TEMPLATES)
    subprocess.run(["g++", "-std=c++17", "-O2", "-g", "-fno-omit-frame-pointer", source, "-o", program], check=True)
    subprocess.run(["perf", "record", "-q", "-F", "1000", "--call-graph", "fp", "-o", data, program], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(rounds):
        told = subprocess.run([SONDE, "run", "-q", "-o", trace, "--sample=1000", "--", program], check=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        ours = time.monotonic() - float(told.split()[1])
        yield (ours, *(seconds(["perf", "report", "--stdio", *more, "-i", data]) for more in (["--sort", "sym,srcline"], [])))


def symbols_figure(rounds):
    ours, with_lines, plain = map(min, zip(*rounds))
    pairs = [perf / sonde for sonde, perf, _ in rounds]
    return figure("native_symbols_perf", "perf report with lines over the symbols at the end of sonde run", with_lines / ours, "x", 1.0,
                  deciles(pairs), at_least=True, median=statistics.median(pairs),
                  both=f"sonde {1e3 * ours:.0f} ms, perf {1e3 * with_lines:.0f} ms, without lines {1e3 * plain:.0f} ms")


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--quick", action="store_true")
    quick = options.parse_args().quick
    if not shutil.which("perf"):
        leave_out("the report of native samples", "perf is not installed (linux-perf)")
    with tempfile.TemporaryDirectory(prefix="sonde-bench-") as folder:
        symbols = say(symbols_figure(list(measure_symbols(folder, 3 if quick else 7))))
        trace, data, ours, theirs = record(folder, 1 if quick else 1_000_000 // HZ)
        rounds = [(seconds([SONDE, "report", trace, "--view", "functions"]) / ours,
                   seconds(["perf", "report", "--stdio", "-i", data]) / theirs) for _ in range(3 if quick else 1)]
    ours_s, theirs_s = zip(*rounds)
    pairs = [perf / sonde for sonde, perf in rounds]
    conclude([symbols, say(figure("native_report_perf", f"perf report --stdio over sonde report, a sample of {ours:,}",
                         min(theirs_s) / min(ours_s), "x", BUDGET, deciles(pairs), at_least=True,
                         median=statistics.median(pairs), best_ns=[1e9 * min(theirs_s), 1e9 * min(ours_s)]))])


if __name__ == "__main__":
    main()
