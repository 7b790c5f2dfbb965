#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/imports.py [--quick] - traces of torch.profiler (.json.gz) to the table of operators with self times.

The file is a real one of a GPU (tests/data/gpu), its steps repeated with times and ids moved on: 100 MB of JSON. CPU time of
`sonde report FILE.json.gz`, everything included, beside that of `gzip -dc` of the file alone, of gunzip, orjson and a loop over the
operators, and of HolisticTraceAnalysis's load (both in an environment of their own, build-bench/; left out if that cannot be made). Best of
several rounds. The most memory, of a file of two million kernels as well; the size of the packed trace over that of the file, of one that is not repeated: recorded here by
torch.profiler, a small transformer with shapes.
Exit status: 1 if a budget is missed.
"""
import argparse
import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile

from figures import ROOT, conclude, figure, leave_out, say

SONDE = f"{ROOT}/build/src/cli/sonde"
ENVIRONMENT = f"{ROOT}/build-bench"
SOURCE = f"{ROOT}/tests/data/gpu/train.trace.json.gz"
NUMBERS = {"ts": 20000, "correlation": 1400, "External id": 1000, "Ev Idx": 1000, "Sequence number": 40, "id": 1400}

LOOP = """
import collections, gzip, orjson, sys
total, count = collections.Counter(), collections.Counter()
for e in orjson.loads(gzip.open(sys.argv[1]).read())["traceEvents"]:
    if e["ph"] == "X" and e.get("cat") == "cpu_op":
        total[e["name"]] += e["dur"]
        count[e["name"]] += 1
