# SPDX-License-Identifier: Apache-2.0
"""Sessions that are nested, overlap, follow each other: each reports what it would report alone."""
import asyncio
import gc
import io
import json
import os
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import sonde
from python_tools import FREE

HERE = os.path.abspath(__file__)


@pytest.fixture(autouse=True)
def nothing_is_left_on():
    yield
    from sonde.python import _parts
    for session in [reference() for reference in _parts._alive.values()]:
        if session is not None:
            session.stop()


# ------------------------------------------------------------------- what is recorded

def leaf():
    return len("x")


def recurse(depth, inside=None):
    leaf()
    if inside and depth == 3:
        inside()
    return recurse(depth - 1, inside) + 1 if depth else 0


def steps(count):
    for i in range(count):
        leaf()
        yield i


async def waits():
    await asyncio.sleep(0)
    leaf()


def work(inside=None):
    recurse(6, inside)
    sum(steps(3))
    sorted([3, 1, 2], key=lambda x: -x)
    asyncio.run(waits())


def in_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


# ------------------------------------------------------------------------- reading it

def calls_of(session):
    """Of this file's functions: calls, primitive ones, and the calls by each caller of this file."""
    stats = session.stats().stats

    def own(keys):
        return {key[2]: numbers for key, numbers in keys.items() if key[0] == HERE}
    return {name: (row[1], row[0], {by: n[:2] for by, n in own(row[4]).items()})
            for name, row in own(stats).items() if not name.startswith("test_")}


def hits_of(session):
    lines = {}
    for line in session.report().splitlines():
        words = line.split()
        if len(words) > 5 and words[0].isdigit() and words[1].isdigit():
            lines[int(words[0])] = int(words[1])
    return lines


def occurrences_of(session):
    lines = {}
    for line in session.report().splitlines():
        words = line.split()
        if words and words[0].isdigit() and len(words) > 5 and words[2] == "MiB":
            lines[int(words[0])] = int(words[5])
    return lines


def functions_alone(body, **options):
    with sonde.functions(**options) as alone:
        body()
    return calls_of(alone)


# --------------------------------------------------------------------------- functions

@pytest.fixture(params=[True, False], ids=["with C", "Python only"])
def options(request):
    return {"c_functions": request.param}


def test_nested_functions(options):
    expected = functions_alone(work, **options)
    with sonde.functions(**options) as outer:
        work()
        with sonde.functions(**options) as inner:
            work()
        work()
    assert calls_of(inner) == expected
    assert {name: row[0] for name, row in calls_of(outer).items()} \
        == {name: row[0] * 3 for name, row in expected.items()}


def test_begun_and_ended_inside_a_recursion(options):
    """What was open when it began is not in it, in a nested session as in one alone."""
    def run_inside(found):
        session = sonde.functions(**options)

        def inside():
            session.start()
            recurse(2)
        work(inside)  # it ends while nothing of it is open
        session.stop()
        found.append(calls_of(session))

    alone, nested = [], []
    run_inside(alone)
    with sonde.functions(**options) as outer:
        run_inside(nested)
    assert nested == alone
    with sonde.functions(**options) as without:
        work(lambda: recurse(2))
    both, one = calls_of(outer), calls_of(without)
    assert {name: both[name][:2] for name in one if "lambda" not in name} \
        == {name: one[name][:2] for name in one if "lambda" not in name}


def test_overlapping_functions(options):
    first, second = sonde.functions(**options), sonde.functions(**options)
    with sonde.functions(**options) as alone:
        leaf()
        work()
    first.start()
    leaf()
    second.start()
    work()
    first.stop()
    leaf()
    second.stop()
    assert calls_of(first) == calls_of(alone) == calls_of(second)


def test_ended_inside_a_call():
    """What is open at its end counts, though another session goes on in it."""
    first = sonde.functions()

    def ends():
        leaf()
        first.stop()
        leaf()
    second = sonde.functions()
    first.start()
    with second:
        ends()
    assert calls_of(first)["ends"][0] == 1 == calls_of(second)["ends"][0]
    assert calls_of(first)["leaf"][0] == 1
    assert calls_of(second)["leaf"][0] == 2
    row = next(row for key, row in first.stats().stats.items() if key[2] == "ends")
    assert row[3] > 0


