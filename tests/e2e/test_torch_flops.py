# SPDX-License-Identifier: Apache-2.0
"""FLOPs against torch's own counter, forward and backward, and against torch.profiler's seven.

FlopCounterMode counts products: matrix products, convolutions, attention, two operations each
multiply-accumulate. Ours counts more (norms, activations, ...), so what is compared is twice the
multiply-accumulates, in all and for each kind of product.
"""
import collections
import warnings

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: nothing to count")
torchvision = pytest.importorskip("torchvision", reason="torchvision is not installed")

from torch import nn  # noqa: E402
from torch.utils import flop_counter  # noqa: E402

import sonde  # noqa: E402

# Name and size of its input; the last four have grouped convolutions.
MODELS = [("alexnet", 96), ("vgg11", 64), ("resnet18", 64), ("resnet50", 64), ("densenet121", 64),
          ("squeezenet1_1", 64), ("inception_v3", 96), ("vit_b_16", 64), ("swin_t", 64),
          ("resnext50_32x4d", 64), ("mobilenet_v2", 64), ("shufflenet_v2_x0_5", 64),
          ("convnext_tiny", 64)]


def convolution_backward(grad_out, x, w, bias, stride, padding, dilation, transposed,
                         output_padding, groups, output_mask, out_shape=None, **unused):
    """torch's formula counts the weight's gradient `groups` times over; this is the definition:
    each of the two gradients takes as many multiplications as the forward pass."""
    positions = x[2:] if transposed else grad_out[2:]
    each = 2 * x[0] * torch.Size(positions).numel() * torch.Size(w).numel()
    return each * (bool(output_mask[0]) + bool(output_mask[1]))


def make_model(name, size):
    options = {"inception_v3": {"init_weights": False, "aux_logits": False},
               "vit_b_16": {"image_size": size}}
    return getattr(torchvision.models, name)(**options.get(name, {}))


def count_by_torch(step, fix_groups=False):
    mapping = {torch.ops.aten.convolution_backward: convolution_backward} if fix_groups else None
    with flop_counter.FlopCounterMode(display=False, custom_mapping=mapping) as counter:
        step()
    return counter.get_total_flops()


