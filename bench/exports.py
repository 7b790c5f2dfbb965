#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/exports.py [--quick] - what an export costs, over torch.profiler's export_chrome_trace of the same operators.

The same small-operator inference, with shapes and memory, is recorded by both. A figure is CPU time: torch's export_chrome_trace in its
process, over that of `sonde export` as a process of its own, with its start and the reading of the trace. Both for each operator, best of
several rounds that take turns. Memory: the most that any export holds. Formats of samples have no operators to compare. Prints as
bench/run does and puts its figures into bench/results.json. Exit status: 1 if a budget is missed.
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

from python_functions import conclude

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
    """CPU seconds an operator, of one export."""
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CPU], **SHOWN) as prof:
        work()
    begin = time.process_time()
    prof.export_chrome_trace(f"{folder}/theirs.json")
    used = time.process_time() - begin
    return used / sum(row.count for row in prof.key_averages())


def record(work, trace):
    """How many operators it has, counted as torch counts them."""
    from sonde import Trace, _record
    from sonde.torch import _attach
    _record.start(trace)
    _attach.attach(shapes=True, memory=True)
    work()
    _attach.stop()
    with Trace(trace) as opened:
        return sum(row.count for row in opened.averages())


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
        operators = record(large, trace)
        cost, memory, baseline = {}, 0.0, []
        for _ in range(2 if quick else 5):
            baseline.append(theirs(work, folder))
            for form in FORMATS:
                used, held = ours(trace, form, folder)
                cost[form] = min(cost.get(form, used), used)
                memory = max(memory, held)
    best = min(baseline)
    for form in FORMATS:
        each = cost[form] / operators
        results.append({"name": f"export_{form}", "what": f"sonde export --to {form}: how much faster than torch's export_chrome_trace, an operator",
                        "value": best / each, "unit": "x", "budget": TIMES, "at_least": True, "met": best / each >= TIMES, "spread": None,
                        "both": f"{1e6 * best:.2f} us and {1e6 * each:.3f} us"})
    results.append({"name": "export_memory", "what": f"the most memory of an export of {operators:,} operators", "value": memory, "unit": "MB",
                    "budget": MEGABYTES, "at_least": False, "met": memory <= MEGABYTES, "spread": None, "both": ""})
    conclude(results, 1)


if __name__ == "__main__":
    main()
