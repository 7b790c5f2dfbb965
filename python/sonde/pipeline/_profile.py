# SPDX-License-Identifier: Apache-2.0
"""One model at one batch size: from the options to the recording and the results file."""
import platform
import socket

import torch

from .. import _core, _record, _recording
from ..model._spec import SpecError, default_shapes, load, make_inputs
from ..model._structures import move
from . import _pipeedge_models as pipeedge, _run as run
from ._cut import cut_model, cut_pipeedge
from ._layers import LayersError
from ._run import LayerFailed


# ------------------------------------------------------------------------- the model

class Source:
    """What to profile: where layers and their inputs come from."""

    def __init__(self, model, name, options):
        self.options, self.known = options, None
        self.spec = model if isinstance(model, str) else ""
        if isinstance(model, str) and model in pipeedge.SIZES:
            self.known, self.name = pipeedge.SIZES[model], model
            self.model, self.count = None, pipeedge.layer_count(model)
            if isinstance(options.inputs, dict) or any(one.name or one.dtype for one in options.shapes or ()):
                raise SpecError(f"{model}: PipeEdge's models have their own inputs; give shapes without names "
                                "and types")
            if options.cut:
                raise SpecError(f"{model}: PipeEdge's models have their own layers; "
                                "--cut is for other models")
            return
        if isinstance(model, str) and ":" not in model:
            raise SpecError(f"{model}: unknown model: PipeEdge's are {', '.join(pipeedge.SIZES)}; "
                            "others are torchvision:NAME, transformers:NAME, "
                            "package.module:callable, file.py:callable")
        if options.paired:
            raise SpecError("--paired is for PipeEdge's models: others pass on what crosses")
        if isinstance(model, str):
            self.model = load(model)[0]
            self.name = name or model
        elif isinstance(model, torch.nn.Module):
            self.model, self.name = model, name or type(model).__name__
        else:
            raise SpecError(f"{type(model).__name__}: give a torch.nn.Module or a model's name")
        if options.weights:
            self._load_state(options.weights)
        self.count = None

    def _load_state(self, path):
        found = {key: torch.from_numpy(value.copy())
                 for key, value in dict(pipeedge.open_weights(path)).items()}
        try:
            self.model.load_state_dict(found)
        except RuntimeError as error:
            lines = [line.strip() for line in str(error).splitlines()[1:]] or [str(error)]
            raise SpecError(f"--model-file {path} does not fit the model: {lines[0]}") from error

    def shapes(self):
        """What goes into the model, or, of PipeEdge's, into the first layer."""
        found = self.options.shapes or default_shapes(self.spec, self.model)
        if not found:
            raise SpecError(f"{self.name}: unknown input shape; give --input SHAPE without the "
                            "batch, such as 3x224x224 or ids=128:int64")
        return found

    def cut(self, first, last, batch):
        """The layers, and what goes into layer `first`."""
        options = self.options
        if self.known:
            tokens = self.known.tokens
            given = [one.shape for one in options.shapes or ()]
            if given:
                pipeedge.check_shapes(self.known, options.layer_start, given, options.paired)
                tokens = given[0][0] if self.known.kind == "bert" else tokens
            shapes = pipeedge.shapes_before(self.known, first, tokens, options.paired)
            return (cut_pipeedge(self.name, first, last, options.paired, options.weights),
                    pipeedge.make_inputs(self.known, first, shapes, batch))
        if options.device.type != "cpu":
            self.model.to(options.device)  # before tracing: the graph may name the device of new tensors
        if options.inputs is not None:
            inputs = move(options.inputs, options.device)
        else:
            inputs = make_inputs(self.model, self.shapes(), batch, _dtype_of(self.model),
                                 options.device)
        names = list(inputs) if isinstance(inputs, dict) else None
        inputs = tuple(inputs.values()) if names else inputs
        return cut_model(self.model, self.name, inputs, options.cut, names), inputs


def _to(value, device):
    return value.to(device) if hasattr(value, "to") else value


def _dtype_of(model):
    return next((one.dtype for one in model.parameters() if one.is_floating_point()),
                torch.get_default_dtype())


class Options:
    def __init__(self, **options):
        self.__dict__.update(options)


def check(options):
    if not options.batch_sizes or any(batch < 1 for batch in options.batch_sizes):
        raise SpecError(f"--batch-size {','.join(map(str, options.batch_sizes)) or '(none)'}: "
                        "sizes must be >= 1")
    if len(set(options.batch_sizes)) < len(options.batch_sizes):
        raise SpecError("--batch-size: duplicate size")
    if options.iterations < 1:
        raise SpecError(f"--iterations {options.iterations}: expected an integer >= 1")
    if options.memory not in ("weights", "rss"):
        raise SpecError(f"--memory {options.memory}: weights or rss")
    if options.inputs is not None and len(options.batch_sizes) > 1:
        raise SpecError("inputs have one batch size; give shape_input for several")


