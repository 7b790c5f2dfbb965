# SPDX-License-Identifier: Apache-2.0
"""sonde run: what a trace is called, where it is, who may replace it, and what is said of it."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pytest

from cli_tools import SONDE, WORKER, needs_worker, read_json, sonde

pytestmark = needs_worker

COUNT = """\
import sys
def call(): pass
for _ in range(1000): call()
if len(sys.argv) > 1:
    open(sys.argv[1], "w").close()
    open(sys.argv[2]).close()
"""


def entries(folder):
    return sorted(entry.name for entry in folder.iterdir())


def traces(folder):
    return [name for name in entries(folder) if ".sonde" in name]


# ----------------------------------------------------------------------- names

@pytest.mark.parametrize("words, name", [
    (["python", "train.py", "-m", "x"], "train"),
    (["python", "-u", "-X", "dev", "-Wignore", "-W", "ignore", "./sub/../train.py"], "train"),
    (["python", "-m", "timeit", "-n1", "-r1", "1"], "timeit"),
    (["python", "-um", "json.tool", "--help"], "json.tool"),
    (["python", "-c", "1"], "python"),
    (["python", "pack"], "pack"),
    (["./train.py"], "train"),
    (["train.py"], "train"),
    (["sh", "-c", "python train.py"], "sh"),
])
def test_a_trace_has_the_programs_name(tmp_path, words, name):
    (tmp_path / "train.py").write_text("print('ran')\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack/__main__.py").write_text("")
    path = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
    done = sonde("run", *words, cwd=tmp_path, env={**os.environ, "PATH": path})
    assert done.returncode == 0, done.stderr
    assert traces(tmp_path) == [f"{name}.sonde"]
    assert done.stderr.decode() == f"sonde: recorded {name}.sonde; next: sonde report {name}.sonde\n"


def test_a_script_is_run_by_python(tmp_path):
    """Not by a shell, whether it may be executed or not."""
    (tmp_path / "prog.py").write_text("import sys\nprint(sys.argv, sys.version_info[0])\n")
    for mode in (0o644, 0o755):
        os.chmod(tmp_path / "prog.py", mode)
        for path in ("prog.py", "./prog.py"):
            done = sonde("run", "-q", path, "-o", "x", cwd=tmp_path)
            assert done.stdout.decode() == f"['{path}', '-o', 'x'] 3\n" and done.stderr == b""
    (tmp_path / "prog.py").write_text(f"#!/bin/sh\necho the head decides\n")
    assert sonde("run", "./prog.py", cwd=tmp_path).stdout == b"the head decides\n"


def test_two_runs_at_once_have_two_traces(tmp_path):
    """Each has its own calls; a third, when both have ended, replaces the first."""
    (tmp_path / "prog.py").write_text(COUNT)
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    command = [SONDE, "run", "--functions", "--", sys.executable, "prog.py"]
    runs = [subprocess.Popen([*command, f"ready{i}", "gate"], cwd=tmp_path, stderr=subprocess.PIPE,
                             text=True) for i in range(4)]
    deadline = time.monotonic() + 60
    while not all((tmp_path / f"ready{i}").exists() for i in range(4)):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    with open(gate, "w"):
        said = [run.communicate(timeout=60)[1] for run in runs]
    expected = {"prog.sonde", "prog-2.sonde", "prog-3.sonde", "prog-4.sonde"}
    assert set(traces(tmp_path)) == expected
    assert {text.split()[2].rstrip(";") for text in said} == expected
    for name in expected:
        rows = read_json("report", tmp_path / name, "--view", "functions", "--json")["rows"]
        assert [row["calls"] for row in rows if row["function"] == "call"] == [1000], name
    assert sonde(*command[1:], cwd=tmp_path).returncode == 0
    assert set(traces(tmp_path)) == expected


def test_many_runs_begin_at_once(tmp_path):
    runs = [subprocess.Popen([SONDE, "run", "--", WORKER, "steps", "10"], cwd=tmp_path,
                             stderr=subprocess.PIPE, text=True) for _ in range(12)]
    said = [run.communicate(timeout=60)[1] for run in runs]
    assert all(run.returncode == 0 for run in runs)
    assert all(text.startswith("sonde: recorded e2e_worker") and text.count("\n") == 1
               for text in said), said
    for name in traces(tmp_path):
        rows = read_json("report", tmp_path / name, "--json")["rows"]
        assert [row["count"] for row in rows if row["key"] == "step"] == [10], name


def test_a_name_that_was_given_is_not_changed(tmp_path):
    process = subprocess.Popen([SONDE, "run", "-q", "-o", "t.sonde", "--", WORKER, "wait"],
                               cwd=tmp_path, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    done = sonde("run", "-o", "t.sonde", "--", WORKER, "args", "ran", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"t.sonde is in use by another recording; give another name with -o" in done.stderr
    process.terminate()
    assert process.wait(timeout=30) == 0
    process.stdout.close()
    assert read_json("report", tmp_path / "t.sonde", "--json")["rows"][0]["key"] == "wait"


# ---------------------------------------------------------------------- the latest

def test_the_latest_trace_is_shown(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    done = sonde("report", cwd=tmp_path)
    assert done.returncode == 2 and b"there is none in the current folder" in done.stderr
    for name, act in (("a", "args"), ("b", "copy"), ("a", "exit")):
        assert sonde("run", "-o", f"{name}.sonde", "--", WORKER, act, "0", cwd=tmp_path,
                     stdin=subprocess.DEVNULL).returncode == 0
    (tmp_path / "later.sonde").write_text("no trace")
    done = sonde("report", "--json", cwd=tmp_path)
    assert b'"exit"' in done.stdout
    assert done.stderr == b"sonde: report a.sonde: the latest trace here\n"
    assert sonde("check", cwd=tmp_path).stderr == b"sonde: check a.sonde: the latest trace here\n"
    assert sonde("export", "--to", "csv", cwd=tmp_path).returncode == 0
    assert (tmp_path / "a.sonde.csv").exists()
    assert sonde("run", "-o", "c.sonde", "--", WORKER, "fork", "2", cwd=tmp_path).returncode == 0
    assert b"c.sonde" in sonde("report", cwd=tmp_path).stderr


# ---------------------------------------------------------------------- descendants

def wait_for(path):
    deadline = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < deadline, path
        time.sleep(0.01)


DAEMON = """\
import os, sys, time
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
os.closerange(0, 3)
open("away", "w").close()
while not os.path.exists("go"):
    time.sleep(0.01)
