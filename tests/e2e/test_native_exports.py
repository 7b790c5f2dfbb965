# SPDX-License-Identifier: Apache-2.0
"""pprof and perf-script: other tools read the same stacks and times from them as sonde shows."""
import collections
import gzip
import json
import re
import shutil
import subprocess

import pytest

from cli_tools import GEN, PPROF, SONDE, needs_pprof, needs_tools, sonde

pytestmark = needs_tools


@pytest.fixture(params=["mixed", "native"])
def trace(request, tmp_path):
    path = tmp_path / "t.sonde"
    subprocess.run([GEN, request.param, path], check=True)
    return path


def export(trace, form):
    out = trace.with_suffix("." + form)
    done = sonde("export", trace, "--to", form, "-o", out)
    assert done.returncode == 0, done.stderr
    return out


def functions(trace):
    """Self and total nanoseconds on the CPU by function, from the tree of samples."""
    rows = json.loads(sonde("report", trace, "--view", "samples", "--json").stdout)["rows"]
    own, total = collections.Counter(), collections.Counter()
    for at, row in enumerate(rows):
        if row["depth"] == 0:
            path = []
            continue
        del path[row["depth"] - 1:]
        inner = 0
        for r in rows[at + 1:]:
            if r["depth"] <= row["depth"]:
                break
            inner += r["cpu_ns"] if r["depth"] == row["depth"] + 1 else 0
        own[row["function"]] += row["cpu_ns"] - inner
        if row["function"] not in path:
            total[row["function"]] += row["cpu_ns"]
        path.append(row["function"])
    return own, total


def fields(message):
    """(number, value) of a protobuf message: an integer or bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        else:
            assert key & 7 == 2
            length = varint()
            yield key >> 3, message[at:at + length]
            at += length


def varints(packed):
    value = shift = 0
    for byte in packed:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield value
            value = shift = 0


def read_pprof(path):
    """Its types, and its samples: the stack, innermost first, and a value of each type."""
    profile = list(fields(gzip.decompress(path.read_bytes())))
    strings = [value.decode() for number, value in profile if number == 6]
    assert strings[0] == ""
    names = {f[1]: strings[f[2]] for f in (dict(fields(v)) for n, v in profile if n == 5)}
    lines = {}
    for number, value in profile:
        if number == 4:
            location = dict(fields(value))
            lines[location[1]] = names[dict(fields(location[4]))[1]]
    types = [tuple(strings[v] for _, v in fields(value)) for number, value in profile if number == 1]
    samples = [dict(fields(value)) for number, value in profile if number == 2]
    return types, [([lines[i] for i in varints(sample[1])], list(varints(sample[2]))) for sample in samples]


def add_up(stacks):
    """Own and total by function, of (stack, innermost first; number)."""
    own, total = collections.Counter(), collections.Counter()
    for stack, number in stacks:
        if stack:
            own[stack[0]] += number
        for name in set(stack):
            total[name] += number
    return +own, +total


def test_pprof_has_every_stack_and_its_times(trace):
    types, samples = read_pprof(export(trace, "pprof"))
    assert types == [("samples", "count"), ("wall", "nanoseconds"), ("cpu", "nanoseconds")]
    assert add_up((stack, values[2]) for stack, values in samples) == tuple(+c for c in functions(trace))


@needs_pprof
def test_go_reads_the_same_top_functions(trace):
    done = subprocess.run([*PPROF, "-top", "-unit=ns", "-nodecount=10", "-symbolize=none", export(trace, "pprof")],
                          capture_output=True, text=True, check=True)
    shown = {}
    for line in done.stdout.splitlines():
        match = re.match(r"\s*(\d+)(?:ns)?\s+\S+\s+\S+\s+(\d+)(?:ns)?\s+\S+\s+(.+)", line)
        if match:
            shown[match.group(3)] = int(match.group(1)), int(match.group(2))
    own, total = functions(trace)
    ours = {re.sub(r"<.*|\(.*", "", name): (own[name], total[name]) for name in total}
    assert shown
    assert all(ours[re.sub(r"<.*|\(.*", "", name)] == times for name, times in shown.items()), (shown, ours)


def collapse(text):
    """What FlameGraph's stackcollapse-perf.pl makes of it: its rules for heads and frames."""
    stacks, stack, name = collections.Counter(), [], None
    for line in text.splitlines():
        if not line:
            if name is not None:
                stacks[";".join([name, *reversed(stack)])] += 1
            stack, name = [], None
        elif match := re.match(r"(\S.+?)\s+(\d+)/*(\d+)*\s+", line):
            assert re.search(r" (\S+):\s*$", line)
            name = match.group(1)
        elif match := re.match(r"\s*(\w+)\s*(.+) \((\S*)\)", line):
            stack.append(match.group(2))
        else:
            raise AssertionError(line)
    assert name is None
    return stacks


