# SPDX-License-Identifier: Apache-2.0
"""Advice: each pattern is found in a program that has it, at the right line, and in none that does not.

What needs a GPU is of traces made by `gen advice` (tests/gen/gen_advice.c), and of traces of an H200
(tests/gpu/faults.py); the rest runs here.
"""
import gzip
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import warm_torch
from cli_tools import SONDE, generate, needs_tools, read, read_json, sonde
from native_tools import needs_samples
from page_tools import Opened, needs_page

pytestmark = needs_tools
TESTS = pathlib.Path(__file__).parent.parent
ROOT_OR_LEVEL = os.geteuid() == 0 or int(open("/proc/sys/kernel/perf_event_paranoid").read()) <= 1


def advice(trace):
    """By name, of the view and of the summary, which are the same."""
    rows = read_json("report", trace, "--view", "advice", "--json")["rows"]
    assert read_json("report", trace, "--view", "summary", "--json")["totals"]["advice"] == rows
    assert all(re.search(r"\d", row["text"]) and row["try"].endswith(".") for row in rows)
    return {row["name"]: row for row in rows}


# ------------------------------------------------------------------ programs on a GPU, synthetic

GPU = {  # bit of `gen advice`: the pattern, its line or range
    1: ("item-in-loop", "/home/me/train.py:66"),
    2: ("synchronise", "/home/me/train.py:67"),
    4: ("gpu-idle", "/home/me/train.py:68"),
    8: ("tiny-kernels", "/home/me/train.py:61"),
    16: ("pageable-copies", "/home/me/train.py:41"),
    32: ("no-tensor-cores", "/home/me/train.py:52"),
    64: ("slow-steps", "/home/me/train.py:77"),
    128: ("recompilations", "/home/me/train.py:34"),
    256: ("loader-without-workers", "/home/me/train.py:33"),
    512: ("loader-too-slow", "/home/me/train.py:33"),
    1024: ("memory-peak", "Net.embedding"),
    2048: ("fragmentation", None),
}


@pytest.mark.parametrize("bit", [0, *GPU])
def test_what_is_wrong_with_a_program_on_a_gpu_is_said_and_nothing_else(tmp_path, bit):
    generate("advice", tmp_path / "t.sonde", str(bit))
    found = advice(tmp_path / "t.sonde")
    if bit == 8:  # a GPU that waits for each of many kernels waits for the host
        found.pop("gpu-idle")
    assert {name: row["place"] for name, row in found.items()} == dict([GPU[bit]] if bit else [])


def test_what_follows_the_last_step_is_no_slow_step(tmp_path):
    """A program that saves its model, or whose interpreter takes long to end."""
    generate("advice", tmp_path / "t.sonde", "4096")
    assert [row["part"] for row in read_json("report", tmp_path / "t.sonde", "--view", "steps", "--json")["rows"]][-1] == "after"
    assert advice(tmp_path / "t.sonde") == {}


# What tests/gpu/faults.py says of itself, recorded on an H200: the line that ends with this word, or a range.
HOST = "code outside of any range"
RECORDED = {
    "good": {},
    "item": {"item-in-loop": "# item", "gpu-idle": HOST},
    "synchronise": {"synchronise": "cudaDeviceSynchronize", "gpu-idle": HOST},  # a call without a stack
    "late": {"gpu-idle": "# late"},
    "tiny": {"tiny-kernels": "# tiny", "gpu-idle": "# tiny"},
    "copies": {"pageable-copies": "# copies"},
    "plain": {"no-tensor-cores": "# plain"},
    "peak": {"memory-peak": "Net.wide", "no-tensor-cores": "# peak"},
    "fragments": {"fragmentation": None, "memory-peak": "aten::empty", "gpu-idle": "# fragments"},
}


