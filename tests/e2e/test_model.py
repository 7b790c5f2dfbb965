# SPDX-License-Identifier: Apache-2.0
"""sonde model, sonde.benchmark, sonde.summary: numbers against the published ones and the peers."""
import gc
import json
import os
import re
import statistics
import subprocess
import sys
import types
import warnings

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: there is no model to run")
torchvision = pytest.importorskip("torchvision", reason="torchvision is not installed")
yaml = pytest.importorskip("yaml", reason="PyYAML is not installed: nothing reads our YAML")

import torch.utils.benchmark  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

import sonde  # noqa: E402
from sonde.model import _machine  # noqa: E402
import warm_torch  # noqa: E402
from cli_tools import ROOT, SONDE  # noqa: E402

PROGRAMS = ROOT / "tests/e2e/programs"
sys.path.insert(0, str(PROGRAMS))
import nets  # noqa: E402

warnings.filterwarnings("ignore", category=FutureWarning)

# Name and size of the input.
MODELS = [("resnet18", 64), ("squeezenet1_1", 64), ("mobilenet_v2", 64), ("mobilenet_v3_small", 64),
          ("shufflenet_v2_x0_5", 64), ("regnet_y_400mf", 64), ("efficientnet_b0", 64),
          ("swin_t", 64)]


@pytest.fixture(autouse=True)
def one_thread():
    """Threads that wait for each other on a loaded machine would be what is measured."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def run(*arguments, **extra):
    assert SONDE, "the program sonde is not built: run `make`, or set SONDE"
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "SONDE_PYTHON_EXE": warm_torch.python(),
                   "SONDE_PYTHON": os.path.dirname(sonde.__file__)}
    return subprocess.run([SONDE, "model", *map(str, arguments)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, encoding="utf-8", env=environment, timeout=120,
                          **extra)


def whole(model, *inputs, **options):
    """The row of the model itself."""
    return sonde.summary(model, inputs, **options).rows()[0]


# ----------------------------------------------------------------- counted as published

@pytest.mark.parametrize("name, macs, parameters, weights", [
    ("resnet50", 4.09, 25.557, "ResNet50_Weights"), ("vit_b_16", 17.56, 86.57, "ViT_B_16_Weights")])
def test_the_published_numbers(name, macs, parameters, weights):
    row = whole(getattr(torchvision.models, name)(), torch.randn(1, 3, 224, 224))
    assert round(row["macs"] / 1e9, 2) == macs
    assert abs(row["parameters"] / 1e6 - parameters) < 0.005
    meta = getattr(torchvision.models, weights).IMAGENET1K_V1.meta
    assert round(row["macs"] / 1e9, 3) == meta["_ops"]
    assert row["parameters"] == meta["num_params"]


def count_by_fvcore(model, x):
    """Its multiply-accumulates; norms, pooling and the like are not among them in either."""
    from fvcore.nn import FlopCountAnalysis
    counted = FlopCountAnalysis(model, x).unsupported_ops_warnings(False).by_operator()
    return sum(counted[name] for name in ("conv", "linear", "addmm", "matmul", "bmm", "mm"))


@pytest.mark.parametrize("name, size", MODELS, ids=[name for name, size in MODELS])
def test_models_count_as_flop_counter_mode_and_fvcore(name, size):
    model, x = getattr(torchvision.models, name)().eval(), torch.randn(1, 3, size, size)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(x)
    row = whole(model, x)
    assert 2 * row["macs"] == counter.get_total_flops() > 0
    assert row["macs"] == count_by_fvcore(model, x)
    assert row["parameters"] == sum(one.numel() for one in model.parameters())


def test_the_layers_are_torchinfos_and_flops_profilers():
    import torchinfo
    from flops_profiler import profiler
    model, x = nets.Net().eval(), torch.randn(2, 3, 16, 16)
    theirs = torchinfo.summary(model, input_data=x, verbose=0, depth=9)
    ours = {row["path"].rpartition(".")[2]: row for row in sonde.summary(model, x).rows()
            if row["path"]}
    for layer in theirs.summary_list:
        row = ours[layer.var_name]
        assert row["output_shapes"] == [list(layer.output_size)]
        assert row["class"] == layer.class_name
        assert row["parameters"] == layer.num_params
        if layer.class_name in ("Conv2d", "Linear"):
            bias = 0 if layer.module.bias is None else layer.module.bias.numel()
            # torchinfo counts a bias like a weight: it counts weights at each position.
            positions = row["output_bytes"] // 4 // layer.module.weight.shape[0]
            assert row["macs"] + bias * positions == layer.macs
    _, macs, parameters = profiler.get_model_profile(model, args=[x], print_profile=False,
                                                     as_string=False, warm_up=1)
    assert (ours["Net"]["macs"], ours["Net"]["parameters"]) == (macs, parameters)


def test_a_shared_parameter_counts_once():
    model = nets.Tied()
    rows = {row["path"]: row for row in sonde.summary(model, torch.zeros(2, 5).long()).rows()}
    assert rows["Tied"]["parameters"] == sum(one.numel() for one in model.parameters())
    assert (rows["Tied.embed"]["parameters"], rows["Tied.head"]["parameters"]) == (400, 0)


# -------------------------------------------------------------------------------- time

def measure_both(rounds, runs=15):
    """Sonde's medians over those of torch's Timer, the same model, by turns; a ratio a round."""
    model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(),
                                torch.nn.Linear(512, 512)).eval()
    x = torch.randn(128, 512)
    timer = torch.utils.benchmark.Timer("model(x)", globals={"model": model, "x": x})
    ratios = []
    with torch.no_grad():
        for _ in range(rounds):
            theirs = statistics.median(timer.timeit(1).median for _ in range(runs))
            result = sonde.benchmark(model, x, runs, batch_sizes=[128], passes=0,
                                     measure_peak=False)
            times = result["timing"]["batch_size_128"]["on_device_inference"]["metrics"]
            assert times["runs"] == runs
            ratios.append(times["seconds_per_batch_median"] / theirs)
    return ratios


@pytest.fixture
def frozen():
    """A collection before each measurement would take longer than what is measured."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.alone