def record(step, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with sonde.profile(record_shapes=True, with_flops=options.pop("with_flops", True),
                           **options) as prof:
            step()
    return prof


def count_by_us(step):
    return 2 * sum(row.macs for row in record(step).key_averages())


def training_step(model, *inputs):
    def step():
        model.zero_grad(set_to_none=True)
        result = model(*inputs)
        while isinstance(result, (tuple, list)):  # inception has a second head, an LSTM its state
            result = result[0]
        result.float().sum().backward()
    return step


def missed_attention(name):
    """What an older FlopCounterMode leaves out, having no formula for the CPU's attention.

    Of vit_b_16 at 64 x 64: twelve layers, two products forward and five backward, of 12 heads of 64
    numbers over 17 tokens, a batch of two.
    """
    if torch.ops.aten._scaled_dot_product_flash_attention_for_cpu in flop_counter.flop_registry:
        return 0
    return 12 * (2 + 5) * 2 * (2 * 12 * 17 * 17 * 64) if name == "vit_b_16" else 0


@pytest.mark.parametrize("name, size", MODELS, ids=[name for name, size in MODELS])
def test_a_training_step_counts_as_flop_counter_mode(name, size):
    torch.manual_seed(0)
    model = make_model(name, size)
    step = training_step(model, torch.randn(2, 3, size, size))
    theirs = count_by_torch(step)
    fixed = count_by_torch(step, fix_groups=True)
    assert count_by_us(step) == fixed + missed_attention(name) > 0
    grouped = any(isinstance(m, nn.Conv2d) and m.groups > 1 for m in model.modules())
    assert (theirs != fixed) == grouped  # where they differ, it is for that reason


class Attention(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.options = options

    def forward(self, q, k, v):
        return nn.functional.scaled_dot_product_attention(q, k, v, **self.options)


def tensor(*shape):
    return torch.randn(*shape, requires_grad=True)


LAYERS = {
    "linear": (lambda: nn.Linear(24, 40), lambda: tensor(3, 5, 24)),
    "bilinear product": (lambda: Matmul(), lambda: (tensor(4, 6, 8), tensor(8, 10))),
    "batched product": (lambda: Matmul(), lambda: (tensor(2, 3, 6, 8), tensor(3, 8, 10))),
    "einsum": (lambda: Einsum(), lambda: (tensor(4, 6, 8), tensor(4, 8, 5))),
    "conv1d": (lambda: nn.Conv1d(6, 12, 5, stride=2, padding=1, dilation=2), lambda: tensor(2, 6, 40)),
    "conv3d": (lambda: nn.Conv3d(3, 8, (2, 3, 3), padding=1), lambda: tensor(2, 3, 6, 10, 10)),
    "same": (lambda: nn.Conv2d(4, 8, 3, padding="same"), lambda: tensor(2, 4, 12, 12)),
    "same, uneven": (lambda: nn.Conv2d(4, 8, 4, padding="same", dilation=2),
                     lambda: tensor(2, 4, 13, 12)),
    "unbatched": (lambda: nn.Conv2d(4, 8, 3), lambda: tensor(4, 12, 12)),
    "transposed": (lambda: nn.ConvTranspose2d(6, 4, 3, stride=2, padding=1, output_padding=1),
                   lambda: tensor(2, 6, 9, 9)),
    "transposed 1d": (lambda: nn.ConvTranspose1d(6, 4, 3, stride=2), lambda: tensor(2, 6, 9)),
    "transposed 3d": (lambda: nn.ConvTranspose3d(4, 2, 3), lambda: tensor(1, 4, 5, 5, 5)),
    "attention": (lambda: Attention(), lambda: tuple(tensor(2, 4, 16, 8) for _ in range(3))),
    "cross attention": (lambda: Attention(), lambda: (tensor(2, 4, 9, 8), tensor(2, 4, 16, 8),
                                                      tensor(2, 4, 16, 8))),
    "causal attention": (lambda: Attention(is_causal=True),
                         lambda: tuple(tensor(2, 4, 16, 8) for _ in range(3))),
    "encoder layer": (lambda: nn.TransformerEncoderLayer(32, 4, 64, batch_first=True),
                      lambda: tensor(2, 7, 32)),
}


class Matmul(nn.Module):
    def forward(self, a, b):
        return a @ b


class Einsum(nn.Module):
    def forward(self, a, b):
        return torch.einsum("bij,bjk->bik", a, b)


def counts_attention():
    """Whether this torch's FlopCounterMode knows the attention that the CPU runs."""
    from torch.utils.flop_counter import flop_registry
    return any("flash_attention_for_cpu" in str(operator) for operator in flop_registry)


@pytest.mark.parametrize("name", list(LAYERS))
def test_a_layer_counts_as_flop_counter_mode(name):
    if name.endswith("attention") and not counts_attention():
        pytest.skip("this torch's FlopCounterMode counts nothing for attention on the CPU")
    torch.manual_seed(0)
    layer, inputs = (make() for make in LAYERS[name])
    step = training_step(layer, *(inputs if isinstance(inputs, tuple) else (inputs,)))
    assert count_by_us(step) == count_by_torch(step) > 0


RECURRENT = {"LSTM": 4, "GRU": 3, "RNN": 1}


@pytest.mark.parametrize("kind", list(RECURRENT))
@pytest.mark.parametrize("layers, directions, bias", [(1, 1, True), (2, 1, True), (2, 2, True),
                                                      (1, 1, False)])
def test_recurrent_networks(kind, layers, directions, bias):
    """FlopCounterMode does not look into them. The definition: for each step, direction and gate,
    a product with the input and one with the state; twice that backward."""
    steps, batch, inputs, hidden = 5, 3, 8, 6
    model = getattr(nn, kind)(inputs, hidden, layers, bidirectional=directions == 2, bias=bias)
    x = torch.randn(steps, batch, inputs)
    expected = 0
    for layer in range(layers):
        width = inputs if layer == 0 else hidden * directions
        expected += directions * steps * batch * RECURRENT[kind] * hidden * (width + hidden)
    with torch.no_grad():
        rows = record(lambda: model(x)).key_averages()
    assert sum(row.macs for row in rows) == expected


def test_what_is_not_a_product():
    """Written out by hand for one call each."""
    x = torch.randn(4, 6, 8, 8)
    numel = x.numel()
    norm = nn.BatchNorm2d(6)
    expected = {
        "aten::relu": (lambda: torch.relu(x), numel),
        "aten::sigmoid": (lambda: torch.sigmoid(x), 4 * numel),
        "aten::gelu": (lambda: nn.functional.gelu(x), 5 * numel),
        "aten::add": (lambda: x + torch.randn(6, 1, 1), numel),
        "aten::mul_": (lambda: x.clone().mul_(2), numel),
        "aten::softmax": (lambda: torch.softmax(x, 1), 5 * numel),
        "aten::layer_norm": (lambda: nn.functional.layer_norm(x, (8, 8)), 5 * numel),
        "aten::batch_norm": (lambda: norm(x), 7 * numel),
        "aten::max_pool2d": (lambda: nn.functional.max_pool2d(x, 2), 4 * 6 * 16 * 3),
        "aten::avg_pool2d": (lambda: nn.functional.avg_pool2d(x, 2), 4 * 6 * 16 * 4),
        "aten::adaptive_avg_pool2d": (lambda: nn.functional.adaptive_avg_pool2d(x, 2), numel),
        "aten::sum": (lambda: x.sum(), numel),
        "aten::upsample_bilinear2d":
            (lambda: nn.functional.interpolate(x, (16, 16), mode="bilinear"), 7 * 4 * numel),
    }
    for name, (call, flops) in expected.items():
        with torch.no_grad():
            rows = {row.key: row for row in record(call).key_averages()}
        assert name in rows, (name, list(rows))
        assert rows[name].flops == flops, name
        assert rows[name].macs == 0


def test_transforms_and_equations():
    """The textbook's counts; the outermost operator has them."""
    a = torch.rand(2, 6, 6) + 6 * torch.eye(6)
    b, real = torch.rand(2, 6, 3), torch.rand(4, 8)
    expected = {
        "aten::_fft_c2c": (lambda: torch.fft.fft2(real + 1j), 5 * 32 * 5),
        "aten::_fft_r2c": (lambda: torch.fft.rfft(real), 2.5 * 32 * 3),
        "aten::_fft_c2r": (lambda: torch.fft.irfft(real[:, :5] + 1j), 2.5 * 32 * 3),
        "aten::linalg_lu_factor": (lambda: torch.linalg.lu_factor(a), 2 * 2 * 72),
        "aten::linalg_solve": (lambda: torch.linalg.solve(a, b), 2 * (2 * 72 + 2 * 36 * 3)),
        "aten::linalg_inv": (lambda: torch.linalg.inv(a), 2 * 2 * 216),
        "aten::linalg_cholesky": (lambda: torch.linalg.cholesky(a @ a.mT), 2 * 72),
        "aten::linalg_solve_triangular": (lambda: torch.linalg.solve_triangular(a, b, upper=True), 2 * 36 * 3),
    }
    for name, (call, flops) in expected.items():
        rows = {row.key: row for row in record(call).key_averages()}
        assert rows[name].flops == flops, name


def test_nothing_counts_twice():
    model = nn.Linear(16, 32)
    x = torch.randn(4, 16)
    rows = {row.key: row for row in record(lambda: model(x)).key_averages()}
    assert rows["aten::linear"].flops == 2 * 4 * 16 * 32
    assert rows["aten::addmm"].flops == 0


def test_torch_mode_is_torch():
    model = torchvision.models.resnet18()
    x = torch.randn(1, 3, 64, 64)
    step = training_step(model, x)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU],
                                with_flops=True) as theirs:
        step()
    ours = record(step, with_flops="torch")

    def flops(averages):
        return {row.key: row.flops for row in averages if row.flops}
    assert flops(ours.key_averages()) == flops(theirs.key_averages())


