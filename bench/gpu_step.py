#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/gpu_step.py [--quick] [--seconds N] [--mode MODE].. - what recording adds to a training step that is bound by its host.

A GPT (12 layers, width 768, batch 4, 256 tokens; forward, backward, AdamW without foreach) launches some thousands of short
kernels a step: the GPU waits for the host, and what recording takes of the host's time is added to the step. Recorded are
operators, operators with shapes, the GPU (full and light), and both; bare and each of them in turn, round after round, in one
process, each turn a recording of its own whose start and stop are not timed. A figure is what a mode adds to the best bare turn
by its best turn, in percent; the spread is that of the paired rounds, first to ninth decile. Beside it the same of processor time, of
all threads of the process, which a busy host disturbs less. CUPTI stays attached once it was
used, so that bare turns have that, too: what it leaves behind is a line of its own, of bare turns before the first recording.
The lines below are of two floors: torch's record_function with an empty callback, without and with inputs.

Needs an NVIDIA GPU. Its figures are not put into bench/results.json, since the others are of another machine: docs/OVERHEAD.md
has them as tools/overhead states them. --cpu: a small model on the processor, without a GPU's modes, to try the program itself.
"""
import argparse
import gc
import os
import statistics
import tempfile
import time
import warnings

from figures import conclude, deciles, figure, leave_out, say

LIGHT_BUDGET = 3  # percent of the step
SECONDS = 100  # of all rounds: a machine is lent for minutes
STEPS, WARM = 10, 2  # of a turn: timed, and before them
# mode: operators' options or None, the GPU's level or None, more flags of the probe by name
MODES = {
    "an empty callback": (dict(), None, "TORCH_EMPTY"),
    "an empty callback with inputs": (dict(shapes=True), None, "TORCH_EMPTY"),
    "operators": (dict(), None, None),
    "operators with shapes": (dict(shapes=True), None, None),
    "GPU": (None, "full", None),
    "GPU light": (None, "light", None),
    "operators, GPU": (dict(), "full", None),
    "operators, GPU light": (dict(), "light", None),
    "operators with shapes, GPU": (dict(shapes=True), "full", None),
    "operators with shapes, GPU light": (dict(shapes=True), "light", None),
}
BUDGETS = {"GPU light": LIGHT_BUDGET}
warnings.simplefilter("ignore")
os.environ.setdefault("KINETO_LOG_LEVEL", "99")


def make_step(torch, device, layers, width, batch, tokens, heads):
    """One training step of a GPT, as a function."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            q, k, v = (one.view(batch, tokens, heads, width // heads).transpose(1, 2)
                       for one in self.qkv(self.before(x)).split(width, dim=2))
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(batch, tokens, width))
            return x + self.down(nn.functional.gelu(self.up(self.between(x))))

    class GPT(nn.Module):
        def __init__(self, words=8192):
            super().__init__()
            self.words, self.places = nn.Embedding(words, width), nn.Embedding(tokens, width)
            self.blocks = nn.ModuleList(Block() for _ in range(layers))
            self.last, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

        def forward(self, text, places):
            x = self.words(text) + self.places(places)
            for block in self.blocks:
                x = block(x)
            return self.head(self.last(x))

    torch.manual_seed(1)
    torch.set_float32_matmul_precision("high")
    model = GPT().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=False, fused=False)
    text = torch.randint(0, 8192, (batch, tokens + 1), device=device)
    places = torch.arange(tokens, device=device)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            logits = model(text[:, :-1], places)
            loss = nn.functional.cross_entropy(logits.view(-1, logits.size(-1)), text[:, 1:].reshape(-1))
        loss.backward()
        optimizer.step()
    return step


class Bench:
    """The step, run bare and recorded."""

    def __init__(self, torch, step, device, folder):
        self.torch, self.step, self.device, self.path = torch, step, device, os.path.join(folder, "step.sonde")

    def wait(self):
        if self.device.type == "cuda":
            self.torch.cuda.synchronize()

    def timed(self, steps=STEPS):
        """Milliseconds of a step, and the process's processor time: the mean, with the GPU's rest of the last one."""
        for _ in range(WARM):
            self.step()
        self.wait()
        begin, spent = time.perf_counter(), time.process_time()
        for _ in range(steps):
            self.step()
        self.wait()
        return (time.perf_counter() - begin) / steps * 1e3, (time.process_time() - spent) / steps * 1e3

    def host(self, steps=STEPS):
        """The same until the host has launched the last one: as much as the whole where the host is what is waited for."""
        self.wait()
        begin = time.perf_counter()
        for _ in range(steps):
            self.step()
        launched = time.perf_counter()
        self.wait()
        return (launched - begin) / (time.perf_counter() - begin)

    def recorded(self, operators, level, flags, steps=STEPS):
        from sonde import _record
        from sonde.torch import _attach, _cuda
        _record.start(self.path)
        if operators is None:
            _cuda.start(False, level)
        else:
            _attach.attach(**operators, cuda=level, more_flags=getattr(_record, flags) if flags else 0)
        try:
            return self.timed(steps)
        finally:
            (_cuda.stop if operators is None else _attach.detach)()
            _record.stop()

    def count(self, level):
        """(ranges, works of the GPU) of a step."""
        from sonde import Trace
        import json

        def rows(view):
            return json.loads(trace.report(view=view, rows=-1, format="json"))["rows"]

        both = []
        for steps in (1, 2):  # what is not a step's, and the warm-up, are in both
            self.recorded(dict(), level, None, steps)
            with Trace(self.path) as trace:
                works = sum(row["count"] for row in rows("kernels")) if level else 0
                both.append((sum(row["count"] for row in rows("ops")) - works, works))
        return tuple(two - one for one, two in zip(*both))


