# SPDX-License-Identifier: Apache-2.0
"""Two GPUs in one trace: the views show each as if it had been alone.

Tables, events, the Chrome trace and its tracks of the same two are compared with torch's in test_gpu_torch.py and
test_gpu_chrome.py ("two"); the probe with two devices in tests/unit/test_cuda.c.
"""
import json

import pytest

from cli_tools import read
from torch_gpu_traces import TWO, Converter, convert, needs_gen_lines

pytestmark = needs_gen_lines
DEVICES = [0, 1]


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    """The trace, and one for each GPU that has nothing of the other."""
    folder = tmp_path_factory.mktemp("several")
    found = {"both": convert(TWO, folder)}
    for device in DEVICES:
        alone = Converter(TWO)
        alone.events[:] = [e for e in alone.events if e.get("args", {}).get("device", device) == device]
        found[device] = alone.write(folder / f"alone-{device}.sonde")
    return found


def report(trace, view, *words):
    return json.loads(read("report", "--view", view, "--json", "--rows", "-1", *words, trace))


def of_device(rows, device):
    return [row for row in rows if row["device"] == f"cuda:{device}"]


def test_kernels(traces):
    """By device: names, counts and times are torch's."""
    rows = report(traces["both"], "kernels", "--group-by", "device")["rows"]
    works = Converter(TWO).of("kernel", "gpu_memcpy", "gpu_memset")
    for device in DEVICES:
        theirs = {}
        for e in works:
            if e["args"]["device"] == device:
                count, ns = theirs.get(e["name"], (0, 0))
                theirs[e["name"]] = count + 1, ns + Converter.ns(e["dur"])
        assert {row["name"]: (row["count"], row["total_ns"]) for row in of_device(rows, device)} == theirs
        assert len(theirs) > 1


def test_gpu(traces):
    """What each did, why it was idle and its longest gaps: as of the trace that has it alone. In the order of their numbers."""
    both = report(traces["both"], "gpu")
    assert [row["device"] for row in both["totals"]["devices"]] == ["cuda:0", "cuda:1"]
    for device in DEVICES:
        alone = report(traces[device], "gpu")
        assert of_device(both["rows"], device) == alone["rows"]
        assert of_device(both["totals"]["devices"], device) == alone["totals"]["devices"]
        gaps = of_device(both["totals"]["gaps"], device)  # of the longest of both
        assert gaps and gaps == alone["totals"]["gaps"][:len(gaps)]


def test_text(traces):
    text = read("report", "--view", "gpu", traces["both"]).decode()
    assert "cuda:0" in text and "cuda:1" in text
