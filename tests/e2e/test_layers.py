# SPDX-License-Identifier: Apache-2.0
"""sonde layers: PipeEdge's models with its cuts, and what must hold of a results file."""
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import textwrap

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: no model to cut")
yaml = pytest.importorskip("yaml", reason="PyYAML is not installed: PipeEdge reads with it")
sonde = pytest.importorskip("sonde")
pytest.importorskip("sonde._record", reason="sonde was built without its recorder")
from torch import nn  # noqa: E402

from sonde.pipeline import _cut, _layers, _profile, _run  # noqa: E402
from sonde.pipeline import _pipeedge_models as pipeedge  # noqa: E402
from sonde.model._spec import SpecError  # noqa: E402

import warm_torch  # noqa: E402
from cli_tools import ROOT, SONDE, read_json  # noqa: E402
from test_full_disk import SPACE  # noqa: E402

DATA = ROOT / "tests/data/pipeedge"
TINY = "facebook/deit-tiny-distilled-patch16-224"
VIT = "google/vit-base-patch16-224"
SMALL = pipeedge.Size("vit", 64, 2, 4, 128, 197, 16, 10)


@pytest.fixture(autouse=True)
def one_thread():
    """The machine may be busy; threads that wait for each other make it worse."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def load(path):
    return yaml.safe_load(pathlib.Path(path).read_text(encoding="utf-8"))


def shapes(results):
    return [(row["layer"], row["shape_in"], row["shape_out"]) for row in results["profile_data"]]


def run(*arguments, status=0, **extra):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "SONDE_PYTHON_EXE": warm_torch.python(),
                   "SONDE_PYTHON": os.path.dirname(sonde.__file__), **extra.pop("env", {})}
    done = subprocess.run([SONDE, "layers", *map(str, arguments)], env=environment, timeout=300,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", **extra)
    assert done.returncode == status, done.stderr
    assert done.stdout == ""
    return done.stderr


@pytest.fixture
def call(capfd, monkeypatch):
    """What `sonde layers` runs, in this process: torch is long to import."""
    def main(*arguments, status=0, env=()):
        for name, value in dict(env).items():
            monkeypatch.setenv(name, value)
        assert _layers.main([str(one) for one in arguments]) == status
        out, err = capfd.readouterr()
        assert out == ""
        return err
    return main


def test_options_are_called_as_those_of_sonde_model(call, tmp_path):
    """--output, --batch and --input, and PipeEdge's own names."""
    (tmp_path / "net.py").write_text("from torch import nn\n"
                                     "def net():\n"
                                     "    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())\n")
    spec = f"{tmp_path}/net.py:net"
    call(spec, "--output", tmp_path / "new.yml", "--batch", "2", "--input", "3x8x8")
    call(spec, "--results-yml", tmp_path / "old.yml", "--batch-size", "2", "--shape-input", "3,8,8")
    new, old = (yaml.safe_load((tmp_path / name).read_text()) for name in ("new.yml", "old.yml"))
    assert new["batch_size"] == old["batch_size"] == 2
    assert [one["shape_in"] for one in new["profile_data"]] == [
        one["shape_in"] for one in old["profile_data"]] != []
    said = call(spec, "--input", "x=3x8x8", status=1)
    assert "the model takes no such input; it takes input" in said and said.count("\n") == 1


TOKENS = """
import torch
from torch import nn

class Tokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.known, self.more, self.head = nn.Embedding(50, 16), nn.Linear(4, 16), nn.Linear(16, 3)

    def forward(self, ids, mask=None, extra=None):
        x = self.known(ids)
        x = x if mask is None else x * mask.unsqueeze(-1)
        return self.head(x if extra is None else x + self.more(extra).unsqueeze(1))
"""


@pytest.mark.parametrize("text, first", [
    ("ids=12:int64,extra=4", [("torch.int64", [12]), ("torch.float32", [4])]),
    ("extra=4,ids=12:int32", [("torch.float32", [4]), ("torch.int32", [12])]),
    ("12:int64;12:bool", [("torch.int64", [12]), ("torch.bool", [12])]),
    ("12", [("torch.int64", [12])]),
])
def test_inputs_have_names_and_types(text, first, call, tmp_path):
    (tmp_path / "net.py").write_text(TOKENS)
    call(f"{tmp_path}/net.py:Tokens", "--input", text, "--batch", 2, "--whole", "--no-warmup", "-o", tmp_path / "r.yml")
    rows = yaml.safe_load((tmp_path / "r.yml").read_text())["profile_data"]
    assert list(zip(rows[0]["dtype_in"], rows[0]["shape_in"])) == first
    assert rows[-1]["shape_out"] == [[12, 3]]
    for before, after in zip(rows, rows[1:]):
        assert before["shape_out"] == after["shape_in"]


