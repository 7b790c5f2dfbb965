# SPDX-License-Identifier: Apache-2.0
"""The face of torch.profiler: arguments, options, results, files."""
import gzip
import inspect
import json
import warnings
import weakref

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: there is nothing to profile")

import sonde  # noqa: E402
import torch.profiler  # noqa: E402
from torch_tools import CPU, FourConvolutions, X, counts, quiet, record  # noqa: E402


# ------------------------------------------------------------------------ signatures

@pytest.mark.parametrize("name", ["profile", "schedule", "tensorboard_trace_handler",
                                  "supported_activities"])
def test_arguments_are_torchs(name):
    """Each argument of torch's is one of ours, of the same kind and default."""
    theirs = inspect.signature(getattr(torch.profiler, name)).parameters
    ours = inspect.signature(getattr(sonde, name)).parameters
    for key, parameter in theirs.items():
        assert (ours[key].kind, ours[key].default) == (parameter.kind, parameter.default), key


@pytest.mark.parametrize("method", [
    "start", "stop", "step", "key_averages", "events", "export_chrome_trace", "export_stacks",
    "export_memory_timeline", "toggle_collection_dynamic", "add_metadata", "add_metadata_json",
    "preset_metadata_json", "get_trace_id", "set_custom_trace_id_callback", "prepare_trace",
    "start_trace", "stop_trace"])
def test_methods_are_torchs(method):
    theirs = getattr(torch.profiler.profile, method, None)
    if theirs is None:
        pytest.skip(f"this torch has no {method}")
    ours = inspect.signature(getattr(sonde.profile, method)).parameters
    for key, parameter in inspect.signature(theirs).parameters.items():
        assert ours[key].default == parameter.default, key


def test_arguments_of_the_list():
    theirs = inspect.signature(torch.autograd.profiler_util.EventList.table).parameters
    ours = inspect.signature(type(record().key_averages()).table).parameters
    ours = {k: v.default for k, v in ours.items() if k in theirs or k != "time_unit"}  # torch 2.4
    assert {k: v.default for k, v in theirs.items()} == ours


@pytest.mark.parametrize("kind", ["FunctionEventAvg", "FunctionEvent"])
def test_rows_have_torchs_attributes(kind):
    with torch.profiler.profile(activities=[CPU], record_shapes=True) as theirs, quiet():
        X.mul(X)
    ours = record(record_shapes=True)
    pick = {"FunctionEventAvg": lambda p: p.key_averages()[0],
            "FunctionEvent": lambda p: p.events()[0]}[kind]
    their_row, our_row = pick(theirs), pick(ours)
    private = {"typed_metadata", "extra_meta"}
    with quiet():
        wanted = {name for name in dir(their_row) if not name.startswith("_")
                  and not callable(getattr(their_row, name))} - private
        missing = {name for name in wanted if not hasattr(our_row, name)}
        methods = {name for name in dir(their_row) if callable(getattr(their_row, name))
                   and not name.startswith("_")} - {"append_kernel", "append_cpu_child",
                                                    "set_cpu_parent"}  # by which torch builds them
    assert not missing and all(callable(getattr(our_row, name, None)) for name in methods)
    assert our_row.device_type == torch.autograd.DeviceType.CPU
    assert "aten::mul" in repr(our_row)


# --------------------------------------------------------------------------- options

def test_activities():
    for wrong, kind in (([], AssertionError), ([CPU, CPU], ValueError), (["cpu"], TypeError)):
        with pytest.raises(kind):
            sonde.profile(activities=wrong)
    assert sonde.profile().activities == sonde.supported_activities() == {CPU}
    assert sonde.ProfilerActivity is torch.profiler.ProfilerActivity
    assert sonde.ProfilerAction is torch.profiler.ProfilerAction
    assert sonde.record_function is torch.profiler.record_function


def test_what_means_nothing_is_said_once():
    with pytest.warns(UserWarning) as said:
        prof = sonde.profile(activities=[CPU, sonde.ProfilerActivity.CUDA],
                             experimental_config=torch._C._profiler._ExperimentalConfig(
                                 performance_events=["x"], enable_cuda_sync_events=True),
                             post_processing_timeout_s=1.0)
    assert len(said) == 1
    for word in ("experimental_config.performance_events (of GPU activities, which are not",
                 "experimental_config.enable_cuda_sync_events (", "CUDA (not available here"):
        assert word in str(said[0].message)
    assert "post_processing" not in str(said[0].message)  # nothing to wait for: it holds
    with prof:
        X.mul(X)
    assert counts(prof)["aten::mul"] == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        record(record_shapes=True, with_flops="torch", with_modules=True, acc_events=True)


