# SPDX-License-Identifier: Apache-2.0
"""Jobs of many ranks: which rank a process is, however it was launched; its collectives."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest
import warm_torch
from cli_tools import SONDE, WORKER, generate, needs_tools, needs_worker, read, sonde

PROGRAMS = pathlib.Path(__file__).parent / "programs"
# What each launcher sets, and what must be recorded of it: rank, local rank, world size, job.
LAUNCHERS = {
    "torchrun": ({"RANK": "5", "LOCAL_RANK": "1", "WORLD_SIZE": "8", "TORCHELASTIC_RUN_ID": "j", "SLURM_PROCID": "2"},
                 (5, 1, 8, "j")),
    "slurm": ({"SLURM_PROCID": "3", "SLURM_LOCALID": "1", "SLURM_NTASKS": "4", "SLURM_JOB_ID": "77", "SLURM_STEP_ID": "0"},
              (3, 1, 4, "77 0")),
    "openmpi": ({"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "0", "OMPI_COMM_WORLD_SIZE": "3"},
                (2, 0, 3, "")),
    "pmi": ({"PMI_RANK": "1", "PMI_SIZE": "2"}, (1, None, 2, "")),
    "nobody": ({"SLURM_PROCID": "x"}, (None, None, None, None)),
}
ALL = {name for variables, _ in LAUNCHERS.values() for name in variables} | {"MASTER_ADDR", "MASTER_PORT"}


def processes(trace):
    return json.loads(sonde("export", trace, "--to", "json", "-o", "-").stdout)["processes"]


def metadata(process, key):
    found = [json.loads(pair["value"]) for pair in process["metadata"] if pair["key"] == key]
    return found[-1] if found else {}


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_environment(launcher, tmp_path):
    variables, (rank, local_rank, world_size, job) = LAUNCHERS[launcher]
    environment = {name: value for name, value in os.environ.items() if name not in ALL} | variables
    sonde("run", "--functions", "-o", tmp_path / "t", "--", sys.executable, "-c", "sum(range(9))", env=environment)
    process, = processes(tmp_path / "t")
    assert (process.get("rank"), process.get("local_rank"), process.get("world_size")) == (rank, local_rank, world_size)
    assert metadata(process, "job.rank").get("job") == job
    assert process["parent_pid"] > 1 and process["host"]


@needs_worker
def test_parts_of_a_job_share_a_folder(tmp_path):
    """The second one was refused, and its program did not run. Without a job it still is (test_cli_places.py)."""
    first = subprocess.Popen([SONDE, "run", "-q", "-o", "run", "--", WORKER, "wait"], cwd=tmp_path, stdout=subprocess.PIPE)
    assert first.stdout.readline() == b"ready\n"
    for number in range(2):
        done = sonde("run", "-o", "run", "--", WORKER, "args", f"ran{number}", cwd=tmp_path,
                     env={**os.environ, "SLURM_PROCID": str(number)})
        assert (done.returncode, done.stdout.split()) == (0, [b"ran%d" % number]), done.stderr
    first.terminate()
    assert first.wait(timeout=30) == 0
    first.stdout.close()
    rows = json.loads(read("report", tmp_path / "run", "--json"))["rows"]
    assert {row["key"]: row["count"] for row in rows} == {"wait": 1, "args": 2}
    assert sonde("run", "-q", "-o", "run", "--", WORKER, "args", "again", cwd=tmp_path).returncode == 0
    assert len(processes(tmp_path / "run")) == 1  # all of the older job is replaced


@needs_worker
def test_folders_in_a_folder_are_read(tmp_path):
    for host in "ab":
        (tmp_path / "job" / host / "rank").mkdir(parents=True)
        assert sonde("run", "-q", "-o", tmp_path / "job" / host / "rank" / "t.sonde", "--", WORKER, "args", host).returncode == 0
    (tmp_path / "job" / "round").symlink_to(tmp_path / "job")
    assert len(processes(tmp_path / "job")) == 2


@pytest.fixture(scope="module")
def spawned(tmp_path_factory):
    """Two ranks of which no variable says so; the second learns its rank in the middle of its recording."""
    folder = tmp_path_factory.mktemp("spawned")
    environment = {name: value for name, value in os.environ.items() if name not in ALL}
    environment |= {"RENDEZVOUS": f"file://{folder}/meet", "OMP_NUM_THREADS": "1"}
    ranks = warm_torch.run_together([((PROGRAMS / "spawned_rank.py", folder / f"{rank}.sonde", rank),
                                      {"env": environment}) for rank in range(2)])
    assert [rank.returncode for rank in ranks] == [0, 0], ranks
    return folder


def test_torch_distributed_knows(spawned):
    for rank in range(2):
        process, = processes(spawned / f"{rank}.sonde")
        assert (process["rank"], process["world_size"]) == (rank, 2)
        assert metadata(process, "job.rank")["source"] == "torch.distributed"
        assert metadata(process, "job.group 0") == {"description": "default_pg", "size": 2, "backend": "gloo"}
        assert metadata(process, "job.group 1")["ranks"] == [0, 1]


def test_what_a_collective_says(spawned):
    """Its call, and the work of gloo's own thread, which ends when it is complete: the same of both."""
    events = json.loads(sonde("export", spawned / "1.sonde", "--to", "json", "-o", "-").stdout)["events"]
    said, name = {}, None
    for event in events:
        name = event["name"] if event["kind"] == "begin" else name
        if event["kind"] == "attr" and event["key"].startswith("COLLECTIVE"):
            said.setdefault(name, {})[event["key"]] = event["value"]
    call, work = said["c10d::allreduce_"], said["gloo:all_reduce"]
    assert call == work
    members = json.loads(call["COLLECTIVE"])
    assert members["In msg nelems"] == members["Out msg nelems"] == 1000
    assert (members["dtype"], members["Group size"], members["Process Group Name"]) == ("Float", 2, "0")
    gathered = json.loads(said["c10d::_allgather_base_"]["COLLECTIVE"])
    assert (gathered["In msg nelems"], gathered["Out msg nelems"]) == (1000, 2000)
    assert said["c10d::_allgather_base_"]["COLLECTIVE_SEQUENCE"] == call["COLLECTIVE_SEQUENCE"] + 1