def test_inputs_from_python(tmp_path):
    space = {}
    exec(TOKENS, space)
    given = {"ids": torch.zeros(3, 7, dtype=torch.int64), "mask": torch.ones(3, 7)}
    sonde.layers(space["Tokens"](), given, results=tmp_path / "a.yml", warmup=False)
    sonde.layers(space["Tokens"](), shape_input="ids=7:int64,mask=7", batch_size=3, results=tmp_path / "b.yml", warmup=False)
    first, second = (yaml.safe_load((tmp_path / name).read_text()) for name in ("a.yml", "b.yml"))
    assert first["batch_size"] == second["batch_size"] == 3
    assert [one["shape_in"] for one in first["profile_data"]] == [one["shape_in"] for one in second["profile_data"]]


def check_pipeedge(results):
    """What PipeEdge's profiler, converters and scheduler ask of the file, and the order besides."""
    assert isinstance(results["model_name"], str) and isinstance(results["dtype"], str)
    assert type(results["batch_size"]) is int and type(results["layers"]) is int
    rows = results["profile_data"]
    assert len(rows) == results["layers"]
    assert [row["layer"] for row in rows] == list(range(1, len(rows) + 1))
    for row in rows:
        assert type(row["memory"]) is float and type(row["time"]) is float
        assert row["memory"] >= 0 and row["time"] > 0
        for key in ("shape_in", "shape_out"):
            assert all(type(side) is int for shape in row[key] for side in shape)
    for before, after in zip(rows, rows[1:]):
        assert before["shape_out"] == after["shape_in"]


# ------------------------------------------------------------------- PipeEdge's models

@pytest.fixture(scope="module")
def vit(tmp_path_factory):
    path = tmp_path_factory.mktemp("vit") / "profiler_results.yml"
    torch.set_num_threads(1)
    sonde.layers(VIT, results=path, batch_size=1, warmup=False)
    return path


def test_vit_is_pipeedges(vit, tmp_path):
    results = load(vit)
    check_pipeedge(results)
    assert results["model_name"] == VIT and results["dtype"] == "torch.float32"
    assert results["batch_size"] == 1 and results["layers"] == 48
    assert shapes(results) == shapes(load(DATA / "current/results_rcc.yml"))
    assert sum(row["weight_bytes"] for row in results["profile_data"]) == 4 * 86_567_656
    for row in results["profile_data"]:
        assert row["memory"] == row["weight_bytes"] / 1e6
        assert row["activation_bytes"] == 4 * sum(
            torch.Size(shape).numel() for shape in row["shape_out"])
        assert row["count"] == 1 and row["time_min"] == row["time_median"] == row["time"]
        assert row["dtype_out"] == ["torch.float32"] * len(row["shape_out"])
    assert results["environment"]["torch"] == torch.__version__


def test_converters_take_it(vit, tmp_path):
    models, types = tmp_path / "models.yml", tmp_path / "types.yml"
    subprocess.run([SONDE, "convert", "models", "-i", vit, "-o", models], check=True)
    subprocess.run([SONDE, "convert", "device-types", "box", "-i", vit, "-o", types, "-dtm", "4096",
                    "-dtb", "1000"], check=True)
    rows = load(vit)["profile_data"]
    model = load(models)[VIT]
    assert model["parameters_out"] == load(DATA / "current/models.yml")[VIT]["parameters_out"]
    assert model["mem_MB"] == [row["memory"] for row in rows]
    profile, = load(types)["box"]["model_profiles"][VIT]
    assert profile["time_s"] == [row["time"] for row in rows]


def test_paired_is_the_seeds(tmp_path):
    """All 48; those that do the same run once, which changes no shape."""
    path = tmp_path / "results.yml"
    sonde.layers(VIT, results=path, batch_size=1, warmup=False, paired=True, repeat_once=True)
    check_pipeedge(load(path))
    assert shapes(load(path)) == shapes(load(DATA / "seed/results_rcc.yml"))


def test_deit_is_pipeedges(tmp_path):
    path = tmp_path / "results.yml"
    sonde.layers(TINY, results=path, batch_size=1, warmup=False)
    results = load(path)
    check_pipeedge(results)
    assert shapes(results) == shapes(load(DATA / "measured/results_deit_tiny_b1.yml"))


def test_bert_is_pipeedges(tmp_path):
    path = tmp_path / "results.yml"
    sonde.layers("bert-base-uncased", results=path, batch_size=1, warmup=False, repeat_once=True)
    results = load(path)
    check_pipeedge(results)
    assert shapes(results) == shapes(load(DATA / "measured/results_bert_base_b1.yml"))
    assert results["dtype"] == "torch.float32"  # PipeEdge says int64, and its scheduler skips that
    assert results["profile_data"][0]["dtype_in"] == ["torch.int64"]


def test_cola_works(tmp_path):
    path = tmp_path / "results.yml"
    options = {"results": path, "batch_size": 2, "warmup": False}
    sonde.layers("textattack/bert-base-uncased-CoLA", shape_input=[(16,)], layer_end=1, **options)
    sonde.layers("textattack/bert-base-uncased-CoLA", shape_input=[(16, 768)], layer_start=47,
                 **options)
    rows = load(path)["profile_data"]
    assert rows[0]["shape_in"] == [[16]] and rows[0]["shape_out"] == [[16, 768], [16, 768]]
    assert rows[-1]["shape_in"] == [[16, 3072], [16, 768]] and rows[-1]["shape_out"] == [[2]]