def test_every_experimental_option():
    """Each is known: it has its effect, needs none, or is named with the reason."""
    from sonde.torch import _config
    kind = torch._C._profiler._ExperimentalConfig
    assert _config.options_set(None) == _config.options_set(kind()) == set()
    known = {"verbose", "profile_all_threads", "capture_overload_names", "trace_only",
             "adjust_profiler_step", "record_python_gc_info", *_config.REASONS}
    assert set(_config._places(kind)) <= known
    values = {"profiler_metrics": ["x"], "performance_events": ["x"], "custom_profiler_config": "x"}
    for name in _config._places(kind):
        config = kind(**{name: values.get(name, True)})
        assert _config.options_set(config) == {name}
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            prof = sonde.profile(activities=[CPU], experimental_config=config)
        assert bool(said) == (name in _config.REASONS), name
        with prof:
            X.add(X)
        assert (prof.events()[0].overload_name == "Tensor") == (name == "capture_overload_names")


def test_execution_trace_observer(tmp_path):
    observer = sonde.ExecutionTraceObserver().register_callback(str(tmp_path / "et.json"))
    record(execution_trace_observer=observer)
    observer.unregister_callback()
    names = {node["name"] for node in json.loads((tmp_path / "et.json").read_text())["nodes"]}
    assert "aten::mul" in names


def test_record_function_is_seen():
    def work():
        with sonde.record_function("of sonde"), torch.profiler.record_function("of torch"):
            X.mul(X)

        @sonde.record_function("decorated")
        def inner():
            return X.mul(X)
        inner()

    rows = {row.key: row for row in record(work).key_averages()}
    assert {"of sonde", "of torch", "decorated"} <= set(rows)
    assert all(rows[key].is_user_annotation for key in ("of sonde", "of torch", "decorated"))
    assert not rows["aten::mul"].is_user_annotation


def test_modules():
    model = FourConvolutions()
    prof = record(lambda: model(torch.randn(1, 3, 8, 8)), with_modules=True)
    found = {event.module for event in prof.events() if event.name == "aten::conv2d"}
    assert {name.rsplit(".", 1)[-1] for name in found} == {"conv1", "conv2", "conv3", "conv4"}


@pytest.mark.parametrize("make", [
    lambda: sonde.profile(with_flops="all"), lambda: sonde.autograd_profiler.profile(with_flops="Torch"),
    lambda: sonde.ProfileKwargs(with_flops="yes")], ids=["profile", "autograd", "accelerate"])
def test_a_wrong_way_to_count_flops(make):
    if make.__code__.co_names[-1] == "ProfileKwargs":
        pytest.importorskip("accelerate")
    with pytest.raises(ValueError, match="with_flops: expected True, False or 'torch', got '"):
        make()


def test_tensors_are_not_kept():
    with sonde.profile(activities=[CPU], **{"record_shapes": True, "profile_memory": True}):
        tensor = torch.randn(1000)
        gone = weakref.ref(tensor)
        tensor.add(1)
        del tensor
        assert gone() is None


# --------------------------------------------------------------------------- results

def test_lists_are_lists():
    prof = record(lambda: [X.mul(X), X.add(X), X.mul(X)])
    averages, events = prof.key_averages(), prof.events()
    assert isinstance(averages, list) and isinstance(events, list)
    assert [row.key for row in averages] == ["aten::mul", "aten::add"]
    assert [event.name for event in events] == ["aten::mul", "aten::add", "aten::mul"]
    assert events[-1].name == "aten::mul" and len(events[1:]) == 2 == len(averages)
    assert [row.key for row in sorted(averages, key=lambda row: row.count)] == \
        ["aten::add", "aten::mul"]
    assert max(averages, key=lambda row: row.count).key == "aten::mul"
    with pytest.raises(IndexError):
        events[3]
    averages.sort(key=lambda row: row.count)
    assert averages[0].key == "aten::add"
    table = averages.table()
    assert table.index("aten::add") < table.index("aten::mul")
    assert str(events) == events.table()


