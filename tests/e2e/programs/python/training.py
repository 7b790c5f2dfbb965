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


@profile
def noise(seed, count):
    """The same numbers on every machine."""
    found = []
    for step in range(count):
        seed = (seed + step) ** 300 % 1000003
        found.append(seed / 1000003)
    return found


def batches(count, size):
    for number in range(count):
        yield torch.randn(size, 32) + torch.tensor(noise(number, 32)), torch.randint(0, 10, (size,))


def vocabulary(text):
    """A number for each word, and each word's places."""
    numbers, places = {}, {}
    for place, word in enumerate(text.split()):
        number = numbers.setdefault(word, len(numbers) + 1000)
        places.setdefault(number, []).append(place + 1000)
    return numbers, places


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
    torch.set_num_threads(1)  # the network is small
    for _ in range(rounds):
        assert len(train(Net(), 20)) == 20
        numbers, places = vocabulary("the animal in the open field")
        assert len(numbers) == 5 and places[1000] == [1000, 1003]


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
