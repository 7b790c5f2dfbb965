# SPDX-License-Identifier: Apache-2.0
"""A training loop: a small network, data, an optimizer."""
import sys

import torch
from torch import nn

try:
    profile
except NameError:
    def profile(function):
        return function


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(32, 64), nn.Linear(64, 10)

    @profile
    def forward(self, x):
        hidden = torch.relu(self.first(x))
        return self.second(hidden)


def batches(count, size):
    for _ in range(count):
        yield torch.randn(size, 32), torch.randint(0, 10, (size,))


@profile
def train(net, count):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    losses = []
    for inputs, labels in batches(count, 16):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(inputs), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main(rounds=1):
    torch.manual_seed(0)
    for _ in range(rounds):
        assert len(train(Net(), 20)) == 20


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
