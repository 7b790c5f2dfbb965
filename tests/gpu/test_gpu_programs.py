# SPDX-License-Identifier: Apache-2.0
"""Programs as people write them, on a GPU: NVTX, the profiler's examples, models and tensors."""
import json
import os
import re
import subprocess
import sys
import textwrap

import pytest
from gpu_tools import HERE, ROOT, SONDE, python, read, run

# --------------------------------------------------------------------------- NVTX


def test_nvtx_ranges(tmp_path):
    """A kernel belongs to the NVTX range in which it was launched; ranges nest, marks are marks."""
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent("""
        import torch
        a = torch.randn(64, 64, device="cuda")
        torch.cuda.synchronize()
        for _ in range(10):
            with torch.cuda.nvtx.range("outer"):
                a.add_(1)
                torch.cuda.nvtx.range_push("inner")
                a.mul_(2)
                torch.cuda.nvtx.range_pop()
            torch.cuda.nvtx.mark("moment")
        torch.cuda.synchronize()
    """))
    run(SONDE, "run", "--gpu", "-o", tmp_path / "t.sonde", "--", "python", program)
    works, _, _ = read(str(tmp_path / "t.sonde"))
    parents = [one["parent"] for one in works if one["kind"] == 1]
    assert parents.count("outer") == 10 and parents.count("inner") == 10, parents
    rows = json.loads(run(SONDE, "report", tmp_path / "t.sonde", "--json").stdout)["rows"]
    counts = {row["key"]: row["count"] for row in rows}
    assert counts["outer"] == counts["inner"] == 10


# ----------------------------------------------------------- examples of the profiler

NET = """
import sys, torch
sys.path.insert(0, sys.argv[1])
import workloads
if sys.argv[2] == "torch":
    from torch.profiler import ProfilerActivity, profile, record_function, schedule
else:
    from sonde import ProfilerActivity, profile, record_function, schedule
BOTH = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
model, inputs = workloads.small().cuda(), torch.randn(5, 3, 16, 16).cuda()
model(inputs)
"""
SCRIPTS = {
    "time_by_shape": """
with profile(activities=BOTH, record_shapes=True) as prof:
    model(inputs)
print(prof.key_averages().table(sort_by="cuda_time_total", row_limit=10))
print(prof.key_averages(group_by_input_shape=True).table(sort_by="cuda_time_total", row_limit=30))
""",
    "memory": """
with profile(activities=BOTH, profile_memory=True, record_shapes=True) as prof:
    model(inputs)
print(prof.key_averages().table(sort_by="self_cuda_memory_usage", row_limit=10))
""",
    "inference": """
with profile(activities=BOTH, record_shapes=True) as prof:
    with record_function("model_inference"):
        model(inputs)
print(prof.key_averages().table(sort_by="self_cuda_time_total", row_limit=10))
""",
    "flops": """
with profile(activities=BOTH, with_flops=True) as prof:
    model(inputs)
print(prof.key_averages().table(sort_by="flops", row_limit=10))
""",
    "long_running": """
def trace_handler(p):
    print(p.key_averages().table(sort_by="self_cuda_time_total", row_limit=10))
    p.export_chrome_trace(sys.argv[3] + "/trace_" + str(p.step_num) + ".json")
with profile(activities=BOTH, schedule=schedule(skip_first=1, wait=1, warmup=1, active=2, repeat=2),
             on_trace_ready=trace_handler) as p:
    for idx in range(9):
        model(inputs)
        p.step()
""",
}


def columns(line):
    """torch scales FLOPs by the greatest ("Total KFLOPs"), we each on its own."""
    return re.split(r"\s{2,}", re.sub(r"Total \w?FLOPs", "Total FLOPs", line.strip()))