def test_perf_script_is_read_by_stackcollapse(trace):
    stacks = collapse(export(trace, "perf-script").read_text())
    rows = json.loads(sonde("report", trace, "--view", "samples", "--json").stdout)["rows"]
    totals = collections.Counter()
    for stack, count in stacks.items():
        for name in set(stack.split(";")[1:]):
            totals[name] += count
    assert totals
    known = {row["function"] for row in rows}
    assert set(totals) <= known
    if all(row["cpu_ns"] == row["time_ns"] for row in rows):  # nobody waited: each sample is there
        assert sum(stacks.values()) == sum(row["samples"] for row in rows if row["depth"] == 0)


def test_perf_script_collapses_to_our_folded_stacks(tmp_path):
    """Of a trace in which nobody waited, and all samples stand for the same time."""
    path = tmp_path / "t.sonde"
    subprocess.run([GEN, "native", path], check=True)
    theirs = collections.Counter()
    for stack, count in collapse(export(path, "perf-script").read_text()).items():
        theirs[stack] += count
    ours, rows = {}, json.loads(sonde("report", path, "--view", "samples", "--json").stdout)["rows"]
    assert all(row["cpu_ns"] == row["time_ns"] for row in rows)
    for line in export(path, "folded").read_text().splitlines():
        stack, us = line.rsplit(" ", 1)
        stack = ";".join(re.sub(r" \([^()]*\)$", "", frame) for frame in stack.split(";"))
        ours[stack] = ours.get(stack, 0) + int(us)
    assert set(theirs) == set(ours)
    shares = [{stack: count / sum(counts.values()) for stack, count in counts.items()} for counts in (theirs, ours)]
    assert all(abs(shares[0][stack] - shares[1][stack]) < 0.01 for stack in ours), shares


def read_callgrind(text, event=0):
    """Own and total time by function, or another event: what it takes itself, and with that of its calls."""
    names, own, total, name, is_call = {}, collections.Counter(), collections.Counter(), None, False
    for line in text.splitlines():
        if match := re.match(r"(c?fn)=\((\d+)\)(?: (.*))?$", line):
            names.setdefault(match.group(2), match.group(3))
            if match.group(1) == "fn":
                name = names[match.group(2)]
        elif line.startswith("calls="):
            is_call = True
        elif re.match(r"\d+( \d+)+$", line):
            value = int(line.split()[event + 1])
            total[name] += value
            own[name] += 0 if is_call else value
            is_call = False
    return own, total


