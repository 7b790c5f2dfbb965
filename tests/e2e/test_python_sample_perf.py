# SPDX-License-Identifier: Apache-2.0
"""Python samples beside perf's of the same seconds of the same process, and beside what the program says of itself.

From CPython 3.12 on, -X perf gives each Python function an address of its own, by which perf knows it.
"""
import collections
import json
import re
import subprocess
import textwrap

import pytest

from native_tools import POINTS, needs_perf, perf_script
from python_tools import interpreters
from sample_tools import ON_CPU, SONDE, samples

SECONDS = 3
ENOUGH = 2.5  # seconds of processor time that are compared
PARTS = ("long", "middle", "deep", "short")
# Says on each line that it reads what its functions have run up to now, in processor time.
PROGRAM = """
import json, select, sys, time
spent = dict.fromkeys(("long", "middle", "deep", "short"), 0)
def long(n):
    x = 0
    for i in range(n): x += i * i
def middle(n):
    x = 0
    while n > 0:
        x ^= n
        n -= 1
def deep(n, depth=20):
    if depth: return deep(n, depth - 1)
    for i in range(n): pass
def short(n):
    for i in range(n): i + 1
def clocked(function, n):
    before = time.thread_time()
    function(n)
    spent[function.__name__] += time.thread_time() - before
print("ready", flush=True)
while True:
    clocked(long, 300000); clocked(middle, 120000); clocked(deep, 300000); clocked(short, 60000)
    if select.select([sys.stdin], [], [], 0)[0]:
        if not sys.stdin.readline(): break
        print(json.dumps(spent), flush=True)
"""


def with_perf_maps():
    return [pytest.param(case.values, id=case.id, marks=case.marks) for case in interpreters(since=12)]


def ask(program):
    program.stdin.write("\n")
    program.stdin.flush()
    return json.loads(program.stdout.readline())


def perf_counts(data):
    """Samples by the innermost Python function; those in the kernel have their caller's."""
    counts = collections.Counter()
    for frames in perf_script(data, "ip,sym", "--no-inline"):
        inner = next((match[1] for match in (re.search(r"\bpy::(\w+):", frame) for frame in frames) if match), None)
        counts[inner] += 1
    return counts


def shares(values):
    whole = sum(values[part] for part in PARTS)
    return {part: values[part] / whole for part in PARTS}


def observe(tmp_path, program, known, theirs, ours):
    """Adds a window of a few seconds: what ran by the program's clock, by perf and by us."""
    data, trace, before = tmp_path / "perf.data", tmp_path / "t.sonde", ask(program)
    perf = subprocess.Popen(["perf", "record", "-q", "-F", "999", "-e", "cpu-clock", "--call-graph", "dwarf", "-o", data,
                             "-p", str(program.pid), "--", "sleep", str(SECONDS)], stderr=subprocess.PIPE)
    done = subprocess.run([SONDE, "attach", str(program.pid), "-o", trace, "--sample", "1000", "--duration", str(SECONDS)],
                          stderr=subprocess.PIPE, timeout=60)
    after, said = ask(program), perf.communicate(timeout=60)[1]
    assert done.returncode == 0, done.stderr
    if perf.returncode != 0:
        pytest.skip(f"perf cannot record here: {said.decode()[-200:]}")
    known.update({part: after[part] - before[part] for part in PARTS})
    theirs.update(perf_counts(data))
    for sample in samples(trace):
        if sample["state"] & ON_CPU:
            ours[sample["functions"][0]] += sample["covered_ns"]
    trace.unlink()


@pytest.fixture(scope="module", params=with_perf_maps())
def observed(request, tmp_path_factory):
    """What ran of each part by the program's clock, by perf and by us."""
    folder, (python, _) = tmp_path_factory.mktemp("observed"), request.param
    (folder / "program.py").write_text(textwrap.dedent(PROGRAM))
    with subprocess.Popen([python, "-X", "perf", folder / "program.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as program:
        assert program.stdout.readline() == "ready\n"
        known, theirs, ours = collections.Counter(), collections.Counter(), collections.Counter()
        try:
            while sum(known.values()) < ENOUGH:  # a loaded machine lets it run for a part of the time
                observe(folder, program, known, theirs, ours)
        finally:
            program.kill()
    return known, theirs, ours


def assert_alike(ours, theirs):
    ours, theirs = shares(ours), shares(theirs)
    for part in PARTS:
        assert abs(ours[part] - theirs[part]) < POINTS, (part, ours, theirs)


@needs_perf
@pytest.mark.alone
def test_shares_are_the_programs(observed):
    known, _, ours = observed
    assert_alike(ours, known)


@needs_perf
@pytest.mark.alone
def test_shares_are_perfs(observed):
    _, theirs, ours = observed
    named = sum(theirs[part] for part in PARTS) / sum(theirs.values())
    if named == 0:  # one that unwinds by libdw finds nothing before the code that -X perf makes, which has no unwind data
        pytest.skip("perf cannot record here: it names none of the functions of a Python program")
    assert named > 0.9, theirs
    assert_alike(ours, theirs)
