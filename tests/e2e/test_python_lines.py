# SPDX-License-Identifier: Apache-2.0
"""sonde.lines against line_profiler: hits, times, text, files; and that it harms nobody."""
import contextlib
import functools
import json
import os
import re
import runpy
import shutil
import signal
import sys
import warnings

import pytest

import sonde
from python_tools import FREE, PROGRAMS, python, run

try:
    import line_profiler
except ImportError:
    line_profiler = None
needs_peer = pytest.mark.skipif(line_profiler is None, reason="line_profiler is not installed")
SHAPES = str(PROGRAMS / "line_shapes.py")


def load(path=SHAPES):
    return runpy.run_path(str(path))


def hits_of(session):
    rows = json.loads(session.report(format="json"))["rows"]
    found = {}
    for row in rows:
        if row["hits"]:
            function = found.setdefault((row["function"], row["first_line"]), {})
            function[row["line"]] = row["hits"]
    return found


def their_hits(profiler):
    """Of functions that ran."""
    return {(name, first): {line: hits for line, hits, _ in lines}
            for (_, first, name), lines in profiler.get_stats().timings.items() if lines}


def bind(program, wrap):
    """Functions of a program that was run, each replaced by what `wrap` makes of it."""
    space = program["main"].__globals__
    for name in program["NAMES"]:
        space[name] = wrap(program[name])


# ------------------------------------------------------------------------------- hits

@pytest.fixture(scope="module")
def theirs():
    if line_profiler is None:
        pytest.skip("line_profiler is not installed")
    profiler, program = line_profiler.LineProfiler(), load()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        bind(program, profiler)
    program["main"]()
    return profiler


def test_hits_are_line_profilers(theirs):
    program = load()
    chosen = [program[name] for name in program["NAMES"]]
    with sonde.lines(*chosen) as ours:
        program["main"]()
    expected = their_hits(theirs)
    assert len(expected) == len(program["NAMES"]) - 1 and sum(map(len, expected.values())) > 60
    assert hits_of(ours) == expected


def test_decorated_functions_have_the_same_hits(theirs):
    program, ours = load(), sonde.lines()
    bind(program, ours)
    program["main"]()
    ours.stop()
    assert hits_of(ours) == their_hits(theirs)


def test_a_decorator_without_parentheses():
    @sonde.lines
    def twice(x):
        """Doubles."""
        y = x
        return x + y

    assert twice(2) == 4 and twice(3) == 6
    assert twice.__name__ == "twice" and twice.__doc__ == "Doubles."
    twice.stop()
    (lines,) = hits_of(twice).values()
    assert sorted(lines.values()) == [2, 2]


def test_every_kind_of_callable():
    class Thing:
        def method(self, x):
            return x

        @classmethod
        def of_class(cls, x):
            return x

        @staticmethod
        def of_none(x):
            return x

        @property
        def attribute(self):
            return 5

        @functools.cached_property
        def kept(self):
            return 6

    class Callable:
        def __call__(self, x):
            return x

    def plain(x, y):
        return x + y

    session = sonde.lines()
    Wrapped = session(Thing)
    partial = session(functools.partial(plain, 1))
    callable_object = session(Callable())
    bound = session(Thing().method)
    Thing.kept = session(Thing.__dict__["kept"])
    thing = Wrapped()
    assert (thing.method(1), Thing.of_class(2), thing.of_none(3), thing.attribute) == (1, 2, 3, 5)
    assert thing.kept == 6 and partial(2) == 3 and callable_object(4) == 4 and bound(7) == 7
    session.stop()
    found = {name.rpartition(".")[2]: sum(lines.values())
             for (name, _), lines in hits_of(session).items()}
    assert found == {"method": 2, "of_class": 1, "of_none": 1, "attribute": 1, "kept": 1,
                     "plain": 1, "__call__": 1}


def test_a_module_and_a_class_at_once(tmp_path, monkeypatch):
    (tmp_path / "some_module.py").write_text(
        "def f():\n    return 1\nclass C:\n    def g(self):\n        return f()\n")
    monkeypatch.syspath_prepend(tmp_path)
    import some_module
    session = sonde.lines()
    assert session.add_module(some_module) == 2
    with session:
        some_module.C().g()
    assert sum(sum(lines.values()) for lines in hits_of(session).values()) == 2


def test_what_has_no_python_code_is_refused():
    with pytest.raises(TypeError, match="it has no Python code; give a function written in Python"):
        sonde.lines(len)