@pytest.mark.parametrize("name, count, parameters", [
    # Published: torchvision's vit_b_16 and vit_l_16; BertModel; the vit_h_14 of 1,000 classes has
    # 632,045,800, and each further class 1,281.
    (VIT, 48, 86_567_656), ("google/vit-large-patch16-224", 96, 304_326_632),
    ("google/vit-huge-patch14-224-in21k", 128, 632_045_800 + 1281 * (21843 - 1000)),
    ("bert-base-uncased", 48, 109_482_240), ("bert-large-uncased", 96, 335_141_888),
    ("textattack/bert-base-uncased-CoLA", 48, 109_482_240 + 2 * 769),
    # the plain DeiTs have 86,567,656, 22,050,664 and 5,717,416, and a token and a position less
    ("facebook/deit-base-distilled-patch16-224", 48, 86_567_656 + 2 * 768),
    ("facebook/deit-small-distilled-patch16-224", 48, 22_050_664 + 2 * 384),
    (TINY, 48, 5_717_416 + 2 * 192)])
def test_sizes_are_the_published(name, count, parameters):
    assert pipeedge.layer_count(name) == count
    with torch.device("meta"):
        layers = pipeedge.build_layers(pipeedge.SIZES[name], range(1, count + 1))
    assert sum(one.numel() for layer in layers.values() for one in layer.parameters()) == parameters


# ---------------------------------------------------------------------------- arithmetic

def small_vit():
    """torchvision's transformer of the same size, and its weights as Google's npz has them."""
    vision = pytest.importorskip("torchvision.models.vision_transformer")
    torch.manual_seed(1)
    model = vision.VisionTransformer(224, 16, SMALL.blocks, SMALL.heads, SMALL.hidden, SMALL.inner,
                                     num_classes=SMALL.labels).eval()
    for parameter in model.parameters():  # torchvision begins with zeroes in places
        nn.init.normal_(parameter, std=0.1)
    arrays = {"cls": model.class_token,
              "embedding/kernel": model.conv_proj.weight.permute(2, 3, 1, 0),
              "Transformer/posembed_input/pos_embedding": model.encoder.pos_embedding,
              "embedding/bias": model.conv_proj.bias, "head/kernel": model.heads.head.weight.T,
              "head/bias": model.heads.head.bias,
              "Transformer/encoder_norm/scale": model.encoder.ln.weight,
              "Transformer/encoder_norm/bias": model.encoder.ln.bias}
    for number, block in enumerate(model.encoder.layers):
        root = f"Transformer/encoderblock_{number}/"
        heads = root + "MultiHeadDotProductAttention_1/"
        side = SMALL.hidden // SMALL.heads
        weights = block.self_attention.in_proj_weight.chunk(3)
        biases = block.self_attention.in_proj_bias.chunk(3)
        for name, weight, bias in zip(("query", "key", "value"), weights, biases):
            arrays[f"{heads}{name}/kernel"] = weight.T.reshape(SMALL.hidden, SMALL.heads, side)
            arrays[f"{heads}{name}/bias"] = bias.reshape(SMALL.heads, side)
        out = block.self_attention.out_proj
        arrays[heads + "out/kernel"] = out.weight.T.reshape(SMALL.heads, side, SMALL.hidden)
        arrays[heads + "out/bias"] = out.bias
        for place, norm in ((0, block.ln_1), (2, block.ln_2)):
            arrays[f"{root}LayerNorm_{place}/scale"] = norm.weight
            arrays[f"{root}LayerNorm_{place}/bias"] = norm.bias
        for place, linear in enumerate((block.mlp[0], block.mlp[3])):
            arrays[f"{root}MlpBlock_3/Dense_{place}/kernel"] = linear.weight.T
            arrays[f"{root}MlpBlock_3/Dense_{place}/bias"] = linear.bias
    return model, {name: value.detach().numpy() for name, value in arrays.items()}


def test_vit_computes_what_torchvisions_does(tmp_path):
    """Weights read from a file as Google made them; the oracle is another's code."""
    numpy = pytest.importorskip("numpy")
    model, arrays = small_vit()
    path = str(tmp_path / "vit.npz")
    numpy.savez(path, **arrays)
    for paired in (False, True):
        layers = pipeedge.build_layers(SMALL, range(1, 9), paired)
        pipeedge.load_weights(SMALL, layers, path)
        pixels = pipeedge.make_inputs(SMALL, 1, [(3, 224, 224)], 2)
        with torch.no_grad():
            found = pipeedge.Model(layers.values())(*pixels)
            torch.testing.assert_close(found, model(*pixels), rtol=1e-3, atol=1e-4)
    del arrays["cls"]
    arrays["head/bias"] = arrays["head/bias"][:3]
    numpy.savez(path, **arrays)
    with pytest.raises(SpecError, match="cls is missing; head/bias has the shape 3, not 10"):
        pipeedge.load_weights(SMALL, pipeedge.build_layers(SMALL, range(1, 9)), path)


