# SPDX-License-Identifier: Apache-2.0
"""A small network, and one step of training."""
import torch
from torch import nn


class Net(nn.Module):
    input_shape = (3, 16, 16)

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.head = nn.Linear(8, 10)

    def forward(self, x):
        return self.head(self.features(x).mean((2, 3)))


def train(model, optimizer, inputs):
    optimizer.zero_grad()
    loss = model(inputs).sum()
    loss.backward()
    optimizer.step()


def main():
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    train(model, optimizer, torch.randn(2, 3, 16, 16))


if __name__ == "__main__":
    main()