def test_turned_on_from_inside():
    session = sonde.lines()

    def inside():
        a = 1
        with session:
            b = a
            c = b
        return c

    session.add_function(inside)
    first = inside.__code__.co_firstlineno
    assert inside() == 1
    hits = hits_of(session)[(inside.__qualname__ if sys.version_info >= (3, 11) else "inside",
                             first)]
    assert hits[first + 3] == 1 and first + 1 not in hits
    if sys.version_info >= (3, 10):  # before, leaving the block is part of its last line
        assert hits[first + 4] == 1


# ------------------------------------------------------------------------------ times

BUSY = """
import time
def spin(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass
def work():
    spin(0.003)
    for _ in range(4):
        spin(0.0005)
    inner(0.002)
    return 1
def inner(s):
    spin(s)
"""


def busy_times(path):
    """Seconds of the lines of one run each: ours, theirs."""
    profiler, program = line_profiler.LineProfiler(), load(path)
    program["work"].__globals__["inner"] = profiler(program["inner"])
    profiler(program["work"])()
    program = load(path)
    with sonde.lines(program["work"], program["inner"]) as ours:
        program["work"]()
    stats, rows = profiler.get_stats(), json.loads(ours.report(format="json"))["rows"]
    return ({row["line"]: row["time_ns"] * 1e-9 for row in rows if row["hits"]},
            {line: spent * stats.unit for lines in stats.timings.values()
             for line, _, spent in lines})


@pytest.mark.alone
@needs_peer
def test_times_are_line_profilers(tmp_path):
    """The best of some runs: in the others another program had the processor."""
    (tmp_path / "busy.py").write_text(BUSY)
    best = ({}, {})
    for _ in range(40):
        for times, found in zip(best, busy_times(tmp_path / "busy.py")):
            for line, seconds in found.items():
                times[line] = min(seconds, times.get(line, seconds))
        mine, other = ({line: s for line, s in times.items() if s > 1e-3} for times in best)
        if mine.keys() == other.keys() == {8, 10, 11, 14} and all(
                abs(mine[line] - other[line]) <= 0.15 * other[line] for line in mine):
            return
    pytest.fail(f"{mine} and {other}")


@pytest.mark.alone
def test_recursion_counts_time_as_line_profiler(tmp_path):
    """A line that calls its own function: the inner calls' time is in it, at every level."""
    (tmp_path / "deep.py").write_text(
        "import time\ndef f(n):\n    if n == 0:\n        time.sleep(0.02)\n        return\n"
        "    f(n - 1)\n")
    program = load(tmp_path / "deep.py")
    with sonde.lines(program["f"]) as ours:
        program["f"](3)
    rows = {row["line"]: row for row in json.loads(ours.report(format="json"))["rows"]}
    assert rows[4]["hits"] == 1 and rows[6]["hits"] == 3
    assert rows[6]["time_ns"] == pytest.approx(3 * rows[4]["time_ns"], rel=0.15)


# -------------------------------------------------------------------------- text, files

def masked(text):
    """line_profiler's table with every number of a column replaced by a mark of its width."""
    lines = []
    for line in text.splitlines():
        line = re.sub(r"(Total time: ).* s$", r"\1# s", line)
        line = re.sub(r"^ *[\d.]+ seconds", "# seconds", line)
        if re.match(r" *\d+ ", line[:7]):
            cells = [line[:6], *(("#" if line[a:b].strip() else " ") * (b - a)
                                 for a, b in ((6, 16), (16, 29), (29, 38), (38, 47)))]
            line = "".join(cells) + line[47:]
        lines.append(line.rstrip())
    return "\n".join(lines).rstrip()


@pytest.mark.parametrize("options", [
    {}, {"output_unit": 1e-3}, {"stripzeros": True}, {"summarize": True}, {"details": False},
    {"summarize": True, "details": False}], ids=str)
def test_the_text_is_line_profilers(theirs, capsys, options):
    theirs.print_stats(**options)
    expected = capsys.readouterr().out
    program = load()
    with sonde.lines(*(program[name] for name in program["NAMES"])) as ours:
        program["main"]()
    ours.print_stats(**options)
    assert masked(capsys.readouterr().out) == masked(expected)


def test_functions_sorted_by_time(tmp_path, capsys):
    (tmp_path / "busy.py").write_text(BUSY)
    program = load(tmp_path / "busy.py")
    with sonde.lines(program["work"], program["inner"]) as ours:
        program["work"]()
    ours.print_stats(sort=True)
    assert re.findall(r"Function: (\w+) at", capsys.readouterr().out) == ["inner", "work"]
    with pytest.raises(ValueError, match="output_unit=2: it is one of"):
        ours.print_stats(output_unit=2)


