# SPDX-License-Identifier: Apache-2.0
"""sonde.sample(native=True): the functions of C libraries between the Python frames."""
import json
import os
import subprocess
import sys
import textwrap

import pytest

from sample_tools import ON_CPU, POSSIBLE, SONDE, impossible, ledger, samples

NATIVE = 8


def run(folder, text, *words, status=0, **extra):
    path = folder / "program.py"
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    done = subprocess.run([sys.executable, str(path), *words], cwd=folder, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=100, **extra)
    assert done.returncode == status, (done.returncode, done.stderr)
    return done


def on_cpu(folder, function, trace="t.sonde"):
    """Samples of a function that ran."""
    return [s for s in samples(folder / trace)
            if function in s["functions"] and s["state"] & ON_CPU]


def time_of(found):
    return sum(s["covered_ns"] for s in found)


def has(frames, library, name):
    """Is a function of this library, its name beginning so, among them?"""
    return any(library in os.path.basename(f["file"]) for f in frames) and \
        any(f["function"].startswith(name) for f in frames)


@pytest.mark.alone  # shares of samples, of which a busy machine misses a part
def test_a_library_s_function_is_called_by_the_right_function(tmp_path):
    """zlib lets go of the interpreter's lock, json does not."""
    for attempt in range(4):  # a thread that is not let run does not answer
        run(tmp_path, """
            import json, time, zlib, sonde
            data, text = bytes(range(256)) * 4000, json.dumps([{"a": [1, 2]}] * 5000)
            def squeeze(): zlib.compress(data, 9)
            def scan(): json.loads(text)
            with sonde.sample(hz=1000, native=True) as seen:
                end = time.time() + 2
                while time.time() < end: squeeze(); scan()
            seen.save("t.sonde")
            """)
        share = {}
        wanted = [("squeeze", "libz", "deflate")]
        if "_json" not in sys.builtin_module_names:  # else it is the interpreter's own, which is not shown
            wanted.append(("raw_decode", "_json", "["))
        for function, library, name in wanted:
            found = on_cpu(tmp_path, function)
            inside = [s for s in found
                      if has(s["stack"][:s["functions"].index(function)], library, name)]
            assert all(s["state"] & NATIVE for s in inside)
            assert not any(has(s["stack"][s["functions"].index(function):], library, "") for s in found)
            share[function] = time_of(inside) / max(time_of(found), 1)
        if all(part > 0.8 for part in share.values()):
            return
    pytest.fail(f"{share} {ledger(tmp_path / 't.sonde')}")


def test_code_without_unwind_data_is_a_leaf_behind_a_gap(tmp_path):
    """As MKL's kernels: where it is called from cannot be found, where it runs is known."""
    (tmp_path / "bare.c").write_text("void without_tables(long n) { for (volatile long i = 0; i < n; i++) ; }\n")
    built = subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables",
                            "-fomit-frame-pointer", tmp_path / "bare.c", "-o", tmp_path / "bare.so"], capture_output=True)
    if built.returncode != 0:
        pytest.skip("no compiler")
    for attempt in range(4):  # a thread that is not let run does not answer
        run(tmp_path, """
            import ctypes, os, time, sonde
            bare = ctypes.CDLL(os.path.abspath("bare.so")).without_tables
            def calls_it():
                bare(ctypes.c_long(2_000_000))
            with sonde.sample(hz=500, native=True) as seen:
                end = time.time() + 1.5
                while time.time() < end: calls_it()
            seen.save("t.sonde")
            """)
        found = on_cpu(tmp_path, "calls_it")
        inside = [s for s in found if s["functions"][0] == "without_tables"]
        assert all(s["functions"][:3] == ["without_tables", "(no unwind data)", "calls_it"] for s in inside), inside[:3]
        if time_of(inside) > 0.8 * time_of(found):
            return
    pytest.fail(f"{time_of(inside)} of {time_of(found)} ns have the function that ran: {ledger(tmp_path / 't.sonde')}")


def test_what_calls_back_lies_between(tmp_path):
    """The C library's qsort() calls a Python function: Python, native, Python."""
    run(tmp_path, """
        import ctypes, random, time, sonde
        libc = ctypes.CDLL(None)
        kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
        def work(n):
            for _ in range(n): pass
        def compare(a, b):
            work(200)
            return a[0] - b[0]
        def order():
            values = (ctypes.c_int * 500)(*random.sample(range(500), 500))
            libc.qsort(values, 500, 4, kind(compare))
        with sonde.sample(hz=1000, native=True) as seen:
            end = time.time() + 1.5
            while time.time() < end: order()
        seen.save("t.sonde")
        """)
    found = on_cpu(tmp_path, "compare")
    between = []
    for sample in found:
        names = sample["functions"]
        inner, outer = names.index("compare"), names.index("order")
        assert inner < outer
        if any("qsort" in name for name in names[inner + 1:outer]):
            between.append(sample)
        assert "qsort" not in names[:inner] and "qsort" not in names[outer:]
        assert names[-1] == "<module>"  # nothing of the interpreter's own start
    # A thread that is not let run does not answer in time: its sample has Python's frames alone, and says so.
    answered = [s for s in found if s["state"] & NATIVE]
    assert len(answered) > 20
    assert time_of(between) > 0.8 * time_of(answered)
    assert all(s["state"] & NATIVE for s in between)