def test_totals():
    kept = []  # so that no memory is given back outside the operators
    prof = record(lambda: kept.extend([X.mul(X), X.add(X)]), profile_memory=True)
    averages, events = prof.key_averages(), prof.events()
    total = averages.total_average()
    assert (total.key, total.count) == ("Total", 2)
    assert total.self_cpu_time_total == pytest.approx(averages.self_cpu_time_total)
    assert averages.self_cpu_time_total == pytest.approx(events.self_cpu_time_total)
    assert averages.self_cpu_time_total == \
        pytest.approx(sum(row.self_cpu_time_total for row in averages))
    assert total.cpu_memory_usage == sum(row.cpu_memory_usage for row in averages)
    assert events.total_average().count == 2
    assert [row.key for row in events.key_averages()] == [row.key for row in averages]


def test_rows_know_their_family():
    prof = record(lambda: torch.nn.functional.linear(X, X))
    events = prof.events()
    top = [event for event in events if event.cpu_parent is None]
    assert [event.name for event in top] == ["aten::linear"]
    names = {child.name for child in top[0].cpu_children}
    assert "aten::matmul" in names
    assert all(child.cpu_parent.name == "aten::linear" for child in top[0].cpu_children)
    assert top[0].cpu_time_total == pytest.approx(top[0].time_range.elapsed_us())
    assert top[0].cpu_time_total > 0


def test_groupings():
    def work():
        X.mul(X)
        X[:2].mul(X[0])
        X.add(1)
        torch.add(X, X, out=torch.empty(8, 8))

    try:
        config = torch._C._profiler._ExperimentalConfig(capture_overload_names=True)
    except TypeError:
        config = None  # torch 2.4 has no overload names
    with quiet():
        prof = record(work, record_shapes=True, with_stack=True, experimental_config=config)
    shapes = [row.input_shapes for row in prof.key_averages(group_by_input_shape=True)
              if row.key == "aten::mul"]
    assert shapes == [[[8, 8], [8, 8]], [[2, 8], [8]]]
    stacks = [row.stack for row in prof.key_averages(group_by_stack_n=1) if row.key == "aten::mul"]
    assert stacks and all(stack == ["<built-in method mul of Tensor object>"] for stack in stacks)
    overloads = {row.overload_name for row in prof.key_averages(group_by_overload_name=True)
                 if row.key == "aten::add"}
    assert overloads == ({"Tensor", "out"} if config else {""})
    assert all(row.overload_name == "" for row in prof.key_averages())


def test_columns_without_a_copy():
    numpy = pytest.importorskip("numpy", reason="numpy is not installed")
    events = record(lambda: [X.mul(X) for _ in range(50)]).events()
    starts = numpy.asarray(events.column("start_ns"))
    assert len(starts) == len(events) and (numpy.diff(starts) >= 0).all()
    assert starts.base is not None


# ----------------------------------------------------------------------------- files

def test_chrome_trace(tmp_path):
    prof = sonde.profile(activities=[CPU], record_shapes=True)
    prof.preset_metadata_json("preset", '{"a": 1}')
    with prof:
        prof.add_metadata("text", 'with "quotes" and \\ and ü')
        X.mul(X)
    prof.add_metadata_json("after", "[1, 2]")
    prof.export_chrome_trace(str(tmp_path / "t.json"))
    prof.export_chrome_trace(tmp_path / "t.json.gz")
    document = json.loads((tmp_path / "t.json").read_text())
    assert json.loads(gzip.decompress((tmp_path / "t.json.gz").read_bytes()))["traceEvents"] == \
        document["traceEvents"]
    assert document["preset"] == {"a": 1} and document["after"] == [1, 2]
    assert document["text"] == 'with "quotes" and \\ and ü'
    assert document["record_shapes"] == 1 and document["trace_id"] == prof.get_trace_id()
    assert any(event.get("name") == "aten::mul" and event["cat"] == "cpu_op"
               for event in document["traceEvents"])


def test_trace_ids():
    ids = iter(["first", "second"])
    prof = sonde.profile(activities=[CPU], custom_trace_id_callback=lambda: next(ids))
    assert prof.get_trace_id() is None
    for wanted in ("first", "second"):
        with prof:
            pass
        assert prof.get_trace_id() == wanted
    assert len(record().get_trace_id()) == 32


