# SPDX-License-Identifier: Apache-2.0
"""Programs as they are started: what is theirs, what is Python's; from where; with which package."""
import os
import shutil
import sys
import zipapp

import pytest

from python_tools import SONDE, python, rows, run, sonde_run

PROGRAM = """\
def f(x):
    return x + 1

def main():
    for i in range(2):
        f(i)
    print(len("ab"))

def last():
    f(3)

if __name__ == "__main__":
    main()
    if {at_exit}:
        import atexit
        atexit.register(last)
"""

CPROFILES_OWN = {"{built-in method builtins.exec}", "{method 'disable' of '_lsprof.Profiler' objects}"}


def table(text):
    """Rows of pstats' text: name with the file's last part, to calls."""
    found = {}
    for line in text.splitlines():
        words = line.split(None, 5)
        if len(words) == 6 and "function calls" not in line and words[0].replace("/", "").isdigit():
            found[os.path.basename(words[5])] = words[0]
    return found


@pytest.mark.parametrize("words", [["prog.py"], ["-m", "prog"]], ids=["script", "module"])
def test_same_rows_as_cprofile(tmp_path, words):
    """Nothing of ours, and nothing that Python does before and after the program."""
    (tmp_path / "prog.py").write_text(PROGRAM.replace("{at_exit}", "False"))
    no_cache = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")  # runpy writes it by calls of C functions
    theirs = table(python("-m", "cProfile", *words, cwd=tmp_path, env=no_cache).stdout)
    ours = table(python("-m", "sonde", *words, cwd=tmp_path, env=no_cache).stdout)
    wanted = {name: calls for name, calls in theirs.items()
              if name not in CPROFILES_OWN and "runpy" not in name}
    if words[0] == "-m":  # runpy's own doing, which theirs has
        assert ours.items() <= wanted.items()
        assert {"prog.py:1(<module>)", "prog.py:4(main)", "prog.py:1(f)"} <= ours.keys()
    else:
        assert ours == wanted


def test_what_the_program_does_at_exit_counts(tmp_path):
    (tmp_path / "prog.py").write_text(PROGRAM.replace("{at_exit}", "True"))
    ours = table(python("-m", "sonde", "prog.py", cwd=tmp_path).stdout)
    assert ours["prog.py:1(f)"] == "3" and ours["prog.py:9(last)"] == "1"
    assert not any("threading.py" in name or "importlib" in name for name in ours
                   if "<module>" not in name)


# ------------------------------------------------------------------------------- packages

def test_a_python_that_has_its_own_package(tmp_path):
    """`sonde run` of another Python: its package lacks this one's part, which this one has."""
    package = os.path.dirname(__import__("sonde").__file__)
    other = tmp_path / "other/sonde"
    shutil.copytree(package, other, ignore=shutil.ignore_patterns("_python.*", "__pycache__"))
    (tmp_path / "prog.py").write_text("def f(): pass\nf()\n")
    environment = {**os.environ, "SONDE_PYTHON": str(other),
                   "PYTHONPATH": os.path.dirname(package)}
    done = run(SONDE, "run", "--functions", "-o", "t.sonde", "--", sys.executable, "prog.py",
               cwd=tmp_path, env=environment)
    assert "install sonde" not in done.stderr
    assert {row["function"]: row["calls"] for row in rows(tmp_path / "t.sonde", "functions")}["f"] == 1


@pytest.mark.parametrize("parent", [None, os.path.join(os.path.dirname(SONDE), "python")], ids=["alone", "child"])
def test_two_pythons_that_both_have_sonde(tmp_path, parent):
    """`sonde run` of one Python records a program of this one, or a child, with this one's package."""
    package = os.path.dirname(__import__("sonde").__file__)
    (tmp_path / "prog.py").write_text("import sys\ndef f(): pass\nf()\nprint(sys.modules['sonde'].__file__)\n")
    (tmp_path / "parent.py").write_text("import subprocess, sys\nsubprocess.run(sys.argv[1:], check=True)\n")
    environment = {name: value for name, value in os.environ.items() if name != "SONDE_PYTHON"}
    environment["PYTHONPATH"] = os.path.dirname(package)
    words = [sys.executable, "prog.py"]
    done = run(SONDE, "run", "--functions", "-q", "-o", "t.sonde", "--", *([parent, "parent.py"] if parent else []),
               *words, cwd=tmp_path, env=environment)
    assert done.stderr == ""
    own = os.path.join(os.path.dirname(os.path.dirname(SONDE)), "lib", "python%d.%d" % sys.version_info[:2],
                       "site-packages/sonde")
    fitting = {package, own if os.path.exists(own) else package}  # the program's own, if it is for this Python
    assert done.stdout.strip() in {os.path.join(folder, "__init__.py") for folder in fitting}
    calls = [row["calls"] for row in rows(tmp_path / "t.sonde", "functions") if row["function"] == "f"]
    assert calls == [1]


