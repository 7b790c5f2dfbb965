# SPDX-License-Identifier: Apache-2.0
"""sonde.line_memory against tracemalloc, to the byte, and memory_profiler, to the character."""
import faulthandler
import gc
import json
import os
import re
import runpy
import shutil
import struct
import sys
import threading
import tracemalloc

import pytest

import sonde
from python_tools import FREE, python, run
from sonde.python._line_memory import memit

pytestmark = pytest.mark.skipif(FREE, reason="this Python has no interpreter lock: the memory of lines is refused")
MIB = 1 << 20

WORK = """
def work(n):
    a = [0] * 100_000
    b = [float(i) for i in range(n)]
    c = {}
    for i in range(n):
        c[i] = str(i) * 5
    del a
    d = bytearray(10_000_000)
    e = b"x" * 5_000_000 + b"y" * 5_000_000
    del d
    g = [x for x in range(1000, 1000 + n)]
    return b, c, e, g
"""


def program(tmp_path, text, name="program.py"):
    path = tmp_path / name
    path.write_text(text)
    return runpy.run_path(str(path)), str(path)


HEAD = sys.getsizeof(bytearray(1000)) - 1000  # of a bytearray, before its contents


def by_line(session):
    rows = json.loads(session.report(format="json"))["rows"]
    return {row["line"]: row for row in rows if row["occurrences"]}


# ------------------------------------------------------------------------- exact bytes

@pytest.mark.parametrize("blank_lines", [0, 300])  # numbers above 256 are objects of their own
def test_bytes_are_tracemallocs(tmp_path, blank_lines):
    names, path = program(tmp_path, "\n" * blank_lines + WORK)
    with sonde.line_memory(names["work"]):  # the first session of a process imports modules, which use up what is spare
        names["work"](1)
    gc.collect()
    gc.disable()
    spare = [[] for _ in range(40)]
    del spare  # CPython keeps them for reuse: gc.collect() let go of those that it had
    spare = [10**6 + i for i in range(200)]  # and uses up the numbers that it has kept
    tracemalloc.start()
    try:
        with sonde.line_memory(names["work"]) as ours:
            kept = names["work"](2000)
            seen = tracemalloc.take_snapshot()
    finally:
        tracemalloc.stop()
        gc.enable()
    found = seen.filter_traces([tracemalloc.Filter(True, path)]).statistics("lineno")
    theirs = {one.traceback[0].lineno - blank_lines: one.size for one in found}
    rows = {line - blank_lines: row for line, row in by_line(ours).items()}
    assert kept and spare
    # What is still there. A list, dict or tuple that CPython kept for reuse is counted by
    # tracemalloc and takes no memory: a head of 40 to 72 bytes, not what it holds.
    for line in (4, 6, 7, 10, 12):
        assert abs(rows[line]["increment_bytes"] - theirs[line]) <= 150, line
    exact = {3: (800_000, 800_000), 8: (-800_000, 0), 9: (10_000_000 + HEAD, 10_000_000 + HEAD),
             11: (-10_000_000 - HEAD, 0)}
    for line, (increment, allocated) in exact.items():
        assert abs(rows[line]["increment_bytes"] - increment) <= 100, line
        assert 0 <= rows[line]["allocated_bytes"] - allocated < 100, line
    assert rows[10]["peak_bytes"] >= 20_000_000 > rows[10]["increment_bytes"]


NUMBERS = """
def work(kept, n):
    for i in kept:
        nothing = None
        more = 0.0
    for i in range(n):
        kept.append(i + 5000)
        nothing = None
    return nothing, more
"""


@pytest.mark.parametrize("blank_lines", [0, 3000])
def test_the_numbers_of_events_are_in_no_line(tmp_path, blank_lines):
    """CPython makes one for each event at a line above 256, or 1024; since 3.14 it keeps them, and the program gets them next."""
    names, _ = program(tmp_path, "\n" * blank_lines + NUMBERS)
    kept = [1000 + i for i in range(500)]
    gc.disable()
    try:
        with sonde.line_memory(names["work"]) as ours:
            names["work"](kept, 500)
    finally:
        gc.enable()
    rows = {line - blank_lines: row for line, row in by_line(ours).items()}
    for line in (3, 4, 5, 8):
        assert 0 <= rows[line]["allocated_bytes"] <= 200 and 0 <= rows[line]["freed_bytes"] <= 200, (line, rows[line])
    size = sys.getsizeof(kept) - sys.getsizeof(kept[:500]) + 500 * 28
    assert size - 200 <= rows[7]["increment_bytes"] <= size + 500 * 4 + 200  # 3.14 takes 32 for each
    assert rows[7]["increment_bytes"] == rows[7]["allocated_bytes"] - rows[7]["freed_bytes"]


