# SPDX-License-Identifier: Apache-2.0
"""Samples from outside beside perf's: the call chain of each sample, and the shares of programs that know them."""
import collections
import functools
import os
import platform
import re
import subprocess

import pytest

from cli_tools import ROOT, find
from native_tools import (POINTS, build, chains, needs_perf, needs_samples, own_share, perf_record,  # noqa: F401
                          perf_script, run, truth)

pytestmark = [needs_samples, needs_perf]
CHAINS = find("SONDE_CHAINS", ROOT / "build/tests/e2e/e2e_chains")


def prints_offsets_apart(data):
    """perf before 6.3 prints places in the files for addresses; since then the addresses, and places as a field of their own."""
    return subprocess.run(["perf", "script", "-i", data, "-F", "ip,sym,dso,dsoff"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, timeout=300).returncode == 0


SIGRETURN = {"x86_64": "48c7c00f0000000f05", "aarch64": "681180d2010000d4"}[platform.machine()]  # what a handler returns to


@functools.lru_cache(maxsize=None)
def begins_the_trampoline(file, place):
    """Whether signal handlers return to this place of the file."""
    if not os.path.isfile(file):  # [vdso], a file that is gone
        return False
    with open(file, "rb") as code:
        code.seek(place)
        return code.read(len(SIGRETURN) // 2).hex() == SIGRETURN


def place_of(frame):
    """Of "ADDRESS FUNCTION (FILE+0xPLACE)", or of "PLACE FUNCTION (FILE)". A caller's is the byte before the return address.
    The trampoline behind a signal handler called nothing: a perf that unwinds by libunwind (Debian 12) takes one from it all the
    same, one that unwinds by libdw does not."""
    file, apart = re.search(r" \((\S+?)(?:\+0x([0-9a-f]+))?\)$", frame).groups()
    place = int(apart or frame.split()[0], 16)
    return f"{place + begins_the_trampoline(file, place + 1):x}"


def chains_of_perf(data):
    """{(pid, tid, ns): places in the files, innermost first}"""
    found = {}
    more = ",dsoff" if prints_offsets_apart(data) else ""
    for first, *frames in perf_script(data, "pid,tid,time,ip,sym,dso" + more, "--no-inline", "--ns"):
        pid, tid, seconds, part = re.match(r"\s*(\d+)/(\d+)\s+(\d+)\.(\d+):", first).groups()
        # where the copy of the stack ends, perf adds a frame at -1
        found[int(pid), int(tid), int(seconds + part)] = [place_of(f) for f in frames if f.split()[0] != 16 * "f"]
    return found


def chains_of_ours(data):
    """The same samples' registers and stacks, walked by sonde."""
    done = subprocess.run([CHAINS, data], stdout=subprocess.PIPE, check=True, timeout=120)
    lines = [line.split() for line in done.stdout.decode().splitlines()]
    return {tuple(map(int, line[:3])): line[4:] for line in lines}


@pytest.mark.skipif(not CHAINS, reason="the program e2e_chains is not built")
@pytest.mark.parametrize("name", ["plain", "optimised", "frame_pointers", "no_pie", "static", "threads", "children", "rust",
                                  "calls", "calls_without_pointers", "calls_static", "calls_stripped", "throws",
                                  "throws_plain"])
def test_each_sample_has_the_call_chain_that_perf_finds(tmp_path, build, name):
    """perf's own samples, through perf's unwinder and ours."""
    data, _ = perf_record(tmp_path, build(name), "cpu-clock:u")
    theirs, ours = chains_of_perf(data), chains_of_ours(data)
    assert len(theirs) > 50
    other = [(chain, ours.get(key)) for key, chain in theirs.items() if ours.get(key) != chain]
    assert len(other) <= 0.01 * len(theirs), (len(other), len(theirs), other[:5])
    assert sum(map(len, theirs.values())) > 2 * len(theirs)  # they are chains


def test_go_has_the_chains_that_its_runtime_tells(tmp_path, build):
    """perf finds no more than the innermost frame of Go, whose tables are in .debug_frame. The kernel's frames lie inside."""
    trace, _ = run(tmp_path, build("go"), names=("area", "edge"))
    counts = chains(trace)
    for part in ("area", "edge"):
        inner = {stack: n for stack, n in counts.items() if f"main.{part}" in stack}
        whole = sum(n for stack, n in inner.items()
                    if stack[:4] == ("runtime.goexit", "runtime.main", "main.main", f"main.{part}"))
        assert whole >= 0.99 * sum(inner.values()), inner


CASES = {"plain": ("long_part", "deep_part"), "optimised": ("long_part", "deep_part"),
         "no_frame_pointers": ("long_part", "deep_part"),
         "frame_pointers": ("long_part", "deep_part"), "no_pie": ("long_part", "deep_part"),
         "static": ("long_part", "deep_part"), "stripped": ("long_part", "deep_part"),
         "inlined": ("inner", "edge"), "threads": ("heavy", "light"), "children": ("in_child", "in_parent"),
         "rust": ("area", "edge"), "go": ("area", "edge")}


def counts_of_perf(data, name):
    """It looks for inlined functions only where there are some: that takes it seconds."""
    counts = collections.Counter()
    for frames in perf_script(data, "ip,sym", *([] if name == "inlined" else ["--no-inline"])):
        counts[tuple(frame.split(None, 1)[-1] for frame in frames if frame.strip())] += 1
    return counts


@pytest.mark.parametrize("name", CASES)
def test_shares_are_those_of_the_program_and_of_perf(tmp_path, build, name):
    """Two runs are not the same: each is beside what it says of itself."""
    parts = CASES[name]
    trace, known = run(tmp_path, build(name), names=parts)
    ours = own_share(chains(trace), parts)
    for _ in range(3):  # beside other work perf is at times further off than that itself
        data, said = perf_record(tmp_path, build(name))
        theirs, known_there = own_share(counts_of_perf(data, name), parts), truth(said, parts)
        away = {part: theirs[part] - known_there[part] for part in parts}
        if max(map(abs, away.values())) < POINTS:
            break
    for part in parts:
        assert abs(ours[part] - known[part]) < POINTS, (part, ours, known)
        assert abs(ours[part] - known[part] - away[part]) < POINTS, (part, ours, known, theirs, known_there)
