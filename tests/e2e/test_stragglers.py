# SPDX-License-Identifier: Apache-2.0
"""Real jobs of four ranks on gloo, DDP and FSDP2: a slow rank is named with its cause, and nobody in an even job.

Each job is run once; `tools/test ranks` runs each 20 times (SONDE_RANK_RUNS).
"""
import json
import os
import pathlib

import pytest
import warm_torch
from cli_tools import read

pytest.importorskip("torch", reason="torch is not installed: nothing to train with")
PROGRAM = pathlib.Path(__file__).parent / "programs/uneven_rank.py"
RANKS = 4
RUNS = int(os.environ.get("SONDE_RANK_RUNS", "1"))
EXPECTED = {"even": [], "compute": [(2, "compute")], "loading": [(2, "data loading")], "communication": [(2, "communication")]}
JOBS = [(kind, slow) for kind in ("ddp", "fsdp") for slow in EXPECTED]


def train(folder, kind, slow):
    ranks = warm_torch.run_together([((PROGRAM, folder / f"{rank}.sonde", kind, slow), {"env": {
        **os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(RANKS), "OMP_NUM_THREADS": "1",
        "RENDEZVOUS": f"file://{folder}/meet"}}) for rank in range(RANKS)])
    assert [rank.returncode for rank in ranks] == [0] * RANKS, [rank.stderr[-500:] for rank in ranks]
    return folder


@pytest.mark.parametrize("run", range(RUNS))
@pytest.mark.parametrize("kind, slow", JOBS)
def test_who_is_slow(kind, slow, run, tmp_path):
    job = train(tmp_path, kind, slow)
    rows = json.loads(read("report", job, "--view", "stragglers", "--json"))["rows"]
    assert [(row["rank"], row["cause"]) for row in rows] == EXPECTED[slow], rows
    if slow == "compute":
        assert rows[0]["where"].startswith("aten::m") and rows[0]["how"] == "persistent", rows
    advice = {row["name"]: row for row in json.loads(read("report", job, "--view", "advice", "--json"))["rows"]}
    assert ("straggler" in advice) == bool(EXPECTED[slow]), advice
    if EXPECTED[slow]:
        assert " for rank 2 " in advice["straggler"]["text"] and advice["straggler"]["place"] == (rows[0]["where"] or None), advice
    kinds = {row["kind"] for row in json.loads(read("report", job, "--view", "collectives", "--json"))["rows"]}
    assert kinds >= ({"all_reduce"} if kind == "ddp" else {"all_gather", "reduce_scatter"})
