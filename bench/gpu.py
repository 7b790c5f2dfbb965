# SPDX-License-Identifier: Apache-2.0
"""What recording a GPU costs: ResNet-50 inference, batch 8, against torch.profiler. Needs an NVIDIA GPU.

Each profiler runs in a process of its own, in turn, ROUNDS times: the median of twelve sessions of 20 iterations, over
the median of twelve bare runs before them. The medians of the rounds are compared.

    python bench/gpu.py [--rounds N]
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ITERATIONS, EVENTS = 20, 155_000

PROGRAM = r"""
import json, os, statistics, sys, time, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, sys.argv[1])
import torch, workloads
profiler, iterations, many, folder = sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
model = workloads.resnet50().cuda().eval()
x = torch.randn(8, 3, 224, 224, device="cuda")

def run(count):
    with torch.no_grad():
        for _ in range(count):
            model(x)
    torch.cuda.synchronize()

def timed(count):
    start = time.perf_counter()
    run(count)
    return (time.perf_counter() - start) / count * 1e3

if profiler == "torch":
    from torch.profiler import ProfilerActivity, profile
else:
    from sonde import ProfilerActivity, profile
make = lambda: profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True)
run(20)
def profiled():
    with make():
        run(2)
        return timed(iterations)

result = {"bare": statistics.median(timed(iterations) for _ in range(12))}
profiled()
result["ms"] = statistics.median(profiled() for _ in range(12))
if many:
    with make() as one:
        run(10)
    per_run = len(one.events()) / 10
    count = max(1, int(many / per_run))
    recorded = make()
    recorded.__enter__()
    run(count)
    start = time.perf_counter()
    recorded.__exit__(None, None, None)
    stop = time.perf_counter()
    recorded.key_averages().table()
    result["events"] = per_run * count
    result["stop_s"], result["table_s"] = stop - start, time.perf_counter() - stop
    path = os.path.join(folder, profiler + (".json" if profiler == "torch" else ".sonde"))
    (recorded.export_chrome_trace if profiler == "torch" else recorded.save)(path)
    result["bytes"] = os.path.getsize(path)
print(json.dumps(result))
"""


def run(profiler, many, folder):
    done = subprocess.run([sys.executable, "-c", PROGRAM, os.path.join(os.path.dirname(HERE), "tests/gpu"),
                           profiler, str(ITERATIONS), str(many), folder],
                          check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--events", type=int, default=EVENTS, help="of the run whose stop and table are timed; 0: none")
    options = options.parse_args()
    try:
        import torch
    except ImportError as error:
        print(f"left out: GPU: {error}")
        return
    if not torch.cuda.is_available():
        print("left out: GPU: there is no NVIDIA GPU that torch can use")
        return
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, CUDA {torch.version.cuda}")
    runs = {"torch": [], "sonde": []}
    with tempfile.TemporaryDirectory(prefix="sonde-bench-") as folder:
        for _ in range(options.rounds):
            for profiler, list_ in runs.items():
                list_.append(run(profiler, 0, folder))
        added = {}
        for profiler, list_ in runs.items():
            shown = ", ".join(f"{one['bare']:.2f} -> {one['ms']:.2f}" for one in list_)
            print(f"    {profiler}: {shown} ms an iteration", flush=True)
            added[profiler] = statistics.median(one["ms"] - one["bare"] for one in list_)
        bare = statistics.median(one["bare"] for list_ in runs.values() for one in list_)
        print(f"added time, of torch.profiler's    {added['sonde'] / added['torch']:.2f} x   (at most 0.25)   bare {bare:.2f},"
              f" torch +{added['torch']:.2f}, sonde +{added['sonde']:.2f} ms", flush=True)
        if options.events:
            ours, theirs = run("sonde", options.events, folder), run("torch", options.events // 6, folder)
            print(f"stop and table of {ours['events']:,.0f} events    {ours['stop_s'] + ours['table_s']:.3f} s"
                  f"   (at most 0.1)   stop {ours['stop_s']:.3f}, table {ours['table_s']:.3f}; torch.profiler of "
                  f"{theirs['events']:,.0f}: {theirs['stop_s'] + theirs['table_s']:.1f} s", flush=True)
            ours = run("sonde", 5 * options.events, folder)  # a file has some MiB of room left in its chunks
            ratio = ours["bytes"] / ours["events"] / (theirs["bytes"] / theirs["events"])
            print(f"trace, of torch's JSON    {ratio:.3f} x   (at most 0.05)   {ours['bytes'] / ours['events']:.1f} and "
                  f"{theirs['bytes'] / theirs['events']:.1f} bytes an event")


if __name__ == "__main__":
    main()
