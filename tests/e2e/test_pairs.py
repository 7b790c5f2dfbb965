# SPDX-License-Identifier: Apache-2.0
"""Modes together, on a program whose parts are known (programs/turns.py): no stack that cannot be, shares as they were.

Here in a few large combinations; `tools/test pairs` takes all pairs (SONDE_PAIRS=all).
"""
import collections
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

import pytest

pytest.importorskip("torch")
import warm_torch
from cli_tools import ROOT, SONDE, read, read_json

pytestmark = [pytest.mark.skipif(not SONDE, reason="the program sonde is not built: run `make`"), pytest.mark.alone]
PROGRAM = pathlib.Path(__file__).parent / "programs/turns.py"
COMPILER = shutil.which("cc") or shutil.which("gcc")
PARTS = ("pure", "product", "learns", "waits", "launches")
INNER = {"multiply": "product", "learn": "learns", "launch": "launches"}
THREADS = {"": ("main", "other"), ".child": ("child main", "child other")}

MODES = {
    "sample": ("--sample", "1000"),
    "native": ("--sample", "1000", "--native"),
    "ops": ("--ops",),
    "memory": ("--memory",),
    "functions": ("--functions",),
    "timeline": ("--functions", "--timeline"),
    "lines": ("--lines", "turns.py:multiply"),
    "gpu": ("--gpu",),
    "heap": ("--heap=sampled",),
}
TOGETHER = [("sample", "ops", "memory", "gpu"), ("native", "timeline", "ops")]
ATTACHED = [("ops",)]
ALL = os.environ.get("SONDE_PAIRS") == "all"  # in processes of their own, as a user starts them
# Short parts are for a quiet machine: beside other work `sonde attach` was off by up to 1.6 points there.
ROUNDS, SCALE = ("15", "1") if ALL else ("5", "3")
if ALL:
    TOGETHER += [pair for pair in itertools.combinations(MODES, 2) if pair != ("functions", "timeline")]
    ATTACHED += [(mode,) for mode in MODES if mode != "ops"]


@pytest.fixture(scope="module")
def standin(tmp_path_factory):
    if not COMPILER:
        pytest.skip("no C compiler")
    library = tmp_path_factory.mktemp("gpu") / "libstandin.so"
    subprocess.run([COMPILER, "-std=c17", "-D_GNU_SOURCE", f"-I{ROOT}/src", f"-I{ROOT}/tests", f"-I{ROOT}/include", "-shared",
                    "-fPIC", "-o", library, ROOT / "tests/gpu/standin.c", "-lpthread"], check=True)
    return library


ATTEMPTS = 1 if ALL else 4  # of `sonde attach`


def stolen():
    """Seconds in which the host gave this machine's processors to others: nothing ran here then, and no sampler, either."""
    with open("/proc/stat") as stat:
        return int(stat.readline().split()[8]) / os.sysconf("SC_CLK_TCK")


class Run:
    """One run of the program: its trace, and what it said of itself."""

    def __init__(self, folder, standin, modes, *words):
        self.modes, self.trace, self.told, self.stolen = modes, folder / "t.sonde", {}, -stolen()
        options = dict.fromkeys(itertools.chain.from_iterable(MODES[mode] for mode in modes))
        environment = {**os.environ, "SONDE_CUPTI": str(standin), "OMP_NUM_THREADS": "1"}
        python = sys.executable if ALL else warm_torch.python()
        command = [SONDE, "run", *options, "-o", self.trace, "--", python, PROGRAM, ROUNDS, folder / "told", SCALE, *words]
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        self.folder = folder

    def finish(self):
        _, errors = self.process.communicate(timeout=300)
        assert self.process.returncode == 0, errors
        self.stolen += stolen()
        for end in THREADS:
            self.told.update(json.loads((self.folder / f"told{end}").read_text()))
        return self

    def done(self, what, process=None):
        return sum(one["done"][what] for name, one in self.told.items()
                   if process is None or name in THREADS[process])

    def shares(self, names):
        """Percent of the time of each part in these threads."""
        spent = {part: sum(self.told[name]["spent"][part] for name in names) for part in PARTS}
        return percent(spent)


def percent(spent):
    whole = sum(spent.values())
    return {part: 100 * spent.get(part, 0) / whole for part in PARTS}


def function(frame):
    """The last name of a frame of a folded stack: "turns (/a/b.py:7)" is turns."""
    return frame.partition(" (")[0].rpartition(".")[2]


def judge_stack(frames):
    """What is wrong with a stack, outermost first; None: it may be."""
    names = [function(frame) for frame in frames if "turns.py:" in frame]
    parts = [name for name in names if name in PARTS]
    ranges = [frame for frame in frames if frame.startswith(("aten::", "autograd::", "cuda", "MmBackward"))
              and " (" not in frame]  # a function of a library has its file: torch's engine asks CUDA's runtime itself
    if len(parts) != len(set(parts)) or len(parts) > 1:
        return "two parts, or one twice"
    for inner, part in INNER.items():
        if inner in names and part not in parts:
            return f"{inner} outside {part}"
    if names.count("turns") > 1 or names.count("<module>") > 1:
        return "the same frames twice"
    if not ranges or not parts:  # also the first turns of torch itself
        return None
    allowed = {"product": ("aten::",), "learns": ("aten::", "autograd::", "MmBackward"), "launches": ("cuda",)}.get(parts[0], ())
    wrong = [name for name in ranges if not name.startswith(allowed)]
    return f"{wrong[0]} in {parts[0]}" if wrong else None


