# SPDX-License-Identifier: Apache-2.0
"""Threads that run Python at the same time: in a CPython without the interpreter lock ("3.14t"), and in any other."""
import asyncio
import cProfile
import json
import re
import threading

import pytest

import sonde
from python_tools import FREE, SONDE, python, rows, run, sonde_run

THREADS, TURNS = 6, 4000


def leaf(number):
    return number


def work(turns):
    total = 0
    for number in range(turns):
        total += leaf(number)
        abs(number)
    return total


def numbers(turns):
    for number in range(turns):
        yield leaf(number)


def consume(turns):
    return sum(numbers(turns))


async def step(number):
    await asyncio.sleep(0)
    return number


def awaits(turns):
    async def main():
        for number in range(turns // 10):
            await step(number)
    asyncio.run(main())


def at_once(function, turns=TURNS, threads=THREADS):
    started = [threading.Thread(target=function, args=(turns,)) for _ in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()


def mine(stats):
    return {key[2]: (cc, nc) for key, (cc, nc, *_) in stats.items() if key[0] == __file__ or "abs" in key[2]}


def profiled_alone(function):
    """cProfile's counts of one thread; it sees no others before 3.12."""
    function(TURNS)
    profiler = cProfile.Profile()
    profiler.enable()
    function(TURNS)
    profiler.disable()
    profiler.create_stats()
    return mine(profiler.stats)


def test_the_lock_stays_as_it_is():
    """Importing sonde, and recording, turns no lock on."""
    said = python("-W", "error", "-c", "import sonde, sys\nwith sonde.functions() as f: (lambda: 1)()\nf.stats()\n"
                  "print(getattr(sys, '_is_gil_enabled', lambda: True)())", cwd=".").stdout
    assert said == f"{not FREE}\n"


def test_every_call_of_every_thread_counts():
    expected = profiled_alone(work)
    with sonde.functions() as seen:
        at_once(work)
    got = mine(seen.stats().stats)
    assert len(expected) == 3
    for name, (primitive, calls) in expected.items():
        assert got[name] == (THREADS * primitive, THREADS * calls), name


def test_coroutines_of_every_thread():
    with sonde.functions() as seen:
        at_once(awaits)
    got = mine(seen.stats().stats)
    assert got["step"][1] == THREADS * TURNS // 10 and got["main"][1] == got["awaits"][1] == THREADS


def test_generators_of_every_thread():
    with sonde.functions() as seen:
        at_once(consume)
    found = {row["function"]: row for row in json.loads(seen.report(format="json", rows=-1))["rows"]}
    assert found["numbers"]["calls"] == THREADS and found["numbers"]["resumptions"] == THREADS * TURNS
    assert found["leaf"]["calls"] == THREADS * TURNS


def test_lines_of_every_thread():
    with sonde.lines(work) as seen:
        at_once(work)
    hits = {row["line"]: row["hits"] for row in json.loads(seen.report(format="json"))["rows"]}
    first = work.__code__.co_firstlineno
    assert hits[first + 1] == hits[first + 5] == THREADS
    assert hits[first + 3] == hits[first + 4] == THREADS * TURNS


def test_sessions_begin_and_end_while_threads_run():
    """Nothing is lost of the session around them, and what ends while calls are under way is whole."""
    over = threading.Event()

    def busy():
        while not over.is_set():
            work(50)
    with sonde.functions() as outer:
        started = [threading.Thread(target=busy) for _ in range(3)]
        for thread in started:
            thread.start()
        for turn in range(20):
            with sonde.functions() as inner:
                work(100)
            counts = mine(inner.stats().stats)
            assert counts["leaf"][1] >= 100 and counts["work"][1] >= 1, turn
            with sonde.lines(work, leaf):
                work(100)
        over.set()
        for thread in started:
            thread.join()
        at_once(work)
    assert mine(outer.stats().stats)["leaf"][1] >= THREADS * TURNS + 20 * 200


def test_samples_of_threads_that_run_at_once(tmp_path):
    (tmp_path / "prog.py").write_text("""
import threading, time
def step(n): return n % 7
def burn():
    end, n = time.thread_time() + 0.6, 0
    while time.thread_time() < end:
        n += step(n)
def one(): burn()
def two(): burn()
started = [threading.Thread(target=function) for function in (one, two)]
for thread in started: thread.start()
for thread in started: thread.join()
""")
    sonde_run(["--sample=500", "-o", "t.sonde"], "prog.py", cwd=tmp_path)
    run(SONDE, "export", "t.sonde", "--to", "folded", "-o", "t.folded", cwd=tmp_path)
    stacks = (tmp_path / "t.folded").read_text()
    for name in ("one", "two"):
        assert re.search(rf";{name} \([^)]*prog\.py:\d+\);burn \(", stacks), stacks
    assert rows(tmp_path / "t.sonde", "samples")


@pytest.mark.skipif(not FREE, reason="this Python has the interpreter lock")
def test_memory_of_lines_is_refused(tmp_path):
    with pytest.raises(sonde.Error, match="without the interpreter lock"):
        with sonde.line_memory(work):
            work(1)
    (tmp_path / "prog.py").write_text("def f(): return [0] * 1000\nf()\nprint('ran')\n")
    done = sonde_run(["--line-memory", "f", "-o", "t.sonde"], "prog.py", cwd=tmp_path, status=None)
    assert done.stdout == "ran\n" and "without the interpreter lock" in done.stderr and done.stderr.count("\n") == 1, done.stderr
