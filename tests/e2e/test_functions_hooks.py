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
