# SPDX-License-Identifier: Apache-2.0
"""sonde.sample: stacks of its own process, read by a thread of its own."""
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from sample_tools import GIL, ON_CPU, POSSIBLE, SONDE, impossible, ledger, samples


def run(folder, text, *words, status=0, file="program.py", **extra):
    path = folder / file
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    done = subprocess.run([sys.executable, str(path), *words], cwd=folder, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=100, **extra)
    assert done.returncode == status, (done.returncode, done.stderr)
    return done


MIXTURE = """
    import time, sonde
    def spin(seconds):
        end = time.thread_time() + seconds
        while time.thread_time() < end:
            sum(range(20))
    def one(): spin(0.010)
    def two(): spin(0.020)
    def three(): spin(0.030)
    with sonde.sample(hz=1000) as seen:
        for _ in range(15):
            one(); two(); three()
    seen.save("t.sonde")
"""


@pytest.mark.alone
def test_shares(tmp_path):
    for attempt in range(4):  # a loaded machine may starve the sampler for a while
        run(tmp_path, MIXTURE)
        spent = {"one": 0, "two": 0, "three": 0}
        for sample in samples(tmp_path / "t.sonde"):
            for name in spent:
                if name in sample["functions"] and sample["state"] & ON_CPU:
                    spent[name] += sample["covered_ns"]
        whole = sum(spent.values())
        share = {name: 100 * ns / whole for name, ns in spent.items()}
        if all(abs(share[name] - true) < 3
               for name, true in (("one", 16.7), ("two", 33.3), ("three", 50))):
            return
    pytest.fail(f"{share}")


@pytest.mark.alone
def test_short_functions_have_their_share(tmp_path):
    """What a reader on another core can hardly catch: calls of some fifty nanoseconds."""
    for attempt in range(4):
        run(tmp_path, """
            import time, sonde
            def short(): pass
            def caller():
                for _ in range(1000):
                    short(); short(); short(); short()
            with sonde.sample(hz=1000) as seen:
                end = time.thread_time() + 1.5
                while time.thread_time() < end: caller()
            seen.save("t.sonde")
            """)
        found = samples(tmp_path / "t.sonde")
        inside = sum(s["covered_ns"] for s in found if s["functions"][:1] == ["short"])
        whole = sum(s["covered_ns"] for s in found if "caller" in s["functions"])
        # Making and leaving the frame is in the caller's time; still, it is no rare sight.
        if inside > 0.05 * whole:
            return
    pytest.fail(f"{100 * inside / whole:.1f} % in short()")


@pytest.mark.alone
def test_every_stack_is_possible(tmp_path):
    run(tmp_path, POSSIBLE + textwrap.dedent("""
        import time, sonde
        end = time.time() + 2
        with sonde.sample(hz=5000) as seen:
            main(lambda: time.time() > end)
        seen.save("t.sonde")
        """))
    found = samples(tmp_path / "t.sonde")
    assert sum(sample["samples"] for sample in found) > 100
    assert impossible(found) == []


def test_a_freed_function_s_name_is_not_shown_for_another(tmp_path):
    """Functions made up and thrown away: the next has the same address, size and line."""
    run(tmp_path, """
        import sonde, time
        def spin(name):
            end = time.perf_counter() + 0.004
            while time.perf_counter() < end: pass
        with sonde.sample(hz=1000) as seen:
            for i in range(1000, 1300):
                space = {"spin": spin}
                exec(f"def made{i}():\\n spin('made{i}')\\n", space)
                print(i, time.clock_gettime_ns(time.CLOCK_MONOTONIC))
                space[f"made{i}"]()
                del space
        seen.save("t.sonde")
        """)
    order = [name for sample in samples(tmp_path / "t.sonde") for name in sample["functions"]
             if name.startswith("made")]
    assert len(order) > 50
    assert order == sorted(order)  # each after the one before it, none from the past


