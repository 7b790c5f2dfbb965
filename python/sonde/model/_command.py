# SPDX-License-Identifier: Apache-2.0
"""The Python half of `sonde model`: loads the model and runs it, recorded, into a folder.

Its arguments come from the command (src/cli/command/cmd_model.c), which has checked them and then reads the
folder. It exits with 0, with 1 after one line on stderr, or with 78 where torch is not installed.
"""
import argparse
import os
import sys

from ..torch._installed import torch_module

NO_TORCH = 78


def _parse(arguments):
    parser = argparse.ArgumentParser(prog="sonde model")
    parser.add_argument("spec")
    parser.add_argument("folder")
    parser.add_argument("--batches", required=True)
    parser.add_argument("--input")
    parser.add_argument("--dtype")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--warmup", type=int, required=True)
    parser.add_argument("--runs", type=int, required=True)
    parser.add_argument("--passes", type=int, required=True)
    parser.add_argument("--backward", action="store_true")
    parser.add_argument("--graph", action="store_true")
    return parser.parse_args(arguments)


def _teller():
    """Prints progress if stderr is a terminal; the line is erased at the end."""
    if not (sys.stderr and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"):
        return lambda text: None

    def say(text):
        sys.stderr.write(f"\r\033[K{'sonde: ' + text if text else ''}")
        sys.stderr.flush()
    return say


def _measure(asked, say):
    from . import _spec
    from ._bench import Bench
    say(f"loading {asked.spec}")
    device = _spec.device_of(asked.device)
    dtype = _spec.dtype_of(asked.dtype) if asked.dtype else None
    wanted = _spec.parse_inputs(asked.input) if asked.input else None
    model, name = _spec.load(asked.spec)
    model = model.to(device)
    if dtype is not None:
        model = model.to(dtype)
    shapes = wanted or _spec.default_shapes(asked.spec, model)
    if not shapes:
        raise _spec.SpecError(f"{asked.spec}: unknown input shape; give --input SHAPE without "
                              "the batch, such as 3x224x224 or ids=128:int64")
    first = next(model.parameters(), None)
    bench = Bench(model, asked.folder, name=asked.spec, device=device, say=say,
                  source="from --input" if wanted else _spec.shape_source(asked.spec, model))
    batches = [int(one) for one in asked.batches.split(",")]
    for batch in batches:
        inputs = _spec.make_inputs(model, shapes, batch, first.dtype if first is not None
                                   and first.is_floating_point() else
                                   dtype or _spec.dtype_of("float32"))
        bench.measure(batch, inputs, warmup=asked.warmup, runs=asked.runs, passes=asked.passes,
                      backward=asked.backward)
        if asked.graph and batch == max(batches):
            bench.measure_graph(batch, inputs, warmup=asked.warmup, runs=asked.runs,
                                passes=asked.passes)
    if asked.runs:
        bench.measure_peak()


def main(arguments):
    asked = _parse(arguments)
    if torch_module() is None:
        return NO_TORCH
    from ._bench import ModelError
    from .._core import Error
    from ._spec import SpecError
    from ._structures import describe_error
    say = _teller()
    try:
        _measure(asked, say)
    except (SpecError, ModelError, Error) as error:
        say("")
        words = str(error)
        if not isinstance(error, SpecError):
            words = f"{asked.spec}: {words}"
        print(f"sonde: model {words}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        say("")
        return 130
    except Exception as error:  # somewhere in the user's code: one line, not a traceback
        if os.environ.get("SONDE_TRACEBACK"):
            raise
        say("")
        print(f"sonde: model {asked.spec}: {describe_error(error)} (SONDE_TRACEBACK=1 shows "
              "where)", file=sys.stderr)
        return 1
    say("")
    return 0
