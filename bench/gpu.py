#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/gpu.py [--rounds N] - what recording a GPU costs, over torch.profiler.

ResNet-50 inference, batch 8. Needs an NVIDIA GPU.

Each profiler has a process of its own, since CUPTI has room for one. Both live at the same time and take turns, so that whatever
else the machine does meets both alike: in a turn each runs 20 iterations bare, then as many in a session, whose stop is not timed;
who goes first changes. The median of the differences is what that process adds. ROUNDS pairs of processes; the medians of the
rounds are compared. A second line has the same by the best of each process's turns, which a busy host disturbs less. Each process
has had one session before. What that first one leaves behind, in bare runs after it, is a line of its own. Its figures are not
put into bench/results.json, since the others are of another machine: docs/OVERHEAD.md has them as tools/overhead states them.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

from figures import conclude, figure, leave_out, say

HERE = os.path.dirname(os.path.abspath(__file__))
PROFILERS = ("torch", "sonde")
ITERATIONS, PAIRS, EVENTS = 20, 16, 155_000

# Reads commands from stdin, a line each, and answers each with a line of JSON.
PROGRAM = r"""
import json, os, sys, time, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, sys.argv[1])
import torch, workloads
profiler, folder, iterations = *sys.argv[2:4], int(sys.argv[4])
model = workloads.resnet50().cuda().eval()
x = torch.randn(8, 3, 224, 224, device="cuda")

def run(count):
    with torch.no_grad():
        for _ in range(count):
            model(x)
    torch.cuda.synchronize()

def timed(count):
    start = time.perf_counter()
    run(count)
    return (time.perf_counter() - start) / count * 1e3

if profiler == "torch":
    from torch.profiler import ProfilerActivity, profile
else:
    from sonde import ProfilerActivity, profile
make = lambda: profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True)
run(20)

def profiled():
    with make():
        run(2)
        return timed(iterations)

def bare():
    run(2)
    return timed(iterations)

def many(events):
    with make() as one:
        run(10)
    per_run = len(one.events()) / 10
    count = max(1, int(events / per_run))
    recorded = make()
    recorded.__enter__()
    run(count)
    start = time.perf_counter()
    recorded.__exit__(None, None, None)
    stop = time.perf_counter()
    recorded.key_averages().table()
    result = {"events": per_run * count, "stop_s": stop - start, "table_s": time.perf_counter() - stop}
    path = os.path.join(folder, profiler + (".json" if profiler == "torch" else ".sonde"))
    (recorded.export_chrome_trace if profiler == "torch" else recorded.save)(path)
    result["bytes"] = os.path.getsize(path)
    return result

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # torch.profiler's library says things, too
commands = {"bare": bare, "profiled": profiled, "many": many, "ready": lambda: True}
for line in sys.stdin:
    name, *numbers = line.split()
    print(json.dumps(commands[name](*map(int, numbers))), file=answers, flush=True)
"""


