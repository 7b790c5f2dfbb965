# SPDX-License-Identifier: Apache-2.0
"""Which model to load, and its inputs: SPEC of `sonde model` and `sonde layers`.

    torchvision:NAME           one of torchvision's, with random weights
    transformers:NAME          one of Hugging Face's classes or kinds, from its default configuration
    package.module:callable    what the callable returns, or the module that it is
    file.py:callable           the same, of a file

Nothing is downloaded. If a model cannot be loaded, a SpecError gives the reason in one line.
"""
import collections
import contextlib
import difflib
import importlib
import importlib.util
import os
import sys

IMAGE = (3, 224, 224)
TOKENS = (128,)
_DTYPES = ("float32", "float16", "bfloat16", "float64")
# What torchvision's models of other things than pictures take, by the package they are in.
_TORCHVISION_INPUTS = {"video": (3, 16, 112, 112), "optical_flow": None, "detection": None}


class SpecError(ValueError):
    """One line: what was requested, and why it cannot be loaded."""


# ----------------------------------------------------------------------------- models

def load(spec):
    """The module that `spec` names, in evaluation mode, and its name."""
    import torch
    kind, colon, name = spec.partition(":")
    if spec.endswith(".onnx") or kind.endswith(".onnx"):
        raise SpecError(f"{spec}: ONNX models cannot be run yet; give a PyTorch model")
    if not colon or not name:
        raise SpecError(f"{spec}: not a model: give torchvision:NAME, transformers:NAME, "
                        "package.module:callable or file.py:callable")
    if kind == "torchvision":
        model = _from_torchvision(name)
    elif kind == "transformers":
        model = _from_transformers(name)
    else:
        model = _from_callable(kind, name)
    if not isinstance(model, torch.nn.Module):
        raise SpecError(f"{spec}: {name} gave a {type(model).__name__}, not a torch.nn.Module")
    return model.eval(), name


def _near(name, names):
    found = difflib.get_close_matches(name, names, n=3)
    return f"; near it: {', '.join(found)}" if found else ""


def _package(name, spec):
    try:
        if importlib.util.find_spec(name) is None:
            raise SpecError(f"{spec}: the package {name} is not installed here: "
                            f"pip install {name}")
        return importlib.import_module(name)
    except ImportError as error:
        raise SpecError(f"{spec}: cannot import {name}: {error}") from error


def _from_torchvision(name):
    spec = f"torchvision:{name}"
    models = _package("torchvision", spec).models
    names = models.list_models()
    if name not in names:
        raise SpecError(f"{spec}: torchvision has no model of that name{_near(name, names)}")
    options = {"init_weights": False} if name in ("inception_v3", "googlenet") else {}
    if models.get_model_builder(name).__module__.rpartition(".")[0].endswith(
            ("detection", "segmentation")):
        options["weights_backbone"] = None
    return models.get_model(name, weights=None, **options)


def _from_transformers(name):
    """A class (BertModel) or a kind of configuration (bert), of its default size."""
    spec = f"transformers:{name}"
    package = _package("transformers", spec)
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING
    kinds = list(CONFIG_MAPPING.keys())
    if name in kinds:
        config = CONFIG_MAPPING[name]()
        return package.AutoModel.from_config(config)
    made = getattr(package, name, None)
    if getattr(made, "config_class", None) is None:
        raise SpecError(f"{spec}: transformers has neither a class nor a kind of model of that name "
                        f"(weights are not downloaded){_near(name, kinds)}")
    return made(made.config_class())


def _import(place, spec):
    if not (place.endswith(".py") or os.sep in place):
        with _here():
            try:
                return importlib.import_module(place)
            except Exception as error:
                raise SpecError(f"{spec}: cannot import {place}: "
                                f"{type(error).__name__}: {error}") from error
    if not os.path.isfile(place):
        raise SpecError(f"{spec}: there is no file {place}")
    name = os.path.splitext(os.path.basename(place))[0]
    found = importlib.util.spec_from_file_location(name, place)
    if found is None:
        raise SpecError(f"{spec}: {place} is not a Python file")
    module = importlib.util.module_from_spec(found)
    sys.modules.setdefault(name, module)
    sys.path.insert(0, os.path.dirname(os.path.abspath(place)))
    try:
        found.loader.exec_module(module)
    except Exception as error:
        raise SpecError(f"{spec}: running {place} failed: {type(error).__name__}: "
                        f"{error}") from error
    finally:
        del sys.path[0]
    return module


