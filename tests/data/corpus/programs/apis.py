# SPDX-License-Identifier: Apache-2.0
"""What only Python's calls record: apis.py WHAT. The trace is WHAT.sonde."""
import sys

import net
import sonde
import torch

WHAT = sys.argv[1]
INPUTS = torch.randn(2, 3, 16, 16)


def schedule():
    """torch.profiler's own names: a schedule, steps, arguments, user ranges, metadata."""
    model = net.Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with sonde.profile(activities=[sonde.ProfilerActivity.CPU], record_shapes=True, profile_memory=True,
                       with_stack=True, with_flops=True, with_modules=True,
                       schedule=sonde.schedule(wait=1, warmup=1, active=2)) as profiler:
        profiler.add_metadata_json("purpose", '{"a": 1}')
        for _ in range(5):
            with sonde.record_function("train"):
                net.train(model, optimizer, INPUTS)
            profiler.step()
    profiler.save("schedule.sonde")


def tensors():
    model = net.Net()
    optimizer = torch.optim.Adam(model.parameters())
    net.train(model, optimizer, INPUTS)
    sonde.memory_report(model, optimizer).save("tensors.sonde")


def tensor_lines():
    model = net.Net()
    with sonde.tensor_lines(net.Net.forward) as lines:
        model(INPUTS)
    lines.save("tensor_lines.sonde")


globals()[WHAT]()
