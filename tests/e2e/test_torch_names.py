# SPDX-License-Identifier: Apache-2.0
"""Ranges that have a name of their own: torch.compile's, the fast ones, the user's."""
import collections
import gc
import itertools
import json
import re
import subprocess
import sys
import textwrap
import threading
import weakref

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: nothing to compare with")

import sonde  # noqa: E402
from torch_tools import CPU, FORMS  # noqa: E402

OPTIONS = ("record_shapes", "with_stack", "with_modules", "profile_memory")
SETS = [dict(zip(OPTIONS, on)) for on in itertools.product([False, True], repeat=len(OPTIONS))]


def sets():
    """Every set of options. With stacks of modules torch takes seconds: of those four, the gate takes the one with all."""
    for options in SETS:
        name = "+".join(name for name in OPTIONS if options[name]) or "plain"
        is_slow = options["with_stack"] and options["with_modules"] and not all(options.values())
        yield pytest.param(options, id=name, marks=[pytest.mark.long] if is_slow else [])


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
@pytest.mark.parametrize("options", list(sets()))
def test_compiled_regions_have_their_names(two_compiled, options, form):
    for _ in range(5):
        theirs, ours = FORMS[form](two_compiled, **options)
        assert counts(ours) == counts(theirs)
        # Their numbers go on from what the process compiled before; an older torch gives none.
        regions = {name: count for name, count in counts(ours).items()
                   if re.fullmatch(r"Torch-Compiled Region(: \d+/\d+)?", name)}
        assert list(regions.values()) == ([4] if "Torch-Compiled Region" in counts(theirs) else [2, 2])


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
        ranges = [event.name for event in ours.events() if not event.is_python_function]
        assert ranges == names


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
    if isinstance(profiled, torch.profiler.profile):
        try:
            json.loads(path.read_text())
        except json.JSONDecodeError:
            pytest.skip("the file of this torch itself is not JSON")
    # The last two are numbers of the file; names of ours and torch's own differ in no other.
    return [(event["cat"], event["name"], {key: value for key, value in event["args"].items()
                                           if key not in ("External id", "Ev Idx")})
            for event in json.loads(path.read_text())["traceEvents"]
            if event.get("cat") in ("cpu_op", "user_annotation")]


@pytest.mark.parametrize("form", list(FORMS))
@pytest.mark.parametrize("shapes", [True, False])
def test_inputs_and_keywords(form, shapes, tmp_path):
    theirs, ours = FORMS[form](user_ranges, record_shapes=shapes)
    fields = [field for field in ("name", "input_shapes", "concrete_inputs", "kwinputs", "scope",
                                  "is_user_annotation") if hasattr(theirs.events()[0], field)]
    seen = [[[getattr(event, field) for field in fields] for event in one.events()]
            for one in (theirs, ours)]
    assert seen[1] == seen[0]
    if shapes:
        assert [event.kwinputs.get("last") for event in ours.events()
                if event.name == "with keywords"] == [1, 2, 1]
    expected = chrome_args(theirs, tmp_path / "theirs.json")
    if "kwinputs" not in fields:  # nor has that torch's Chrome trace the keyword arguments
        expected = [(*one[:2], {**one[2], **{key: value for key, value in mine[2].items()
                                             if key in (*KEYWORDS, "last", "scope", "z")}})
                    for one, mine in zip(expected, chrome_args(ours, tmp_path / "ours.json"))]
    assert chrome_args(ours, tmp_path / "ours.json") == expected


def test_keywords_that_torch_leaves_out(tmp_path):
    """Lists of numbers, nothing, no text, a text with quotes: torch's Chrome trace has not, or has None."""
    odd = {"numbers": [1, 2], "none": None, "quotes": 'a "word"\\\n', "reals": [1.5], "empty": ""}
    with sonde.profile(activities=[CPU], record_shapes=True) as ours:
        with fast("odd ones", (), odd):
            pass
    assert ours.events()[0].kwinputs == odd
    found = chrome_args(ours, tmp_path / "ours.json")[0][2]
    assert {key: found[key] for key in odd} == odd


@pytest.mark.filterwarnings("ignore:Profiler won't be using warmup")
def test_arguments_beyond_the_room_for_them_are_counted():
    """24 MB of texts; the trace of each cycle counts its own."""
    long, seen = "x" * 60_000, []

    def ready(prof):
        there = sum("text" in event.kwinputs for event in prof.events())
        seen.append((there, {key: count for key, count, _ in prof.ledger()}))

    with sonde.profile(activities=[CPU], record_shapes=True, on_trace_ready=ready,
                       schedule=sonde.schedule(wait=0, warmup=0, active=1, repeat=2)) as prof:
        for texts in (500, 3):
            for n in range(texts):
                with fast("with a long text", (), {"text": f"{n} {long}"}):
                    pass
            prof.step()
    (first, said), second = seen
    assert 400 < first < 500 and said == {"dropped_arguments": 500 - first}
    assert second == (3, {})


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


