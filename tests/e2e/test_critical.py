# SPDX-License-Identifier: Apache-2.0
"""The critical path of a real job: what it says that a part would win is won when that part is left out."""
import json
import os
import pathlib

import pytest
import warm_torch
from cli_tools import read

PROGRAMS = pathlib.Path(__file__).parent / "programs"
STEPS, SLEEP = 10, 0.1
# Of launchers that may run these tests.
LAUNCHER = {"RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"}


def run(folder, sleep):
    """Two ranks, the second of which sleeps in each step: its critical path."""
    job = folder / "job"
    job.mkdir(parents=True)
    environment = {name: value for name, value in os.environ.items() if name not in LAUNCHER}
    environment |= {"RENDEZVOUS": f"file://{folder}/meet", "OMP_NUM_THREADS": "1"}
    ranks = warm_torch.run_together([((PROGRAMS / "met_rank.py", job / f"{rank}.sonde", rank, 2, STEPS, sleep), {"env": environment})
                                     for rank in range(2)])
    assert [rank.returncode for rank in ranks] == [0, 0], ranks
    return json.loads(read("report", job, "--view", "critical", "--json"))


@pytest.mark.alone
def test_a_sleep_that_is_left_out_wins_what_was_said(tmp_path):
    slow, quick = run(tmp_path / "slow", SLEEP), run(tmp_path / "quick", 0)
    first = max(slow["rows"], key=lambda row: row["win_ns"])
    assert (first["rank"], first["kind"], first["what"]) == (1, "host", None), slow["rows"]
    # profile.step() ends the first step: what is before its end is not on the path.
    slept, path, without = (STEPS - 1) * SLEEP * 1e9, slow["totals"]["path_ns"], quick["totals"]["path_ns"]
    assert abs(sum(row["duration_ns"] for row in slow["rows"]) - path) <= 1
    assert 0.9 * slept <= first["win_ns"] <= first["duration_ns"] <= path
    # What the quick job takes all the same is the noise: its steps do next to nothing.
    assert abs((path - without) - first["win_ns"]) <= 0.1 * slept + without