def test_bert_block_computes_what_torchs_does(tmp_path):
    size = SMALL._replace(kind="bert", tokens=512)
    layers = pipeedge.build_layers(size, range(1, 9))
    block = nn.TransformerEncoderLayer(size.hidden, size.heads, size.inner, activation="gelu",
                                       layer_norm_eps=1e-12, batch_first=True).eval()
    attention, projection, fc1, fc2 = (layers[number] for number in range(5, 9))
    fc2.head = nn.Identity()
    state = {"self_attn.out_proj": projection.work, "linear1": fc1.work, "linear2": fc2.work,
             "norm1": projection.norm, "norm2": fc2.norm}
    with torch.no_grad():
        parts = (attention.work.query, attention.work.key, attention.work.value)
        block.self_attn.in_proj_weight.copy_(torch.cat([one.weight for one in parts]))
        block.self_attn.in_proj_bias.copy_(torch.cat([one.bias for one in parts]))
        for name, module in state.items():
            block.get_submodule(name).load_state_dict(module.state_dict())
        x = torch.randn(2, 7, size.hidden)
        found = fc2(*fc1(*projection(*attention(x))))[0]
        torch.testing.assert_close(found, block(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind, names", [
    ("bert", {"embeddings.word_embeddings.weight", "encoder.layer.1.attention.self.query.bias",
              "encoder.layer.0.output.LayerNorm.weight", "pooler.dense.weight"}),
    ("deit", {"cls_token", "dist_token", "pos_embed", "blocks.1.attn.qkv.weight",
              "blocks.0.mlp.fc2.bias", "norm.weight", "head.bias"})])
def test_state_dicts_are_read(kind, names, tmp_path):
    """What PipeEdge's save_weights keeps: every parameter of ours has its place there."""
    size = SMALL._replace(kind=kind, labels=0 if kind == "bert" else 10,
                          tokens=512 if kind == "bert" else 198)
    layers = pipeedge.build_layers(size, range(1, 9))
    kept, used = {}, set()
    for number, layer in layers.items():
        own = dict(layer.named_parameters())
        told = pipeedge.weight_names(size, number)
        assert sorted(ours for ours, _, _ in told) == sorted(own)
        for ours, theirs, _ in told:
            used.add(theirs)
            part = own[ours].detach().clone()
            kept[theirs] = torch.cat((kept[theirs], part)) if ".qkv." in theirs and theirs in kept \
                else part
    assert names <= used
    torch.save(kept, tmp_path / "weights.pt")
    others = pipeedge.build_layers(size, range(1, 9))
    for layer in others.values():
        for parameter in layer.parameters():
            nn.init.zeros_(parameter)
    pipeedge.load_weights(size, others, str(tmp_path / "weights.pt"))
    for number, layer in layers.items():
        for (name, mine), theirs in zip(layer.named_parameters(), others[number].parameters()):
            assert torch.equal(mine, theirs), (number, name)


# --------------------------------------------------------------------------- any model

class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.a, self.b = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x, skip):
        return self.b(torch.relu(self.a(x))) + skip


class Skips(nn.Module):
    """What the stem makes is used in every block, what the first makes in the last."""
    input_shape = (8,)

    def __init__(self, blocks=3):
        super().__init__()
        self.stem = nn.Linear(8, 16)
        self.blocks = nn.ModuleList(Block(16) for _ in range(blocks))
        self.head = nn.Linear(16, 4)
        self.register_buffer("scale", torch.full((1,), 2.0))

    def forward(self, x, unused=None):
        first = h = self.stem(x) * self.scale
        for block in self.blocks:
            h = block(h, first)
        return {"y": self.head(h), "first": first}


class Looping(Skips):
    """torch.fx cannot follow it, torch.export can."""

    def forward(self, x):
        first = h = self.stem(x)
        for place in range(x.shape[1] - 5):
            h = self.blocks[place](h, first)
        return self.head(h)


def equal_alone(model, inputs, cut):
    """Every range of layers, run alone on what the layers before it made."""
    def own(values):  # a layer may work in place on what it takes
        return tuple(one.clone() if torch.is_tensor(one) else one for one in values)

    with torch.no_grad():
        whole = _cut.leaves(model(*inputs))
        borders = [tuple(inputs)]
        for number in range(1, cut.count + 1):
            borders.append(cut.run(number, number, own(borders[-1])))
        for first in range(1, cut.count + 1):
            found = _cut.leaves(cut.run(first, cut.count, own(borders[first - 1])))
            assert len(found) == len(whole)
            assert all(torch.equal(a, b) for a, b in zip(found, whole))
    return borders


