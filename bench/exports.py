#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/exports.py [--quick] - what an export costs, over torch.profiler's export_chrome_trace of the same operators.

The same small-operator inference, with shapes and memory, is recorded by both. A figure is elapsed time: torch's export_chrome_trace in its
process, over that of `sonde export` as a process of its own, with its start and the reading of the trace. Both for each operator, best of
several rounds that take turns. The same in CPU time, which counts both of sonde's threads. Memory: the most that any export holds. Formats
of samples have no operators to compare. Prints as bench/run does and puts its figures into bench/results.json. Exit status: 1 if a budget
is missed.

torch's export writes lines of text from events that its stop has made, while sonde's stop makes none and its export reads the trace and
puts the ranges together. What a person waits for from the end of the run to the file, torch's stop and export over sonde's stop and
export, is a figure of its own, without a budget.

No export can do without one reading pass of the trace and its bytes in the page cache: bench/export_limit.c does these two and nothing
else, as a process too. Each export's elapsed time is stated over that, of the same rounds. By whom the rest is spent: the CPU time of each
of its threads, in the order in which they began, and the longest of them over the limit's. That is what the export takes where each thread
has a processor, and it is the same on a busy machine.
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

from figures import BUILD, build, conclude, figure, say

SONDE = os.environ.get("SONDE") or shutil.which("sonde") or os.path.join(os.path.dirname(sys.executable), "sonde")
FORMATS = ("chrome", "perfetto", "sqlite", "parquet", "html", "speedscope", "csv")
TIMES, MEGABYTES, OVER_LIMIT = 20.0, 200.0, 2.0
SHOWN = dict(record_shapes=True, profile_memory=True)
# By way of a small process: a child begins with its parent's memory as its peak, and torch's is large.
MEASURE = """
import resource, subprocess, sys, time
begin = time.perf_counter()
subprocess.run(sys.argv[1:], check=True)
elapsed = time.perf_counter() - begin
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(elapsed, used.ru_utime + used.ru_stime, used.ru_maxrss)
"""
# The CPU time of each thread, as last seen: a thread's is gone when it ends.
WATCH = """
import glob, subprocess, sys, time
child, seen = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL), {}
while child.poll() is None:
    for path in glob.glob(f"/proc/{child.pid}/task/*/schedstat"):
        try:
            with open(path) as task:
                seen[int(path.split("/")[4])] = int(task.read().split()[0]) / 1e9
        except (OSError, IndexError):
            pass
    time.sleep(0.0005)
print(*(seen[task] for task in sorted(seen)))
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


def clocks():
    """Elapsed time, and CPU time of this process."""
    return time.perf_counter(), time.process_time()


def since(begin):
    return [now - then for now, then in zip(clocks(), begin)]


def theirs(work, folder):
    """Seconds an operator, of a stop and of an export; of each: elapsed, of the CPU."""
    from torch.profiler import ProfilerActivity, profile
    prof = profile(activities=[ProfilerActivity.CPU], **SHOWN)
    prof.start()
    work()
    begin = clocks()
    prof.stop()
    stop, begin = since(begin), clocks()
    prof.export_chrome_trace(f"{folder}/theirs.json")
    export = since(begin)
    operators = sum(row.count for row in prof.key_averages())
    return [[one / operators for one in part] for part in (stop, export)]


def record(work, trace):
    """How many operators it has, counted as torch counts them, and the seconds that stop took."""
    from sonde import Trace, _record
    from sonde.torch import _attach
    _record.start(trace)
    _attach.attach(shapes=True, memory=True)
    work()
    begin = time.perf_counter()
    _attach.stop()
    stopped = time.perf_counter() - begin
    with Trace(trace) as opened:
        return sum(row.count for row in opened.averages()), stopped


def measure(*command):
    """Seconds, elapsed and of the CPU, and the most memory in MB, of a process; it prints nothing that is looked at."""
    done = subprocess.run([sys.executable, "-S", "-c", MEASURE, *command], stdout=subprocess.PIPE, text=True, check=True)
    elapsed, used, kilobytes = done.stdout.splitlines()[-1].split()
    return float(elapsed), float(used), int(kilobytes) / 1024


def watch(*command):
    """Seconds of the CPU of each thread of a process, in the order in which they began."""
    done = subprocess.run([sys.executable, "-S", "-c", WATCH, *command], stdout=subprocess.PIPE, text=True, check=True)
    return [float(one) for one in done.stdout.split()]


def remove(target):
    if target.is_dir():
        shutil.rmtree(target)
    else:
        target.unlink(missing_ok=True)


def ours(trace, form, folder):
    """As measure(), of one export, and how many bytes it wrote."""
    target = pathlib.Path(folder) / f"ours.{form}"
    remove(target)
    cost = measure(SONDE, "export", trace, "--to", form, "-o", target)
    files = [one for one in target.rglob("*") if one.is_file()] if target.is_dir() else [target]
    return *cost, sum(one.stat().st_size for one in files)


def threads(trace, form, folder):
    target = pathlib.Path(folder) / f"ours.{form}"
    remove(target)
    return watch(SONDE, "export", trace, "--to", form, "-o", target)


def limit(trace, size, folder):
    """Seconds, elapsed and of the CPU, of one reading pass and of writing so many bytes."""
    target = pathlib.Path(folder) / "limit"
    remove(target)
    return measure(f"{BUILD}/bench/export_limit", trace, str(size), target)[:2]


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--quick", action="store_true")
    quick = options.parse_args().quick
    import torch
    work, large = make_work(torch, 30 if quick else 200), make_work(torch, 200 if quick else 2000)
    results = []
    build("bench/export_limit")
    with tempfile.TemporaryDirectory(prefix="sonde-bench-") as folder:
        trace = f"{folder}/ops.sonde"
        operators, stopped = record(large, trace)
        cost, limits, memory, stops, exports = {form: [] for form in FORMATS}, {form: [] for form in FORMATS}, 0.0, [], []
        sizes, shares = {}, {form: [] for form in FORMATS}
        for _ in range(2 if quick else 5):
            stop, export = theirs(work, folder)
            stops.append(stop)
            exports.append(export)
            for form in FORMATS:
                *times, held, size = ours(trace, form, folder)
                cost[form].append(times)
                sizes[form] = size
                limits[form].append(limit(trace, size, folder))
                shares[form].append(threads(trace, form, folder))
                memory = max(memory, held)
    best = [min(one) for one in zip(*exports)]
    whole = min(stop[0] + export[0] for stop, export in zip(stops, exports))
    for form in FORMATS:
        each = [min(one) / operators for one in zip(*cost[form])]
        both = stopped / operators + each[0]
        least = [min(one) / operators for one in zip(*limits[form])]
        longest = min(shares[form], key=max)
        why = (f"one reading pass and the bytes take {1e3 * least[1] * operators:.0f} ms of processor time, the threads of the export "
               f"{' + '.join(f'{1e3 * one:.0f}' for one in longest)} ms; by what: [decision 29](decisions/0029-exports-over-their-limit.md).")
        for which, key, what, budget in ((0, "", "", TIMES), (1, "_cpu", "CPU time of ", None)):
            results.append(say(figure(f"export_{form}{key}", f"{what}torch's export_chrome_trace over sonde export --to {form}, an operator",
                                      best[which] / each[which], "x", budget, at_least=budget is not None, limit=best[which] / least[which],
                                      why=why, both=f"{1e6 * best[which]:.2f} us and {1e6 * each[which]:.3f} us")))
        results.append(say(figure(f"export_{form}_limit", f"sonde export --to {form} over one reading pass and writing {sizes[form] / 1e6:.1f} MB",
                                  each[0] / least[0], "x", OVER_LIMIT, limit=1, why=why,
                                  both=f"{1e6 * each[0]:.3f} us and {1e6 * least[0]:.3f} us")))
        results.append(say(figure(f"export_{form}_longest", f"CPU time of the longest thread of sonde export --to {form} over the same",
                                  max(longest) / operators / least[1], "x", limit=1,
                                  both=f"{' + '.join(f'{1e3 * one:.0f}' for one in longest)} ms and {1e3 * least[1] * operators:.0f} ms")))
        results.append(say(figure(f"export_{form}_from_end", f"torch's stop and export over sonde's stop and export --to {form}",
                                  whole / both, "x", both=f"{1e6 * whole:.2f} us and {1e6 * both:.3f} us")))
    results.append(say(figure("export_memory", f"the most memory of an export of {operators:,} operators", memory, "MB", MEGABYTES)))
    conclude(results)


if __name__ == "__main__":
    main()