def test_callgrind_has_the_times_of_the_samples(tmp_path):
    path = tmp_path / "t.sonde"
    subprocess.run([GEN, "native", path], check=True)
    out = export(path, "callgrind")
    own, total = functions(path)
    assert tuple(map(lambda times: +times, read_callgrind(out.read_text()))) == (+own, +total)
    if not shutil.which("callgrind_annotate"):
        pytest.skip("valgrind is not installed")
    done = subprocess.run(["callgrind_annotate", "--threshold=100", "--auto=no", "--show-percs=no", out], capture_output=True,
                          text=True, check=True)
    shown = collections.Counter()
    for line in done.stdout.splitlines():
        match = re.match(r"\s*([\d,]+)\s+(\S*?):(.+?)(?: \[\S*\])?$", line)
        if match and match.group(3) != "PROGRAM TOTALS":
            shown[match.group(3)] += int(match.group(1).replace(",", ""))
    assert +shown == +own


def test_a_trace_without_samples_is_refused(tmp_path):
    path = tmp_path / "t.sonde"
    subprocess.run([GEN, "threads", path], check=True)
    done = sonde("export", path, "--to", "perf-script", "-o", tmp_path / "x")
    assert done.returncode == 1 and b"no samples" in done.stderr
    subprocess.run([GEN, "counters", path], check=True)
    for form in "pprof", "callgrind":
        done = sonde("export", path, "--to", form, "-o", tmp_path / "x")
        assert done.returncode == 1 and b"no samples, Python functions or ranges" in done.stderr


@pytest.mark.parametrize("case", ["threads", "torch", "gpu", "diff"])
def test_ranges_are_stacks_of_pprof_and_callgrind(tmp_path, case):
    path = tmp_path / "t.sonde"
    subprocess.run([GEN, case, path, *(["0"] if case == "diff" else [])], check=True)
    rows = json.loads(sonde("report", path, "--view", "tree", "--json", "--rows", "-1").stdout)["rows"]
    stacks, way, calls = [], [], collections.Counter()
    for row in rows:
        way[row["depth"] - 1:] = [row["name"]]
        stacks.append((way[::-1], row["self_ns"]))
        calls[row["name"]] += row["count"]
    types, samples = read_pprof(export(path, "pprof"))
    assert types == [("calls", "count"), ("wall", "nanoseconds")]
    assert add_up((stack, values[1]) for stack, values in samples) == add_up(stacks)
    found = collections.Counter()
    for stack, values in samples:
        found[stack[0]] += values[0]
    assert found == calls
    own, total = read_callgrind(export(path, "callgrind").read_text())
    assert (+own, +total) == add_up(stacks)


def test_counted_calls_are_stacks_of_pprof(tmp_path):
    path = tmp_path / "t.sonde"
    subprocess.run([GEN, "python", path], check=True)
    _, samples = read_pprof(export(path, "pprof"))
    rows = json.loads(sonde("report", path, "--view", "functions", "--json", "--rows", "-1").stdout)["rows"]
    found = collections.Counter()
    for stack, (_, ns) in samples:
        found[stack[0]] += ns
    told = collections.Counter()
    for row in rows:
        told[row["function"]] += row["self_ns"]
    assert +found == +told


@pytest.mark.parametrize("case", ["native", "samples", "heap", "torch"])
def test_the_first_mapping_of_pprof_is_the_program(tmp_path, case):
    path = tmp_path / "t.sonde"
    subprocess.run([GEN, case, path], check=True)
    profile = list(fields(gzip.decompress(export(path, "pprof").read_bytes())))
    strings = [value.decode() for number, value in profile if number == 6]
    mappings = [dict(fields(value)) for number, value in profile if number == 3]
    program = json.loads(sonde("report", path, "--view", "summary", "--json").stdout)["totals"]["program"]
    assert mappings[0][1] == 1 and strings[mappings[0][5]] == program
    assert len({(strings[one[5]], one.get(6, 0)) for one in mappings}) == len(mappings)


def test_allocations_are_costs_of_callgrind(tmp_path):
    path = tmp_path / "t.sonde"
    subprocess.run([GEN, "heap", path], check=True)
    text = export(path, "callgrind").read_text()
    heaps = json.loads(sonde("report", path, "--view", "heap", "--json", "--rows", "-1").stdout)
    for event, key in enumerate(("peak_bytes", "bytes", "leaked_bytes")):
        own, _ = read_callgrind(text, event)
        assert sum(own.values()) == sum(row[key] for row in heaps["rows"]) > 0