@pytest.mark.parametrize("name", SCRIPTS)
def test_examples_print_the_columns_of_cuda(tmp_path, name):
    """The same columns and the same footers as torch.profiler, with times on the GPU."""
    said = {}
    for which in ("torch", "sonde"):
        (tmp_path / which).mkdir()
        program = tmp_path / f"with_{which}.py"
        program.write_text(NET + SCRIPTS[name])
        said[which] = python(program, HERE, which, tmp_path / which).stdout.splitlines()
    heads = {which: [columns(line) for line in lines if "Self CPU" in line and "Name" in line]
             for which, lines in said.items()}
    assert heads["sonde"] == heads["torch"] and heads["torch"]
    assert "Self CUDA" in heads["sonde"][0] and "CUDA total" in heads["sonde"][0]
    totals = {which: [line.split(":")[0] for line in lines if line.startswith("Self C")]
              for which, lines in said.items()}
    assert totals["sonde"] == totals["torch"] and "Self CUDA time total" in totals["sonde"]
    times = [line.split(": ")[1] for line in said["sonde"] if line.startswith("Self CUDA time total")]
    assert all(not time.startswith("0.000") for time in times), times
    assert sorted(os.listdir(tmp_path / "sonde")) == sorted(os.listdir(tmp_path / "torch"))


# ---------------------------------------------------------------- models, layers, tensors

SUITE = os.path.join(ROOT, "tests/e2e")
NETS = os.path.join(SUITE, "programs")
WITH_NETS = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [NETS, os.environ.get("PYTHONPATH")]))}
DEVICE = "cuda"


def test_model(tmp_path):
    """Times of the GPU, copies apart, the allocator's peak, NVML's energy."""
    run(SONDE, "model", "nets:Net", "--input", "3x16x16", "--device", DEVICE, "--batch", "8", "--iterations", "10",
        "-o", tmp_path / "m.json", cwd=NETS, env=WITH_NETS)
    found = json.loads((tmp_path / "m.json").read_text())
    timing = found["timing"]["batch_size_8"]
    assert {"cpu_to_gpu", "on_device_inference", "gpu_to_cpu", "total", "gpu"} <= set(timing)
    assert found["memory"]["batch_size_8"]["peak_activation_bytes"] > 0
    assert "NVML" in json.dumps(found["energy"]), found["energy"]


def test_layers(tmp_path):
    run(SONDE, "layers", "nets:Net", "--input", "3x16x16", "--device", DEVICE, "--batch", "4", "--iterations", "3",
        "--backward", "-o", tmp_path / "layers.yml", "--trace", tmp_path / "l.sonde", cwd=NETS, env=WITH_NETS)
    text = (tmp_path / "layers.yml").read_text()
    assert "copy_time" in text and "backward_time" in text
    assert "layer" in run(SONDE, "report", tmp_path / "l.sonde", "--view", "layers").stdout.lower()


TENSORS = """
import json, torch, sonde
def step(n):
    a = torch.empty(n, device="cuda")
    b = torch.empty(2 * n, device="cuda")
    del a
    return b
torch.empty(1, device="cuda")
with sonde.tensor_lines(step) as lines:
    kept = step(1 << 20)
print(json.dumps(lines.rows()))
"""


def test_tensor_lines(tmp_path):
    """Bytes of the GPU's memory that each line took and gave back."""
    (tmp_path / "t.py").write_text(TENSORS)
    rows = json.loads(python(tmp_path / "t.py").stdout.splitlines()[-1])
    found = {row["line"]: (row["taken_bytes"], row["end_bytes"], row["active_bytes"]) for row in rows if row["allocs"]}
    assert found == {4: (4 << 20, 0, 4 << 20), 5: (8 << 20, 8 << 20, 12 << 20)}, rows


def test_the_suites_own_gpu_tests():
    """Those of models and layers that need a GPU, which `make test` leaves out."""
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider",
                           os.path.join(SUITE, "test_model.py"), os.path.join(SUITE, "test_layers.py"),
                           "-k", "on_a_gpu"], capture_output=True, text=True, cwd=ROOT, timeout=300)
    assert done.returncode == 0 and " passed" in done.stdout and "skipped" not in done.stdout, done.stdout