@pytest.mark.parametrize("fault", RECORDED)
def test_what_is_wrong_with_a_program_on_an_h200_is_said_and_nothing_else(tmp_path, fault):
    program = (TESTS / "gpu/faults.py").read_text().splitlines()
    lines = {f"# {line.rpartition('# ')[2]}": f"/tmp/f/train.py:{number}" for number, line in enumerate(program, 1) if "  # " in line}
    (tmp_path / "t.sonde").write_bytes(gzip.decompress((TESTS / f"data/gpu/advice/{fault}.trace.gz").read_bytes()))
    assert {name: row["place"] for name, row in advice(tmp_path / "t.sonde").items()} == \
        {name: lines.get(place, place) for name, place in RECORDED[fault].items()}
    assert 1e6 < read_json("report", tmp_path / "t.sonde", "--view", "summary", "--json")["totals"]["span_ns"] < 1e8


LOADS = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
IN_JOBS = {  # what is wrong with rank 2 (gen_ranks.c), what is said
    0: {"loader-without-workers": LOADS},
    1: {"straggler": "aten::mm"},
    2: {"straggler": LOADS, "loader-without-workers": LOADS},
    5: {"unfinished-collective": None, "loader-without-workers": LOADS},
}


@pytest.mark.parametrize("wrong", IN_JOBS)
def test_what_is_wrong_with_a_job_is_said(tmp_path, wrong):
    job = generate("job", tmp_path / "job", str(wrong))
    found = advice(job)
    assert {name: row["place"] for name, row in found.items()} == IN_JOBS[wrong]
    loading = found.pop("loader-without-workers", None)
    assert all("rank 2" in row["text"] for row in found.values())
    if loading:  # of the rank that loads longest, not the sum of all ranks over the time of one
        rows = read_json("report", job, "--view", "ranks", "--json")["rows"]
        shares = {row["rank"]: 100 * row["data_loading_ns"] / row["span_ns"] for row in rows}
        worst = 2 if wrong == 2 else min(shares, key=lambda rank: (-shares[rank], rank))
        assert shares[worst] == max(shares.values())
        assert abs(loading["share"] - shares[worst]) < 0.5 and f"of the time of rank {worst} on" in loading["text"]


def test_the_numbers_of_a_sentence_are_those_of_the_views(tmp_path):
    generate("advice", tmp_path / "t.sonde", "8")
    found = advice(tmp_path / "t.sonde")
    gpu = read_json("report", tmp_path / "t.sonde", "--view", "gpu", "--json", "--rows", "-1")
    device = gpu["totals"]["devices"][0]
    assert f"{100 * device['host_late_ns'] / device['span_ns']:.0f} % of its time" in found["gpu-idle"]["text"]
    kernels = read_json("report", tmp_path / "t.sonde", "--view", "kernels", "--json", "--rows", "-1")["rows"]
    assert found["tiny-kernels"]["text"].startswith(f"{sum(row['count'] for row in kernels if row['kind'] == 'kernel')} kernels of ")
    assert [row["share"] for row in found.values()] == sorted((row["share"] for row in found.values()), reverse=True)


# ---------------------------------------------------------------------------- programs of Python

