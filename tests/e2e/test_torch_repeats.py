# SPDX-License-Identifier: Apache-2.0
"""Operators that are called again and again, which the probe knows without looking closer: with other
inputs, in another order, removed and defined anew.
"""
import random

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: nothing to compare with")

import sonde  # noqa: E402
from torch_tools import apart, seen_by_both  # noqa: E402

FIELDS = ("name", "input_shapes", "concrete_inputs", "scope")


def values(events):
    """Sequence numbers go on from run to run: whether there is one."""
    return [[getattr(event, field, None) for field in FIELDS] + [event.sequence_nr >= 0] for event in events]


def equal_to_torch(run, **options):
    run()  # what is made the first time is not compared
    theirs, ours = seen_by_both(*apart(run, **options))
    assert values(ours) == values(theirs)
    return ours


def tensors():
    """Of several sizes, strides, types and kinds, some of which differ in one of these alone."""
    base = torch.arange(24.0)
    return [base, base[:6], base[::4], base.view(2, 12), base.view(12, 2), base.view(2, 12).t(), base.view(1, 24),
            base.view(2, 3, 4), base.view(2, 3, 4).transpose(1, 2), base.view(1, 2, 1, 3, 2, 2), base.view(4, 6)[:, :3],
            base.to(torch.float64), base.to(torch.int32), base[0], base[:0], base.view(2, 12).expand(2, 12),
            torch.randn(2, 12, requires_grad=True), torch.randn(2, 12).to_sparse()]


@pytest.mark.parametrize("options", [{}, {"record_shapes": True}], ids=["plain", "shapes"])
def test_other_inputs_each_time(options):
    draw = random.Random(7)
    chosen = [draw.choice(tensors()) for _ in range(300)]

    def run():
        for tensor in chosen:
            tensor.neg()
            torch.mul(tensor, 2)

    equal_to_torch(run, **options)


def test_a_number_alone_is_another():
    x = torch.randn(4, 4)

    def run():
        for _ in range(3):
            for number in (1, 2, 2.0, True, -1, 1 << 40):
                torch.add(x, x, alpha=1) if number is True else torch.mul(x, number)
            for sizes in ((4, 4), (16,), (2, 8), (2, 8), (1, 2, 8)):
                x.reshape(sizes)
                x.view(sizes)
            torch.clamp(x, 0.5)
            torch.clamp(x, 0.5, 1.5)
            torch.clamp(x, None, 1.5)
            torch.cat([x, x])
            torch.cat([x, x, x])
            torch.stack([x, x[:, :]])

    equal_to_torch(run, record_shapes=True)


def test_a_tensor_that_changes_its_size():
    x = torch.zeros(8)

    def run():
        for size in (8, 8, 4, 8, 2, 2):
            x.resize_(size)
            x.zero_()

    equal_to_torch(run, record_shapes=True)


def test_with_and_without_a_graph():
    layer, x = torch.nn.Linear(4, 4), torch.randn(2, 4)

    def run():
        for number in range(12):
            with torch.set_grad_enabled(number % 3 == 0):
                y = layer(x).relu()
            if y.requires_grad:
                y.sum().backward()
        layer.zero_grad()

    equal_to_torch(run)
    equal_to_torch(run, record_shapes=True)


@pytest.mark.parametrize("options", [{}, {"record_shapes": True}], ids=["plain", "shapes"])
def test_an_operator_in_the_place_of_a_removed_one(options):
    x, names = torch.ones(2, 2), []

    def run():
        names.clear()
        for number in range(40):
            library = torch.library.Library("sonde_test", "FRAGMENT")
            name = f"operator_{number:02}"
            library.define(f"{name}(Tensor x) -> Tensor")
            library.impl(name, lambda x: x.clone(), "CPU")
            for _ in range(4):
                getattr(torch.ops.sonde_test, name).default(x)
                names.append(f"sonde_test::{name}")
            library._destroy()

    with sonde.profile(activities=[torch.profiler.ProfilerActivity.CPU], **options) as ours:
        run()
    assert [event.name for event in ours.events() if event.name.startswith("sonde_test::")] == names