def test_latency_is_that_of_torchs_timer(frozen):
    """Another program may come between, on either side: the median of all rounds is judged."""
    tried = []
    for _ in range(4):
        tried += measure_both(25)
        if abs(statistics.median(tried) - 1) < 0.05:
            break
    assert statistics.median(tried) == pytest.approx(1, abs=0.05), tried


def test_spreads_are_those_of_the_samples(tmp_path):
    result = sonde.benchmark(nets.Net(), torch.randn(2, 3, 16, 16), 10, batch_sizes=[2], passes=0,
                             measure_peak=False)
    result.save_trace(tmp_path / "traces")
    with sonde.Trace(tmp_path / "traces/timing-2.sonde") as trace:
        seconds = [event.cpu_time_total / 1e6 for event in trace.events()
                   if event.name == "model.forward batch=2"]
    found = result["timing"]["batch_size_2"]["on_device_inference"]["metrics"]
    rates = [1 / one for one in seconds]
    close = pytest.approx
    assert len(seconds) == found["runs"] == 10
    assert found["seconds_per_batch_mean"] == close(statistics.fmean(seconds))
    assert found["seconds_per_batch_std"] == close(statistics.pstdev(seconds))
    assert found["seconds_per_batch_median"] == close(statistics.median(seconds))
    assert found["seconds_per_batch_min"] == close(min(seconds))
    assert found["seconds_per_batch_max"] == close(max(seconds))
    assert found["seconds_per_batch_p90"] == close(sorted(seconds)[8])
    assert "seconds_per_batch_p99" not in found  # of ten runs it is the longest
    assert found["batches_per_second_mean"] == close(statistics.fmean(rates))
    assert found["batches_per_second_std"] == close(statistics.pstdev(rates))
    assert found["samples_per_second"] == close(2 / statistics.median(seconds))