@needs_peer
def test_python_m_line_profiler_reads_the_file(tmp_path):
    program = load()
    with sonde.lines(program["loop"]) as ours:
        program["loop"](7)
    ours.dump_stats(tmp_path / "x.lprof")
    said = python("-m", "line_profiler", tmp_path / "x.lprof", cwd=tmp_path).stdout
    assert re.search(r"Function: loop at line \d+", said)
    assert re.search(r"^ +\d+ +8 .*for i in range\(n\):$", said, re.M)
    stats = line_profiler.load_stats(str(tmp_path / "x.lprof"))
    assert {(name, first): {line: hits for line, hits, _ in lines}
            for (_, first, name), lines in stats.timings.items()} == hits_of(ours)


# ------------------------------------------------------------------------------- others

def test_anothers_trace_function_sees_what_it_saw():
    program = load()

    def watched(around):
        seen = []

        def trace(frame, event, arg):
            if frame.f_code.co_filename == SHAPES:
                seen.append((frame.f_code.co_name, event, frame.f_lineno))
            return trace
        with around:
            sys.settrace(trace)
            try:
                program["loop"](3)
                program["recursive"](4)
                mine = sys.gettrace()
            finally:
                sys.settrace(None)
        assert mine is trace
        return seen

    alone = watched(contextlib.nullcontext())
    session = sonde.lines(program["loop"], program["recursive"])
    assert watched(session) == alone and len(alone) > 50
    assert sys.gettrace() is None
    lines = hits_of(session)
    again = sonde.lines(program["loop"], program["recursive"])
    with again:
        program["loop"](3)
        program["recursive"](4)
    assert hits_of(again) == lines


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring is of 3.12")
def test_only_chosen_functions_are_instrumented():
    program = load()
    with sonde.lines(program["loop"]):
        tools = [tool for tool in range(6) if sys.monitoring.get_tool(tool) == "sonde lines"]
        assert sys.monitoring.get_local_events(tools[0], program["loop"].__code__) != 0
        assert sys.monitoring.get_local_events(tools[0], program["helper"].__code__) == 0
    assert "sonde lines" not in map(sys.monitoring.get_tool, range(6))
    sys.monitoring.use_tool_id(tools[0], "test")  # it asks only whoever holds the number
    try:  # or the function would stay slower than it was
        assert sys.monitoring.get_local_events(tools[0], program["loop"].__code__) == 0
    finally:
        sys.monitoring.free_tool_id(tools[0])


DEEP = """
import sys, threading
sys.setrecursionlimit(100000)
def down(n):
    return 0 if n == 0 else 1 + down(n - 1)
def chosen(n):
    if n == 0:
        return 0
    return 1 + chosen(n - 1)
def both():
    assert down(DEPTH) == DEPTH
    assert chosen(DEPTH) == DEPTH
import sonde
with sonde.lines(both, chosen) as lines:
    thread = threading.Thread(target=both)
    thread.start()
    thread.join()
import json
rows = [row for row in json.loads(lines.report(format="json"))["rows"] if row["hits"]]
print(sorted(row["hits"] for row in rows if row["function"] == "chosen"))
"""


@pytest.mark.skipif(sys.version_info < (3, 11), reason="there a Python call takes C stack anyway")
def test_deep_recursion_does_not_run_out_of_stack(tmp_path):
    depth = 40000 if sys.version_info >= (3, 11) else 5000
    (tmp_path / "deep.py").write_text(DEEP.replace("DEPTH", str(depth)))
    said = python("deep.py", cwd=tmp_path).stdout
    assert json.loads(said) == [1, depth, depth + 1]


UNDER_WAY = """
import gc, json, queue, sys, threading
import sonde
asked, done = queue.Queue(), queue.Queue()
def work():
    for function, inside, go in iter(asked.get, None):
        function(inside, go)
        del function
        done.put(1)
thread = threading.Thread(target=work)
thread.start()

def make():
    space = {}
    source = "def f(inside, go):\\n    inside.set() or go.wait()\\n    return 1\\n"
    exec(compile(source, "f.py", "exec"), space)
    return space["f"]
def run_once(function, meanwhile):
    inside, go = threading.Event(), threading.Event()
    asked.put((function, inside, go))
    inside.wait()
    meanwhile()
    go.set()
    done.get()

session_of = getattr(sonde, sys.argv[1])
another_stays_on, is_gone = (word == "1" for word in sys.argv[2:])
another = session_of(make)
if another_stays_on:
    another.enable()
f = make()
first = session_of(f)
first.enable()
run_once(f, first.stop)  # its line is under way, in another thread
if is_gone:
    del f, first
    gc.collect()
    f = make()
second = session_of(f)
second.enable()
run_once(f, lambda: None)
second.stop()
another.stop()
asked.put(None)
thread.join()
print(second.report(format="json"))
"""


