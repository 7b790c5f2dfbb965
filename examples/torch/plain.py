# SPDX-License-Identifier: Apache-2.0
"""plain.py - a script that knows nothing of profilers: `sonde run --ops -- python plain.py`."""
import torch
from torch import nn

model = nn.TransformerEncoder(nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True), 4)
words = torch.randn(8, 64, 256)
for _ in range(3):
    model(words).mean().backward()
