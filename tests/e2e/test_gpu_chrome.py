# SPDX-License-Identifier: Apache-2.0
"""The Chrome trace of a GPU, event by event against torch's of the same (tests/data/gpu), both ways.

What differs, and why:
- External id and Ev Idx are numbers of one's own: they must be the same up to renaming, and link the same
  events.
- torch names sixteen GPUs whatever there are, streams of earlier profiles of the process, and a thread
  a second time: names are compared of what has events.
- baseTimeNanoseconds and the times that count from it; trace_id, which torch draws; host_name, which we say.
"""
import json

import pytest

import torch_gpu_traces
from cli_tools import read
from torch_gpu_traces import NAMES, convert, needs_gen_lines, original

pytestmark = needs_gen_lines


@pytest.fixture(scope="module", params=[(name, way) for way in ("recorded", "imported") for name in NAMES],
                ids=lambda param: "-".join(param))
def pair(request, tmp_path_factory):
    """(torch's trace, ours)"""
    folder, (name, way) = tmp_path_factory.mktemp("chrome"), request.param
    path = convert(name, folder, functions=name == "train_stack") if way == "recorded" else \
        original(name, folder, functions=True)
    read("export", "--to", "chrome", "-o", folder / "ours.json", path)
    theirs = torch_gpu_traces.load(name, "trace")
    with open(folder / "ours.json") as file:
        ours = json.load(file, parse_float=torch_gpu_traces.decimal.Decimal)
    return theirs, ours


def origin(trace):
    return next(e["ts"] for e in trace["traceEvents"] if e.get("cat") == "Trace")


def numbered(trace):
    """Each event as something that can be compared: times from the begin, numbers of one's own apart."""
    start, found = origin(trace), []
    for e in trace["traceEvents"]:
        if e["ph"] == "M" or e.get("cat") in ("Trace", "fwdbwd") or "cat" not in e:
            continue
        # An operator's call stack follows from torch's Python functions around it, and we write it.
        args = {k: v for k, v in e.get("args", {}).items() if k not in ("External id", "Ev Idx", "Call stack")}
        for key in ("blocks per SM", "warps per SM", "memory bandwidth (GB/s)"):
            if key in args:
                args[key] = float(args[key])
        found.append((e["cat"], e["ph"], str(e["pid"]), str(e["tid"]), round((e["ts"] - start) * 1000),
                      round(e.get("dur", 0) * 1000), e["name"], json.dumps(args, sort_keys=True, default=str),
                      str(e.get("id", "")), e.get("bp", ""), e.get("args", {}).get("External id")))
    return sorted(found, key=str)


def test_events(pair):
    theirs, ours = map(numbered, pair)
    missing = sorted(set(e[:-1] for e in theirs) - set(e[:-1] for e in ours))
    more = sorted(set(e[:-1] for e in ours) - set(e[:-1] for e in theirs))
    assert (missing[:3], more[:3], len(missing), len(more)) == ([], [], 0, 0)
    assert len(theirs) == len(ours)


def test_links(pair):
    """External ids are the same up to renaming."""
    theirs, ours = map(numbered, pair)
    there, back = {}, {}
    for a, b in zip(theirs, ours):
        assert (a[-1] is None) == (b[-1] is None), (a, b)
        assert there.setdefault(a[-1], b[-1]) == b[-1], (a, b)
        assert back.setdefault(b[-1], a[-1]) == a[-1], (a, b)


def test_arrows_to_backward(pair):
    def arrows(trace):
        ends = {}
        for e in trace["traceEvents"]:
            if e.get("cat") == "fwdbwd":
                ends.setdefault(e["id"], {})[e["ph"]] = (str(e["tid"]), round((e["ts"] - origin(trace)) * 1000))
        return sorted((both["s"], both["f"]) for both in ends.values())
    assert arrows(pair[1]) == arrows(pair[0])


def test_names(pair):
    """Processes and threads that have events are called and ordered alike."""
    def names(trace):
        used = {(e["pid"], e["tid"]) for e in trace["traceEvents"] if e["ph"] == "X"}
        found = {}
        for e in trace["traceEvents"]:
            if e["ph"] != "M" or e["pid"] == "Spans":
                continue
            whole = e["name"].startswith("process")
            if e["pid"] in {pid for pid, _ in used} if whole else (e["pid"], e["tid"]) in used:
                found.setdefault((e["pid"], None if whole else e["tid"], e["name"]), e["args"])
        found = {key: value for key, value in found.items() if key[2] != "process_name"}
        return found
    assert names(pair[1]) == names(pair[0])


def test_members(pair):
    theirs, ours = ({k: v for k, v in trace.items() if k not in (
        "traceEvents", "trace_id", "baseTimeNanoseconds", "traceName", "host_name", "metadata")}
        for trace in pair)
    assert ours == theirs