# ------------------------------------------------------------------------------ memory

def replay(trace_path, folder):
    """The most that a pass held of what it took, from the events alone."""
    out = folder / "events.json"
    with sonde.Trace(trace_path) as trace:
        trace.export(out, to="json")
    events = json.loads(out.read_text())["events"]
    peak, live, inside = 0, None, False
    for event in events:
        kind = event["kind"]
        if kind in ("begin", "call", "span") and str(event.get("name", "")).startswith("model.pass"):
            live, inside = {}, True
        if not inside:
            continue
        if kind == "alloc" and event["device_type"] == 0:
            live[event["address"]] = event["size_bytes"]
            peak = max(peak, sum(live.values()))
        elif kind == "free" and event["device_type"] == 0:
            live.pop(event["address"], None)
    return peak


def peak_by_torch(model, x):
    """The same from torch.profiler's own record of allocations."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU],
                                profile_memory=True, record_shapes=True) as prof, torch.no_grad():
        with torch.profiler.record_function("the pass"):
            kept = model(x)
    del kept
    found, bounds = [], None
    unvisited = list(prof.profiler.kineto_results.experimental_event_tree())
    while unvisited:
        event = unvisited.pop()
        unvisited += event.children
        if event.name == "the pass":
            bounds = event.start_time_ns, event.end_time_ns
        fields = event.extra_fields
        if hasattr(fields, "alloc_size"):
            found.append((event.start_time_ns, fields.alloc_size, fields.ptr))
    live, peak = {}, 0
    for when, size, address in sorted(found):
        if not bounds[0] <= when <= bounds[1]:
            continue
        if size > 0:
            live[address] = size
        else:
            live.pop(address, None)
        peak = max(peak, sum(live.values()))
    return peak


def test_peak_activations_are_the_allocators(tmp_path):
    model, x = nets.Net().eval(), torch.randn(4, 3, 16, 16)
    result = sonde.benchmark(model, x, 1, batch_sizes=[4], passes=2, measure_peak=False)
    memory = result["memory"]["batch_size_4"]
    result.save_trace(tmp_path / "traces")
    peak = memory["peak_activation_bytes"]
    assert peak == replay(tmp_path / "traces/pass-4.sonde", tmp_path) > 0
    assert peak == peak_by_torch(model, x)
    held = sum(one.numel() * one.element_size() for one in
               [*model.parameters(), *model.buffers(), x])
    assert memory["pre_inference_bytes"] == held
    assert memory["max_inference_bytes"] == held + peak
    assert memory["post_inference_bytes"] == held + 4 * 10 * 4  # the output


def test_a_modules_peak_is_what_its_call_held():
    """By hand: a layer that makes two tensors of 4,000 bytes and returns one of them."""
    class Doubles(torch.nn.Module):
        def forward(self, x):
            return x.exp().neg()

    model = torch.nn.Sequential(Doubles(), torch.nn.ReLU())
    rows = {row["path"]: row for row in sonde.summary(model, torch.randn(1, 1000)).rows()}
    assert rows["Sequential.0"]["peak_bytes"] == 8000
    assert rows["Sequential.0"]["output_bytes"] == 4000
    assert rows["Sequential.1"]["peak_bytes"] == 4000
    assert rows["Sequential"]["peak_bytes"] == 8000


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
def test_on_a_gpu_peaks_are_torchs_and_copies_are_apart():
    model, x = nets.Net().cuda().eval(), torch.randn(64, 3, 64, 64)
    result = sonde.benchmark(model, x, 20, batch_sizes=[64])
    placed = x.cuda()
    with torch.no_grad():
        model(placed)
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        kept = model(placed)
        torch.cuda.synchronize()
    assert kept is not None
    memory = result["memory"]["batch_size_64"]
    assert memory["peak_activation_bytes"] == torch.cuda.max_memory_allocated() - before
    timing = result["timing"]["batch_size_64"]
    assert set(timing) == {"on_device_inference", "cpu_to_gpu", "gpu_to_cpu", "total", "gpu"}
    inside, until_done = (timing[part]["metrics"]["seconds_per_batch_median"]
                          for part in ("gpu", "on_device_inference"))
    assert 0 < inside <= until_done
    layers = {row["path"]: row for row in result["layers"]["batch_size_64"]}
    parts = layers["Net.features"]["device_forward_seconds"] + \
        layers["Net.head"]["device_forward_seconds"]
    assert 0 < parts <= layers["Net"]["device_forward_seconds"]


# -------------------------------------------------------------------------- the energy

def test_energy_is_that_of_the_gpu_that_cuda_shows(monkeypatch):
    """The way from a device to its counter; there may be no GPU here."""
    shown = types.SimpleNamespace(uuid="00000000-bbbb")
    two = {"GPU-00000000-aaaa": 1_000_000, "GPU-00000000-bbbb": 2_000_000}  # CUDA shows the second, as its first
    monkeypatch.setattr(_machine, "_record", types.SimpleNamespace(gpu_energy=two.get))
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: shown)
    meter, why = _machine.energy_meter(torch.device("cuda:0"))
    assert why == "" and meter.microjoules() == 2_000_000
    shown.uuid = "00000000-cccc"
    assert _machine.energy_meter(torch.device("cuda:0")) == (
        None, "NVML does not tell the GPU's energy")


NVML = """
#include <string.h>
static int ready;
int nvmlInit_v2(void) { ready = 1; return 0; }
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device)
{
    static int gpu;
    *device = &gpu;
    return !ready || strcmp(uuid, "GPU-0000-bbbb") != 0;
}
int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules)
{
    *millijoules = 5000000000ull + ++*(int *)device;
    return 0;
}
"""


def test_energy_comes_from_the_library_of_that_name(tmp_path):
    """A stand-in for libnvidia-ml.so.1, found as the driver's is: its words, its units, its refusals."""
    (tmp_path / "nvml.c").write_text(NVML)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "libnvidia-ml.so.1", tmp_path / "nvml.c"],
                   check=True)
    program = ("from sonde.model import _machine; meter = _machine.Nvml('0000-bbbb'); "
               "print(meter.usable(), meter.microjoules(), _machine.Nvml('0000-cccc').usable())")
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True,
                          env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)})
    assert done.stdout.split() == ["True", "5000000002000", "False"]


