#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/exports.py [--quick] - what an export costs, over torch.profiler's export_chrome_trace of the same operators.

The same small-operator inference, with shapes and memory, is recorded by both. A figure is CPU time: torch's export_chrome_trace in its
process, over that of `sonde export` as a process of its own, with its start and the reading of the trace. Both for each operator, best of
several rounds that take turns. Memory: the most that any export holds. Formats of samples have no operators to compare. Prints as
bench/run does and puts its figures into bench/results.json. Exit status: 1 if a budget is missed.

The budget is out of reach for most formats as long as they have the same content: torch's export writes lines of text from events that
its stop has made, while sonde's stop makes none and its export reads the trace and puts the ranges together. That alone takes 0.07 us an
operator, and copying the 330 bytes that a Chrome trace has of one into the page cache 0.17 us, where a twentieth of torch's time is
0.15 us. What a person waits for is the other figure, without a budget: from the end of the run to the file, torch's stop and export over
sonde's stop and export.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import warnings

from figures import conclude, figure, say

ROOT = pathlib.Path(__file__).resolve().parents[1]
SONDE = os.environ.get("SONDE") or shutil.which("sonde") or os.path.join(os.path.dirname(sys.executable), "sonde")
FORMATS = ("chrome", "perfetto", "sqlite", "parquet", "html", "speedscope", "csv")
TIMES, MEGABYTES = 20.0, 200.0
SHOWN = dict(record_shapes=True, profile_memory=True)
# By way of a small process: a child begins with its parent's memory as its peak, and torch's is large.
MEASURE = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss)
"""
warnings.simplefilter("ignore")
os.environ.setdefault("KINETO_LOG_LEVEL", "99")


def make_work(torch, rounds):
    layers = [layer for _ in range(16) for layer in (torch.nn.Linear(16, 16), torch.nn.ReLU())]
    model, x = torch.nn.Sequential(*layers).eval(), torch.randn(4, 16)

    def work():
        with torch.no_grad():
            for _ in range(rounds):
                model(x)
    return work


def theirs(work, folder):
    """CPU seconds an operator, of a stop and of an export."""
    from torch.profiler import ProfilerActivity, profile
    prof = profile(activities=[ProfilerActivity.CPU], **SHOWN)
    prof.start()
    work()
    begin = time.process_time()
    prof.stop()
    stopped = time.process_time()
    prof.export_chrome_trace(f"{folder}/theirs.json")
    exported = time.process_time()
    operators = sum(row.count for row in prof.key_averages())
    return (stopped - begin) / operators, (exported - stopped) / operators


def record(work, trace):
    """How many operators it has, counted as torch counts them, and the CPU seconds that stop took."""
    from sonde import Trace, _record
    from sonde.torch import _attach
    _record.start(trace)
    _attach.attach(shapes=True, memory=True)
    work()
    begin = time.process_time()
    _attach.stop()
    stopped = time.process_time() - begin
    with Trace(trace) as opened:
        return sum(row.count for row in opened.averages()), stopped


def ours(trace, form, folder):
    """CPU seconds, and the most memory in MB, of one export."""
    target = pathlib.Path(folder) / f"ours.{form}"
    if target.is_dir():
        shutil.rmtree(target)
    done = subprocess.run([sys.executable, "-S", "-c", MEASURE, SONDE, "export", trace, "--to", form, "-o", target],
                          stdout=subprocess.PIPE, text=True, check=True)
    used, kilobytes = done.stdout.split()
    return float(used), int(kilobytes) / 1024


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--quick", action="store_true")
    quick = options.parse_args().quick
    import torch
    work, large = make_work(torch, 30 if quick else 200), make_work(torch, 200 if quick else 2000)
    results = []
    with tempfile.TemporaryDirectory(prefix="sonde-bench-") as folder:
        trace = f"{folder}/ops.sonde"
        operators, stopped = record(large, trace)
        cost, memory, baseline = {}, 0.0, []
        for _ in range(2 if quick else 5):
            baseline.append(theirs(work, folder))
            for form in FORMATS:
                used, held = ours(trace, form, folder)
                cost[form] = min(cost.get(form, used), used)
                memory = max(memory, held)
    best, whole = min(export for _, export in baseline), min(map(sum, baseline))
    for form in FORMATS:
        each, both = cost[form] / operators, (stopped + cost[form]) / operators
        results.append(say(figure(f"export_{form}", f"torch's export_chrome_trace over sonde export --to {form}, an operator",
                                  best / each, "x", TIMES, at_least=True, both=f"{1e6 * best:.2f} us and {1e6 * each:.3f} us")))
        results.append(say(figure(f"export_{form}_from_end", f"torch's stop and export over sonde's stop and export --to {form}",
                                  whole / both, "x", both=f"{1e6 * whole:.2f} us and {1e6 * both:.3f} us")))
    results.append(say(figure("export_memory", f"the most memory of an export of {operators:,} operators", memory, "MB", MEGABYTES)))
    conclude(results)


if __name__ == "__main__":
    main()
