# SPDX-License-Identifier: Apache-2.0
"""Small networks for the tests of `sonde model`."""
import torch
from torch import nn


class Net(nn.Module):
    """Two convolutions, a head, and a batch norm with buffers."""

    input_shape = (3, 16, 16)

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(),
                                      nn.Conv2d(8, 16, 3, padding=1, stride=2), nn.ReLU())
        self.head = nn.Linear(16, 10)

    def forward(self, x):
        return self.head(self.features(x).mean((2, 3)))


class FailsInside(Net):
    """The head gets what it cannot take."""

    def forward(self, x):
        return self.head(self.features(x))


class FailsWhenLarge(Net):
    def forward(self, x):
        if x.shape[0] > 2:
            raise RuntimeError("no room for\nso many")
        return super().forward(x)


class TwoInputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right = nn.Linear(4, 8), nn.Linear(6, 8)

    def forward(self, a, b):
        return {"sum": self.left(a) + self.right(b), "a": a}


class Tied(nn.Module):
    """The head's weight is the embedding's."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 8)
        self.body = nn.Linear(8, 8)
        self.head = nn.Linear(8, 50, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, x):
        return self.head(self.body(self.embed(x)))


def not_a_model():
    return 5


def broken():
    raise ValueError("no such file")


ready = nn.Linear(4, 2)
torch.manual_seed(0)


class Mixed(Net):
    """Modules, functions and methods: what a graph has beside modules."""

    def forward(self, x, scale=None):
        x = self.features(x)
        y = torch.nn.functional.relu(x + x)
        y = torch.flatten(y.mean((2, 3)), 1)
        return self.head(y if scale is None else y * scale)


class Branches(Net):
    """torch.fx cannot follow it: which way depends on a shape."""

    def forward(self, x):
        x = self.features(x)
        if x.shape[0] > 1000:
            return x
        return self.head(x.mean((2, 3)))


class Untraceable(Net):
    """No tracer can follow it: which way depends on the numbers."""

    def forward(self, x):
        if float(x.sum().item()) > 1e30:
            return x
        return super().forward(x)


class Named(nn.Module):
    """Tokens with a mask, by name; it refuses what is of another type."""

    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(30, 8), nn.Linear(8, 4)

    def forward(self, *, input_ids, mask, scale):
        assert (input_ids.dtype, mask.dtype, scale.dtype) == (torch.int32, torch.bool, torch.float32)
        return self.head(self.embed(input_ids) * mask[..., None]) * scale