def test_tensorboard_handler(tmp_path):
    for options in ({}, {"worker_name": "me", "use_gzip": True}):
        record(on_trace_ready=sonde.tensorboard_trace_handler(str(tmp_path / "log"), **options))
    names = sorted(path.name for path in (tmp_path / "log").iterdir())
    assert len(names) == 2 and all(".pt.trace.json" in name for name in names)
    assert any(name.startswith("me.") and name.endswith(".json.gz") for name in names)


def test_stacks(tmp_path):
    with pytest.raises(AssertionError, match="with_stack"):
        record().export_stacks(tmp_path / "never")

    def busy():
        for _ in range(20):
            torch.randn(200, 200).mul(torch.randn(200, 200))

    prof = record(busy, with_stack=True)
    prof.export_stacks(str(tmp_path / "stacks"), "self_cpu_time_total")
    lines = (tmp_path / "stacks").read_text().splitlines()
    assert lines and all(int(line.rsplit(" ", 1)[1]) > 0 for line in lines)
    assert any("busy" in line for line in lines)


@pytest.mark.parametrize("ending", [".json", ".json.gz", ".raw.json.gz", ".html"])
def test_memory_timeline(tmp_path, ending):
    with pytest.raises(ValueError, match="profile_memory=True"):
        record().export_memory_timeline(str(tmp_path / "never"))
    prof = record(lambda: torch.ones(1000).add(1), profile_memory=True)
    path = tmp_path / f"memory{ending}"
    prof.export_memory_timeline(str(path))
    data = path.read_bytes()
    if ending.endswith(".gz"):
        data = gzip.decompress(data)
    if ending == ".html":
        assert b"<html" in data.lower()
        return
    document = json.loads(data)
    if ending == ".raw.json.gz":
        assert {entry[2] for entry in document} >= {4000}
    else:
        times, sizes = document
        assert len(times) == len(sizes) and max(map(sum, sizes)) >= 8000


def test_modes_of_files(tmp_path):
    """What is exported has the mode that the umask gives; a trace is for its owner alone."""
    import os
    prof = record(with_stack=True, profile_memory=True)
    for mask, mode in ((0o022, 0o644), (0o002, 0o664), (0o077, 0o600)):
        before = os.umask(mask)
        try:
            prof.export_chrome_trace(str(tmp_path / f"{mask}.json"))
            prof.export_stacks(str(tmp_path / f"{mask}.stacks"))
            prof.export_memory_timeline(str(tmp_path / f"{mask}.html"))
            prof.save(tmp_path / f"{mask}.sonde")
        finally:
            os.umask(before)
        for name, wanted in ((".json", mode), (".stacks", mode), (".html", mode),
                             (".sonde", 0o600)):
            assert (tmp_path / f"{mask}{name}").stat().st_mode & 0o777 == wanted, name


def test_saved_trace_is_a_trace(tmp_path):
    prof = record(record_shapes=True)
    prof.save(tmp_path / "mul.sonde")
    with sonde.Trace(tmp_path / "mul.sonde") as trace:
        assert "aten::mul" in trace.report()
    stat = (tmp_path / "mul.sonde").stat()
    assert stat.st_mode & 0o777 == 0o600
    assert stat.st_size < 1 << 17  # without what the recording reserved and did not use


def test_saved_cycles_are_a_folder(tmp_path):
    with quiet(), sonde.profile(activities=[CPU], acc_events=True,
                                schedule=sonde.schedule(wait=0, warmup=0, active=1)) as prof:
        for _ in range(3):
            X.mul(X)
            prof.step()
    prof.save(tmp_path / "cycles")
    with sonde.Trace(tmp_path / "cycles") as trace:
        assert {row.key: row.count for row in trace.averages()}["aten::mul"] == 3


def test_ledger():
    assert record().ledger() == []
    held = torch.ones(100)
    with sonde.profile(activities=[CPU], profile_memory=True) as prof:
        del held
    assert [key for key, _count, _sentence in prof.ledger()] == ["unmatched_frees"]