# --------------------------------------------------------------------- the benchmark

def test_the_mapping_is_pytorch_benchmarks(tmp_path):
    result = sonde.benchmark(nets.Net(), torch.randn(2, 3, 16, 16), num_runs=3, backward=True)
    assert list(result["timing"]) == ["batch_size_1", "batch_size_2"]
    assert set(result["machine_info"]) == {"system", "cpu", "memory", "gpus"}
    assert set(result["machine_info"]["cpu"]) >= {"model", "architecture", "cores"}
    assert set(result["machine_info"]["cpu"]["cores"]) == {"physical", "total"}
    times = result["timing"]["batch_size_2"]["on_device_inference"]
    kinds = [f"{what}_{how}" for what in ("batches_per_second", "seconds_per_batch")
             for how in ("mean", "std", "min", "max")]
    assert set(kinds) <= set(times["metrics"])
    assert set(times["human_readable"]) == {"batches_per_second", "batch_latency"}
    assert result["device"] == "cpu"
    assert result["params"] == sum(one.numel() for one in nets.Net().parameters())
    assert result["macs"] * 2 < result["flops"]
    compute = result["compute"]
    assert compute["batch_size_2"]["macs"] == 2 * result["macs"]
    assert compute["batch_size_2"]["backward_macs"] > compute["batch_size_2"]["macs"]
    assert compute["batch_size_2"]["share_of_peak"] == pytest.approx(
        compute["batch_size_2"]["flops_per_second"] / compute["peak_flops_per_second"])
    assert "absent" in result["energy"] or result["energy"]["batch_size_1"]["joules"] > 0
    assert {row["path"] for row in result["layers"]["batch_size_2"]} >= {"Net", "Net.features.0"}
    assert any(row["name"] == "aten::convolution_backward"
               for row in result["operators"]["batch_size_2"])
    for name in ("b.yml", "b.json"):
        result.save(tmp_path / name)
    read = yaml.safe_load((tmp_path / "b.yml").read_text())
    assert read == json.loads((tmp_path / "b.json").read_text()) == dict(result)
    with pytest.raises(ValueError, match="unknown file extension"):
        result.save(tmp_path / "b.txt")


