# SPDX-License-Identifier: Apache-2.0
"""`sonde attach`: stacks of a running process, read from outside.

Of the Python that runs the tests: the stage `pythons` of tools/test runs them in each CPython there is.
"""
import contextlib
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from python_tools import FREE, own_interpreter
from sample_tools import GIL, GIL_WAIT, ON_CPU, POSSIBLE, SONDE, impossible, ledger, samples


def attach(pid, trace, *options, status=0):
    done = subprocess.run([SONDE, "attach", str(pid), "-o", str(trace), *map(str, options)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=30)
    assert done.returncode == status, done.stderr
    return done.stderr


class Program:
    """A Python program that says when it is ready; ended with the block."""

    def __init__(self, python, folder, text, **extra):
        path = folder / "program.py"
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        self.process = subprocess.Popen([python, str(path)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, **extra)
        self.pid = self.process.pid

    def __enter__(self):
        self.said = self.process.stdout.readline()
        return self

    def say(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def wait_for_read(self):
        """Until it waits for what we say next."""
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and not self.stat().startswith("S"):
            time.sleep(0.002)

    def stat(self):
        """Of its first thread, from the state on."""
        with open(f"/proc/{self.pid}/stat") as text:
            return text.read().rpartition(") ")[2]

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


# At each stop it says what its stack is, and waits in a read.
STOPS = """
import json, os, sys, threading

def stop(note=None):
    frames, frame = [], sys._getframe()
    while frame is not None:
        code = frame.f_code
        frames.append([getattr(code, "co_qualname", code.co_name), code.co_filename,
                       frame.f_lineno, code.co_firstlineno])
        frame = frame.f_back
    os.write(1, (json.dumps(frames) + chr(10)).encode())
    os.read(0, 1)

def deep(n):
    return deep(n - 1) if n else stop()

# One stack through everything that calls: C code, generators, properties, lambdas, coroutines,
# code made up at run time, names of any script, calls over several lines.
def naïve_名():
    stop()

async def coroutine():
    async def awaited():
        exec(compile("def made(): naïve_名()" + chr(10) * 300 + "made()", "<made up>", "exec"),
             globals())
    await awaited()

class Thing:
    @property
    def value(self):
        return (lambda: coroutine().send(None))()

    def __lt__(self, other):
        list(generator())

def generator():
    yield 1
    yield from inner()

def inner():
    x = [
        y
        for y in (1, 2)
    ]
    setattr(
        Thing, "seen",
        Thing().value
    )
    yield x

def run():
    try:
        sorted([Thing(), Thing()])
    except StopIteration:
        pass
    except RuntimeError:
        stop()
    deep(200)

run()
"""


@pytest.mark.parametrize("python, include", own_interpreter())
def test_stacks_are_the_program_s_own(tmp_path, python, include):
    with Program(python, tmp_path, STOPS) as program:
        said, stops = program.said, 0
        while said:
            expected = json.loads(said)
            program.wait_for_read()
            attach(program.pid, tmp_path / "t.sonde", "--sample", 200, "--duration", 0.1)
            found = [s for s in samples(tmp_path / "t.sonde") if s["tid"] == program.pid]
            assert found, "nothing was sampled"
            for sample in found:
                stack = [[f["function"], f["file"], f["line"]] for f in sample["stack"]]
                # In stop() itself the line goes on from that of the report to that of the read.
                assert [f[:2] for f in stack] == [f[:2] for f in expected]
                assert [f[2] for f in stack[1:]] == [f[2] for f in expected[1:]]
                assert sample["state"] == 0, "it waits in a read, without the lock"
            stops += 1
            said = program.say()
    assert stops == 3


@pytest.mark.parametrize("python, include", own_interpreter())
def test_short_threads_are_all_seen(tmp_path, python, include):
    for attempt in range(4):  # a loaded machine may starve the sampler for longer than one lives
        with Program(python, tmp_path, """
            import sys, threading, time
            def busy():
                end = time.thread_time() + 0.02
                while time.thread_time() < end: pass
            print("ready", flush=True)
            sys.stdin.readline()
            for _ in range(50):
                thread = threading.Thread(target=busy)
                thread.start()
                thread.join()
            """) as program:
            command = [SONDE, "attach", str(program.pid), "-o", str(tmp_path / "t.sonde"),
                       "--sample", "200"]
            with subprocess.Popen(command, stderr=subprocess.PIPE) as attached:
                time.sleep(0.5)
                program.say()
                attached.communicate(timeout=60)
        found = {s["tid"] for s in samples(tmp_path / "t.sonde") if "busy" in s["functions"]}
        if len(found) > 46:
            return
    pytest.fail(f"{len(found)} of 50")


MIXTURE = """
import os, time
def spin(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(50))
def one(): spin(0.010)
def two(): spin(0.020)
def three(): spin(0.030)
print("ready", flush=True)
while True:
    one(); two(); three()
"""


@pytest.mark.alone
@pytest.mark.parametrize("python, include", own_interpreter())
def test_shares(tmp_path, python, include):
    with Program(python, tmp_path, MIXTURE) as program:
        for attempt in range(4):  # a loaded machine may starve the sampler for a while
            attach(program.pid, tmp_path / "t.sonde", "--sample", 500, "--duration", 2)
            spent = {"one": 0, "two": 0, "three": 0}
            for sample in samples(tmp_path / "t.sonde"):
                for name in spent:
                    if name in sample["functions"] and sample["state"] & ON_CPU:
                        spent[name] += sample["covered_ns"]
            whole = sum(spent.values())
            assert whole > 0
            share = {name: 100 * ns / whole for name, ns in spent.items()}
            if all(abs(share[name] - true) < 3
                   for name, true in (("one", 16.7), ("two", 33.3), ("three", 50))):
                return
    pytest.fail(f"{share}")


SHORT_CALLS = POSSIBLE + "print('ready', flush=True)\nmain(lambda: False)\n"


def watch_short_calls(python, tmp_path, *options):
    """Samples, how many they stand for and how many were torn: a thousand, however long a loaded machine takes for them."""
    found, taken, torn = [], 0, 0
    with Program(python, tmp_path, SHORT_CALLS) as program:
        while taken + torn < 1000:
            attach(program.pid, tmp_path / "t.sonde", "--sample", 5000, "--duration", 2, *options)
            window = samples(tmp_path / "t.sonde")
            found += window
            taken += sum(sample["samples"] for sample in window)
            torn += ledger(tmp_path / "t.sonde").get("torn_samples", 0)
            os.unlink(tmp_path / "t.sonde")
    return found, taken, torn


@pytest.mark.alone
@pytest.mark.parametrize("python, include", own_interpreter())
def test_every_stack_is_possible(tmp_path, python, include):
    found, taken, torn = watch_short_calls(python, tmp_path)
    assert torn < 0.01 * taken  # however short the calls are
    assert impossible(found) == []
    # A stack of another shape than any: cut off, or mixed with what ran before main().
    assert {sample["functions"][-1] for sample in found} == {"<module>"}


@pytest.mark.parametrize("python, include", own_interpreter())
def test_nothing_is_halted_if_not_wanted(tmp_path, python, include):
    """How many are torn, the machine's load tells; they are not shown."""
    found, _, _ = watch_short_calls(python, tmp_path, "--nonblocking")
    assert impossible(found) == []
    assert {sample["functions"][-1] for sample in found} <= {"<module>"}


THREADS = """
import select, socket, threading, time
def sleeper(): time.sleep(60)
pair = socket.socketpair()
def selecter(): select.select([pair[0]], [], [], 60)
lock = threading.Lock(); lock.acquire()
def locker(): lock.acquire()
def busy():
    while True: pass
for target in (sleeper, selecter, locker, busy):
    threading.Thread(target=target, daemon=True).start()
time.sleep(0.2)
print("ready", flush=True)
busy()
"""


@pytest.mark.parametrize("python, include", own_interpreter())
def test_idle_threads_are_told_apart(tmp_path, python, include):
    with Program(python, tmp_path, THREADS) as program:
        attach(program.pid, tmp_path / "t.sonde", "--sample", 200, "--duration", 2)
    found = samples(tmp_path / "t.sonde")
    by_function = {}
    for sample in found:
        name = next((f for f in ("sleeper", "selecter", "locker", "busy")
                     if f in sample["functions"]), None)
        if name:
            by_function.setdefault(name, []).append(sample)
    for name in ("sleeper", "selecter", "locker"):
        assert all(sample["state"] == 0 for sample in by_function[name]), name
    busy = by_function["busy"]
    assert len({sample["tid"] for sample in busy}) == 2
    holding = sum(s["covered_ns"] for s in busy if s["state"] & GIL)
    idle = sum(s["covered_ns"] for s in busy if s["state"] == 0)
    whole = sum(s["covered_ns"] for s in busy)
    waiting = sum(s["covered_ns"] for s in busy if s["state"] == GIL_WAIT)
    if FREE:  # both run; what is idle is the machine's affair
        assert holding == waiting == 0 and any(s["state"] & ON_CPU for s in busy)
        return
    # One has the lock, the other waits for it, which is not idleness. How much of the time one of them has it is the
    # machine's affair: a thread that was handed the lock may have to wait for a processor before it takes it.
    assert 0 < holding < 0.6 * whole
    assert waiting > 0.2 * whole
    assert idle < 0.1 * whole


STOPPED = """
def spin():
    while True: pass
print("ready", flush=True)
spin()
"""


@pytest.mark.parametrize("python, include", own_interpreter())
def test_a_stopped_process_is_idle(tmp_path, python, include):
    """It has the interpreter's lock in hand, and does nothing with it."""
    with Program(python, tmp_path, STOPPED) as program:
        time.sleep(0.2)
        os.kill(program.pid, signal.SIGSTOP)
        try:
            attach(program.pid, tmp_path / "t.sonde", "--sample", 100, "--duration", 1)
        finally:
            os.kill(program.pid, signal.SIGCONT)
    found = [s for s in samples(tmp_path / "t.sonde") if "spin" in s["functions"]]
    idle = sum(s["covered_ns"] for s in found if s["state"] == 0)
    assert idle > 0.9 * sum(s["covered_ns"] for s in found) > 0, found[:5]


@pytest.mark.alone
@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a PID namespace")
@pytest.mark.parametrize("python, include", own_interpreter())
def test_in_a_container(tmp_path, python, include):
    """In a PID namespace of its own its threads have other numbers for themselves than for us."""
    (tmp_path / "prog.py").write_text("import os, threading\n"
                                      "for _ in range(3): os.waitpid(os.fork() or os._exit(0), 0)\n" + THREADS)
    outer = subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child", python, tmp_path / "prog.py"],
                             stdout=subprocess.PIPE, text=True)
    try:
        assert outer.stdout.readline() == "ready\n"
        pid = int(open(f"/proc/{outer.pid}/task/{outer.pid}/children").read())
        attach(pid, tmp_path / "t.sonde", "--sample", 200, "--duration", 1)
        ours = {int(tid) for tid in os.listdir(f"/proc/{pid}/task")}
    finally:
        outer.kill()
        outer.communicate()
    found = samples(tmp_path / "t.sonde")
    assert {sample["tid"] for sample in found} == ours and len(ours) == 5
    # without the lock two threads are busy at once, and how much of the time each runs is the machine's affair
    state, least, most = (ON_CPU, 0, 2.5e9) if FREE else (GIL, 0.5e9, 1.5e9)
    assert least < sum(s["covered_ns"] for s in found if s["functions"][0] == "busy" and s["state"] & state) < most
    assert all(s["state"] == 0 for s in found if "sleeper" in s["functions"])


def test_the_tree_names_libraries_as_programs_import_them(tmp_path):
    """As that of a program that samples itself does; here nobody told where they are installed."""
    with Program(sys.executable, tmp_path, "import json\nprint('ready', flush=True)\n"
                 "while True: json.dumps([[i] for i in range(99)], indent=1)\n") as program:
        attach(program.pid, tmp_path / "t.sonde", "--sample", 500, "--duration", 1)
    text = subprocess.run([SONDE, "report", tmp_path / "t.sonde", "--view", "samples"], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    assert "dumps  json/__init__.py:" in text
    hidden = [line.partition("hidden]")[2].strip() for line in text.splitlines() if "frames hidden" in line]
    assert all(name.startswith("json") for name in hidden)


def test_print_takes_the_options_of_report(tmp_path):
    with Program(sys.executable, tmp_path, "def spin():\n while True: pass\nprint('ready', flush=True)\nspin()\n") as program:
        done = subprocess.run([SONDE, "attach", str(program.pid), "--sample", "500", "--duration", "0.5", "--print",
                               "--view", "functions", "--csv"], check=True, stdout=subprocess.PIPE, text=True, cwd=tmp_path)
    lines = done.stdout.splitlines()
    assert lines[0].startswith("self_ns,self_share,total_ns,") and ",spin," in lines[1]


NAMED = """
import threading, time
def spin():
    while True: sum(range(1000)); time.sleep(0.001)
for name in ("worker-é", None):
    threading.Thread(target=spin, name=name, daemon=True).start()
print("ready", flush=True)
spin()
"""


@pytest.mark.parametrize("python, include", own_interpreter())
def test_threads_have_their_python_names(python, include, tmp_path):
    with Program(python, tmp_path, NAMED) as program:
        attach(program.pid, tmp_path / "t.sonde", "--sample", 200, "--duration", 0.5)
    names = {sample["name"] for sample in samples(tmp_path / "t.sonde")}
    assert {"MainThread", "worker-é"} < names and any(name.startswith("Thread-1") for name in names)


CHILDREN = """
import os, subprocess, sys, time
def parent_work():
    while True: time.sleep(0.01)
def child_work():
    while True: sum(range(1000))
if len(sys.argv) > 1:
    child_work()
if os.fork() == 0:
    child_work()
subprocess.Popen([sys.executable, __file__, "again"])
subprocess.Popen(["sleep", "30"])
print("ready", flush=True)
time.sleep(0.6)
if os.fork() == 0:     # one that comes later
    child_work()
parent_work()
"""


def test_children(tmp_path):
    with Program(sys.executable, tmp_path, CHILDREN, start_new_session=True) as program:
        try:
            attach(program.pid, tmp_path / "t.sonde", "--sample", 200, "--duration", 3)
        finally:
            os.killpg(program.pid, signal.SIGKILL)
    assert (tmp_path / "t.sonde").is_dir()
    assert len(list((tmp_path / "t.sonde").iterdir())) == 4  # `sleep` is no Python
    workers = {sample["process"] for sample in samples(tmp_path / "t.sonde")
               if "child_work" in sample["functions"]}
    assert len(workers) == 3


C_FORK = """
import ctypes, os, threading, time
def child_work():
    while True: sum(range(1000))
threading.Thread(target=time.sleep, args=[30], daemon=True).start()
child = ctypes.PyDLL(None).fork()
if child == 0:
    child_work()
print(child, flush=True)
time.sleep(30)
"""


@pytest.mark.parametrize("python, include", own_interpreter())
def test_a_child_of_c_s_fork(tmp_path, python, include):
    """Python goes by its parent's number for the thread there."""
    with Program(python, tmp_path, C_FORK, start_new_session=True) as program:
        try:
            attach(program.said.strip(), tmp_path / "t.sonde", "--sample", 200, "--duration", 0.5)
        finally:
            os.killpg(program.pid, signal.SIGKILL)
    found = samples(tmp_path / "t.sonde")
    assert sum(s["samples"] for s in found if "child_work" in s["functions"]) > 20
    assert len({s["tid"] for s in found}) == 1  # the other thread stayed in the parent


def test_until_it_ends(tmp_path):
    with Program(sys.executable, tmp_path, """
            import time
            print("ready", flush=True)
            end = time.time() + 0.7
            while time.time() < end: pass
            """) as program:
        attach(program.pid, tmp_path / "t.sonde", "--sample", 300)
    assert samples(tmp_path / "t.sonde")
    assert "not_closed" not in ledger(tmp_path / "t.sonde")


def test_it_becomes_another_program(tmp_path):
    with Program(sys.executable, tmp_path, """
            import os, sys, time
            if len(sys.argv) > 1:
                def second():
                    while True: sum(range(1000))
                second()
            print("ready", flush=True)
            def first():
                end = time.time() + 1
                while time.time() < end: sum(range(1000))
            first()
            os.execv(sys.executable, [sys.executable, __file__, "again"])
            """) as program:
        attach(program.pid, tmp_path / "t.sonde", "--sample", 300, "--duration", 4)
    seen = {name for sample in samples(tmp_path / "t.sonde") for name in sample["functions"]}
    assert {"first", "second"} <= seen


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_what_there_is(tmp_path, how):
    with Program(sys.executable, tmp_path, MIXTURE) as program:
        sonde = subprocess.Popen([SONDE, "attach", str(program.pid), "-o", str(tmp_path / "t.sonde")],
                                 stderr=subprocess.PIPE)
        time.sleep(1)
        sonde.send_signal(how)
        assert sonde.wait(timeout=20) == 0, sonde.stderr.read()
        assert program.process.poll() is None  # it is left alone
    assert samples(tmp_path / "t.sonde")
    assert "not_closed" not in ledger(tmp_path / "t.sonde")


def test_the_target_is_not_held_up(tmp_path):
    """It goes on when it was sampled, and nothing is left in it."""
    with Program(sys.executable, tmp_path, MIXTURE) as program:
        before = open(f"/proc/{program.pid}/maps").read().count("sonde")
        attach(program.pid, tmp_path / "t.sonde", "--sample", 1000, "--duration", 1)
        status = open(f"/proc/{program.pid}/status").read()
        assert "TracerPid:\t0" in status
        assert open(f"/proc/{program.pid}/maps").read().count("sonde") == before == 0
        assert program.process.poll() is None


# ------------------------------------------------------------- what becomes of the trace

def test_a_file_of_another_format(tmp_path):
    """By its ending; the trace that it is made of is not kept, and an older file is replaced."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out/t.folded").write_text("older")
    with Program(sys.executable, tmp_path, MIXTURE) as program:
        for name in ("t.speedscope.json", "t.folded", "t.json"):
            attach(program.pid, tmp_path / "out" / name, "--duration", 0.3)
    profile = json.loads((tmp_path / "out/t.speedscope.json").read_text())
    assert "three" in {frame["name"] for frame in profile["shared"]["frames"]}
    assert "spin (" in (tmp_path / "out/t.folded").read_text()
    assert json.loads((tmp_path / "out/t.json").read_text())["traceEvents"]
    assert len(list((tmp_path / "out").iterdir())) == 3


def test_it_is_shown(tmp_path):
    (tmp_path / "tmp").mkdir()
    with Program(sys.executable, tmp_path, MIXTURE) as program:
        done = subprocess.run([SONDE, "attach", str(program.pid), "-d", "0.5", "--print"], cwd=tmp_path,
                              env={**os.environ, "TMPDIR": str(tmp_path / "tmp")}, timeout=30,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0 and done.stderr == ""
    assert "Samples:" in done.stdout and "spin  " in done.stdout
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["program.py", "tmp"]


@pytest.mark.parametrize("python, include", own_interpreter())
def test_one_that_is_only_starting(tmp_path, python, include):
    """It is held where its code is loaded and has not run, and let go of meanwhile."""
    libc = ctypes.CDLL(None)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    trace_me, detach, to_syscall = 0, 17, 24
    library = "libpython" in subprocess.check_output(["ldd", python], text=True)
    program = subprocess.Popen([python, "-c", "import time; time.sleep(30)"],
                               preexec_fn=lambda: libc.ptrace(trace_me, 0, None, None))
    try:
        assert os.WIFSTOPPED(os.waitpid(program.pid, 0)[1])
        while library and "libpython" not in open(f"/proc/{program.pid}/maps").read():
            libc.ptrace(to_syscall, program.pid, None, None)
            assert os.WIFSTOPPED(os.waitpid(program.pid, 0)[1])
        sonde = subprocess.Popen([SONDE, "attach", "-q", str(program.pid), "-o", str(tmp_path / "t.sonde"),
                                  "-d", "0.5"], stderr=subprocess.PIPE, text=True)
        time.sleep(0.1)
        libc.ptrace(detach, program.pid, None, None)
        said = sonde.communicate(timeout=20)[1]
    finally:
        program.kill()
        program.wait()
    assert sonde.returncode == 0 and said == "" and samples(tmp_path / "t.sonde")


# ------------------------------------------------- a thread that is halted comes to no harm

def sampler(program, trace, *options):
    """One that goes on while the test does something to the program: it has found it once it writes its files."""
    shutil.rmtree(trace, ignore_errors=True)  # of one that was killed
    trace.unlink(missing_ok=True)
    process = subprocess.Popen([SONDE, "attach", str(program.pid), "-o", str(trace), "--sample", "5000",
                                *options], stderr=subprocess.PIPE)
    deadline = time.monotonic() + 20
    while not any(trace.glob("*")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.3)  # some samples
    return process


def ended(process):
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) == 0, process.stderr.read()


def comes_true(condition, seconds=10):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return condition()


def is_running(program):
    """It computes: not halted, not stopped, not dead."""
    def spent():
        return sum(map(int, program.stat().split()[11:13]))
    begin = spent()
    return comes_true(lambda: spent() > begin + 2)


# Each signal is sent when the one before it has been counted, so that none can fall together.
SIGNALS = "import signal, os\ncount = 0\n" \
          "def note(*_):\n    global count; count += 1; os.write(1, b'%d\\n' % count)\n" \
          "signal.signal(signal.SIGUSR1, note)\n" + SHORT_CALLS


def test_signals_reach_it(tmp_path):
    with Program(sys.executable, tmp_path, SIGNALS) as program:
        sonde = sampler(program, tmp_path / "t.sonde")
        for sent in range(1, 1001):
            os.kill(program.pid, signal.SIGUSR1)
            assert int(program.process.stdout.readline()) == sent
        ended(sonde)
        assert is_running(program)
    assert impossible(s for s in samples(tmp_path / "t.sonde") if "note" not in s["functions"]) == []


def test_it_is_stopped_and_goes_on(tmp_path):
    with Program(sys.executable, tmp_path, SHORT_CALLS) as program:
        sonde = sampler(program, tmp_path / "t.sonde")
        for _ in range(20):
            os.kill(program.pid, signal.SIGSTOP)
            assert os.waitpid(program.pid, os.WUNTRACED)[1] == signal.SIGSTOP << 8 | 0x7F
            time.sleep(0.01)
            os.kill(program.pid, signal.SIGCONT)
            assert is_running(program)
        os.kill(program.pid, signal.SIGSTOP)
        ended(sonde)
        # A thread that is let go in its stop runs for a moment, until the kernel has it stop again.
        assert comes_true(lambda: program.stat().split()[0] == "T")
        os.kill(program.pid, signal.SIGCONT)
        assert is_running(program)


def test_the_sampler_is_killed(tmp_path):
    with Program(sys.executable, tmp_path, SHORT_CALLS) as program:
        for _ in range(5):
            sonde = sampler(program, tmp_path / "t.sonde")
            workers = open(f"/proc/{sonde.pid}/task/{sonde.pid}/children").read().split()
            os.kill(sonde.pid, signal.SIGKILL)
            for pid in map(int, workers):
                with contextlib.suppress(ProcessLookupError):  # it has ended with its parent
                    os.kill(pid, signal.SIGKILL)
            sonde.wait()
            assert is_running(program)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_its_end_is_its_parents_to_see(tmp_path, how):
    for _ in range(5):
        with Program(sys.executable, tmp_path, SHORT_CALLS) as program:
            sonde = sampler(program, tmp_path / "t.sonde")
            os.kill(program.pid, how)
            assert program.process.wait(timeout=10) == -how
            assert sonde.wait(timeout=20) == 0, sonde.stderr.read()


def test_two_at_once(tmp_path):
    """Each finds the thread in the hands of the other now and then: it is read without a halt."""
    with Program(sys.executable, tmp_path, SHORT_CALLS) as program:
        both = [sampler(program, tmp_path / f"{i}.sonde") for i in range(2)]
        time.sleep(1)
        for sonde in both:
            ended(sonde)
        assert is_running(program)
    for i in range(2):
        found = samples(tmp_path / f"{i}.sonde")
        assert sum(sample["samples"] for sample in found) > 100
        assert impossible(found) == []


# ------------------------------------------------------------------------------ refusals

def test_not_python(tmp_path):
    """It is sampled from outside, as any program is."""
    process = subprocess.Popen(["sh", "-c", "while :; do :; done"])
    try:
        attach(process.pid, tmp_path / "t.sonde", "--duration", "0.5")
    finally:
        process.kill()
        process.wait()
    said = subprocess.run([SONDE, "report", str(tmp_path / "t.sonde"), "--view", "functions", "--json"], check=True,
                          stdout=subprocess.PIPE)
    rows = json.loads(said.stdout)["rows"]
    assert rows and all(row["is_native"] for row in rows)


def test_a_python_that_is_not_known(tmp_path):
    old = os.path.expanduser("~/.pyenv/versions/3.8.18/bin/python3")
    if not os.path.exists(old):
        pytest.skip("no Python 3.8 here")
    with Program(old, tmp_path, MIXTURE) as program:
        said = attach(program.pid, tmp_path / "t.sonde", status=1)
    assert "Python 3.8 is not supported; expected 3.9 or later" in said


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_not_permitted(tmp_path):
    with Program(sys.executable, tmp_path, MIXTURE) as program:
        done = subprocess.run(["sh", "-c", f"exec {SONDE} attach {program.pid} -o /tmp/never.sonde"],
                              user=65534, group=65534, extra_groups=[], stderr=subprocess.PIPE,
                              text=True)
    if done.returncode in (126, 127):
        pytest.skip("the installed program cannot be run by another user")
    assert done.returncode == 1
    assert "not permitted" in done.stderr and done.stderr.count("\n") == 1


def test_nothing_else_is_replaced(tmp_path):
    for name in ("mine", "mine.txt"):
        (tmp_path / name).write_text("mine")
    with Program(sys.executable, tmp_path, MIXTURE) as program:
        said = attach(program.pid, tmp_path / "mine", "--duration", 1, status=1)
        refused = attach(program.pid, tmp_path / "mine.txt", "--duration", 1, status=2)
    assert said.startswith("sonde: refusing to overwrite")
    assert "unknown extension '.txt'" in refused
    assert (tmp_path / "mine").read_text() == (tmp_path / "mine.txt").read_text() == "mine"