@pytest.mark.parametrize("made", [Skips, Looping])
def test_what_crosses_is_what_is_used(made, tmp_path):
    model, inputs = made().eval(), (torch.randn(2, 8),)
    cut = _cut.cut_model(model, "m", inputs)
    assert [layer.name for layer in cut.layers.values()] == [
        "stem", "blocks.0", "blocks.1", "blocks.2", "head"]
    borders = equal_alone(model, inputs, cut)
    last = 2 if made is Skips else 1  # Skips gives `first` back, so it crosses to the end
    assert [len(values) for values in borders] == [1, 1, 2, 2, last, last]
    path = tmp_path / "results.yml"
    sonde.layers(model, name="skips", results=path, batch_size=2, shape_input=[(8,)], iterations=2)
    results = load(path)
    check_pipeedge(results)
    assert results["profile_data"][1]["shape_out"] == [[16], [16]]
    held = sum(one.nbytes for one in (*model.parameters(), *model.buffers()))
    if made is Looping:
        held -= model.scale.nbytes  # nothing uses it
    assert sum(row["weight_bytes"] for row in results["profile_data"]) == held


def test_cut_names_begin_layers():
    model, inputs = Skips().eval(), (torch.randn(2, 8),)
    cut = _cut.cut_model(model, "m", inputs, ("blocks.1", "blocks.2.b"))
    assert [layer.name for layer in cut.layers.values()] == ["(start)", "blocks.1", "blocks.2.b"]
    equal_alone(model, inputs, cut)
    with pytest.raises(SpecError, match="--cut blocks.9: the model has no module of that name"):
        _cut.cut_model(model, "m", inputs, ("blocks.9",))


def test_shared_weights_count_once():
    model = Skips().eval()
    model.blocks[2].a.weight = model.blocks[0].a.weight
    cut = _cut.cut_model(model, "m", (torch.randn(2, 8),))
    assert sum(one.numel() for layer in cut.layers.values() for one in layer.parameters) == \
        sum(one.numel() for one in model.parameters())


@pytest.mark.parametrize("name, layers", [("resnet18", 14), ("mobilenet_v3_small", None)])
def test_torchvisions_models(name, layers, tmp_path):
    models = pytest.importorskip("torchvision.models")
    model = models.get_model(name, weights=None).eval()
    inputs = (torch.randn(1, 3, 64, 64),)
    cut = _cut.cut_model(model, name, inputs)
    assert layers in (None, cut.count)
    equal_alone(model, inputs, cut)
    assert sum(one.numel() for layer in cut.layers.values() for one in layer.parameters) == \
        sum(one.numel() for one in model.parameters())


def test_equal_layers_run_once(tmp_path):
    path = tmp_path / "results.yml"
    made = sonde.layers(TINY, results=path, batch_size=1, repeat_once=True)
    rows = load(path)["profile_data"]
    # The first and the last are others, and layer 5 is the first attention without embeddings.
    assert [row["layer"] for row in rows if "same_as" not in row] == [1, 2, 3, 4, 5, 48]
    assert len(made.same) == 42
    for row in rows:
        if "same_as" in row:
            like = rows[row["same_as"] - 1]
            assert (row["layer"] - like["layer"]) % 4 == 0
            assert all(row[key] == like[key] for key in ("time", "shape_in", "shape_out", "memory"))
    check_pipeedge(load(path))


def test_backward_is_the_models(tmp_path, monkeypatch):
    """Gradients of the weights, layer by layer, are those of the whole model."""
    model, inputs = Skips().eval(), (torch.randn(2, 8),)
    cut = _cut.cut_model(model, "m", inputs)
    sum(one.sum() for one in model(*inputs).values()).backward()
    wanted = [one.grad.clone() for one in model.parameters()]
    model.zero_grad()
    kept = []
    monkeypatch.setattr(model, "zero_grad", lambda **_: kept.extend(
        one.grad.clone() for one in model.parameters()))
    runner = _run.Runner(cut, inputs, {1, 2, 3, 4, 5}, 2, torch.device("cpu"))
    runner.measure_backward()
    for found, one in zip(kept, wanted):
        torch.testing.assert_close(found, one)
    path = tmp_path / "results.yml"
    sonde.layers(Skips().eval(), results=path, batch_size=2, backward=True, iterations=3)
    assert all(row["backward_time"] > 0 and row["backward_min"] <= row["backward_median"]
               for row in load(path)["profile_data"])


class FakeEvent:
    """Two and a half milliseconds from any event to any other."""
    made = 0

    def __init__(self, enable_timing):
        assert enable_timing
        FakeEvent.made += 1

    def record(self, stream):
        assert stream == "the stream"

    def elapsed_time(self, other):
        return 2.5


def test_events_are_the_clock_of_a_gpu(tmp_path, monkeypatch):
    """The way from CUDA's events to the file, with events of our own: there may be no GPU here."""
    monkeypatch.setattr(torch.cuda, "Event", FakeEvent)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: "the stream")
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: None)
    monkeypatch.setattr(_run, "HostClock", lambda: _run.CudaClock("a device"))
    real = _profile.Profile._passes

    def passes(self, runner, saver):
        failed = real(self, runner, saver)
        with torch.no_grad():
            runner.measure_copies(2)
        saver.save()
        return failed
    monkeypatch.setattr(_profile.Profile, "_passes", passes)
    path = tmp_path / "results.yml"
    sonde.layers(Skips().eval(), results=path, batch_size=2, iterations=3, backward=True)
    for row in load(path)["profile_data"]:
        assert row["count"] == 3 and row["time"] == row["time_max"] == 0.0025
        assert row["backward_time"] == row["copy_time"] == 0.0025
        assert 0 < row["time_host"] < 10
    assert FakeEvent.made <= 2 * 5 * 2  # used again, pass after pass


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
def test_on_a_gpu(tmp_path):
    path = tmp_path / "results.yml"
    sonde.layers(TINY, results=path, batch_size=8, iterations=5, device="cuda", backward=True)
    results = load(path)
    check_pipeedge(results)
    assert all(row["copy_time"] > 0 and row["backward_time"] > 0 and row["time_host"] > 0
               for row in results["profile_data"])
    assert results["environment"]["gpu"] == torch.cuda.get_device_name()


