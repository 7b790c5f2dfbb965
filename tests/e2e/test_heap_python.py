# SPDX-License-Identifier: Apache-2.0
"""sonde run --heap of Python programs: who holds what, by function and line, as the program states it itself.

With every CPython that the machine has: each has its own frames.
"""
import collections
import json
import os
import re
import shutil
import subprocess

import pytest

from python_tools import SONDE, interpreters, own_interpreter, run, sonde_run

pytestmark = pytest.mark.skipif(not (os.access(SONDE, os.X_OK) and shutil.which("cc")),
                                reason="needs sonde and a C compiler")
SLACK = 64  # bytes that a bytearray takes more than it is asked for, at most

LIBRARY = r"""
#include <pthread.h>
#include <stdlib.h>
static void *volatile kept;
__attribute__((noinline)) void library_take(size_t size) { kept = malloc(size); __asm__ volatile("" ::: "memory"); }
__attribute__((noinline)) void library_call(void (*back)(void)) { back(); __asm__ volatile("" ::: "memory"); }
static void *take(void *size) { library_take((size_t)size); return NULL; }
void library_thread(size_t size)
{
    pthread_t thread;
    pthread_create(&thread, NULL, take, (void *)size);
    pthread_join(thread, NULL);
}
"""

# A comment after a line: which stack of functions it has, how many blocks of how many bytes it takes, how many stay.
PROGRAM = r"""
import ctypes, gc, os, sys, threading
library = ctypes.CDLL(sys.argv[1])                  # its calls are without the interpreter lock
locked = ctypes.PyDLL(sys.argv[1])                  # with it
for one in (library, locked):
    one.library_take.argtypes = [ctypes.c_size_t]
    one.library_thread.argtypes = [ctypes.c_size_t]
back = ctypes.CFUNCTYPE(None)
kept = []
sys.setrecursionlimit(10000)
def leak(size):
    kept.append(bytearray(size))                    #= recurse,recurse,recurse,recurse leak: 1 x 300000, 1 stays
def recurse(depth):
    if depth:
        recurse(depth - 1)
    else:
        leak(300000)
def generate():
    for size in (300100, 300100):
        kept.append(bytearray(size))                #= consume generate: 2 x 300100, 2 stay
        yield size
def consume():
    return sum(generate())
def temporary():
    for i in range(10):
        bytearray(300200)                           #= temporary: 10 x 300200, 0 stay
class Owner:
    def __init__(self):
        self.data = bytearray(300300)               #= make Owner.__init__: 1 x 300300, 1 stays
def make():
    kept.append(Owner())
def key(x):
    kept.append(bytearray(300400))                  #= order key: 3 x 300400, 3 stay
    return x
def order():
    sorted([3, 1, 2], key=key)
def in_thread():
    kept.append(bytearray(300500))                  #= run in_thread: 4 x 300500, 4 stay
def without_lock():
    library.library_take(300600)                    #= without_lock library_take: 1 x 300600, 1 stays
def with_lock():
    locked.library_take(300700)                     #= with_lock library_take: 1 x 300700, 1 stays
def other_thread():
    library.library_thread(300800)
def called_back():
    kept.append(bytearray(300900))                  #= calls_back library_call called_back: 1 x 300900, 1 stays
def calls_back():
    library.library_call(back(called_back))
def deep(n):
    if n:
        deep(n - 1)
    else:
        kept.append(bytearray(301000))              #= deep deep: 1 x 301000, 1 stays
def two_lines():
    kept.append(bytearray(301100))                  #= two_lines: 1 x 301100, 1 stays
    kept.append(bytearray(301200))                  #= two_lines: 1 x 301200, 1 stays
def made(n):
    for i in range(n):                              # the code object is freed each time: another gets its address
        text = ("\n" * (i % 2)) + "kept.append(bytearray(%d))" % (301300 + 100 * (i % 2))
        exec(compile(text, "made%d.py" % (i % 2), "exec"))
recurse(3)
consume()
temporary()
make()
order()
for thread in [threading.Thread(target=in_thread) for i in range(4)]:
    thread.start()
    thread.join()
without_lock()
with_lock()
other_thread()
calls_back()
deep(60)
two_lines()
made(20)
gc.collect()
os._exit(7)
"""
STATED = re.compile(r"#= (?P<stack>[\w,. ]+): (?P<taken>\d+) x (?P<size>\d+), (?P<left>\d+) stays?$")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("library")
    (folder / "library.c").write_text(LIBRARY)
    subprocess.run(["cc", "-O1", "-g", "-fPIC", "-shared", "-pthread", "-o", folder / "liblibrary.so", folder / "library.c"],
                   check=True, timeout=120)
    return str(folder / "liblibrary.so")


