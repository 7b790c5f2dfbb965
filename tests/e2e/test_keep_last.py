# SPDX-License-Identifier: Apache-2.0
"""A flight recorder (--keep-last) of a program with very many names: the last events have theirs."""
import json
import re

import pytest

from python_tools import SONDE, rows, run, sonde_run

FUNCTIONS = """
def make(i):
    space = {}
    exec(f"def function_number_{i}_of_many():\\n    return {i}\\n", space)
    return space[f"function_number_{i}_of_many"]

for i in range(20000):
    make(i)()
"""
RANGES = """
import torch
from torch.profiler import record_function

def request(i, deep):
    if deep:
        return request(i, deep - 1)
    with record_function(f"request number {i} of very many"):
        x[:1 + i % 3].neg()

x = torch.ones(4)
for i in range(4000):
    request(i, i % 5)
"""
LIMIT = ["--max-size", "640K", "--keep-last"]


def record(tmp_path, program, *options, **extra):
    """The trace's path and its ledger; the trace has recycled chunks, and is within the limit."""
    (tmp_path / "program.py").write_text(program)
    sonde_run([*options, *LIMIT, "-o", "t.sonde"], "program.py", cwd=tmp_path, **extra)
    trace = tmp_path / "t.sonde"
    assert trace.stat().st_size <= 640 << 10
    done = run(SONDE, "report", trace, "--json", cwd=tmp_path)
    ledger = json.loads(done.stdout)["ledger"]
    assert ledger["recycled_chunks"] > 0
    return trace, ledger


def test_python_functions_keep_their_names(tmp_path):
    trace, ledger = record(tmp_path, FUNCTIONS, "--functions", "--timeline")
    assert "lost_names" not in ledger and "missing_ids" not in ledger
    run(SONDE, "export", trace, "--to", "chrome", "-o", "t.json", cwd=tmp_path)
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    names = [event["name"] for event in events if event.get("ph") == "X"]
    numbers = [int(found[1]) for name in names if (found := re.search(r"function_number_(\d+)_of_many", name))]
    assert numbers == list(range(numbers[0], 20000)) and len(numbers) > 500
    assert not any("lost" in name or "unknown" in name for name in names)


def test_torch_ranges_keep_names_shapes_and_stacks(tmp_path):
    pytest.importorskip("torch", reason="torch is not installed: nothing to probe")
    import warm_torch
    trace, ledger = record(tmp_path, RANGES, "--ops", "--shapes", "--stacks", interpreter=warm_torch.python())
    assert "lost_names" not in ledger and "missing_ids" not in ledger
    table = rows(trace, "ops", "--group-by", "shape,stack", "--stack-depth", "20")
    requests = [row for row in table if row["key"].startswith("request number")]
    numbers = sorted(int(row["key"].split()[2]) for row in requests)
    assert numbers == list(range(numbers[0], 4000)) and len(numbers) > 100
    for row in requests:
        frames = [frame for frame in row["stack"] if "request" in frame]
        assert len(frames) == 1 + int(row["key"].split()[2]) % 5
    assert {str(row["input_shapes"]) for row in table if row["key"] == "aten::neg"} == {"[[1]]", "[[2]]", "[[3]]"}
