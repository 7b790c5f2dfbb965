# SPDX-License-Identifier: Apache-2.0
"""Holistic Trace Analysis on our trace and on torch's, each recorded of the same job on a GPU.

CUPTI has one subscriber, so that the job ran twice: kernels and their counts are equal, times are those of two runs.
(The same events through both files: tests/e2e/test_gpu_readers.py, to the number.)
"""
import collections
import logging
import os
import warnings

import pytest
from gpu_tools import HERE, python

NAMES = ["resnet", "train"]


def analysis():
    warnings.simplefilter("ignore")
    pytest.importorskip("hta", reason="HolisticTraceAnalysis is not installed")
    from hta.trace_analysis import TraceAnalysis
    logging.getLogger("hta").setLevel(logging.ERROR)
    return TraceAnalysis


@pytest.fixture(scope="module", params=NAMES)
def both(request, tmp_path_factory):
    """What HTA reads of torch's file and of ours. SONDE_GPU_TRACES: a folder that has them, else they are recorded."""
    read, name = analysis(), request.param
    folder = os.environ.get("SONDE_GPU_TRACES")
    paths = [os.path.join(folder, f"{name}-{which}.json") for which in ("torch", "sonde")] if folder else record(
        name, tmp_path_factory.mktemp("hta"))
    return [read(trace_files={0: str(path)}) for path in paths]


def record(name, folder):
    paths = folder / f"{name}-torch.json", folder / f"{name}-sonde"
    for which, path in zip(("torch", "sonde"), paths):
        python(os.path.join(HERE, "workloads.py"), name, which, path)
    return paths[0], f"{paths[1]}.json"


def counts(one):
    """{work of a GPU: how often}, of what HTA has read."""
    frame, names = one.t.get_trace(0), one.t.symbol_table.get_sym_table()
    return collections.Counter(names[i] for i in frame[frame["stream"] >= 0]["name"])


def test_kernel_breakdown(both):
    """The same kernels as often, by kind too; their time within 5 %, or 20 us."""
    (types, kernels), (our_types, our_kernels) = (
        one.get_gpu_kernel_breakdown(visualize=False, duration_ratio=1.0, num_kernels=10_000) for one in both)
    assert sorted(types["kernel_type"]) == sorted(our_types["kernel_type"])
    sums = {key: float(value) for key, value in zip(types["kernel_type"], types["sum"])}
    for key, value in zip(our_types["kernel_type"], our_types["sum"]):
        assert abs(value - sums[key]) <= max(0.05 * sums[key], 20), (key, value, sums[key])
    assert sorted(kernels["name"]) == sorted(our_kernels["name"])
    assert counts(both[0]) == counts(both[1])


def test_temporal_breakdown(both):
    """Time in which kernels ran, and in which other work did; idle time is the host's, and differs by run."""
    theirs, mine = (one.get_temporal_breakdown(visualize=False) for one in both)
    assert list(theirs.columns) == list(mine.columns) and len(theirs) == len(mine) == 1
    for column in ("compute_time(us)", "non_compute_time(us)"):
        a, b = float(theirs[column].iloc[0]), float(mine[column].iloc[0])
        assert abs(a - b) <= max(0.05 * a, 20), (column, a, b)
    assert 0 < float(mine["idle_time(us)"].iloc[0]) < float(mine["kernel_time(us)"].iloc[0]) * 100


def test_idle_time_breakdown(both):
    """The same streams and kinds of idle time; how long each was, is that of two runs: shares within 15 points."""
    theirs, mine = (one.get_idle_time_breakdown(visualize=False)[0] for one in both)
    assert list(theirs.columns) == list(mine.columns)
    rows = [{(row.stream, row.idle_category): float(row.idle_time_ratio) for row in frame.itertuples()}
            for frame in (theirs, mine)]
    assert rows[0].keys() == rows[1].keys() and rows[0]
    for key, share in rows[0].items():
        assert abs(share - rows[1][key]) <= 0.15, (key, share, rows[1][key])
