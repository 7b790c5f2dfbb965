# SPDX-License-Identifier: Apache-2.0
"""sonde.layers and `sonde layers`: what each layer of a model costs, for PipeEdge's scheduler.

    >>> sonde.layers("google/vit-base-patch16-224", batch_size=8, iterations=10)
    >>> sonde.layers(my_model, batch_size=(1, 8), shape_input=[(3, 32, 32)], results="mine.yml")

Python builds the model and runs it (_layers_cut.py, _layers_run.py); the numbers and the file come
from the C library, which reads them from the trace.
"""
import os
import platform
import socket
import sys
import tempfile

from . import _core, _record
from ._core import Error

DEFAULT_MODEL = "google/vit-base-patch16-224"
DEFAULT_RESULTS = "profiler_results.yml"
EXIT_NO_TORCH = 78  # src/cli/pyfind.h


class LayersError(Error):
    """One line: what was tried, why it failed; `results` are the files that hold what was measured."""

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


# ------------------------------------------------------------------------- the model

class _Source:
    """What to profile: where layers and their inputs come from."""

    def __init__(self, model, name, options):
        import torch
        from . import _pipeedge_models as pipeedge
        from ._spec import SpecError, load
        self.options, self.known = options, None
        self.spec = model if isinstance(model, str) else ""
        if isinstance(model, str) and model in pipeedge.SIZES:
            self.known, self.name = pipeedge.SIZES[model], model
            self.model, self.count = None, pipeedge.layer_count(model)
            if options.cut:
                raise SpecError(f"{model}: PipeEdge's models have their own layers; "
                                "--cut is for other models")
            return
        if isinstance(model, str) and ":" not in model:
            raise SpecError(f"{model}: unknown model: PipeEdge's are {', '.join(pipeedge.SIZES)}; "
                            "others are torchvision:NAME, package.module:callable, file.py:callable")
        if options.paired:
            raise SpecError("--paired is for PipeEdge's models: others pass on what crosses")
        if isinstance(model, str):
            self.model = load(model)[0]
            self.name = name or model
        elif isinstance(model, torch.nn.Module):
            self.model, self.name = model, name or type(model).__name__
        else:
            raise SpecError(f"{type(model).__name__}: give a torch.nn.Module or the name of a model")
        if options.weights:
            self._load_state(options.weights)
        self.count = None

    def _load_state(self, path):
        from . import _pipeedge_models as pipeedge
        from ._spec import SpecError
        import torch
        found = {key: torch.from_numpy(value.copy())
                 for key, value in dict(pipeedge._open_weights(path)).items()}
        try:
            self.model.load_state_dict(found)
        except RuntimeError as error:
            lines = [line.strip() for line in str(error).splitlines()[1:]] or [str(error)]
            raise SpecError(f"--model-file {path} does not fit the model: {lines[0]}") from error

    def shapes(self):
        """What goes into the model, or, of PipeEdge's, into the first layer."""
        from ._spec import SpecError, default_shapes
        found = self.options.shapes or default_shapes(self.spec, self.model)
        if not found:
            raise SpecError(f"{self.name}: nothing tells what goes in: give it with "
                            "--shape-input, without the batch, as 3,224,224")
        return found

    def cut(self, first, last, batch):
        """The layers, and what goes into layer `first`."""
        from . import _pipeedge_models as pipeedge
        from ._layers_cut import cut_model, cut_pipeedge
        from ._spec import make_inputs
        options = self.options
        if self.known:
            tokens = self.known.tokens
            if options.shapes:
                pipeedge.check_shapes(self.known, options.layer_start, options.shapes,
                                      options.paired)
                tokens = options.shapes[0][0] if self.known.kind == "bert" else tokens
            shapes = pipeedge.shapes_before(self.known, first, tokens, options.paired)
            return (cut_pipeedge(self.name, first, last, options.paired, options.weights),
                    pipeedge.make_inputs(self.known, first, shapes, batch))
        if options.device.type != "cpu":
            self.model.to(options.device)  # before: its graph may say where tensors are made
        if options.inputs is not None:
            inputs = tuple(_to(one, options.device) for one in options.inputs)
        else:
            inputs = make_inputs(self.model, self.shapes(), batch, _dtype_of(self.model),
                                 options.device)
        return cut_model(self.model, self.name, inputs, options.cut), inputs


