# SPDX-License-Identifier: Apache-2.0
"""accelerate_ranks.py FOLDER - one rank of a training step, profiled into FOLDER/trace."""
import os
import sys

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo", init_method=os.environ["RENDEZVOUS"],
                        rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]))

from accelerate import Accelerator  # noqa: E402
from sonde import ProfileKwargs  # noqa: E402

handler = ProfileKwargs(activities=["cpu"], record_shapes=True,
                        output_trace_dir=os.path.join(sys.argv[1], "trace"))
accelerator = Accelerator(cpu=True, kwargs_handlers=[handler])
model = nn.Linear(8, 4)
model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1))
with accelerator.profile() as prof:
    accelerator.backward(model(torch.randn(2, 8)).sum())
    optimizer.step()
accelerator.print(prof.key_averages().table(row_limit=5))
dist.destroy_process_group()
