# SPDX-License-Identifier: Apache-2.0
"""Collectives of NCCL: what they transfer is what torch.profiler says. One GPU is a group of one."""
import json
import os

import pytest
from gpu_tools import python

PROGRAM = """
import sys, torch, torch.distributed as dist
which, out = sys.argv[1:]
if which == "torch":
    from torch.profiler import ProfilerActivity, profile
else:
    from sonde import ProfilerActivity, profile
dist.init_process_group("nccl", init_method=f"file://{out}.group", rank=0, world_size=1, device_id=torch.device("cuda:0"))
a, b = torch.ones(1000, device="cuda"), torch.empty(1000, device="cuda")
h = torch.ones(64, dtype=torch.bfloat16, device="cuda")
def run():
    dist.all_reduce(a)
    dist.all_reduce(h)
    dist.all_gather_into_tensor(b, a)
    dist.reduce_scatter_tensor(b, a)
    dist.broadcast(a, 0)
    dist.all_to_all_single(b, a)
    dist.reduce(a, 0)
    dist.all_reduce(a, async_op=True).wait()
    dist.barrier()
    torch.cuda.synchronize()
run()
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True) as result:
    run()
result.export_chrome_trace(out)
dist.destroy_process_group()
"""
OWN = {"External id", "Ev Idx", "Record function id", "Seq", "Comms Id"}


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    torch = pytest.importorskip("torch")
    if not torch.distributed.is_available() or not torch.distributed.is_nccl_available():
        pytest.skip("torch was built without NCCL")
    folder = tmp_path_factory.mktemp("nccl")
    (folder / "program.py").write_text(PROGRAM)
    found = []
    for which in ("torch", "sonde"):
        path = os.fspath(folder / f"{which}.json")
        python(folder / "program.py", which, path)
        with open(path) as file:
            found.append(json.load(file)["traceEvents"])
    return found


def arguments(events, name):
    found = sorted((event for event in events if event.get("name") == name and event.get("ph") == "X"),
                   key=lambda event: event["ts"])
    return [{key: value for key, value in event["args"].items() if key not in OWN} for event in found]


def test_collectives_have_their_sizes(both):
    theirs, mine = (arguments(events, "record_param_comms") for events in both)
    assert mine == theirs
    assert [one["Collective name"] for one in mine][:3] == ["allreduce", "allreduce", "_allgather_base"]
    assert [(one["In msg nelems"], one["dtype"]) for one in mine][:2] == [(1000, "Float"), (64, "BFloat16")]


def test_copies_of_a_group_of_one(both):
    """What NCCL does of one rank is copies: as many bytes, of the same operators."""
    def copies(events):
        operators = {event["args"]["External id"]: event["name"] for event in events if event.get("cat") == "cpu_op"}
        return sorted((event["args"]["bytes"], operators.get(event["args"].get("External id"), "")) for event in events
                      if event.get("cat") == "gpu_memcpy")
    assert copies(both[0]) == copies(both[1]) and copies(both[0])
