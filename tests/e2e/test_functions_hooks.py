# SPDX-License-Identifier: Apache-2.0
"""sonde.functions and others who want the same place in the interpreter."""
import ctypes
import json
import pathlib
import sys

import pytest

import sonde
from sonde import _python
from python_tools import FREE

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


hooked = pytest.mark.skipif(FREE, reason="without the interpreter lock, calls are seen by sys.monitoring alone")


@hooked
def test_left_as_it_was_found():
    before = installed()
    with sonde.functions(c_functions=False):
        assert installed() != before
    assert installed() == before


@hooked
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


@hooked
def test_displaced_while_an_exception_is_raised():
    """The other way is taken up between a raise and its except: the exception is the program's."""
    default = installed()

    def nested(n):
        if n == 0:
            install(default)
            raise KeyError("mine")
        nested(n - 1)
    with sonde.functions(c_functions=False) as recorded:
        with pytest.raises(KeyError, match="mine"):
            nested(200)
        calls.busy(30)
    assert "another tool" in _python.functions_describe()["switched"]
    got = counts(recorded)
    assert got["nested"] == 201 and got["step"] == 30


@hooked
def test_displaced_is_in_the_ledger(tmp_path):
    default = installed()

    def nested(n):
        install(default) if n == 0 else nested(n - 1)
    with sonde.functions(c_functions=False, path=tmp_path / "t.sonde"):
        nested(100)
    with sonde.Trace(str(tmp_path / "t.sonde")) as trace:
        said = json.loads(trace.report(view="ledger", format="json"))["rows"]
    (row,) = [row for row in said if row["key"] == "switched_calls"]
    assert "replaced the frame-evaluation function" in row["text"]
    assert "missing" not in row["text"]


@hooked
@pytest.mark.skipif(sys.version_info < (3, 12), reason="before 3.12 there is no sys.monitoring")
def test_no_way_is_free(tmp_path):
    """Every number of sys.monitoring is another's: said at the start, and said of a displacement."""
    default = installed()

    def nested(n):
        install(default) if n == 0 else nested(n - 1)
    for tool in (2, 3, 4):
        sys.monitoring.use_tool_id(tool, "another")
    try:
        with pytest.raises(Exception, match="other tools use ids 2, 3 and 4"):
            sonde.functions().enable()
        with sonde.functions(c_functions=False, path=tmp_path / "t.sonde") as recorded:
            nested(100)
            calls.busy(30)
    finally:
        for tool in (2, 3, 4):
            sys.monitoring.free_tool_id(tool)
    assert counts(recorded)["nested"] == 101
    with sonde.Trace(str(tmp_path / "t.sonde")) as trace:
        said = json.loads(trace.report(view="ledger", format="json"))["rows"]
    (row,) = [row for row in said if row["key"] == "switched_calls"]
    assert "no other mechanism was available: later calls are missing" in row["text"]


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="since 3.12 nothing of ours stands there")
def test_a_profile_function_saved_and_put_back():
    """What sys.getprofile() gives works as the program's own, however often it is put back."""
    seen = []

    def own(frame, event, arg):
        if frame.f_code is calls.step.__code__:
            seen.append(event)
    with sonde.functions() as recorded:
        sys.setprofile(own)
        for i in range(4):
            calls.step(i)
            saved = sys.getprofile()
            sys.setprofile(None)
            calls.step(i)
            sys.setprofile(saved)
        calls.step(4)
    assert sys.getprofile() is own
    sys.setprofile(None)
    assert seen == ["call", "return"] * 5
    assert counts(recorded)["step"] == 9


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
