# SPDX-License-Identifier: Apache-2.0
# The guide's "Accelerate" tabs, one after the other; on the CPU where there is no GPU.
from accelerate import Accelerator
from accelerate import ProfileKwargs
import torch
import torchvision.models as models

cpu = not torch.cuda.is_available()
model = models.resnet18()
inputs = torch.randn(5, 3, 64, 64)


def fresh(profile_kwargs):
    accelerator = Accelerator(cpu=cpu, kwargs_handlers=[profile_kwargs])
    return accelerator, accelerator.prepare(models.resnet18()), inputs.to(accelerator.device)


accelerator, model, inputs = fresh(ProfileKwargs(
    activities=["cpu"],
    record_shapes=True
))

with accelerator.profile() as prof:
    with torch.no_grad():
        model(inputs)

print(prof.key_averages().table(sort_by="cpu_time_total", row_limit=10))

accelerator, model, inputs = fresh(ProfileKwargs(
    activities=["cpu"],
    profile_memory=True,
    record_shapes=True
))

with accelerator.profile() as prof:
    model(inputs)

print(prof.key_averages().table(sort_by="self_cpu_memory_usage", row_limit=10))

accelerator, model, inputs = fresh(ProfileKwargs(
    activities=["cpu", "cuda"],
    output_trace_dir="trace"
))

with accelerator.profile() as prof:
    model(inputs)


def trace_handler(p):
    output = p.key_averages().table(sort_by="self_cuda_time_total", row_limit=10)
    print(output)
    p.export_chrome_trace("trace_" + str(p.step_num) + ".json")


accelerator, model, inputs = fresh(ProfileKwargs(
    activities=["cpu", "cuda"],
    schedule_option={"wait": 1, "warmup": 1, "active": 2, "repeat": 2, "skip_first": 1},
    on_trace_ready=trace_handler
))

with accelerator.profile() as prof:
    for idx in range(8):
        model(inputs)
        prof.step()

accelerator, model, inputs = fresh(ProfileKwargs(
    with_flops=True
))

with accelerator.profile() as prof:
    model(inputs)

print(prof.key_averages().table(sort_by="flops", row_limit=10))
