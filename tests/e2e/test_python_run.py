# SPDX-License-Identifier: Apache-2.0
"""Programs as they are: `python -m sonde`, `sonde run --lines F`, `@profile`."""
import json
import os
import pickle
import pstats
import re
import signal
import subprocess
import sys

import pytest

from python_tools import FREE, PROGRAMS, SONDE, interpreters, python, rows, run, sonde_run

SEEDS = PROGRAMS.parents[1] / "seeds"

# What a program can know of how it was started.
SELF = """
import __main__, json, os, sys, traceback
def frames():
    return [frame.name for frame in traceback.extract_stack()]
print(json.dumps({
    "argv": sys.argv, "path": sys.path[:2], "main": sorted(vars(__main__)), "file": __file__,
    "name": __name__, "spec": str(__spec__ and __spec__.name), "frames": frames(),
    "module": sys.modules["__main__"] is __main__, "flags": str(sys.flags), "cwd": os.getcwd(),
    "warn": sys.warnoptions, "x": sorted(sys._xoptions), "recursion": sys.getrecursionlimit(),
    "stdin": sys.stdin.read(),
}))
"""


@pytest.mark.parametrize("words", [["prog.py", "a", "-o", "--lines"], ["-m", "prog", "-x", "b c"],
                                   ["folder"], ["-W", "error", "-X", "dev", "prog.py"],
                                   ["-u", "-O", "-m", "package.inner"]])
