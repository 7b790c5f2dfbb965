# SPDX-License-Identifier: Apache-2.0
"""Exports read back by what reads them: json, csv, gzip of Python; ranges must nest as recorded."""
import csv
import gzip
import io
import json
import os
import re
import subprocess

import pytest

from cli_tools import SONDE, generate, needs_tools, read, read_json, sonde

pytestmark = needs_tools

CASES = ["convnet", "names", "threads", "thread_switch", "steps", "two_processes", "unfinished",
         "gaps", "keep_last", "warmup", "fold", "memory", "links", "counters", "stacks", "empty",
         "unknown", "large"]

NAMES = [b"plain", b'with "quotes"', b"back\\slash", b"new\nline and tab\t", b"control \x01\x1f\x7f",
         b"nul \0 inside", "\U0001f680 emoji and \xe9\xe8".encode(), "\u4e2d\u6587".encode(),
         b"not UTF-8: \xff\xc3", b"surrogate \xed\xa0\x80 overlong \xc0\xaf",
         b"a;semicolon and spaces", b"comma,separated", b"=formula",
         b"a name that is longer than fifty-five characters, so that tables have to cut it off", b""]


def to_bytes(text):
    return text.encode("utf-8", "surrogateescape")


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    folder = tmp_path_factory.mktemp("traces")
    return {case: generate(case, folder / case, "4000") for case in CASES}


def recorded_ranges(trace):
    """(thread, name, start, end, parent's number) from the events themselves."""
    dump = read_json("export", trace, "--to", "json", "-o", "-")
    threads = [(dump["processes"][t["process"]]["pid"], t["tid"]) for t in dump["threads"]]
    ranges, stacks, last = [], {}, {}
    for event in dump["events"]:
        stack = stacks.setdefault(event["thread"], [])
        if event["kind"] != "attr":
            last[event["thread"]] = event["time_ns"]
        if event["kind"] == "begin":
            ranges.append([threads[event["thread"]], event["name"], event["time_ns"], None,
                           stack[-1] if stack else None])
            stack.append(len(ranges) - 1)
        elif event["kind"] == "end" and stack:
            ranges[stack.pop()][3] = event["time_ns"]
        elif event["kind"] == "gap":
            count = len(stack) if event["ends_lost"] == "all" else event["ends_lost"]
            for _ in range(min(count, len(stack))):
                ranges[stack.pop()][3] = event["time_ns"]
    for thread, stack in stacks.items():
        for index in stack:
            ranges[index][3] = last[thread]
    return ranges


def nanoseconds(us):
    return round(us * 1000)


def nested_ranges(chrome):
    """The same from a Chrome trace, as a viewer nests: by start, then by order in the file."""
    events = [e for e in chrome["traceEvents"] if e["ph"] == "X"]
    result, stacks = [], {}
    for event in sorted(events, key=lambda e: nanoseconds(e["ts"])):
        thread = (event["pid"], event["tid"])
        stack = stacks.setdefault(thread, [])
        start = nanoseconds(event["ts"])
        while stack and result[stack[-1]][3] <= start:
            stack.pop()
        result.append([thread, event["name"], start, start + nanoseconds(event["dur"]),
                       stack[-1] if stack else None])
        stack.append(len(result) - 1)
    return result


def named_parents(ranges):
    """Comparable without numbers: each range with its whole path."""
    def path(index):
        thread, name, start, end, parent = ranges[index]
        return ([] if parent is None else path(parent)) + [(name, start, end)]
    return sorted((ranges[i][0], path(i)) for i in range(len(ranges)))


@pytest.mark.parametrize("case", CASES)
def test_chrome_nests_as_recorded(traces, case):
    chrome = read_json("export", traces[case], "--to", "chrome", "-o", "-")
    assert named_parents(nested_ranges(chrome)) == named_parents(recorded_ranges(traces[case]))
    for key in ("schemaVersion", "displayTimeUnit", "baseTimeNanoseconds", "traceName", "metadata"):
        assert key in chrome


def test_chrome_keeps_every_name(traces):
    chrome = read_json("export", traces["names"], "--to", "chrome", "-o", "-")
    for phase in "XiC":
        assert [to_bytes(e["name"]) for e in chrome["traceEvents"] if e["ph"] == phase] == NAMES
    names = [e["args"]["name"] for e in chrome["traceEvents"] if e["name"] == "thread_name"]
    assert names == ['th"re\\ad\n\U0001f680']
    assert chrome["metadata"] == [{"pid": 4242, "key": 'quo"te', "value": "back\\slash\n\udcff"}]