class Process:
    """A process that runs the model under one profiler, when told."""

    def __init__(self, profiler, folder):
        self.profiler, self.said = profiler, tempfile.TemporaryFile("w+", errors="replace")
        self.child = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, os.path.join(os.path.dirname(HERE), "tests/gpu"), profiler, folder,
             str(ITERATIONS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.said, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.stdin.close()
        self.child.wait()
        self.child.stdout.close()
        self.said.close()

    def __call__(self, *words):
        try:
            print(*words, file=self.child.stdin, flush=True)
            line = self.child.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            status = self.child.wait()
            self.said.seek(0)
            sys.exit(f"bench/gpu.py: the run with {self.profiler} failed with status {status}:\n{self.said.read()}")
        return json.loads(line)


def compare_processes(pairs, folder):
    """{profiler: what an iteration takes before its first session, bare and in a session after it, and what that adds}."""
    with Process("torch", folder) as theirs, Process("sonde", folder) as ours:
        processes = {"torch": theirs, "sonde": ours}
        for process in processes.values():
            process("ready")
        before, turns = ({name: [] for name in PROFILERS} for _ in range(2))
        for _ in range(pairs):
            for name, process in processes.items():
                before[name].append(process("bare"))
        for process in processes.values():
            process("profiled")
        for turn in range(pairs):
            for name in PROFILERS[::1 if turn % 2 else -1]:
                process = processes[name]
                turns[name].append((process("bare"), process("profiled")))
    found = {}
    for name, both in turns.items():
        bare, session = (statistics.median(column) for column in zip(*both))
        found[name] = {"before": statistics.median(before[name]), "bare": bare, "ms": session,
                       "added": statistics.median(after - alone for alone, after in both),
                       "best": min(after for _, after in both) - min(alone for alone, _ in both)}
    return found


def compare_added(rounds, pairs, folder):
    """What each profiler adds to an iteration, and what it leaves behind."""
    runs = [compare_processes(pairs, folder) for _ in range(rounds)]

    def median(profiler, value):
        return statistics.median(value(one[profiler]) for one in runs)

    ours, theirs = (median(profiler, lambda one: one["added"]) for profiler in ("sonde", "torch"))
    bare = statistics.median(one[profiler]["bare"] for one in runs for profiler in PROFILERS)
    ratios = [one["sonde"]["added"] / one["torch"]["added"] for one in runs]
    yield figure("gpu_added", "ResNet-50: added to an iteration, over torch.profiler's", ours / theirs, "x", 0.25, [min(ratios), max(ratios)],
                 both=f"bare {bare:.2f}, torch +{theirs:.2f}, sonde +{ours:.2f} ms")
    best = {profiler: median(profiler, lambda one: one["best"]) for profiler in PROFILERS}
    ratios = [one["sonde"]["best"] / one["torch"]["best"] for one in runs]
    yield figure("gpu_best", "the same by the best turns", best["sonde"] / best["torch"], "x", spread=[min(ratios), max(ratios)],
                 both=f"torch +{best['torch']:.2f}, sonde +{best['sonde']:.2f} ms")
    left = {profiler: median(profiler, lambda one: one["bare"] - one["before"]) for profiler in PROFILERS}
    whole = {profiler: median(profiler, lambda one: one["ms"] - one["before"]) for profiler in PROFILERS}
    yield figure("gpu_whole", "the same with what the first session leaves behind", whole["sonde"] / whole["torch"], "x",
                 both=f"left behind: torch +{left['torch']:.2f}, sonde +{left['sonde']:.2f} ms")


def run_many(profiler, folder, events):
    with Process(profiler, folder) as process:
        return process("many", events)


def compare_sizes(events, folder):
    """What stop and table take, and the bytes of an event."""
    ours, theirs = run_many("sonde", folder, events), run_many("torch", folder, events // 6)
    yield figure("gpu_stop", f"stop and table of {ours['events']:,.0f} events", ours["stop_s"] + ours["table_s"], "s", 0.1,
                 both=f"table {ours['table_s']:.3f} s; torch.profiler, {theirs['events']:,.0f} events: "
                      f"{theirs['stop_s'] + theirs['table_s']:.1f} s")
    ours = run_many("sonde", folder, 5 * events)  # a file has some MiB of room left in its chunks
    mine, other = (one["bytes"] / one["events"] for one in (ours, theirs))
    yield figure("gpu_bytes", "bytes of an event in the trace, over torch's JSON", mine / other, "x", 0.05,
                 both=f"{mine:.1f} and {other:.1f} bytes")


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--pairs", type=int, default=PAIRS, help="of a bare run and a session, in each process")
    options.add_argument("--events", type=int, default=EVENTS, help="of the run whose stop and table are timed; 0: none")
    options = options.parse_args()
    try:
        import torch
    except ImportError as error:
        leave_out("GPU", error)
    if not torch.cuda.is_available():
        leave_out("GPU", "there is no NVIDIA GPU that torch can use")
    figures = []
    with tempfile.TemporaryDirectory(prefix="sonde-bench-") as folder:
        if options.rounds:
            figures += map(say, compare_added(options.rounds, options.pairs, folder))
        if options.events:
            figures += map(say, compare_sizes(options.events, folder))
    conclude(figures, keeps=False)


if __name__ == "__main__":
    main()
