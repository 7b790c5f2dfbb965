# SPDX-License-Identifier: Apache-2.0
"""What people run: the rows of key_averages() are torch.profiler's, both on at once and apart.

Each program is warmed up, so that nothing in it is done for the first time while it is watched.
"""
import collections
import contextlib
import copy

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: nothing to compare with")
from torch import nn  # noqa: E402

from torch_tools import FORMS, FULL, Numbers, quiet, take_freed_blocks  # noqa: E402

MEMORY = "[memory]"


# ------------------------------------------------------------------------- programs

class Attention(nn.Module):
    def __init__(self, width=32, heads=4):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
                   for part in self.qkv(x).chunk(3, -1))
        weights = torch.softmax(q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5, -1)
        return self.out((weights @ v).transpose(1, 2).flatten(2))


class Tiny(nn.Module):
    """A language model of two blocks, whose blocks may be checkpointed."""

    def __init__(self, checkpointed=False):
        super().__init__()
        self.tokens, self.places = nn.Embedding(100, 32), nn.Embedding(16, 32)
        self.blocks = nn.ModuleList(nn.Sequential(nn.LayerNorm(32), Attention(), nn.Linear(32, 64),
                                                  nn.GELU(), nn.Linear(64, 32)) for _ in range(2))
        self.head, self.checkpointed = nn.Linear(32, 100), checkpointed

    def forward(self, ids):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        for block in self.blocks:
            if self.checkpointed:
                x = x + torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)
            else:
                x = x + block(x)
        return self.head(x)


def step_of(model, ids, **optimizer):
    made = torch.optim.AdamW(model.parameters(), lr=1e-3, **optimizer)

    def step():
        loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        made.step()
        made.zero_grad()
        return loss.detach()

    return step


def ids():
    return torch.arange(32).reshape(2, 16) % 100


def language_model():
    return step_of(Tiny(), ids())


def checkpointed():
    return step_of(Tiny(checkpointed=True), ids())


def fused_optimizer():
    return step_of(Tiny(), ids(), fused=True)


def mixed_precision():
    """bfloat16 by autocast, gradients over two micro-batches, an average of the weights."""
    model = Tiny()
    average = torch.optim.swa_utils.AveragedModel(
        model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    rate = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10_000)

    def step():
        for _ in range(2):
            with torch.autocast("cpu", torch.bfloat16):
                loss = nn.functional.cross_entropy(model(ids()).flatten(0, 1), ids().flatten())
            (loss / 2).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        average.update_parameters(model)
        rate.step()

    return step


def gradients_of_each_sample():
    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
    weights = {name: value.detach() for name, value in model.named_parameters()}
    x, y = torch.randn(5, 8), torch.randn(5, 1)

    def loss(weights, x, y):
        return (torch.func.functional_call(model, weights, (x,)) - y).square().sum()

    of_each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))

    def run():
        of_each(weights, x, y)
        torch.func.jacrev(lambda one: torch.func.functional_call(model, weights, (one,)))(x[0])
        torch.func.hessian(lambda one: one.pow(3).sum())(x[0])

    return run


def sparse():
    indices = torch.tensor([[0, 1, 2, 2], [1, 0, 3, 1]])
    table = nn.EmbeddingBag(50, 8, sparse=True, mode="sum")
    optimizer = torch.optim.SparseAdam(table.parameters())

    def run():
        matrix = torch.sparse_coo_tensor(indices, torch.ones(4), (4, 5), check_invariants=False)
        matrix.coalesce().matmul(torch.ones(5, 3))
        matrix.to_dense().to_sparse_csr().matmul(torch.ones(5, 3))
        optimizer.zero_grad()
        table(torch.arange(10), torch.tensor([0, 5])).sum().backward()
        optimizer.step()

    return run


def quantized():
    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.head = nn.LSTM(16, 32, batch_first=True), nn.Linear(32, 5)

        def forward(self, x):
            return self.head(self.lstm(x)[0])

    dynamic = pytest.importorskip("torch.ao.quantization", reason="this torch has no quantization")
    if torch.backends.quantized.engine == "none":
        pytest.skip("this torch has no engine of quantized operators")
    with quiet():
        model = dynamic.quantize_dynamic(Tagger().eval(), {nn.LSTM, nn.Linear}, torch.qint8)
    x = torch.randn(2, 7, 16)

    def run():
        with torch.inference_mode():
            model(x)

    return run


def exported():
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten()).eval()
    x = torch.randn(1, 3, 8, 8)
    program = torch.export.export(model, (x,)).module()

    def run():
        with torch.no_grad():
            program(x)

    return run


