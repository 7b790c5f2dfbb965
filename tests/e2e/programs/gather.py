# SPDX-License-Identifier: Apache-2.0
"""A rank that gathers everyone's rows and adds them up; prints the sums."""
import json
import os

import torch
import torch.distributed as dist

import sonde

dist.init_process_group("gloo", init_method=os.environ["RENDEZVOUS"],
                        rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]))
x = torch.randn(4, 4)
with sonde.profile(activities=[sonde.ProfilerActivity.CPU]) as prof:
    for _ in range(dist.get_rank() + 1):
        x.mul(x)
averages, events = ([None] * dist.get_world_size() for _ in range(2))
dist.all_gather_object(averages, prof.key_averages())
dist.all_gather_object(events, list(prof.events()) * 2)
sums = {}
for rows in averages:
    for row in rows:
        sums[row.key] = sums[row.key].add(row) if row.key in sums else row
print(json.dumps({**{key: row.count for key, row in sums.items()},
                  "events": sum(len(rows) for rows in events)}))
dist.destroy_process_group()