def test_threads_and_their_states(tmp_path):
    done = run(tmp_path, """
        import sonde, threading, time
        def sleeper(): time.sleep(1.5)
        def busy():
            end = time.time() + 1
            while time.time() < end: pass
        threads = [threading.Thread(target=sleeper, name="the sleeper"),
                   threading.Thread(target=busy, name="the busy one")]
        begin = time.monotonic_ns()
        with sonde.sample(hz=500) as seen:
            for thread in threads: thread.start()
            busy()
        print(time.monotonic_ns() - begin)
        for thread in threads: thread.join()
        seen.save("t.sonde")
        """)
    found = samples(tmp_path / "t.sonde")
    asleep = [s for s in found if "sleeper" in s["functions"]]
    assert {s["name"] for s in asleep} == {"the sleeper"}
    idle = sum(s["covered_ns"] for s in asleep if s["state"] == 0)
    assert idle > 0.9 * sum(s["covered_ns"] for s in asleep)
    busy = [s for s in found if "busy" in s["functions"]]
    assert len({s["tid"] for s in busy}) == 2
    # Both wait for the lock half of the time, which is not idleness.
    assert sum(s["covered_ns"] for s in busy if s["state"] == 0) < 0.2 * sum(
        s["covered_ns"] for s in busy)
    assert any(s["state"] & GIL for s in busy)
    assert sum(s["covered_ns"] for s in found if s["state"] & GIL) <= int(done.stdout)


def test_short_threads_are_all_seen(tmp_path):
    """One after another, each where the one before it was: the same address, often the same name."""
    for attempt in range(4):  # a loaded machine may starve the sampler for longer than one lives
        run(tmp_path, """
            import sonde, threading, time
            def busy():
                end = time.thread_time() + 0.02
                while time.thread_time() < end: pass
            with sonde.sample(hz=1000) as seen:
                for _ in range(100):
                    thread = threading.Thread(target=busy)
                    thread.start()
                    thread.join()
            seen.save("t.sonde")
            """)
        found = {s["tid"] for s in samples(tmp_path / "t.sonde") if "busy" in s["functions"]}
        if len(found) > 96:
            return
    pytest.fail(f"{len(found)} of 100")


def test_threads_have_the_names_they_began_with(tmp_path):
    """None of them is there when sampling begins or ends."""
    run(tmp_path, """
        import os, sonde, threading, time
        def work():
            end = time.thread_time() + 0.03
            while time.thread_time() < end: pass
        class Own(threading.Thread):
            def run(self): work()
        was = vars(threading.Thread)["_set_native_id"]
        with sonde.sample(hz=1000) as seen:
            for i in range(20):
                kind = Own(name=f"own {i}") if i % 2 else threading.Thread(target=work, name=f"näme {i}")
                kind.start(); kind.join()
                assert kind.native_id
            long = threading.Thread(target=work, name="ü" * 100)
            long.start(); long.join()
            child = os.fork()
            if child == 0:
                thread = threading.Thread(target=work, name="in the child")
                thread.start(); thread.join()
                time.sleep(0.1)
                os._exit(0)
            os.waitpid(child, 0)
        assert vars(threading.Thread)["_set_native_id"] is was
        seen.save("t.sonde")
        """)
    found = samples(tmp_path / "t.sonde")
    names = {s["name"] for s in found if "work" in s["functions"] and s["process"] == 0}
    assert names <= {*(f"{'own' if i % 2 else 'näme'} {i}" for i in range(20)), "ü" * 47}
    assert len(names) > 15  # a loaded machine may starve the sampler for longer than one lives
    assert {s["name"] for s in found if s["process"] == 1} <= {"in the child", "MainThread"}


def test_descriptors_are_the_programs(tmp_path):
    """Whatever the sampler opens, the program's files keep their numbers: during, after, and in a forked child."""
    (tmp_path / "input").write_text("one\ntwo\nthree\n")
    with open(tmp_path / "input") as given:
        done = run(tmp_path, """
            import os, sonde, sys, time
            def files():
                names = {}
                for number in os.listdir("/proc/self/fd"):
                    try: names[int(number)] = os.readlink(f"/proc/self/fd/{number}")
                    except OSError: pass  # that of the folder itself
                return names
            before = files()
            for _ in range(2):
                with sonde.sample(hz=1000) as seen:
                    end = time.monotonic() + 0.05
                    while time.monotonic() < end: pass
                    child = os.fork()
                    if child == 0:
                        time.sleep(0.02)
                        os._exit(0 if os.readlink("/proc/self/fd/0") == before[0] else 1)
                    assert os.waitpid(child, 0)[1] == 0
                    assert files().items() >= before.items(), files()
                assert files() == before, (files(), before)
            print(sys.stdin.read().split())
            """, stdin=given)
    assert done.stdout == "['one', 'two', 'three']\n"


