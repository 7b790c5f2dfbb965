# SPDX-License-Identifier: Apache-2.0
"""Other tools on our trace of a GPU and on torch's of the same job; the memory's course; stacks."""
import gzip
import json
import logging
import math
import warnings

import pytest

from cli_tools import read
from torch_gpu_traces import DATA, NAMES, convert, load, needs_gen_lines

import sonde

pytestmark = needs_gen_lines


# ------------------------------------------------------------------------------- HTA

@pytest.fixture(scope="module", params=NAMES)
def both(request, tmp_path_factory):
    """What HTA makes of torch's file and of ours."""
    pytest.importorskip("hta", reason="HolisticTraceAnalysis is not installed")
    from hta.trace_analysis import TraceAnalysis
    logging.getLogger("hta").setLevel(logging.ERROR)
    folder, name = tmp_path_factory.mktemp("hta"), request.param
    path = convert(name, folder)
    read("export", "--to", "chrome", "-o", folder / "ours.json", path)
    theirs = load(name, "trace")
    start = next(e["ts"] for e in theirs["traceEvents"] if e.get("cat") == "Trace")
    for e in theirs["traceEvents"]:  # HTA rounds to microseconds: of the same fractions
        e["ts"] = e["ts"] - start
    with open(folder / "theirs.json", "w") as file:
        json.dump(theirs, file, default=float)
    loaded = []
    for file in ("theirs.json", "ours.json"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loaded.append(TraceAnalysis(trace_files={0: str(folder / file)}))
    return loaded


def frames(answer):
    answer = list(answer.values()) if isinstance(answer, dict) else answer
    return [frame for frame in (answer if isinstance(answer, (tuple, list)) else (answer,)) if hasattr(frame, "columns")]


def ask(loaded, question):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return frames(getattr(loaded, question)(**QUESTIONS[question]))
        except KeyError:
            return None


def rows(frame):
    """Rows in an order of their own; numbers as numbers."""
    return sorted(([str(cell) if isinstance(cell, str) else float(cell) for cell in row]
                   for row in frame.itertuples(index=False)), key=str)


# Not the length of queues: of calls and kernels in one microsecond HTA takes the order of the file.
QUESTIONS = {
    "get_temporal_breakdown": {"visualize": False},
    "get_gpu_kernel_breakdown": {"visualize": False, "duration_ratio": 1.0, "num_kernels": 10_000},
    "get_idle_time_breakdown": {"visualize": False, "show_idle_interval_stats": True},
    "get_cuda_kernel_launch_stats": {"visualize": False},
    "get_aten_op_kernels_and_delay": {},
    "get_memory_bw_summary": {},
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_hta_says_the_same(both, question):
    theirs, ours = (ask(loaded, question) for loaded in both)
    if theirs is None or not theirs:  # HTA fails, or has nothing to say of a trace without copies, operators
        assert ours == theirs and question in ("get_aten_op_kernels_and_delay", "get_memory_bw_summary")
        return
    assert len(theirs) == len(ours)
    for a, b in zip(theirs, ours):
        assert list(a.columns) == list(b.columns) and len(a) == len(b)
        for x, y in zip(rows(a), rows(b)):
            assert all(p == q if isinstance(p, str) else math.isclose(p, q, abs_tol=0.01) or p != p and q != q
                       for p, q in zip(x, y)), (x, y)


# ------------------------------------------------------------------------- TensorBoard

@pytest.mark.parametrize("name", ["train", "streams", "compile", "graph"])
def test_tensorboard_says_the_same(name, tmp_path):
    """Operators with their device time, kernels with theirs, and the GPU's metrics."""
    data = pytest.importorskip("torch_tb_profiler.profiler.data", reason="torch-tb-profiler is not installed")
    read("export", "--to", "chrome", "-o", tmp_path / "ours.json", convert(name, tmp_path))
    (tmp_path / "theirs.json").write_bytes(gzip.decompress((DATA / f"{name}.trace.json.gz").read_bytes()))
    found = []
    for file in ("theirs.json", "ours.json"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            profile = data.RunProfileData.from_json("worker", None, json.loads((tmp_path / file).read_text()))
        stat = profile.kernel_stat
        found.append({
            "operators": sorted((op.name, op.calls, round(op.device_duration, 1), round(op.self_device_duration, 1))
                                for op in profile.op_list_groupby_name),
            "kernels": [] if stat is None else sorted(
                (kernel, int(row["count"]), round(float(row["sum"]), 1)) for kernel, row in stat.iterrows()),
            "occupancy": [None if value is None else round(value, 2) for value in
                          profile.gpu_metrics_parser.avg_occupancy_per_device],
            "efficiency": [None if value is None else round(value, 2) for value in
                           profile.gpu_metrics_parser.avg_approximated_sm_efficiency_per_device],
            "devices": sorted(map(str, profile.used_devices)),
        })
    assert found[0] == found[1]
    assert found[0]["kernels"]


# ---------------------------------------------------------------------------- memory, stacks

def test_memory_timeline(tmp_path):
    """Every block that is taken of cuda:0, when and how large, as torch has it; and given back, of those.

    torch knows blocks that it met before the recording by the operators that use them; a trace does
    not. Which category a block is of torch tells by tensors, we by the operator (docs/MEMORY.md).
    """
    trace = sonde.Trace(str(convert("train_stack", tmp_path)))
    trace.memory_timeline("cuda:0").export(str(tmp_path / "ours.json"))
    with open(tmp_path / "ours.json") as file:
        ours = json.load(file)
    with gzip.open(DATA / "train_stack.memory.json.gz") as file:
        theirs = json.load(file)

    def taken(times, sizes):
        """(microseconds after the first, bytes) of what is taken."""
        sums = [sum(row) for row in sizes]
        grown = [(time, after - before) for time, before, after in zip(times, [0] + sums, sums) if after > before]
        return [(time - grown[0][0], size) for time, size in grown]

    own, other = taken(*ours), taken(*theirs)[1:]  # its first: what there was before
    assert [size for _, size in own] == [size for _, size in other]
    assert all(abs(a - b) <= 1 for (a, _), (b, _) in zip(own, other))  # whole microseconds, of two clocks


@pytest.mark.parametrize("name", NAMES)
def test_stacks_of_gpu_time(tmp_path, name):
    """torch 2.11 has no stacks in its events, so that its file is empty; the metric is there."""
    trace = sonde.Trace(str(convert(name, tmp_path)))
    trace.export_stacks(str(tmp_path / "stacks.txt"), "self_cuda_time_total")
    assert (tmp_path / "stacks.txt").read_text() == ""
    with pytest.raises(Exception, match="self_cuda_time_total"):
        trace.export_stacks(str(tmp_path / "stacks.txt"), "self_cuda_tim")
