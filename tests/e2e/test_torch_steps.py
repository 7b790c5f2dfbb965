# SPDX-License-Identifier: Apache-2.0
"""Steps of training loops: marked by whatever the loop calls, each once; `sonde run --schedule`."""
import json
import os
import subprocess
import sys
import textwrap

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: there is nothing to train")

import sonde  # noqa: E402
import warm_torch  # noqa: E402
from cli_tools import SONDE, read_json  # noqa: E402
from torch_tools import CPU, TORCH, quiet  # noqa: E402

needs_run = pytest.mark.skipif(not SONDE, reason="the program sonde is not built: run `make`")

HEAD = """
import os, sys, torch
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def train():
    model(torch.randn(2, 4)).sum().backward()
    optimizer.step()
"""


def run(tmp_path, text, *options, python=(), head=HEAD, cold=False):
    """`sonde run` of the program; what it and we said. `cold`: in a Python that starts from nothing."""
    script = tmp_path / "train.py"
    script.write_text(head + textwrap.dedent(text))
    return subprocess.run([SONDE, "run", "-q", "--ops", "-o", tmp_path / "t.sonde", *options, "--",
                           sys.executable if cold else warm_torch.python(), *python, script], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, cwd=tmp_path, timeout=300,
                          env={**os.environ, "OMP_NUM_THREADS": "1"})


def steps(path):
    return [row["step"] for row in read_json("report", path, "--view", "steps", "--json")["rows"]]


def recorded(path):
    with sonde.Trace(path) as trace:
        return {row.key: row.count for row in trace.averages()}


SCHEDULE = ("--schedule", "wait=1,warmup=1,active=2,repeat=2")


