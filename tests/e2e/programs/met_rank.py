# SPDX-License-Identifier: Apache-2.0
"""met_rank.py TRACE RANK SIZE STEPS SLEEP - one rank over gloo: computes, rank 1 sleeps for so many seconds, all reduce."""
import os
import sys
import time

import torch
import torch.distributed as dist

import sonde

trace, rank, size, steps, sleep = sys.argv[1], *map(int, sys.argv[2:5]), float(sys.argv[5])
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=os.environ["RENDEZVOUS"], rank=rank, world_size=size)
x, values = torch.ones(64, 64), torch.ones(1000)
dist.all_reduce(values)
with sonde.profile() as profile:
    for _ in range(steps):
        torch.mm(x, x)
        if rank == 1 and sleep:
            time.sleep(sleep)
        dist.all_reduce(values)
        profile.step()
profile.save(trace)
dist.barrier()
dist.destroy_process_group()
