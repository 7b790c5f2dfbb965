# SPDX-License-Identifier: Apache-2.0
"""Tables, memory and Chrome traces of a GPU against torch.profiler's of the same program."""
import collections
import json
import os

import pytest
from gpu_tools import HERE, SONDE, python, run

NAMES = ["train", "vit", "resnet"]
OVERHEAD = ("Activity Buffer", "Lazy Function", "Command Buffer", "Runtime Triggered")
CATEGORIES = ("kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "cuda_driver", "ac2g")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder, done = tmp_path_factory.mktemp("made"), {}

    def get(name, ending):
        if (name, ending) not in done:
            paths = [folder / f"{name}-{profiler}.{ending}" for profiler in ("torch", "sonde")]
            for profiler, path in zip(("torch", "sonde"), paths):
                python(os.path.join(HERE, "workloads.py"), name, profiler, path)
            done[name, ending] = paths
        return done[name, ending]
    return get


def load(path):
    with open(path) as file:
        return json.load(file)


@pytest.mark.parametrize("name", NAMES)
def test_rows_and_memory(made, name):
    """The same rows, as often, with the same bytes; overhead is the profiler's own."""
    theirs, mine = (load(path)["rows"] for path in made(name, "averages"))

    def kept(rows, *names):
        return {key: tuple(row[one] for one in names) for key, row in rows.items()
                if not key.startswith(OVERHEAD)}
    assert kept(mine, "count") == kept(theirs, "count")
    names = ("device_memory_usage", "self_device_memory_usage")
    assert kept(mine, *names) == kept(theirs, *names)


@pytest.mark.parametrize("name", NAMES)
def test_time_of_operators(made, name):
    """CUDA time of each row, and of all together.

    torch 2.11 gives CUPTI's own time ("Activity Buffer Request") the kernels of the operator around it, once more: without
    those rows each kernel is counted once, by the operators and by the rows of kernels alike. A range that a person named has
    a row of the GPU that is as long as the host took.
    """
    theirs, mine = (load(path)["rows"] for path in made(name, "averages"))
    host = {row[:-len(" CPU")] for row in theirs if row.endswith(" CPU")}

    def times(rows, ending):
        return {key: row["self_device_time_total"] for key, row in rows.items() if key.endswith(ending)
                and not key.startswith(OVERHEAD) and (ending == " CPU" or key[:-len(ending)] not in host)}
    for ending in (" CPU", " CUDA"):
        a, b = times(theirs, ending), times(mine, ending)
        assert a.keys() == b.keys()
        for key in a:
            assert abs(a[key] - b[key]) <= max(0.05 * a[key], 20), (key, a[key], b[key])
        assert abs(sum(a.values()) - sum(b.values())) <= 0.03 * sum(a.values())
    for rows in (theirs, mine):
        assert abs(sum(times(rows, " CPU").values()) - sum(times(rows, " CUDA").values())) < 1
    assert sum(row["self_device_time_total"] for key, row in mine.items() if key.startswith(OVERHEAD)) == 0


@pytest.mark.parametrize("name", NAMES)
def test_peak(made, name):
    """The trace's peak is the allocator's own, where nothing was freed before it began."""
    _, mine = made(name, "averages")
    shown = run(SONDE, "report", f"{mine}.sonde", "--view", "memory", "--json").stdout
    assert str(load(mine)["peak"]) in shown, (load(mine)["peak"], shown[:2000])


@pytest.mark.parametrize("name", NAMES)
def test_chrome_trace(made, name):
    """As many events of each category of the GPU, with the same arguments."""
    theirs, mine = made(name, "any")
    found = []
    for path in (theirs, f"{mine}.json"):
        events = load(path)["traceEvents"]
        found.append((collections.Counter(event["cat"] for event in events if event.get("cat") in CATEGORIES),
                      {category: {key for event in events if event.get("cat") == category
                                  for key in event.get("args", {})} for category in CATEGORIES}))
    assert found[0][0] == found[1][0]
    assert found[0][1] == found[1][1]