def test_keys_and_types_beside_pytorch_benchmark_itself():
    import pytorch_benchmark
    model, x = nets.Net(), torch.randn(2, 3, 16, 16)
    theirs = pytorch_benchmark.benchmark(model, x, num_runs=2, print_fn=lambda text: None)
    ours = sonde.benchmark(model, x, num_runs=2, measure_peak=False)

    def compare(left, right, where):
        assert type(left) is type(right), where
        if isinstance(left, dict):
            assert set(left) <= set(right), where
            for key in left:
                compare(left[key], right[key], f"{where}.{key}")

    compare(theirs, dict(ours), "")
    assert theirs["params"] == ours["params"]
    assert theirs["machine_info"]["cpu"] | {"frequency": ""} == \
        ours["machine_info"]["cpu"] | {"frequency": ""}


def test_the_model_is_left_as_it_was():
    model = nets.Net().train()
    model.features.eval()  # as a part that is not to be trained
    model.features[0].train()
    modes = {name: module.training for name, module in model.named_modules()}
    assert set(modes.values()) == {True, False}
    model.head.weight.grad = torch.ones_like(model.head.weight)
    before = {name: one.clone() for name, one in model.state_dict().items()}
    sonde.benchmark(model, torch.randn(2, 3, 16, 16), 1, backward=True, measure_peak=False)
    assert {name: module.training for name, module in model.named_modules()} == modes
    assert all(torch.equal(one, before[name]) for name, one in model.state_dict().items())
    assert model.head.weight.grad.sum() == model.head.weight.numel()
    assert model.head.bias.grad is None


def test_inputs_of_every_form(capsys):
    pair = torch.randn(3, 4), torch.randn(3, 6)
    result = sonde.benchmark(nets.TwoInputs(), pair, 1, batch_sizes=[1, 3], measure_peak=False)
    assert result["layers"]["batch_size_3"][0]["shape_in"] == [[3, 4], [3, 6]]
    assert result["layers"]["batch_size_1"][0]["shape_in"] == [[1, 4], [1, 6]]
    assert result["layers"]["batch_size_3"][0]["shape_out"] == [[3, 8], [3, 4]]
    named = sonde.summary(nets.TwoInputs(), {"a": pair[0], "b": pair[1]})
    assert named.rows()[0]["input_shapes"] == [[3, 4], [3, 6]]
    result.print("model,layer,op")
    text = capsys.readouterr().out
    assert "TwoInputs" in text and "aten::linear" in text and "Linear" in text
    with pytest.raises(ValueError, match="not one of model, layer, op"):
        result.print("layers")


@pytest.mark.parametrize("options", [{"batch_sizes": [0]}, {"batch_sizes": []}, {"num_runs": 0}])
def test_senseless_numbers_are_refused(options):
    with pytest.raises(ValueError, match="sonde.benchmark: "):
        sonde.benchmark(nets.Net(), torch.randn(2, 3, 16, 16), **{"num_runs": 1, **options})