def late(): pass
for _ in range(300): late()
open("done", "w").close()
"""


def test_a_daemon_is_recorded_to_its_end(tmp_path):
    (tmp_path / "daemon.py").write_text(DAEMON)
    done = sonde("run", "--functions", "--", sys.executable, "daemon.py", cwd=tmp_path)
    wait_for(tmp_path / "away")
    assert done.returncode == 0
    assert b"1 process of it still runs and may record; the trace is the folder daemon.sonde" \
        in done.stderr
    # Another run of the same name leaves it alone.
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/daemon.py").write_text("")
    done = sonde("run", "--", sys.executable, "sub/daemon.py", cwd=tmp_path)
    assert b"recorded daemon-2.sonde" in done.stderr
    (tmp_path / "go").touch()
    wait_for(tmp_path / "done")
    trace = tmp_path / "daemon.sonde"
    assert trace.is_dir()
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        rows = read_json("report", trace, "--view", "functions", "--json")["rows"]
        if [row["calls"] for row in rows if row["function"] == "late"] == [300]:
            break
    else:
        raise AssertionError(rows)


MANY = """\
import os, signal
for _ in range(150):
    if os.fork() == 0:
        signal.pause()
print(flush=True)
signal.pause()
"""


def test_older_processes_are_not_looked_into(tmp_path):
    """None of them records into a folder that is younger: their variables and mappings cost more than all else at the end."""
    older = subprocess.Popen([sys.executable, "-S", "-c", MANY], stdout=subprocess.PIPE, start_new_session=True)
    try:
        older.stdout.readline()
        count = sum(name.isdigit() for name in os.listdir("/proc"))
        run = subprocess.Popen([SONDE, "run", "-o", tmp_path / "t.sonde", "--", "true"], stderr=subprocess.DEVNULL)
        os.waitid(os.P_PID, run.pid, os.WEXITED | os.WNOWAIT)
        counts = dict(line.split(": ") for line in pathlib.Path(f"/proc/{run.pid}/io").read_text().splitlines())
        assert run.wait() == 0
    finally:
        os.killpg(older.pid, signal.SIGKILL)
        older.wait()
    assert int(counts["syscr"]) < 3 * count + 300  # two to read when a process began; four and more to look into it


def test_a_daemon_is_seen_among_many_processes(tmp_path):
    """It forks and ends while the list of processes is gone through, which takes a while: its child is not in it."""
    others = [subprocess.Popen(["sleep", "100"]) for _ in range(300)]
    try:
        for number in range(5):
            folder = tmp_path / str(number)
            folder.mkdir()
            (folder / "daemon.py").write_text(DAEMON)
            done = sonde("run", "--functions", "--", sys.executable, "daemon.py", cwd=folder)
            (folder / "go").touch()
            assert b"1 process of it still runs" in done.stderr, number
    finally:
        for process in others:
            process.kill()
            process.wait()


@pytest.mark.parametrize("options", [[], ["--print"], ["-o", "x.folded"]])
def test_a_background_child_that_starts_late_is_recorded(tmp_path, options):
    """It has no file yet when the program ends, and is a shell then."""
    script = f"(while [ ! -e go ]; do sleep 0.02; done; {WORKER} steps 50; touch done) >log 2>&1 & exit 3"
    (tmp_path / "tmp").mkdir()
    process = sonde("run", *options, "--", "sh", "-c", script, cwd=tmp_path,
                    env={**os.environ, "TMPDIR": str(tmp_path / "tmp")}, stdin=subprocess.DEVNULL)
    assert process.returncode == 3
    assert b"still run" in process.stderr, process.stderr
    folder = next(line for line in process.stderr.decode().splitlines() if " folder " in line).split(" folder ")[1]
    (tmp_path / "go").touch()
    wait_for(tmp_path / "done")
    rows = read_json("report", tmp_path / folder, "--json")["rows"]
    assert [row["count"] for row in rows if row["key"] == "step"] == [50]


def test_a_helper_of_multiprocessing_is_none(tmp_path):
    """Python's resource tracker ends with the program: one process, one file."""
    (tmp_path / "prog.py").write_text(
        "from multiprocessing import shared_memory\n"
        "m = shared_memory.SharedMemory(create=True, size=8); m.close(); m.unlink()\n")
    done = sonde("run", "--", sys.executable, "prog.py", cwd=tmp_path)
    assert done.stderr == b"sonde: recorded prog.sonde; next: sonde report prog.sonde\n"
    assert (tmp_path / "prog.sonde").is_file()


