# SPDX-License-Identifier: Apache-2.0
"""Ranges that have a name of their own: torch.compile's, the fast ones, the user's."""
import collections
import itertools
import json
import threading

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: nothing to compare with")

import sonde  # noqa: E402
from torch_tools import CPU, FORMS  # noqa: E402

OPTIONS = ("record_shapes", "with_stack", "with_modules", "profile_memory")
SETS = [dict(zip(OPTIONS, on)) for on in itertools.product([False, True], repeat=len(OPTIONS))]


# ------------------------------------------------------------------- torch.compile

@pytest.fixture(scope="module")
def two_compiled():
    @torch.compile
    def first(x):
        return (x * 2).sin().sum()

    @torch.compile
    def second(x):
        return (x + 3).cos().mean()

    x = torch.randn(32, 32)

    def run():
        for _ in range(2):
            first(x)
            second(x)

    run()  # compiling is not what is compared
    return run


def counts(profiled):
    return collections.Counter({row.key: row.count for row in profiled.key_averages()
                                if row.key != "[memory]"})


@pytest.mark.parametrize("form", list(FORMS))
@pytest.mark.parametrize("options", SETS, ids=lambda one: "+".join(
    name for name in OPTIONS if one[name]) or "plain")
def test_compiled_regions_have_their_names(two_compiled, options, form):
    for _ in range(5):
        theirs, ours = FORMS[form](two_compiled, **options)
        assert counts(ours) == counts(theirs)
        assert counts(ours)["Torch-Compiled Region: 0/0"] == 2


def test_a_name_of_another_range_at_the_same_address():
    """The fast ranges keep their names on the heap, where one takes the place of the last."""
    names = [f"a range that is number {n:02}" for n in range(20)]

    def run():
        for name in names:
            with torch._C._profiler._RecordFunctionFast(name):
                pass

    for options in SETS:
        with sonde.profile(activities=[CPU], **options) as ours:
            run()
        assert [event.name for event in ours.events()] == names


# --------------------------------------------------------- inputs and keyword arguments

def fast(*arguments):
    return torch._C._profiler._RecordFunctionFast(*arguments)


X = torch.randn(3, 4)
KEYWORDS = {"a": 1, "word": "some text", "c": 2.5, "d": True, "stream": 7, "list": ["s", "t"],
            "large": 1 << 40, "minus": -5, "whole": 3.0, "far": 1e300}


def user_ranges():
    with fast("plain, and long enough for the heap"):
        pass
    with fast("with inputs", [X, 1, 2.5, "text", [X, X], [1, 2], True, None]):
        pass
    for last in (1, 2, 1):
        with fast("with keywords", (X,), {**KEYWORDS, "last": last}):
            pass
    with fast("of the user", (X,), {"scope": "user_scope", "z": 1}):
        pass
    with torch.profiler.record_function("with a text", "some text"):
        pass


def chrome_args(profiled, path):
    profiled.export_chrome_trace(str(path))
    # The last two are numbers of the file; names of ours and torch's own differ in no other.
    return [(event["cat"], event["name"], {key: value for key, value in event["args"].items()
                                           if key not in ("External id", "Ev Idx")})
            for event in json.loads(path.read_text())["traceEvents"]
            if event.get("cat") in ("cpu_op", "user_annotation")]


@pytest.mark.parametrize("form", list(FORMS))
@pytest.mark.parametrize("shapes", [True, False])
def test_inputs_and_keywords(form, shapes, tmp_path):
    theirs, ours = FORMS[form](user_ranges, record_shapes=shapes)
    fields = ("name", "input_shapes", "concrete_inputs", "kwinputs", "scope", "is_user_annotation")
    seen = [[[getattr(event, field) for field in fields] for event in one.events()]
            for one in (theirs, ours)]
    assert seen[1] == seen[0]
    if shapes:
        assert [event[3].get("last") for event in seen[1] if event[0] == "with keywords"] == [1, 2, 1]
    assert chrome_args(ours, tmp_path / "ours.json") == chrome_args(theirs, tmp_path / "theirs.json")