@pytest.fixture
def one_thread():
    """pytest's watchdog has a thread of its own, which frees 24 bytes when it first runs: on a busy machine that is late,
    and what is in use is any thread's. Once it is cancelled it has ended."""
    faulthandler.cancel_dump_traceback_later()


def test_increments_add_up_to_what_is_in_use(tmp_path, one_thread):
    names, _ = program(tmp_path, WORK)
    with sonde.line_memory(names["work"]) as ours:
        kept = names["work"](500)
        kept = [kept, names["work"](500)]
    rows = by_line(ours)
    assert sum(row["increment_bytes"] for row in rows.values()) == rows[13]["usage_bytes"]
    for row in rows.values():
        assert row["increment_bytes"] == row["allocated_bytes"] - row["freed_bytes"] \
            or row["line"] == 2
    assert rows[2]["occurrences"] == 2 and kept


def test_memory_of_malloc_is_seen():
    np = pytest.importorskip("numpy")

    def native():
        a = np.ones(1_000_000)
        b = a + a
        del a
        return b
    first = native.__code__.co_firstlineno
    with sonde.line_memory(native) as ours:
        kept = native()
    rows = by_line(ours)
    for line, size in ((first + 1, 8e6), (first + 2, 8e6), (first + 3, -8e6)):
        assert rows[line]["increment_bytes"] == pytest.approx(size, rel=0.002), line
    assert kept.nbytes == 8_000_000


def test_tensors_are_seen():
    torch = pytest.importorskip("torch", reason="torch is installed for the Python of .venv alone")

    def tensors():
        a = torch.ones(1000, 1000)
        b = a @ a
        del a
        return b
    first = tensors.__code__.co_firstlineno
    tensors()  # what the library takes once and keeps
    with sonde.line_memory(tensors) as ours:
        kept = tensors()
    rows = by_line(ours)
    for line, size in ((first + 1, 4e6), (first + 3, -4e6)):
        assert rows[line]["increment_bytes"] == pytest.approx(size, rel=0.01), line
    assert kept.numel() == 1_000_000


def test_a_library_that_is_loaded_meanwhile(tmp_path):
    pytest.importorskip("numpy")
    (tmp_path / "late.py").write_text(
        "import json, sonde\n"
        "def late():\n"
        "    import numpy as np\n"
        "    a = np.ones(2_000_000)\n"
        "    return a\n"
        "with sonde.line_memory(late) as p:\n    late()\n"
        "print(p.report(format='json'))\n")
    rows = {row["line"]: row for row in json.loads(python("late.py", cwd=tmp_path).stdout)["rows"]}
    assert rows[4]["increment_bytes"] == pytest.approx(16e6, rel=0.002)


def test_what_was_there_before_is_given_back():
    """Blocks that were taken before anything was counted: their size is found out."""
    kept = [[bytes(100) for _ in range(10_000)], [bytes(10_000) for _ in range(100)]]

    def give():
        kept.pop()
        kept.pop()
    first = give.__code__.co_firstlineno
    with sonde.line_memory(give) as ours:
        give()
    rows = by_line(ours)
    assert -rows[first + 1]["increment_bytes"] == pytest.approx(100 * 10_033, rel=0.02)
    assert -rows[first + 2]["increment_bytes"] == pytest.approx(10_000 * 133 + 85_000, rel=0.12)


OLD_BLOCKS = """
import sys, threading, tracemalloc, sonde
SMALL, LARGE, LOCKS = (int(word) for word in sys.argv[1:])
kept = [bytearray(1_000_000), [threading.Lock() for _ in range(LOCKS)],
        [bytes(100) for _ in range(SMALL)], [bytes(10_000) for _ in range(LARGE)]]
def give():
    kept.pop()
    kept.pop()
    kept.pop()
    kept[0].extend(kept[0])
with sonde.line_memory(give) as session:
    give()
tracemalloc.start()
again = [threading.Lock() for _ in range(1000)]
print(sys.getsizeof(again[0]), tracemalloc.get_traced_memory()[0])
print(session.report(format="json"))
"""


