# SPDX-License-Identifier: Apache-2.0
"""The views in the report page's data: a view is left out of it only where `sonde report` has no rows either."""
import base64
import gzip
import json
import re

import pytest

from cli_tools import generate, needs_tools, read, read_json

# A trace of each thing that a view may be of, and what has nothing of most.
CASES = ["bench", "convnet", "function_counters", "graph", "heap", "job", "job_gpu", "layers", "memory", "mixed", "no_graph",
         "python", "range_counters", "run_counters", "samples", "stack_counters", "tensor_lines", "tensors", "two_processes"]
# Those of views.def that need something of the trace, and are quick to make.
VIEWS = ["model", "graph", "layers", "lines", "line-memory", "source", "counters", "range-counters", "function-counters", "heap",
         "heap-functions", "heap-moments", "tensors", "tensor-lines", "ranks", "stragglers", "collectives", "modules", "functions",
         "samples", "kernels", "gpu", "memory", "steps"]


def page_views(trace, page):
    """The views without groups in the data of the trace's page, by name."""
    read("export", trace, "--to", "html", "-o", page)
    data = base64.b64decode(re.search(r'id="data">([^<]*)<', page.read_text()).group(1))
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    views, at = {}, 0
    while (at := data.find(b"VIEW", at)) >= 0:
        size = int.from_bytes(data[at + 4:at + 8], "little")
        if data[at + 8:at + 9] == b"{":
            view = json.loads(data[at + 8:at + 8 + size])
            if view["group"] == "":
                views[view["document"]["view"]] = view["document"]
        at += 8
    return views


def size_of(document):
    return len(document["rows"]) + sum(len(section["rows"]) for section in document["sections"])


@needs_tools
@pytest.mark.parametrize("case", CASES)
def test_no_view_with_rows_is_left_out_of_the_page(tmp_path, case):
    trace = generate(case, tmp_path / f"{case}.sonde")
    views = page_views(trace, tmp_path / "page.html")
    for name in VIEWS:
        rows = read_json("report", trace, "--view", name, "--json")
        there = len(rows["rows"]) + sum(len(value) for value in rows["totals"].values() if isinstance(value, list))
        assert (size_of(views[name]) > 0) == (there > 0), name
        assert size_of(views[name]) > 0 or "error" in views[name] or views[name]["empty"], name
