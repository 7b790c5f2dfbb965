# SPDX-License-Identifier: Apache-2.0
"""sonde.functions against cProfile: the same program, the same numbers where cProfile is right.

Runs with every CPython that the machine has (tools/test pythons): no torch, no other package.
"""
import asyncio
import cProfile
import gc
import json
import os
import pathlib
import pstats
import re
import subprocess
import sys
import threading
import time

import pytest

import sonde
from sonde import _python, _record
from python_tools import FREE

sys.path.insert(0, str(pathlib.Path(__file__).parent / "programs/python"))
import calls  # noqa: E402

ADDRESS = re.compile(r"at 0x[0-9a-f]+")


# ---------------------------------------------------------------------------- numbers

def shown(key):
    file, line, name = key
    return os.path.basename(file), line, ADDRESS.sub("at ADDRESS", name)


def table(stats):
    """{function: (cc, nc, {caller: (nc, cc)})}, without the tools' own rows."""
    made = {}
    for key, (cc, nc, _, _, callers) in stats.items():
        if "_lsprof.Profiler" in key[2]:
            continue
        made[shown(key)] = cc, nc, {shown(caller): counts[:2] for caller, counts in callers.items()}
    return made


def theirs(program, **options):
    gc.collect()  # what earlier tests left would be removed, and counted, in between
    profiler = cProfile.Profile()
    profiler.enable(**options)  # 3.14's forgets those that it is made with
    program()
    profiler.disable()
    profiler.create_stats()
    return profiler.stats


def ours(program, **options):
    with sonde.functions(**options) as recorded:
        program()
    return recorded.stats().stats


def rows(recorded):
    """{name: row} of the functions of calls.py."""
    said = json.loads(recorded.report(format="json", rows=-1))
    return {row["function"]: row for row in said["rows"] if row["file"].endswith("calls.py")}


def record(program, **options):
    with sonde.functions(**options) as recorded:
        program()
    return rows(recorded)


# ----------------------------------------------------------------- equal to cProfile's

@pytest.mark.parametrize("program", calls.PLAIN, ids=lambda program: program.__name__)
def test_counts_equal(program):
    program()  # what is imported or cached the first time
    assert table(ours(program)) == table(theirs(program))


@pytest.mark.parametrize("program", calls.PLAIN, ids=lambda program: program.__name__)
def test_counts_equal_without_builtins(program):
    program()
    expected = table(theirs(program, builtins=False))
    assert table(ours(program, c_functions=False)) == expected


@pytest.mark.parametrize("program", calls.PLAIN, ids=lambda program: program.__name__)
def test_counts_equal_in_trace_mode(program):
    program()
    expected = {key: value[:2] for key, value in table(theirs(program)).items()}
    got = {key: value[:2] for key, value in table(ours(program, mode="trace")).items()}
    assert got == expected


@pytest.mark.parametrize("c_functions", [True, False])
def test_both_at_once(c_functions):
    """cProfile inside ours, and ours inside cProfile: each sees what it sees alone."""
    program = calls.mutual_recursion
    alone = table(theirs(program))
    profiler = cProfile.Profile()
    with sonde.functions(c_functions=c_functions) as recorded:
        profiler.enable()
        program()
        profiler.disable()
        program()
    profiler.create_stats()
    inner = {key: value for key, value in table(profiler.stats).items() if key[0] == "calls.py"}
    assert inner == {key: value for key, value in alone.items() if key[0] == "calls.py"}
    got = rows(recorded)
    for name in ("even", "odd", "first"):
        assert got[name]["calls"] == 2 * alone[next(k for k in alone if k[2] == name)][1]

    profiler = cProfile.Profile()
    profiler.enable()
    with sonde.functions(c_functions=c_functions) as recorded:
        program()
    profiler.disable()
    profiler.create_stats()
    for name in ("even", "odd", "first"):
        key = next(k for k in alone if k[2] == name)
        assert table(profiler.stats)[key][:2] == alone[key][:2]
        assert rows(recorded)[name]["calls"] == alone[key][1]