@needs_run
def test_a_plain_training_loop(tmp_path):
    done = run(tmp_path, "for _ in range(8): train()", *SCHEDULE, cold=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert steps(tmp_path / "t.sonde") == [2, 3, 6, 7]
    rows = recorded(tmp_path / "t.sonde")
    assert rows["aten::linear"] == 4 and rows["Optimizer.step#SGD.step"] == 4
    with sonde.Trace(tmp_path / "t.sonde") as trace:  # no range is cut where a step ends
        assert {key for key, _count, _text in trace.ledger()} <= {"warmup_events"}


OWN = """
import sonde
def ready(prof):
    print("ready", prof.step_num, len(prof.events()))
    prof.key_averages().table(sort_by="cpu_time_total")
    prof.key_averages().total_average()
    prof.export_chrome_trace("trace.json")
    prof.export_memory_timeline("memory.json")
    prof.save("own.sonde")
with sonde.profile(schedule=sonde.schedule(wait=1, warmup=1, active=1), on_trace_ready=ready,
                   profile_memory=True) as prof:
    for _ in range(8):
        train()
        sonde.step()
        prof.step()
print(len(prof.key_averages()), prof.ledger())
"""


@needs_run
@pytest.mark.parametrize("options", [SCHEDULE, ("--schedule", "wait=100,warmup=1,active=1"), ()],
                         ids=["cycles", "nothing", "all"])
def test_a_profile_of_its_own(tmp_path, options):
    """Optimizer, sonde.step() and prof.step() in every step: one step. Nothing raises."""
    done = run(tmp_path, OWN, *options, python=("-W", "error"), cold=not options)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("is recorded by `sonde run`") == 1
    assert [line.split()[:2] for line in done.stdout.splitlines()[:-1]] == \
        [["ready", "3"], ["ready", "6"], ["ready", "8"]]
    assert "traceEvents" in json.loads((tmp_path / "trace.json").read_text())
    assert (tmp_path / "memory.json").exists() and not (tmp_path / "own.sonde").exists()
    if "wait=100,warmup=1,active=1" in options:
        assert "--schedule records no step" in done.stderr and "sonde.step()" in done.stderr
        assert not (tmp_path / "t.sonde").exists()
    else:
        assert steps(tmp_path / "t.sonde") == ([2, 3, 6, 7] if options else list(range(1, 9)))


@needs_run
def test_the_profiler_of_torch(tmp_path):
    """torch.profiler's step() in the middle of training, and optimizers before and after it."""
    done = run(tmp_path, """
        other = torch.optim.Adam(model.parameters())
        def both():
            train()
            other.step()
        for _ in range(3): both()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as prof:
            for _ in range(3):
                both()
                prof.step()
        for _ in range(3): both()
        """)
    assert done.returncode == 0, done.stderr
    assert steps(tmp_path / "t.sonde") == list(range(1, 10))


@needs_run
def test_accelerate(tmp_path):
    pytest.importorskip("accelerate", reason="accelerate is not installed")
    done = run(tmp_path, """
        import accelerate, sonde
        plan = {"wait": 1, "warmup": 1, "active": 1}
        accelerator = accelerate.Accelerator(cpu=True, kwargs_handlers=[
            sonde.ProfileKwargs(activities=["cpu"], schedule_option=plan)])
        model, optimizer = accelerator.prepare(model, optimizer)
        with accelerator.profile() as prof:
            for _ in range(6):
                accelerator.backward(model(torch.randn(2, 4)).sum())
                optimizer.step()
                prof.step()
        """)
    assert done.returncode == 0, done.stderr
    assert steps(tmp_path / "t.sonde") == list(range(1, 7))


@needs_run
@pytest.mark.parametrize("profiler", ["None", "'pytorch'"])
def test_lightning(tmp_path, profiler):
    pytest.importorskip("pytorch_lightning", reason="pytorch-lightning is not installed")
    done = run(tmp_path, f"""
        import pytorch_lightning as lightning
        class Net(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(4, 4)
            def training_step(self, batch, index):
                return self.layer(batch).sum()
            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), lr=0.1)
        data = torch.utils.data.DataLoader(torch.randn(12, 4), batch_size=2)
        lightning.Trainer(max_epochs=1, accelerator="cpu", logger=False, profiler={profiler},
                          enable_checkpointing=False, enable_progress_bar=False,
                          enable_model_summary=False, barebones=False).fit(Net(), data)
        """)
    assert done.returncode == 0, done.stderr
    assert steps(tmp_path / "t.sonde") == list(range(1, 7))


@needs_run
def test_what_follows_the_last_step_is_none(tmp_path):
    """An unchanged script: operators and a long wait after its loop are in no figure of its steps."""
    done = run(tmp_path, """
        import time
        for _ in range(6): train()
        for _ in range(20): model(torch.randn(2, 4))
        time.sleep(1)
    """)
    assert (done.returncode, done.stderr) == (0, "")
    document = read_json("report", tmp_path / "t.sonde", "--view", "steps", "--json")
    assert [(row["step"], row["part"]) for row in document["rows"]] == \
        [(1, "whole"), (2, "whole"), (3, "whole"), (4, "whole"), (5, "whole"), (6, "after")]
    assert document["rows"][-1]["ranges"] >= 20 and document["rows"][-1]["duration_ns"] > 1e9
    assert document["totals"]["max_ns"] < 1e9 and document["totals"]["steps"] == 5
    compared = read_json("diff", tmp_path / "t.sonde", tmp_path / "t.sonde", "--json")["totals"]
    assert compared["a_steps"] == 5 and compared["a_whole_ns"] < 1e9


@needs_run
def test_the_last_step_of_a_cycle_is_whole(tmp_path):
    """A schedule's cycle ends with a step; its first step, of which imports are part, stands apart."""
    done = run(tmp_path, "for _ in range(3): train()", "--schedule", "wait=0,warmup=0,active=3,repeat=1")
    assert done.returncode == 0
    rows = read_json("report", tmp_path / "t.sonde", "--view", "steps", "--json")["rows"]
    assert [(row["step"], row["part"]) for row in rows] == [(0, "first"), (1, "whole"), (2, "whole")]
    with sonde.profile(activities=[CPU], schedule=sonde.schedule(wait=0, warmup=1, active=2, repeat=1)) as prof:
        for _ in range(4):
            torch.ones(3)
            prof.step()
    prof.save(tmp_path / "p.sonde")
    rows = read_json("report", tmp_path / "p.sonde", "--view", "steps", "--json")["rows"]
    assert [(row["step"], row["part"]) for row in rows] == [(1, "whole"), (2, "whole")]



@needs_run
def test_without_torch(tmp_path):
    """sonde.step() needs no torch; and does nothing while nothing records."""
    sonde.step()
    done = run(tmp_path, """
        import sonde, sys
        for number in range(4):
            with sonde.record_function(f"work {number}"):
                pass
            sonde.step()
        """, head="import sys; sys.modules['torch'] = None", cold=True)
    assert done.returncode == 0, done.stderr
    assert steps(tmp_path / "t.sonde") == [1, 2, 3, 4]


@pytest.mark.long
@needs_run
def test_a_compiled_optimizer_step(tmp_path):
    """torch.compile meets nothing of ours in it."""
    done = run(tmp_path, """
        train()
        step = torch.compile(lambda: optimizer.step(), backend="eager")
        step()
        print("done")
        """)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


# ------------------------------------------------------------------- without `sonde run`

def training():
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def train():
        model(torch.randn(2, 4)).sum().backward()
        optimizer.step()
    return train


def test_steps_of_a_profile_are_its_own(tmp_path):
    """The numbers of ProfilerStep#N, in every cycle."""
    train = training()
    with quiet(), sonde.profile(activities=[CPU], acc_events=True,
                                schedule=sonde.schedule(wait=1, warmup=1, active=2)) as prof:
        for _ in range(9):
            train()
            prof.step()
    names = [event.trace_name for event in prof.events() if event.name == "ProfilerStep*"]
    assert names == [f"ProfilerStep#{number}" for number in (2, 3, 6, 7)]
    prof.save(tmp_path / "t.sonde")
    assert sorted(steps(tmp_path / "t.sonde")) == [2, 3, 6, 7]


def test_optimizers_mark_steps_of_a_profile_without_schedule(tmp_path):
    train = training()
    for _ in range(2):  # each recording counts from its own beginning
        with sonde.profile(activities=[CPU]) as prof:
            for _ in range(3):
                train()
        prof.save(tmp_path / "t.sonde")
        assert steps(tmp_path / "t.sonde") == [1, 2, 3]
    from torch.optim import optimizer
    assert not optimizer._global_optimizer_post_hooks


def test_optimizers_before_step_is_called(tmp_path):
    """With step() of the profile its numbers are the steps, each once: what optimizers counted is none."""
    train = training()
    with sonde.profile(activities=[CPU]) as prof:
        for _ in range(3):
            for _ in range(3):
                train()
            prof.step()
    assert prof.step_num == 3
    prof.save(tmp_path / "t.sonde")
    rows = read_json("report", tmp_path / "t.sonde", "--view", "steps", "--json")["rows"]
    assert [(row["step"], row["part"]) for row in rows] == [(0, "first"), (1, "whole"), (2, "whole"), (3, "after")]
    assert rows[0]["ranges"] >= rows[1]["ranges"] > 0, "the first iteration, from where the recording begins"
    prof.export_chrome_trace(str(tmp_path / "t.json"))
    with sonde.profile(activities=[CPU]) as prof:  # and the next recording counts anew
        for _ in range(2):
            train()
    prof.save(tmp_path / "u.sonde")
    assert steps(tmp_path / "u.sonde") == [1, 2]


def test_several_count_by_hand(tmp_path):
    """No number comes twice, whoever else calls step()."""
    with sonde.profile(activities=[CPU]) as prof:
        for _ in range(3):
            sonde.step()
        for _ in range(3):
            prof.step()
    prof.save(tmp_path / "t.sonde")
    found = steps(tmp_path / "t.sonde")
    assert found == sorted(set(found)) and len(found) == 6 and found[0] == 0


def test_the_count_that_torch_keeps(monkeypatch):
    """KinetoStepTracker: moved by step() with KINETO_USE_DAEMON, as torch's step() does."""
    tracker = torch.autograd.profiler.KinetoStepTracker

    def moved(maker):
        before = tracker.current_step()
        with quiet(), maker.profile(activities=[CPU]) as prof:
            assert "ProfilerStep" in tracker._step_dict
            for _ in range(3):
                prof.step()
        assert "ProfilerStep" not in tracker._step_dict
        return tracker.current_step() - before

    assert moved(sonde) == moved(torch.profiler) == (3 if TORCH < (2, 8) else 0)  # 2.4's always moves it
    monkeypatch.setenv("KINETO_USE_DAEMON", "1")
    assert moved(sonde) == moved(torch.profiler) == 3