def test_an_operator_without_a_formula_is_named(tmp_path):
    library = torch.library.Library("sonde_test", "DEF")
    library.define("busy(Tensor x) -> Tensor")
    library.impl("busy", lambda x: x.clone(), "CPU")
    prof = record(lambda: [torch.ops.sonde_test.busy(torch.randn(64, 64)) for _ in range(50)])
    prof.save(tmp_path / "t.sonde")
    with sonde.Trace(tmp_path / "t.sonde") as trace:
        ledger = {key: (count, text) for key, count, text in trace.ledger()}
    count, text = ledger["uncounted_operators"]
    assert count == 1
    assert "sonde_test::busy" in text and "% of self time" in text


def test_every_operator_of_the_models_is_known(tmp_path):
    """The ledger of a training step of each family has nothing to name."""
    unknown = collections.Counter()
    for name, size in (("resnet18", 64), ("mobilenet_v2", 64), ("swin_t", 64), ("vit_b_16", 64)):
        model = make_model(name, size)
        optimizer = torch.optim.AdamW(model.parameters())
        run = training_step(model, torch.randn(1, 3, size, size))

        def step():
            run()
            optimizer.step()
        prof = record(step)
        path = tmp_path / f"{name}.sonde"
        prof.save(path)
        with sonde.Trace(path) as trace:
            for key, count, text in trace.ledger():
                if key == "uncounted_operators":
                    unknown[text] += count
    assert not unknown


