# SPDX-License-Identifier: Apache-2.0
"""ranks.py OUT - one rank of a training step over gloo, watched by torch.profiler and
sonde in both forms."""
import json
import os
import pathlib
import sys

import torch
import torch.distributed as dist
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from torch_tools import FULL, seen_by_both, watch  # noqa: E402

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
dist.init_process_group("gloo", init_method=os.environ["RENDEZVOUS"], rank=rank, world_size=size)
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(16, 32), nn.ReLU(),
                                                          nn.Linear(32, 4)))
optimizer = torch.optim.AdamW(model.parameters())
x = torch.randn(8, 16)


def step():
    optimizer.zero_grad()
    model(x).sum().backward()
    optimizer.step()


step()
step()  # the buckets are built anew after the first


def described(events):
    return [(event.name, event.input_shapes, event.cpu_memory_usage) for event in events]


RUNS = 3


def whole(runs):
    """The first in which the collective is. backward() goes on a moment before gloo's thread ends the
    range, and torch leaves out what has not ended when it stops. Each rank runs them all."""
    return next((run for run in runs if any(name.startswith("gloo:") for name, *_ in run["theirs"])),
                runs[-1])


answer = {}
for form in ("together", "apart"):  # torch takes addresses of earlier recordings for its own
    seen = []
    for _ in range(RUNS):
        theirs, ours = watch(step, form=form, **FULL)
        # One of gloo's two threads takes the work: in two runs not the same one.
        their_events, our_events = (seen_by_both(theirs, ours) if form == "together" else
                                    (theirs.events(), ours.events()))
        seen.append({"theirs": described(their_events), "ours": described(our_events)})
    answer[form] = whole(seen)
chrome = pathlib.Path(sys.argv[1] + ".chrome.json")
ours.export_chrome_trace(str(chrome))
answer["distributed"] = json.loads(chrome.read_text())["distributedInfo"]
with open(sys.argv[1], "w") as out:
    json.dump(answer, out)
dist.barrier()
dist.destroy_process_group()