def test_after_the_cycle_the_old_list_still_reads_its_own():
    prof = sonde.profile(activities=[CPU])
    with prof:
        X.mul(X)
    old = prof.key_averages()
    with prof:
        X.add(X)
    assert [row.key for row in old] == ["aten::mul"]
    assert "aten::mul" in old.table() and "aten::mul" not in prof.key_averages().table()


# --------------------------------------------------------------- the older interface

def test_autograd_profiler():
    from sonde import autograd_profiler as profiler
    with profiler.profile(record_shapes=True, profile_memory=True) as prof:
        with profiler.record_function("label"):
            X.mul(X)
    assert prof.key_averages().table(sort_by="self_cpu_time_total").count("aten::mul") == 1
    assert prof.total_average().count == 2 and prof.self_cpu_time_total > 0
    assert [event.name for event in prof.function_events] == ["label", "aten::mul"]
    assert "label" in str(prof) and "aten::mul" in prof.table()
    with profiler.profile(enabled=False) as nothing:
        X.mul(X)
    assert nothing is None
    with pytest.raises(RuntimeError, match="not reentrant"), prof:
        pass


# --------------------------------------------------------------- types of activities, averages as lists

def categories(profile, activities, path):
    with profile(activities=activities, with_stack=True, profile_memory=True) as prof:
        with torch.profiler.record_function("mine"):
            X.mul(X)
    prof.export_chrome_trace(str(path))
    shown = {event.get("cat") for event in json.loads(path.read_text())["traceEvents"]}
    return shown & {"cpu_op", "user_annotation", "python_function", "cpu_instant_event"}, \
        {row.key for row in prof.key_averages()}


@pytest.mark.parametrize("types", [["USER_ANNOTATION"], ["CPU_OP", "PYTHON_FUNCTION"], [], None, ["NOPE"],
                                   ["user_annotation"]])
def test_types_of_activities(types, tmp_path):
    """They choose what is in the Chrome trace, as in torch; one that does not exist is refused."""
    if not hasattr(torch.profiler, "_cuspy") and "activity_filters" not in \
            inspect.signature(torch.autograd.profiler.profile.__init__).parameters:
        pytest.skip("this torch has no types of activities")
    found = []
    for profile, name in ((torch.profiler.profile, "torch"), (sonde.profile, "sonde")):
        try:
            with quiet():
                found.append(categories(profile, [{CPU: types}], tmp_path / f"{name}.json"))
        except RuntimeError as error:
            found.append(str(error))
    assert found[0] == found[1]


def test_a_negative_timeout_is_refused():
    with pytest.raises(ValueError, match="post_processing_timeout_s must be non-negative"):
        sonde.profile(post_processing_timeout_s=-1)


def test_averages_have_the_methods_of_a_list_of_events(tmp_path):
    prof = record(record_shapes=True, with_stack=True)
    rows = prof.key_averages(group_by_stack_n=3)
    rows.export_chrome_trace(str(tmp_path / "t.json"))
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    rows.export_stacks(str(tmp_path / "t.txt"), "self_cpu_time_total")
    lines = (tmp_path / "t.txt").read_text().splitlines()
    expected = [(len(row.stack), int(row.self_cpu_time_total)) for row in rows
                if row.stack and int(row.self_cpu_time_total) > 0]
    assert [(line.count(";") + 1, int(line.rsplit(" ", 1)[1])) for line in lines] == expected and lines
    with pytest.raises(ValueError, match="metric should be one of"):
        rows.export_stacks(str(tmp_path / "t.txt"), "nope")
    assert counts(rows.key_averages()) == counts(prof.key_averages())
    assert "self_cpu_time_total" in rows.supported_export_stacks_metrics()


def test_no_step_of_a_chrome_trace_comes_twice(tmp_path):
    """Tools pair ProfilerStep# with an execution trace: torch has one event for each."""
    with sonde.profile(activities=[CPU], schedule=sonde.schedule(wait=0, warmup=1, active=3, repeat=1)) as prof:
        for _ in range(4):
            X.mul(X)
            prof.step()
    prof.export_chrome_trace(str(tmp_path / "t.json"))
    names = [event["name"] for event in json.loads((tmp_path / "t.json").read_text())["traceEvents"]]
    steps = [name for name in names if name.startswith("ProfilerStep#")]
    assert sorted(steps) == ["ProfilerStep#1", "ProfilerStep#2", "ProfilerStep#3"]