def measure(bench, modes, seconds, least, most):
    """{mode: [(ms, processor ms) of each round]}; the order turns round each time, so that none always follows the same one."""
    times = {"bare": [], **{mode: [] for mode in modes}}
    end = time.perf_counter() + seconds
    gc.disable()
    for number in range(most):
        if number >= least and time.perf_counter() >= end:
            break
        for mode in list(times)[::1 if number % 2 else -1]:
            times[mode].append(bench.timed() if mode == "bare" else bench.recorded(*modes[mode]))
        gc.collect()
    gc.enable()
    return times


def figures(both, before):
    times, spent = ({mode: [one[part] for one in found] for mode, found in both.items()} for part in (0, 1))
    bare, middle = min(times["bare"]), statistics.median(times["bare"])
    yield figure("gpt_bare", "GPT step, bare", bare, "ms", median=middle, spread=deciles(times["bare"]))
    yield figure("gpt_left", "what the first recording leaves behind in bare steps", (bare / before - 1) * 100, "%",
                 both=f"before it {before:.2f} ms")
    for mode, found in times.items():
        if mode == "bare":
            continue
        pairs = [(one / other - 1) * 100 for one, other in zip(found, times["bare"])]
        name = "gpt_" + mode.replace(", ", "_").replace(" ", "_").lower()
        yield figure(name, f"GPT step, {mode}: added", (min(found) / bare - 1) * 100, "%", BUDGETS.get(mode), deciles(pairs),
                     median=statistics.median(pairs),
                     both=f"{min(found) - bare:+.2f} ms by the best turns, {statistics.median(found) - middle:+.2f} ms by the medians; "
                          f"{(min(found) / before - 1) * 100:+.1f} % over the steps before the first recording")
        yield figure(f"{name}_cpu", f"GPT step, {mode}: added processor time", (min(spent[mode]) / min(spent["bare"]) - 1) * 100, "%",
                     both=f"{min(spent[mode]):.2f} and {min(spent['bare']):.2f} ms")


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--quick", action="store_true", help="three rounds")
    options.add_argument("--seconds", type=float, default=SECONDS, help="of all rounds; 4 rounds are made in any case")
    options.add_argument("--cpu", action="store_true", help="try the program without a GPU")
    options.add_argument("--mode", action="append", choices=MODES, metavar="MODE", help="this one alone, and others given so, such as 'GPU light'")
    options = options.parse_args()
    try:
        import torch
        from sonde import Error
        from sonde.torch import _attach
        _attach.library()
    except (ImportError, Error) as error:
        leave_out("GPT step", error)
    if not options.cpu and not torch.cuda.is_available():
        leave_out("GPT step", "there is no NVIDIA GPU that torch can use")
    device = torch.device("cpu" if options.cpu else "cuda")
    size = dict(layers=2, width=32, batch=1, tokens=8, heads=2) if options.cpu else dict(
        layers=12, width=768, batch=4, tokens=256, heads=12)
    modes = {mode: how for mode, how in MODES.items() if not (options.cpu and how[1]) and mode in (options.mode or MODES)}
    with tempfile.TemporaryDirectory(prefix="sonde-bench-") as folder:
        bench = Bench(torch, make_step(torch, device, **size), device, folder)
        for _ in range(5):
            bench.step()
        before = min(bench.timed() for _ in range(3 if options.quick else 6))[0]
        ranges, works = bench.count(None if options.cpu else "full")
        found = [say(figure("gpt_ranges", "GPT step: ranges of operators and CUDA's calls", ranges, "",
                            both=f"{works} kernels, copies and fills; the host launches for {bench.host():.0%} of the step"))]
        times = measure(bench, modes, options.seconds, *((3, 3) if options.quick else (4, 40)))
        found += map(say, figures(times, before))
    conclude(found, keeps=False)


if __name__ == "__main__":
    main()
