# SPDX-License-Identifier: Apache-2.0
"""train.py [FOLDER] - a training loop of which three steps are recorded, after a warm-up.

Leaves FOLDER/train.json, for https://ui.perfetto.dev, and FOLDER/train.sonde, for `sonde report`.
"""
import os
import sys

import torch
from torch import nn
from sonde import profile, schedule  # was: from torch.profiler import profile, schedule


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
                                      nn.Conv2d(32, 64, 3, stride=2, padding=1), nn.ReLU())
        self.head = nn.Linear(64 * 16 * 16, 10)

    def forward(self, x):
        return self.head(self.features(x).flatten(1))


def save(prof):
    """Called when the recorded steps are over."""
    print(f"Three steps of training, up to step {prof.step_num}:")
    print(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=12))
    prof.export_chrome_trace(os.path.join(folder, "train.json"))
    prof.save(os.path.join(folder, "train.sonde"))


folder = sys.argv[1] if len(sys.argv) > 1 else "."
os.makedirs(folder, exist_ok=True)
model, loss_function = Net(), nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters())

with profile(schedule=schedule(wait=1, warmup=1, active=3, repeat=1), on_trace_ready=save,
             record_shapes=True, profile_memory=True, with_flops=True, with_modules=True) as prof:
    for _ in range(6):
        images, labels = torch.randn(16, 3, 32, 32), torch.randint(0, 10, (16,))
        optimizer.zero_grad()
        loss_function(model(images), labels).backward()
        optimizer.step()
        prof.step()