def _to(value, device):
    return value.to(device) if hasattr(value, "to") else value


def _dtype_of(model):
    import torch
    return next((one.dtype for one in model.parameters() if one.is_floating_point()),
                torch.get_default_dtype())


class _Options:
    def __init__(self, **options):
        self.__dict__.update(options)


def _check(options):
    from ._spec import SpecError
    if not options.batch_sizes or any(batch < 1 for batch in options.batch_sizes):
        raise SpecError(f"--batch-size {','.join(map(str, options.batch_sizes)) or '(none)'}: "
                        "a batch has at least one element")
    if len(set(options.batch_sizes)) < len(options.batch_sizes):
        raise SpecError("--batch-size: the same size twice")
    if options.iterations < 1:
        raise SpecError(f"--iterations {options.iterations}: at least one run is needed")
    if options.memory not in ("weights", "rss"):
        raise SpecError(f"--memory {options.memory}: weights or rss")
    if options.inputs is not None and len(options.batch_sizes) > 1:
        raise SpecError("inputs have one batch size; give shape_input for several")


def _range_of(options, count):
    from ._spec import SpecError
    last = options.layer_end if options.layer_end is not None else count
    if not 1 <= options.layer_start <= last <= count:
        raise SpecError(f"layers {options.layer_start} to {last}: the model has layers 1 to {count}")
    return options.layer_start, last


# ------------------------------------------------------------------------- one batch size

def _environment(torch, options, source):
    with_gpu = options.device.type == "cuda"
    words = {
        "torch": torch.__version__, "python": platform.python_version(),
        "threads": torch.get_num_threads(), "host": socket.gethostname(),
        "machine": platform.machine(), "processor": _processor(),
        "kernel": platform.release(), "iterations": options.iterations,
        "warmup": int(options.warmup),
        "weights": options.weights or ("random" if source.known else "the model's own"),
    }
    if with_gpu:
        words["gpu"] = torch.cuda.get_device_name(options.device)
        words["cuda"] = torch.version.cuda
    return {f"environment.{key}": value for key, value in words.items()}


def _processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith(("model name", "Model")):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"


def _wanted_layers(path, name, dtype, batch, count, first, last, options):
    """Which layers are still to be measured; an error if the file is another's or has one."""
    done = dict(_core.results_layers(path, name, str(dtype), batch, count))
    asked = range(first, last + 1)
    if not options.resume:
        twice = [number for number in asked if number in done]
        if twice:
            raise LayersError(f"{path}: has layer {twice[0]} already; --resume measures what is "
                              "missing, -o writes another file")
        return list(asked)
    # A row that does not say how often it ran is another program's, and stays.
    return [number for number in asked
            if number not in done or 0 < done[number] < options.iterations]


