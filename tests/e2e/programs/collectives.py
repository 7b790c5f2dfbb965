# SPDX-License-Identifier: Apache-2.0
"""collectives.py OUT - one of two ranks that reduce over gloo, in steps; watched in both forms."""
import json
import os
import pathlib
import sys

import torch
import torch.distributed as dist

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from torch_tools import FORMS  # noqa: E402

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
dist.init_process_group("gloo", init_method=os.environ["RENDEZVOUS"], rank=rank, world_size=size)
x = torch.ones(1000, 100)


def run():
    for step in range(2):
        with torch.profiler.record_function(f"ProfilerStep#{step}"):
            work = dist.all_reduce(x, async_op=True)
            x.mul(2)
            work.wait()
            dist.all_reduce(x)


def described(profiled):
    rows = {row.key: row for row in profiled.key_averages()}
    table = profiled.key_averages().table().splitlines()
    step = next(line for line in table if "ProfilerStep*" in line)
    return {"events": sorted([event.name, event.is_async, event.input_shapes,
                              event.is_async and event.self_cpu_time_total,
                              event.cpu_parent.name if event.cpu_parent else None]
                             for event in profiled.events()),
            "async": {key: row.is_async for key, row in rows.items()},
            "waiting": rows["gloo:all_reduce"].self_cpu_time_total,
            "steps": step.split()[3]}


run()
answers = {}
for name, form in FORMS.items():
    theirs, ours = form(run, record_shapes=True)
    answers[name] = [described(theirs), described(ours)]
ours.save(sys.argv[1] + ".sonde")
with open(sys.argv[1], "w") as out:
    json.dump(answers, out)
dist.barrier()
dist.destroy_process_group()