@pytest.mark.parametrize("how", ["-X dev", "debug", "malloc", "malloc_debug", "pymalloc"])
def test_what_was_there_before_with_every_allocator(tmp_path, how):
    """Debug hooks move every block, and without Python's own allocator there are no pools."""
    (tmp_path / "old.py").write_text(OLD_BLOCKS)
    words, extra = (how.split(), {}) if how[0] == "-" else ([], {"PYTHONMALLOC": how})
    said = python(*words, "old.py", 10_000, 100, 1000, cwd=tmp_path, env={**os.environ, **extra})
    first, _, report = said.stdout.partition("\n")
    lock_bytes, traced_bytes = map(int, first.split())
    increments = {row["line"]: row["increment_bytes"] for row in json.loads(report)["rows"]}
    assert -increments[7] == pytest.approx(100 * 10_033, rel=0.02)
    assert -increments[8] == pytest.approx(10_000 * 133 + 85_000, rel=0.12)
    # each with the system's lock, which is a raw block of 24 to 100 bytes; from 3.14 on, and in Debian's 3.13, it is in the
    # object: tracemalloc tells which
    has_own_block = traced_bytes / 1000 - lock_bytes > 24
    least, most = (24_000, 100_000) if has_own_block else (0, 20_000)
    assert least <= -increments[9] - 1000 * lock_bytes <= most
    assert has_own_block or sys.version_info >= (3, 13)
    assert increments[10] == pytest.approx(1_000_000, rel=0.01)


# ------------------------------------------------------------------- lines, frames, threads

def test_a_byte_counts_in_one_line(tmp_path):
    names, _ = program(tmp_path, """
def outer(n):
    def inner(size):
        return bytearray(size)
    kept = []
    for _ in range(n):
        kept.append(inner(1_000_000))
    return kept

def recursive(n):
    mine = bytearray(1_000_000)
    if n == 0:
        return [mine]
    return [mine] + recursive(n - 1)
""")
    with sonde.line_memory(names["outer"], names["recursive"]) as ours:
        kept = [names["outer"](5), names["recursive"](4)]
    rows = by_line(ours)
    assert rows[4]["increment_bytes"] == 5 * (1_000_000 + HEAD) and rows[4]["occurrences"] == 5
    assert 0 <= rows[7]["increment_bytes"] < 2000
    assert rows[11]["increment_bytes"] == 5 * (1_000_000 + HEAD)
    assert rows[14]["increment_bytes"] < 5000 and rows[14]["peak_bytes"] > 3_000_000
    assert len(kept) == 2