def test_collectives_of_both_are_matched(spawned):
    rows = json.loads(read("report", spawned, "--view", "collectives", "--json"))["rows"]
    found = {row["kind"]: row for row in rows if row["group_name"] == "0"}
    assert {kind: row["count"] for kind, row in found.items()} == {"all_reduce": 1, "all_gather": 1, "barrier": 1}
    assert (found["all_reduce"]["size_bytes"], found["all_gather"]["size_bytes"]) == (4000, 8000)
    for row in found.values():
        assert (row["group_ranks"], row["unfinished"], row["mismatched"], row["last_count"]) == ("0-1", 0, 0, 1)
        assert 0 <= row["wait_ns"] <= row["duration_ns"] and row["transfer_ns"] > 0
    ranks = json.loads(read("report", spawned, "--view", "ranks", "--json"))["rows"]
    assert [row["rank"] for row in ranks] == [0, 1] and all(row["communication_ns"] > 0 for row in ranks)


@pytest.mark.parametrize("how", ["killed", "stuck"])
def test_a_rank_that_never_came_is_named(tmp_path, how):
    """Killed before a collective, or stuck until somebody kills the whole job: the traces outlive both."""
    environment = {name: value for name, value in os.environ.items() if name not in ALL}
    (tmp_path / "job").mkdir()
    ranks = [subprocess.Popen([SONDE, "run", "-q", "--ops", "-o", tmp_path / f"job/{rank}.sonde", "--", warm_torch.python(), PROGRAMS / "lost_rank.py", how],
                              cwd=tmp_path, stderr=subprocess.DEVNULL,
                              env={**environment, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "4", "OMP_NUM_THREADS": "1",
                                   "RENDEZVOUS": f"file://{tmp_path}/meet"}) for rank in range(4)]
    if how == "stuck":
        until = time.monotonic() + 60
        while time.monotonic() < until and not all((tmp_path / f"pid-{rank}").exists() for rank in range(4)):
            time.sleep(0.02)
        time.sleep(1)  # all that will come to it have
        for rank in range(4):
            os.kill(int((tmp_path / f"pid-{rank}").read_text()), signal.SIGKILL)
    statuses = [rank.wait(timeout=60) for rank in ranks]
    assert statuses[2] == -signal.SIGKILL and all(statuses), statuses
    rows = json.loads(read("report", tmp_path / "job", "--view", "collectives", "--json"))["rows"]
    row, = (row for row in rows if row["kind"] == "all_reduce")
    assert (row["count"], row["unfinished"]) == (4, 1), row
    said = json.loads(read("report", tmp_path / "job", "--view", "advice", "--json"))["rows"]
    assert [one["text"] for one in said if one["name"] == "unfinished-collective"] == \
        ["The all_reduce 3 of group 0 was never completed; never came: rank 2"], said


@needs_tools
def test_memory_does_not_grow_with_events(tmp_path):
    """Ten times as many steps, of four ranks each."""
    peaks = []
    for steps in (200, 2000):
        trace = generate("job", tmp_path / str(steps), str(10 * steps))
        with subprocess.Popen([SONDE, "report", trace, "--view", "ranks", "--json"], stdout=subprocess.PIPE) as process:
            rows = json.loads(process.stdout.read())["rows"]
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = status
        assert status == 0 and [row["steps"] for row in rows] == [steps] * 4
        peaks.append(usage.ru_maxrss)
    assert peaks[1] <= 1.1 * peaks[0], peaks


@needs_tools
def test_many_ranks(tmp_path):
    rows = json.loads(read("report", generate("wide", tmp_path / "job", "200"), "--view", "ranks", "--json", "--rows", "-1"))["rows"]
    assert [row["rank"] for row in rows] == [*range(200)] and {row["collectives"] for row in rows} == {100}