def test_one_recording_at_a_time():
    with sonde.profile():
        with pytest.raises(RuntimeError, match="already recording"):
            sonde.summary(nets.Net(), torch.randn(1, 3, 16, 16))
    assert sonde.summary(nets.Net(), torch.randn(1, 3, 16, 16)).rows()  # nothing was left on


# ------------------------------------------------------------------------ command line

def test_three_levels_on_the_command_line(tmp_path):
    done = run("programs/nets.py:Net", "-b", "1,2", "-i", 3, "--backward", "--trace",
               tmp_path / "traces", cwd=PROGRAMS.parent)
    assert (done.returncode, done.stderr) == (0, "")
    for words in ("Forward pass, by batch size", "Layers, batch size 2, forward and backward",
                  "features (Sequential)", "Kinds of module, by depth", "Operators, batch size 2",
                  "aten::convolution_backward",
                  f"Parameters: {sum(one.numel() for one in nets.Net().parameters())}"):
        assert words in done.stdout
    with sonde.Trace(tmp_path / "traces") as trace:
        rows = json.loads(trace.report(view="model", format="json"))["rows"]
    assert [(row["batch_size"], row["runs"]) for row in rows] == [(1, 3), (2, 3)]


def test_what_was_measured_before_a_failure_is_kept(tmp_path):
    done = run(f"{PROGRAMS}/nets.py:FailsWhenLarge", "-b", "1,2,4", "-i", 2, "-o",
               tmp_path / "n.json")
    assert done.returncode == 1 and os.listdir(tmp_path) == ["n.json"]
    assert done.stderr == (f"sonde: model {PROGRAMS}/nets.py:FailsWhenLarge: batch 4: the forward "
                           "pass failed in FailsWhenLarge (FailsWhenLarge): RuntimeError: no room "
                           "for\n")
    read = json.loads((tmp_path / "n.json").read_text())
    assert list(read["timing"]) == ["batch_size_1", "batch_size_2"]
    assert read["failure"].startswith("batch 4: ")


def test_a_model_that_fails_at_once_has_its_line_and_no_tables():
    done = run(f"{PROGRAMS}/nets.py:FailsInside", "-i", 2)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert "failed in FailsInside.head (Linear): RuntimeError: " in done.stderr


def test_the_operators_are_of_one_pass(tmp_path):
    result = sonde.benchmark(nets.Net(), torch.randn(2, 3, 16, 16), 2, batch_sizes=[2], passes=4,
                             measure_peak=False)
    read = json.loads(result.report("ops", format="json"))
    rows = {row["key"]: row for row in read["rows"]}
    assert read["totals"]["passes"] == 4
    assert (rows["aten::conv2d"]["count"], rows["aten::linear"]["count"]) == (2, 1)
    layers = json.loads(result.report("modules", format="json"))["rows"]
    assert sum(row["flops"] for row in read["rows"]) == layers[0]["flops"]
    whole = rows["model.pass batch=2"]
    assert whole["count"] == 1
    assert whole["cpu_time_total"] == pytest.approx(whole["cpu_time"], abs=1)  # both: of a pass
    exported = {row["name"]: row for row in result["operators"]["batch_size_2"]}
    assert exported["aten::conv2d"]["count"] == 2


def run_here(spec, folder, *more):
    """What the command runs, in this process, without a new torch for each."""
    from sonde.model import _command
    folder.mkdir()
    return _command.main(["--batches", "1", "--warmup", "0", "--runs", "1", "--passes", "1", *more,
                        "--", spec, str(folder)])


def test_the_layer_that_fails_is_named_and_those_before_it_are_measured(tmp_path, capsys):
    assert run_here(f"{PROGRAMS}/nets.py:FailsInside", tmp_path / "traces") == 1
    told = capsys.readouterr()
    assert told.out == "" and told.err.count("\n") == 1
    assert "failed in FailsInside.head (Linear): RuntimeError: " in told.err
    with sonde.Trace(tmp_path / "traces/pass-1.sonde") as trace:
        rows = {row["path"]: row for row in
                json.loads(trace.report(view="modules", format="json"))["rows"]}
    first = rows["FailsInside.features.0"]
    assert first["forward_ns"] > 0 and first["output_shapes"] == [[1, 8, 16, 16]]


