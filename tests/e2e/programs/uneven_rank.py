# SPDX-License-Identifier: Apache-2.0
"""uneven_rank.py TRACE KIND SLOW - a rank of a training job on gloo (RANK, WORLD_SIZE, RENDEZVOUS), recorded.

KIND: ddp, or fsdp (FSDP2's fully_shard). SLOW: what rank 2 is slow in: compute, loading, communication (its buckets go one after the
other, those of other ranks at once), or even. FSDP2 has no buckets: where communication is slow, its layers in the middle are not sharded, and
the program reduces their gradients itself.
"""
import os
import sys
import time

import torch
import torch.distributed as dist

import sonde

STEPS, USUAL, LATE = 12, 0.05, 0.15  # seconds: of a batch, and what the others wait for, in each step
WIDE = 8  # buckets at once, of a job whose communication is slow
trace, kind, slow = sys.argv[1:]
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
is_slow = rank == 2
torch.manual_seed(7)
torch.set_num_threads(1)


class Samples(torch.utils.data.Dataset):
    def __len__(self):
        return 8 * STEPS

    def __getitem__(self, index):
        if index % 8 == 0:  # a batch takes its time on every rank
            time.sleep(0 if slow == "communication" else USUAL + (LATE if is_slow and slow == "loading" else 0))
        return torch.ones(64), torch.zeros(64)


def work_more(until):
    """Operators, for as long as it takes."""
    matrix = torch.ones(200, 200)
    while time.monotonic() < until:
        matrix = torch.mm(matrix, matrix) * 1e-3


def wrap(model):
    if kind == "ddp":
        return torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.5 if slow == "communication" else 25)
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    mesh = init_device_mesh("cpu", (size,))
    whole = list(model)[1:-1] if slow == "communication" else []
    for layer in model:
        if isinstance(layer, torch.nn.Linear) and layer not in whole:
            fully_shard(layer, mesh=mesh)
    ignored = {parameter for layer in whole for parameter in layer.parameters()}
    for parameter in ignored:
        parameter.register_post_accumulate_grad_hook(lambda parameter: buckets.append(dist.all_reduce(parameter.grad, async_op=True)))
    return fully_shard(model, mesh=mesh, ignored_params=ignored)


def make_gloo(store, rank, size, timeout):
    """gloo, whose threads of rank 2 are fewer."""
    options = dist.ProcessGroupGloo._Options()
    options._threads = 1 if is_slow else WIDE
    options._timeout = timeout
    options._devices = [dist.ProcessGroupGloo.create_default_device()]
    return dist.ProcessGroupGloo(store, rank, size, options)


backend = "gloo"
if slow == "communication":
    backend = "narrow_gloo"
    dist.Backend.register_backend(backend, make_gloo, devices=["cpu"])
dist.init_process_group(backend, init_method=os.environ["RENDEZVOUS"], rank=rank, world_size=size)
layers = [torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 64)]
if slow == "communication":
    layers = [torch.nn.Linear(64, 512), *[torch.nn.Linear(512, 512) for _ in range(WIDE)], torch.nn.Linear(512, 64)]
buckets = []  # under way
model = wrap(torch.nn.Sequential(*layers))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
dist.barrier()
with sonde.profile() as profile:
    for inputs, targets in torch.utils.data.DataLoader(Samples(), batch_size=8):
        if is_slow and slow == "compute":
            work_more(time.monotonic() + LATE)
        torch.nn.functional.mse_loss(model(inputs), targets).backward()
        while buckets:
            buckets.pop(0).wait()
        optimizer.step()
        optimizer.zero_grad()
        profile.step()
profile.save(trace)
dist.destroy_process_group()
os._exit(0)  # FSDP2 leaves hooks of autograd that C's exit handlers would call without the interpreter
