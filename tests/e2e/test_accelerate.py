# SPDX-License-Identifier: Apache-2.0
"""Accelerate's profiler with one import changed: its guide, point by point."""
import json
import os
import pathlib

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: Accelerate needs it")
accelerate = pytest.importorskip("accelerate", reason="accelerate is not installed")

import sonde  # noqa: E402
from torch_tools import FourConvolutions, quiet  # noqa: E402
import warm_torch  # noqa: E402

PROGRAMS = pathlib.Path(__file__).parent / "programs"


def accelerator_with(**options):
    return accelerate.Accelerator(cpu=True, kwargs_handlers=[sonde.ProfileKwargs(**options)])


def profiled(work=None, **options):
    accelerator = accelerator_with(**options)
    model = accelerator.prepare(FourConvolutions())
    inputs = torch.randn(1, 3, 16, 16)
    with quiet(), accelerator.profile() as prof:
        (work or (lambda model, inputs, prof: model(inputs)))(model, inputs, prof)
    return prof


def test_the_profiler_is_ours():
    handler = sonde.ProfileKwargs(activities=["cpu"])
    assert isinstance(handler, accelerate.ProfileKwargs)
    assert isinstance(handler.build(), sonde.profile)
    assert handler.to_kwargs() == {"activities": ["cpu"]}
    assert sonde.ProfileKwargs().to_kwargs() == {}


def test_cpu_time():
    prof = profiled(activities=["cpu"], record_shapes=True)
    assert isinstance(prof, sonde.profile)
    assert {row.key: row.count for row in prof.key_averages()}["aten::conv2d"] == 4
    table = prof.key_averages(group_by_input_shape=True).table(sort_by="cpu_time_total")
    assert "[[1, 3, 16, 16], [3, 3, 3, 3], [3], [], [], [], []]" in table


def test_memory():
    prof = profiled(activities=["cpu"], profile_memory=True, record_shapes=True)
    table = prof.key_averages().table(sort_by="self_cpu_memory_usage", row_limit=10)
    assert "Self CPU Mem" in table and " KB" in table


def test_chrome_trace(tmp_path):
    profiled(activities=["cpu"], output_trace_dir=str(tmp_path / "trace"))
    document = json.loads((tmp_path / "trace/profile_0.json").read_text())
    assert sum(event.get("name") == "aten::conv2d" for event in document["traceEvents"]) == 4


def test_schedule():
    seen = []

    def loop(model, inputs, prof):
        for _ in range(14):
            model(inputs)
            prof.step()

    def ready(prof):
        rows = {row.key: row.count for row in prof.key_averages()}
        seen.append((prof.step_num, rows["aten::conv2d"]))

    profiled(loop, activities=["cpu"], on_trace_ready=ready, schedule_option={
        "wait": 2, "warmup": 1, "active": 2, "repeat": 2, "skip_first": 3})
    assert seen == [(8, 8), (13, 8)]


@pytest.mark.parametrize("mode", [True, "torch"])
def test_flops(mode):
    rows = {row.key: row.flops for row in profiled(with_flops=mode).key_averages()}
    assert rows["aten::conv2d"] >= 4 * 2 * 16 * 16 * 9 * 3 * 3
    assert "Total" in profiled(with_flops=mode).key_averages().table(sort_by="flops")


def test_a_handler_for_one_block():
    accelerator = accelerate.Accelerator(cpu=True)
    with accelerator.profile(sonde.ProfileKwargs(activities=["cpu"])) as prof:
        torch.ones(2).add(1)
    assert isinstance(prof, sonde.profile)
    with pytest.raises(ValueError, match="Invalid profiler activity"):
        sonde.ProfileKwargs(activities=["abacus"]).build()


def test_several_ranks(tmp_path):
    """One trace a rank, each of which knows who it is."""
    environment = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0",
                   "WORLD_SIZE": "2", "ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1",
                   "RENDEZVOUS": f"file://{tmp_path}/rendezvous"}
    ranks = warm_torch.run_together([((PROGRAMS / "accelerate_ranks.py", tmp_path), {
        "env": {**environment, "RANK": str(rank), "LOCAL_RANK": str(rank)}}) for rank in range(2)])
    assert [rank.returncode for rank in ranks] == [0, 0], ranks
    for rank in range(2):
        document = json.loads((tmp_path / f"trace/profile_{rank}.json").read_text())
        assert document["distributedInfo"]["rank"] == rank
        assert any(event.get("name") == "aten::addmm" for event in document["traceEvents"])