@pytest.mark.parametrize("text, inputs", [
    ("3x224x224", [((3, 224, 224), None, None)]),
    ("3,224,224", [((3, 224, 224), None, None)]),
    ("3,224,224:float16", [((3, 224, 224), None, "float16")]),
    ("4;6", [((4,), None, None), ((6,), None, None)]),
    ("3x8x8,10:int64", [((3, 8, 8), None, None), ((10,), None, "int64")]),
    ("128:int64,128:bool", [((128,), None, "int64"), ((128,), None, "bool")]),
    ("ids=1x128:int64,mask=1x128:bool", [((1, 128), "ids", "int64"), ((1, 128), "mask", "bool")]),
    ("a=3,8,8, b=10", [((3, 8, 8), "a", None), ((10,), "b", None)]),
])
def test_inputs_have_shapes_names_and_types(text, inputs):
    from sonde.model._spec import parse_inputs
    assert [tuple(one) for one in parse_inputs(text)] == inputs


def test_the_input_is_named_with_where_it_is_from(tmp_path, monkeypatch):
    monkeypatch.chdir(PROGRAMS)
    assert run_here("nets:Named", tmp_path / "a", "--input",
                    "input_ids=5:int32,mask=5:bool,scale=1x4:float32") == 0
    assert run_here("nets:Net", tmp_path / "b") == 0
    words = {}
    for name in ("a", "b"):
        with sonde.Trace(tmp_path / name) as trace:
            words[name] = json.loads(trace.report(view="model", format="json"))["totals"]["input"]
            assert f"Input: {words[name]}\n" in trace.report(view="model")
    assert words == {"a": "input_ids 1x5 int32, mask 1x5 bool, scale 1x1x4 float32 (from --input)",
                     "b": "1x3x16x16 float32 (from Net.input_shape)"}
    result = sonde.benchmark(nets.Net(), torch.randn(2, 3, 16, 16), 1, passes=1, measure_peak=False)
    assert result["input"] == {"source": "given", "batch_size_1": "1x3x16x16 float32",
                               "batch_size_2": "2x3x16x16 float32"}