class _Profile:
    """One model at one batch size into one results file."""

    def __init__(self, source, batch, results, trace, options):
        import torch
        self.torch, self.source, self.batch, self.options = torch, source, batch, options
        self.results, self.trace, self.same = results, trace, {}

    def run(self):
        """None, or the LayerFailed that ended it; what was measured before is saved."""
        source = self.source
        if source.known:
            wanted = self._wanted(source.count, self.torch.float32)
            if not wanted:
                return None
            cut, values = source.cut(min(wanted), max(wanted), self.batch)
        else:
            cut, values = source.cut(1, None, self.batch)
            wanted = self._wanted(cut.count, cut.dtype())
            if not wanted:
                return None
            values = self._reach(cut, min(wanted), values)
        return self._record(cut, values, wanted)

    def _wanted(self, count, dtype):
        options = self.options
        first, last = _range_of(options, count)
        return _wanted_layers(self.results, self.source.name, dtype, self.batch, count, first, last,
                              options)

    def _reach(self, cut, first, values):
        """What goes into layer `first`: given, or what the layers before it make."""
        from ._layers_run import LayerFailed
        if first == 1:
            return values
        with self.torch.no_grad():
            for number in range(1, first):
                layer = cut.layers[number]
                try:
                    values = layer.run(*values)
                except Exception as error:
                    raise LayerFailed(layer, error) from error
        return values

    def _record(self, cut, values, wanted):
        from . import _layers_run as run
        options = self.options
        rss = {}
        if options.rss or options.memory == "rss":
            for number in wanted:
                rss[number] = run.measure_resident(cut.layers[number])
                if rss[number] is None and options.memory == "rss":
                    raise LayersError(f"--memory rss: the process that was to make layer {number} "
                                      "failed; is there memory for a second copy of it?")
        if options.device.type != "cpu":
            for layer in cut.layers.values():
                layer.module.to(options.device)
            values = tuple(_to(one, options.device) for one in values)
        _record.start(self.trace)
        if os.path.realpath(_record.path()) != os.path.realpath(self.trace):
            raise LayersError("this process is recorded by sonde run, and a profile of layers is a "
                              "recording of its own; run it alone")
        try:
            run.say_head(model_name=cut.name, dtype=cut.dtype(), batch_size=self.batch,
                         layers=cut.count, device=options.device, memory=options.memory,
                         paired=int(options.paired), **_environment(self.torch, options, self.source))
            runner = run.Runner(cut, values, set(wanted), self.batch, options.device,
                                options.repeat_once, rss)
            return self._passes(runner, run.Saver(self.trace, self.results))
        finally:
            _record.stop()

    def _passes(self, runner, saver):
        """Warm-up, iterations, and what else was asked for."""
        from ._layers_run import LayerFailed, steady
        failed = None
        self.same = runner.same
        try:
            with self.torch.no_grad(), steady():
                if self.options.warmup:
                    try:
                        runner.run_pass(" warmup")
                    except LayerFailed as error:
                        failed = error
                        if not self._keep_before(runner, error.number):
                            return error
                runner.run_pass(after_layer=saver.save)
                for _ in range(self.options.iterations - 1):
                    _record.begin("pass")
                    runner.run_pass()
                    _record.end()
                    if self.options.whole and not failed:
                        self._run_whole(runner)
                    saver.save()
                if runner.device.type == "cuda":
                    runner.measure_copies(self.options.iterations)
                for _ in range(self.options.iterations if self.options.backward else 0):
                    runner.measure_backward()
        except LayerFailed as error:
            failed = error
        finally:
            if runner.said:
                saver.save()
        return failed

    def _keep_before(self, runner, number):
        """The layers before the one that fails can still be measured."""
        runner.wanted = {one for one in runner.wanted if one < number}
        if runner.wanted:
            runner.last = max(runner.wanted)
        return bool(runner.wanted)

    def _run_whole(self, runner):
        """The model as it is, beside its layers."""
        if runner.first == 1 and runner.last == runner.cut.count:
            values = runner.inputs()
            _record.begin("model")
            runner.cut.model(*values)
            if runner.device.type == "cuda":
                self.torch.cuda.synchronize(runner.device)
            _record.end()


# ------------------------------------------------------------------------- the whole