# ------------------------------------------------------------------------------- numbers

def file_over_model(name, folder, batch, iterations):
    """The times in the file, summed, over the mean of the uncut model, run after each pass."""
    path, trace = folder / "results.yml", folder / "t.sonde"
    folder.mkdir()
    sonde.layers(name, results=path, batch_size=batch, iterations=iterations, whole=True,
                 trace=trace)
    with sonde.Trace(trace) as recorded:
        whole = [event.time_range.elapsed_us() / 1e6 for event in recorded.events()
                 if event.name == "model"]
    rows = load(path)["profile_data"]
    assert len(rows) == 48 and len(whole) == iterations
    return sum(row["time"] for row in rows) / statistics.mean(whole)


@pytest.mark.alone
@pytest.mark.parametrize("name, batch, iterations, least", [(TINY, 2, 8, 3), (VIT, 1, 3, 1)])
def test_layers_sum_to_the_model(name, batch, iterations, least, tmp_path):
    """A machine under load is asked again; the median of all that it answered is judged."""
    ratios = []
    for attempt in range(7):
        ratios.append(file_over_model(name, tmp_path / str(attempt), batch, iterations))
        if len(ratios) >= least and abs(statistics.median(ratios) - 1) < 0.1:
            break
    assert statistics.median(ratios) == pytest.approx(1, abs=0.1), ratios


def test_numbers_are_those_of_the_samples(tmp_path):
    """Python's statistics over the ranges of the trace."""
    path, trace = tmp_path / "results.yml", tmp_path / "t.sonde"
    sonde.layers(Skips().eval(), results=path, batch_size=3, iterations=6, trace=trace)
    with sonde.Trace(trace) as recorded:
        events = [(event.name, event.time_range.elapsed_us()) for event in recorded.events()]
    for row in load(path)["profile_data"]:
        times = [us / 1e6 for name, us in events if name == f"layer {row['layer']}"]
        assert len(times) == row["count"] == 6
        assert row["time"] == pytest.approx(statistics.mean(times), rel=1e-6)
        assert row["time_median"] == pytest.approx(statistics.median(times), rel=1e-6)
        assert row["time_std"] == pytest.approx(statistics.stdev(times), rel=1e-6)
        assert row["time_min"] == pytest.approx(min(times), rel=1e-6)
        assert row["time_max"] == pytest.approx(max(times), rel=1e-6)


def test_rss_is_measured_in_a_process(tmp_path):
    path = tmp_path / "results.yml"
    sonde.layers(VIT, results=path, batch_size=1, warmup=False, memory="rss", layer_end=4)
    for row in load(path)["profile_data"]:
        assert row["memory"] == row["rss_bytes"] / 1e6
        assert 0.95 * row["weight_bytes"] <= row["rss_bytes"] < 1.05 * row["weight_bytes"] + 1e6


# ------------------------------------------------------------------- the command, and failing

BREAKING = """
    import os, time, torch
    from torch import nn

    class Part(nn.Module):
        def __init__(self, breaks):
            super().__init__()
            self.work, self.breaks, self.runs = nn.Linear(4, 4), breaks, 0

        def forward(self, x):
            self.runs += 1
            time.sleep(float(os.environ.get("SLEEP", 0)))
            if self.breaks and self.runs == int(os.environ["BREAK_AT"]):
                if os.environ.get("KILL"):
                    os.kill(os.getpid(), 9)
                raise ValueError("broken on purpose\\nsecond line")
            return self.work(x)

    def model():
        made = nn.Sequential(*(Part(place == 3) for place in range(5)))
        made.input_shape = (4,)
        return made
"""


@pytest.fixture
def breaking(tmp_path):
    path = tmp_path / "breaking.py"
    path.write_text(textwrap.dedent(BREAKING), encoding="utf-8")
    return f"{path}:model"


def counts(path):
    return {row["layer"]: row["count"] for row in load(path)["profile_data"]}


def test_a_layer_that_fails(breaking, tmp_path, call):
    """In the warm-up: the layers before it are still measured as often as was asked."""
    path = tmp_path / "results.yml"
    said = run(breaking, "-b", 2, "-i", 3, "-o", path, status=1, env={"BREAK_AT": "1"})
    assert said == (f"sonde: layers: {breaking}, batch size 2: layer 4 (3) failed: ValueError: "
                    f"broken on purpose; what was measured before it is in {path}\n")
    assert counts(path) == {1: 3, 2: 3, 3: 3}
    assert load(path)["layers"] == 5
    assert all("rss_bytes" in row for row in load(path)["profile_data"])  # the command has both
    call(breaking, "-b", 2, "-i", 3, "-o", path, "--resume", env={"BREAK_AT": "99"})
    assert counts(path) == {layer: 3 for layer in range(1, 6)}


