#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/torch_table.py [--quick] - what comes after the run: the table, the file, the memory.

150,000 operators with shapes: from leaving the profile to the printed table, ours over
torch.profiler's; size of the trace over torch's JSON, as recorded and packed; the memory that
1,000,000 operators take, recording and reporting included. How long events() takes for 1,000,000
events, with the columns that are usually wanted (name, start, end, thread, parent) and with all of
them; wall time, best of five. Each measurement is a process of its
own, ours and theirs in turn. Prints as bench/run does and puts its figures into
bench/results.json. Exit status: 1 if a budget is missed.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

from figures import BUILD, build, conclude, figure, leave_out, say

OPERATORS = 150_000
MANY = 1_000_000
MIB = 1 << 20

# One process: run the operators under a profiler, then say how long the table took and so on.
CHILD = r"""
import json, os, resource, sys, time, warnings
warnings.simplefilter("ignore")
whose, operators, folder, wants_file = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4] == "1"
import torch
if whose == "sonde":
    from sonde import profile, ProfilerActivity
else:
    from torch.profiler import profile, ProfilerActivity

torch.set_num_threads(1)
x = torch.randn(8, 8)
def work(count):
    with torch.no_grad():
        for _ in range(count // 3):
            torch.add(x, x)
            torch.mul(x, x)
            torch.mm(x, x)
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as warm:
    work(300)
str(warm.key_averages().table())
del warm
before = resident()
largest = before
prof = profile(activities=[ProfilerActivity.CPU], record_shapes=True)
prof.start()
for _ in range(10):
    work(operators // 10)
    largest = max(largest, resident())
begin = time.perf_counter()
prof.stop()
text = prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=10)
seconds = time.perf_counter() - begin
largest = max(largest, resident())
rows = {row.key: row.count for row in prof.key_averages()}
assert rows["aten::add"] == rows["aten::mm"] == operators // 10 // 3 * 10, rows
said = {"seconds": seconds, "added": largest - before}
if whose == "sonde":
    def columns_ms(names):
        best, rows = None, 0
        for _ in range(5):
            begin = time.perf_counter()
            events = prof.events()
            columns = [events.column(name) for name in names]
            took = time.perf_counter() - begin
            best = took if best is None else min(best, took)
            rows = len(columns[0])
            del columns, events
        return best * 1000, rows
    said["usual_ms"], said["rows"] = columns_ms(["name", "start_ns", "end_ns", "thread", "parent"])
    said["all_ms"], _ = columns_ms(prof.events().columns)
    assert said["rows"] >= operators // 10 // 3 * 30
if wants_file:
    name = os.path.join(folder, whose)
    if whose == "sonde":
        prof.save(name + ".sonde")
    else:
        prof.export_chrome_trace(name + ".json")
print(json.dumps(said))
"""


def run(whose, operators, folder, wants_file=False):
    done = subprocess.run([sys.executable, "-c", CHILD, whose, str(operators), folder,
                           "1" if wants_file else "0"], check=True, text=True,
                          stdout=subprocess.PIPE)
    return json.loads(done.stdout.splitlines()[-1])


def reading_pass(trace, unused):
    """Seconds, of a trace whose ranges events() has (bench/export_limit.c)."""
    build("bench/export_limit")
    said = subprocess.run([f"{BUILD}/bench/export_limit", trace, "0", unused], check=True, text=True, stdout=subprocess.PIPE).stdout
    return float(said.partition("read_seconds")[2].split()[0])


def bench(folder, rounds):
    ours, theirs = [], []
    for turn in range(rounds):
        ours.append(run("sonde", OPERATORS, folder, turn == 0)["seconds"])
        theirs.append(run("torch", OPERATORS, folder, turn == 0)["seconds"])
    pairs = [a / b for a, b in zip(ours, theirs)]
    yield figure("torch_table", f"{OPERATORS:,} operators to the printed table, over torch's",
                 min(ours) / min(theirs), "x", 1 / 200, [min(pairs), max(pairs)],
                 both=f"{min(ours) * 1000:.1f} ms, torch.profiler {min(theirs):.2f} s")
    json_bytes = os.path.getsize(f"{folder}/torch.json")
    trace = f"{folder}/sonde.sonde"
    yield figure("torch_trace", "trace with shapes, over torch's JSON",
                 os.path.getsize(trace) / json_bytes, "x", 1 / 20,
                 both=f"trace {os.path.getsize(trace) / MIB:.1f} MiB, JSON {json_bytes / MIB:.1f} MiB")
    program = os.path.join(os.path.dirname(sys.executable), "sonde")
    subprocess.run([program, "pack", trace], check=True)
    yield figure("torch_packed", "the same, packed", os.path.getsize(trace) / json_bytes, "x", 1 / 60)
    many = run("sonde", MANY, folder)
    yield figure("torch_rss", f"memory added by {MANY:,} operators, recorded and reported",
                 many["added"] / MIB, "MiB", 64)
    # Each third call is an mm, which makes three more operators: two events for a call.
    os.mkdir(f"{folder}/many")
    listed = run("sonde", MANY // 2, f"{folder}/many", True)
    scale = MANY / listed["rows"]
    least = 1000 * scale * min(reading_pass(f"{folder}/many/sonde.sonde", f"{folder}/limit") for _ in range(5))
    yield figure("torch_events", f"events() of {MANY:,} operators, their usual columns",
                 listed["usual_ms"] * scale, "ms", 50, both=f"all columns: {listed['all_ms'] * scale:.1f} ms",
                 why=f"one reading pass of the trace in the order of time, by a program in C that does nothing else, takes {least:.0f} ms.")


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--quick", action="store_true")
    options = options.parse_args()
    try:
        import torch  # noqa: F401
    except ImportError as error:
        leave_out("torch tables", error)
    figures = []
    with tempfile.TemporaryDirectory(prefix="sonde-bench-") as folder:
        for one in bench(folder, 1 if options.quick else 3):
            figures.append(say(one))
    conclude(figures)


if __name__ == "__main__":
    main()
