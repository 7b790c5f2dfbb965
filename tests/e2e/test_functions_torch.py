# SPDX-License-Identifier: Apache-2.0
"""sonde.functions beside PyTorch: TorchDynamo, which wants the same hook, and sonde.profile."""
import json
import pathlib
import sys

import pytest

import sonde
from sonde import _python

sys.path.insert(0, str(pathlib.Path(__file__).parent / "programs/python"))
import calls  # noqa: E402

torch = pytest.importorskip("torch")


def counts(recorded):
    """Of the functions of this file and of calls.py."""
    said = json.loads(recorded.report(format="json", rows=-1))
    return {row["function"]: row["calls"] for row in said["rows"]
            if row["file"] in (__file__, calls.__file__)}


# ---------------------------------------------------------------------- TorchDynamo

def compiled():
    torch._dynamo.reset()

    def shifted(x):
        return x + 1

    @torch.compile(backend="eager")
    def model(x):
        return shifted(x) * 2
    return model


@pytest.mark.parametrize("c_functions", [True, False])
def test_dynamo_on_top(c_functions):
    """Dynamo takes the place while we are there, and passes frames on."""
    model = compiled()
    x = torch.ones(3)
    with sonde.functions(c_functions=c_functions) as recorded:
        for _ in range(20):
            assert torch.equal(model(x), (x + 1) * 2)
            calls.step(1)
    got = counts(recorded)
    assert got["step"] == 20
    assert got["model"] == 20, "compiled once, run twenty times"
    assert _python.functions_describe()["lost"] == 0
    assert torch.equal(model(x), (x + 1) * 2)


@pytest.mark.parametrize("c_functions", [True, False])
def test_dynamo_below(c_functions):
    """It is there already when we come."""
    model = compiled()
    x = torch.ones(3)
    model(x)
    for _ in range(3):
        with sonde.functions(c_functions=c_functions) as recorded:
            for _ in range(20):
                model(x)
            calls.busy(50)
        assert counts(recorded)["step"] == 50
    assert torch.equal(model(x), (x + 1) * 2)


# --------------------------------------------------------------------- sonde.profile

@pytest.mark.parametrize("outside", ["profile", "functions"])
def test_with_a_profile(outside):
    """One recording for both, whoever comes first; each shows its own after both have ended."""
    x = torch.ones(3)

    def add():
        return x + 1
    outer, inner = sonde.profile(), sonde.functions(c_functions=False)
    if outside == "functions":
        outer, inner = inner, outer
    with outer, inner:
        for _ in range(7):
            add()
    profile, recorded = (outer, inner) if outside == "profile" else (inner, outer)
    assert {row.key: row.count for row in profile.key_averages()}["aten::add"] == 7
    assert counts(recorded)["add"] == 7
    with sonde.profile() as alone:
        x + 1
    assert {row.key: row.count for row in alone.key_averages()}["aten::add"] == 1