@pytest.fixture
def busy_machine():
    """Twice as many processes that run as there are processors."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * os.cpu_count())]
    yield
    for other in others:
        other.kill()
        other.wait()


def processor_seconds(trace):
    text = subprocess.run([SONDE, "report", trace, "--view", "samples"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return float(text.partition("CPU time:")[2].split()[0])


@pytest.mark.alone
def test_processor_time_is_that_of_the_process(tmp_path, busy_machine):
    """Samples cannot tell a thread that waits for a processor from one that runs."""
    (tmp_path / "program.py").write_text("import time\nwhile time.process_time() < 1: sum(range(1000))\nprint(time.process_time())\n")
    trace = str(tmp_path / "t.sonde")
    done = subprocess.run([SONDE, "run", "--sample", "-o", trace, "--", sys.executable, "program.py"], cwd=tmp_path, stdout=subprocess.PIPE,
                          text=True, timeout=100, check=True)
    spent = float(done.stdout)
    assert spent - 0.25 < processor_seconds(trace) < spent + 0.1  # less its start, with its end


@pytest.mark.alone
def test_processor_time_of_another_process(tmp_path, busy_machine):
    trace = str(tmp_path / "t.sonde")
    with subprocess.Popen([sys.executable, "-c", "print(flush=True)\nwhile True: pass"], stdout=subprocess.PIPE) as program:
        program.stdout.readline()
        spent = lambda: int(open(f"/proc/{program.pid}/schedstat").read().split()[0]) / 1e9
        begun = spent()
        subprocess.run([SONDE, "attach", str(program.pid), "--duration", "1", "-o", trace], timeout=100, check=True, stderr=subprocess.PIPE)
        most = spent() - begun
        program.kill()
    assert 0.1 < processor_seconds(trace) <= most < 0.9


@pytest.mark.alone
def test_no_time_is_two_threads(tmp_path):
    """Many threads, looked at in turn: one lock is held once at a time, and no CPU is made up."""
    done = run(tmp_path, """
        import sonde, threading, time
        stop, delays = False, []
        def busy():
            while not stop: pass
        def run():  # what the thread was ready to run and had no processor, in ns; 0: the kernel does not say
            busy()
            try:
                with open("/proc/thread-self/schedstat") as file: delays.append(int(file.read().split()[1]))
            except OSError: pass
        threads = [threading.Thread(target=run) for _ in range(32)]
        wall, cpu = time.monotonic_ns(), time.process_time_ns()
        with sonde.sample(hz=1000) as seen:
            for thread in threads: thread.start()
            time.sleep(1)
            stop = True
            for thread in threads: thread.join()
        print(time.monotonic_ns() - wall, time.process_time_ns() - cpu, sum(delays))
        seen.save("t.sonde")
        """)
    wall, cpu, delay = map(int, done.stdout.split())
    found = [s for s in samples(tmp_path / "t.sonde") if "busy" in s["functions"]]
    assert len({s["tid"] for s in found}) == 32
    held = sum(s["covered_ns"] for s in found if s["state"] & GIL)
    ran = sum(s["covered_ns"] for s in found if s["state"] & ON_CPU)
    assert 0.3 * wall < held <= wall
    # A period of each thread is what the sampler may be off by; and who waits for a processor counts as running.
    assert 0.3 * cpu < ran <= cpu + delay + 32 * 1_000_000


FOUR = """
import json, sys, threading, time
spent = {}
def spin(end):
    while time.monotonic() < end: sum(range(50))
def turn(end):
    spin(end)
    try:
        with open("/proc/thread-self/schedstat") as file: delay = int(file.read().split()[1])
    except OSError: delay = 0
    spent[threading.get_native_id()] = time.thread_time_ns(), delay  # and ready to run without a processor