HOT = r"""
#include <stdint.h>
#include <stdio.h>
#include <time.h>
__attribute__((noinline)) uint64_t hot(uint64_t n)
{
    uint64_t x = n | 1;
    for (uint64_t i = 0; i < n; i++) x = x / 3 * 7 + (x >> 3) + i;
    return x;
}
int main(void)
{
    uint64_t x = 0;
    while (clock() < CLOCKS_PER_SEC / 2) x += hot(100000);
    printf("%d\n", (int)(x & 1));
    return 0;
}
"""


def compare_with_perf(program, rows, data):
    """The shares of instructions are those of perf annotate, of another run: hundreds of samples in a few places."""
    theirs = subprocess.run(["perf", "record", "-q", "-e", "cpu-clock:u", "-F", "2000", "-o", data, program], capture_output=True)
    text = subprocess.run(["perf", "annotate", "--stdio", "-s", "hot", "-i", data], capture_output=True, text=True).stdout
    shares = {int(at, 16): float(share) / 100 for share, at in re.findall(r"^ +(\d+\.\d+) +: +([0-9a-f]+):", text, re.M)}
    assert theirs.returncode == 0 and shares, theirs.stderr
    ours = {int(row["address"], 16): row["function_share"] / 100 for row in rows}
    assert max(ours, key=ours.get) in sorted(shares, key=shares.get)[-3:], (ours, shares)
    assert sum(abs(ours.get(at, 0) - shares.get(at, 0)) for at in {*ours, *shares}) / 2 < 0.15, (ours, shares)


@pytest.mark.skipif(not (shutil.which("cc") and shutil.which("objdump")), reason="needs a compiler and objdump")
def test_instructions_of_a_real_program(tmp_path):
    """Each sample of the hot function is at an instruction that objdump, and perf annotate, have there."""
    (tmp_path / "hot.c").write_text(HOT)
    program, trace = tmp_path / "hot", tmp_path / "t.sonde"
    subprocess.run(["cc", "-O1", "-o", program, tmp_path / "hot.c"], check=True)
    done = sonde("run", "-q", "--sample=2000", "-o", trace, "--", program)
    assert done.returncode == 0, done.stderr
    rows = json.loads(sonde("report", trace, "--view", "asm", "--json").stdout)["rows"]
    rows = [row for row in rows if row["function"] == "hot"]
    if not rows:
        pytest.skip("this machine lets nobody sample")
    listing = subprocess.run(["objdump", "-d", "--no-show-raw-insn", "--disassemble=hot", program], check=True,
                             capture_output=True, text=True).stdout
    known = {int(at, 16): text.split("#")[0].split() for at, text in re.findall(r"^ +([0-9a-f]+):\t(.*)$", listing, re.M)}
    assert all(known[int(row["address"], 16)] == row["instruction"].split("#")[0].split() for row in rows)
    assert abs(sum(row["function_share"] for row in rows) - 100) < 1e-3
    text = sonde("report", trace, "--view", "asm").stdout.decode()
    assert re.search(r"% in hot  \S*/hot\n Self %", text)
    hottest = max(rows, key=lambda row: row["self_ns"])
    assert re.search(rf"^ *[\d.]+ +{int(hottest['address'], 16):x}  ", text, re.M)
    if shutil.which("perf"):
        compare_with_perf(program, rows, tmp_path / "perf.data")
    with open(program, "r+b") as file:  # another file of that name
        content = bytearray(file.read())
        at = content.index(b"GNU\0", content.index(b"\x14\0\0\0\x03\0\0\0")) + 4
        content[at] ^= 255
    program.unlink()
    program.write_bytes(content)
    assert b"the file has changed since" in sonde("report", trace, "--view", "asm").stdout
    program.unlink()
    assert b"the file is not here" in sonde("report", trace, "--view", "asm").stdout