@pytest.mark.alone
def test_every_stack_is_possible(tmp_path):
    for attempt in range(4):  # a thread that is not let run does not answer
        run(tmp_path, POSSIBLE + textwrap.dedent("""
            import time, sonde
            end = time.time() + 2
            with sonde.sample(hz=2000, native=True) as seen:
                main(lambda: time.time() > end)
            seen.save("t.sonde")
            """))
        found = samples(tmp_path / "t.sonde")
        for sample in found:  # only Python's own frames
            pure = [f for f in sample["stack"] if f["file"].endswith(".py")]
            sample["functions"] = [f["function"].rpartition(".")[2] for f in pure]
        assert sum(sample["samples"] for sample in found) > 100
        assert impossible(found) == []
        unmatched = ledger(tmp_path / "t.sonde").get("native_unmatched", 0)
        if unmatched < 0.1 * len(found):
            return
    pytest.fail(f"{unmatched} of {len(found)}")


@pytest.mark.alone
def test_shares_of_python_functions_are_the_program_s_own(tmp_path):
    for attempt in range(4):  # a loaded machine may starve the sampler for a while
        done = run(tmp_path, """
            import json, time, zlib, sonde
            data, spent = bytes(range(256)) * 20, {"one": 0, "two": 0, "three": 0}
            def spin(name, seconds):
                begin, end = time.perf_counter(), time.thread_time() + seconds
                while time.thread_time() < end: zlib.crc32(data)
                spent[name] += time.perf_counter() - begin
            def one(): spin("one", 0.010)
            def two(): spin("two", 0.020)
            def three(): spin("three", 0.030)
            with sonde.sample(hz=1000, native=True) as seen:
                for _ in range(15): one(); two(); three()
            seen.save("t.sonde")
            print(json.dumps(spent))
            """)
        true, whole = json.loads(done.stdout), samples(tmp_path / "t.sonde")
        seen = {name: time_of([s for s in whole if name in s["functions"]]) for name in true}
        off = {name: 100 * seen[name] / sum(seen.values()) - 100 * true[name] / sum(true.values())
               for name in true}
        if all(abs(points) < 3 for points in off.values()):
            return
    pytest.fail(f"{off}")


def test_threads_forks_and_signals_survive(tmp_path):
    """Interrupted a thousand times a second, in C code with and without the lock, for two seconds."""
    done = run(tmp_path, """
        import faulthandler, hashlib, os, sys, threading, time, zlib, sonde
        faulthandler.enable()
        data, over, made = os.urandom(200_000), time.time() + 2, []
        want = (zlib.crc32(zlib.compress(data)), hashlib.sha256(data).hexdigest())
        def deep(n): return deep(n - 1) if n else zlib.crc32(zlib.compress(data))
        def work():
            while time.time() < over:
                made.append((deep(60), hashlib.sha256(data).hexdigest()) == want)
                sorted(range(2000), key=lambda x: -x)
                time.sleep(0.001)
        session = sonde.sample(hz=1000, native=True, path="t.sonde")
        session.enable()
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads: thread.start()
        while time.time() < over:
            child = os.fork()
            if child == 0:
                end = time.time() + 0.05
                while time.time() < end: zlib.compress(data)
                os._exit(7)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        for thread in threads: thread.join()
        session.disable()
        print(len(made), all(made))
        """)
    count, fine = done.stdout.split()
    assert int(count) > 10 and fine == "True"
    found = on_cpu(tmp_path, "work")
    assert any(s["state"] & NATIVE for s in found)
    assert len({s["tid"] for s in found if s["state"] & NATIVE}) == 3


def test_greenlets(tmp_path):
    """Each has frames where others had theirs: beyond its own, the stack is not its callers'."""
    pytest.importorskip("greenlet")
    done = run(tmp_path, """
        import functools, greenlet, random, sonde, zlib
        data = bytes(range(256)) * 40
        random.seed(1)
        def work():
            for _ in range(100):
                zlib.compress(data, 9)
                hub.switch()
        def through_c(n):  # with C functions in between
            if n: sorted([1], key=lambda _: through_c(n - 1) or 0)
            else: work()
        def enter(n, g):
            if n: max([1], key=lambda _: enter(n - 1, g) or 0)
            else: g.switch()
        hub, switches = greenlet.getcurrent(), 0
        with sonde.sample(hz=2000, native=True) as seen:
            live = [greenlet.greenlet(functools.partial(through_c, i % 7), hub) for i in range(30)]
            while live:
                g = random.choice(live)
                enter(random.randrange(12), g)
                switches += 1
                if g.dead: live.remove(g)
        seen.save("t.sonde")
        print(switches)
        """)
    assert done.stdout == "3030\n"
    native = [s for s in on_cpu(tmp_path, "work") if s["state"] & NATIVE]
    squeezed = [s for s in native if has(s["stack"][:s["functions"].index("work")], "libz", "deflate")]
    assert len(squeezed) > 10
    for sample in native:  # a greenlet's stack ends where it began
        pure = [f["function"] for f in sample["stack"] if f["file"].endswith(".py")]
        assert pure[-1] == "through_c" and "enter" not in pure


