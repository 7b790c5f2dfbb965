# SPDX-License-Identifier: Apache-2.0
"""sonde.layers and `sonde layers`: what each layer of a model costs, for PipeEdge's scheduler.

    >>> sonde.layers("google/vit-base-patch16-224", batch_size=8, iterations=10)
    >>> sonde.layers(my_model, batch_size=(1, 8), shape_input=[(3, 32, 32)], results="mine.yml")
    >>> sonde.layers(my_model, batch_size=8, shape_input="ids=128:int64,mask=128:bool")

Python builds the model and runs it (_profile.py, _cut.py, _run.py); the
numbers and the file come from the C library, which reads them from the trace.
"""
import os
import sys
import tempfile
import time

from .._core import Error
from ..model._spec import Input, parse_inputs

DEFAULT_MODEL = "google/vit-base-patch16-224"
DEFAULT_RESULTS = "profiler_results.yml"
EXIT_NO_TORCH = 78  # src/cli/process/find_python.h


class LayersError(Error):
    """One line: what was tried and why it failed; `results`: the files with what was measured."""

    def __init__(self, text, results=()):
        super().__init__(text)
        self.results = list(results)


class Layers:
    """What was written: `results`, a file for each batch size; `traces` where they were kept."""

    def __init__(self):
        self.results, self.traces, self.same = [], [], {}

    def __repr__(self):
        return f"<sonde.layers {', '.join(self.results)}>"


def results_path(path, batch, count):
    """With several batch sizes, `x.yml` becomes `x_b8.yml`."""
    root, ending = os.path.splitext(path)
    return path if count == 1 else f"{root}_b{batch}{ending}"


# ------------------------------------------------------------------------- the whole

def layers(model=DEFAULT_MODEL, inputs=None, *, name=None, results=DEFAULT_RESULTS, device=None,
           model_file=None, layer_start=1, layer_end=None, shape_input=None, batch_size=8,
           warmup=True, iterations=1, cut=(), paired=False, memory="weights", rss=False,
           repeat_once=False, resume=False, backward=False, whole=False, trace=None,
           progress=None):
    """Measures every layer of `model` and writes PipeEdge's profiler_results.yml.

    `model` is one of PipeEdge's names, a SPEC (torchvision:NAME, package.module:callable,
    file.py:callable) or a module, which is run as it is: call its eval() before. The options are
    those of `sonde layers` (see its manual), which also measures RSS: that forks this process, so
    here it is done only with rss=True or memory="rss". `inputs`: a tensor, several, or a dict of them
    by name; `shape_input` instead: shapes without the batch, or the text of --input. LayersError when a layer
    fails; what was measured is in the file then. `progress` is called with a line of text now and then.
    """
    from ._profile import Options, Source, check
    from ..model._spec import SpecError, device_of
    sizes = [batch_size] if isinstance(batch_size, int) else list(batch_size)
    if inputs is not None:
        inputs = inputs if isinstance(inputs, dict) else (
            tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,))
        sizes = [_batch_of(inputs)]
    options = Options(
        inputs=inputs, weights=model_file and os.fspath(model_file), layer_start=layer_start,
        layer_end=layer_end, shapes=None, batch_sizes=sizes, warmup=warmup, iterations=iterations,
        cut=tuple(filter(None, cut.split(",") if isinstance(cut, str) else cut or ())),
        paired=paired, memory=memory, rss=rss, repeat_once=repeat_once, resume=resume,
        backward=backward, whole=whole, tell=progress or (lambda text: None))
    made = Layers()
    try:
        options.shapes = _shapes(shape_input)
        check(options)
        options.device = device_of(str(device or "cpu"))
        source = Source(model, name, options)
        for batch in sizes:
            _profile(source, batch, os.fspath(results), trace, options, made)
    except SpecError as error:
        raise LayersError(str(error), made.results) from error
    return made


def _batch_of(inputs):
    """The first dimension of the first tensor that has one; 1: none has."""
    tensors = inputs.values() if isinstance(inputs, dict) else inputs
    return next((len(one) for one in tensors if getattr(one, "ndim", 0) > 0), 1)


def _shapes(given):
    """Of Input: from the text of --input, or from shapes; None: the model's own."""
    if isinstance(given, str):
        return parse_inputs(given)
    return [one if isinstance(one, Input) else Input(tuple(one)) for one in given] if given else None