def read_heap(trace):
    return json.loads(run(SONDE, "report", trace, "--view", "heap", "--json", cwd=".").stdout)


def functions(row):
    """The names of a stack's functions, outermost first, without a module's code."""
    return [re.sub(r" \(.*", "", frame) for frame in reversed(row["stack"]) if not frame.startswith("<module>")]


def by_line(report, name, memory="malloc"):
    """Of each line of a file that is innermost in its language: [blocks, bytes, blocks not freed, stacks]."""
    lines = collections.defaultdict(lambda: [0, 0, 0, []])
    for row in report["rows"]:
        place = next((frame for frame in row["stack"] if ".py:" in frame), None)
        found = re.search(r"/(\w+\.py):(\d+)\)$", place) if place else None
        if row["memory"] == memory and found and found.group(1) == name and row["bytes"] / row["allocations"] > 250000:
            line = lines[int(found.group(2))]
            line[0] += row["allocations"]
            line[1] += row["bytes"]
            line[2] += row["leaked_blocks"]
            line[3].append(functions(row))
    return lines


def check_lines(report, source, name):
    found, stated, names = by_line(report, name), {}, {"run", *re.findall(r"def (\w+)", source)}
    for number, text in enumerate(source.split("\n"), 1):
        says = STATED.search(text)
        if says:
            stated[number] = says
    assert set(stated) <= set(found), (sorted(stated), dict(found))
    for number, says in stated.items():
        blocks, size, left, stacks = found[number]
        taken = int(says["taken"])
        assert (blocks, left) == (taken, int(says["left"])), (number, found[number])
        assert 0 <= size - taken * int(says["size"]) <= taken * SLACK, (number, size)
        wanted = [each.split(".")[-1] for each in says["stack"].replace(",", " ").split()]
        for stack in stacks:  # those of the program: between them are ctypes and libffi
            own = [name.split(".")[-1] for name in stack if name.startswith("library_") or name.split(".")[-1] in names]
            assert own[-len(wanted):] == wanted and stack[-1].split(".")[-1] == wanted[-1], (number, stack)
    return found


