# SPDX-License-Identifier: Apache-2.0
"""The life of a profile: start, stop, cycles, threads, forks, exits."""
import gc
import inspect
import json
import os
import subprocess
import sys
import tempfile
import threading
import time

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: there is nothing to profile")

import sonde  # noqa: E402
import torch.profiler  # noqa: E402
from cli_tools import SONDE  # noqa: E402
from torch_tools import CPU, X, counts, quiet, record  # noqa: E402
import warm_torch  # noqa: E402


# ------------------------------------------------------------------------------ life

def test_with_and_start_stop():
    prof = sonde.profile(activities=[CPU])
    prof.start()
    X.mul(X)
    prof.stop()
    X.mul(X)
    assert counts(prof)["aten::mul"] == 1 == counts(record())["aten::mul"]


def test_a_profile_can_be_used_again():
    prof = sonde.profile(activities=[CPU])
    for times in (1, 2):
        with prof:
            for _ in range(times):
                X.mul(X)
        assert counts(prof)["aten::mul"] == times


def test_results_while_it_records():
    with sonde.profile(activities=[CPU]) as prof:
        X.mul(X)
        assert counts(prof)["aten::mul"] == 1
        X.mul(X)
        assert counts(prof)["aten::mul"] == 2
    assert counts(prof)["aten::mul"] == 2


def test_an_exception_passes_and_what_was_recorded_stays():
    prof = sonde.profile(activities=[CPU])
    with pytest.raises(ZeroDivisionError), prof:
        X.mul(X)
        1 / 0
    assert counts(prof)["aten::mul"] == 1
    assert counts(record())["aten::mul"] == 1


def test_a_second_profiler_is_refused_and_the_first_goes_on():
    with sonde.profile(activities=[CPU]) as outer:
        X.mul(X)
        with pytest.raises(RuntimeError, match="already recording.*stop it first"):
            with sonde.profile(activities=[CPU]):
                pytest.fail("the block of a profiler that could not start was entered")
        with pytest.raises(RuntimeError, match="already recording"):
            outer.start()
        X.mul(X)
    assert counts(outer)["aten::mul"] == 2
    assert counts(record())["aten::mul"] == 1


@pytest.mark.parametrize("ask", [
    lambda prof: prof.stop(), lambda prof: prof.key_averages(), lambda prof: prof.events(),
    lambda prof: prof.export_chrome_trace("never.json")])
def test_too_early(ask):
    with pytest.raises(AssertionError, match="sonde.profile"):
        ask(sonde.profile(activities=[CPU]))


def test_stopped_twice():
    prof = record()
    with pytest.raises(AssertionError, match="not recording"):
        prof.stop()
    assert counts(prof)["aten::mul"] == 1


def test_from_a_thread():
    """Start, stop and questions on a thread; the operators of all are there."""
    answers = []

    def work():
        with sonde.profile(activities=[CPU]) as prof:
            X.mul(X)
            go.set()
            done.wait()
        answers.append(counts(prof))

    go, done = threading.Event(), threading.Event()
    thread = threading.Thread(target=work)
    thread.start()
    go.wait()
    X.add(X)
    done.set()
    thread.join()
    assert answers[0]["aten::mul"] == 1 and answers[0]["aten::add"] == 1


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_fork_in_the_middle(tmp_path):
    """The child records for itself; the parent's numbers and files are the parent's."""
    answer = tmp_path / "child"
    with sonde.profile(activities=[CPU]) as prof:
        X.mul(X)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                X.add(X)
                prof.stop()
                answer.write_text(json.dumps(counts(prof)))
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        X.mul(X)
    assert counts(prof) == {"aten::mul": 2}
    assert json.loads(answer.read_text()) == {"aten::add": 1}
    prof.save(tmp_path / "all.sonde")
    assert len(list(tmp_path.glob("all.sonde*"))) == 2


def test_nothing_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    record()  # threads and files that torch itself makes the first time
    tasks, files = len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))
    prof = record(record_shapes=True, profile_memory=True, with_stack=True)
    averages = prof.key_averages()
    assert not torch.autograd.profiler._is_profiler_enabled
    assert not torch.autograd._profiler_enabled()
    del prof
    gc.collect()
    assert averages[0].key == "aten::mul" and list(tmp_path.iterdir())  # the list keeps the trace
    del averages
    gc.collect()
    assert not list(tmp_path.iterdir())
    deadline = time.monotonic() + 20  # stop() does not wait until the recorder's helper has ended
    while len(os.listdir("/proc/self/task")) > tasks:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    assert len(os.listdir("/proc/self/fd")) <= files