def test_a_program_cannot_tell(words, tmp_path):
    """Not by argv, path, __main__, flags, standard input, nor by its own stack."""
    for name in ("prog.py", "folder/__main__.py", "package/inner.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(SELF)
    alone = json.loads(python(*words, cwd=tmp_path, input="typed").stdout)
    at = next(i for i, word in enumerate(words) if word in ("-m", "prog.py", "folder"))
    for option in (["--functions"], ["--lines", "frames", "--sample"]):
        done = python(*words[:at], "-m", "sonde", "-o", "t.sonde", *option, *words[at:],
                      cwd=tmp_path, input="typed") if words[at] != "folder" else \
            sonde_run([*option, "-o", "t.sonde"], *words, cwd=tmp_path, input="typed")
        assert json.loads(done.stdout) == alone
        assert done.stderr in ("", "sonde: recorded t.sonde; next: sonde report t.sonde\n")
        assert rows(tmp_path / "t.sonde", option[0][2:])


def test_what_a_program_pickles_and_spawns_works(tmp_path):
    done = python("-m", "sonde", PROGRAMS / "processes.py", cwd=tmp_path)
    assert "processes.py" in done.stdout and "work)" in done.stdout


def test_the_table_is_that_of_cprofile(tmp_path):
    """Letter for letter but for the digits; `-s` orders it."""
    (tmp_path / "prog.py").write_text("def f(n):\n    return n and f(n - 1)\nf(5)\ndivmod(7, 2)\n")

    def masked(text):
        rows = [re.sub(r"\d+\.\d+", "0.000", line) for line in text.splitlines()]
        table = [line for line in rows if "prog.py" in line or "built-in method builtins.divmod" in line]
        table = [re.sub(r"\S*prog\.py", "prog.py", line) for line in table]
        return rows[1:5], [table[0], *sorted(table[1:])]  # cProfile has equal ones by their addresses

    ours = masked(python("-m", "sonde", "-s", "ncalls", "prog.py", cwd=tmp_path).stdout)
    theirs = masked(python("-m", "cProfile", "-s", "ncalls", "prog.py", cwd=tmp_path).stdout)
    assert ours == theirs and len(ours[1]) == 3


@pytest.mark.parametrize("words, status", [
    (["-o"], 2), (["--nothing", "x.py"], 2), (["-m"], 2), (["absent.py"], 2),
    (["report", "absent.sonde"], 1), (["nonsense"], 2)])
def test_wrong_use_is_one_line(words, status, tmp_path):
    done = python("-m", "sonde", *words, cwd=tmp_path, status=status)
    assert done.stderr.count("\n") == 1 and "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_python_that_does_not_listen(tmp_path):
    (tmp_path / "prog.py").write_text("print('ran')")
    done = python("-E", "-m", "sonde", "prog.py", cwd=tmp_path, status=None)
    assert done.returncode == 2 and "python -E" in done.stderr or "No module named" in done.stderr
    done = run(SONDE, "run", "--functions", "-o", "t.sonde", "--", sys.executable, "-I", "prog.py",
               cwd=tmp_path)
    assert done.stdout == "ran\n" and "recorded nothing" in done.stderr and "-I" in done.stderr
    done = run(SONDE, "run", "-q", "-o", "t.sonde", "--", sys.executable, "-I", "prog.py", cwd=tmp_path)
    assert done.stdout == "ran\n" and "recorded nothing" in done.stderr and "-I" in done.stderr


def test_help(tmp_path):
    assert "python -m sonde" in python("-m", "sonde", "-l", "--help", cwd=tmp_path).stdout


@pytest.mark.parametrize("options, said", [
    ([], "ops,sample,unasked . . ."), (["-o", "x.prof"], "functions . . ."),
    (["-o", "x.lprof"], "lines @profile . ."), (["-o", "x.dat"], "line-memory . @profile ."),
    (["-o", "x.folded"], "ops,sample,unasked . . ."),
    (["--shapes"], "ops,shapes . . ."), (["--timeline"], "functions,timeline . . ."),
    (["--ops", "--lines", "a,b.c", "--sample"], "ops,lines,sample a,b.c . ."),
    (["--line-memory", "f", "--sample", "250", "--python-only"],
     "functions,python-only,line-memory,sample . f 250"),
])
def test_what_the_program_is_told(options, said, tmp_path):
    text = "echo $SONDE_PROBES ${SONDE_LINES-.} ${SONDE_LINE_MEMORY-.} ${SONDE_SAMPLE-.}"
    done = run(SONDE, "run", *options, "--", "sh", "-c", text, cwd=tmp_path,
               env={**os.environ, "SONDE_LINES": "of an outer run", "SONDE_SAMPLE": "7"})
    assert done.stdout.split() == said.split()


BUSY = """\
import time
def work():
    end = time.monotonic() + 0.3
    while time.monotonic() < end: pass
work()
"""


def test_without_options_it_is_sampled(tmp_path):
    """And that is what `sonde report` shows, since there is nothing else; nothing of ours is in it."""
    (tmp_path / "prog.py").write_text(BUSY)
    done = sonde_run(["-o", "t.sonde"], "prog.py", cwd=tmp_path)
    assert done.stderr == ""
    text = run(SONDE, "report", "t.sonde", cwd=tmp_path).stdout
    # but the Python, if it is in a checkout of that name
    assert "Samples:" in text and "work  prog.py" in text and "sonde/" not in text.replace(sys.executable, "")
    shown = sonde_run(["--print"], "prog.py", cwd=tmp_path)
    assert "work  prog.py" in shown.stdout and shown.stderr == ""
    assert not (tmp_path / "python.sonde").exists()


@pytest.mark.parametrize("options, expected, others", [
    (["--functions"], "function calls in", ""), (["--lines", "work"], "Line #      Hits", ""),
    (["--line-memory", "work"], "Mem usage", ""), (["--sample"], "Samples:", "sonde: the trace has more: --view functions\n"),
    (["--functions", "--sample"], "function calls in", "sonde: the trace has more: --view samples\n"),
    (["--functions", "--lines", "work", "--sample"], "function calls in",
     "sonde: the trace has more: --view lines, --view samples\n"),
])
def test_a_report_shows_what_there_is(options, expected, others, tmp_path):
    (tmp_path / "prog.py").write_text(BUSY)
    sonde_run([*options, "-o", "t.sonde"], "prog.py", cwd=tmp_path)
    done = run(SONDE, "report", "t.sonde", cwd=tmp_path)
    assert expected in done.stdout and done.stderr == others


# A range of a program without torch: to import that takes longer than all the rest.
MARKED = "import sys\nsys.modules['torch'] = None\nimport sonde\n" + BUSY.replace("\nwork()", "\nwith sonde.record_function('piece'):\n    work()")


def test_print_shows_all_that_there_is(tmp_path):
    """One range does not hide the samples; in a report a line on stderr tells of them."""
    (tmp_path / "prog.py").write_text(MARKED)
    shown = sonde_run(["--print"], "prog.py", cwd=tmp_path)
    assert "    piece       100.00%" in shown.stdout and re.search(r"work  \S*prog\.py", shown.stdout)
    assert shown.stderr == ""
    # A sort key is one of the first view's.
    shown = sonde_run(["--print", "--sort", "cpu_time_total"], "prog.py", cwd=tmp_path)
    assert re.search(r"work  \S*prog\.py", shown.stdout) and shown.stderr == ""
    sonde_run(["-o", "t.sonde"], "prog.py", cwd=tmp_path)
    told = run(SONDE, "report", "t.sonde", cwd=tmp_path)
    assert "piece" in told.stdout and "work" not in told.stdout
    assert told.stderr == "sonde: the trace has more: --view samples, --view functions\n"
    assert run(SONDE, "report", "t.sonde", "--csv", cwd=tmp_path).stderr == ""
    sonde_run(["--ops", "-o", "t.sonde"], "prog.py", cwd=tmp_path)
    assert run(SONDE, "report", "t.sonde", cwd=tmp_path).stderr == ""


def test_nobody_reads_what_is_shown(tmp_path):
    """`| head -1`: sonde ends by the signal that anyone would, and leaves nothing behind."""
    (tmp_path / "prog.py").write_text(BUSY)
    (tmp_path / "tmp").mkdir()
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run([SONDE, "run", "--print", "--", sys.executable, "prog.py"], cwd=tmp_path,
                              stdout=write, stderr=subprocess.PIPE, timeout=60,
                              env={**os.environ, "TMPDIR": str(tmp_path / "tmp")})
    finally:
        os.close(write)
    assert done.returncode == -signal.SIGPIPE and done.stderr == b""
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.parametrize("text", ["", "import os; os._exit(0)"])
def test_nothing_in_it(text, tmp_path):
    """A program that is over before the first sample."""
    (tmp_path / "prog.py").write_text(text)
    for _ in range(5):  # a busy machine may come to a first sample after all
        sonde_run(["-o", "t.sonde"], "prog.py", cwd=tmp_path)
        done = run(SONDE, "report", "t.sonde", cwd=tmp_path)
        if "Samples" not in done.stdout:
            break
    assert done.stderr.startswith("sonde: report t.sonde: the trace is empty")


def test_the_format_tells_what_to_record(tmp_path):
    (tmp_path / "prog.py").write_text(BUSY)
    sonde_run(["-o", "p.prof"], "prog.py", cwd=tmp_path)
    assert any(name == "work" for _, _, name in pstats.Stats(str(tmp_path / "p.prof")).stats)
    sonde_run(["-o", "p.folded"], "prog.py", cwd=tmp_path)
    assert "prog.py:1);work (" in (tmp_path / "p.folded").read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.folded", "p.prof", "prog.py"]


@pytest.mark.parametrize("options, told", [
    ([], "no samples are taken"), (["--sample"], "--sample is not recorded"),
    (["--functions"], "--functions is not recorded"), (["--lines", "f"], "--lines is not recorded"),
    (["--line-memory", "f"], "--line-memory is not recorded"),
])
def test_a_python_that_the_probes_were_not_built_for(options, told, tmp_path):
    """It runs as if alone, and so do the Pythons that it starts; one line says what is missing."""
    mine = "%d.%d" % sys.version_info[:2] + "t" * FREE
    other = next((each.values[0] for each in interpreters() if each.id != mine), None)
    if not other:
        pytest.skip("there is one Python on this machine: no other to try")
    other = os.path.realpath(other)  # the environment that it was found in may have a sonde of its own
    (tmp_path / "prog.py").write_text(
        "import subprocess, sys\nprint('it runs', sys.argv[1:], flush=True)\n"
        "if len(sys.argv) < 3: subprocess.run([sys.executable, __file__, *sys.argv[1:], 'again'])\n"
        "sys.exit(3)\n")
    done = run(SONDE, "run", "-q", *options, "-o", "t.sonde", "--", other, "prog.py", "one", cwd=tmp_path, status=3)
    assert done.stdout == "it runs ['one']\nit runs ['one', 'again']\n"
    lines = done.stderr.splitlines()
    assert lines[0].startswith(f"sonde: {told}: this Python is 3.") and "built for another" in lines[0]
    assert "Traceback" not in done.stderr
    if not options:  # a package without the limited API has no recorder for another Python, and so there is no trace: the second line
        assert len(lines) == 1 + FREE


@pytest.mark.parametrize("options", [[], ["--sample", "2000"], ["--functions"], ["--timeline"]])
def test_a_program_that_closes_every_descriptor(options, tmp_path):
    """As daemons do: its next files have our numbers, and nothing of ours goes into them."""
    (tmp_path / "own.txt").write_text("mine" * 1000)
    (tmp_path / "prog.py").write_text(
        "import os, resource, threading\n"
        "os.closerange(3, resource.getrlimit(resource.RLIMIT_NOFILE)[0])\n"
        "own = [os.open('own.txt', os.O_RDWR) for _ in range(900)]\n"
        "def work(n):\n    return n and work(n - 1)\n"
        "def works():\n    for _ in range(3000): work(100)\n"
        "works()\n"
        "others = [threading.Thread(target=works) for _ in range(3)]\n"
        "for each in others: each.start()\nfor each in others: each.join()\n"
        "print(own[0], {os.fstat(fd).st_size for fd in own})\n")
    done = sonde_run([*options, "-o", "t.sonde"], "prog.py", cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("3 {4000}\n", "")
    assert (tmp_path / "own.txt").read_text() == "mine" * 1000
    assert run(SONDE, "check", "t.sonde", cwd=tmp_path).stdout.endswith("every checksum is right\n")
    if "--sample" not in options and options:
        calls = {row["function"]: row["calls"] for row in rows(tmp_path / "t.sonde", "functions")}
        assert calls["work"] == 4 * 3000 * 101


LOWEST = """
import os
def work(n):
    return n and work(n - 1)
seen = set()
for _ in range(1500):
    os.closerange(3, 1100)
    seen.add(os.open("/dev/null", os.O_RDONLY))
    work(100)
print(seen)
"""


@pytest.mark.parametrize("options", [[], ["--sample", "2000", "--native"], ["--functions"], ["--timeline"],
                                     ["--lines", "work"], ["--line-memory", "work"]],
                         ids=lambda options: " ".join(options) or "default")
def test_the_lowest_number_is_the_programs(options, tmp_path):
    """What we open again never has a number that the program can see, and nothing is lost by it."""
    (tmp_path / "prog.py").write_text(LOWEST)
    done = sonde_run([*options, "-o", "t.sonde"], "prog.py", cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("{3}\n", "")
    if options in (["--functions"], ["--timeline"]):
        calls = {row["function"]: row["calls"] for row in rows(tmp_path / "t.sonde", "functions")}
        assert calls["work"] == 1500 * 101


def test_a_pipe_ends_when_the_program_closes_it(tmp_path):
    """Threads of ours have no copy of what was open when they began."""
    (tmp_path / "prog.py").write_text(
        "import os, signal, time, sonde\n"
        "read, write = os.pipe()\n"
        "with sonde.sample(hz=1000, native=True):\n"
        "    time.sleep(0.05)\n"
        "    os.close(write)\n"
        "    signal.alarm(60)\n"
        "    print(os.read(read, 1))\n")
    assert python("prog.py", cwd=tmp_path).stdout == "b''\n"


def test_a_python_that_is_too_old(tmp_path):
    """It cannot be had for that one, so it is not told to install it."""
    old = os.path.expanduser("~/.pyenv/versions/3.8.18/bin/python3")
    if not os.path.exists(old):
        pytest.skip("no Python 3.8 here")
    (tmp_path / "prog.py").write_text("print('it runs')\n")
    for options, told in (([], "no samples are taken"), (["--functions"], "--functions is not recorded")):
        done = run(SONDE, "run", "-q", *options, "-o", "t.sonde", "--", old, "prog.py", cwd=tmp_path)
        assert done.stdout == "it runs\n"
        assert done.stderr.splitlines()[0] == f"sonde: {told}: this Python is 3.8, and sonde needs 3.9 or later"


def test_a_sitecustomize_that_raises(tmp_path):
    """Python tells of it and runs the program; so the program is recorded."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own/sitecustomize.py").write_text("raise ValueError('as asked')\n")
    (tmp_path / "prog.py").write_text("def work():\n    return 1\nwork()\nwork()\n")
    path = os.pathsep.join([str(tmp_path / "own"), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path}
    alone = python("prog.py", cwd=tmp_path, env=environment)
    done = sonde_run(["--functions", "-o", "t.sonde"], "prog.py", cwd=tmp_path, env=environment)
    assert "ValueError: as asked" in alone.stderr and done.stderr == alone.stderr
    assert {row["function"]: row["calls"] for row in rows(tmp_path / "t.sonde", "functions")}[
        "work"] == 2


def test_calls_on_the_timeline(tmp_path):
    """Every call with its time, as a file for Perfetto."""
    (tmp_path / "prog.py").write_text("def f(n):\n    return n and f(n - 1)\nf(5)\n")
    python("-m", "sonde", "--timeline", "--python-only", "-o", "t.json", "prog.py", cwd=tmp_path)
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    calls = [event for event in events if event.get("name", "").endswith("prog.py(1): f")]
    assert len(calls) == 6 and all(event["dur"] > 0 for event in calls)
    assert [path.name for path in tmp_path.iterdir() if path.name != "prog.py"] == ["t.json"]


# -------------------------------------------------------------------------- names

def write_package(folder):
    (folder / "pkg").mkdir()
    (folder / "pkg/__init__.py").write_text("def top():\n    return 1\n")
    (folder / "pkg/net.py").write_text(
        "class Net:\n"
        "    def forward(self, x):\n"
        "        return self.inner(x) + 1\n"
        "    def inner(self, x):\n"
        "        return [i for i in range(x)][-1]\n")
    (folder / "prog.py").write_text(
        "import json\n"
        "def outer():\n"
        "    def inside():\n"
        "        return 3\n"
        "    return inside()\n"
        "def main():\n"
        "    import pkg.net\n"
        "    outer()\n"
        "    json.dumps({})\n"
        "    return pkg.net.Net().forward(3) + pkg.top()\n"
        "main()\n")


@pytest.mark.parametrize("names, functions", [
    ("pkg.net.Net.forward", {"forward"}),
    ("pkg.net.Net", {"forward", "inner"}),
    ("Net.forward,main", {"forward", "main"}),
    ("pkg.net", {"forward", "inner"}),
    ("pkg.top", {"top"}),
    ("prog.py:main", {"main"}),
    ("outer.inside", {"inside"}),
    ("prog.py", {"main", "outer"}),
    ("json.dumps", {"dumps"}),
    ("json.encoder.JSONEncoder.encode", {"encode"}),
])
def test_functions_are_found_by_name(names, functions, tmp_path):
    write_package(tmp_path)
    done = sonde_run(["--lines", names, "-o", "t.sonde"], "prog.py", cwd=tmp_path)
    assert {row["function"].rpartition(".")[2] for row in rows(tmp_path / "t.sonde", "lines")
            if row["hits"]} == functions
    assert done.stderr == ""


def test_a_name_that_never_comes_up_is_said(tmp_path):
    write_package(tmp_path)
    done = sonde_run(["--lines", "main,pkg.nothing,dumps", "--line-memory", "math.sin", "-o", "t.sonde"],
                     "prog.py", cwd=tmp_path)
    refused = "sonde: --line-memory is not recorded: cannot record the memory of lines in a Python without the interpreter lock; use one that has it"
    assert done.stderr.splitlines() == [
        *([refused] if FREE else []),
        "sonde: --lines: the program has no Python function 'pkg.nothing'",
        "sonde: --lines: the program has no Python function 'dumps' in files of its own; of an installed package "
        "write module.dumps or file.py:dumps",
        *([] if FREE else ["sonde: --line-memory: the program has no Python function 'math.sin'"])]
    assert rows(tmp_path / "t.sonde", "lines")


def test_lists_that_are_given_several_times_add_up(tmp_path):
    write_package(tmp_path)
    done = sonde_run(["--lines", "main", "--lines=pkg.top,pkg.nothing", "-o", "t.sonde"], "prog.py", cwd=tmp_path)
    assert {row["function"] for row in rows(tmp_path / "t.sonde", "lines") if row["hits"]} == {"main", "top"}
    assert done.stderr == "sonde: --lines: the program has no Python function 'pkg.nothing'\n"


def test_a_method_that_may_be_meant_is_named(tmp_path):
    (tmp_path / "words.py").write_text(
        "class Sentences:\n    def rarity(self):\n        return 1\n"
        "def tell():\n    def rarity():\n        return Sentences().rarity()\n    return rarity()\n"
        "class Rare:\n    class rarity:\n        pass\n")
    (tmp_path / "prog.py").write_text("import words\nwords.tell()\n")
    done = sonde_run(["--lines", "rarity,words.rarity,words.py:rarity,prog.py:rarity,tell", "-o", "t.sonde"], "prog.py", cwd=tmp_path)
    assert done.stderr.splitlines() == [
        "sonde: --lines: the program has no Python function 'rarity'; did you mean Sentences.rarity or tell.rarity?",
        "sonde: --lines: the program has no Python function 'words.rarity'; did you mean Sentences.rarity or tell.rarity?",
        "sonde: --lines: the program has no Python function 'words.py:rarity'; "
        "did you mean words.py:Sentences.rarity or words.py:tell.rarity?",
        "sonde: --lines: the program has no Python function 'prog.py:rarity'"]
    again = sonde_run(["--lines", "Sentences.rarity,words.py:tell.rarity", "-o", "t.sonde"], "prog.py", cwd=tmp_path)
    assert again.stderr == ""


def test_names_of_what_cannot_be_recorded_are_not_looked_for(tmp_path):
    """One line that says why, and none that the program lacks the function, which it has."""
    write_package(tmp_path)
    (tmp_path / "refuse.py").write_text("import sonde._python\ndef refuse(): raise RuntimeError('not here')\n"
                                        "sonde._python.memory_start = refuse\n")
    done = sonde_run(["--line-memory", "main", "-o", "t.sonde"], "prog.py", cwd=tmp_path,
                     env={**os.environ, "SONDE_SETUP": "refuse.py"})
    assert done.stderr == "sonde: --line-memory is not recorded: not here\n"


def test_names_that_only_a_child_has(tmp_path):
    """What the first process has not found, a child may have: nothing is said of the program then."""
    (tmp_path / "mod.py").write_text("def work():\n    return sum(range(1000))\n")
    (tmp_path / "prog.py").write_text("import subprocess, sys\n"
                                      "subprocess.run([sys.executable, '-c', 'import mod; mod.work()'], check=True)\n")
    done = sonde_run(["--lines", "mod.work", "-o", "t.sonde"], "prog.py", cwd=tmp_path)
    assert done.stderr == "sonde: --lines: the first process of the program has no Python function 'mod.work'\n"
    assert [row["function"] for row in rows(tmp_path / "t.sonde", "lines")][:1] == ["work"]



# ----------------------------------------------------------------------- @profile

DECORATED = """
@profile
def f(n):
    keep = []
    for i in range(n):
        keep.append(bytes(1000))
    return keep

class Thing:
    @profile
    def method(self):
        return f(3)

    @staticmethod
    @profile
    def static():
        return 1

@profile
def steps(n):
    for i in range(n):
        yield i

assert f.__name__ == "f" and f.__code__.co_name == "f"
f(10), Thing().method(), Thing.static(), list(steps(4))
import pickle
assert pickle.loads(pickle.dumps(f)) is f
"""
HITS = {"f": [2, 15, 13, 2], "method": [1], "static": [1], "steps": [5, 4]}


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory):
    """A Python with an empty site-packages: no peer is installed there, nor is sonde."""
    import venv
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False, symlinks=True)
    return folder / "bin/python"


def without_peers():
    """An environment that lends a Python nothing: where tests are run, peers may be on its path."""
    folders = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return {**os.environ, "PYTHONPATH": os.pathsep.join(
        folder for folder in folders if not os.path.exists(os.path.join(folder, "line_profiler")))}


@pytest.mark.parametrize("source", ["", "from line_profiler import profile",
                                    "from memory_profiler import profile",
                                    "import line_profiler\nprofile = line_profiler.profile"])
@pytest.mark.parametrize("installed", [True, False])
def test_unchanged_scripts(source, installed, bare_python, tmp_path):
    """Wherever `profile` comes from, and whether that is there or not."""
    if installed and source:
        pytest.importorskip(source.split()[1], reason="the package is not installed")
    (tmp_path / "prog.py").write_text(source + DECORATED)
    done = run(SONDE, "run", "-q", "--lines", "@profile", "-o", "t.sonde", "--",
               sys.executable if installed else bare_python, "prog.py", cwd=tmp_path,
               env=None if installed else without_peers())
    found = {}
    for row in rows(tmp_path / "t.sonde", "lines"):
        if row["hits"]:
            found.setdefault(row["function"].rpartition(".")[2], []).append(row["hits"])
    assert found == HITS and done.stderr == "" and done.stdout == ""


def test_the_stand_in_says_what_it_is(bare_python, tmp_path):
    (tmp_path / "prog.py").write_text("from line_profiler import LineProfiler")
    done = run(SONDE, "run", "-q", "--lines", "@profile", "-o", "t.sonde", "--", bare_python, "prog.py",
               cwd=tmp_path, status=1, env=without_peers())
    assert "pip install line_profiler" in done.stderr or "cannot import name" in done.stderr


@pytest.mark.skipif(FREE, reason="this Python has no interpreter lock: the memory of lines is refused")
def test_bytes_of_what_is_decorated(bare_python, tmp_path):
    (tmp_path / "prog.py").write_text("from memory_profiler import profile" + DECORATED)
    done = run(SONDE, "run", "--line-memory", "@profile", "-p", "--", bare_python, "prog.py",
               cwd=tmp_path, env=without_peers())
    assert "Line #    Mem usage    Increment  Occurrences   Line Contents" in done.stdout
    assert done.stderr == ""


def test_kernprof_options(tmp_path):
    """-l writes SCRIPT.lprof, which line_profiler opens; -s runs a file before; -p names more."""
    (tmp_path / "prog.py").write_text("import os\n" + DECORATED
                                      + "\ndef more():\n    return os.environ['READY']\nmore()\n")
    (tmp_path / "setup.py").write_text("import os\nos.environ['READY'] = 'yes'\n")
    done = python("-m", "sonde", "-l", "-v", "-z", "-u", "1e-3", "-s", "setup.py", "-p", "more",
                  "prog.py", cwd=tmp_path)
    assert "Timer unit: 0.001 s" in done.stdout and "Function: more at line" in done.stdout
    pytest.importorskip("line_profiler", reason="line_profiler is not installed: it reads the file")
    with open(tmp_path / "prog.py.lprof", "rb") as file:
        stats = pickle.load(file)
    assert {name.rpartition(".")[2] for _, _, name in stats.timings} >= {"f", "more", "steps"}
    shown = python("-m", "line_profiler", "prog.py.lprof", cwd=tmp_path).stdout
    assert "Function: f at line" in shown and "keep.append(bytes(1000))" in shown


# -------------------------------------------------------------------------- seeds

@pytest.mark.parametrize("probe", ["--lines", "--line-memory"])
@pytest.mark.parametrize("package", ["line_profiler", "memory_profiler"])
def test_line_by_line_as_users_write_it(package, probe, bare_python, tmp_path):
    text = (SEEDS / "line_by_line.py").read_text()
    if package == "memory_profiler":
        text = text.replace("from line_profiler import profile\n# ", "")
    (tmp_path / "test_profile.py").write_text(text)
    done = run(SONDE, "run", probe, "@profile", "-p", "--", bare_python, "test_profile.py",
               cwd=tmp_path, env=without_peers())
    assert "sum += 1" in done.stdout and " 1001 " in done.stdout and done.stderr == ""


def test_cprofile_as_users_write_it(tmp_path):
    """Under sonde, the program's own cProfile.run still prints its table: all of it but the times."""
    def table(done):
        return re.sub(r"\b\d+\.\d{3}\b", "time", done.stdout).splitlines()[2:]

    alone = python(SEEDS / "deterministic.py", cwd=tmp_path)
    done = sonde_run(["--functions", "-o", "t.sonde"], SEEDS / "deterministic.py", cwd=tmp_path)
    assert len(table(alone)) > 5 and table(done) == table(alone)
    assert [row["calls"] for row in rows(tmp_path / "t.sonde", "functions")
            if row["function"] == "my_function"] == [1]


@pytest.mark.parametrize("options, shown", [
    (["--functions"], "bodies.py:26(accelerate)"),
    (["--lines", "accelerate"], "960000"),
    (["--line-memory", "main"], "Occurrences"),
    (["--sample", "500"], "Program: "),
])
def test_the_example(options, shown, tmp_path):
    """As its README has it."""
    script = PROGRAMS.parents[3] / "examples/python/bodies.py"
    done = sonde_run([*options, "--print"], script, cwd=tmp_path)
    assert done.stdout.startswith("the first body is at 1.670, 2.049, -0.467\n")
    assert shown in done.stdout and not list(tmp_path.iterdir())


WORKERS = """\
import multiprocessing, os
def work(n): return sum(range(20000 * n))
if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    with context.Pool(2) as pool: pool.map(work, range(40))  # ends its workers by SIGTERM
    workers = [context.Process(target=work, args=(99,)) for _ in range(2)]
    for worker in workers: worker.start()
    for worker in workers: worker.join()
    os.waitpid(os.fork() or os._exit(0), 0)
"""


def test_a_healthy_multiprocessing_run_has_no_warning(tmp_path):
    (tmp_path / "prog.py").write_text(WORKERS)
    done = sonde_run(["--functions", "-o", "t.sonde"], "prog.py", cwd=tmp_path)
    assert done.stderr == ""
    assert "ledger:" not in run(SONDE, "report", "t.sonde", cwd=tmp_path).stdout
    rows = json.loads(run(SONDE, "report", "t.sonde", "--view", "ledger", "--json", cwd=tmp_path).stdout)["rows"]
    assert all(row["is_note"] for row in rows)
    assert not any("killed" in row["text"] or "crashed" in row["text"] for row in rows)


def test_a_process_that_was_killed_is_a_warning(tmp_path):
    (tmp_path / "prog.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    sonde_run(["--functions", "-o", "t.sonde"], "prog.py", cwd=tmp_path, status=-9)
    assert "ledger: not closed 1; see --view ledger\n" in run(SONDE, "report", "t.sonde", cwd=tmp_path).stdout


@pytest.mark.parametrize("options, view, advice, reason", [
    (["--lines", "absent"], "lines", "record them with --lines", "none of the functions that were named"),
    (["--line-memory", "absent"], "line-memory", "record it with --line-memory", "none of the functions that were named"),
])
def test_what_was_asked_for_is_not_advised(options, view, advice, reason, tmp_path):
    (tmp_path / "prog.py").write_text(BUSY)
    sonde_run([*options, "--functions", "-o", "t.sonde"], "prog.py", cwd=tmp_path)
    shown = run(SONDE, "report", "t.sonde", "--view", view, cwd=tmp_path).stdout
    assert reason in shown and advice not in shown
    sonde_run(["--functions", "-o", "t.sonde"], "prog.py", cwd=tmp_path)
    shown = run(SONDE, "report", "t.sonde", "--view", view, cwd=tmp_path).stdout
    assert advice in shown


def test_print_takes_the_options_of_report(tmp_path):
    (tmp_path / "prog.py").write_text(BUSY)
    options = ["--sample", "--functions", "--print", "--view", "samples,functions", "--group-by", "thread", "-n", "1",
               "--callees", "--show-all"]
    shown = sonde_run(options, "prog.py", cwd=tmp_path).stdout
    assert "MainThread of process " in shown and "called..." in shown  # each view takes what is its own
    shown = json.loads(sonde_run(["--sample", "--print", "--view", "functions", "--json"], "prog.py", cwd=tmp_path).stdout)
    assert shown["totals"]["source"] == "samples" and any(row["function"] == "work" for row in shown["rows"])
    refused = sonde_run(["--print", "--group-by", "tread"], "-c", "print('ran')", cwd=tmp_path, status=2)
    assert refused.stdout == "" and "did you mean 'thread'?" in refused.stderr


@pytest.mark.parametrize("option", ["--lines", "--line-memory"])
def test_code_that_is_loaded_where_the_folder_is_gone(option, tmp_path):
    (tmp_path / "prog.py").write_text("""
import os, sys, tempfile
sys.path[:0] = ["", None]
os.chdir(tempfile.mkdtemp())
os.rmdir(os.getcwd())
exec(compile("def wanted():\\n    return 1\\n", "relative.py", "exec"))
exec(compile("def wanted():\\n    return 2\\n", "/absolute/other.py", "exec"))
print(wanted())
""")
    done = sonde_run([option, "other.py:wanted", "-o", str(tmp_path / "t.sonde")],
                     str(tmp_path / "prog.py"), cwd=tmp_path)
    assert done.stdout == "2\n"
    assert "Exception" not in done.stderr and "Error" not in done.stderr, done.stderr
