# SPDX-License-Identifier: Apache-2.0
"""What recording a GPU costs: ResNet-50 inference, batch 8, against torch.profiler. Needs an NVIDIA GPU.

Each profiler runs in a process of its own, in turn, ROUNDS times. In it, twelve times: a bare run of 20 iterations, then a session
of as many, which is stopped after its time was taken; the median of the differences is what that process adds. The medians of the
rounds are compared. Both have had one session before. What that first one leaves behind, in bare runs after it, is a line of its own.

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
ITERATIONS, PAIRS, EVENTS = 20, 12, 155_000

PROGRAM = r"""
import json, os, statistics, sys, time, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, sys.argv[1])
import torch, workloads
profiler, folder, iterations, pairs, many = *sys.argv[2:4], *map(int, sys.argv[4:])
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

def bare():
    run(2)
    return timed(iterations)

result = {}
if pairs:
    result["before"] = statistics.median(bare() for _ in range(pairs))
    profiled()
    both = [(bare(), profiled()) for _ in range(pairs)]
    result["bare"], result["ms"] = (statistics.median(column) for column in zip(*both))
    result["added"] = statistics.median(session - alone for alone, session in both)
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


def run(profiler, folder, pairs=0, many=0):
    done = subprocess.run([sys.executable, "-c", PROGRAM, os.path.join(os.path.dirname(HERE), "tests/gpu"),
                           profiler, folder, str(ITERATIONS), str(pairs), str(many)],
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"bench/gpu.py: the run with {profiler} failed with status {done.returncode}:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def compare_added(rounds, pairs, folder):
    """Prints what each profiler adds to an iteration, and what it leaves behind."""
    runs = {"torch": [], "sonde": []}
    for _ in range(rounds):
        for profiler, list_ in runs.items():
            list_.append(run(profiler, folder, pairs=pairs))

    def median(profiler, value):
        return statistics.median(value(one) for one in runs[profiler])

    for profiler, list_ in runs.items():
        shown = ", ".join(f"{one['bare']:.2f} +{one['added']:.2f}" for one in list_)
        print(f"    {profiler}: {shown} ms an iteration", flush=True)
    ours, theirs = (median(profiler, lambda one: one["added"]) for profiler in ("sonde", "torch"))
    bare = statistics.median(one["bare"] for list_ in runs.values() for one in list_)
    print(f"added time, of torch.profiler's    {ours / theirs:.2f} x   (at most 0.25)   bare {bare:.2f},"
          f" torch +{theirs:.2f}, sonde +{ours:.2f} ms", flush=True)
    left = {profiler: median(profiler, lambda one: one["bare"] - one["before"]) for profiler in runs}
    whole = {profiler: median(profiler, lambda one: one["ms"] - one["before"]) for profiler in runs}
    print(f"left behind by the first session    torch +{left['torch']:.2f}, sonde +{left['sonde']:.2f} ms an iteration;"
          f" with it {whole['sonde'] / whole['torch']:.2f} x: torch +{whole['torch']:.2f}, sonde +{whole['sonde']:.2f} ms", flush=True)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--pairs", type=int, default=PAIRS, help="of a bare run and a session, in each process")
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
    with tempfile.TemporaryDirectory(prefix="sonde-bench-") as folder:
        if options.rounds:
            compare_added(options.rounds, options.pairs, folder)
        if options.events:
            ours, theirs = run("sonde", folder, many=options.events), run("torch", folder, many=options.events // 6)
            print(f"stop and table of {ours['events']:,.0f} events    {ours['stop_s'] + ours['table_s']:.3f} s"
                  f"   (at most 0.1)   stop {ours['stop_s']:.3f}, table {ours['table_s']:.3f}; torch.profiler of "
                  f"{theirs['events']:,.0f}: {theirs['stop_s'] + theirs['table_s']:.1f} s", flush=True)
            ours = run("sonde", folder, many=5 * options.events)  # a file has some MiB of room left in its chunks
            ratio = ours["bytes"] / ours["events"] / (theirs["bytes"] / theirs["events"])
            print(f"trace, of torch's JSON    {ratio:.3f} x   (at most 0.05)   {ours['bytes'] / ours['events']:.1f} and "
                  f"{theirs['bytes'] / theirs['events']:.1f} bytes an event")


if __name__ == "__main__":
    main()
