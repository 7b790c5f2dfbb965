# SPDX-License-Identifier: Apache-2.0
"""What the tests of samples from outside share: programs of known shares, how to build, record and read them."""
import collections
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from cli_tools import SONDE, read, sonde

PROGRAMS = pathlib.Path(__file__).parent / "programs" / "native"
POINTS = 0.03


def can_sample():
    """Whether this kernel lets a process of ours be sampled at all."""
    if not SONDE:
        return False
    done = sonde("run", "--sample", "-o", "/dev/null/none", "--", "true")
    return b"not sampled" not in done.stderr and os.path.exists("/proc/sys/kernel/perf_event_paranoid")


needs_samples = pytest.mark.skipif(not can_sample(), reason="the kernel does not let us sample: see `sonde doctor`")
needs_perf = pytest.mark.skipif(not shutil.which("perf"), reason="perf is not installed (tools/setup test)")

BUILDS = {
    "plain": ("loops.c", ["gcc", "-O2", "-g"]),
    "no_frame_pointers": ("loops.c", ["gcc", "-O2", "-fomit-frame-pointer"]),
    "optimised": ("loops.c", ["gcc", "-O3", "-foptimize-sibling-calls"]),
    "frame_pointers": ("loops.c", ["gcc", "-O1", "-g", "-fno-omit-frame-pointer"]),
    "no_pie": ("loops.c", ["gcc", "-O2", "-g", "-no-pie"]),
    # perf needs the table of .eh_frame that static programs are linked without
    "static": ("loops.c", ["gcc", "-O2", "-g", "-static", "-Wl,--eh-frame-hdr"]),
    "stripped": ("loops.c", ["gcc", "-O2", "-rdynamic", "-s"]),
    "inlined": ("inlined.cc", ["g++", "-O2", "-g"]),
    "threads": ("threads.c", ["gcc", "-O2", "-g", "-pthread"]),
    "children": ("children.c", ["gcc", "-O2", "-g"]),
    "rust": ("loops.rs", ["rustc", "-O", "-g"]),
    "go": ("loops.go", ["go", "build"]),
    "calls": ("calls.c", ["gcc", "-O2", "-g"]),
    "calls_without_pointers": ("calls.c", ["gcc", "-O3", "-fomit-frame-pointer", "-no-pie"]),
    "calls_static": ("calls.c", ["gcc", "-O2", "-g", "-static", "-Wl,--eh-frame-hdr"]),
    "calls_stripped": ("calls.c", ["gcc", "-O2", "-s"]),
    "bare": ("bare.c", ["gcc", "-O1", "-nostdlib", "-static", "-fno-omit-frame-pointer", "-fno-asynchronous-unwind-tables"]),
    "faults": ("faults.c", ["gcc", "-O1", "-g"]),
    "throws": ("throws.cc", ["g++", "-O2", "-g"]),
    "throws_plain": ("throws.cc", ["g++", "-O0"]),
}


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """Makes a program once; skips where its compiler is absent."""
    made = {}

    def make(name):
        source, command = BUILDS[name]
        if not shutil.which(command[0]):
            pytest.skip(f"{command[0]} is not installed (tools/setup test)")
        if name not in made:
            target = tmp_path_factory.mktemp(name) / name
            env = dict(os.environ, GO111MODULE="off", GOFLAGS="")  # with its own cache: else it compiles its library
            subprocess.run([*command, "-o", str(target), str(PROGRAMS / source)], check=True, env=env,
                           timeout=300)
            made[name] = target
        return made[name]

    return make


def chains(trace):
    """{(outermost, .., innermost): ns} of a trace; the process's name and places are left off."""
    counts = collections.Counter()
    for line in read("export", trace, "--to", "folded", "-o", "-").decode().splitlines():
        stack, _, value = line.rpartition(" ")
        frames = [re.sub(r" \([^()]*\)$", "", frame) for frame in stack.split(";")[1:]]
        counts[tuple(frames)] += int(value)
    return counts


def share(counts, name, of=None):
    total = sum(n for stack, n in counts.items() if of is None or any(of in f for f in stack))
    has = sum(n for stack, n in counts.items() if any(re.search(rf"\b{name}\b", f) for f in stack))
    return has / total


def own_share(counts, names):
    """Shares among the parts of the program: its start, which measures the machine, is left out."""
    times = {name: share(counts, name) for name in names}
    return {name: value / sum(times.values()) for name, value in times.items()}


def truth(stdout, names=None):
    """What the program says of its parts, as shares."""
    parts = {name: float(value) for name, value in
             (line.split() for line in stdout.decode().splitlines() if len(line.split()) == 2)}
    parts = {name: parts[name] for name in names or parts}
    return {name: value / sum(parts.values()) for name, value in parts.items()}


def run(tmp_path, program, *arguments, options=(), names=None):
    trace = tmp_path / "t.sonde"
    done = sonde("run", *options, "-o", trace, "--", program, *arguments)
    assert done.returncode == 7, done.stderr
    return trace, truth(done.stdout, names)


def perf_record(tmp_path, program, event="cpu-clock"):
    """Its file, and what the program said. Skips where perf is not allowed."""
    data = tmp_path / "perf.data"
    done = subprocess.run(["perf", "record", "-q", "-F", "1000", "-e", event, "--call-graph", "dwarf", "-o", data, "--",
                           program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
    if done.returncode not in (0, 7) or not data.exists():
        pytest.skip(f"perf cannot record here: {done.stderr.decode()[-200:]}")
    return data, done.stdout


def perf_script(data, fields, *more):
    """A list of lines for each sample."""
    text = subprocess.run(["perf", "script", "-i", data, "--max-stack", "192", "-F", fields, *more],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True, timeout=300).stdout.decode()
    return [sample.splitlines() for sample in text.strip().split("\n\n")]