@contextlib.contextmanager
def _here():
    """A package beside the user is found, as `python -m` finds it."""
    sys.path.insert(0, os.getcwd())
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(os.getcwd())


def _from_callable(place, name):
    import torch
    spec = f"{place}:{name}"
    found = _import(place, spec)
    for part in name.split("."):
        if not hasattr(found, part):
            names = [one for one in dir(found) if not one.startswith("_")]
            raise SpecError(f"{spec}: {place} has no {part!r}{_near(part, names)}")
        found = getattr(found, part)
    if isinstance(found, torch.nn.Module):
        return found
    if not callable(found):
        raise SpecError(f"{spec}: {name} is a {type(found).__name__}, which cannot be called")
    try:
        return found()
    except Exception as error:
        raise SpecError(f"{spec}: calling {name}() failed: {type(error).__name__}: "
                        f"{error}") from error


# ----------------------------------------------------------------------------- inputs

class Input(collections.namedtuple("Input", "shape name dtype", defaults=(None, None))):
    """One input tensor: its shape without the batch; name and type where they are given."""


def _continues(before, part):
    """Whether a comma between the two is one of a shape, as in 3,224,224."""
    shape = before.rpartition("=")[2]
    return (shape.replace(",", "").isdigit() and part[:1].isdigit()
            and not {"x", "="} & set(part))


def _split(text):
    """One text an input: ";" is between two, and "," where it cannot be in a shape."""
    found = []
    for several in text.split(";"):
        for number, part in enumerate(several.split(",")):
            if number and _continues(found[-1].strip(), part.strip()):
                found[-1] += "," + part
            else:
                found.append(part)
    return [one.strip() for one in found]


def _input_dtypes():
    """The names of the types that a tensor of numbers can have: torch's, but for those in parts of bytes."""
    import torch
    return sorted({str(one).removeprefix("torch.") for one in vars(torch).values()
                   if isinstance(one, torch.dtype) and (one.is_floating_point or one.is_complex or one is torch.bool
                                                        or _is_integer(one))})


def _is_integer(dtype):
    import torch
    try:
        return torch.iinfo(dtype).bits >= 8
    except TypeError:  # quantized, or bits
        return False


def parse_inputs(text):
    """"3x224x224", "3,224,224", "ids=128:int64,mask=128:bool". Without the batch."""
    inputs = []
    for one in _split(text):
        name, _, rest = one.rpartition("=")
        sides, colon, dtype = rest.partition(":")
        try:
            shape = tuple(map(int, sides.replace("x", ",").split(","))) if sides else ()
        except ValueError:
            shape = (0,)
        if not one or any(size < 1 for size in shape) or (name and not name.isidentifier()):
            raise SpecError(f"--input {text}: {one!r} is not a shape; expected integers >= 1 "
                            "without the batch, such as 3x224x224 or ids=128:int64; separate "
                            "several by ';' or ','")
        if colon and dtype.removeprefix("torch.") not in _input_dtypes():
            raise SpecError(f"--input {text}: {dtype!r} is not a type: the types are "
                            f"{', '.join(_input_dtypes())}")
        inputs.append(Input(shape, name or None, dtype.removeprefix("torch.") or None))
    named = [one.name for one in inputs if one.name]
    if len(named) not in (0, len(inputs)):
        raise SpecError(f"--input {text}: give all inputs names, or none")
    if len(set(named)) < len(named):
        raise SpecError(f"--input {text}: duplicate input name")
    return inputs