COUNTERS = ("page-faults", "context-switches")


def of_report(trace):
    """{counter: own and total by function}."""
    rows = json.loads(sonde("report", trace, "--view", "function-counters", "--rows", "-1", "--json").stdout)["rows"]
    keys = {counter: counter.replace("-", "_") for counter in COUNTERS}
    return {counter: tuple(+collections.Counter({row["function"]: row[before + key] for row in rows})
                           for before in ("self_", "")) for counter, key in keys.items()}


def of_folded(path):
    lines = [line.rsplit(" ", 1) for line in path.read_text().splitlines()]
    stacks = [([re.sub(r" \([^()]*:\d+\)$", "", f) for f in stack.split(";")], int(n)) for stack, n in lines]
    return {counter: add_up((stack[:0:-1], n) for stack, n in stacks if stack[0] == counter) for counter in COUNTERS}


def of_speedscope(path):
    file = json.loads(path.read_text())
    names = [frame["name"] for frame in file["shared"]["frames"]]
    return {p["name"]: add_up(([names[i] for i in reversed(stack)], n) for stack, n in zip(p["samples"], p["weights"]))
            for p in file["profiles"]}


def of_pprof(path):
    types, samples = read_pprof(path)
    assert all(unit == "count" for _, unit in types)
    return {name: add_up((stack, values[n]) for stack, values in samples) for n, (name, _) in enumerate(types)}


def of_perf_script(path):
    stacks = {counter: [] for counter in COUNTERS}
    for sample in path.read_text().split("\n\n")[:-1]:
        head, *frames = sample.splitlines()
        events, counter = re.search(r": +(\d+) (\S+): $", head).groups()
        stacks[counter].append(([re.match(r"\t *0 (.*) \(\S+\)$", f).group(1) for f in frames], int(events)))
    return {counter: add_up(found) for counter, found in stacks.items()}


def of_callgrind(path):
    text = path.read_text()
    names = re.findall(r"^event: \S+ : (.*)$", text, re.M)
    return {name: tuple(+c for c in read_callgrind(text, n)) for n, name in enumerate(names)}


@pytest.mark.parametrize("form, read", [("folded", of_folded), ("speedscope", of_speedscope), ("pprof", of_pprof),
                                        ("perf-script", of_perf_script), ("callgrind", of_callgrind)],
                         ids=lambda value: value if isinstance(value, str) else "")
def test_events_of_counters_are_those_of_the_report(tmp_path, form, read):
    path = tmp_path / "t.sonde"
    subprocess.run([GEN, "stack_counters", path], check=True)
    expected = of_report(path)
    assert sum(expected["page-faults"][0].values()) == 348
    assert read(export(path, form)) == expected


@needs_pprof
def test_go_reads_the_events(tmp_path):
    path = tmp_path / "t.sonde"
    subprocess.run([GEN, "stack_counters", path], check=True)
    for options, own in (([], 300), (["-sample_index=context-switches"], 2)):
        done = subprocess.run([*PPROF, "-top", "-symbolize=none", *options, export(path, "pprof")], capture_output=True,
                              text=True, check=True)
        assert re.search(rf"^ *{own} .* touch$", done.stdout, re.M), done.stdout


def test_callgrind_annotate_reads_the_events(tmp_path):
    annotate = shutil.which("callgrind_annotate") or pytest.skip("callgrind_annotate is not installed (tools/setup test)")
    path = tmp_path / "t.sonde"
    subprocess.run([GEN, "stack_counters", path], check=True)
    done = subprocess.run([annotate, export(path, "callgrind")], capture_output=True, text=True, check=True)
    assert re.search(r"page_faults\s+context_switches", done.stdout), done.stdout
    assert re.search(r"^300 .*2 .*touch", done.stdout, re.M), done.stdout