def judge_samples(run, trace, names):
    wrong = collections.Counter()
    whole = 0
    for line in read("export", trace, "--to", "folded", "-o", "-").decode().splitlines():
        stack, _, _ = line.rpartition(" ")
        whole += 1
        reason = judge_stack(stack.split(";"))
        if reason:
            wrong[reason, stack[-300:]] += 1
    assert whole > 10
    assert not wrong, wrong
    judge_times(run, trace, names)


class Off(AssertionError):
    """Shares that are not what they were."""


def judge_times(run, trace, names):
    """By thread: the times that samples stand for follow each other, and are divided as the thread divided its own."""
    exported = read_json("export", trace, "--to", "json", "-o", "-")
    threads = {(exported["processes"][t["process"]]["pid"], t["tid"]): i for i, t in enumerate(exported["threads"])}
    ours = {threads[run.told[name]["pid"], run.told[name]["tid"]] for name in names}
    ends, spent, doubt, before = {}, collections.defaultdict(collections.Counter), collections.Counter(), {}
    for event in exported["events"]:
        if event["kind"] != "sample" or event["thread"] not in ours:  # the kernel's samples of native threads: each has a period
            continue
        thread, covered = event["thread"], event["covered_ns"]
        assert event["time_ns"] - covered >= ends.get(thread, 0), "samples of a thread overlap"
        ends[thread] = event["time_ns"]
        part = next((name for name in map(short, event.get("stack", [])) if name in PARTS), None)
        if part:
            spent[thread][part] += covered
        if part != before.get(thread):  # it changed somewhere between two samples: so much is not known
            doubt[thread] += (covered / max(1, event["samples"])) ** 2 / 12
        before[thread] = part
    for name in names:
        one = run.told[name]
        thread = threads[one["pid"], one["tid"]]
        found, true = percent(spent[thread]), run.shares([name])
        # A busy machine lets the sampler run late. What samples cannot tell then is three deviations; and who is to run, waits.
        allowed = max(1, 300 * doubt[thread] ** 0.5 / sum(spent[thread].values())) * max(1, os.getloadavg()[0] / os.cpu_count())
        allowed += 100 * run.stolen / sum(one["spent"].values())
        if any(abs(found[part] - true[part]) > allowed for part in PARTS):
            raise Off((name, found, true, allowed))


def short(frame):
    return frame["function"].rpartition(".")[2]


def judge_functions(run):
    """Whichever process and thread it was: calls are not sampled."""
    rows = read_json("report", run.trace, "--view", "functions", "--json", "--rows", "-1")["rows"]
    calls = {row["function"].rpartition(".")[2]: row for row in rows if "turns.py" in (row.get("file") or "")}
    for inner, done in (("multiply", "multiply"), ("learn", "learn")):
        assert calls[inner]["calls"] == run.done(done)
    found, true = percent({part: calls[part]["total_ns"] for part in PARTS}), run.shares(run.told)
    assert all(abs(found[part] - true[part]) <= 1 for part in PARTS), (found, true)


def judge_ops(run):
    rows = {row["key"]: row for row in read_json("report", run.trace, "--view", "ops", "--json", "--rows", "-1")["rows"]}
    products = run.done("multiply") + 2 * run.done("learn")
    assert rows["aten::mm"]["count"] == products
    if "memory" in run.modes:
        assert rows["aten::mm"]["cpu_memory_usage"] == products * 64 * 64 * 4


def judge_lines(run):
    rows = read_json("report", run.trace, "--view", "lines", "--json", "--rows", "-1")["rows"]
    assert sum(row["hits"] for row in rows if "torch.mm(left, left)" in (row.get("source") or "")) == run.done("multiply")


def judge_gpu(run):
    rows = read_json("report", run.trace, "--view", "kernels", "--json")["rows"]
    assert sum(row["count"] for row in rows) == run.done("launch", "")


def judge_heap(run):
    assert read_json("report", run.trace, "--view", "heap", "--json")["rows"]


JUDGES = {"ops": judge_ops, "memory": judge_ops, "functions": judge_functions, "timeline": judge_functions, "lines": judge_lines,
          "gpu": judge_gpu, "heap": judge_heap}


@pytest.mark.parametrize("modes", TOGETHER, ids="+".join)
def test_modes_together(tmp_path, standin, modes):
    run = Run(tmp_path, standin, modes).finish()
    if {"sample", "native"} & set(modes):
        judge_samples(run, run.trace, run.told)
    for judge in dict.fromkeys(JUDGES[mode] for mode in modes if mode in JUDGES):
        judge(run)


def attach(folder, standin, modes):
    run = Run(folder, standin, modes, "wait")
    pid = run.process.stdout.readline().strip()
    trace = folder / "attached.sonde"
    with subprocess.Popen([SONDE, "attach", pid, "--sample", "1000", "-o", trace], stderr=subprocess.PIPE, text=True) as observer:
        deadline = time.monotonic() + 60
        while not trace.exists() and time.monotonic() < deadline:  # it samples from then on
            time.sleep(0.05)
        run.stolen = -stolen()
        run.finish()  # which closes what the program waits for
        _, errors = observer.communicate(timeout=60)
    assert observer.returncode == 0, errors
    judge_samples(run, trace, THREADS[""])
    return run


@pytest.mark.parametrize("modes", ATTACHED, ids="+".join)
def test_attached_to_a_program_that_records(tmp_path, standin, modes):
    """Two threads and the observer want three processors. Where there are two, one delay of some 40 ms shows; a bias shows each time."""
    for attempt in range(1, ATTEMPTS + 1):
        (tmp_path / str(attempt)).mkdir()
        try:
            run = attach(tmp_path / str(attempt), standin, modes)
            break
        except Off:
            if attempt == ATTEMPTS:
                raise
    for judge in dict.fromkeys(JUDGES[mode] for mode in modes if mode in JUDGES):
        judge(run)
