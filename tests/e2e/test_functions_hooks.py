# SPDX-License-Identifier: Apache-2.0
"""sonde.functions and others who want the same place in the interpreter."""
import ctypes
import json
import pathlib
import sys

import pytest

import sonde
from sonde import _python

sys.path.insert(0, str(pathlib.Path(__file__).parent / "programs/python"))
import calls  # noqa: E402


def counts(recorded):
    """Of the functions of this file and of calls.py."""
    said = json.loads(recorded.report(format="json", rows=-1))
    return {row["function"]: row["calls"] for row in said["rows"]
            if row["file"] in (__file__, calls.__file__)}


# --------------------------------------------------- the place of the frame evaluation

api = ctypes.pythonapi
api.PyInterpreterState_Get.restype = ctypes.c_void_p
api._PyInterpreterState_GetEvalFrameFunc.restype = ctypes.c_void_p
api._PyInterpreterState_GetEvalFrameFunc.argtypes = [ctypes.c_void_p]
api._PyInterpreterState_SetEvalFrameFunc.restype = None
api._PyInterpreterState_SetEvalFrameFunc.argtypes = [ctypes.c_void_p, ctypes.c_void_p]


def installed():
    return api._PyInterpreterState_GetEvalFrameFunc(api.PyInterpreterState_Get())


def install(function):
    api._PyInterpreterState_SetEvalFrameFunc(api.PyInterpreterState_Get(), function)


def test_left_as_it_was_found():
    before = installed()
    with sonde.functions(c_functions=False):
        assert installed() != before
    assert installed() == before


def test_displaced():
    """A tool that takes the place and calls CPython's own: noticed, and another way goes on."""
    default = installed()

    def displace():
        install(default)
        return calls.step(0)

    def nested(n):
        return displace() if n == 0 else nested(n - 1)
    with sonde.functions(c_functions=False) as recorded:
        calls.busy(10)
        nested(100)  # its ends are seen, though no call begins any more
        calls.busy(30)
    said = _python.functions_describe()
    assert "another tool" in said["switched"]
    got = counts(recorded)
    assert got["nested"] == 101
    assert got["step"] >= 40, "those after the switch are there"
    assert installed() == default


def test_turned_off_and_on_inside_a_call():
    """The call that was open when it was turned off ends without harm."""
    recorded = sonde.functions(c_functions=False)

    def inner():
        recorded.disable()
        recorded.enable()
        calls.step(1)

    def outer():
        inner()
        calls.step(2)
    recorded.enable()
    outer()
    recorded.disable()
    recorded.stop()
    stats = {key[2]: value[:2] for key, value in recorded.stats().stats.items()}
    assert stats["step"] == (2, 2)
    assert stats["outer"] == stats["inner"] == (1, 1)


# ---------------------------------------------------------------------- TorchDynamo

def compiled():
    torch = pytest.importorskip("torch")
    torch._dynamo.reset()

    def shifted(x):
        return x + 1

    @torch.compile(backend="eager")
    def model(x):
        return shifted(x) * 2
    return torch, model


@pytest.mark.parametrize("c_functions", [True, False])
def test_dynamo_on_top(c_functions):
    """Dynamo takes the place while we are there, and passes frames on."""
    torch, model = compiled()
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
    torch, model = compiled()
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
    torch = pytest.importorskip("torch")
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