STARTS = """\
import os, subprocess, sys
how, env = sys.argv[1], eval(sys.argv[2])
words = [sys.executable if how != "shell" else "/bin/sh", "-c", "1" if how != "shell" else "exit 0"]
for _ in range(2):
    if how in ("popen", "shell"):
        assert subprocess.run(words, env=env).returncode == 0
    elif how == "spawn":
        assert os.waitpid(os.posix_spawn(words[0], words, env or os.environ), 0)[1] == 0
    elif os.fork() == 0:
        os.execve(words[0], words, env or os.environ)
    else:
        assert os.wait()[1] == 0
"""


@pytest.mark.parametrize("how", ["popen", "spawn", "exec"])
@pytest.mark.parametrize("env, said", [
    ("{'A': 'b'}", "without SONDE_TRACE"), ("{b'PATH': b'/bin'}", "without SONDE_TRACE"),
    ("{**os.environ, 'PYTHONPATH': '/x'}", "without sonde's folder in PYTHONPATH"),
    ("None", ""), ("dict(os.environ)", ""), ("{**os.environ, 'B': 'c'}", ""),
])
def test_a_child_that_cannot_be_recorded_is_named(tmp_path, how, env, said):
    (tmp_path / "prog.py").write_text(STARTS)
    done = sonde("run", "-q", "--sample", "10", "--", sys.executable, "prog.py", how, env, cwd=tmp_path)
    lines = done.stderr.decode().splitlines()
    assert done.returncode == 0 and len(lines) == (2 if said and how == "exec" else bool(said)), lines
    assert all(f"{sys.executable} is started with an environment {said}" in line for line in lines)