def test_a_layer_that_fails_later(breaking, tmp_path, call):
    path = tmp_path / "results.yml"
    call(breaking, "-b", 2, "-i", 4, "-o", path, status=1, env={"BREAK_AT": "3"})
    assert counts(path) == {1: 2, 2: 2, 3: 2, 4: 1, 5: 1}
    call(breaking, "-b", 2, "-i", 2, "-o", path, "--resume", env={"BREAK_AT": "99"})
    assert counts(path) == {layer: 2 for layer in range(1, 6)}


def test_killed_in_a_layer(breaking, tmp_path, call):
    """Saved after every layer: what ran before the kill is in the file."""
    path = tmp_path / "results.yml"
    run(breaking, "-b", 2, "-i", 1, "-o", path, status=128 + signal.SIGKILL,
        env={"BREAK_AT": "2", "KILL": "1", "SLEEP": "0.01"})
    assert counts(path) == {1: 1, 2: 1, 3: 1}
    call(breaking, "-b", 2, "-i", 1, "-o", path, "--resume", env={"BREAK_AT": "99"})
    assert sorted(counts(path)) == [1, 2, 3, 4, 5]


def test_several_batch_sizes(breaking, tmp_path, call):
    call(breaking, "-b", "1,3", "-o", tmp_path / "r.yml", "--trace", tmp_path / "t.sonde",
        env={"BREAK_AT": "99"})
    assert [load(tmp_path / f"r_b{size}.yml")["batch_size"] for size in (1, 3)] == [1, 3]
    assert not (tmp_path / "r.yml").exists()
    rows = read_json("report", tmp_path / "t_b3.sonde", "--view", "layers", "--json")["rows"]
    assert [row["layer"] for row in rows] == [1, 2, 3, 4, 5]


def test_existing_results(breaking, tmp_path, call):
    path = tmp_path / "results.yml"
    go = {"BREAK_AT": "99"}
    call(breaking, "-b", 2, "-L", 2, "-o", path, env=go)
    before = path.read_bytes()
    said = call(breaking, "-b", 2, "-l", 2, "-o", path, status=1, env=go)
    assert "already has layer 2; use --resume to measure what is missing" in said
    said = call(breaking, "-b", 4, "-o", path, "--resume", status=1, env=go)
    assert "batch_size 2, not 4" in said
    assert path.read_bytes() == before
    call(breaking, "-b", 2, "-l", 5, "-o", path, env=go)  # a gap is allowed
    assert sorted(counts(path)) == [1, 2, 5]
    call(breaking, "-b", 2, "-o", path, "--resume", env=go)
    assert sorted(counts(path)) == [1, 2, 3, 4, 5]
    path.write_text("- a list\n", encoding="utf-8")
    assert str(path) in call(breaking, "-b", 2, "-o", path, status=1, env=go)
    assert path.read_text(encoding="utf-8") == "- a list\n"


