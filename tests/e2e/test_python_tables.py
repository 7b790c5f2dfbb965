# SPDX-License-Identifier: Apache-2.0
"""Tables and trees of Python programs against the tools whose they are, to the character.

Traces are drawn by chance (tests/gen, case python_random), so that both sides get the same numbers:
sonde shows them, and writes them for the tool, which shows them too.
"""
import inspect
import io
import itertools
import json
import pstats
import re
import types

import line_profiler.line_profiler
import memory_profiler
import pytest
from pyinstrument.renderers import ConsoleRenderer
from pyinstrument.session import Session

import cli_tools
import python_tools
from cli_tools import needs_tools, read, read_json

pytestmark = needs_tools
SEEDS = [1, 2, 3]
KEYS = ["calls", "ncalls", "cumtime", "cumulative", "filename", "line", "module", "name", "nfl",
        "pcalls", "stdname", "time", "tottime"]

# As the generated trace has it: twelve functions, ten lines apart. Python compiles it, or else each version has its own
# idea of where a function ends: before 3.12 tokenize took tabs that no program may have.
SOURCE = "".join(f"def f{i}():\n    if x:\n    \ty = '''two\nlines'''\n"
                 f"    z = (1,\n# a comment\n  2)\n    # the end\n\n\n" for i in range(12))
compile(SOURCE, "prog.py", "exec")


