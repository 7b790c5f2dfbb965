# SPDX-License-Identifier: Apache-2.0
"""Holistic Trace Analysis reads our Chrome trace as it reads torch's: the same outcome."""
import json
import logging
import warnings

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: nothing to compare with")
hta = pytest.importorskip("hta", reason="HolisticTraceAnalysis is not installed")

from cli_tools import generate, needs_tools, sonde  # noqa: E402
from hta.trace_analysis import TraceAnalysis  # noqa: E402
from torch_tools import FORMS, FULL, training  # noqa: E402

import torch.profiler  # noqa: E402

logging.getLogger("hta").setLevel(logging.ERROR)


@pytest.fixture(scope="module", params=list(FORMS))
def files(tmp_path_factory, request):
    """The same three steps of training, as each of the two writes them."""
    folder, run = tmp_path_factory.mktemp("hta"), training()
    run()

    def steps():
        for step in range(3):
            with torch.profiler.record_function(f"ProfilerStep#{step}"):
                run()

    theirs, ours = FORMS[request.param](steps, **FULL)
    theirs.export_chrome_trace(str(folder / "theirs.json"))
    ours.export_chrome_trace(str(folder / "ours.json"))
    ours.export_chrome_trace(str(folder / "ours.json.gz"))
    return folder


def analysis(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return TraceAnalysis(trace_files={0: str(path)})


def events(loaded):
    """Each operator as HTA holds it, in order."""
    frame, symbols = loaded.t.get_trace(0), loaded.t.symbol_table.get_sym_table()
    kept = frame[frame["cat"].map(lambda cat: symbols[cat] in ("cpu_op", "user_annotation"))]
    return [(symbols[row.cat], symbols[row.name]) for row in
            kept.sort_values(["ts", "index"]).itertuples()]


@pytest.mark.parametrize("name", ["ours.json", "ours.json.gz"])
def test_loads_as_theirs(files, name):
    ours, theirs = analysis(files / name), analysis(files / "theirs.json")
    assert sorted(events(ours)) == sorted(events(theirs))
    assert ours.t.get_iterations() == theirs.t.get_iterations()


def outcome(path, question):
    """What it says, less the numbers; or what it raises."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answer = question(analysis(path))
    except Exception as error:
        return type(error).__name__
    return [sorted(map(str, frame.columns)) if hasattr(frame, "columns") else type(frame).__name__
            for frame in (answer if isinstance(answer, tuple) else (answer,))]


@pytest.mark.parametrize("question", [
    "get_temporal_breakdown", "get_idle_time_breakdown", "get_gpu_kernel_breakdown",
    "get_queue_length_summary", "get_memory_bw_summary", "get_comm_comp_overlap",
    "get_cuda_kernel_launch_stats"])
def test_questions_end_alike(files, question):
    def ask(loaded):
        method = getattr(loaded, question)
        try:
            return method(visualize=False)
        except TypeError:
            return method()

    assert outcome(files / "ours.json", ask) == outcome(files / "theirs.json", ask)


def test_the_document_is_theirs(files):
    """Top-level names, categories, and the names of each category's arguments."""
    ours, theirs = (json.loads((files / f"{side}.json").read_text()) for side in ("ours", "theirs"))
    assert set(theirs) - set(ours) <= {"host_name", "traceName"} - set(ours)
    ours_cat, theirs_cat = ({event["cat"] for event in document["traceEvents"] if "cat" in event}
                            for document in (ours, theirs))
    assert theirs_cat - ours_cat <= {"ac2g", "overhead"}

    def argument_names(document, category):
        return {key for event in document["traceEvents"] if event.get("cat") == category
                for key in event.get("args", {})}

    for category in ("cpu_op", "user_annotation", "cpu_instant_event"):
        missing = argument_names(theirs, category) - argument_names(ours, category)
        assert missing <= {"Ev Idx", "Record function id", "finished"}, category


def test_arrows_from_forward_to_backward(files):
    def arrows(name):
        document = json.loads((files / name).read_text())["traceEvents"]
        begins = {(event["tid"], event["ts"]): event["name"] for event in document
                  if event.get("ph") == "X" and event.get("cat") == "cpu_op"}
        found = {}
        for event in document:
            if event.get("cat") == "fwdbwd":
                found.setdefault(event["id"], {})[event["ph"]] = \
                    begins.get((event["tid"], event["ts"]))
        return sorted((ends.get("s"), ends.get("f")) for ends in found.values())

    assert arrows("ours.json") == arrows("theirs.json") != []


@needs_tools
def test_job_of_ranks(tmp_path, monkeypatch):
    """A file for each rank, in which HTA finds the rank; what is in it is that rank's, on one axis with the others."""
    monkeypatch.setenv("HTA_DISABLE_NS_ROUNDING", "1")
    job = generate("job", tmp_path / "job")
    assert sonde("export", job, "--to", "chrome", cwd=tmp_path).returncode == 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loaded = TraceAnalysis(trace_dir=str(tmp_path / "job.chrome"))
    assert sorted(loaded.t.get_all_traces()) == [0, 1, 2, 3]
    ranges = json.loads(sonde("sql", job, "--json", "select rank, ranges.start_ns, name from ranges join processes on id = process "
                              "order by rank, ranges.start_ns, name").stdout)["rows"]
    symbols = loaded.t.symbol_table.get_sym_table()
    first = min(row["start_ns"] for row in ranges)
    found = [(rank, round(1000 * row.ts), symbols[row.name]) for rank in range(4)
             for row in loaded.t.get_trace(rank).itertuples() if row.dur >= 0]
    earliest = min(start for _, start, _ in found)
    assert sorted((rank, start - earliest, name) for rank, start, name in found) \
        == [(row["rank"], row["start_ns"] - first, row["name"]) for row in ranges]
    for rank in range(4):
        info = json.loads((tmp_path / "job.chrome" / f"rank{rank}.pt.trace.json").read_text())["distributedInfo"]
        assert (info["rank"], info["world_size"], info["pg_config"][0]["backend_config"]) == (rank, 4, "gloo")