end = time.monotonic() + 2
threads = [threading.Thread(target=turn, args=(end,)) for _ in range(3)]
for thread in threads: thread.start()
turn(end)
for thread in threads: thread.join()
print(json.dumps(spent))
"""


@pytest.mark.alone
@pytest.mark.parametrize("attached", [False, True])
def test_who_held_the_lock(tmp_path, attached):
    """Of four threads that compute, each holds it while it runs, and together they always do."""
    (tmp_path / "four.py").write_text(FOUR)
    if attached:
        with subprocess.Popen([sys.executable, "four.py"], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as program:
            subprocess.run([SONDE, "attach", str(program.pid), "--sample", "1000", "-o", "t.sonde"], cwd=tmp_path, check=True,
                           stderr=subprocess.PIPE, timeout=100)
            told = program.stdout.read()
    else:
        told = subprocess.run([SONDE, "run", "--sample", "1000", "-o", "t.sonde", "--", sys.executable, "four.py"], cwd=tmp_path,
                              stdout=subprocess.PIPE, check=True, text=True, timeout=100).stdout
    spent = {int(tid): ns for tid, (ns, _) in json.loads(told).items()}
    delay = sum(ns for _, ns in json.loads(told).values())  # on a busy machine nobody runs, or one that holds it does not
    spans = sorted((s["time_ns"] - s["covered_ns"], s["time_ns"]) for s in samples(tmp_path / "t.sonde") if s["state"] & GIL)
    assert all(end <= begin + 1000 for (_, end), (begin, _) in zip(spans, spans[1:])), "two threads held it at a time"
    wall = spans[-1][1] - spans[0][0]
    report = subprocess.run([SONDE, "report", "t.sonde", "--gil", "--json"], cwd=tmp_path, stdout=subprocess.PIPE, check=True)
    threads = {row["thread"]: row for row in json.loads(report.stdout)["totals"]["threads"]}
    held = {tid: threads[tid]["gil_ns"] for tid in spent}
    assert 0.95 * wall - delay < sum(held.values()) <= wall + 1000
    for row in threads.values():
        assert row["time_ns"] == row["gil_ns"] and row["gil_wait_ns"] == row["idle_ns"] == 0
    whole = sum(spent.values())
    assert all(abs(held[tid] / sum(held.values()) - spent[tid] / whole) < 0.1 + delay / wall for tid in spent), (held, spent)
    text = subprocess.run([SONDE, "report", "t.sonde", "--gil"], cwd=tmp_path, stdout=subprocess.PIPE, text=True, check=True).stdout
    assert "GIL:     held for" in text and all(f" s  thread {tid} " in text for tid in spent)
    folded = subprocess.run([SONDE, "export", "t.sonde", "--gil", "--to", "folded", "-o", "-"], cwd=tmp_path,
                            stdout=subprocess.PIPE, text=True, check=True).stdout
    micros = sum(int(line.rpartition(" ")[2]) for line in folded.splitlines())
    assert micros * 1000 == pytest.approx(sum(row["gil_ns"] for row in threads.values()), rel=0.01)


STOPPED = """
import os, time
def work():
    end = time.monotonic() + 1.5
    while time.monotonic() < end: sum(range(50))
