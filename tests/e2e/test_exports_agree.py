# SPDX-License-Identifier: Apache-2.0
"""Every export with durations has the report's calls and times, for every trace of the set.

Here CSV, Chrome, speedscope, folded stacks and the report page; ELSEWHERE names the files that compare the others.

The stated differences: exports write ranges as recorded, so that torch's utility operators are
there, ProfilerStep#N keeps its number, and a wrapper is not folded into what it wraps.
"""
import base64
import collections
import csv
import gzip
import io
import json
import pathlib
import re
import subprocess

import pytest

from cli_tools import GEN, generate, needs_tools, read, read_json
from page_tools import has_page

pytestmark = needs_tools

CASES = [line.split()[0] for line in
         subprocess.run([GEN, "--list"], stdout=subprocess.PIPE, check=True,
                        text=True).stdout.splitlines()] if GEN else []
WRAPPERS = {"fold", "torch"}  # have operators that lists fold
ONE_AT_A_TIME = {"gpu_overlap", "job_gpu"}  # have work of one stream that overlaps: speedscope has what is left of each
SAMPLED = {"samples", "python_random", "stacks", "mixed", "runs", "chance", "chance_job", "variety", "large_samples"}
REOPENED = {"async", "torch", "range_counters"}  # have ranges that end before what lies in them
UTILITY = {"aten::is_leaf", "aten::output_nr", "aten::_version",
           "profiler::_record_function_enter", "profiler::_record_function_enter_new",
           "profiler::_record_function_exit"}
WORK = {"kernel", "gpu_memcpy", "gpu_memset"}  # of GPUs
TORCH_ALONE = {"gpu_user_annotation", "overhead"}  # what only torch's table and the Chrome trace have of GPUs


# The other formats: what they have is compared with a report or with one of the exports here.
ELSEWHERE = {
    "perfetto": "test_perfetto.py", "sqlite": "test_sqlite.py", "parquet": "test_parquet.py", "svg": "test_svg.py",
    "json": "test_cli_export.py", "pprof": "test_native_exports.py", "perf-script": "test_native_exports.py",
    "pstats": "test_python_exports.py", "callgrind": "test_python_exports.py", "lprof": "test_python_exports.py",
    "mprof": "test_python_exports.py", "benchmark": "test_model.py", "benchmark-json": "test_model.py"}
HERE = {"csv", "chrome", "speedscope", "folded", "html"}


def add_up(ranges):
    """(name, duration in ns) to {name: [count, total]}, as lists name them."""
    sums = collections.defaultdict(lambda: [0, 0])
    for name, duration in ranges:
        if name in UTILITY:
            continue
        name = re.sub(r"^ProfilerStep#\d+$", "ProfilerStep*", name)
        sums[name][0] += 1
        sums[name][1] += duration
    return dict(sums)


def of_ops(trace):
    sums = collections.defaultdict(lambda: [0, 0])
    for row in read_json("report", trace, "--view", "ops", "--json", "--rows", 1000000)["rows"]:
        on_gpu = row["device_type"] == "CUDA"
        if row["key"] in ("[memory]", "Activity Buffer Request") or (on_gpu and row["is_user_annotation"]):
            continue
        sums[row["key"]][0] += row["count"]
        sums[row["key"]][1] += round(row["device_time_total" if on_gpu else "cpu_time_total"] * 1000)
    return dict(sums)


def of_csv(trace):
    lines = csv.DictReader(io.StringIO(read("export", trace, "-t", "csv", "-o", "-")
                                       .decode("utf-8", "surrogateescape"), newline=""))
    return add_up((row["name"], int(row["duration_ns"])) for row in lines)


def of_chrome(trace):
    """Ranges and work of GPUs; not calls of Python functions that are events of their own, with an id."""
    events = read_json("export", trace, "-t", "chrome", "-o", "-")["traceEvents"]
    return add_up((re.sub(r"^.*\(\d+\): ", "", event["name"])
                   if event["cat"] == "python_function" else event["name"],
                   round(event["dur"] * 1000))
                  for event in events if event["ph"] == "X" and event.get("cat") not in TORCH_ALONE | {"Trace"}
                  and "Python id" not in event.get("args", {}))


def page_sections(html):
    """(kind, bytes) of a report page's data, as docs/REPORT_PAGE.md describes it."""
    text = re.search('<script type="application/x-sonde" id="data">(.*?)</script>', html, re.S).group(1)
    data, at = gzip.decompress(base64.b64decode(text)), 0
    while at < len(data):
        length = int.from_bytes(data[at + 4:at + 8], "little")
        yield data[at:at + 4].decode(), data[at + 8:at + 8 + length]
        at += 8 + length


def page_columns(body):
    """Each column of a block, as unsigned numbers."""
    at, columns = 4, []
    while at < len(body):
        length = int.from_bytes(body[at:at + 4], "little")
        values, value, shift = [], 0, 0
        for byte in body[at + 4:at + 4 + length]:
            value, shift = value | (byte & 127) << shift, shift + 7
            if byte < 128:
                values.append(value)
                value = shift = 0
        columns.append(values)
        at += 4 + length
    return columns


def of_page(trace):
    """Ranges and work of GPUs on the page's timeline; calls of Python functions (flag 4) are beside them."""
    sections = list(page_sections(read("export", trace, "-t", "html", "-o", "-").decode("utf-8")))
    texts = json.loads(dict(sections)["HEAD"])["texts"]
    found = []
    for kind, body in sections:
        if kind == "SPAN":
            _, places, names, _, durations, *_ = page_columns(body)
            found += [(texts[name], duration) for place, name, duration in zip(places, names, durations) if not place & 4]
        elif kind == "WORK":
            _, _, names, _, durations, *_ = page_columns(body)
            found += [(texts[name], duration) for name, duration in zip(names, durations)]
    return add_up((re.sub(r"^.*\(\d+\): ", "", name), duration) for name, duration in found)