@pytest.mark.parametrize("another_stays_on", [0, 1])
def test_a_line_under_way_in_another_thread_is_given_up(tmp_path, another_stays_on):
    """Its frame's address may be the next call's: nothing of it counts in the next session."""
    (tmp_path / "under_way.py").write_text(UNDER_WAY)
    said = python("under_way.py", "lines", another_stays_on, 0, cwd=tmp_path).stdout
    rows = json.loads(said)["rows"]
    hits = {row["line"]: row["hits"] for row in rows if row["function"] == "f" and row["hits"]}
    assert hits == {2: 1, 3: 1}


@pytest.mark.skipif(not shutil.which("valgrind"), reason="valgrind is not installed")
@pytest.mark.skipif(sys.version_info < (3, 12), reason="before, the frame's end is seen")
@pytest.mark.skipif(FREE, reason="without the interpreter lock, Python has one allocator only")
def test_a_function_that_is_gone_is_not_looked_at(tmp_path):
    (tmp_path / "under_way.py").write_text(UNDER_WAY)
    done = run("valgrind", "--trace-children=no", sys.executable, "under_way.py", "line_memory",
               0, 1, cwd=tmp_path, env={**os.environ, "PYTHONMALLOC": "malloc"})
    assert "ERROR SUMMARY" in done.stderr
    found = [part for part in re.split(r"==\d+== \n", done.stderr) if "Invalid read" in part]
    assert not [part for part in found if re.search(r"snd_line|linem\w+\.c", part)]


def test_killed_while_it_runs(tmp_path):
    """What was counted before is in the file."""
    (tmp_path / "killed.py").write_text(
        "import os, signal, sonde\n"
        "def f(n):\n    for i in range(n):\n        t = i\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "with sonde.lines(f, path='killed.sonde'):\n    f(1000)\n")
    python("killed.py", cwd=tmp_path, status=-signal.SIGKILL)
    with sonde.Trace(str(tmp_path / "killed.sonde")) as trace:
        rows = json.loads(trace.report(view="lines", format="json"))["rows"]
    assert {row["line"]: row["hits"] for row in rows if row["hits"]} == {3: 1001, 4: 1000}


def test_children_of_fork_are_added_up(tmp_path):
    program = load()
    with sonde.lines(program["loop"], path=tmp_path / "forked.sonde"):
        program["loop"](3)
        child = os.fork()
        if child == 0:
            program["loop"](5)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    (tmp_path / "all").mkdir()
    for path in tmp_path.glob("forked.sonde*"):
        path.rename(tmp_path / "all" / (path.name.replace(".sonde", "") + ".sonde"))
    with sonde.Trace(str(tmp_path / "all")) as trace:
        rows = json.loads(trace.report(view="lines", format="json"))["rows"]
    assert sorted(row["hits"] for row in rows if row["hits"]) == [2, 2, 8, 10]


def test_equal_code_is_not_the_same_function():
    source = "def same(x):\n    return x\n"
    one, two = {}, {}
    exec(compile(source, "same.py", "exec"), one)
    exec(compile(source, "same.py", "exec"), two)
    assert one["same"].__code__ == two["same"].__code__
    with sonde.lines(two["same"]) as session:
        one["same"](1)
        two["same"](1)
    assert list(hits_of(session).values()) == [{2: 1}]


def test_functions_and_lines_in_every_order():
    """Both may stand before the evaluation of frames; neither may forget the other, or itself."""
    loop = load()["loop"]
    sessions = {"l": sonde.lines(loop), "f": sonde.functions(c_functions=False)}
    on, expected = set(), {"l": 0, "f": 0}
    for name in "lflf" "lffl" "flfl" "fllf" "lfllflff" "flffllfl" "lfllfflf":  # each turns one on or off
        on ^= {name}
        sessions[name].enable() if name in on else sessions[name].disable()
        loop(3)
        for one in on:
            expected[one] += 3
    assert not on
    for session in sessions.values():
        session.stop()
    hits = hits_of(sessions["l"])[("loop", loop.__code__.co_firstlineno)]
    assert hits[loop.__code__.co_firstlineno + 3] == expected["l"]
    rows = json.loads(sessions["f"].report(format="json"))["rows"]
    assert [row["calls"] for row in rows if row["function"] == "helper"] == [expected["f"]]
