# SPDX-License-Identifier: Apache-2.0
"""The views of a GPU add up, on traces of a real one."""
import json
import subprocess
import textwrap

import pytest
from gpu_tools import HERE, SONDE, ours, python

PROGRAM = textwrap.dedent("""
    import json, sys
    sys.path.insert(0, sys.argv[1])
    import torch, workloads
    from sonde import ProfilerActivity, profile, schedule
    run = workloads.make(sys.argv[2])
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], profile_memory=True,
                 with_stack=True, with_modules=True, record_shapes=True) as result:
        for _ in range(3):
            run()
            result.step()
        torch.cuda.synchronize()
    said = {"before": before, "peak": torch.cuda.max_memory_allocated(),
            "reserved": torch.cuda.max_memory_reserved(), "end": torch.cuda.memory_allocated()}
    result.save(sys.argv[3])
    print(json.dumps(said))
""")


@pytest.fixture(scope="module", params=["train", "vit", "streams"])
def recorded(request, tmp_path_factory):
    """The trace, and what torch says of its memory."""
    folder = tmp_path_factory.mktemp("views")
    path, program = folder / "t.sonde", folder / "program.py"
    program.write_text(PROGRAM)
    return path, json.loads(
        python(program, HERE, request.param, path).stdout.splitlines()[-1])


def report(path, view, *more):
    done = subprocess.run([SONDE, "report", path, "--view", view, "--json", *more], check=True,
                          capture_output=True, text=True)
    return json.loads(done.stdout)


def test_memory_is_the_allocators(recorded):
    path, said = recorded
    shown = report(path, "memory", "--group-by", "module")
    gpu = [row for row in shown["totals"]["devices"] if row["device"] == "cuda:0"][0]
    assert gpu["peak_bytes"] == said["peak"]
    assert gpu["reserved_peak_bytes"] == said["reserved"]
    assert gpu["before_bytes"] == said["before"] and gpu["end_bytes"] == said["end"]
    assert sum(row["peak_bytes"] for row in shown["rows"] if row["device"] == "cuda:0") == said["peak"]
    assert 0 <= gpu["fragmentation_bytes"] <= gpu["reserved_at_peak_bytes"]


def test_the_span_is_divided_without_rest(recorded):
    shown = report(recorded[0], "gpu")
    (gpu,) = shown["totals"]["devices"]
    reasons = ("copy_only", "host_late", "synchronisation", "launch", "unknown")
    assert gpu["kernel_ns"] + sum(gpu[f"{reason}_ns"] for reason in reasons) == gpu["span_ns"]
    assert gpu["unknown_ns"] == 0
    assert sum(row["idle_ns"] for row in shown["rows"]) == gpu["span_ns"] - gpu["kernel_ns"]
    # three step() calls: between them are two steps; what follows the last is none
    assert [row["step"] for row in shown["totals"]["steps"]] == [1, 2]
    for step in shown["totals"]["steps"]:
        inside = step["kernel_ns"] + sum(step[f"{reason}_ns"] for reason in reasons)
        assert step["busy_ns"] <= inside <= step["duration_ns"]
    assert shown["ledger"].keys() <= {"uncounted_operators", "unmatched_frees"}, shown["ledger"]


def test_each_kernel_is_counted_and_launched_somewhere(recorded):
    rows = report(recorded[0], "kernels")["rows"]
    works, _ = ours(recorded[0])
    assert sum(row["count"] for row in rows) == len(works)
    assert sum(row["total_ns"] for row in rows) == sum(ns for _, ns, _ in works)
    assert all(row["operator"] for row in rows)
    assert all(row["delay_median_ns"] > 0 for row in rows if row["delay_median_ns"] is not None)
    assert all(0 < row["occupancy_percent"] <= 100 for row in rows if row["kind"] == "kernel")
    assert any(row["line"] for row in rows)
