# SPDX-License-Identifier: Apache-2.0
"""faults.py FAULT TRACE - a loop on a GPU that has one fault, or none ("good"), recorded with stacks.

The line at fault ends with "# FAULT": advice has to name it. tests/data/gpu/advice has such traces of an H200.
"""
import sys

import torch

import sonde

STEPS, WIDE = 24, 4096
x = torch.randn(WIDE, WIDE, device="cuda", dtype=torch.bfloat16)
w = torch.randn(WIDE, WIDE, device="cuda", dtype=torch.bfloat16) / WIDE
pageable, pinned = torch.ones(WIDE, 1024), torch.ones(WIDE, 1024).pin_memory()


def work(inputs=x):
    return (inputs @ w[:inputs.shape[1]]).relu().sum()


def good():
    return work() + pinned.to("cuda", non_blocking=True)[0, 0]


def item():
    if work(x[:2048, :2048]).item() < 0:  # item
        raise ValueError("a sum of what is not negative")


def synchronise():
    work(x[:2048, :2048])
    torch.cuda.synchronize()  # synchronise


def prepare():  # late
    left = 60000
    while left:
        left -= 1


def late():
    prepare()
    work()


def tiny():
    few = torch.zeros(64, device="cuda")
    for _ in range(40):
        few.add_(1)  # tiny


def copies():
    return work() + pageable.to("cuda")[0, 0]  # copies


def plain():
    return (x.float() @ w.float()).sum()  # plain


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.wide = torch.nn.Linear(64, 4 * WIDE, bias=False)
        self.head = torch.nn.Linear(4 * WIDE, 16, bias=False)

    def forward(self, inputs):
        return self.head(self.wide(inputs))  # peak


def peak():
    return net(inputs).sum()


def fragments():
    """Of two blocks, each pair larger than the last, one stays: the next do not fit into the holes."""
    both = [torch.empty((24 + 2 * len(kept)) << 20, device="cuda", dtype=torch.uint8) for _ in range(2)]  # fragments
    kept.append(both[0])
    return work()


kept = []
fault, trace = sys.argv[1:]
if fault == "peak":
    net, inputs = Net().cuda(), torch.ones(8 * WIDE, 64, device="cuda")
step = globals()[fault]
for _ in range(3):
    work(), good(), step()
torch.cuda.synchronize()
memory = fault in ("peak", "fragments")
with sonde.profile(activities=[sonde.ProfilerActivity.CPU, sonde.ProfilerActivity.CUDA], with_stack=True, profile_memory=memory,
                   with_modules=memory) as result:
    for _ in range(STEPS):
        step()
        result.step()
    torch.cuda.synchronize()
result.save(trace)