print(os.getpid(), flush=True)
work()
"""


@pytest.mark.alone
def test_a_stop_is_idle_time(tmp_path):
    """The sampler is stopped along with its program: nobody looks at it meanwhile."""
    (tmp_path / "stopped.py").write_text(STOPPED)
    with subprocess.Popen([SONDE, "run", "--sample", "1000", "-o", "t.sonde", "--", sys.executable, "stopped.py"], cwd=tmp_path,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as program:
        pid = int(program.stdout.readline())
        time.sleep(0.3)
        os.kill(pid, signal.SIGSTOP)
        time.sleep(0.8)
        os.kill(pid, signal.SIGCONT)
    seen = [sample for sample in samples(tmp_path / "t.sonde") if "work" in sample["functions"]]
    idle = sum(sample["covered_ns"] for sample in seen if not sample["state"] & (GIL | ON_CPU))
    assert 0.7e9 < idle < 1e9
    assert 1.3e9 < sum(sample["covered_ns"] for sample in seen) < 2.2e9


def test_recursion_and_generators(tmp_path):
    run(tmp_path, """
        import sonde, time
        def down(n):
            if n: return down(n - 1)
            end = time.time() + 0.4
            while time.time() < end: pass
        def generator():
            down(5)
            yield
        with sonde.sample(hz=500) as seen:
            for _ in generator(): pass
        seen.save("t.sonde")
        """)
    stacks = {tuple(s["functions"]) for s in samples(tmp_path / "t.sonde")}
    assert ("down",) * 6 + ("generator", "<module>") in stacks


def test_a_stack_too_deep_is_cut(tmp_path):
    run(tmp_path, """
        import sonde, sys, threading, time
        sys.setrecursionlimit(100000); threading.stack_size(512 << 20)
        def down(n):
            if n: return down(n - 1)
            end = time.time() + 0.5
            while time.time() < end: pass
        def run():
            with sonde.sample(hz=200) as seen: down(3000)
            seen.save("t.sonde")
        thread = threading.Thread(target=run); thread.start(); thread.join()
        """)
    found = [s for s in samples(tmp_path / "t.sonde") if "down" in s["functions"]]
    assert found


# ------------------------------------------------------------------------- life and death

def test_fork(tmp_path):
    run(tmp_path, """
        import os, sonde, time
        def spin():
            end = time.time() + 0.6
            while time.time() < end: pass
        def in_child(): spin()
        with sonde.sample(hz=500) as seen:
            child = os.fork()
            if child == 0:
                in_child()
                os._exit(0)
            spin()
            assert os.waitpid(child, 0)[1] == 0
        seen.save("t.sonde")
        """)
    found = samples(tmp_path / "t.sonde")
    assert {s["process"] for s in found} == {0, 1}
    assert any("in_child" in s["functions"] for s in found)
    assert len({s["process"] for s in found if "in_child" in s["functions"]}) == 1


def test_children_of_c_s_fork(tmp_path):
    """As uWSGI's workers: os.fork() and what is registered with it know nothing of them."""
    run(tmp_path, """
        import ctypes, os, sonde, threading, time
        libc = ctypes.PyDLL(None)  # keeps the interpreter's lock
        def spin():
            end = time.time() + 0.3
            while time.time() < end: pass
        def in_child(): spin()
        def in_grandchild(): spin()
        def fork(body):
            child = libc.fork()
            if child == 0:
                body()
                raise SystemExit(7)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        def twice():
            in_child()
            fork(in_grandchild)
        over = threading.Event()
        other = threading.Thread(target=over.wait, daemon=True)
        with sonde.sample(hz=500) as seen:
            other.start()
            for _ in range(3): fork(twice)
            over.set(); other.join()
        seen.save("t.sonde")
        """)
    found = samples(tmp_path / "t.sonde")
    for name in ("in_child", "in_grandchild"):
        inside = [s for s in found if name in s["functions"]]
        assert len({s["process"] for s in inside}) == 3
        assert {s["name"] for s in inside} == {"MainThread"}
        assert sum(s["covered_ns"] for s in inside) > 0.5 * 3 * 0.3e9
    assert not [s for s in found if s["process"] != 0 and s["name"] == "Thread-1 (wait)"]


def test_forks_while_samples_are_taken(tmp_path):
    """By several threads at once, in the middle of rounds: none hangs, crashes or goes unsampled."""
    done = run(tmp_path, """
        import ctypes, os, sonde, sys, threading, time, warnings
        warnings.simplefilter("ignore", DeprecationWarning)  # of 3.12 and later: the program's own threads fork
        sys.setswitchinterval(1000)  # a request for the lock at the moment of C's fork() hangs Python's child, without us too
        libc, statuses = ctypes.PyDLL(None), []
        def fork(n):
            child = (libc.fork if n % 2 else os.fork)()
            if child == 0:
                end = time.time() + 0.02
                while time.time() < end: pass
                os._exit(7)
            statuses.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        def forks():
            for n in range(40): fork(n)
        with sonde.sample(hz=5000) as seen:
            threads = [threading.Thread(target=forks) for _ in range(3)]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
        print(statuses.count(7))
        """)
    assert done.stdout == "120\n" and done.stderr == ""


MULTIPROCESSING = {
    "process": """
        for _ in range(10):
            child = context.Process(target=work)
            child.start(); child.join()
            assert child.exitcode == 0
        """,
    "pool": """
        for _ in range(10):
            pool = context.Pool(1)
            pool.apply(work)
            pool.close(); pool.join()
        """,
    "at once": """
        children = [context.Process(target=work) for _ in range(10)]
        for child in children: child.start()
        for child in children: child.join()
        """,
}