def test_a_thousand_times(tmp_path):
    done = warm_torch.run("-c", """
import gc, pathlib, sonde, torch
x = torch.randn(4, 4)
def turn():
    with sonde.profile(record_shapes=True, profile_memory=True) as prof:
        x.mul(x)
    prof.key_averages().table()
def resident():
    gc.collect()
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096
for _ in range(200): turn()
before = resident()
for _ in range(1000): turn()
print(resident() - before)
""", env={**os.environ, "TMPDIR": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 1 << 20
    assert not list(tmp_path.iterdir())


@pytest.mark.alone
def test_no_slower_afterwards():
    """An operator costs what it did before the first profile. Best of many, and of some tries."""
    done = warm_torch.run("-c", """
import sonde, time, torch
x = torch.ones(4)
def best(turns=60):
    def turn():
        begin = time.perf_counter()
        for _ in range(500):
            x.add(x)
        return time.perf_counter() - begin
    return min(turn() for _ in range(turns))
best()
before = best()
with sonde.profile(record_shapes=True, profile_memory=True, with_stack=True, with_modules=True):
    best(3)
print(min(best() for _ in range(4)) / before)
""")
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 1.1


def test_the_program_ends_while_recording(tmp_path):
    done = subprocess.run([sys.executable, "-c", "import sonde, torch; sonde.profile().start(); torch.ones(2).add(1)"],
                          env={**os.environ, "TMPDIR": str(tmp_path)}, text=True, capture_output=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not SONDE, reason="the program sonde is not built: run `make`")
def test_under_sonde_run(tmp_path):
    """The recording is the runner's, and has all; a profile inside shows what is there."""
    script = tmp_path / "script.py"
    script.write_text("""
import sonde, torch
x = torch.ones(3)
x.mul(x)
with sonde.profile() as prof:
    x.add(x)
print({row.key: row.count for row in prof.key_averages()})
prof.save("own.sonde")
x.sub(x)
""")
    done = subprocess.run([SONDE, "run", "-q", "--ops", "-o", tmp_path / "t.sonde", "--", sys.executable,
                           script], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "recorded by `sonde run`" in done.stderr
    assert "own.sonde is not written" in done.stderr and not (tmp_path / "own.sonde").exists()
    assert "'aten::add': 1" in done.stdout and "'aten::mul': 1" in done.stdout
    with sonde.Trace(tmp_path / "t.sonde") as trace:
        text = trace.report()
    assert all(name in text for name in ("aten::mul", "aten::add", "aten::sub"))


# ------------------------------------------------------------------------- schedules

def grid():
    return [{"wait": wait, "warmup": warmup, "active": active, "repeat": repeat,
             "skip_first": skip, "skip_first_wait": first}
            for wait in (0, 1, 3) for warmup in (0, 1, 2) for active in (1, 2, 3)
            for repeat in (0, 1, 2) for skip in (0, 1, 4) for first in (0, 1)]


def test_schedules_are_torchs():
    with quiet():
        for arguments in grid():
            try:
                theirs = torch.profiler.schedule(**arguments)
            except TypeError:
                pytest.skip("this torch has no skip_first_wait")
            ours = sonde.schedule(**arguments)
            assert [ours(step) for step in range(40)] == [theirs(step) for step in range(40)]


@pytest.mark.parametrize("wrong", [{"wait": -1}, {"warmup": -1}, {"active": 0}, {"repeat": -1},
                                   {"skip_first": -1}])
def test_wrong_schedules(wrong):
    with pytest.raises(AssertionError, match="Invalid profiler schedule"):
        sonde.schedule(**{"wait": 1, "warmup": 1, "active": 1, **wrong})


def steps_of(maker, arguments, total):
    """What a program sees: the steps at which on_trace_ready ran, and what was in the trace."""
    seen = []

    def ready(prof):
        rows = {row.key: row.count for row in prof.key_averages()}
        seen.append((prof.step_num, rows.get("ProfilerStep*", 0), rows.get("aten::mul", 0)))

    actions = []
    with quiet(), maker.profile(activities=[CPU], schedule=maker.schedule(**arguments),
                                on_trace_ready=ready) as prof:
        for _ in range(total):
            X.mul(X)
            prof.step()
            actions.append(prof.current_action)
    return seen, actions


@pytest.mark.parametrize("arguments,total", [
    ({"wait": 1, "warmup": 1, "active": 2, "repeat": 2}, 9),
    ({"wait": 0, "warmup": 1, "active": 3}, 10),
    ({"wait": 2, "warmup": 0, "active": 1, "skip_first": 2}, 8),
    ({"wait": 3, "warmup": 1, "active": 1, "skip_first": 1, "skip_first_wait": 1}, 12),
    ({"wait": 0, "warmup": 0, "active": 2}, 7),
    ({"wait": 1, "warmup": 1, "active": 3, "repeat": 1}, 4)])
def test_cycles_are_torchs(arguments, total):
    """Each cycle its own trace: the same steps, the same operators in them."""
    if "acc_events" not in inspect.signature(torch.profiler.profile).parameters:
        pytest.skip("this torch adds up the events of all cycles")
    assert steps_of(sonde, arguments, total) == steps_of(torch.profiler, arguments, total)


def test_a_stop_in_warm_up_is_no_trace():
    calls = []
    with quiet(), sonde.profile(activities=[CPU], on_trace_ready=calls.append,
                                schedule=sonde.schedule(wait=0, warmup=3, active=1)) as prof:
        X.mul(X)
        prof.step()
    assert calls == []


def test_step_marks_only_with_a_schedule():
    assert "ProfilerStep*" not in counts(record())
    with quiet(), sonde.profile(activities=[CPU],
                                schedule=sonde.schedule(wait=0, warmup=0, active=2)) as prof:
        X.mul(X)
        prof.step()
        X.mul(X)
    names = [event.trace_name for event in prof.events() if event.name == "ProfilerStep*"]
    assert names == ["ProfilerStep#0", "ProfilerStep#1"]


def test_a_forgotten_step_is_said():
    with pytest.warns(UserWarning, match=r"nothing was recorded: step\(\) was called 0 times.*"
                                         "first records step 2"):
        with sonde.profile(activities=[CPU],
                           schedule=sonde.schedule(wait=1, warmup=1, active=1)) as prof:
            X.mul(X)
    with pytest.raises(AssertionError, match=r"step\(\)"):
        prof.key_averages()


def test_a_schedule_of_ones_own():
    actions = [sonde.ProfilerAction.RECORD, sonde.ProfilerAction.NONE]
    with pytest.warns(UserWarning, match="Incorrect schedule: RECORD followed by NONE"):
        with sonde.profile(activities=[CPU], schedule=lambda step: actions[min(step, 1)]) as prof:
            X.mul(X)
            prof.step()
            X.mul(X)
    assert counts(prof)["aten::mul"] == 1


@pytest.mark.parametrize("keep", [False, True])
def test_acc_events(keep):
    with quiet(), sonde.profile(activities=[CPU], acc_events=keep,
                                schedule=sonde.schedule(wait=0, warmup=1, active=1)) as prof:
        for _ in range(6):
            X.mul(X)
            prof.step()
    assert counts(prof)["aten::mul"] == (3 if keep else 1)


def test_toggle_collection():
    with sonde.profile(activities=[CPU]) as prof:
        X.mul(X)
        prof.toggle_collection_dynamic(False, [CPU])
        X.mul(X)
        prof.toggle_collection_dynamic(True, [CPU])
        X.mul(X)
    assert counts(prof)["aten::mul"] == 2


def test_cupti_is_shared_with_nobody_who_records(tmp_path, monkeypatch):
    """Where torch's own profiler is on, CUPTI's buffers are not taken from it; ours alone is no reason."""
    from sonde import _record
    from sonde.torch import _attach
    shares = []
    monkeypatch.setattr(_record, "cuda_start", lambda library, cupti, share, light: shares.append(share) or "")
    monkeypatch.setattr(_record, "cuda_stop", lambda: None)

    def start_and_stop():
        _attach.start(str(tmp_path / f"{len(shares)}.sonde"), cuda=True)
        _attach.stop()
    start_and_stop()
    with torch.profiler.profile():
        start_and_stop()
    start_and_stop()
    assert shares == [True, False, True]