# Where the time of a busy program goes evenly, and its threads neither wait nor fight.
EVEN = """
def spin(n):
    s = 0
    for i in range(n):
        s += i * i
        s ^= i << 3
        s += s % 7
        s ^= s >> 2
        s += i * 3
        s ^= i >> 1
        s += s % 5
        s ^= s >> 3
        s += i * 7
        s ^= i << 2
    return s
spin(800000)
"""
PROGRAMS = {  # name: (text, the pattern, line)
    "even": (EVEN, None, 0),
    "hot": ("""
def square(values):
    return [v * v % 7 for v in values]

def main():
    total = 0
    for i in range(240):
        total += sum(square(range(20000)))

main()
""", "hot-line", 3),
    "imports": ("""
import time
import slow_module
time.sleep(0)
""", "imports", 3),
    "lock": ("""
import threading
def burn():
    s = 0
    for i in range(2500000):
        s += i * i
threads = [threading.Thread(target=burn) for _ in range(3)]
[t.start() for t in threads]
[t.join() for t in threads]
""", "interpreter-lock", 6),
    "queue": ("""
import queue, threading
q = queue.Queue()
threading.Timer(0.7, lambda: q.put(1)).start()
def main():
    return q.get()
main()
""", "waits-for-lock", 6),
    "pipe": ("""
import selectors, subprocess, sys
child = subprocess.Popen(["sleep", "0.7"], stdout=subprocess.PIPE)
s = selectors.DefaultSelector()
s.register(child.stdout, selectors.EVENT_READ)
def main():
    return s.select(timeout=5)
main()
""", "waits-for-io", 7),
    "sleep": ("""
import time
def main():
    for _ in range(7):
        time.sleep(0.1)
main()
""", "waits", 5),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_of_python_is_told_of_its_fault_at_its_line(tmp_path, name):
    text, pattern, line = PROGRAMS[name]
    (tmp_path / "slow_module.py").write_text("s = 0\nfor i in range(3000000):\n    s += i * i\n    s ^= 3\n")
    script = tmp_path / "program.py"
    script.write_text(text)
    done = sonde("run", "-q", "-o", tmp_path / "t.sonde", "--sample=500", "--", sys.executable, script, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = advice(tmp_path / "t.sonde")
    if pattern is None:
        assert not found
    else:
        assert found[pattern]["place"] == f"{script}:{line}", found
        waits = {"waits", "sleeps", "waits-for-lock", "waits-for-io"}
        assert not (set(found) & waits) - {pattern}


CALLS_A_MODEL = """
import sys, time
import torch
torch.set_num_threads(1)
model, x = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(4)]), torch.randn(32, 256)
def clean(values):
    return [v * v % 7 for v in values]
def turn(seconds, working):
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        if working:
            clean(range(2000))
        else:
            model(x)
def main():
    for _ in range(40):
        turn(.02, False)
        turn(float(sys.argv[1]), True)
main()
"""


@pytest.mark.parametrize("own, patterns", [(0, {"hot-call": 14}), (.01, {"hot-call": 14, "hot-line": 7}), (.06, {"hot-line": 7})])
def test_a_line_that_calls_the_model_is_no_hot_line(tmp_path, own, patterns):
    """Of the program's own work, the hot line is another; a model that takes less than that is not told of."""
    script = tmp_path / "train.py"
    script.write_text(CALLS_A_MODEL)
    done = sonde("run", "-q", "--ops", "--sample=500", "-o", tmp_path / "t.sonde", "--", warm_torch.python(), script, own)
    assert done.returncode == 0, done.stderr
    found = {name: row["place"] for name, row in advice(tmp_path / "t.sonde").items() if name.startswith("hot-")}
    assert found == {name: f"{script}:{line}" for name, line in patterns.items()}


def test_a_line_is_named_beside_imports_that_take_longer(tmp_path):
    """As in a short run of a training script: most of it is the import of torch."""
    (tmp_path / "slow_module.py").write_text("s = 0\nfor i in range(9000000):\n    s += i * i\n    s ^= 3\n")
    script = tmp_path / "program.py"
    script.write_text("import slow_module\ntotal = 0\nfor i in range(1000):\n    total += sum(range(20000))\n")
    done = sonde("run", "-q", "-o", tmp_path / "t.sonde", "--sample=500", "--", sys.executable, script, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = advice(tmp_path / "t.sonde")
    assert found["imports"]["place"] == f"{script}:1" and found["hot-line"]["place"] == f"{script}:4", found
    assert " without imports: " in found["hot-line"]["text"]


@pytest.mark.alone
def test_more_processes_than_processors_are_too_many(tmp_path):
    script = tmp_path / "program.py"
    script.write_text("import multiprocessing, sys, time\n"
                      "def burn(_):\n    end = time.monotonic() + 1\n    while time.monotonic() < end: pass\n"
                      "if __name__ == '__main__':\n"
                      "    n = int(sys.argv[1])\n    with multiprocessing.Pool(n) as pool: pool.map(burn, range(n), chunksize=1)\n")
    one = min(os.sched_getaffinity(0))
    for workers, wanted in ((4, True), (1, False)):
        trace = tmp_path / f"{workers}.sonde"
        done = sonde("run", "-q", "-o", trace, "--sample=200", "--", "taskset", "-c", str(one), sys.executable, script, str(workers))
        assert done.returncode == 0, done.stderr
        assert ("oversubscribed" in advice(trace)) == wanted


def test_what_a_native_program_sleeps_for_is_named(tmp_path):
    if not ROOT_OR_LEVEL:
        pytest.skip("the kernel does not let us see switches")
    (tmp_path / "nap.c").write_text("#include <time.h>\nvoid nap(int count)\n{\n    struct timespec t = {0, 600000000};\n"
                                    "    if (count == 1) nanosleep(&t, 0);\n    else while (clock() < CLOCKS_PER_SEC / 5);\n}\n"
                                    "int main(int count, char **words)\n{\n    (void)words;\n    nap(count);\n    return 0;\n}\n")
    subprocess.run(["cc", "-g", "-O0", tmp_path / "nap.c", "-o", tmp_path / "nap"], check=True)
    for words, place in (((), f"{tmp_path}/nap.c:5"), (("busy",), None)):
        done = sonde("run", "-q", "--off-cpu", "-o", tmp_path / "t.sonde", "--", tmp_path / "nap", *words)
        assert done.returncode == 0, done.stderr
        assert advice(tmp_path / "t.sonde").get("sleeps", {}).get("place") == place


HEAP = r"""
#include <stdlib.h>
#include <string.h>
static void *hold(size_t n) { void *p = malloc(n); memset(p, 1, n); return p; }
static void churn(void)
{
    for (int i = 0; i < 30000; i++)
        free(malloc(64));
}
static void leak(void)
{
    for (int i = 0; i < 64; i++)
        hold(65536);
}
int main(int argc, char **argv)
{
    void *kept[100];
    for (int i = 0; i < 100; i++)
        kept[i] = hold(65536);
    if (strchr(argv[1], 't'))
        churn();
    if (strchr(argv[1], 'l'))
        leak();
    for (int i = 0; i < 100; i++)
        free(kept[i]);
    if (strchr(argv[1], 'p'))
        free(hold(100 << 20));
    return argc != 2;
}
"""


@pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")
@pytest.mark.parametrize("fault,pattern,line", [("-", None, 0), ("t", "temporary-allocations", 8), ("l", "not-freed", 4), ("p", "memory-peak", 4)])
def test_what_a_program_does_with_its_heap(tmp_path, fault, pattern, line):
    (tmp_path / "heap.c").write_text(HEAP)
    subprocess.run(["cc", "-g", "-O0", tmp_path / "heap.c", "-o", tmp_path / "heap"], check=True)
    done = sonde("run", "-q", "--heap", "-o", tmp_path / "t.sonde", "--", tmp_path / "heap", fault)
    assert done.returncode == 0, done.stderr
    assert {name: row["place"] for name, row in advice(tmp_path / "t.sonde").items()} == ({pattern: f"{tmp_path}/heap.c:{line}"} if pattern else {})


OPERATORS = """
import sys
import torch
def rows(x):
    for row in x:
        row = row - row.mean()
def even(x):
    x = torch.mm(x, x)
    x = torch.mm(x, x)
    x = torch.mm(x, x)
    x = torch.mm(x, x)
    x = torch.mm(x, x)
    x = torch.mm(x, x)
    x = torch.mm(x, x)
    x = torch.mm(x, x)
torch.set_num_threads(1)
x = torch.zeros(96, 96)
for _ in range(400):
    rows(x) if 'hot' in sys.argv else even(x)
"""


def test_the_line_whose_operators_take_longest_is_told_without_samples(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(OPERATORS)
    for argument, line in (("hot", 6), ("even", None)):
        trace = tmp_path / f"{argument}.sonde"
        done = sonde("run", "-q", "--ops", "--stacks", "-o", trace, "--", warm_torch.python(), script, argument)
        assert done.returncode == 0, done.stderr
        found = advice(trace)
        assert found.get("hot-line", {}).get("place") == (line and f"{script}:{line}"), found
        if line:  # as the operators by stack have it
            rows = read_json("report", trace, "--group-by", "stack", "--json", "--rows", "-1")["rows"]
            share = sum(row["self_cpu_percent"] for row in rows if any(f"train.py({line})" in str(frame) for frame in row["stack"][:1]))
            assert share == 0 or abs(found["hot-line"]["share"] - share) < 0.5


STEPS = """
import sys, time
import sonde
for i in range(20):
    with sonde.record_function("work"):
        time.sleep({"slow": 0.01, "noisy": 0.01 * (1 + i * 7 % 5), "once": 0.01}[sys.argv[1]])
    if (sys.argv[1] == "slow" and i % 6 == 5) or (sys.argv[1] == "once" and i == 9):
        with sonde.record_function("save"):
            time.sleep(0.1)
    sonde.step()
"""


def test_steps_are_slow_that_stand_out_from_what_all_of_them_vary(tmp_path):
    """On a busy machine all of them vary, and one may take long for a reason that is not the program's."""
    script = tmp_path / "steps.py"
    script.write_text(STEPS)
    def told(how):
        trace = tmp_path / f"{how}.sonde"
        done = sonde("run", "-q", "--ops", "-o", trace, "--", warm_torch.python(), script, how)
        assert done.returncode == 0, done.stderr
        return advice(trace).get("slow-steps")

    assert told("slow")["place"] == "save"
    for how in ("noisy", "once"):  # a machine that holds up two more steps has slow ones: it is asked again
        assert None in (told(how) for _ in range(4))


LOADER = """
import sys, time
import torch
from torch.utils.data import DataLoader, Dataset
class Slow(Dataset):
    def __len__(self):
        return 32
    def __getitem__(self, i):
        time.sleep(0.02) if 'slow' in sys.argv else None  # sleep(0) gives the processor away
        return torch.ones(4)
def main():
    for batch in DataLoader(Slow(), batch_size=4, num_workers=int(sys.argv[2])):
        end = time.monotonic() + 0.05
        while time.monotonic() < end:
            batch.sum()
main()
"""


# By samples alone, by operators that have stacks, and by operators whose lines samples tell.
WAYS = {"samples": ("--sample=500",), "stacks": ("--ops", "--stacks"), "default": ()}


@pytest.mark.alone
@pytest.mark.parametrize("workers, way", [(0, "samples"), (1, "samples"), (1, "stacks"), (1, "default")])
def test_a_loader_is_told_of_where_it_costs(tmp_path, workers, way):
    pattern = "loader-too-slow" if workers else "loader-without-workers"
    script = tmp_path / "train.py"
    script.write_text(LOADER)
    def told(speed):
        done = sonde("run", "-q", *WAYS[way], "-o", tmp_path / f"{speed}.sonde", "--", warm_torch.python(), script, speed, str(workers))
        assert done.returncode == 0, done.stderr
        found = advice(tmp_path / f"{speed}.sonde")
        assert not {"loader-without-workers", "loader-too-slow"} & set(found) - {pattern}
        return found.get(pattern, {}).get("place")

    assert told("slow") == f"{script}:12"
    if workers == 0 or way != "samples":  # samples do not tell the first batch, for which the workers start, from others
        assert None in (told("quick") for _ in range(4))  # on a busy machine a worker may have to wait for a processor


COMPILED = """
import sys
import torch
@torch.compile(backend="eager", dynamic=False)
def step(x):
    return (x * 2).relu().sum()
def main():
    for i in range(160):
        step(torch.ones(8 + i // 30 if 'changing' in sys.argv else 8))
main()
"""


@pytest.mark.parametrize("way", ["stacks", "default"])
def test_code_that_is_compiled_again_and_again_is_told_of(tmp_path, way):
    script = tmp_path / "train.py"
    script.write_text(COMPILED)
    for shapes, line in (("changing", 9), ("same", None)):
        trace = tmp_path / f"{shapes}.sonde"
        done = sonde("run", "-q", *WAYS[way], "-o", trace, "--", warm_torch.python(), script, shapes)
        assert done.returncode == 0, done.stderr
        found = advice(trace)
        assert found.get("recompilations", {}).get("place") == (line and f"{script}:{line}"), found
        assert not line or " compiled code 6 times: " in found["recompilations"]["text"]
        assert way == "default" or "hot-line" not in found  # the compiler's work is no line's


LOST = """
import os, sys, time
import torch
import torch.distributed as dist
rank = int(os.environ["RANK"])
dist.init_process_group("gloo", init_method=os.environ["RENDEZVOUS"], rank=rank, world_size=2)
def main():
    for i in range(5):
        if sys.argv[1] == "lost" and i == 3:
            if rank == 1:  # it leaves once the other waits
                while not os.path.exists("waits"):
                    time.sleep(0.01)
                return time.sleep(0.3)
            open("waits", "w").close()
        dist.all_reduce(torch.ones(1000))
main()
"""


def test_a_collective_that_a_rank_never_came_to_is_told_of(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(LOST)
    for how, statuses in (("lost", [1, 0]), ("whole", [0, 0])):
        job = tmp_path / how
        job.mkdir()
        ranks = [subprocess.Popen([SONDE, "run", "-q", "--ops", "--stacks", "-o", job / f"{rank}.sonde", "--", warm_torch.python(), script, how],
                                  cwd=tmp_path, stderr=subprocess.DEVNULL,
                                  env={**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "OMP_NUM_THREADS": "1",
                                       "RENDEZVOUS": f"file://{job}/meet"}) for rank in range(2)]
        assert [rank.wait(timeout=120) for rank in ranks] == statuses
        found = advice(job).get("unfinished-collective")
        if how == "whole":
            assert found is None
        else:
            assert found["place"] == f"{script}:15"
            assert found["text"] == "The all_reduce 3 of group 0, at train.py:15 was never completed; never came: rank 1"


# ------------------------------------------------------------------------------- where it is shown

def test_it_is_printed_after_a_run_and_not_without_a_pattern(tmp_path):
    for name, pattern in (("hot", "hot-line"), ("even", None)):
        script = tmp_path / f"{name}.py"
        script.write_text(PROGRAMS[name][0])
        done = sonde("run", "--print", "--sample=500", "--", sys.executable, script)
        assert done.returncode == 0, done.stderr
        text = done.stdout.decode()
        assert ("What to try\n" in text) == (pattern is not None)
        if pattern:
            assert f"  {script}:3\n" in text.partition("What to try\n")[2]
    asked = sonde("run", "--print", "--json", "--sample=500", "--", sys.executable, tmp_path / "hot.py").stdout
    assert b"What to try" not in asked


@needs_page
def test_the_page_begins_with_it(tmp_path, browser):
    for bits, count in (("48", 2), ("0", 0)):
        trace, page = tmp_path / f"{bits}.sonde", tmp_path / f"{bits}.html"
        generate("advice", trace, bits)
        read("export", trace, "--to", "html", "-o", page)
        shown = Opened(browser, page)
        said = shown.page.locator(".advice li").evaluate_all("all => all.map(one => [one.dataset.name, one.querySelector('a').textContent, one.querySelector('code').textContent])")
        assert said == [[row["name"], row["text"], row["place"]] for row in read_json("report", trace, "--view", "advice", "--json")["rows"]]
        assert len(said) == count and shown.page.locator("#advice").count() == (count > 0)
        if count:
            first = shown.page.locator("main h2").first
            assert first.text_content() == "What to try"
            shown.page.locator(".advice a").first.click()
            shown.page.wait_for_selector(".view, .table")
        assert shown.faults == []
        shown.close()