def test_keywords_that_torch_leaves_out(tmp_path):
    """Lists of numbers, nothing, no text, a text with quotes: torch's Chrome trace has not, or has None."""
    odd = {"numbers": [1, 2], "none": None, "quotes": 'a "word"\\\n', "reals": [1.5], "empty": ""}
    with sonde.profile(activities=[CPU], record_shapes=True) as ours:
        with fast("odd ones", (), odd):
            pass
    assert ours.events()[0].kwinputs == odd
    found = chrome_args(ours, tmp_path / "ours.json")[0][2]
    assert {key: found[key] for key in odd} == odd


# ------------------------------------------------------------------ is a profiler on?

def is_on():
    return (torch.autograd._profiler_enabled(),
            torch._C._autograd._profiler_type() == torch._C._profiler.ActiveProfilerType.KINETO,
            torch.autograd.profiler._is_profiler_enabled)


def test_a_profiler_is_on_while_one_is():
    assert is_on() == (False, False, False)
    with sonde.profile(activities=[CPU]):
        assert is_on() == (True, True, True)
        with torch.profiler.profile(activities=[CPU]) as theirs:
            assert is_on() == (True, True, True)
            torch.ones(1)
        assert is_on() == (True, True, True)
    assert is_on() == (False, False, False)
    assert "aten::ones" in {row.key for row in theirs.key_averages()}
    with torch.profiler.profile(activities=[CPU]):
        with sonde.profile(activities=[CPU]):
            assert is_on() == (True, True, True)
        assert is_on()[:2] == (True, True)
    assert is_on() == (False, False, False)


def test_none_is_on_while_it_waits():
    """As torch's: from the first step that is recorded."""
    seen = {}
    schedule = {"wait": 1, "warmup": 1, "active": 1, "repeat": 1}
    for name, profiler in (("theirs", torch.profiler), ("ours", sonde)):
        seen[name] = []
        with profiler.profile(activities=[CPU], schedule=profiler.schedule(**schedule)) as one:
            for _ in range(4):
                torch.ones(1)
                seen[name].append(torch.autograd._profiler_enabled())
                one.step()
    assert seen["ours"] == seen["theirs"] == [False, False, True, False]


def test_of_every_thread():
    seen = []
    with sonde.profile(activities=[CPU]):
        thread = threading.Thread(target=lambda: seen.append(is_on()))
        thread.start()
        thread.join()
    assert seen == [(True, True, True)]


@pytest.mark.parametrize("form", list(FORMS))
def test_data_pipes_name_their_ranges(form):
    pipes = pytest.importorskip("torch.utils.data.datapipes.iter", reason="this torch has no DataPipes")

    def run():
        for _ in pipes.IterableWrapper([1, 2]).map(abs):
            pass

    theirs, ours = FORMS[form](run)
    assert counts(ours) == counts(theirs)
    assert any("IterableWrapper" in name for name in counts(ours))


# ------------------------------------------------------------- ids of record functions

@pytest.mark.parametrize("ours", [True, False])
def test_ids_are_those_of_the_execution_trace(ours, tmp_path):
    observer = torch.profiler.ExecutionTraceObserver().register_callback(str(tmp_path / "et.json"))
    profiler = sonde if ours else torch.profiler
    with profiler.profile(activities=[CPU], execution_trace_observer=observer) as profiled:
        x = torch.randn(4, 4, requires_grad=True)
        with torch.profiler.record_function("mine"):
            (x @ x).relu().sum().backward()
    observer.unregister_callback()
    nodes = collections.Counter(
        (node["name"], next(one["value"] for one in node["attrs"] if one["name"] == "rf_id"))
        for node in json.loads((tmp_path / "et.json").read_text())["nodes"])
    events = collections.Counter((name, args["Record function id"])
                                 for _, name, args in chrome_args(profiled, tmp_path / "c.json"))
    operators = {one: count for one, count in events.items() if one[0].startswith("aten::")}
    assert len(operators) > 8 and all(one[1] > 0 for one in operators)
    assert not set(operators) - set(nodes)
    assert ("mine", dict(events.keys())["mine"]) in nodes