def _range_of(options, count):
    last = options.layer_end if options.layer_end is not None else count
    if not 1 <= options.layer_start <= last <= count:
        raise SpecError(f"layers {options.layer_start} to {last}: the model has layers 1 to "
                        f"{count}")
    return options.layer_start, last


# ------------------------------------------------------------------------- one batch size

def _environment(options, source):
    words = {
        "torch": torch.__version__, "python": platform.python_version(),
        "threads": torch.get_num_threads(), "host": socket.gethostname(),
        "machine": platform.machine(), "processor": _processor(),
        "kernel": platform.release(), "iterations": options.iterations,
        "warmup": int(options.warmup),
        "weights": options.weights or ("random" if source.known else "the model's own"),
    }
    if options.device.type == "cuda":
        words["gpu"] = torch.cuda.get_device_name(options.device)
        words["cuda"] = torch.version.cuda
    return words


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
            raise LayersError(f"{path}: already has layer {twice[0]}; use --resume to measure "
                              "what is missing, or -o for another file")
        return list(asked)
    # A row without a number of iterations was written by another program: it is kept.
    return [number for number in asked
            if number not in done or 0 < done[number] < options.iterations]


class Profile:
    """One model at one batch size into one results file."""

    def __init__(self, source, batch, results, trace, options):
        self.source, self.batch, self.options = source, batch, options
        self.results, self.trace, self.same = results, trace, {}

    def run(self):
        """None, or the LayerFailed that ended it; what was measured before is saved."""
        why = _recording.why_not_alone("sonde.layers")
        if why:  # before the model runs, while another recording would see it
            raise LayersError(why)
        source = self.source
        if source.known:
            wanted = self._wanted(source.count, torch.float32)
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
        if first == 1:
            return values
        with torch.no_grad():
            for number in range(1, first):
                layer = cut.layers[number]
                try:
                    values = layer.run(*values)
                except Exception as error:
                    raise LayerFailed(layer, error) from error
        return values

    def _record(self, cut, values, wanted):
        options = self.options
        rss = {}
        self._tell("resident memory")
        if options.rss or options.memory == "rss":
            for number in wanted:
                rss[number] = run.measure_resident(cut.layers[number])
                if rss[number] is None and options.memory == "rss":
                    raise LayersError(f"--memory rss: the process that builds layer {number} "
                                      "failed; is there enough memory for a second copy of it?")
        if options.device.type != "cpu":
            for layer in cut.layers.values():
                layer.module.to(options.device)
            values = tuple(_to(one, options.device) for one in values)
        _recording.take(self, self.trace)
        runner, saver = None, run.Saver(self.trace, self.results)
        try:
            run.say_head(_environment(options, self.source), model_name=cut.name,
                         dtype=str(cut.dtype()), batch_size=self.batch, layers=cut.count,
                         device=str(options.device), memory=options.memory,
                         paired=int(options.paired))
            runner = run.Runner(cut, values, set(wanted), self.batch, options.device,
                                options.repeat_once, rss)
            return self._passes(runner, saver)
        finally:
            _recording.give_back(self)
            if runner is not None and runner.said:
                saver.save()  # once more, by the clock of the whole recording

    def _passes(self, runner, saver):
        """Warm-up, iterations, and what else was asked for."""
        failed = None
        self.same = runner.same
        try:
            with torch.no_grad(), run.steady():
                if self.options.warmup:
                    self._tell("warm-up")
                    try:
                        runner.run_pass(run.WARMUP)
                    except LayerFailed as error:
                        failed = error
                        if not self._keep_before(runner, error.number):
                            return error
                for iteration in range(self.options.iterations):
                    self._tell(f"pass {iteration + 1} of {self.options.iterations}")
                    self._run_pass(runner, saver, iteration == 0)
                    if self.options.whole and not failed:
                        self._run_whole(runner)
                if runner.device.type == "cuda":
                    runner.measure_copies(self.options.iterations)
                for iteration in range(self.options.iterations if self.options.backward else 0):
                    self._tell(f"backward pass {iteration + 1} of {self.options.iterations}")
                    runner.measure_backward()
        except LayerFailed as error:
            failed = error
        return failed

    def _run_pass(self, runner, saver, is_first):
        """Saved after every layer of the first one, after all of a later one."""
        if is_first:
            runner.run_pass(after_layer=saver.save)
            return
        _record.begin(_record.NAMES["LAYERS_PASS"])  # with nothing in it but the layers
        runner.run_pass()
        _record.end()
        saver.save()

    def _tell(self, what):
        self.options.tell(f"{self.source.name}, batch size {self.batch}: {what}")

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
            _record.begin(_record.NAMES["LAYERS_MODEL"])
            runner.cut.run_whole(values)
            if runner.device.type == "cuda":
                torch.cuda.synchronize(runner.device)
            _record.end()