"""
RECORD = """
import sys, torch
from torch.profiler import ProfilerActivity, profile
layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
model = torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
optimizer = torch.optim.Adam(model.parameters())
x = torch.randn(2, 16, 64)
with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as recording:
    for _ in range(60):
        model(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        recording.step()
recording.export_chrome_trace(sys.argv[1])
"""
HTA = """
import logging, sys
logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis
if len(sys.argv) > 1:
    TraceAnalysis(trace_files={0: sys.argv[1]})
"""


def make_file(path, times):
    """The steps of a real file, `times` times."""
    with gzip.open(SOURCE, "rt") as file:
        text = file.read()
    begin = text.index('"traceEvents": [') + len('"traceEvents": [')
    end = text.rindex("]")
    keys = "|".join(NUMBERS)
    parts = re.split(rf'"({keys})": (\d+)', text[begin:end])
    with gzip.open(path, "wt", compresslevel=6) as file:
        file.write(text[:begin].replace('"traceEvents"', '"distributedInfo": {"rank": 0, "world_size": 1},\n"traceEvents"'))
        for k in range(times):
            out = [parts[0]]
            for key, number, rest in zip(parts[1::3], parts[2::3], parts[3::3]):
                out += [f'"{key}": {int(number) + k * NUMBERS[key]}', rest]
            file.write("".join(out) + ("," if k < times - 1 else ""))
        file.write(text[end:])


def make_kernels(path, count):
    """As many kernels as a long run has, each launched by an operator of its own."""
    operator = '{"ph": "X", "cat": "cpu_op", "name": "aten::op%d", "pid": 9, "tid": 9, "ts": %d.125, "dur": 8.5, "args": {"External id": %d}},\n'
    call = '{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": %d.25, ' \
        '"dur": 3.5, "args": {"correlation": %d}},\n'
    kernel = '{"ph": "X", "cat": "kernel", "name": "kernel_%d", "pid": 0, "tid": 7, "ts": %d.5, "dur": 7.125, ' \
        '"args": {"device": 0, "stream": 7, "correlation": %d, "grid": [1, 1, 1], "block": [128, 1, 1]}},\n'
    with gzip.open(path, "wt", compresslevel=1) as file:
        file.write('{"schemaVersion": 1,\n"traceEvents": [\n')
        for i in range(count):
            file.write(operator % (i % 40, 10 * i, i + 1) + call % (10 * i + 2, i + 1) + kernel % (i % 40, 10 * i + 9, i + 1))
        file.write('{"ph": "i", "name": "Record Window End", "pid": "", "tid": "", "s": "g", "ts": %d}]}' % (10 * count))


def cost(command):
    """(CPU seconds, the most memory in MiB) of a command and all that it starts."""
    with open(os.devnull, "wb") as nowhere:
        child = subprocess.Popen(command, stdout=nowhere, stderr=nowhere)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"imports.py: failed: {command}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def environment():
    """The Python with the others' packages; None: it cannot be made."""
    python = f"{ENVIRONMENT}/bin/python"
    if not os.path.exists(f"{ENVIRONMENT}/.ready"):
        done = subprocess.run([sys.executable, "-m", "venv", ENVIRONMENT], check=False).returncode == 0 and \
            subprocess.run([python, "-m", "pip", "install", "--quiet", "-r", f"{ROOT}/tools/bench-requirements.txt"],
                           check=False).returncode == 0
        if not done:
            return None
        with open(f"{ENVIRONMENT}/.ready", "w"):
            pass
    return python


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--quick", action="store_true")
    quick = options.parse_args().quick
    results = []
    with tempfile.TemporaryDirectory(prefix="sonde-bench-") as folder:
        path, packed = f"{folder}/t.json.gz", f"{folder}/t.sonde"
        make_file(path, 30 if quick else 300)
        rounds = [(cost([SONDE, "report", path]), cost(["gzip", "-dc", path])) for _ in range(3 if quick else 7)]
        ours, theirs = min(o[0] for o, _ in rounds), min(t[0] for _, t in rounds)
        with gzip.open(path) as file, open(f"{folder}/t.json", "wb") as unpacked:
            shutil.copyfileobj(file, unpacked, 1 << 20)
        plain = min(cost([SONDE, "report", f"{folder}/t.json"])[0] for _ in rounds)
        results.append(say(figure("import_gzip", "sonde report FILE.json.gz over gzip -dc of it, CPU time", ours / theirs, "x", 1,
                                  why=f"of {1000 * ours:.0f} ms, its JSON without gzip takes {1000 * plain:.0f} ms.",
                                  both=f"{1000 * ours:.0f} ms and {1000 * theirs:.0f} ms")))
        results.append(say(figure("import_memory", "the most memory of sonde report FILE.json.gz", max(o[1] for o, _ in rounds), "MiB", 24)))
        count = 100_000 if quick else 2_000_000
        make_kernels(f"{folder}/kernels.json.gz", count)
        results.append(say(figure("import_kernels_memory", f"the most memory of sonde report FILE.json.gz of {count:,} kernels",
                                  cost([SONDE, "report", f"{folder}/kernels.json.gz"])[1], "MiB", 24)))
        recorded = f"{folder}/recorded.json.gz"
        subprocess.run([sys.executable, "-c", RECORD, recorded], check=True, stderr=subprocess.DEVNULL)
        subprocess.run([SONDE, "import", recorded, "-o", packed], check=True, stderr=subprocess.DEVNULL)
        results.append(say(figure("import_size", "a file of torch.profiler imported, over the .json.gz", os.path.getsize(packed) /
                                  os.path.getsize(recorded), "x", 0.2)))
        python = environment()
        if python:
            loop = min(cost([python, "-c", LOOP, path])[0] for _ in range(2))
            start = cost([python, "-c", HTA])[0]
            load = min(cost([python, "-c", HTA, path])[0] for _ in range(2)) - start
            results.append(say(figure("import_orjson", "gunzip, orjson and a loop over sonde report, CPU time", loop / ours, "x", 6, at_least=True)))
            results.append(say(figure("import_hta", "HolisticTraceAnalysis's load over sonde report, CPU time", load / ours, "x", 30,
                                      at_least=True, limit=load / theirs,
                                      why=f"gzip -dc of the file alone takes {1000 * theirs:.0f} ms, sonde report {1000 * ours:.0f} ms.")))
        else:
            leave_out("orjson and HolisticTraceAnalysis", "they cannot be installed in build-bench/")
    conclude(results, keeps=not quick)


if __name__ == "__main__":
    main()