def _profile(source, batch, results, trace, options, made):
    from ._profile import Profile
    from ._run import LayerFailed
    path = results_path(results, batch, len(options.batch_sizes))
    with tempfile.TemporaryDirectory(prefix="sonde-layers-") as folder:
        kept = trace and results_path(os.fspath(trace), batch, len(options.batch_sizes))
        profile = Profile(source, batch, path, kept or os.path.join(folder, "layers.sonde"),
                           options)
        try:
            failed = profile.run()
        except LayerFailed as error:
            failed = error
    made.same.update({(batch, number): like for number, like in profile.same.items()})
    if kept:
        made.traces.append(kept)
    if failed is None:
        made.results.append(path)
        return
    have = os.path.exists(path)
    raise LayersError(f"{source.name}, batch size {batch}: {failed}"
                      + (f"; what was measured before it is in {path}" if have else ""),
                      [*made.results, *([path] if have else [])]) from failed


# ------------------------------------------------------------------------- the command

def _parser():
    import argparse
    parser = argparse.ArgumentParser(prog="sonde layers", add_help=False)
    parser.add_argument("spec", nargs="?")
    parser.add_argument("-o", "--output", "--results-yml", dest="results_yml", default=DEFAULT_RESULTS)
    parser.add_argument("-d", "--device")
    parser.add_argument("-m", "--model-name")
    parser.add_argument("-M", "--model-file")
    parser.add_argument("-l", "--layer-start", type=int, default=1)
    parser.add_argument("-L", "--layer-end", type=int)
    parser.add_argument("-s", "--input", "--shape-input", dest="shape_input", action="append")
    parser.add_argument("-b", "--batch", "--batch-size", dest="batch_size", default="8")
    parser.add_argument("-w", "--warmup", action="store_true", default=True)
    parser.add_argument("--no-warmup", action="store_false", dest="warmup")
    parser.add_argument("-i", "--iterations", type=int, default=1)
    parser.add_argument("--cut", default="")
    for flag in ("paired", "repeat-once", "resume", "backward", "whole"):
        parser.add_argument(f"--{flag}", action="store_true")
    parser.add_argument("--memory", default="weights")
    parser.add_argument("--trace")
    return parser


def _numbers(option, text):
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise LayersError(f"--{option} {text}: expected comma-separated integers") from None


def _say(text):
    print(f"sonde: layers: {text}", file=sys.stderr)


class _Progress:
    """Progress on a terminal, once it takes longer than two seconds."""

    def __init__(self):
        self.start, self.shown = time.monotonic(), False

    def __call__(self, text):
        if sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and time.monotonic() - self.start > 2:
            print(f"\r\033[Ksonde: layers: {text}", end="", file=sys.stderr, flush=True)
            self.shown = True

    def clear(self):
        if self.shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def _run(given, progress):
    if given.spec and given.model_name:
        raise LayersError(f"{given.spec}, {given.model_name}: give one model")
    made = layers(given.spec or given.model_name or DEFAULT_MODEL, results=given.results_yml,
                  device=given.device, model_file=given.model_file, layer_start=given.layer_start,
                  layer_end=given.layer_end,
                  shape_input=";".join(given.shape_input or ()) or None,
                  batch_size=_numbers("batch", given.batch_size), warmup=given.warmup,
                  iterations=given.iterations, cut=given.cut, paired=given.paired,
                  memory=given.memory, rss=True, repeat_once=given.repeat_once, resume=given.resume,
                  backward=given.backward, whole=given.whole, trace=given.trace,
                  progress=progress)
    progress.clear()
    if made.same:
        _say(f"layers identical to an earlier one, which were not run and "
             f"have its times (same_as): {len(made.same)}")
    if sys.stderr.isatty():
        _say(f"wrote {', '.join(made.results)}")


def main(arguments=None):
    """The exit status; called by `sonde layers`."""
    from ..torch._installed import torch_module
    if torch_module() is None:
        return EXIT_NO_TORCH
    progress, given = _Progress(), _parser().parse_args(arguments)
    try:
        _run(given, progress)
    except Error as error:
        progress.clear()
        _say(str(error))
        return 1
    except KeyboardInterrupt:
        progress.clear()
        _say("interrupted; what was measured is kept; continue with --resume")
        return 130
    except Exception as error:  # somewhere in torch's or the user's code: one line, not a traceback
        if os.environ.get("SONDE_TRACEBACK"):
            raise
        from ..model._structures import describe_error
        progress.clear()
        model = given.spec or given.model_name or DEFAULT_MODEL
        _say(f"{model}: {describe_error(error)} (SONDE_TRACEBACK=1 shows where)")
        return 1
    return 0