def spend(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def half():
    spend(0.02)


def whole():
    half()
    half()
    spend(0.04)


@pytest.mark.alone
@pytest.mark.parametrize("options", [{}, {"c_functions": False}, {"mode": "trace"}])
def test_times_agree(options):
    """Both at once, over calls that are long beside what either adds."""
    profiler = cProfile.Profile()
    profiler.enable()
    with sonde.functions(**options) as recorded:
        whole()
    profiler.disable()
    profiler.create_stats()
    mine = {key: value[3] for key, value in recorded.stats().stats.items()
            if key[2] in ("whole", "half", "spend")}
    assert len(mine) == 3
    assert mine == pytest.approx({key: profiler.stats[key][3] for key in mine}, rel=0.15)


@pytest.mark.alone
def test_self_times_add_up():
    with sonde.functions() as recorded:
        begin = time.perf_counter()
        whole()
        elapsed = time.perf_counter() - begin
    stats = recorded.stats()
    spent = sum(tt for _, _, tt, _, _ in stats.stats.values())
    assert spent == pytest.approx(stats.total_tt)
    assert spent <= elapsed * 1.01
    total = next(ct for key, (_, _, _, ct, _) in stats.stats.items() if key[2] == "whole")
    assert total == pytest.approx(elapsed, rel=0.05)


# ---------------------------------------------------------------- where cProfile is wrong

def not_monitored(options):
    """From 3.14 on: whether calls are seen by the evaluation of frames."""
    return (sys.version_info >= (3, 14) and not options.get("c_functions", True)
            and not FREE)


@pytest.mark.parametrize("options", [{}, {"c_functions": False}, {"mode": "trace"}])
def test_generators_are_one_call(options):
    """cProfile counts every resumption as a call; here they are counted apart."""
    calls.generators()
    got = record(calls.generators, **options)
    assert got["chained"]["calls"] == 1
    assert got["chained"]["resumptions"] == 5  # four of count's, and its own
    assert got["count"]["calls"] == 3  # in chained, in sum(), and the unfinished one
    assert got["receives"]["calls"] == 1
    expected = {key[2]: nc for key, (_, nc, *_) in theirs(calls.generators).items()}
    for name in ("chained", "count", "receives"):
        # From 3.14 on close() does not run a generator that has nothing to clean up, unless it is monitored.
        closed = name == "receives" and not_monitored(options)
        assert got[name]["calls"] + got[name]["resumptions"] + closed == expected[name]


@pytest.mark.parametrize("options", [{}, {"c_functions": False}, {"mode": "trace"}])
def test_awaiting_is_told_apart(options):
    got = record(calls.coroutines, **options)
    assert got["leaf"]["calls"] == 3
    assert got["branch"]["calls"] == got["consume"]["calls"] == got["stream"]["calls"] == 1
    assert got["leaf"]["awaiting_ns"] >= 3 * 0.02e9
    assert got["branch"]["awaiting_ns"] >= 2 * 0.02e9
    assert got["leaf"]["total_ns"] < 0.02e9  # ran for next to nothing
    assert got["stream"]["calls"] + got["stream"]["resumptions"] >= 4


@pytest.mark.parametrize("options", [{}, {"c_functions": False}, {"mode": "trace"}])
def test_an_async_generator_awaits(options):
    """Between its own `yield` and the next request it awaits nothing."""
    got = record(calls.ticking, **options)
    assert got["ticks"]["calls"] == 1 and got["ticks"]["resumptions"] >= 6
    assert 3 * 0.02e9 <= got["ticks"]["awaiting_ns"] < 3 * 0.15e9
    assert got["takes_ticks"]["awaiting_ns"] == pytest.approx(got["ticks"]["awaiting_ns"], rel=0.2)


@pytest.mark.parametrize("options", [{}, {"c_functions": False}])
def test_functions_of_one_name_and_line(options):
    """cProfile shows the last of them only; here they are added up, and none is recursive."""
    stats = ours(calls.nested_on_one_line, **options)
    assert next(value[:2] for key, value in stats.items() if key[2] == "<lambda>") == (6, 6)
    assert next(value[1] for key, value in theirs(calls.nested_on_one_line).items()
                if key[2] == "<lambda>") < 6


@pytest.mark.parametrize("c_functions", [True, False])
def test_every_thread(c_functions):
    """Threads that begin while it is on, of `threading` and without it.

    Before 3.12 cProfile sees none; since then it takes all threads' calls for one stack.
    """
    got = record(calls.threads, c_functions=c_functions)
    assert got["busy"]["calls"] == got["busy"]["primitive_calls"] == 3
    assert got["step"]["calls"] == 300
    if sys.version_info < (3, 12):
        assert not [key for key in theirs(calls.threads) if key[2] == "busy"]

    import _thread
    done = threading.Semaphore(0)

    def bare():
        calls.busy(10)
        done.release()
    with sonde.functions(c_functions=c_functions) as recorded:
        _thread.start_new_thread(bare, ())
        done.acquire()
    assert rows(recorded)["step"]["calls"] == 10


@pytest.mark.parametrize("c_functions", [True, False])
def test_a_thread_that_was_there_before(c_functions):
    go, done, end = threading.Event(), threading.Event(), threading.Event()

    def work():
        go.wait()
        calls.busy(20)
        done.set()
        end.wait()
    thread = threading.Thread(target=work)
    thread.start()
    try:
        with sonde.functions(c_functions=c_functions) as recorded:
            go.set()
            done.wait()
        assert rows(recorded)["step"]["calls"] == 20
    finally:
        end.set()
        thread.join()


@pytest.mark.parametrize("c_functions", [True, False])
def test_recursion_is_of_one_thread(c_functions):
    """A function that runs in two threads at once is not recursive."""
    barrier = threading.Barrier(2)

    def wait_inside():
        barrier.wait()
        barrier.wait()
    with sonde.functions(c_functions=c_functions) as recorded:
        threads = [threading.Thread(target=wait_inside) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    stats = {key[2]: value for key, value in recorded.stats().stats.items()}
    assert stats["wait_inside"][:2] == (2, 2)


# ------------------------------------------------------------------- begin and end

@pytest.mark.parametrize("c_functions", [True, False])
def test_open_at_start_and_at_stop(c_functions):
    """As cProfile: what was open before is not there, what is still open counts up to the end."""
    recorded = sonde.functions(c_functions=c_functions)

    def opened():
        recorded.enable()
        calls.step(1)

    def left_open():
        calls.step(2)
        recorded.disable()
    opened()
    left_open()
    recorded.stop()
    stats = {key[2]: value[:2] for key, value in recorded.stats().stats.items() if key[0] != "~"}
    assert stats == {"step": (2, 2), "left_open": (1, 1)}


def test_enable_and_disable_add_up():
    recorded = sonde.functions()
    for _ in range(3):
        recorded.enable()
        calls.busy(5)
        recorded.disable()
    assert rows(recorded)["step"]["calls"] == 15
    recorded.stop()
    with recorded:
        calls.busy(5)
    assert rows(recorded)["step"]["calls"] == 20


def test_decorator():
    recorded = sonde.functions()

    @recorded
    def twice(n):
        return calls.busy(n) + calls.busy(n)

    @recorded
    def countdown(n):
        while n:
            yield n
            n -= 1
    assert twice(3) == calls.busy(3) * 2
    assert twice.__name__ == "twice"
    assert list(countdown(2)) == [2, 1]
    twice(3)
    assert rows(recorded)["step"]["calls"] == 12
    recorded.stop()
    assert recorded.stats().total_calls == 2 + 4 + 12 + 1  # twice, busy, step, countdown


def test_decorated_async_generator():
    """It stays one: what is sent, thrown and returned passes; it is on until it is closed."""
    import asyncio
    import inspect
    recorded = sonde.functions()
    told = []

    @recorded
    async def echo(n):
        """As told."""
        try:
            for i in range(n):
                calls.step(i)
                try:
                    told.append((yield i))
                except KeyError as error:
                    told.append(error.args[0])
        finally:
            told.append("closed")

    async def main():
        assert [i async for i in echo(2)] == [0, 1]
        values = echo(5)
        assert await values.asend(None) == 0
        assert await values.asend("sent") == 1
        assert await values.athrow(KeyError("thrown")) == 2
        await values.aclose()
    assert inspect.isasyncgenfunction(echo) and echo.__doc__ == "As told."
    asyncio.run(main())
    calls.step(0)  # when it is off
    assert told == [None, None, "closed", "sent", "thrown", "closed"]
    recorded.stop()
    assert rows(recorded)["step"]["calls"] == 5
    assert [value[:2] for key, value in recorded.stats().stats.items() if key[2] == "echo"] == [(2, 2)]


def test_results(tmp_path, capsys):
    with sonde.functions(path=tmp_path / "kept.sonde") as recorded:
        calls.recursion()
    assert (tmp_path / "kept.sonde").exists()
    recorded.print(sort="cumulative", rows=3)
    text = capsys.readouterr().out
    assert "Ordered by: cumulative time" in text
    assert "ncalls  tottime  percall  cumtime  percall filename:lineno(function)" in text
    assert re.search(r"465/1 .*calls\.py:\d+\(fib\)", text)
    recorded.print_callers()
    assert "was called by..." in capsys.readouterr().out
    recorded.print_callees()
    assert "called..." in capsys.readouterr().out
    recorded.dump_stats(tmp_path / "calls.prof")
    assert pstats.Stats(str(tmp_path / "calls.prof")).total_calls == recorded.stats().total_calls
    recorded.save(tmp_path / "copy.sonde")
    assert "(fib)" in sonde.Trace(tmp_path / "copy.sonde").report(view="functions")
    with pytest.raises(sonde.Error, match="again"):
        recorded.enable()


def test_bad_arguments():
    with pytest.raises(ValueError, match="mode is one of"):
        sonde.functions(mode="all")
    with pytest.raises(sonde.Error, match="nothing was recorded"):
        sonde.functions().print()


def test_joins_a_recording(tmp_path):
    """Two sessions, one trace; and a recording that someone else began."""
    with sonde.functions() as outer, pytest.warns(UserWarning, match="other options"):
        with sonde.functions(c_functions=False) as inner:
            calls.busy(3)
        calls.busy(3)
    assert rows(outer)["step"]["calls"] == 6
    assert inner.trace() is not None
    _record.start(tmp_path / "own.sonde")
    with sonde.functions() as guest:
        calls.busy(4)
    assert _record.epoch() != 0, "the recording is not the guest's to end"
    assert rows(guest)["step"]["calls"] == 4
    _record.stop()
    assert "(step)" in sonde.Trace(tmp_path / "own.sonde").report(view="functions")


def test_pause_and_resume():
    """What is open at a pause goes on when the recording does, without the time between."""
    def paused():
        _record.pause()
        spend(0.05)
        _record.resume()
        calls.step(1)
    with sonde.functions() as recorded:
        paused()
    stats = {key[2]: value for key, value in recorded.stats().stats.items()}
    assert stats["step"][:2] == (1, 1)
    assert stats["paused"][:2] == (1, 1)
    assert stats["paused"][3] < 0.05


# ------------------------------------------------------------------- other tools, fork

@pytest.mark.parametrize("c_functions", [True, False])
def test_a_profile_function_of_the_program(c_functions):
    seen = []
    with sonde.functions(c_functions=c_functions) as recorded:
        sys.setprofile(lambda frame, event, arg: seen.append((frame.f_code.co_name, event)))
        calls.busy(5)
        sys.setprofile(None)
        calls.busy(7)
    assert seen.count(("step", "call")) == 5
    assert rows(recorded)["step"]["calls"] == 12
    assert sys.getprofile() is None


@pytest.mark.parametrize("c_functions", [True, False])
def test_a_trace_function_of_the_program(c_functions):
    """A debugger's or coverage's; ours neither sees nor disturbs it."""
    seen = []

    def tracer(frame, event, arg):
        seen.append((frame.f_code.co_name, event))
        return tracer
    before = sys.gettrace()
    with sonde.functions(c_functions=c_functions) as recorded:
        sys.settrace(tracer)
        try:
            calls.busy(5)
        finally:
            sys.settrace(before)
    assert seen.count(("step", "call")) == 5
    assert rows(recorded)["step"]["calls"] == 5


@pytest.mark.parametrize("c_functions", [True, False])
def test_deep_recursion(c_functions):
    """Deeper than the C stack would allow if every call took some of it."""
    def down(n):
        return n and down(n - 1)
    depth = 20000 if sys.version_info >= (3, 11) else 2000
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(depth + 1000)
    try:
        with sonde.functions(c_functions=c_functions) as recorded:
            down(depth)
    finally:
        sys.setrecursionlimit(limit)
    stats = {key[2]: value for key, value in recorded.stats().stats.items()}
    assert stats["down"][:2] == (1, depth + 1)
    said = _python.functions_describe()
    if not c_functions and sys.version_info >= (3, 11) and not FREE:
        assert "recurses" in said["switched"]
    assert said["unbalanced"] == said["lost"] == 0


@pytest.mark.parametrize("c_functions", [True, False])
def test_fork(tmp_path, c_functions):
    """The child goes on in a file of its own."""
    with sonde.functions(path=tmp_path / "parent.sonde", c_functions=c_functions):
        calls.busy(3)
        child = os.fork()
        if child == 0:
            calls.busy(5)
            os._exit(0)
        os.waitpid(child, 0)
        calls.busy(4)
    alone = tmp_path / "alone.sonde"
    os.rename(tmp_path / f"parent.sonde.{child}", alone)
    steps = [next(row["calls"] for row in json.loads(
        sonde.Trace(path).report(view="functions", format="json", rows=-1))["rows"]
        if row["function"] == "step") for path in (tmp_path / "parent.sonde", alone)]
    assert steps == [7, 5]


def test_own_functions_are_not_shown():
    with sonde.functions() as recorded:
        calls.step(1)
        recorded.trace()
    assert not [key for key in recorded.stats().stats if f"{os.sep}sonde{os.sep}_" in key[0]]


# -------------------------------------------------------------------------- memory

def resident_kib():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


@pytest.mark.parametrize("c_functions", [True, False])
def test_a_thousand_times_on_and_off(tmp_path, c_functions):
    """In one recording, so that it is the probe that is looked at; then with new code each time."""
    _record.start(tmp_path / "cycles.sonde")
    recorded = sonde.functions(c_functions=c_functions)

    def cycle():
        namespace = {}
        exec("def made(n):\n    return [each for each in range(n)]", namespace)
        recorded.enable()
        namespace["made"](3)
        calls.recursion()
        recorded.disable()
    for _ in range(100):
        cycle()
    gc.collect()
    before = resident_kib()
    for _ in range(1000):
        cycle()
    gc.collect()
    grown = resident_kib() - before
    recorded.stop()
    _record.stop()
    assert grown < (4096 if FREE else 1024), f"{grown} KiB"  # without the lock, Python frees blocks later


@pytest.mark.skipif(FREE and sys.version_info < (3, 14), reason="3.13t never frees a code object")
@pytest.mark.parametrize("c_functions", [True, False])
def test_code_is_not_kept_alive(c_functions):
    import weakref
    namespace = {}
    exec("def made():\n    return 1", namespace)
    code = weakref.ref(namespace["made"].__code__)
    with sonde.functions(c_functions=c_functions):
        namespace["made"]()
        del namespace["made"]
        gc.collect()
        assert code() is None


def test_threads_come_and_go():
    """What a thread that ended held is used again."""
    with sonde.functions() as recorded:
        for _ in range(20):
            calls.threads()
        gc.collect()
        before = resident_kib()
        for _ in range(150):
            calls.threads()
        grown = resident_kib() - before
    assert rows(recorded)["busy"]["calls"] == 170 * 3
    assert grown < 2048, f"{grown} KiB"


def test_survives_the_process(tmp_path):
    """Killed in the middle: what was counted is in the file."""
    program = f"""
import os, signal, sys
sys.path.insert(0, {str(pathlib.Path(calls.__file__).parent)!r})
import sonde, calls
sonde.functions(path={str(tmp_path / "killed.sonde")!r}).enable()
calls.busy(50)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", program])
    assert done.returncode == -9
    text = sonde.Trace(tmp_path / "killed.sonde").report(view="functions", format="json", rows=-1)
    assert {row["function"]: row["calls"] for row in json.loads(text)["rows"]}["step"] == 50


def test_an_async_generator_that_fails_as_it_closes_is_left():
    """By the wrapper that functions, samples, lines and memory share."""
    from sonde.python import _wrapped

    async def failing():
        try:
            yield 1
        finally:
            raise ValueError("as asked")

    calls = []
    wrapped = _wrapped.wrap_suspended(failing, lambda: calls.append("enter"), lambda: calls.append("leave"))

    async def main():
        values = wrapped()
        assert await values.__anext__() == 1
        with pytest.raises(ValueError, match="as asked"):
            await values.aclose()

    asyncio.run(main())
    assert calls == ["enter", "leave"]


@pytest.mark.parametrize("session, name, kind", [(sonde.functions, "c_functions", "True or False"), (sonde.sample, "hz", "a number")])
@pytest.mark.parametrize("path", ["calls.sonde", pathlib.Path("calls.sonde")])
def test_a_path_in_the_place_of_another_argument(session, name, kind, path):
    """A text is true: it was taken for c_functions=True, and the trace was elsewhere."""
    with pytest.raises(TypeError) as error:
        session(path)
    assert str(error.value) == f"sonde: {name}: expected {kind}, got {path!r}; the trace's path is path={path!r}"