def layers(model=DEFAULT_MODEL, inputs=None, *, name=None, results=DEFAULT_RESULTS, device=None,
           model_file=None, layer_start=1, layer_end=None, shape_input=None, batch_size=8,
           warmup=True, iterations=1, cut=(), paired=False, memory="weights", rss=False,
           repeat_once=False, resume=False, backward=False, whole=False, trace=None):
    """Measures every layer of `model` and writes PipeEdge's profiler_results.yml.

    `model` is one of PipeEdge's names, a SPEC (torchvision:NAME, package.module:callable,
    file.py:callable) or a module, which is run as it is: call its eval() before. The options are
    those of `sonde layers` (see its manual), which also measures RSS: that forks this process, so
    here it is done only with rss=True or memory="rss". LayersError when a layer fails; what was measured is
    in the file then.
    """
    from ._spec import SpecError, device_of
    sizes = [batch_size] if isinstance(batch_size, int) else list(batch_size)
    if inputs is not None:
        inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
        sizes = [len(inputs[0])]
    options = _Options(
        inputs=inputs, weights=model_file and os.fspath(model_file), layer_start=layer_start,
        layer_end=layer_end, shapes=[tuple(one) for one in shape_input] if shape_input else None,
        batch_sizes=sizes, warmup=warmup, iterations=iterations,
        cut=tuple(filter(None, cut.split(",") if isinstance(cut, str) else cut or ())), paired=paired,
        memory=memory, rss=rss, repeat_once=repeat_once, resume=resume, backward=backward, whole=whole)
    made = Layers()
    try:
        _check(options)
        options.device = device_of(str(device or "cpu"))
        source = _Source(model, name, options)
        for batch in sizes:
            _profile(source, batch, os.fspath(results), trace, options, made)
    except SpecError as error:
        raise LayersError(str(error), made.results) from error
    return made


def _profile(source, batch, results, trace, options, made):
    from ._layers_run import LayerFailed
    path = results_path(results, batch, len(options.batch_sizes))
    with tempfile.TemporaryDirectory(prefix="sonde-layers-") as folder:
        kept = trace and results_path(os.fspath(trace), batch, len(options.batch_sizes))
        profile = _Profile(source, batch, path, kept or os.path.join(folder, "layers.sonde"),
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
    parser.add_argument("-o", "--results-yml", default=DEFAULT_RESULTS)
    parser.add_argument("-d", "--device")
    parser.add_argument("-m", "--model-name")
    parser.add_argument("-M", "--model-file")
    parser.add_argument("-l", "--layer-start", type=int, default=1)
    parser.add_argument("-L", "--layer-end", type=int)
    parser.add_argument("-s", "--shape-input", action="append")
    parser.add_argument("-b", "--batch-size", default="8")
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
        raise LayersError(f"--{option} {text}: whole numbers with commas are needed") from None


def _shape(text):
    shape = _numbers("shape-input", text)
    if any(side < 1 for side in shape):
        raise LayersError(f"--shape-input {text}: a side has at least one element; the batch is not "
                          "a part of it")
    return shape


def _say(text):
    print(f"sonde: layers: {text}", file=sys.stderr)


def _run(given):
    if given.spec and given.model_name:
        raise LayersError(f"{given.spec}, {given.model_name}: give one model")
    made = layers(given.spec or given.model_name or DEFAULT_MODEL, results=given.results_yml,
                  device=given.device, model_file=given.model_file, layer_start=given.layer_start,
                  layer_end=given.layer_end,
                  shape_input=[_shape(one) for one in given.shape_input or ()],
                  batch_size=_numbers("batch-size", given.batch_size), warmup=given.warmup,
                  iterations=given.iterations, cut=given.cut, paired=given.paired,
                  memory=given.memory, rss=True, repeat_once=given.repeat_once, resume=given.resume,
                  backward=given.backward, whole=given.whole, trace=given.trace)
    if made.same:
        _say(f"{len(made.same)} layers do what an earlier one does and were not run: they have its "
             "times, and say so (same_as)")
    if sys.stderr.isatty():
        _say(f"wrote {', '.join(made.results)}; next: sonde convert models -i {made.results[0]}")


def main(arguments=None):
    """The exit status; called by `sonde layers`."""
    from ._installed import torch_module
    if torch_module() is None:
        return EXIT_NO_TORCH
    try:
        _run(_parser().parse_args(arguments))
    except Error as error:
        _say(str(error))
        return 1
    except KeyboardInterrupt:
        _say("interrupted; what was measured is kept, and --resume goes on")
        return 130
    return 0