@pytest.mark.parametrize("interpreter, include", interpreters())
def test_allocations_have_the_lines_that_made_them(interpreter, include, library, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    sonde_run(["--heap", "-o", "t.sonde"], "program.py", library, interpreter=interpreter, cwd=tmp_path, status=7)
    report = read_heap(tmp_path / "t.sonde")
    found = check_lines(report, PROGRAM, "program.py")

    deep = next(stack for number in found for stack in found[number][3] if stack.count("deep") > 2)
    assert deep == ["deep"] * 61
    # No line of Python has any part in a thread of a library: its native frames are as they are.
    row, = (row for row in report["rows"] if row["bytes"] == 300800)
    assert functions(row)[-2:] == ["take", "library_take"]
    assert not any(".py:" in frame for frame in row["stack"])
    # Two code objects that take turns at one address are told apart.
    made = {row["stack"][0]: (row["allocations"], row["bytes"] // row["allocations"] // 100 * 100)
            for row in report["rows"] if "<module> (made" in row["stack"][0] and row["bytes"] > 2500000}
    assert made == {"<module> (made0.py:1)": (10, 301300), "<module> (made1.py:2)": (10, 301400)}
    # Nothing of the interpreter stands among the frames of Python.
    for row in report["rows"]:
        if any("program.py:" in frame for frame in row["stack"]):
            assert not [frame for frame in row["stack"] if re.match(r"_?PyEval|_?PyObject|_start|main ", frame)], row["stack"]


OBJECTS = r"""
import os
def objects():
    return [[None] * 20 for i in range(20000)]
def smaller():
    return [bytearray(600) for i in range(1000)]
kept = objects(), smaller()
os._exit(0)
"""


@pytest.mark.parametrize("interpreter, include", interpreters())
def test_arenas_of_small_objects_are_told_apart(interpreter, include, tmp_path):
    """A line that happens to need the next arena is not charged for it; with PYTHONMALLOC=malloc each is for its own."""
    (tmp_path / "program.py").write_text(OBJECTS)
    sonde_run(["--heap", "-o", "t.sonde"], "program.py", interpreter=interpreter, cwd=tmp_path)
    report = read_heap(tmp_path / "t.sonde")
    arenas = [row for row in report["rows"] if row["stack"] == ["[pymalloc arena] ()"]]
    lockless = "t" in os.path.basename(interpreter)
    if not lockless:  # which has another allocator
        arena, = arenas
        assert arena["memory"] == "mapped" and 3 << 20 < arena["leaked_bytes"] < 16 << 20
        assert arena["bytes"] % (256 << 10) == 0
        mapped = [row for row in report["rows"] if row["memory"] == "mapped" and
                  any("program.py:" in frame for frame in row["stack"])]
        assert mapped == []
        for name, least in (("smaller", 1000 * 600), ("objects", 20000 * 8)):
            sizes = sum(row["leaked_bytes"] for row in report["rows"] if name in "".join(row["stack"]))
            assert least <= sizes < least * 1.5, (name, sizes)

    environment = {**os.environ, "PYTHONMALLOC": "malloc"}
    sonde_run(["--heap", "-o", "m.sonde"], "program.py", interpreter=interpreter, cwd=tmp_path, env=environment,
              status=None if lockless else 0)
    if lockless:
        return
    rows = read_heap(tmp_path / "m.sonde")["rows"]
    assert not [row for row in rows if "[pymalloc arena] ()" in row["stack"]]
    taken = sum(row["leaked_blocks"] for row in rows if "objects" in "".join(row["stack"]))
    assert 40000 <= taken <= 40010  # each list, and its items
    size = sum(row["leaked_bytes"] for row in rows if "objects" in "".join(row["stack"]))
    assert 20000 * (20 * 8 + 56) <= size <= 20000 * (20 * 8 + 80) + (1 << 18)


FORKS = r"""
import os, signal, sys, time
def child():
    kept = bytearray(300000)
    os._exit(0)
def killed():
    kept = bytearray(300100)
    more = bytearray(300200)
    os.kill(os.getpid(), signal.SIGKILL)
for work in child, killed:
    pid = os.fork()
    if pid == 0:
        work()
    os.waitpid(pid, 0)
"""


@pytest.mark.parametrize("how", ["", "=4K"], ids=["full", "sampled"])  # each of these blocks is sampled for certain
@pytest.mark.parametrize("interpreter, include", own_interpreter())
def test_forked_children_have_their_lines(interpreter, include, how, tmp_path):
    """Their names are read before there is a file for them. A child that is killed has what it held before."""
    (tmp_path / "program.py").write_text(FORKS)
    sonde_run(["--heap" + how, "-o", "t.sonde"], "program.py", interpreter=interpreter, cwd=tmp_path)
    rows = [row for row in read_heap(tmp_path / "t.sonde")["rows"] if 250000 < row["bytes"] / row["allocations"] < 330000
            and "program.py:" in row["stack"][0]]
    found = {re.search(r"^(\w+) .*:(\d+)", row["stack"][0]).groups() for row in rows}
    assert found >= {("child", "4"), ("killed", "7"), ("killed", "8")}
    assert len({row["process"] for row in rows}) == 2


@pytest.mark.parametrize("interpreter, include", own_interpreter())
def test_lines_of_allocations_are_in_every_export(interpreter, include, tmp_path):
    """A program given by -c, and what its stacks look like for other tools and in the text."""
    code = "import os\ndef take():\n    return bytearray(5000000)\nkept = take()\nos._exit(0)\n"
    sonde_run(["--heap", "-o", "t.sonde"], "-c", code, interpreter=interpreter, cwd=tmp_path)
    text = run(SONDE, "report", "t.sonde", "--view", "heap", cwd=tmp_path).stdout
    assert re.search(r"5,000,0\d\d .* <module>  <string>:4\n *5,000,0\d\d .* take  <string>:3  \(1\)\n", text)
    folded = run(SONDE, "export", "t.sonde", "--to", "folded", "--heap", "leaked", "-o", "-", cwd=tmp_path).stdout
    assert re.search(r";<module> \(<string>:4\);take \(<string>:3\) 5000\d\d\d\n", folded)
    run(SONDE, "export", "t.sonde", "--to", "speedscope", "--heap", "peak", "-o", "t.json", cwd=tmp_path)
    frames = json.loads((tmp_path / "t.json").read_text())["shared"]["frames"]
    assert ("take", "<string>", 2) in {(one["name"], one.get("file"), one.get("line")) for one in frames}  # its first
    for form, name in (("pprof", "t.pb.gz"), ("html", "t.html"), ("svg", "t.svg")):
        words = ["--heap", "leaked"] if form == "pprof" else []
        done = run(SONDE, "export", "t.sonde", "--to", form, *words, "-o", name, cwd=tmp_path, status=None)
        assert done.returncode == 0 or form == "svg", done.stderr


@pytest.mark.parametrize("interpreter, include", own_interpreter())
def test_lines_are_those_of_tracemalloc(interpreter, include, tmp_path):
    """What tracemalloc says of large blocks of the same program, to the byte."""
    (tmp_path / "program.py").write_text("""
import json, os, sys, tracemalloc
if sys.argv[1:]:
    tracemalloc.start(1)
def strings(n):
    return ["x" * (100000 + i) for i in range(n)]
def buffers():
    some = []
    for i in range(5):
        some.append(bytearray(200000))
        some.append(b"y" * 300000)
    return some
kept = strings(20), buffers(), [0] * 100000
found = {}
if not sys.argv[1:]:
    os._exit(0)
for trace in tracemalloc.take_snapshot().traces:
    if trace.size >= 90000 and trace.traceback[0].filename == __file__:
        line = found.setdefault(trace.traceback[0].lineno, [0, 0])
        line[0] += 1
        line[1] += trace.size
with open("said.json", "w") as out:
    json.dump(found, out)
os._exit(0)
""")
    run(interpreter, "program.py", "traced", cwd=tmp_path)
    sonde_run(["--heap", "-o", "t.sonde"], "program.py", interpreter=interpreter, cwd=tmp_path)
    said = {int(line): tuple(numbers) for line, numbers in json.loads((tmp_path / "said.json").read_text()).items()}
    found = collections.defaultdict(lambda: [0, 0])
    for row in read_heap(tmp_path / "t.sonde")["rows"]:
        at = re.search(r"/program\.py:(\d+)\)$", row["stack"][0])
        if at and row["leaked_blocks"] and row["leaked_bytes"] / row["leaked_blocks"] >= 90000:
            found[int(at.group(1))][0] += row["leaked_blocks"]
            found[int(at.group(1))][1] += row["leaked_bytes"]
    assert len(said) == 4
    assert {line: tuple(found[line]) for line in said} == said