@pytest.mark.parametrize("arguments, words", [
    (["nets:Net", "--input", "x=3x4:int9"], "--input x=3x4:int9: 'int9' is not a type: the types are"),
    (["nets:Net", "--input", "x=3x4;5"], "give all inputs names, or none"),
    (["nets:Net", "--input", "x=3;x=4"], "duplicate input name"),
    (["torchvision:resnet51"], "torchvision:resnet51: torchvision has no model of that name; near it"),
    (["nets:Nett"], "nets:Nett: nets has no 'Nett'; near it: Net"),
    (["nets:not_a_model"], "gave a int, not a torch.nn.Module"),
    (["nets:broken"], "calling broken() failed: ValueError: no such file"),
    (["nowhere:x"], "cannot import nowhere: ModuleNotFoundError"),
    (["nowhere.py:x"], "there is no file nowhere.py"),
    (["resnet18"], "not a model: give torchvision:NAME"),
    (["net.onnx"], "ONNX models cannot be run yet"),
    (["nets:TwoInputs"], "unknown input shape; give --input SHAPE"),
    (["nets:Net", "--input", "3x0x3"], "--input 3x0x3: '3x0x3' is not a shape"),
    (["nets:Net", "--input", "5x16x16"], "failed in Net.features.0 (Conv2d): RuntimeError"),
    (["nets:Net", "--dtype", "int8"], "--dtype int8: the types are float32"),
    (["nets:Net", "--device", "abacus"], "--device abacus: "),
])
def test_one_line_says_what_is_wrong(arguments, words, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(PROGRAMS)
    status = run_here(arguments[0], tmp_path / "traces", *arguments[1:])
    told = capsys.readouterr()
    assert status == 1 and told.out == ""
    assert told.err.startswith("sonde: model ") and told.err.count("\n") == 1
    assert words in told.err


def test_a_python_without_torch_says_so(tmp_path):
    """The package is found, torch is not: in a Python of its own without site-packages."""
    launcher = tmp_path / "python3"
    launcher.write_text(f"#!/bin/sh\nexec {sys.executable} -S \"$@\"\n")
    launcher.chmod(0o755)
    environment = {**os.environ, "SONDE_PYTHON_EXE": str(launcher), "PYTHONPATH": ""}
    place = os.path.dirname(sonde.__file__)
    lonely = tmp_path / "packages"
    lonely.mkdir()
    os.symlink(place, lonely / "sonde")
    environment["SONDE_PYTHON"] = str(lonely / "sonde")
    done = subprocess.run([SONDE, "model", "torchvision:resnet18"], env=environment,
                          encoding="utf-8", stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=60)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (f"sonde: model: {launcher} has no torch: pip install torch there, or name "
                           "another Python with SONDE_PYTHON_EXE\n")


# ---------------------------------------------------------------- which dimension is the batch

class OfGraph(torch.nn.Module):
    """Nodes, and edges between them: one of the nodes alone has no such edges."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 4)

    def forward(self, nodes, edges):
        made = self.layer(nodes)
        return torch.zeros_like(made).index_add_(0, edges[1], made[edges[0]])


@pytest.mark.parametrize("model, sample, options, sizes", [
    (OfGraph(), (torch.randn(34, 8), torch.tensor([[0, 33], [33, 0]])), {}, {1: "34x8 float32, 2x2 int64"}),
    (torch.nn.Conv2d(3, 4, 3), torch.randn(3, 9, 9), {}, {1: "3x9x9 float32"}),
    (torch.nn.Conv2d(3, 4, 3), torch.randn(2, 3, 9, 9), {}, {1: "1x3x9x9 float32", 2: "2x3x9x9 float32"}),
    (torch.nn.LSTM(8, 4), torch.randn(20, 5, 8), {}, {1: "20x1x8 float32", 5: "20x5x8 float32"}),
    (torch.nn.LSTM(8, 4), torch.randn(20, 8), {}, {1: "20x8 float32"}),
    (torch.nn.Linear(8, 4), torch.randn(20, 5, 8), {"batch_dim": None}, {1: "20x5x8 float32"}),
    (torch.nn.Linear(8, 4), torch.randn(20, 5, 8), {"batch_dim": 1, "batch_sizes": [2]}, {2: "20x2x8 float32"}),
], ids=["graph", "picture", "pictures", "recurrent", "one-sequence", "as-it-is", "second"])
def test_the_batch_is_found(model, sample, options, sizes):
    result = sonde.benchmark(model, sample, 1, passes=1, measure_peak=False, **options)
    assert list(result["timing"]) == [f"batch_size_{size}" for size in sizes]
    assert result["input"] == {"source": "given", **{f"batch_size_{size}": said for size, said in sizes.items()}}


@pytest.mark.parametrize("options, said", [
    ({"batch_dim": -1}, "batch_dim must be an integer >= 0, or None, got -1"),
    ({"batch_dim": 4}, "no tensor with a dimension 4; batch_dim=None measures it as it is"),
    ({"batch_dim": None, "batch_sizes": [2]}, "batch_sizes [2], but the sample has no batch"),
])
def test_a_batch_that_is_not_there(options, said):
    with pytest.raises(ValueError, match="sonde.benchmark: .*" + re.escape(said)):
        sonde.benchmark(torch.nn.Linear(8, 4), torch.randn(2, 8), 1, **options)
