# SPDX-License-Identifier: Apache-2.0
"""Other tools on our trace of a GPU and on torch's of the same job; the memory's course; stacks."""
import gzip
import json
import logging
import math
import warnings

import pytest

from cli_tools import read
from torch_gpu_traces import DATA, NAMES, convert, needs_gen_lines

import sonde

pytestmark = needs_gen_lines


# ------------------------------------------------------------------------------- HTA

@pytest.fixture(scope="module", params=["train", "streams", "compile"])
def both(request, tmp_path_factory):
    """What HTA makes of torch's file and of ours."""
    pytest.importorskip("hta", reason="HolisticTraceAnalysis is not installed")
    from hta.trace_analysis import TraceAnalysis
    logging.getLogger("hta").setLevel(logging.ERROR)
    folder, name = tmp_path_factory.mktemp("hta"), request.param
    path = convert(name, folder)
    read("export", "--to", "chrome", "-o", folder / "ours.json", path)
    theirs = json.loads(gzip.decompress((DATA / f"{name}.trace.json.gz").read_bytes()))
    start = next(e["ts"] for e in theirs["traceEvents"] if e.get("cat") == "Trace")
    for e in theirs["traceEvents"]:  # HTA rounds to microseconds: of the same fractions
        e["ts"] = round(e["ts"] - start, 3)
    with open(folder / "theirs.json", "w") as file:
        json.dump(theirs, file)
    loaded = []
    for file in ("theirs.json", "ours.json"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loaded.append(TraceAnalysis(trace_files={0: str(folder / file)}))
    return loaded


def frames(answer):
    return [frame for frame in (answer if isinstance(answer, tuple) else (answer,)) if hasattr(frame, "columns")]


def rows(frame):
    """Rows in an order of their own; numbers as numbers."""
    return sorted(([str(cell) if isinstance(cell, str) else float(cell) for cell in row]
                   for row in frame.itertuples(index=False)), key=str)


@pytest.mark.parametrize("question", ["get_temporal_breakdown", "get_gpu_kernel_breakdown"])
def test_hta_says_the_same(both, question):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, ours = (frames(getattr(loaded, question)(visualize=False)) for loaded in both)
    assert len(theirs) == len(ours) > 0
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