def test_to_stop_torchs_own_does_nothing_where_it_is_not_on():
    """Lightning stops whatever profiler torch says is on before it starts its own."""
    real = torch.autograd._disable_profiler
    with sonde.profile(activities=[CPU]) as prof:
        if torch.autograd._profiler_enabled():
            torch.autograd._disable_profiler()
        torch.ones(1)
    assert "aten::ones" in {row.key for row in prof.key_averages()}
    assert torch.autograd._disable_profiler is real


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


# --------------------------------------------- code and modules that come and go

X2 = torch.ones(2)


def test_code_in_the_place_of_other_code():
    """Functions that are made, called and freed: each has its own stack."""
    with sonde.profile(activities=[CPU], with_stack=True) as ours:
        for n in range(50):
            namespace = {}
            exec(compile(f"def f{n:03}(x):\n    return x.add(1)\n", f"file{n:03}.py", "exec"),
                 namespace)
            namespace[f"f{n:03}"](X2)
            del namespace
    stacks = [event.stack for event in ours.events() if event.name == "aten::add"]
    assert {stack[0] for stack in stacks} == {"<built-in method add of Tensor object>"}
    assert [stack[1] for stack in stacks] == [f"file{n:03}.py(1): f{n:03}" for n in range(50)]


class Adds(torch.nn.Module):
    def forward(self, x):
        return x.add(1)


class Subtracts(torch.nn.Module):
    def forward(self, x):
        return x.sub(1)


@pytest.mark.parametrize("options", [{"with_modules": True}, {"with_stack": True},
                                     {"with_modules": True, "with_stack": True}])
def test_modules_in_the_place_of_others(options):
    with sonde.profile(activities=[CPU], **options) as ours:
        for n in range(20):
            module = (Adds if n % 2 else Subtracts)()
            alive = weakref.ref(module)
            module(X2)
            del module
            gc.collect()
            assert alive() is None  # and none is kept by being recorded
    for event in ours.events():
        if event.name not in ("aten::add", "aten::sub"):
            continue
        name = "Adds" if event.name == "aten::add" else "Subtracts"
        if "with_modules" in options:
            assert event.module == name
        if "with_stack" in options:
            assert any(frame.startswith(f"nn.Module: {name}_") for frame in event.stack)


def test_a_layer_that_is_replaced():
    model = torch.nn.Sequential(Adds(), Subtracts())
    with sonde.profile(activities=[CPU], with_modules=True) as ours:
        for _ in range(5):
            model(X2)
            del model[0]
            model.append(Adds() if isinstance(model[0], Subtracts) else Subtracts())
            gc.collect()
    seen = [(event.name, event.module) for event in ours.events()
            if event.name in ("aten::add", "aten::sub")]
    assert [name for name, _ in seen] == ["aten::add", "aten::sub", "aten::sub", "aten::add"] * 2 + [
        "aten::add", "aten::sub"]
    assert all(path.startswith("Sequential.") for _, path in seen)


CHURN = """
    import os, sys, threading
    import torch, sonde
    from torch.profiler import ProfilerActivity
    x, stop = torch.ones(4), threading.Event()

    def work(k):
        n = 0
        while not stop.is_set():
            namespace = {}
            exec(compile(f"def g(x): return x.add({n})", f"{k}-{n}.py", "exec"), namespace)
            namespace["g"](x)
            torch.nn.Linear(4, 4)(x)
            n += 1

    threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(8):
        with sonde.profile(activities=[ProfilerActivity.CPU], with_stack=True, with_modules=True):
            child = os.fork()
            if child == 0:
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
            for _ in range(20):
                work_done = torch.nn.Linear(4, 4)(x)
    stop.set()
    for thread in threads:
        thread.join()
    print("done")
"""


@pytest.mark.long
def test_code_and_modules_of_many_threads_come_and_go():
    """Starts, stops and forks meanwhile: nothing is freed twice, no lock is taken in two orders."""
    done = subprocess.run([sys.executable, "-W", "ignore", "-X", "faulthandler", "-c",
                           textwrap.dedent(CHURN)], text=True, capture_output=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr[-2000:]
