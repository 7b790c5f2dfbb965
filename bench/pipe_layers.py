#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/pipe_layers.py [--quick] - what a profile of layers costs over plain forward passes.

ViT-Base, batch 8, 10 iterations and a warm-up: the time of sonde.layers, loading left out, over
that of 12 forward passes of the same model, both in one process, in turn. A figure is the ratio of
the best rounds, its spread that of the paired rounds. Needs torch and the installed package. Prints
as bench/run does and puts its figure into bench/results.json. Exit status: 1 if the budget is
missed. --quick: one round, of DeiT-tiny.
"""
import argparse
import os
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from figures import conclude, leave_out, ratio, say  # noqa: E402

BUDGET, PASSES, ITERATIONS, BATCH = 1.3, 12, 10, 8
MODEL, QUICK = "google/vit-base-patch16-224", "facebook/deit-tiny-distilled-patch16-224"


def seconds(work):
    begin = time.perf_counter()
    result = work()
    return time.perf_counter() - begin, result


def measure_round(torch, sonde, name, path):
    """Seconds of the passes, of the profile, and of loading, which both need."""
    from sonde.pipeline import _cut, _pipeedge_models as models
    size, count = models.SIZES[name], models.layer_count(name)
    loading, cut = seconds(lambda: _cut.cut_pipeedge(name, 1, count))
    values = models.make_inputs(size, 1, models.shapes_before(size, 1, size.tokens), BATCH)

    def passes():
        with torch.no_grad():
            for _ in range(PASSES):
                cut.model(*values)
    plain, _ = seconds(passes)
    del cut
    whole, _ = seconds(lambda: sonde.layers(name, results=path, batch_size=BATCH,
                                            iterations=ITERATIONS, rss=True))
    return plain, whole - loading, loading


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--quick", action="store_true")
    options = options.parse_args()
    try:
        import torch
        import sonde
        sonde.layers  # what it needs is there
    except (ImportError, AttributeError) as error:
        leave_out("profiles of layers", error)
    name = QUICK if options.quick else MODEL
    rounds = []
    with tempfile.TemporaryDirectory(prefix="sonde-bench-") as folder:
        for number in range(1 if options.quick else 3):
            rounds.append(measure_round(torch, sonde, name, f"{folder}/{number}.yml"))
    plain, profile, loading = zip(*rounds)
    conclude([say(ratio("pipe_layers_quick" if options.quick else "pipe_layers",
                        f"layers of {name.split('/')[-1]}, batch {BATCH}, {ITERATIONS} iterations, over {PASSES} passes",
                        profile, plain, BUDGET, limit=1,
                        both=f"{min(profile):.1f} s, {min(plain):.1f} s; loading {min(loading):.1f} s"))])


if __name__ == "__main__":
    main()