# ----------------------------------------------------------------------------- bytes

ROWS, COLUMNS = 40, 25
PLACES = torch.zeros(ROWS, COLUMNS, dtype=torch.int64)
PICKED = torch.zeros(7, dtype=torch.int64)
MASK = torch.zeros(ROWS, COLUMNS, dtype=torch.bool)
# What an operator is called with, for a tensor of some type.
CALLS = {
    "add": lambda x: (x, x),
    "mul": lambda x: (x, x),
    "div": lambda x: (x, x),
    "eq": lambda x: (x, x),
    "where": lambda x: (MASK, x, x),
    "cat": lambda x: ([x, x],),
    "exp": lambda x: (x,),
    "abs": lambda x: (x,),
    "isnan": lambda x: (x,),
    "logical_not": lambda x: (x,),
    "cumsum": lambda x: (x, 1),
    "sum": lambda x: (x, 1),
    "argmax": lambda x: (x, 1),
    "max": lambda x: (x, 1),
    "sort": lambda x: (x, 1),
    "masked_fill": lambda x: (x, MASK, 1),
    "gather": lambda x: (x, 1, PLACES),
    "index_select": lambda x: (x, 0, PICKED),
    "add_": lambda x: (x, x),
}
QUANTIZED = (torch.qint8, torch.quint8, torch.qint32)
PROMOTED = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16,
            torch.float32, torch.float64, torch.complex64, torch.complex128)


def tensor_of(dtype):
    if dtype in QUANTIZED:
        return torch.quantize_per_tensor(torch.ones(ROWS, COLUMNS), 0.1, 0, dtype)
    try:
        return torch.ones(ROWS, COLUMNS, dtype=dtype)
    except RuntimeError:  # one that cannot be filled
        return torch.empty(ROWS, COLUMNS, dtype=dtype)


def bytes_of(value):
    if isinstance(value, torch.Tensor):
        return value.numel() * value.element_size()
    return sum(map(bytes_of, value)) if isinstance(value, (list, tuple)) else 0


def types_of(value):
    if isinstance(value, (list, tuple)):
        return [types_of(one) for one in value]
    return value.dtype if isinstance(value, torch.Tensor) else value


