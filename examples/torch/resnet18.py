# SPDX-License-Identifier: Apache-2.0
"""resnet18.py [FOLDER] - where ResNet-18 spends its time and memory, on the CPU.

Written for torch.profiler; only its import line was changed. Leaves FOLDER/resnet18.json, for
https://ui.perfetto.dev, and FOLDER/resnet18.sonde, for `sonde report`.
"""
import os
import sys

import torch
import torchvision.models as models
from sonde import profile, record_function, ProfilerActivity  # was: from torch.profiler import ..

folder = sys.argv[1] if len(sys.argv) > 1 else "."
os.makedirs(folder, exist_ok=True)

model = models.resnet18()
inputs = torch.randn(5, 3, 224, 224)
model(inputs)  # the first pass prepares things that no other pass has to

with profile(activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True,
             with_flops=True) as prof:
    with record_function("model_inference"):
        model(inputs)

print(prof.key_averages().table(sort_by="cpu_time_total", row_limit=10))
print(prof.key_averages(group_by_input_shape=True).table(sort_by="cpu_time_total", row_limit=5))
print(prof.key_averages().table(sort_by="self_cpu_memory_usage", row_limit=5))

prof.export_chrome_trace(os.path.join(folder, "resnet18.json"))
prof.save(os.path.join(folder, "resnet18.sonde"))
