# SPDX-License-Identifier: Apache-2.0
"""Stacks of the calls of CUDA in events(), forward and backward, as torch.profiler has them with verbose stacks.

What autograd's engine runs between backward functions, to add gradients up, torch shows under the Python functions of the
thread that waits in backward(); in ours it has none, since no operator called it.
"""
import collections
import json

from gpu_tools import python

PROGRAM = """
import json, sys, warnings, torch
from torch import nn
warnings.simplefilter("ignore")
if sys.argv[1] == "torch":
    from torch.profiler import ProfilerActivity, profile
else:
    from sonde import ProfilerActivity, profile
from torch._C._profiler import _ExperimentalConfig

net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 16 * 16, 10)).cuda()
x = torch.randn(4, 3, 16, 16, device="cuda")

def loss_of(y):
    return (y * y).sum()

def step():
    net.zero_grad()
    loss_of(net(x)).backward()

for _ in range(3):
    step()
torch.cuda.synchronize()
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], with_stack=True,
             experimental_config=_ExperimentalConfig(verbose=True)) as result:
    step()
rows = []
for e in result.events():
    if e.name.startswith(("cudaLaunch", "cudaMemset", "cuLaunch")):
        stack = [line for line in e.stack if not line.startswith("<built-in")]
        end = next((i for i, line in enumerate(stack) if line.endswith(": step")), len(stack) - 1)
        rows.append([e.name, stack[:end + 1]])
print(json.dumps(rows))
"""


def test_stacks_of_calls(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    theirs, ours = (json.loads(python(tmp_path / "program.py", profiler).stdout.splitlines()[-1])
                    for profiler in ("torch", "sonde"))
    theirs = [[name, [] if stack and stack[0].endswith(": _engine_run_backward") else stack] for name, stack in theirs]
    counted = [collections.Counter((name, tuple(stack)) for name, stack in rows) for rows in (theirs, ours)]
    assert counted[0] == counted[1]
    assert sum(bool(stack) for _, stack in ours) > 5
