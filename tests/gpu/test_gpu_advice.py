# SPDX-License-Identifier: Apache-2.0
"""Advice on a GPU of today: each fault of faults.py is named, and a good program is told nothing."""
import json

import pytest
from gpu_tools import HERE, SONDE, python, run

# The pattern, and the word at the end of the line that it has to name; "": the call has no stack.
FAULTS = {"good": (None, ""), "late": ("gpu-idle", "late"), "tiny": ("tiny-kernels", "tiny"), "copies": ("pageable-copies", "copies"),
          "plain": ("no-tensor-cores", "plain"), "synchronise": ("synchronise", ""), "fragments": ("fragmentation", "")}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named_at_its_line(tmp_path, fault):
    program, (pattern, word) = f"{HERE}/faults.py", FAULTS[fault]
    python(program, fault, tmp_path / "t.sonde")
    rows = json.loads(run(SONDE, "report", tmp_path / "t.sonde", "--view", "advice", "--json").stdout)["rows"]
    found = {row["name"]: row["place"] for row in rows}
    if pattern is None:
        assert not found
    elif word:
        with open(program) as file:
            line, = [number for number, text in enumerate(file, 1) if text.endswith(f"  # {word}\n")]
        assert found[pattern] == f"{program}:{line}", found
    else:
        assert pattern in found
