# SPDX-License-Identifier: Apache-2.0
"""What the GPU tests share: both profilers' work, in the same form."""
import collections
import functools
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("SONDE_BUILD", os.path.join(ROOT, "build"))
SONDE = os.environ.get("SONDE", os.path.join(ROOT, ".venv/bin/sonde"))
KINDS = {"kernel": 1, "gpu_memcpy": 2, "gpu_memset": 3}

Work = collections.namedtuple("Work", "kind name grid block registers shared bytes device stream")


@functools.lru_cache(None)
def works_tool():
    """tests/gpu/works.c, built for the tree's own library."""
    path = os.path.join(tempfile.mkdtemp(prefix="sonde-gpu-"), "works")
    command = ["cc", "-std=c17", "-D_GNU_SOURCE", "-O1", "-I", f"{ROOT}/src", "-I", f"{ROOT}/include",
               "-I", f"{BUILD}/src", "-o", path, f"{HERE}/works.c", f"{BUILD}/src/libsonde.a", "-lm"]
    have = subprocess.run(["pkg-config", "--libs", "--silence-errors", "libzstd", "zlib", "yaml-0.1", "libisal"],
                          capture_output=True, text=True).stdout.split()
    for libraries in (have, ["-lzstd", "-lz", "-lyaml"], ["-lz"], ["-lzstd", "-lz"], []):
        if subprocess.run(command + libraries, capture_output=True).returncode == 0:
            return path
    subprocess.run(command, check=True)
    return path


def read(trace):
    """(works, calls, tally) of a trace of ours; works and calls are dicts."""
    lines = [json.loads(line) for line in subprocess.run(
        [works_tool(), trace], check=True, capture_output=True, text=True).stdout.splitlines()]
    return ([line for line in lines if "kind" in line], [line for line in lines if "api" in line],
            lines[-1]["tally"])


def ours(trace):
    """[(Work, ns, operator)] of kernels, copies and fills."""
    works, _, tally = read(trace)
    return [(Work(one["kind"], one["name"], tuple(one["grid"]), tuple(one["block"]), one["registers"],
                  one["shared"], one["bytes"], one["device"], one["stream"]), one["ns"], one["parent"])
            for one in works if one["kind"] in (1, 2, 3)], tally


def torchs(path):
    """The same of torch's Chrome trace."""
    with open(path) as file:
        events = json.load(file)["traceEvents"]
    operators = {event["args"]["External id"]: event["name"] for event in events
                 if event.get("cat") == "cpu_op" and "External id" in event.get("args", {})}
    rows = []
    for event in events:
        if event.get("cat") not in KINDS:
            continue
        args = event["args"]
        rows.append((Work(KINDS[event["cat"]], event["name"], tuple(args.get("grid", (0, 0, 0))),
                          tuple(args.get("block", (0, 0, 0))), args.get("registers per thread", 0),
                          args.get("shared memory", 0), args.get("bytes", 0), args["device"],
                          args["stream"]),
                     round(event["dur"] * 1000), operators.get(args.get("External id"), "")))
    return rows


def torch_calls(path):
    with open(path) as file:
        return collections.Counter(event["name"] for event in json.load(file)["traceEvents"]
                                   if event.get("cat") in ("cuda_runtime", "cuda_driver"))


def run(*command, timeout=300, **options):
    return subprocess.run([str(word) for word in command], check=True, timeout=timeout,
                          capture_output=True, text=True, **options)


def python(*words, **options):
    return run(sys.executable, *words, **options)