@pytest.mark.parametrize("view, key", [("ops", "key"), ("tree", "name")])
def test_reports_keep_every_name(traces, view, key):
    rows = read_json("report", traces["names"], "--view", view, "--json")["rows"]
    assert sorted(to_bytes(row[key]) for row in rows) == sorted(NAMES)


def test_chrome_times_are_exact(traces):
    text = read("export", traces["convnet"], "--to", "chrome", "-o", "-").decode()
    for line in text.splitlines():
        if '"ph":"X"' in line:
            for key in ('"ts":', '"dur":'):
                number = line.split(key)[1].split(",")[0]
                assert len(number.split(".")[1]) == 3


def test_chrome_arguments_have_torchs_names(traces):
    events = read_json("export", traces["convnet"], "--to", "chrome", "-o", "-")["traceEvents"]
    conv = next(e for e in events if e["name"] == "aten::_convolution")
    assert conv["args"]["Input Dims"][0] == [8, 3, 224, 224]
    assert conv["args"]["Input type"][0] == "float"
    assert conv["args"]["FLOPs"] == 1362672000
    forward = next(e for e in events if e["name"] == "forward")
    assert forward["args"]["Call stack"] == "net.c(17): forward;net.c(40): main"
    links = read_json("export", traces["links"], "--to", "chrome", "-o", "-")["traceEvents"]
    assert {e["args"]["Sequence number"] for e in links if e["name"] == "forward"
            and e["ph"] == "X"} == {0, 1, 2, 3}
    assert all(e["args"]["Fwd thread id"] == 1 for e in links if e["name"] == "backward"
               and e["ph"] == "X")


def test_flows_have_two_ends(traces):
    for case, pairs in (("links", 4), ("two_processes", 3)):
        events = read_json("export", traces[case], "--to", "chrome", "-o", "-")["traceEvents"]
        ends = {phase: {(e["cat"], e["id"]) for e in events if e["ph"] == phase} for phase in "sf"}
        assert len(ends["s"] & ends["f"]) == pairs


def test_memory_totals_follow_time(traces):
    events = read_json("export", traces["memory"], "--to", "chrome", "-o", "-")["traceEvents"]
    memory = [e["args"] for e in events if e["name"] == "[memory]"]
    assert [e["Total Allocated"] for e in memory if e["Device Type"] == 0][-1] == 528484
    assert max(e["Total Allocated"] for e in memory if e["Device Type"] == 0) == 3670016
    # The free that did not tell its size.
    assert -(1 << 20) in [e["Bytes"] for e in memory if e["Device Type"] == 0]


@pytest.mark.parametrize("case", CASES)
def test_every_output_is_what_it_says(traces, case):
    trace = traces[case]
    read_json("export", trace, "--to", "json", "-o", "-")
    rows = list(csv.reader(io.StringIO(read("export", trace, "--to", "csv", "-o", "-")
                                       .decode("utf-8", "surrogateescape").replace("\0", ""),
                                       newline="")))
    assert {len(row) for row in rows} == {10}
    assert len(rows) - 1 == len(recorded_ranges(trace))
    for line in read("export", trace, "--to", "folded", "-o", "-").decode().splitlines():
        stack, blank, time = line.rpartition(" ")
        # the one blank in a frame is that before the place of a Python function
        assert blank and " " not in re.sub(r" \([^ ;]*:\d+\)", "", stack) and int(time) > 0
    for view in ("summary", "ops", "tree", "memory", "threads", "steps", "ledger"):
        document = read_json("report", trace, "--view", view, "--json")
        assert list(document) == ["view", "rows", "totals", "ledger"]
        table = list(csv.reader(io.StringIO(read("report", trace, "--view", view, "--csv")
                                            .decode("utf-8", "surrogateescape").replace("\0", ""),
                                            newline="")))
        assert len(table) - 1 == len(document["rows"])
        if document["rows"]:
            assert table[0] == list(document["rows"][0])


def test_csv_self_times_add_up(traces):
    rows = list(csv.DictReader(io.StringIO(read("export", traces["large"], "--to", "csv", "-o", "-")
                                           .decode())))
    top = sum(int(row["duration_ns"]) for row in rows if row["depth"] == "0")
    assert sum(int(row["self_ns"]) for row in rows) == top
    document = read_json("report", traces["large"], "--json")
    assert abs(document["totals"]["self_cpu_time_total"] * 1000 - top) < 1