def dtype_of(name):
    import torch
    if name.removeprefix("torch.") not in _DTYPES:
        raise SpecError(f"--dtype {name}: the types are {', '.join(_DTYPES)}")
    return getattr(torch, name.removeprefix("torch."))


def device_of(name):
    import torch
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise SpecError(f"--device {name}: {_first_line(error)}") from error
    return device


def _first_line(error):
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def default_shapes(spec, model):
    """The usual inputs of a model of this kind; None if unknown."""
    kind, _, name = spec.partition(":")
    if kind == "torchvision":
        place = type(model).__module__.split(".")
        for part, shape in _TORCHVISION_INPUTS.items():
            if part in place:
                return [shape] if shape else None
        return [(3, 299, 299)] if name == "inception_v3" else [IMAGE]
    if kind == "transformers":
        return _config_shapes(model)
    shape = getattr(model, "input_shape", None)
    if shape is None:
        return None
    return [tuple(one) for one in shape] if isinstance(shape[0], (tuple, list)) else [tuple(shape)]


def _config_shapes(model):
    config = model.config
    size = getattr(config, "image_size", None)
    if getattr(model, "main_input_name", "input_ids") == "pixel_values" and size:
        sides = tuple(size) if isinstance(size, (tuple, list)) else (size, size)
        return [(getattr(config, "num_channels", 3), *sides)]
    return [(min(TOKENS[0], getattr(config, "max_position_embeddings", TOKENS[0])),)]


def wants_tokens(model):
    """Whether its first layer looks numbers of tokens up."""
    import torch
    config = getattr(model, "config", None)
    if config is not None and hasattr(model, "main_input_name"):
        return model.main_input_name == "input_ids"
    first = next((m for m in model.modules() if not list(m.children())), None)
    return isinstance(first, (torch.nn.Embedding, torch.nn.EmbeddingBag))


def shape_source(spec, model):
    """The source of default_shapes(), for messages."""
    kind = spec.partition(":")[0]
    if kind == "torchvision":
        return "usual for torchvision's models of this kind"
    if kind == "transformers":
        return f"from the default {type(model.config).__name__}"
    return f"from {type(model).__name__}.input_shape"


def make_inputs(model, inputs, batch, dtype, device="cpu"):
    """Random tensors, each with the batch before its shape; by name, where the inputs have names.

    `inputs`: of Input, or shapes. Integers are token ids that the model knows. Without a type: tokens if the model
    looks some up and no other input is said to be integers, and masks of tokens.
    """
    import torch
    inputs = [one if isinstance(one, Input) else Input(tuple(one)) for one in inputs]
    generator = torch.Generator().manual_seed(0)
    types = [one.dtype and getattr(torch, one.dtype) for one in inputs]
    takes_tokens = wants_tokens(model)
    has_tokens = any(one is not None and _is_integer(one) for one in types)
    made = []
    for number, one in enumerate(inputs):
        is_tokens = takes_tokens and (not has_tokens or "mask" in (one.name or ""))
        wanted = types[number] or (torch.int64 if is_tokens else dtype)
        made.append(_fill(model, one.name or "", number == 0, (batch, *one.shape), wanted,
                          generator).to(device))
    if inputs and inputs[0].name:
        return {one.name: tensor for one, tensor in zip(inputs, made)}
    return tuple(made)


def _fill(model, name, is_first, shape, dtype, generator):
    import torch
    if dtype == torch.bool or "mask" in name:
        return torch.ones(shape, dtype=dtype)
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(shape, generator=generator).to(dtype)
    least = min(_vocabularies(model), default=2)
    most = _vocabulary(model) if is_first and _vocabularies(model) else least
    most = min(most, torch.iinfo(dtype).max)
    return torch.randint(0, most, shape, generator=generator).to(dtype)


def _vocabularies(model):
    """The number of tokens of each of its embeddings."""
    import torch
    return [m.num_embeddings for m in model.modules()
            if isinstance(m, (torch.nn.Embedding, torch.nn.EmbeddingBag))]


def _vocabulary(model):
    return _vocabularies(model)[0]