@pytest.mark.parametrize("status, said, arguments", [
    (1, "vit-bse: unknown model", ["vit-bse"]),
    (1, "unknown model", ["-m", "vit-bse"]),
    (1, "torchvision has no model of that name", ["torchvision:resnet19"]),
    (1, "layer 1 takes 3,224,224", ["-m", TINY, "-s", "3,100,100"]),
    (1, "layer 2 takes 198,192 and 198,192", ["-m", TINY, "-l", "2", "-s", "198,192"]),
    (1, "or fewer tokens", ["-m", "bert-base-uncased", "-s", "513"]),
    (1, "expected integers >= 1", ["-m", TINY, "-s", "3,0,224"]),
    (1, "expected integers >= 1", ["-m", TINY, "-s", "3,x"]),
    (1, "the model has layers 1 to 48", ["-m", TINY, "-L", "49"]),
    (1, "PipeEdge's models have their own inputs", ["-m", TINY, "-s", "x=3x224x224"]),
    (1, "PipeEdge's models have their own inputs", ["-m", TINY, "-s", "3x224x224:float16"]),
    (1, "(SONDE_TRACEBACK=1 shows where)", ["torchvision:resnet18", "-s", "999999999,99999"]),
    (1, "No such file", ["-m", TINY, "-M", "/nowhere.npz"]),
    (2, "integers >= 1", ["-m", TINY, "-b", "0"]),
    (2, "integers >= 1", ["-m", TINY, "-b", "8,"]),
    (2, "--iterations: expected an integer >= 1", ["-m", TINY, "-i", "0"]),
    (2, "is before", ["-m", TINY, "-l", "3", "-L", "2"]),
    (2, "expected one model", ["a", "b"]),
    (2, "not both", ["a", "-m", "b"]),
    (2, "weights or rss", ["-m", TINY, "--memory", "all"]),
])
def test_refused(status, said, arguments, tmp_path, call, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (call if status == 1 else run)(*arguments, status=status)
    assert said in text and text.startswith("sonde: layers: ") and text.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_weight_file_that_does_not_fit(tmp_path):
    numpy = pytest.importorskip("numpy")
    path = tmp_path / "w.npz"
    numpy.savez(path, **{"head.weight": numpy.zeros((2, 2), "float32")})
    with pytest.raises(sonde.LayersError, match="not fit the model: cls_token is missing; .*more"):
        sonde.layers(TINY, model_file=path, layer_end=2, results=tmp_path / "r.yml")
    path.write_bytes(b"no weights")
    with pytest.raises(sonde.LayersError, match="neither a NumPy archive"):
        sonde.layers(TINY, model_file=path, results=tmp_path / "r.yml")
    assert not (tmp_path / "r.yml").exists()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_weights_of_other_types_are_read(dtype, tmp_path):
    """Also those that NumPy has no type for."""
    model = Skips().eval()
    kept = {name: nn.Parameter(one.to(dtype)) for name, one in model.state_dict().items()}
    torch.save(kept, tmp_path / "w.pt")
    made = Skips().eval()
    sonde.layers(made, model_file=tmp_path / "w.pt", batch_size=2, results=tmp_path / "r.yml")
    for name, one in made.state_dict().items():
        assert torch.equal(one, kept[name].detach().float()), name


# ------------------------------------------------------------------------------ a full disk

FILLING = """
    import os, torch

    class Fills(torch.nn.Module):
        def forward(self, x):
            with open(os.environ["DISK"] + "/filler", "wb", buffering=0) as file:
                try:
                    while True:
                        file.write(bytes(4096))
                except OSError:
                    return x

    def model():
        made = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), Fills(),
                                   torch.nn.Linear(4, 4))
        made.input_shape = (4,)
        return made
"""


@pytest.mark.parametrize("command, options", [
    ("layers", ["--no-warmup"]), ("model", ["-i", "2", "--passes", "1"])])
def test_a_disk_that_fills_on_the_way(command, options, tmp_path):
    """The third layer takes all room that the results were to have: what was there stays."""
    disk, program = tmp_path / "disk", tmp_path / "fills.py"
    disk.mkdir()
    program.write_text(textwrap.dedent(FILLING), encoding="utf-8")
    mount = 'mount -t tmpfs -o size=32k none "$DISK"'
    environment = {**os.environ, "DISK": str(disk), "KEPT": str(tmp_path / "kept"), "SONDE": SONDE,
                   "TMPDIR": str(tmp_path), "OMP_NUM_THREADS": "1",
                   "SONDE_PYTHON_EXE": sys.executable,
                   "SONDE_PYTHON": os.path.dirname(sonde.__file__)}
    if subprocess.run([*SPACE, "sh", "-c", mount], env=environment,
                      capture_output=True).returncode != 0:
        pytest.skip("this machine lets nobody mount a small file system")
    old = "" if command == "layers" else 'echo "an: old file" >"$DISK/results.yml";'
    words = " ".join([command, f"{program}:model", "-b", "2", *options])
    done = subprocess.run(
        [*SPACE, "sh", "-c", f'''{mount} && {old} "$SONDE" {words} -o "$DISK/results.yml"
        echo $?; ls -A "$DISK"; cp "$DISK/results.yml" "$KEPT"'''],
        env=environment, capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["1", "filler", "results.yml"], (done.stdout, done.stderr)
    assert "No space left on device" in done.stderr and "Traceback" not in done.stderr
    assert done.stderr.startswith("sonde: ") and done.stderr.count("\n") == 1
    if command == "layers":
        assert counts(tmp_path / "kept") == {1: 1, 2: 1}
    else:
        assert (tmp_path / "kept").read_text(encoding="utf-8") == "an: old file\n"


def test_any_number_of_tensors_may_cross_a_border(call, tmp_path):
    """What is said of a layer has no limit: 5000 tensors of 8 shapes, of two types."""
    (tmp_path / "many.py").write_text(textwrap.dedent("""
        import torch
        from torch import nn

        class Split(nn.Module):
            def forward(self, x):
                return tuple(x.new_zeros(len(x), 1 + n % 8).to((torch.float32, torch.float64)[n % 2])
                             for n in range(5000))

        class Join(nn.Module):
            def forward(self, parts):
                return sum(one.sum() for one in parts).reshape(1)

        def net():
            return nn.Sequential(Split(), Join())
        """))
    trace = tmp_path / "many.sonde"
    call(f"{tmp_path}/many.py:net", "--output", tmp_path / "many.yml", "--batch", "2", "--input", "3",
         "--trace", trace)
    first, second = load(tmp_path / "many.yml")["profile_data"]
    wanted = [[1 + n % 8] for n in range(5000)]
    assert [list(one) for one in first["shape_out"]] == wanted == [list(one) for one in second["shape_in"]]
    rows = read_json("report", trace, "--view", "layers", "--json")["rows"]
    assert rows[0]["out_bytes"] == sum(2 * (1 + n % 8) * (4, 8)[n % 2] for n in range(5000))