class Moved:
    """Calls of operators, with what each must have moved: its inputs and its result."""

    def __init__(self):
        self.calls, self.expected = [], []

    def add(self, name, *args, number_bytes=0):
        call = getattr(torch.Tensor if name.endswith("_") else torch, name)
        try:
            result = call(*args)
        except (RuntimeError, TypeError, IndexError):  # not for this type
            return
        self.calls.append((call, args))
        self.expected.append((f"aten::{name}", bytes_of(args) + number_bytes + bytes_of(result), types_of(args)))

    def check(self):
        with sonde.profile(record_shapes=True, with_flops=True) as prof:
            for call, args in self.calls:
                call(*args)
        names = {name for name, *_ in self.expected}
        found = [event for event in prof.events() if event.cpu_parent is None and event.name in names]
        assert [event.name for event in found] == [name for name, *_ in self.expected]
        wrong = [(event.moved_bytes, *expected) for event, expected in zip(found, self.expected)
                 if event.moved_bytes != expected[1]]
        assert not wrong
        return len(found)


def test_bytes_moved_are_those_of_every_type():
    moved = Moved()
    for dtype in {one for one in vars(torch).values() if isinstance(one, torch.dtype)}:
        x = tensor_of(dtype)
        for name, call in CALLS.items():
            moved.add(name, *call(x))
    assert moved.check() > 300


def test_bytes_moved_by_mixed_types():
    """torch promotes: tensors with dims first, numbers last."""
    moved = Moved()
    for one in PROMOTED:
        x = tensor_of(one)
        for number, size in ((True, 1), (2, 8), (2.5, 8), (1j, 16)):  # as tensors: they go in
            moved.add("mul", x, number, number_bytes=size)
            moved.add("add", x, number, number_bytes=size)
        for other in PROMOTED:
            y = tensor_of(other)
            moved.add("mul", x, y)
            moved.add("cat", [x, y])
            moved.add("where", MASK, x, y)
            moved.add("mul_", x.clone(), y)
            moved.add("div", x, y)
    assert moved.check() > 500


# ------------------------------------------------------------------------- packed weights

@pytest.mark.parametrize("memory", [False, True])
@pytest.mark.filterwarnings("ignore")
def test_linear_layers_with_packed_weights(memory):
    """Their width is not among the shapes: it is that of the result, which has room made for it."""
    if "fbgemm" not in torch.backends.quantized.supported_engines:
        pytest.skip("torch has no engine for quantized layers here")
    floats = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8))
    dynamic = torch.ao.quantization.quantize_dynamic(floats, {nn.Linear})
    halves = torch.ao.quantization.quantize_dynamic(floats, {nn.Linear}, dtype=torch.float16)
    static = torch.ao.nn.quantized.Linear(16, 32)
    x = torch.randn(2, 4, 16)
    quantized = torch.quantize_per_tensor(x, 0.1, 0, torch.quint8)
    with torch.no_grad(), sonde.profile(record_shapes=True, with_flops=True, profile_memory=memory) as prof:
        dynamic(x), halves(x), static(quantized)
    found = [(event.name, event.flops, event.macs, event.moved_bytes) for event in prof.events()
             if event.name.startswith("quantized::")]
    first, second = 8 * 16 * 32, 8 * 32 * 8
    assert found == [
        ("quantized::linear_dynamic", 2 * first, first, 4 * 8 * 16 + 16 * 32 + 4 * 8 * 32),
        ("quantized::linear_dynamic", 2 * second, second, 4 * 8 * 32 + 32 * 8 + 4 * 8 * 8),
        ("quantized::linear_dynamic_fp16", 2 * first, first, 4 * 8 * 16 + 2 * 16 * 32 + 4 * 8 * 32),
        ("quantized::linear_dynamic_fp16", 2 * second, second, 4 * 8 * 32 + 2 * 32 * 8 + 4 * 8 * 8),
        ("quantized::linear", 2 * first, first, 8 * 16 + 16 * 32 + 8 * 32)]
    rows = {row.key: row for row in prof.key_averages()}
    assert rows["quantized::linear_dynamic"].flops == 2 * (first + second)
