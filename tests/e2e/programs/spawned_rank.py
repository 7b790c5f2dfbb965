# SPDX-License-Identifier: Apache-2.0
"""spawned_rank.py TRACE RANK - one of two ranks that are given theirs by the program. Rank 0 records from before it has it."""
import os
import sys

import torch
import torch.distributed as dist

import sonde

trace, rank = sys.argv[1], int(sys.argv[2])


def begin():
    dist.init_process_group("gloo", init_method=os.environ["RENDEZVOUS"], rank=rank, world_size=2)


def talk():
    values, both = torch.ones(1000), torch.empty(2000)
    dist.all_reduce(values)
    dist.all_gather_into_tensor(both, values)
    dist.barrier()


if rank == 1:
    begin()
    dist.new_group([1, 0])
with sonde.profile() as profile:
    if rank == 0:
        begin()
        dist.new_group([1, 0])
    talk()
profile.save(trace)
dist.destroy_process_group()