def loaded():
    """A worker process, batches of unequal length, a sampler, pinned by nobody."""
    def collate(rows):
        return nn.utils.rnn.pad_sequence([row[:1 + n % 3] for n, row in enumerate(rows)], True)

    def run():
        data = torch.utils.data.DataLoader(
            Numbers(), batch_size=3, num_workers=1, collate_fn=collate, drop_last=True, multiprocessing_context="fork",
            sampler=torch.utils.data.SequentialSampler(Numbers()))
        for batch in data:
            batch.cumsum(0).mean()

    return run


def convolutions():
    """channels_last, folded batch norm, fake quantization, a frozen script."""
    model = nn.Sequential(nn.Conv2d(3, 8, 3, groups=1), nn.BatchNorm2d(8), nn.SiLU(),
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4)).eval()
    x = torch.randn(2, 3, 12, 12).to(memory_format=torch.channels_last)
    with quiet():
        folded = torch.nn.utils.fusion.fuse_conv_bn_eval(copy.deepcopy(model[0]), model[1])
        frozen = torch.jit.freeze(torch.jit.script(model))

    def run():
        with torch.no_grad():
            folded(x)
            frozen(x)

    run(), run()  # a script is optimized in its second run
    return run


def second_derivatives():
    x = torch.randn(6, requires_grad=True)

    def run():
        gradient, = torch.autograd.grad((x ** 3).sum(), x, create_graph=True)
        gradient.sum().backward()
        x.grad = None
        with torch.autograd.graph.save_on_cpu(), torch.autograd.set_detect_anomaly(False):
            (x.sin() * x).sum().backward()
        hook = x.register_hook(lambda grad: grad * 2)
        x.exp().sum().backward()
        hook.remove()
        x.grad = None

    return run


PROGRAMS = [language_model, checkpointed, fused_optimizer, mixed_precision, gradients_of_each_sample,
            sparse, quantized, exported, loaded, convolutions, second_derivatives]


# ----------------------------------------------------------------------- comparisons

@contextlib.contextmanager
def one_thread():
    """With more, kernels take memory on OpenMP's threads, which torch does not see."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def rows(profiled, by_shape, with_memory):
    """key_averages(): what each row has, times left out."""
    found = collections.Counter()
    for row in profiled.key_averages(group_by_input_shape=by_shape):
        found[(row.key, str(row.input_shapes) if by_shape else "", row.count, row.flops or 0,
               *((row.cpu_memory_usage, row.self_cpu_memory_usage) if with_memory else ()))] += 1
    return found


def assert_rows_are_equal(theirs, ours, with_memory=True):
    for by_shape in (False, True):
        expected, seen = rows(theirs, by_shape, with_memory), rows(ours, by_shape, with_memory)
        assert (list(seen - expected), list(expected - seen)) == ([], [])


# Tensors made of others (vmap's, sparse ones): with shapes torch keeps what is inside them until its
# stop, so that what the program frees is not freed. Shapes and memory are compared one after the other.
OPTIONS = {make: [FULL] for make in PROGRAMS}
for one in (gradients_of_each_sample, sparse):
    OPTIONS[one] = [{"record_shapes": True, "with_flops": True}, {"profile_memory": True}]


@pytest.mark.parametrize("form", list(FORMS))
@pytest.mark.parametrize("make", PROGRAMS, ids=lambda make: make.__name__)
def test_rows_are_torchs(make, form):
    with one_thread(), quiet():
        torch.manual_seed(0)
        run = make()
        for _ in range(3):
            run()

        def watched():
            torch.ones(1).add(1)  # both profilers take memory when their first events come
            run()

        kept = []
        for options in OPTIONS[make]:
            for _ in range(4):  # torch's own memory varies from run to run: docs/TORCH.md
                theirs, ours = FORMS[form](watched, **options)
                if rows(theirs, True, True) == rows(ours, True, True):
                    break
                kept.append(take_freed_blocks())
                run()  # so that what the next one frees is not of this profile
            assert len(ours.key_averages()) > 3
            assert_rows_are_equal(theirs, ours)


@pytest.mark.parametrize("form", list(FORMS))
@pytest.mark.parametrize("make", [language_model, gradients_of_each_sample, quantized],
                         ids=lambda make: make.__name__)
def test_rows_with_stacks_and_modules(make, form):
    with one_thread(), quiet():
        run = make()
        for _ in range(3):
            run()
        theirs, ours = FORMS[form](run, with_stack=True, with_modules=True, record_shapes=True)
    assert_rows_are_equal(theirs, ours, with_memory=False)