@pytest.mark.alone
@pytest.mark.parametrize("way", MULTIPROCESSING)
def test_multiprocessing(tmp_path, way):
    """Its forked children end by os._exit(), each after less than is written at a time."""
    run(tmp_path, """
        import multiprocessing, sonde, time
        def work(): time.sleep(0.09)
        context = multiprocessing.get_context("fork")
        with sonde.sample(hz=500) as seen:
            BODY
        seen.save("t.sonde")
        """.replace("BODY", textwrap.indent(textwrap.dedent(MULTIPROCESSING[way]), 12 * " ").strip()))
    found = [s for s in samples(tmp_path / "t.sonde") if "work" in s["functions"]]
    assert len({s["process"] for s in found}) == 10
    assert {s["name"] for s in found} == {"MainThread"}
    assert 0.8 * 0.9e9 < sum(s["covered_ns"] for s in found)


def test_a_killed_child_has_samples(tmp_path):
    run(tmp_path, """
        import multiprocessing, os, signal, sonde, time
        def work():
            time.sleep(0.09)
            os.kill(os.getpid(), signal.SIGKILL)
        with sonde.sample(hz=500) as seen:
            for _ in range(10):
                child = multiprocessing.get_context("fork").Process(target=work)
                child.start(); child.join()
        seen.save("t.sonde")
        """)
    found = [s for s in samples(tmp_path / "t.sonde") if "work" in s["functions"]]
    assert len({s["process"] for s in found}) >= 8
    assert 0.3 * 0.9e9 < sum(s["covered_ns"] for s in found)


def test_threads_that_outlive_a_child_s_work(tmp_path):
    run(tmp_path, """
        import multiprocessing, sonde, threading, time
        def late(): time.sleep(0.6)
        def work(): threading.Thread(target=late).start()
        with sonde.sample(hz=500) as seen:
            child = multiprocessing.get_context("fork").Process(target=work)
            child.start(); child.join()
        seen.save("t.sonde")
        """)
    found = [s for s in samples(tmp_path / "t.sonde") if "late" in s["functions"]]
    assert 0.5 * 0.6e9 < sum(s["covered_ns"] for s in found)


