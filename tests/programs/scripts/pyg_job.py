# SPDX-License-Identifier: Apache-2.0
"""PyTorch Geometric: two convolutions over a graph, trained for some steps."""
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

torch.manual_seed(0)
torch.set_num_threads(1)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = GCNConv(8, 16), GCNConv(16, 3)

    def forward(self, data):
        return self.second(torch.relu(self.first(data.x, data.edge_index)), data.edge_index)


data = Data(x=torch.randn(40, 8), edge_index=torch.randint(0, 40, (2, 160)), y=torch.randint(0, 3, (40,)))
net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for step in range(5):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(net(data), data.y)
    loss.backward()
    optimizer.step()
print(f"{float(loss.detach()):.4f}")