def needs(part):
    """Skips where sonde was built without it."""
    for check in read_json("doctor", "--json")["checks"]:
        if check["name"] == part and check["verdict"] != "ok":
            pytest.skip(f"sonde was built without {part}: `tools/setup build`, then `make`")


def test_gzip_by_the_name(traces, tmp_path):
    plain, packed = tmp_path / "t.json", tmp_path / "t.json.gz"
    needs("zlib")
    read("export", traces["convnet"], "--to", "chrome", "-o", plain)
    read("export", traces["convnet"], "--to", "chrome", "-o", packed)
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    assert packed.stat().st_size < plain.stat().st_size / 5


@pytest.mark.parametrize("form", ["chrome", "perfetto", "speedscope", "csv", "json", "html"])
def test_a_thread_writes_a_long_export(form, tmp_path):
    """A file is written by a thread of its own once it is long, standard output by the one that makes it: the same bytes."""
    needs("page" if form == "html" else "zlib")
    trace = generate("large", tmp_path / "t.sonde", "150000")
    read("export", trace, "--to", form, "-o", tmp_path / "file")
    assert (tmp_path / "file").stat().st_size > (400_000 if form == "html" else 2_000_000)
    assert (tmp_path / "file").read_bytes() == read("export", trace, "--to", form, "-o", "-")
    if form != "html":
        read("export", trace, "--to", form, "-o", tmp_path / "file.gz")
        assert gzip.decompress((tmp_path / "file.gz").read_bytes()) == (tmp_path / "file").read_bytes()


def test_a_disk_that_is_full_late_is_told(tmp_path):
    """Long after a thread of its own has begun to write; what was there stays."""
    trace = generate("large", tmp_path / "t.sonde", "150000")
    old = tmp_path / "old.json"
    old.write_text("before")
    done = subprocess.run(["sh", "-c", 'ulimit -f 4096; trap "" XFSZ; exec "$0" export "$1" --to chrome -o "$2"', SONDE, trace, old],
                          capture_output=True)
    assert done.returncode == 1 and b"File too large" in done.stderr and len(done.stderr.splitlines()) == 1
    assert old.read_text() == "before" and sorted(tmp_path.iterdir()) == sorted([old, tmp_path / "t.sonde"])


def test_a_failed_export_leaves_what_was_there(traces, tmp_path):
    target = tmp_path / "out.json"
    target.write_text("precious")
    done = sonde("export", tmp_path / "nothing.sonde", "--to", "chrome", "-o", target)
    assert done.returncode == 1
    assert target.read_text() == "precious"
    assert [p.name for p in tmp_path.iterdir()] == ["out.json"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_full_disk_is_told(traces):
    for command in (("export", traces["large"], "--to", "csv", "-o", "/dev/full"),
                    ("export", traces["large"], "--to", "chrome", "-o", "/dev/full")):
        done = sonde(*command)
        assert done.returncode == 1
        assert b"No space left on device" in done.stderr
    with open("/dev/full", "wb") as full:
        for command in (("report", traces["large"]), ("export", traces["large"], "--to", "json",
                                                     "-o", "-"), ("doctor",)):
            done = subprocess.run([SONDE, *map(str, command)], stdout=full, stderr=subprocess.PIPE)
            assert done.returncode == 1
            assert b"No space left on device" in done.stderr


def test_json_is_valid_to_a_strict_reader(traces):
    """No NaN, no Infinity, no bare control character."""
    def refuse(word):
        raise AssertionError(word)
    for case in CASES:
        for command in (("export", traces[case], "--to", "chrome", "-o", "-"),
                        ("export", traces[case], "--to", "json", "-o", "-"),
                        ("report", traces[case], "--json")):
            json.loads(read(*command), parse_constant=refuse, strict=True)


def test_an_export_has_the_mode_of_the_umask(traces, tmp_path):
    trace = next(iter(traces.values()))
    for mask, mode in ((0o022, 0o644), (0o077, 0o600)):
        before = os.umask(mask)
        try:
            read("export", trace, "--to", "chrome", "-o", tmp_path / f"{mask}.json")
        finally:
            os.umask(before)
        assert (tmp_path / f"{mask}.json").stat().st_mode & 0o777 == mode
