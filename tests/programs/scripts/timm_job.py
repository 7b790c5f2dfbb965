# SPDX-License-Identifier: Apache-2.0
"""timm: a model of its list, with random weights."""
import timm
import torch

torch.manual_seed(0)
torch.set_num_threads(1)


def infer(model, images):
    with torch.no_grad():
        return model(images)


model = timm.create_model("mobilenetv3_small_050", pretrained=False, num_classes=10).eval()
found = infer(model, torch.randn(2, 3, 96, 96))
print(tuple(found.shape), f"{float(found.abs().sum()):.3f}")
