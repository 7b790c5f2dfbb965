# SPDX-License-Identifier: Apache-2.0
"""What sonde records of a GPU is what torch.profiler records of the same program."""
import collections
import os

import pytest
from gpu_tools import HERE, ours, python, read, torch_calls, torchs

NAMES = ["resnet", "vit", "bert", "compile", "graph", "streams", "train"]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """By name: torch's Chrome trace and our trace, each of a process of its own, made when asked for."""
    folder, made = tmp_path_factory.mktemp("recorded"), {}

    def get(name):
        if name not in made:
            paths = folder / f"{name}.json", folder / f"{name}.sonde"
            for profiler, path in zip(("torch", "sonde"), paths):
                python(os.path.join(HERE, "workloads.py"), name, profiler, path)
            made[name] = paths
        return made[name]
    return get


@pytest.mark.parametrize("name", NAMES)
def test_same_works(recorded, name):
    """Names, grids, blocks, registers, shared memory, bytes, devices and streams, each as often."""
    theirs, mine = recorded(name)
    rows, tally = ours(mine)
    ours_counted = collections.Counter(row[0] for row in rows)
    theirs_counted = collections.Counter(row[0] for row in torchs(theirs))
    assert ours_counted == theirs_counted
    assert tally["dropped"] == tally["unknown"] == tally["early"] == tally["unasked"] == 0, tally


@pytest.mark.parametrize("name", NAMES)
def test_same_time(recorded, name):
    """Summed kernel time within 2 %; of programs of microseconds, within 10."""
    theirs, mine = recorded(name)
    ours_ns = sum(ns for work, ns, _ in ours(mine)[0] if work.kind == 1)
    torch_ns = sum(ns for work, ns, _ in torchs(theirs) if work.kind == 1)
    most = 0.02 if torch_ns > 1e6 else 0.10
    assert abs(ours_ns - torch_ns) <= most * torch_ns, (ours_ns, torch_ns)


@pytest.mark.parametrize("name", NAMES)
def test_same_operators(recorded, name):
    """Each kernel, copy and fill belongs to the operator that torch says it does."""
    theirs, mine = recorded(name)

    def pairs(rows):
        return collections.Counter((work.name, operator) for work, _, operator in rows)

    def known(counted):  # ranges of users are no operators to torch
        return {key: count for key, count in counted.items() if key[1]}
    ours_pairs, torch_pairs = pairs(ours(mine)[0]), pairs(torchs(theirs))
    assert {key: ours_pairs[key] for key in known(torch_pairs)} == known(torch_pairs)


@pytest.mark.parametrize("name", NAMES)
def test_same_calls(recorded, name):
    """Calls of the runtime and launches of the driver, by name."""
    theirs, mine = recorded(name)
    assert collections.Counter(call["api"] for call in read(mine)[1]) == torch_calls(theirs)