def test_threads_count_their_own():
    inside = threading.Barrier(4)

    def work(size):
        mine = bytearray(size)
        inside.wait()
        del mine
    first = work.__code__.co_firstlineno
    with sonde.line_memory(work) as ours:
        threads = [threading.Thread(target=work, args=(1_000_000,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    rows = by_line(ours)
    assert rows[first + 1]["increment_bytes"] == 4 * (1_000_000 + HEAD)
    assert rows[first + 3]["increment_bytes"] == -4 * (1_000_000 + HEAD)
    assert rows[first]["occurrences"] == 4
    assert rows[first]["increment_bytes"] < rows[first]["usage_bytes"] + MIB


def test_local_variables_go_after_the_last_line(one_thread):
    """What a call left behind is given back by the next: increments stay what is in use."""
    def work():
        block = bytearray(1_000_000)
        return len(block)
    first = work.__code__.co_firstlineno
    with sonde.line_memory(work) as ours:
        for _ in range(10):
            work()
    rows = by_line(ours)
    assert rows[first + 1]["increment_bytes"] == 10 * (1_000_000 + HEAD)
    assert sum(row["increment_bytes"] for row in rows.values()) == rows[first + 2]["usage_bytes"]


def test_what_the_interpreter_keeps_for_code_is_its_def_lines(one_thread):
    """3.9 and 3.10 make a cache at a function's 1024th call, between the call and its first line."""
    def work(blocks):
        blocks.append(bytearray(100))
        return len(blocks)
    first, blocks = work.__code__.co_firstlineno, []
    with sonde.line_memory(work) as one:
        for _ in range(1000):
            work(blocks)
        with sonde.line_memory(work) as other:  # has counts of its own
            for _ in range(100):
                work(blocks)
    for session, calls in ((one, 1100), (other, 100)):
        rows = by_line(session)
        assert rows[first + 2]["occurrences"] == calls
        assert sum(row["increment_bytes"] for row in rows.values()) == rows[first + 2]["usage_bytes"], calls


def test_exceptions_and_generators():
    def generate(n):
        for i in range(n):
            block = bytearray(100_000)
            yield block
        raise ValueError

    first = generate.__code__.co_firstlineno
    with sonde.line_memory(generate) as ours:
        with pytest.raises(ValueError):
            list(generate(3))
    rows = by_line(ours)
    assert rows[first + 2]["occurrences"] == 3 and rows[first + 4]["occurrences"] == 1
    assert rows[first + 3]["occurrences"] == 6  # each time it is left, and gone on with
    assert rows[first + 2]["allocated_bytes"] == 3 * (100_000 + HEAD)


# ---------------------------------------------------------------------- memory_profiler

def masked(text):
    lines = [re.sub(r" *-?\d+\.\d MiB", "#", line) for line in text.splitlines()]
    return "\n".join(line.rstrip() for line in lines).strip()


LAYOUT = """
def allocate(n):
    a = [1] * n

    b = [2] * (2 * n)
    for i in range(3):
        c = list(range(n))
    def inner(x):
        return x
    inner(1)
    del b
    return a
"""


def test_the_text_is_memory_profilers(tmp_path, capsys):
    memory_profiler = pytest.importorskip("memory_profiler")
    names, _ = program(tmp_path, LAYOUT)
    profiler = memory_profiler.LineProfiler()
    profiler(names["allocate"])(100_000)
    memory_profiler.show_results(profiler)
    expected = capsys.readouterr().out
    with sonde.line_memory(names["allocate"]) as ours:
        names["allocate"](100_000)
    ours.print()
    said = capsys.readouterr().out
    assert masked(said) == masked(expected)
    assert "#" in masked(said) and "Occurrences" in said  # and with the same occurrences


def test_the_resident_size_over_time(tmp_path):
    (tmp_path / "slow.py").write_text(
        "import sonde, time\n"
        "def slow():\n"
        "    time.sleep(0.35)\n"
        "    a = bytearray(40_000_000)\n"
        "    time.sleep(0.35)\n"
        "with sonde.line_memory(slow, path='slow.sonde') as p:\n    slow()\n"
        "p.dump_stats('mprofile.dat')\n")
    python("slow.py", cwd=tmp_path)
    lines = (tmp_path / "mprofile.dat").read_text().splitlines()
    sizes = [float(line.split()[1]) for line in lines if line.startswith("MEM ")]
    assert lines[0].startswith("CMDLINE ") and 4 <= len(sizes) <= 30
    assert max(sizes) - min(sizes) == pytest.approx(40_000_000 / MIB, abs=4)


def test_memit_tells_the_peak():
    most, more = memit(lambda: len(bytearray(50_000_000)))
    assert 50_000_000 <= more < 51 * MIB and most > more
    with pytest.raises(ZeroDivisionError):
        memit(lambda: 1 / 0)


# ------------------------------------------------------------------------------- others

@pytest.mark.parametrize("order", ["theirs, ours", "ours, theirs"])
def test_tracemalloc_may_start_and_end_at_any_time(order):
    def work():
        return [bytes(1000) for _ in range(100)]
    first = work.__code__.co_firstlineno
    for _ in range(2):
        if order == "theirs, ours":
            tracemalloc.start()
        session = sonde.line_memory(work)
        session.enable()
        if order == "ours, theirs":
            tracemalloc.start()
        kept = work()
        session.stop()
        assert tracemalloc.is_tracing()
        assert sum(one.size for one in tracemalloc.take_snapshot().statistics("filename")) > 100_000
        tracemalloc.stop()
        row = by_line(session)[first + 1]
        # tracemalloc's own table is the program's, when it is put over what counts
        own = 2000 if order == "theirs, ours" else 20_000
        assert 100 * 1033 <= row["increment_bytes"] < 100 * 1033 + own, row
        del kept
    again = sonde.line_memory(work)
    with again:
        kept = work()
    assert by_line(again)[first + 1]["increment_bytes"] >= 100 * 1033


def test_lines_and_memory_of_one_function():
    def work(n):
        kept = []
        for i in range(n):
            kept.append(bytearray(1000))
        return kept
    first = work.__code__.co_firstlineno
    with sonde.lines(work) as time_of, sonde.line_memory(work) as memory_of:
        work(10)
    hits = {row["line"]: row["hits"]
            for row in json.loads(time_of.report(format="json"))["rows"] if row["hits"]}
    assert hits == {first + 1: 1, first + 2: 11, first + 3: 10, first + 4: 1}
    rows = by_line(memory_of)
    assert rows[first + 3]["occurrences"] == 10
    assert 10 * (1000 + HEAD) <= rows[first + 3]["increment_bytes"] < 10 * (1000 + HEAD) + 200


PART = """
#include <stdlib.h>
long calls;
void *volatile kept;
long take(void)
{
    free(kept);
    kept = malloc(5000);
    return ++calls;
}
"""


def lengthen_relro(path, more):
    """The loader rounds its end down to pages; linkers may let it end anywhere."""
    data = bytearray(path.read_bytes())
    (table,), (size, count) = struct.unpack_from("<Q", data, 32), struct.unpack_from("<HH", data, 54)
    for at in range(table, table + size * count, size):
        if struct.unpack_from("<I", data, at)[0] == 0x6474e552:  # PT_GNU_RELRO
            (old,) = struct.unpack_from("<Q", data, at + 40)
            struct.pack_into("<Q", data, at + 40, old + more)
            path.write_bytes(data)
            return
    pytest.fail("the library has no part that becomes read-only")


@pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler")
def test_a_page_that_is_read_only_in_part_stays_writable(tmp_path):
    (tmp_path / "part.c").write_text(PART)
    run("cc", "-shared", "-fPIC", "-o", "part.so", "part.c", "-Wl,-z,relro,-z,lazy", cwd=tmp_path)
    lengthen_relro(tmp_path / "part.so", 64)  # the slots that are bound later lie there
    (tmp_path / "use.py").write_text(
        "import ctypes, sonde\n"
        "take = ctypes.CDLL('./part.so').take\n"
        "def work():\n    return take()\n"
        "with sonde.line_memory(work) as session:\n    work()\n"
        "print(take())\n"
        "print(session.report(format='json'))\n")
    calls, _, report = python("use.py", cwd=tmp_path).stdout.partition("\n")
    rows = {row["line"]: row for row in json.loads(report)["rows"]}
    assert calls == "2" and 5000 <= rows[4]["allocated_bytes"] < 8000


LATE = r"""
#define _GNU_SOURCE
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

static pthread_key_t key;

/* The library of threads calls destructors anew while there are values, four times: memory is taken in the last one. */
static void on_end(void *turn)
{
    if ((uintptr_t)turn < PTHREAD_DESTRUCTOR_ITERATIONS)
        pthread_setspecific(key, (char *)turn + 1);
    else
        free(malloc(1000));
}

static void *begin(void *unused)
{
    pthread_setspecific(key, (void *)1);
    return unused;
}

int run_thread(void)
{
    size_t         size = 1 << 20;
    void          *stack = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_t attributes;
    pthread_t      thread;

    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, stack, size);
    int failed = pthread_create(&thread, &attributes, begin, NULL);
    if (!failed)
        pthread_join(thread, NULL);
    mprotect(stack, size, PROT_NONE); /* where its memory was, nothing else comes */
    return failed;
}

__attribute__((constructor)) static void load(void)
{
    for (int i = 0; i < 64; i++) /* the values of later keys than 32 are in a block of their own, which is freed last */
        pthread_key_create(&key, on_end);
}
"""

LATE_PROGRAM = """
import ctypes, os, sonde

def work(late):
    return late.run_thread()

late = ctypes.CDLL("./late.so")
with sonde.line_memory(work):
    assert work(late) == 0
    child = os.fork()
    if child == 0:
        os._exit(3)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler")
def test_a_thread_that_takes_memory_as_its_last_deed(tmp_path):
    (tmp_path / "late.c").write_text(LATE)
    (tmp_path / "late.py").write_text(LATE_PROGRAM)
    run("cc", "-shared", "-fPIC", "-pthread", "-o", "late.so", "late.c", cwd=tmp_path)
    assert python("late.py", cwd=tmp_path).stdout == "3\n"