def test_gevent(tmp_path):
    pytest.importorskip("gevent")
    done = run(tmp_path, """
        from gevent import monkey; monkey.patch_all()
        import gevent, sonde, time, urllib.request
        from gevent.pywsgi import WSGIServer
        def application(environment, start):
            end = time.process_time() + 0.05
            while time.process_time() < end: pass
            start("200 OK", [])
            return [b"fine"]
        def get():
            return urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/").read()
        with sonde.sample(hz=1000, native=True, path="t.sonde"):
            server = WSGIServer(("127.0.0.1", 0), application, log=None)
            server.start()
            jobs = gevent.joinall([gevent.spawn(get) for _ in range(8)])
        print([job.value for job in jobs] == [b"fine"] * 8)
        """)
    assert done.stdout == "True\n"
    assert on_cpu(tmp_path, "application")


def test_run_and_what_shows_it(tmp_path):
    (tmp_path / "program.py").write_text(textwrap.dedent("""
        import time, zlib
        data, end = bytes(range(256)) * 4000, time.time() + 1
        def squeeze(): zlib.compress(data, 9)
        while time.time() < end: squeeze()
        """))
    subprocess.run([SONDE, "run", "-q", "--sample", "500", "--native", "-o", "t.sonde", "--", sys.executable,
                    "program.py"], cwd=tmp_path, check=True, timeout=60)
    rows = json.loads(subprocess.run([SONDE, "report", "t.sonde", "--view", "samples", "--json", "--show-all"],
                                     cwd=tmp_path, check=True, stdout=subprocess.PIPE).stdout)["rows"]
    native = [row for row in rows if row["is_native"]]
    assert any(row["function"].startswith("deflate") and "libz" in row["file"] for row in native)
    subprocess.run([SONDE, "export", "t.sonde", "--to", "folded", "-o", "t.txt"], cwd=tmp_path, check=True)
    assert any("squeeze" in line.partition("deflate")[0]
               for line in (tmp_path / "t.txt").read_text().splitlines() if "deflate" in line)
    subprocess.run([SONDE, "export", "t.sonde", "--to", "json", "-o", "t.json"], cwd=tmp_path, check=True)
    processes = json.loads((tmp_path / "t.json").read_text())["processes"]  # what ran no Python is sampled from outside
    told = [line for process in processes for line in process["metadata"]]
    assert {"key": "python.sample.native", "value": "yes"} in told


def test_a_pool_s_helper_that_ends_after_the_program_is_no_daemon(tmp_path):
    """The process that tracks the resources of spawned workers ends when it finds the program gone, milliseconds later."""
    (tmp_path / "pool.py").write_text("import multiprocessing\n\ndef work(n):\n    return sum(range(n))\n\n"
                                      "if __name__ == '__main__':\n"
                                      "    with multiprocessing.get_context('spawn').Pool(2) as pool:\n"
                                      "        print(len(pool.map(work, [100000] * 4)))\n")
    done = subprocess.run([SONDE, "run", "--sample", "--native", "-o", "t.sonde", "--", sys.executable, "pool.py"], cwd=tmp_path,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=100)
    assert (done.returncode, done.stdout) == (0, "4\n"), done.stderr
    assert "recorded t.sonde" in done.stderr and "still run" not in done.stderr, done.stderr


def test_off_by_default(tmp_path):
    run(tmp_path, """
        import time, zlib, sonde
        with sonde.sample(hz=500) as seen:
            end = time.time() + 0.5
            while time.time() < end: zlib.compress(bytes(range(256)) * 4000, 9)
        seen.save("t.sonde")
        """)
    found = samples(tmp_path / "t.sonde")
    assert found and not any(s["state"] & NATIVE for s in found)
    files = {f["file"] for s in found for f in s["stack"]}
    assert {file.rpartition(".")[2] for file in files if not file.startswith("<frozen importlib")} == {"py"}


def test_a_program_with_the_signal_is_refused(tmp_path):
    done = run(tmp_path, """
        import signal, sonde
        signal.signal(signal.SIGURG, lambda *_: None)
        with sonde.sample(native=True): pass
        """, status=1)
    assert "cannot sample native frames: the program has a handler of its own for SIGURG" in done.stderr