ENDINGS = {
    "returns": ("", 0),
    "sys.exit": ("sys.exit(3)", 3),
    "os._exit": ("os._exit(4)", 4),
    "raises": ("raise ValueError", 1),
    "killed": ("os.kill(os.getpid(), 9)", -9),
    "exec": ("os.execv('/bin/sh', ['sh', '-c', 'exit 5'])", 5),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_endings(tmp_path, ending):
    text, status = ENDINGS[ending]
    run(tmp_path, f"""
        import os, sys, time, sonde
        seen = sonde.sample(hz=1000, path="t.sonde")
        seen.start()
        def spin():
            end = time.time() + 0.5
            while time.time() < end: pass
        spin()
        {text}
        """, status=status)
    found = samples(tmp_path / "t.sonde")
    covered = sum(s["covered_ns"] for s in found if "spin" in s["functions"])
    assert covered > 0.25e9  # up to a tenth of a second may be lost, and what a loaded machine takes


@pytest.mark.parametrize("when", ("before", "within", "both"))
def test_interrupted_at_exit(tmp_path, when):
    """Ctrl-C twice, or `timeout -s INT`, which signals a program and its group."""
    done = run(tmp_path, """
        import atexit, ctypes, sys, time, sonde, sonde.python._sample
        tell, left = sonde.python._sample._tell_paths, [3]  # times
        interrupt = getattr(ctypes.CDLL(None), "raise")
        def within():
            left[0] -= 1
            if left[0] >= 0: interrupt(2)
            tell()
        sonde.sample(hz=1000, path="t.sonde").start()
        if "WHEN" != "before": sonde.python._sample._tell_paths = within
        def spin():
            end = time.time() + 0.3
            while time.time() < end: pass
        spin()
        time.sleep(0.05)
        if "WHEN" != "within": atexit.register(interrupt, 2)
        """.replace("WHEN", when))
    assert done.stderr == ""
    found = samples(tmp_path / "t.sonde")
    assert sum(s["covered_ns"] for s in found if "spin" in s["functions"]) > 0.15e9
    assert found[-1]["name"] == "MainThread"


def test_exec_and_signals_many_times(tmp_path):
    """A signal that is under way when the program becomes another one does no harm."""
    run(tmp_path, """
        import os, sys, sonde
        left = int(sys.argv[1]) if len(sys.argv) > 1 else 12
        if left:
            sonde.sample(hz=20000, path="t.sonde").start()
            sum(range(20000))
            os.execv(sys.executable, [sys.executable, __file__, str(left - 1)])
        """)


def test_system_calls_are_not_cut_short(tmp_path):
    """Only a thread that runs is interrupted: waiting ones are not, and Python sees no signal."""
    run(tmp_path, """
        import os, select, signal, socket, sonde, threading, time
        stop = False
        def busy():
            while not stop: sum(range(1000))
        thread = threading.Thread(target=busy); thread.start()
        with sonde.sample(hz=2000):
            for _ in range(20):
                begin = time.monotonic()
                time.sleep(0.01)
                assert time.monotonic() - begin >= 0.01
                assert select.select([], [], [], 0.001) == ([], [], [])
        stop = True
        thread.join()
        assert signal.getsignal(signal.SIGURG) == signal.SIG_DFL
        """)


def test_the_program_s_own_handler(tmp_path):
    """Of the signal that threads are asked by: it is the program's, before and after."""
    done = run(tmp_path, """
        import os, signal, sonde, time
        seen = []
        def spin():
            end = time.time() + 0.3
            while time.time() < end: pass
        signal.signal(signal.SIGURG, lambda *_: seen.append(1))
        with sonde.sample(hz=1000) as first:
            spin()
        assert not seen, "the handler was called by the sampler"
        os.kill(os.getpid(), signal.SIGURG)
        assert seen == [1]
        signal.signal(signal.SIGURG, signal.SIG_DFL)
        with sonde.sample(hz=1000) as second:
            spin()
            signal.signal(signal.SIGURG, lambda *_: seen.append(2))
            spin()
            assert seen == [1]
        first.save("first.sonde"); second.save("second.sonde")
        """)
    for name in ("first.sonde", "second.sonde"):
        assert any("spin" in s["functions"] for s in samples(tmp_path / name))


def test_a_program_that_blocks_signals_finds_none(tmp_path):
    """It runs calls too short to be read from outside: else it would be asked by one."""
    run(tmp_path, """
        import signal, sonde, time
        def short(): pass
        def caller():
            for _ in range(1000): short(); short()
        def spin():
            end = time.thread_time() + 0.3
            while time.thread_time() < end: caller()
        everything = signal.valid_signals()
        with sonde.sample(hz=2000):
            spin()
            for _ in range(2):
                signal.pthread_sigmask(signal.SIG_BLOCK, everything)
                spin()
                assert signal.sigpending() == set()
                assert signal.sigtimedwait(everything, 0) is None
                signal.pthread_sigmask(signal.SIG_UNBLOCK, everything)
                spin()
        """)


def test_nothing_is_kept_alive(tmp_path):
    run(tmp_path, """
        import gc, sonde, time, weakref
        class Thing: pass
        def use():
            thing = Thing()
            end = time.time() + 0.1
            while time.time() < end: pass
            return weakref.ref(thing)
        with sonde.sample(hz=1000):
            assert use()() is None
        """)


# ------------------------------------------------------------------------------- the face

def test_face(tmp_path):
    done = run(tmp_path, """
        import json, sonde, time
        def spin():
            end = time.time() + 0.2
            while time.time() < end: pass
        seen = sonde.sample(hz=1000)
        @seen
        def decorated(): spin()
        decorated(); decorated()
        seen.print()
        seen.dump_stats("t.speedscope.json")
        seen.trace().export("t.folded", to="folded")
        for wrong in (0, -1, 1e9):
            try: sonde.sample(hz=wrong)
            except ValueError as error: assert "hz must be" in str(error)
            else: raise AssertionError(wrong)
        """)
    assert "spin" in done.stdout and "Samples:" in done.stdout
    whole = json.loads((tmp_path / "t.speedscope.json").read_text())
    assert any(frame["name"].startswith("spin") for frame in whole["shared"]["frames"])
    assert "spin" in (tmp_path / "t.folded").read_text()


def test_two_at_once(tmp_path):
    done = run(tmp_path, """
        import sonde, time, warnings
        warnings.simplefilter("always")
        def spin():
            end = time.time() + 0.2
            while time.time() < end: pass
        with sonde.sample(hz=1000) as outer:
            with sonde.sample(hz=100) as inner:
                spin()
            spin()
        outer.print(); inner.print()
        """)
    assert "is already being sampled" in done.stderr
    assert done.stdout.count("Samples:") == 2


OWN_WORK = """
    import sys, time
    sys.path += [f"/nowhere/{i}" for i in range(400_000)]  # all of which are told at the start and at the end
    def work():
        end = time.monotonic() + 0.1
        while time.monotonic() < end: pass
"""


@pytest.mark.parametrize("session", [True, False])
def test_our_own_start_and_end_are_not_the_program_s(tmp_path, session):
    trace = tmp_path / "t.sonde"
    if session:
        run(tmp_path, OWN_WORK + """
    import sonde
    with sonde.sample(hz=1000) as seen: work()
    seen.save("t.sonde")""")
    else:  # its start is before the program, its end at exit
        (tmp_path / "program.py").write_text(textwrap.dedent(OWN_WORK) + "work()\n")
        subprocess.run([SONDE, "run", "--sample", "1000", "-o", trace, "--", sys.executable, "program.py"], cwd=tmp_path,
                       check=True, timeout=100)
    seen = samples(trace)
    covered = sum(sample["covered_ns"] for sample in seen if "work" in sample["functions"])
    assert 0.08e9 < covered < 1.2e9
    ours = [sample["functions"] for sample in seen if any("/sonde/" in (frame.get("file") or "") for frame in sample.get("stack", []))]
    assert not ours


def test_what_is_missing_is_counted(tmp_path):
    """Far more often than a machine can: what was not done is in the ledger."""
    run(tmp_path, """
        import sonde, time
        def down(n):
            if n: return down(n - 1)
            end = time.time() + 0.5
            while time.time() < end: pass
        with sonde.sample(hz=20000) as seen: down(400)
        seen.save("t.sonde")
        """)
    assert ledger(tmp_path / "t.sonde")["missed_samples"] > 0


# ------------------------------------------------------------------------- beside the peers

@pytest.mark.skipif(not shutil.which("py-spy", path=os.path.dirname(sys.executable)),
                    reason="py-spy is not installed")
def test_beside_py_spy(tmp_path):
    """The same program, seen by both: the same functions, the same shares."""
    spy = os.path.join(os.path.dirname(sys.executable), "py-spy")
    (tmp_path / "program.py").write_text(textwrap.dedent(MIXTURE).replace(
        "import time, sonde", "import time").replace(
        "with sonde.sample(hz=1000) as seen:", "if True:").replace('seen.save("t.sonde")', ""))
    for attempt in range(4):
        done = subprocess.run([spy, "record", "-r", "200", "-f", "raw", "-o", "spy.txt", "--",
                               sys.executable, "program.py"], cwd=tmp_path, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=60)
        if done.returncode != 0 or not (tmp_path / "spy.txt").exists():
            pytest.skip(f"py-spy cannot run here: {done.stderr.strip()[-200:]}")
        theirs = {"one": 0, "two": 0, "three": 0}
        for line in (tmp_path / "spy.txt").read_text().splitlines():
            stack, count = line.rsplit(" ", 1)
            for name in theirs:
                if f"{name} (" in stack:
                    theirs[name] += int(count)
        run(tmp_path, MIXTURE, file="ours.py")
        found = samples(tmp_path / "t.sonde")
        ours = {name: sum(s["covered_ns"] for s in found if name in s["functions"])
                for name in theirs}
        differences = [abs(100 * theirs[name] / sum(theirs.values()) -
                           100 * ours[name] / sum(ours.values())) for name in theirs]
        if max(differences) < 6:
            return
    pytest.fail(f"{theirs} {ours}")


def test_a_forked_worker_is_sampled_once(tmp_path):
    """Started by a program that is not Python: the interpreter samples itself, and its forks too, so nobody else does."""
    (tmp_path / "program.py").write_text(textwrap.dedent("""
        import os, time
        def burn():
            end = time.process_time() + 0.3
            while time.process_time() < end: pass
        child = os.fork()
        burn()
        if child: os.waitpid(child, 0)
        """))
    done = subprocess.run([SONDE, "run", "-q", "-o", "t.sonde", "--sample=500", "--", "env", sys.executable, "program.py"], cwd=tmp_path,
                          capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    ran = sum(s["covered_ns"] for s in samples(tmp_path / "t.sonde") if s["state"] & ON_CPU)
    assert 0.4e9 < ran < 0.75e9  # 0.6 of each once
