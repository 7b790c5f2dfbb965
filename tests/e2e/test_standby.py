# SPDX-License-Identifier: Apache-2.0
"""sonde run --standby and sonde record: real ranks of a gloo job that stand by, and are asked.

One job serves all tests but the last, which ends it: its ranks step until a file appears.
"""
import json
import os
import pathlib
import re
import signal
import stat
import subprocess
import sys
import time

import pytest

from cli_tools import SONDE

TRAIN = """
import os, sys, time, torch
import torch.distributed as dist
dist.init_process_group("gloo")
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
model = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loader = torch.utils.data.DataLoader(torch.randn(16, 32), batch_size=8)
flag = torch.zeros(1)
steps = 0
while flag.item() == 0:
    for batch in loader:
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
        steps += 1
        time.sleep(0.01)
    flag.fill_(float(os.path.exists(sys.argv[1])))
    dist.all_reduce(flag)
print(f"rank {dist.get_rank()} of {dist.get_world_size()}: done", flush=True)
"""


def record(*words, **more):
    return subprocess.run([SONDE, "record", *map(str, words)], capture_output=True, text=True, timeout=120, **more)


def report(trace, view):
    done = subprocess.run([SONDE, "report", trace, "--view", view, "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def listed(folder):
    """{rank: (pid, step)} of those that listen."""
    found = re.findall(r"rank (\d+)  pid (\d+)  step (\d+)", record(folder, "--list").stdout)
    return {int(rank): (int(pid), int(step)) for rank, pid, step in found}


class Job:
    def __init__(self, folder):
        self.folder, self.end = folder / "run", folder / "end"
        (folder / "train.py").write_text(TRAIN)
        self.output = open(folder / "output", "w+")
        self.process = subprocess.Popen(
            [SONDE, "run", "-q", "--standby", "-o", self.folder, "--", sys.executable, "-m", "torch.distributed.run",
             "--standalone", "--nproc-per-node", "2", folder / "train.py", self.end],
            stdout=self.output, stderr=self.output, env={**os.environ, "OMP_NUM_THREADS": "1"})
        until = time.monotonic() + 120
        while not self.is_stepping():
            assert self.process.poll() is None and time.monotonic() < until, self.said()
            time.sleep(0.3)

    def is_stepping(self):
        ranks = listed(self.folder) if self.folder.exists() else {}
        return len(ranks) == 2 and all(step > 0 for _, step in ranks.values())

    def said(self):
        self.output.seek(0)
        return self.output.read()

    def finish(self):
        self.end.touch()
        self.process.wait(60)


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    job = Job(tmp_path_factory.mktemp("job"))
    yield job
    if job.process.poll() is None:
        job.finish()


def steps_of(trace):
    """{pid: [step, ..]} of the whole steps of a trace."""
    found = {}
    for row in report(trace, "steps")["rows"]:
        found.setdefault(row["process"], []).append(row["step"])
    return found


def test_no_step_is_marked_while_a_recording_is_prepared(tmp_path, monkeypatch):
    """It has a file by then, but none of its steps has begun; one that cannot be prepared is none."""
    from sonde.torch import _standby
    standby, seen = _standby.Standby(str(tmp_path)), []
    monkeypatch.setattr(_standby._Recording, "prepare", lambda recording: seen.append(standby.on_step(None)))
    assert standby._prepare(f"ops {tmp_path}/t.sonde") == "ready 1" and seen == [None]
    standby.request = None
    monkeypatch.setattr(_standby._Recording, "prepare", lambda recording: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        standby._prepare(f"ops {tmp_path}/t.sonde")
    assert standby.request is None and standby.on_step(None) == 2
    standby.leave()
    standby.forget_in_child()


def test_all_ranks_record_the_same_steps(job):
    done = record(job.folder, "--steps", 3)
    assert done.returncode == 0, done.stderr
    assert "2 processes" in done.stderr and "2 of 2 ranks" in done.stderr
    trace = re.search(r"recorded: (.*)", done.stderr)[1]
    first = int(re.search(r"recording steps (\d+) to", done.stderr)[1])
    steps = steps_of(trace)
    assert list(steps.values()) == [[first, first + 1, first + 2]] * 2
    assert [row["rank"] for row in report(trace, "ranks")["rows"]] == [0, 1]
    calls = {row["key"]: row["count"] for row in report(trace, "ops")["rows"]}
    assert calls["Optimizer.step#SGD.step"] == 2 * 3  # neither more nor less than what was asked for


def test_they_stand_by_again(job):
    before = set(os.listdir(job.folder))
    assert record(job.folder, "--steps", 1, "--memory", "-q").returncode == 0
    done = record(job.folder, "--seconds", "0.2", "-q")
    assert (done.returncode, done.stderr) == (0, "")
    after = set(os.listdir(job.folder)) - before
    assert len(after) == 2
    assert re.search(r"idle  steps \d+ to \d+ in ", record(job.folder, "--list").stdout)
    numbers = sorted(after, key=int)
    assert any(row["self_cpu_memory_usage"] for row in report(job.folder / numbers[0], "ops")["rows"])
    assert len(report(job.folder / numbers[1], "steps")["rows"]) >= 4


def test_one_process_by_its_number(job):
    ranks = listed(job.folder)
    done = record(ranks[1][0], "--steps", 1)
    assert done.returncode == 0, done.stderr
    trace = re.search(r"recorded: (.*)", done.stderr)[1]
    assert os.listdir(trace) == [name for name in os.listdir(trace) if name.endswith(f"-{ranks[1][0]}.sonde")]
    launcher = record(job.process.pid, "--list")  # our own process does not have it in its environment
    assert launcher.returncode == 1 and "--standby" in launcher.stderr
    parent = int(pathlib.Path(f"/proc/{ranks[0][0]}/stat").read_text().rpartition(")")[2].split()[1])
    assert len(re.findall("rank ", record(parent, "--list").stdout)) == 2  # torchrun's: all of its job


def test_nobody_else_may_ask(job):
    sockets = job.folder / "standby"
    assert stat.S_IMODE(sockets.stat().st_mode) == 0o700
    assert [stat.S_IMODE(one.stat().st_mode) for one in sockets.iterdir()] == [0o600] * 2


def test_what_is_not_begun_is_canceled(job):
    before = os.listdir(job.folder)
    asked = subprocess.Popen([SONDE, "record", job.folder, "--steps", "100000"], stderr=subprocess.PIPE, text=True)
    while "recording" not in asked.stderr.readline():
        pass
    asked.send_signal(signal.SIGINT)
    assert asked.wait(20) == 1
    assert "nothing was recorded" in asked.stderr.read() and os.listdir(job.folder) == before


def test_what_has_begun_goes_on(job):
    """And is not disturbed by another request."""
    asked = subprocess.Popen([SONDE, "record", job.folder, "--steps", "100000"], stderr=subprocess.PIPE, text=True)
    while record(job.folder, "--list").stdout.count("recording") < 2:
        time.sleep(0.05)
    second = record(job.folder, "--steps", 1)
    assert second.returncode == 1 and "another `sonde record` is under way" in second.stderr
    asked.send_signal(signal.SIGINT)
    assert asked.wait(20) == 1 and asked.stderr.read().count("goes on recording") == 2


def test_the_job_ends_as_without_it(job):
    """What was under way is in its trace up to there."""
    job.finish()
    assert job.process.returncode == 0, job.said()
    said = job.said()
    assert sorted(re.findall(r"rank . of 2: done", said)) == ["rank 0 of 2: done", "rank 1 of 2: done"]
    assert "sonde:" not in said
    assert not (job.folder / "standby").exists()
    assert len(steps_of(job.folder / max(os.listdir(job.folder), key=int))) == 2
    done = record(job.folder)
    assert done.returncode == 1 and "no process stands by here" in done.stderr


@pytest.mark.parametrize("words, why", [
    (["run", "--standby", "--ops", "--", "true"], "what is to be recorded is said later"),
    (["run", "--standby", "--print", "--", "true"], "--standby and --print exclude each other"),
    (["record"], "missing FOLDER or PID"),
    (["record", ".", "--seconds", "1", "--steps", "1"], "exclude each other"),
    (["record", ".", "--seconds", "x"], "expected a number > 0, got 'x'"),
])
def test_mistakes(tmp_path, words, why):
    done = subprocess.run([SONDE, *words], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2 and why in done.stderr
    assert os.listdir(tmp_path) == []


def test_a_program_without_torch(tmp_path):
    """Runs as ever, and leaves no folder."""
    done = subprocess.run([SONDE, "run", "--standby", "-o", "run", "--", sys.executable, "-c", "print(1)"],
                          capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "1\n")
    assert os.listdir(tmp_path) == []
