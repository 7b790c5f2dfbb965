# SPDX-License-Identifier: Apache-2.0
"""The definitions of Holistic Trace Analysis on traces that torch.profiler recorded on a GPU: the same numbers to 0.001 us."""
import logging
import pathlib
import warnings

import pytest

pytest.importorskip("hta", reason="HolisticTraceAnalysis is not installed")
pytest.importorskip("duckdb", reason="duckdb is not installed: pip install duckdb")

import pandas  # noqa: E402
from cli_tools import needs_tools, read_json  # noqa: E402
from hta.trace_analysis import TraceAnalysis  # noqa: E402

pytestmark = needs_tools
logging.getLogger("hta").setLevel(logging.ERROR)
DATA = pathlib.Path(__file__).parents[1] / "data/gpu"
THOUSANDTH = 0.0011  # us; HTA adds up in binary fractions


@pytest.fixture(scope="module", params=["train", "streams"])
def both(request):
    """HTA, which neither rounds nor leaves out the last step, and the rows of a query."""
    path = DATA / f"{request.param}.trace.json.gz"
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setenv("HTA_DISABLE_NS_ROUNDING", "1")
        patch.setattr(pandas.DataFrame, "round", lambda frame, *more, **other: frame)  # their answers, as they are
        yield TraceAnalysis(trace_files={0: str(path)}, include_last_profiler_step=True), \
            lambda query: read_json("sql", "--json", path, query)["rows"], path


def us(ns):
    return pytest.approx(ns / 1000, abs=THOUSANDTH)


def test_temporal_breakdown_and_overlap(both):
    theirs, query, path = both
    row, = theirs.get_temporal_breakdown(visualize=False).to_dict("records")
    ours, = query("gpu_breakdown")
    view, = [one for one in read_json("report", path, "--view", "ranks", "--json")["rows"] if one["compute_ns"]] or [ours]
    for found in (ours, view):
        assert row["idle_time(us)"] == us(found["idle_ns"])
        assert row["compute_time(us)"] == us(found["compute_ns"])
        assert row["kernel_time(us)"] == us(found["span_ns"])
    assert row["non_compute_time(us)"] == us(ours["non_compute_ns"])
    if ours["communication_ns"]:
        overlap, = theirs.get_comm_comp_overlap(visualize=False).to_dict("records")
        share = 100 * ours["overlap_ns"] / ours["communication_ns"]
        assert overlap["comp_comm_overlap_pctg"] == pytest.approx(share, abs=0.006)


def test_idle_breakdown(both):
    theirs, query, _ = both
    found = theirs.get_idle_time_breakdown(ranks=[0], visualize=False)[0].to_dict("records")
    ours = {(row["stream"], row["reason"]): row["idle_ns"] for row in query("gpu_idle")}
    assert {(row["stream"], row["idle_category"]) for row in found if row["idle_time"]} == set(ours)
    for row in found:
        assert row["idle_time"] == us(ours.get((row["stream"], row["idle_category"]), 0))


def test_queue_length(both):
    theirs, query, _ = both
    found = theirs.get_queue_length_summary(ranks=[0])
    ours = {row["stream"]: row for row in query("gpu_queue")}
    assert len(found) == len(ours)
    for (_, stream), row in found["queue_length"].iterrows():
        one = ours[stream]
        assert (row["count"], row["min"], row["50%"], row["max"]) == \
            (one["moments"], one["least"], one["median"], one["most"])
        assert (row["mean"], row["std"]) == (pytest.approx(one["mean"]), pytest.approx(one["deviation"]))


def test_launch_statistics(both):
    theirs, query, _ = both
    found = theirs.get_cuda_kernel_launch_stats(ranks=[0], visualize=False)[0].to_dict("records")
    ours = {row["correlation"]: row for row in query("gpu_launches")}
    assert {row["correlation"] for row in found} == set(ours) != set()
    for row in found:
        one = ours[row["correlation"]]
        assert (row["cpu_duration"], row["gpu_duration"], row["launch_delay"]) == \
            (us(one["cpu_duration_ns"]), us(one["gpu_duration_ns"]), us(one["launch_delay_ns"]))


def test_kernel_breakdown(both):
    theirs, query, _ = both
    _, found = theirs.get_gpu_kernel_breakdown(visualize=False, num_kernels=100000, include_memory_kernels=True)
    ours = {row["name"]: row for row in query("gpu_kernels")}
    assert set(found["name"]) == set(ours)
    words = {"COMPUTATION": "compute", "COMMUNICATION": "communication", "MEMORY": "copy"}
    for row in found.to_dict("records"):
        one = ours[row["name"]]
        assert words[row["kernel_type"]] == one["does"]
        assert (row["sum (us)"], row["max (us)"], row["min (us)"], row["mean (us)"], row["stddev"]) == \
            tuple(us(one[key]) for key in ("total_ns", "greatest_ns", "least_ns", "mean_ns", "deviation_ns"))