# ---------------------------------------------------------------------------------- paths

NOT_UTF8 = os.fsdecode(b"caf\xe9")


def test_a_path_that_is_no_utf8(tmp_path):
    folder = tmp_path / NOT_UTF8
    folder.mkdir()
    program = folder / f"{NOT_UTF8}.py"
    program.write_text("import time\ndef f():\n    end = time.time() + 0.2\n"
                       "    while time.time() < end: pass\nf()\n")
    done = run(SONDE, "run", "--sample", "500", "--functions", "--lines", "f", "-o", "t.sonde", "--",
               sys.executable, os.fsencode(program).decode(errors="surrogateescape"), cwd=tmp_path)
    assert "Traceback" not in done.stderr and "not recorded" not in done.stderr
    lines = run(SONDE, "report", "t.sonde", "--view", "lines", cwd=tmp_path).stdout
    assert "while time.time() < end" in lines  # the file was found
    for view in ("samples", "functions"):
        text = run(SONDE, "report", "t.sonde", "--view", view, cwd=tmp_path).stdout
        assert "caf\\xe9.py" in text


# ------------------------------------------------------------------------ without a file

TEXT = "def f(x):\n    return x\nf(1)\nf(2)\n"


def hits(text):
    for line in text.splitlines():
        words = line.split()
        if len(words) > 2 and words[0] == "2":
            return int(words[1])


def test_lines_of_a_command(tmp_path):
    sonde_run(["--lines", "f", "-o", "t.sonde"], "-c", TEXT, cwd=tmp_path)
    text = run(SONDE, "report", "t.sonde", "--view", "lines", cwd=tmp_path).stdout
    assert hits(text) == 2
    assert "return x" in text or sys.version_info < (3, 10)


def test_lines_of_what_is_read(tmp_path):
    sonde_run(["--lines", "f", "-o", "t.sonde"], "-", cwd=tmp_path, input=TEXT)
    assert hits(run(SONDE, "report", "t.sonde", "--view", "lines", cwd=tmp_path).stdout) == 2


def test_lines_of_an_archive(tmp_path):
    source = tmp_path / "app"
    source.mkdir()
    (source / "__main__.py").write_text(TEXT)
    zipapp.create_archive(source, tmp_path / "app.pyz")
    shutil.rmtree(source)
    sonde_run(["--lines", "f", "-o", "t.sonde"], "app.pyz", cwd=tmp_path)
    text = run(SONDE, "report", "t.sonde", "--view", "lines", cwd=tmp_path).stdout
    assert hits(text) == 2 and "return x" in text


@pytest.mark.parametrize("options", [["--sample"], ["--functions"], ["--sample", "--functions", "--native"]],
                         ids=" ".join)
def test_no_module_of_the_library_is_loaded_for_us(options, tmp_path):
    """Each process of a program pays for them, and may find that it has them without importing them."""
    (tmp_path / "prog.py").write_text("import sys\nprint(*sorted(name for name in sys.modules if '.' not in name))\n")
    alone = set(python("prog.py", cwd=tmp_path).stdout.split())
    found = set(sonde_run([*options, "-o", "t.sonde"], "prog.py", cwd=tmp_path).stdout.split())
    written_in_c = {"_collections", "_posixsubprocess", "atexit", "gc", "_interpreters", "_xxsubinterpreters"}
    of_a_fork = {"warnings"} if sys.version_info >= (3, 12) else set()
    if sys.version_info >= (3, 14):
        of_a_fork |= {"_py_warnings", "_contextvars"}  # what `warnings` imports
    assert found - alone - written_in_c - {"sonde", "sitecustomize"} <= of_a_fork


def test_threads_have_their_names_though_threading_comes_later(tmp_path):
    """Our hook waits for it, and is gone from the path of imports then."""
    early = python("-c", "import sys; print('threading' in sys.modules)", cwd=tmp_path).stdout  # by a .pth
    (tmp_path / "prog.py").write_text(
        "import sys, time\n"
        f"assert ('threading' in sys.modules) == {early}"
        "import threading\n"
        "assert type(threading.__loader__).__module__ != 'sitecustomize'\n"
        "assert not any(type(finder).__module__.partition('.')[0] in ('sitecustomize', 'sonde')\n"
        "               for finder in sys.meta_path)\n"
        "def work():\n"
        "    end = time.thread_time() + 0.1\n"
        "    while time.thread_time() < end: pass\n"
        "thread = threading.Thread(target=work, name='Worker bee')\n"
        "thread.start()\nthread.join()\n")
    done = sonde_run(["--sample", "1000", "-o", "t.sonde"], "prog.py", cwd=tmp_path)
    assert done.stderr == ""
    shown = run(SONDE, "report", "t.sonde", "--view", "samples", "--group-by", "thread", cwd=tmp_path).stdout
    assert "Worker bee" in shown and "MainThread" in shown