def test_a_child_that_is_no_python_is_not_named(tmp_path):
    (tmp_path / "prog.py").write_text(STARTS)
    done = sonde("run", "-q", "--sample", "10", "--", sys.executable, "prog.py", "shell", "{}", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")


def test_functions_are_counted_as_alone(tmp_path):
    """What watches the children has the names of what it stands for, and no frame of its own."""
    (tmp_path / "prog.py").write_text("import subprocess, sys\nsubprocess.run([sys.executable, '-c', '1'])\n")
    assert sonde("run", "-q", "--functions", "-o", "t.sonde", "--", sys.executable, "prog.py",
                 cwd=tmp_path).returncode == 0
    rows = read_json("report", tmp_path / "t.sonde", "--view", "functions", "--json")["rows"]
    calls = {row["function"]: row["calls"] for row in rows}
    # from 3.13 on, with a glibc that can close descriptors there, it is the other one
    spawned = [calls.get(f"<built-in method {name}>", 0) for name in ("_posixsubprocess.fork_exec", "posix.posix_spawn")]
    assert sum(spawned) == 1 and (spawned[0] or sys.version_info >= (3, 13))
    assert not [name for name in calls if "watch" in name or "sonde" in name]


# -------------------------------------------------------------- what is said of nothing

def nothing(tmp_path, *command, **extra):
    done = sonde("run", "-o", "t.sonde", *command, cwd=tmp_path, **extra)
    said = done.stderr.decode().splitlines()[-1]
    assert "neither runs a Python" not in said
    return said


def test_a_folder_that_was_moved_is_found(tmp_path):
    said = nothing(tmp_path, "--", "sh", "-c", f"{WORKER} args; mv t.sonde u.sonde")
    assert f"was moved to {tmp_path}/u.sonde while the program ran; the trace is there" in said
    assert read_json("report", tmp_path / "u.sonde", "--json")["rows"][0]["key"] == "args"
    assert "was removed while the program ran" in nothing(tmp_path, "--", "rm", "-r", "t.sonde")
    assert entries(tmp_path) == ["u.sonde"]


def test_a_run_within_a_run_is_named(tmp_path):
    said = nothing(tmp_path, "--", SONDE, "run", "-q", "-o", "inner.sonde", "--", WORKER, "args")
    assert said.endswith(f"it runs another 'sonde run', which recorded to {tmp_path}/inner.sonde")
    assert entries(tmp_path) == ["inner.sonde"]


@pytest.mark.parametrize("option", ["-I", "-E", "-S", "-uIc"])
def test_a_python_that_is_deaf_is_named(tmp_path, option):
    rest = ["1"] if option.endswith("c") else ["-c", "1"]
    said = nothing(tmp_path, "--", sys.executable, option, *rest)
    assert f"with -{option.strip('-uc')} it does not load our probes" in said


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root and setpriv")
def test_a_program_of_another_user_says_why(tmp_path):
    """Its processes cannot write the folder, and say so; that is not explained away."""
    os.chmod(tmp_path, 0o755)
    become = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    if subprocess.run([*become, WORKER, "args"], capture_output=True).returncode != 0:
        pytest.skip("another user may not run what was built here")
    done = sonde("run", "--schedule", "active=1", "-o", "t.sonde", "--", *become, WORKER, "args", "ran", cwd=tmp_path)
    first, last = done.stderr.decode().splitlines()
    assert done.stdout == b"ran\n" and "Permission denied" in first
    assert last.startswith("sonde: run: setpriv recorded nothing; unless a line above gives the reason, ")


def test_a_size_that_holds_nothing_is_refused(tmp_path):
    done = sonde("run", "--max-size", "1K", "--", WORKER, "args", "ran", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"--max-size: expected at least 512K" in done.stderr and b"1024 bytes" in done.stderr
    assert sonde("run", "--max-size", "512K", "--", WORKER, "args", cwd=tmp_path).returncode == 0


# --------------------------------------------------------------------- refused up front

@pytest.mark.parametrize("options, said", [
    (["--print", "-s", "bogus"], "cannot sort by 'bogus'"),
    (["--print", "--functions", "-s", "tottim2"], "(did you mean 'tottime'?)"),
    (["--print", "--view", "linse"], "unknown view 'linse' (did you mean 'lines'?)"),
    (["-o", "x.foo"], "unknown extension '.foo'"),
    (["-o", "x.proff"], "(did you mean '.prof'?)"),
    (["-o", "x.sonde.gz"], "unknown extension '.gz'"),
    (["--sample", "-o", "w.prof"], "needs functions, which are not recorded; add --functions"),
    (["--functions", "-o", "w.lprof"], "add --lines LIST"),
    (["--print", "--view", "lines"], "add --lines LIST"),
    (["--print", "--ops", "--view", "ops,samples"], "--view samples: its data is not recorded"),
    (["--view", "ops"], "add --print"),
    (["-n", "3"], "add --print"),
    (["--pirnt"], "unknown option '--pirnt' (did you mean '--print'?)"),
    (["--sample", "99999999"], "--sample: rate must be 1..20000 Hz, got 99999999"),
])
def test_wrong_options_are_refused_before_the_program_runs(tmp_path, options, said):
    done = sonde("run", *options, "--", WORKER, "args", "ran", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, b""), done.stderr
    assert said in done.stderr.decode() and done.stderr.count(b"\n") == 1
    assert entries(tmp_path) == []


@pytest.mark.parametrize("options", [
    ["--print", "-s", "count"], ["--print", "-s", "none"],
    ["--print", "--functions", "-s", "tottime,name"], ["--print", "--lines", "f", "-s", "time"],
    ["--print", "--ops", "-s", "self_cpu_memory_usage"], ["--print", "--view", "ops,tree,threads"],
    ["-o", "a.b/x"], ["-o", "plain"], ["-o", ".hidden"], ["-o", "x.folded.gz"], ["-o", "w.prof"],
])
def test_right_options_are_not_refused(tmp_path, options):
    (tmp_path / "a.b").mkdir()
    assert sonde("run", *options, "--", WORKER, "args", cwd=tmp_path).returncode == 0


# ----------------------------------------------------------------- the temporary folder

def test_what_is_shown_leaves_nothing_behind(tmp_path):
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    done = sonde("run", "--print", "--", WORKER, "args", cwd="/", env=env)
    assert done.returncode == 0 and b"args" in done.stdout and done.stderr == b""
    assert sonde("run", "--print", "--", "true", cwd="/", env=env).returncode == 0
    number = int(signal.SIGTERM)
    assert sonde("run", "--print", "--", WORKER, "raise", number, env=env).returncode == -number
    assert entries(tmp_path) == []


def test_a_program_runs_where_no_temporary_folder_can_be_made(tmp_path):
    """As somebody to whom every such folder is read-only."""
    script = ('mount -t tmpfs -o ro none /tmp && mount -t tmpfs -o ro none /var/tmp && '
              f'TMPDIR=/nowhere exec {SONDE} run --print -- {WORKER} args ran')
    space = ["unshare", "--mount"] + ([] if os.geteuid() == 0 else ["--map-root-user"])
    if str(SONDE).startswith(("/tmp/", "/var/tmp/")) or subprocess.run(
            [*space, "true"], capture_output=True).returncode != 0:
        pytest.skip("this machine lets nobody mount a file system")
    done = subprocess.run([*space, "sh", "-c", script], capture_output=True, text=True, cwd="/")
    assert (done.returncode, done.stdout) == (0, "ran\n"), done.stderr
    assert done.stderr.count("\n") == 1 and "the program runs unrecorded" in done.stderr


def test_print_keeps_the_last_trace(tmp_path, monkeypatch):
    """For a second look; in the cache, for nobody else, and replaced by the next."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    here.mkdir()
    elsewhere.mkdir()

    def run(act, *options):
        done = sonde("run", *options, "--", WORKER, act, "0", cwd=here, stdin=subprocess.DEVNULL)
        assert done.returncode == 0
        return done.stderr.decode()
    kept = tmp_path / "cache/sonde/last/e2e_worker.sonde"
    assert run("args", "--print") == ""
    assert kept.stat().st_mode & 0o777 == 0o600 and kept.parent.stat().st_mode & 0o777 == 0o700
    assert run("copy", "--print") == "" and not list(here.iterdir())
    assert [one.name for one in kept.parent.iterdir() if one.name[0] != "."] == [kept.name]
    for folder in (here, elsewhere):
        done = sonde("report", "--json", cwd=folder)
        assert b'"copy"' in done.stdout and f"{kept}: the trace of the last --print" in done.stderr.decode()
    assert sonde("export", "--to", "csv", cwd=here).returncode == 0 and (here / "e2e_worker.sonde.csv").exists()

    run("exit", "-o", "a.sonde")
    assert b"report a.sonde: the latest trace here" in sonde("report", cwd=here).stderr
    run("args", "--print")
    assert f"{kept}: the trace of the last --print" in sonde("report", cwd=here).stderr.decode()
    shutil.copytree(here, elsewhere, dirs_exist_ok=True)
    assert b"report a.sonde: the latest trace here" in sonde("report", cwd=elsewhere).stderr, "made elsewhere"
    run("copy", "--print", "-o", "x.csv")
    assert f"{kept}" in sonde("report", cwd=here).stderr.decode(), "what a file is made of is not kept"


def test_a_cache_that_is_not_ours_keeps_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    (tmp_path / "cache/sonde").mkdir(parents=True)
    (tmp_path / "cache/sonde").chmod(0o777)
    done = sonde("run", "--print", "--", WORKER, "args", "0", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    assert not list((tmp_path / "cache/sonde").iterdir()) and not list(tmp_path.glob("sonde-run-*"))