def test_one_after_another_in_one_recording(options):
    with sonde.functions(**options) as outer:
        sessions = []
        for n in range(1, 4):
            with sonde.functions(**options) as inner:
                for _ in range(n):
                    leaf()
            sessions.append(inner)
        with sessions[0]:
            leaf()
    assert [calls_of(one)["leaf"][0] for one in sessions[1:]] == [2, 3]
    assert calls_of(sessions[0])["leaf"][0] == 2
    assert calls_of(outer)["leaf"][0] == 7


def test_a_session_of_a_thread(options):
    """Two threads with a session each: both see both, while they are on."""
    first, second, results = threading.Event(), threading.Event(), {}

    def early():
        with sonde.functions(**options) as session:
            leaf()
            first.set()
            second.wait(30)
            leaf()
        results["early"] = session

    def late():
        first.wait(30)
        with sonde.functions(**options) as session:
            in_thread(lambda: [leaf() for _ in range(5)])
        results["late"] = session
        second.set()

    threads = [threading.Thread(target=function) for function in (early, late)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert calls_of(results["late"])["leaf"][0] == 5
    assert calls_of(results["early"])["leaf"][0] == 7


def test_asked_while_it_goes_on():
    with sonde.functions():
        leaf()
        with sonde.functions() as inner:
            leaf()
            assert calls_of(inner)["leaf"][0] == 1
            leaf()
        leaf()
        assert calls_of(inner)["leaf"][0] == 2


def test_timeline_of_a_nested_session(tmp_path):
    with sonde.functions(mode="trace") as outer:
        leaf()
        with sonde.functions(mode="trace") as inner:
            recurse(2)
        leaf()

    def count(session, name):
        return sum(event.count for event in session.trace().events() if event.name == name)
    assert (count(inner, "leaf"), count(inner, "recurse")) == (3, 3)
    assert (count(outer, "leaf"), count(outer, "recurse")) == (5, 3)
    assert not inner.trace().ledger()


def test_a_forked_child_counts_for_the_sessions_it_was_in():
    done = run_alone("""
        import os, sonde
        def f(): pass
        def count(s): return {k[2]: v[1] for k, v in s.stats().stats.items()}.get("f", 0)
        def fork(calls):
            pid = os.fork()
            if pid == 0:
                for _ in range(calls): f()
                os._exit(0)
            os.waitpid(pid, 0)
        with sonde.functions() as a:
            fork(10)
            with sonde.functions() as b:
                fork(100)
            fork(1000)
        print(count(a), count(b))
        """)
    assert done == "1110 100\n"


def test_numbers_are_used_again():
    """Thousands of sessions in one recording: no room is taken by those that are gone."""
    done = run_alone("""
        import os, sonde
        def f(): pass
        def count(s): return {k[2]: v[1] for k, v in s.stats().stats.items()}.get("f", 0)
        with sonde.functions(path="t.sonde") as outer:
            for n in range(2000):
                with sonde.functions() as inner: f()
                if n == 10: before = os.path.getsize("t.sonde")
        assert count(inner) == 1 and count(outer) == 2000
        print(os.path.getsize("t.sonde") <= before, sonde._record.new_session() < 10)
        """)
    assert done == "True True\n"


def run_alone(text, *arguments, python=sys.executable):
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.py")
        with open(path, "w") as file:
            file.write(textwrap.dedent(text))
        done = subprocess.run([python, path, *arguments], cwd=folder, capture_output=True, text=True)
    assert done.stderr == "" and done.returncode == 0
    return done.stdout


# -------------------------------------------------------------------------------- lines

def loop(count):
    total = 0
    for i in range(count):
        total += i
    return total


def other():
    return 1


def first_line(function):
    return function.__code__.co_firstlineno


def test_nested_lines():
    at = first_line(loop)
    with sonde.lines(loop) as outer:
        loop(5)
        with sonde.lines(loop, other) as inner:
            loop(3)
            other()
        loop(2)
    assert hits_of(outer) == {at + 1: 3, at + 2: 13, at + 3: 10, at + 4: 3}
    assert hits_of(inner) == {at + 1: 1, at + 2: 4, at + 3: 3, at + 4: 1, first_line(other) + 1: 1}


def test_overlapping_lines_of_different_functions():
    first, second = sonde.lines(loop), sonde.lines(other)
    first.start()
    loop(1)
    second.start()
    loop(1)
    other()
    first.stop()
    loop(1)
    other()
    second.stop()
    at = first_line(loop)
    assert hits_of(first) == {at + 1: 2, at + 2: 4, at + 3: 2, at + 4: 2}
    assert hits_of(second) == {first_line(other) + 1: 2}


def test_a_line_under_way_is_of_the_session_it_began_in():
    inner = sonde.lines()

    def outside():
        inner.start()
        loop(1)
        inner.stop()
    inner.add_function(outside)
    inner.add_function(loop)
    with sonde.lines(outside, loop) as outer:
        outside()
    at = first_line(outside)
    assert hits_of(outer)[at + 1] == 1
    assert at + 1 not in hits_of(inner)
    assert hits_of(inner)[at + 2] == 1


@pytest.mark.skipif(FREE, reason="without the interpreter lock, the memory of lines is refused")
def test_nested_line_memory():
    kept = []

    def take():
        kept.append(bytearray(1 << 20))

    at = first_line(take)
    with sonde.line_memory(take) as outer:
        take()
        with sonde.line_memory(take) as inner:
            take()
        take()
    assert occurrences_of(outer) == {at: 3, at + 1: 3}
    assert occurrences_of(inner) == {at: 1, at + 1: 1}
    rows = [line.split() for line in inner.report().splitlines()]
    taken = next(row for row in rows if row and row[0] == str(at + 1))
    assert 0.9 < float(taken[3]) < 1.1


# ------------------------------------------------------------------------------- samples

def spin(seconds):
    """Of processor time: on a busy machine the sampler has as much longer as this has."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def before_it():
    spin(0.15)


def inside_it():
    spin(0.15)


def after_it():
    spin(0.15)


def test_nested_samples():
    with sonde.sample(hz=500) as outer:
        before_it()
        with sonde.sample(hz=500) as inner:
            inside_it()
        after_it()
    assert all(name in outer.report() for name in ("before_it", "inside_it", "after_it"))
    assert "inside_it" in inner.report()
    assert "before_it" not in inner.report() and "after_it" not in inner.report()


def test_overlapping_samples():
    first, second = sonde.sample(hz=500), sonde.sample(hz=500)
    first.start()
    before_it()
    second.start()
    inside_it()
    first.stop()
    after_it()
    second.stop()
    assert "before_it" in first.report() and "after_it" not in first.report()
    assert "after_it" in second.report() and "before_it" not in second.report()
    assert "inside_it" in first.report() and "inside_it" in second.report()


# --------------------------------------------------------------------------------- files

def test_saved_traces_are_the_sessions_own(tmp_path):
    with sonde.functions() as outer, sonde.lines(loop) as lines:
        leaf()
        with sonde.functions() as inner, sonde.lines(loop) as inner_lines:
            leaf()
            loop(2)
        inner.save(tmp_path / "inner.sonde")
        leaf()
    outer.save(tmp_path / "outer.sonde")
    inner_lines.save(tmp_path / "lines.sonde")
    for name, wanted in (("inner", 1), ("outer", 3)):
        text = sonde.Trace(tmp_path / f"{name}.sonde").report(view="functions", rows=-1)
        row = next(line for line in text.splitlines() if line.endswith("(leaf)"))
        assert int(row.split()[0]) == wanted
    text = sonde.Trace(tmp_path / "lines.sonde").report(view="lines")
    assert "total += i" in text
    assert lines is not None


def test_a_nested_session_has_the_file_it_asked_for(tmp_path):
    path = tmp_path / "inner.sonde"
    with sonde.functions():
        leaf()
        with sonde.functions(path=path):
            leaf()
        leaf()
    text = sonde.Trace(path).report(view="functions", rows=-1)
    assert [line.split()[0] for line in text.splitlines() if line.endswith("(leaf)")] == ["1"]
    assert not sonde.Trace(path).ledger()


def test_inside_a_profile():
    """The recording is the profile's, which takes its file away at the end."""
    with sonde.profile():
        with sonde.functions() as first:
            leaf()
        with sonde.functions() as second:
            leaf()
            leaf()
    gc.collect()
    assert calls_of(first)["leaf"][0] == 1
    assert calls_of(second)["leaf"][0] == 2


def test_inside_sonde_run(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent("""
        import sonde
        def f(): pass
        f()
        with sonde.functions() as a: f(); f()
        with sonde.functions() as b: f()
        print(*({k[2]: v[1] for k, v in s.stats().stats.items()}["f"] for s in (a, b)))
        """))
    done = subprocess.run([sys.executable, "-m", "sonde", "-o", tmp_path / "t.sonde", program],
                          capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "2 1\n")
    text = sonde.Trace(tmp_path / "t.sonde").report(view="functions", rows=-1)
    assert [line.split()[0] for line in text.splitlines() if line.endswith("(f)")] == ["4"]


# ---------------------------------------------------------------------------- decorators

KINDS = [sonde.functions, sonde.lines, sonde.sample] + [sonde.line_memory] * (not FREE)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_decorators_without_parentheses(kind):
    @kind
    def double(x):
        """Twice."""
        return 2 * x

    assert (double(3), double.__name__, double.__doc__) == (6, "double", "Twice.")
    assert isinstance(double.report(), str)
    double.stop()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_decorated_methods(kind):
    class Thing:
        @kind
        def method(self, x):
            return self, x

        @kind
        @staticmethod
        def static(x):
            return x

        @classmethod
        @kind
        def of_class(cls, x):
            return cls, x

    thing = Thing()
    assert thing.method(1) == (thing, 1)
    assert Thing.of_class(2) == (Thing, 2)
    assert thing.static(3) == 3 == Thing.static(3)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_decorated_functions_that_suspend(kind):
    import inspect

    @kind
    async def waiting(x):
        await asyncio.sleep(0)
        return x

    @kind
    def making(count):
        yield from range(count)

    assert inspect.iscoroutinefunction(waiting) or asyncio.iscoroutinefunction(waiting)
    assert asyncio.run(waiting(4)) == 4
    assert list(making(3)) == [0, 1, 2]
    for function in (waiting, making):
        function.stop()


def test_decorated_calls_are_the_decorators_own():
    @sonde.functions()
    def first():
        leaf()

    @sonde.functions
    def second():
        leaf()

    first()
    first()
    with sonde.functions() as block:
        leaf()
        leaf()
        leaf()
    second()
    leaf()
    assert calls_of(block)["leaf"][0] == 3
    assert calls_of(second)["leaf"][0] == 1
    with sonde.functions() as block:
        first()
        second()
    assert calls_of(block)["leaf"][0] == 2
    assert calls_of(second)["leaf"][0] == 2
    second.stop()


def test_decorated_lines_are_the_decorators_own():
    @sonde.lines
    def first(count):
        return loop(count)

    first(2)
    with sonde.lines(loop) as block:
        loop(1)
        first(1)
    assert list(hits_of(first).values()) == [2]
    assert hits_of(block)[first_line(loop) + 1] == 2
    first.stop()
    out = io.StringIO()
    first.print(file=out)
    assert "loop(count)" in out.getvalue()


COLLECTED = """\
import gc, json, sys
sys.modules["torch"] = None  # to import it takes longer than all the rest
import sonde
earlier = [sonde.functions()]
with earlier[0]:
    pass
gc.collect()
with sonde.functions() as calls:
    earlier.clear()
    gc.collect()
print(json.dumps([key[2] for key in calls.stats().stats]))
"""


def test_a_session_that_is_collected_is_in_no_table():
    """Its temporary folder goes then, and nothing of that is among the program's calls. In a process of its own: threads that
    others left here would be among them."""
    done = subprocess.run([sys.executable, "-c", COLLECTED], text=True, stdout=subprocess.PIPE, check=True)
    functions = set(json.loads(done.stdout))
    assert functions <= {"<method 'clear' of 'list' objects>", "<built-in method gc.collect>"} and functions