@pytest.fixture(params=SEEDS)
def trace(request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prog.py").write_text(SOURCE, encoding="utf-8")
    return cli_tools.generate("python_random", tmp_path / "t.sonde", str(request.param))


# ---------------------------------------------------------------------- functions

def stats_of(trace):
    read("export", trace, "--to", "pstats", "-o", "t.prof")
    return pstats.Stats("t.prof", stream=io.StringIO())


def printed(stats, method, *amount):
    stats.stream = io.StringIO()
    getattr(stats, method)(*amount)
    text = stats.stream.getvalue()
    return text.split("\n\n", 1)[1] if method == "print_stats" else text  # without the file's name


def shown(trace, *options):
    return read("report", trace, "--view", "functions", "--rows", "-1", *options).decode()


@pytest.mark.parametrize("key", KEYS)
def test_functions_are_pstats(trace, key):
    stats = stats_of(trace).sort_stats(key, "stdname")
    assert shown(trace, "--sort", f"{key},stdname") == printed(stats, "print_stats")


@pytest.mark.parametrize("rows", [0, 1, 5, 100])
def test_functions_are_cut_as_pstats_cuts(trace, rows):
    stats = stats_of(trace).sort_stats("cumulative", "stdname")
    for method, options in (("print_stats", []), ("print_callers", ["--callers"]),
                            ("print_callees", ["--callees"])):
        text = read("report", trace, "--view", "functions", "--rows", rows, "--sort",
                    "cumulative,stdname", *options).decode()
        assert text == printed(stats, method, rows)


def test_callers_and_callees_are_pstats(trace):
    stats = stats_of(trace).sort_stats("time")
    assert shown(trace, "--sort", "time", "--callers") == printed(stats, "print_callers")
    assert shown(trace, "--sort", "time", "--callees") == printed(stats, "print_callees")


def test_numbers_of_functions_are_those_of_the_file(trace):
    rows = read_json("report", trace, "--view", "functions", "--json")["rows"]
    stats = stats_of(trace).stats
    assert len(rows) == len(stats) > 5
    for row in rows:
        cc, nc, tt, ct, _callers = stats[row["file"], row["line"], row["function"]]
        assert (row["primitive_calls"], row["calls"]) == (cc, nc)
        assert (row["self_ns"], row["total_ns"]) == (round(tt * 1e9), round(ct * 1e9))


# -------------------------------------------------------------------------- lines

def lines_text(trace, **options):
    read("export", trace, "--to", "lprof", "-o", "t.lprof")
    stats = line_profiler.line_profiler.load_stats("t.lprof")
    stream = io.StringIO()
    line_profiler.line_profiler.show_text(stats.timings, stats.unit, stream=stream, **options)
    return stream.getvalue()


@pytest.mark.parametrize("options, more", [
    ([], {}),
    (["--skip-zero", "--summary"], {"stripzeros": True, "summarize": True}),
    (["--sort", "time", "--summary"], {"sort": True, "summarize": True}),
    (["--time-unit", "us"], {"output_unit": 1e-6}),
    (["--time-unit", "s", "--summary"], {"output_unit": 1, "summarize": True}),
])
def test_lines_are_line_profilers(trace, options, more):
    text = read("report", trace, "--view", "lines", *options).decode()
    assert text == lines_text(trace, **more)
    assert "Line Contents" in text and "y = '''two" in text


def test_lines_without_the_file(trace, tmp_path):
    (tmp_path / "prog.py").unlink()
    text = read("report", trace, "--view", "lines").decode()
    assert text == lines_text(trace)
    assert "Could not find file prog.py" in text


def test_a_file_that_changed_is_said(tmp_path):
    program = tmp_path / "prog.py"
    program.write_text("def f():\n    return 1\n\nf()\n", encoding="utf-8")
    for options, view in ((["--lines", "prog.py:f"], "lines"),
                          (["--line-memory", "prog.py:f"], "line-memory")):
        program.write_text("def f():\n    return 1\n\nf()\n", encoding="utf-8")
        python_tools.sonde_run([*options, "-o", tmp_path / "l.sonde"], "prog.py", cwd=tmp_path)
        text = read("report", tmp_path / "l.sonde", "--view", view).decode()
        assert "    return 1\n" in text and "The file has" not in text
        program.write_text("def f():\n    return 'changed since'\n\nf()\n", encoding="utf-8")
        text = read("report", tmp_path / "l.sonde", "--view", view).decode()
        assert "The file has changed since: its lines may not be those that ran.\n" in text
        data = read_json("report", tmp_path / "l.sonde", "--view", view, "--json")
        assert all(row["source"] is None for row in data["rows"])


# -------------------------------------------------------------------- line memory

class CodeMap:
    """What memory_profiler.show_results takes as code_map: numbers in MiB, by function."""

    def __init__(self, rows):
        self.functions = {}
        for row in rows:
            self.functions.setdefault(row["first_line"], {})[row["line"]] = (
                row["increment_bytes"] / 2**20, row["usage_bytes"] / 2**20, row["occurrences"])

    def items(self):
        lines = SOURCE.splitlines(keepends=True)
        for first, measured in self.functions.items():
            count = len(inspect.getblock(lines[first - 1:]))
            yield "prog.py", [(line, measured.get(line)) for line in range(first, first + count)]


def test_line_memory_is_memory_profilers(trace):
    rows = read_json("report", trace, "--view", "line-memory", "--json")["rows"]
    stream = io.StringIO()
    memory_profiler.show_results(types.SimpleNamespace(code_map=CodeMap(rows)), stream=stream)
    assert read("report", trace, "--view", "line-memory").decode() == stream.getvalue()
    assert "MiB" in stream.getvalue()


# ------------------------------------------------------------------------ samples

def session_of(trace, fold=False):
    """The samples as Pyinstrument holds them, by way of speedscope's file."""
    scope = read_json("export", trace, "--to", "speedscope", "-o", "-")
    names = ["\0".join([frame["name"], frame.get("file", ""), str(frame.get("line", 0))])
             for frame in scope["shared"]["frames"]]
    profile = scope["profiles"][0]
    if fold:  # a function that calls itself is one line of ours
        is_import = ["<frozen importlib._bootstrap" in name for name in names]
        profile["samples"] = [
            [key for key, _ in itertools.groupby(
                names[i] for at, i in enumerate(stack) if at == 0 or not is_import[i])]
            for stack in profile["samples"]]
    else:
        profile["samples"] = [[names[i] for i in stack] for stack in profile["samples"]]
    records = [(stack, weight / 1e9)
               for stack, weight in zip(profile["samples"], profile["weights"])]
    return Session(frame_records=records, start_time=1700000000, duration=1, min_interval=0.001,
                   max_interval=0.001, sample_count=len(records), start_call_stack=["elsewhere"],
                   target_description="Program: prog.py", cpu_time=1,
                   sys_path=["/app", "/py/lib", "/py/lib/site"], sys_prefixes=["/py"])


@pytest.mark.parametrize("show_all", [False, True])
@pytest.mark.parametrize("seed", range(1, 9))
def test_samples_are_pyinstruments_tree(seed, show_all, tmp_path, monkeypatch):
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    trace = cli_tools.generate("python_random", tmp_path / "t.sonde", str(seed))
    text = read("report", trace, "--view", "samples", *["--show-all"] * show_all).decode()
    renderer = ConsoleRenderer(unicode=True, color=False, show_all=show_all)
    expected = renderer.render(session_of(trace, fold=not show_all))
    tree = re.sub(r" ×\d+", "", re.split(r"Program: prog.py\n(?:.+\n)*\n", text)[1])
    assert tree == expected.split("Program: prog.py\n\n")[1]
    assert "[self]" in tree
    if not show_all:
        assert "frames hidden]" in tree


def test_the_banner_has_pyinstruments_fields(tmp_path):
    trace = cli_tools.generate("python_random", tmp_path / "t.sonde", "1")
    ours = read("report", trace, "--view", "samples").decode().splitlines()
    theirs = ConsoleRenderer().render(session_of(trace)).splitlines()
    for line in (1, 2):
        for word in ("Recorded:", "Samples:", "Duration:", "CPU time:"):
            assert ours[line].find(word) == theirs[line].find(word)


def test_samples_as_data(trace):
    data = json.loads(read("report", trace, "--view", "samples", "--json"))
    rows = data["rows"]
    assert sum(row["self_ns"] for row in rows) == rows[0]["time_ns"]
    assert data["totals"]["threads"][0]["time_ns"] == rows[0]["time_ns"]
    assert data["totals"]["samples"] == 200