def of_speedscope(trace):
    """By name alone: a Python function has its file too."""
    made = read_json("export", trace, "-t", "speedscope", "-o", "-")
    frames = made["shared"]["frames"]

    def closed():
        for profile in made["profiles"]:
            if profile["type"] != "evented":
                continue
            opened = []
            for event in profile["events"]:
                if event["type"] == "O":
                    opened.append(event)
                else:
                    begin = opened.pop()
                    assert begin["frame"] == event["frame"]
                    yield frames[event["frame"]]["name"], event["at"] - begin["at"]
            assert not opened

    return add_up(closed())


def of_folded(trace):
    sums = collections.Counter()
    for line in read("export", trace, "-t", "folded", "-o", "-").decode().splitlines():
        sums[line.rsplit(" ", 1)[0].split(";")[-1]] += int(line.rsplit(" ", 1)[1])
    return sums


def totals(sums):
    return {name: total for name, (_, total) in sums.items()}


HAS_PAGE = has_page()


def test_every_format_is_compared():
    formats = [line.split()[0] for line in read("export", "--list").decode().splitlines()]
    assert sorted(formats) == sorted([*HERE, *ELSEWHERE])
    assert all((pathlib.Path(__file__).parent / file).is_file() for file in ELSEWHERE.values())


LARGE = {"wide", "layers_job"}
PASSES = {"bench", "said"}


@pytest.mark.parametrize("case", [pytest.param(case, marks=[pytest.mark.long] if case in LARGE else []) for case in CASES])
def test_calls_and_times_of_exports_are_the_reports(case, tmp_path):
    trace = generate(case, tmp_path / case, "500")
    report, table = of_ops(trace), of_csv(trace)
    chrome = of_chrome(trace)
    if case == "names":  # CSV escapes what a spreadsheet would run or a terminal obey
        assert sorted(table.values()) == sorted(chrome.values())
        table = chrome
    assert table == chrome
    if HAS_PAGE:
        page = of_page(trace)
        if case == "names":  # bytes that are not UTF-8 are replaced in a page
            assert sorted(page.values()) == sorted(table.values())
        else:
            assert page == table
    if case in PASSES:  # a benchmark's operators are those of one pass
        passes = read_json("report", trace, "--view", "ops", "--json")["totals"]["passes"]
        assert set(report) == set(table) and passes > 1
        for name, (count, total) in table.items():
            assert report[name][0] == int(count / passes + 0.5), name
            assert abs(report[name][1] - total / passes) <= 1, name
    elif case not in WRAPPERS:
        assert table == report
    else:  # what is folded is gone from the count and from the total, and from nothing else
        assert set(table) == set(report)
        assert all(report[name][0] <= table[name][0] for name in table)
    if case in SAMPLED:
        return  # speedscope and folded show the samples
    speedscope = of_speedscope(trace)
    if case in ONE_AT_A_TIME:
        assert set(speedscope) == set(table) and all(total <= table[name][1] for name, (_, total) in speedscope.items())
        return
    assert totals(speedscope) == totals(table)
    if case not in REOPENED:
        assert speedscope == table


@pytest.mark.parametrize("case", ["unfinished", "left_open", "gaps", "convnet", "threads"])
def test_self_times_of_folded_stacks_are_the_reports(case, tmp_path):
    trace = generate(case, tmp_path / case)
    rows = read_json("report", trace, "--view", "tree", "--json")["rows"]
    folded = of_folded(trace)
    for row in read_json("report", trace, "--view", "ops", "--json")["rows"]:
        paths = sum(1 for other in rows if other["name"] == row["key"])
        assert abs(folded[row["key"]] - row["self_cpu_time_total"]) <= 8 * paths  # whole us, by thread


def test_what_is_left_open_ends_with_its_thread(tmp_path):
    trace = generate("left_open", tmp_path / "t.sonde")
    assert of_csv(trace) == {"outer": [2, 99000 + 47000], "inner": [2, 94000 + 1000],
                             "call": [1, 3000], "step": [2, 2900 + 2800]}
    summary = read("report", trace, "--view", "summary").decode()
    assert re.search(r"Span: +99\.000us", summary)


@pytest.mark.parametrize("case", [case for case in CASES if case.startswith("gpu")])
def test_work_of_gpus(case, tmp_path):
    """What GPUs did, in the table and in the Chrome trace."""
    trace = generate(case, tmp_path / "t", "800")
    rows = [row for row in read_json("report", trace, "--view", "ops", "--json", "--rows", 1000000)["rows"]
            if row["device_type"] == "CUDA" and not row["is_user_annotation"]]
    table = {row["key"]: [row["count"], round(row["device_time_total"] * 1000)] for row in rows}
    events = read_json("export", trace, "-t", "chrome", "-o", "-")["traceEvents"]
    assert table == add_up((event["name"], round(event["dur"] * 1000)) for event in events
                           if event.get("cat") in WORK)
    assert table or case != "gpu"


@pytest.mark.parametrize("case", CASES)
def test_events_of_threads_add_up(case, tmp_path):
    """To those of the summary, which are those of the file; what a GPU did is no thread's."""
    trace = generate(case, tmp_path / case, "500")
    threads = sum(row["events"] for row in read_json("report", trace, "--view", "threads", "--json")["rows"])
    events = read_json("export", trace, "-t", "json", "-o", "-")["events"]
    works = sum(event["kind"] == "device" for event in events)
    assert threads + works == read_json("report", trace, "--view", "summary", "--json")["totals"]["events"]
