# SPDX-License-Identifier: Apache-2.0
"""Tables, memory and Chrome traces of a GPU against torch.profiler's of the same program."""
import collections
import json
import os

import pytest
from gpu_tools import HERE, SONDE, python, run

NAMES = ["train", "vit", "resnet"]
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
                if not key.startswith(("Activity Buffer", "Lazy Function", "Command Buffer", "Runtime Triggered"))}
    assert kept(mine, "count") == kept(theirs, "count")
    names = ("device_memory_usage", "self_device_memory_usage")
    assert kept(mine, *names) == kept(theirs, *names)


@pytest.mark.parametrize("name", NAMES)
def test_time_of_operators(made, name):
    """CUDA time of all operators together within 3 %; a range that a person named is as long as the host takes."""
    theirs, mine = (load(path)["rows"] for path in made(name, "averages"))

    def summed(rows):
        return sum(row["self_device_time_total"] for key, row in rows.items()
                   if key.endswith(" CPU") and key.startswith("aten::"))
    assert abs(summed(mine) - summed(theirs)) <= 0.03 * summed(theirs), (summed(mine), summed(theirs))


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
