# SPDX-License-Identifier: Apache-2.0
"""Programs for a GPU, each run under torch.profiler or sonde.profile, in a process of its own.

    python workloads.py NAME torch OUT.json       the Chrome trace
    python workloads.py NAME sonde OUT.sonde      the trace
    python workloads.py NAME PROFILER OUT.averages  key_averages() with memory, as JSON
"""
import json
import sys
import warnings

import torch
from torch import nn
from torch.profiler import record_function

warnings.simplefilter("ignore")


class Bottleneck(nn.Module):
    def __init__(self, inside, width, stride):
        super().__init__()
        out = 4 * width
        self.conv1, self.bn1 = nn.Conv2d(inside, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, out, 1, bias=False), nn.BatchNorm2d(out)
        self.side = nn.Identity() if inside == out and stride == 1 else nn.Sequential(
            nn.Conv2d(inside, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        y = torch.relu(self.bn1(self.conv1(x)))
        y = torch.relu(self.bn2(self.conv2(y)))
        return torch.relu(self.bn3(self.conv3(y)) + self.side(x))


def resnet50():
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    inside = 64
    for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for index in range(count):
            layers.append(Bottleneck(inside, width, stride if index == 0 else 1))
            inside = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


class Vit(nn.Module):
    def __init__(self, depth=12, width=768, heads=12):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.position = nn.Parameter(torch.zeros(1, 197, width))
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, activation="gelu",
                                           batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Linear(width, 1000)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.position
        return self.head(self.encoder(x)[:, 0])


def work_resnet():
    model = resnet50().cuda().eval()
    x = torch.randn(8, 3, 224, 224, device="cuda")

    def run():
        with torch.no_grad():
            for _ in range(2):
                model(x)
    return run


def work_vit():
    model = Vit().cuda()
    optimizer, scaler = torch.optim.AdamW(model.parameters()), torch.amp.GradScaler("cuda")
    x, y = torch.randn(8, 3, 224, 224).pin_memory(), torch.randint(0, 1000, (8,))

    def run():
        with record_function("training step"):
            optimizer.zero_grad()
            with torch.autocast("cuda"):
                loss = nn.functional.cross_entropy(model(x.to("cuda", non_blocking=True)), y.to("cuda"))
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    return run


def work_bert():
    layer = nn.TransformerEncoderLayer(768, 12, 3072, dropout=0.0, batch_first=True)
    model = nn.TransformerEncoder(layer, 12, enable_nested_tensor=False).cuda().train()
    x = torch.randn(8, 128, 768, device="cuda")

    def run():
        model(x).sum().backward()
    return run


def work_compile():
    @torch.compile
    def function(a, b):
        return torch.nn.functional.gelu(a @ b + 1).sum(1)
    a, b = torch.randn(64, 64, device="cuda"), torch.randn(64, 64, device="cuda")

    def run():
        for _ in range(3):
            function(a, b)
    return run


def small():
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(),
                         nn.Linear(8 * 16 * 16, 10))


def work_graph():
    model, x = small().cuda().eval(), torch.randn(4, 3, 16, 16, device="cuda")
    with torch.no_grad():
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                model(x)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            work_graph.result = model(x)

    def run():
        for _ in range(3):
            with record_function("replay"):
                graph.replay()
    return run


def work_streams():
    a = torch.randn(512, 512, device="cuda")
    one, two = torch.cuda.Stream(), torch.cuda.Stream()
    host = torch.empty(512, 512).pin_memory()

    def run():
        for _ in range(3):
            with torch.cuda.stream(one):
                b = a @ a
            with torch.cuda.stream(two):
                torch.zeros(1 << 16, device="cuda").add_(1)
            two.wait_stream(one)
            with torch.cuda.stream(two):
                host.copy_(b, non_blocking=True)
                b.clone()
            torch.cuda.synchronize()
    return run


def work_train():
    model = small().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=.1, momentum=.9)
    x, y = torch.randn(16, 3, 16, 16).pin_memory(), torch.randint(0, 10, (16,))

    def run():
        for _ in range(3):
            xs, ys = x.to("cuda", non_blocking=True), y.to("cuda")
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(xs), ys)
            loss.backward()
            optimizer.step()
            loss.item()
    return run


def make(name):
    torch.manual_seed(0)
    run = globals()[f"work_{name}"]()
    for _ in range(3):
        run()
    torch.cuda.synchronize()
    return run


def averages(result):
    names = ("count", "cpu_memory_usage", "self_cpu_memory_usage", "device_memory_usage",
             "self_device_memory_usage", "device_time_total", "self_device_time_total")
    return {f"{row.key} {str(row.device_type).split('.')[-1]}": {name: getattr(row, name) for name in names}
            for row in result.key_averages()}


def main():
    name, profiler, out = sys.argv[1:]
    run = make(name)
    with_memory = out.endswith(".averages")
    if profiler == "torch":
        from torch.profiler import ProfilerActivity, profile
    else:
        from sonde import ProfilerActivity, profile
    torch.cuda.reset_peak_memory_stats()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], profile_memory=with_memory,
                 record_shapes=with_memory) as result:
        run()
    if with_memory:
        found = {"rows": averages(result), "peak": torch.cuda.max_memory_allocated()}
        if profiler == "sonde":
            result.save(out + ".sonde")
        with open(out, "w") as file:
            json.dump(found, file)
    elif profiler == "torch":
        result.export_chrome_trace(out)
    else:
        result.save(out)
        result.export_chrome_trace(out + ".json")


if __name__ == "__main__":
    main()
