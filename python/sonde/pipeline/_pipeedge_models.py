# SPDX-License-Identifier: Apache-2.0
"""PipeEdge's nine models, cut as PipeEdge cuts them: four layers a block.

Built from their public sizes with random weights, so that nothing is downloaded; weights can be
read from the files that PipeEdge's own tools make. Every layer takes and gives a tuple of tensors:

    0   (LayerNorm and) self-attention         -> [T, H] context, [T, H] skip
    1   projection, residual (and LayerNorm)   -> [T, H]
    2   (LayerNorm,) fc1 and GELU              -> [T, F], [T, H] skip
    3   fc2, residual (and LayerNorm)          -> [T, H]

ViT and DeiT normalise before, BERT after. The first layer also embeds, the last also classifies.
"""
import collections

import torch
from torch import nn
from torch.nn import functional

from ..model._spec import SpecError

Size = collections.namedtuple("Size", "kind hidden blocks heads inner tokens patch labels")
SIZES = {
    "google/vit-base-patch16-224": Size("vit", 768, 12, 12, 3072, 197, 16, 1000),
    "google/vit-large-patch16-224": Size("vit", 1024, 24, 16, 4096, 197, 16, 1000),
    "google/vit-huge-patch14-224-in21k": Size("vit", 1280, 32, 16, 5120, 257, 14, 21843),
    "bert-base-uncased": Size("bert", 768, 12, 12, 3072, 512, 0, 0),
    "bert-large-uncased": Size("bert", 1024, 24, 16, 4096, 512, 0, 0),
    "textattack/bert-base-uncased-CoLA": Size("bert", 768, 12, 12, 3072, 512, 0, 2),
    "facebook/deit-base-distilled-patch16-224": Size("deit", 768, 12, 12, 3072, 198, 16, 1000),
    "facebook/deit-small-distilled-patch16-224": Size("deit", 384, 12, 6, 1536, 198, 16, 1000),
    "facebook/deit-tiny-distilled-patch16-224": Size("deit", 192, 12, 3, 768, 198, 16, 1000),
}
_VOCABULARY, _POSITIONS, _TYPES = 30522, 512, 2  # of both BERTs
_EPSILON = 1e-12


# ---------------------------------------------------------------------------- modules

class ImageEmbeddings(nn.Module):
    """Patches, the class token (DeiT: and the distillation token) and positions."""

    def __init__(self, size):
        super().__init__()
        self.projection = nn.Conv2d(3, size.hidden, size.patch, stride=size.patch)
        self.tokens = nn.ParameterList(nn.Parameter(torch.zeros(1, 1, size.hidden))
                                       for _ in range(2 if size.kind == "deit" else 1))
        self.positions = nn.Parameter(torch.randn(1, size.tokens, size.hidden) * 0.02)

    def forward(self, pixels):
        patches = self.projection(pixels).flatten(2).transpose(1, 2)
        first = [token.expand(len(pixels), -1, -1) for token in self.tokens]
        return torch.cat((*first, patches), dim=1) + self.positions


class WordEmbeddings(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.words = nn.Embedding(_VOCABULARY, size.hidden, padding_idx=0)
        self.positions = nn.Embedding(_POSITIONS, size.hidden)
        self.types = nn.Embedding(_TYPES, size.hidden)
        self.norm = nn.LayerNorm(size.hidden, eps=_EPSILON)

    def forward(self, numbers):
        count = numbers.shape[1]
        found = self.words(numbers) + self.types.weight[0] + self.positions.weight[:count]
        return self.norm(found)


class Attention(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.heads = size.heads
        self.query = nn.Linear(size.hidden, size.hidden)
        self.key = nn.Linear(size.hidden, size.hidden)
        self.value = nn.Linear(size.hidden, size.hidden)

    def forward(self, x):
        batch, count, hidden = x.shape
        query, key, value = (part(x).view(batch, count, self.heads, -1).transpose(1, 2)
                             for part in (self.query, self.key, self.value))
        context = functional.scaled_dot_product_attention(query, key, value)
        return context.transpose(1, 2).reshape(batch, count, hidden)


class ImageHead(nn.Module):
    """The last LayerNorm, and the classifier on the first token."""

    def __init__(self, size):
        super().__init__()
        self.norm = nn.LayerNorm(size.hidden, eps=_EPSILON)
        self.classifier = nn.Linear(size.hidden, size.labels)

    def forward(self, x):
        return self.classifier(self.norm(x)[:, 0, :])


class TextHead(nn.Module):
    """The pooler, and the classifier of those that classify."""

    def __init__(self, size):
        super().__init__()
        self.pooler = nn.Linear(size.hidden, size.hidden)
        self.classifier = nn.Linear(size.hidden, size.labels) if size.labels else None

    def forward(self, x):
        pooled = torch.tanh(self.pooler(x[:, 0, :]))
        return pooled if self.classifier is None else self.classifier(pooled)


class Layer(nn.Module):
    """One of PipeEdge's layers, by its number from 1."""

    def __init__(self, size, number, paired=False):
        super().__init__()
        self.part = (number - 1) % 4
        self.is_first, self.is_last = number == 1, number == 4 * size.blocks
        self.paired = paired and not self.is_last
        self.before = size.kind != "bert" and self.part in (0, 2)
        is_text = size.kind == "bert"
        if self.is_first:
            self.embeddings = WordEmbeddings(size) if is_text else ImageEmbeddings(size)
        if self.before or (is_text and self.part in (1, 3)):
            self.norm = nn.LayerNorm(size.hidden, eps=_EPSILON)
        self.work = (Attention(size), nn.Linear(size.hidden, size.hidden),
                     nn.Linear(size.hidden, size.inner),
                     nn.Linear(size.inner, size.hidden))[self.part]
        if self.is_last:
            self.head = TextHead(size) if is_text else ImageHead(size)

    def forward(self, *values):
        if self.part in (0, 2):
            x = self.embeddings(values[0]) if self.is_first else values[0]
            done = self.work(self.norm(x) if self.before else x)
            return (done if self.part == 0 else functional.gelu(done)), x
        x = self.work(values[0]) + values[1]
        if not self.before and hasattr(self, "norm"):
            x = self.norm(x)
        if self.is_last:
            x = self.head(x)
        return (x, x) if self.paired else (x,)


class Model(nn.Module):
    """All its layers, one after another."""

    def __init__(self, layers):
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, *values):
        for layer in self.layers:
            values = layer(*values)
        return values[0]


# ---------------------------------------------------------------------------- building

def layer_count(name):
    return 4 * SIZES[name].blocks


def build_layers(size, numbers, paired=False):
    """The layers of these numbers, in evaluation mode, their random weights always the same."""
    made = {}
    with torch.random.fork_rng(devices=[]):
        for number in numbers:
            torch.manual_seed(number)
            made[number] = Layer(size, number, paired).eval()
    return made


def layer_name(number):
    part = ("attention", "projection", "fc1", "fc2")[(number - 1) % 4]
    return f"block.{(number - 1) // 4}.{part}"


def shapes_before(size, number, tokens, paired=False):
    """What the layer of that number takes, without the batch."""
    if number == 1:
        return [(tokens,)] if size.kind == "bert" else [(3, 224, 224)]
    whole, inner = (tokens, size.hidden), (tokens, size.inner)
    part = (number - 1) % 4
    if part in (1, 3):
        return [whole if part == 1 else inner, whole]
    return [whole, whole] if paired else [whole]


def check_shapes(size, number, shapes, paired=False):
    """A SpecError unless the layer of that number takes tensors of these shapes."""
    free = size.kind == "bert" and shapes and shapes[0]
    tokens = shapes[0][0] if free else size.tokens
    wanted = shapes_before(size, number, tokens, paired)
    if tokens > size.tokens or [tuple(shape) for shape in shapes] != wanted:
        wanted = shapes_before(size, number, size.tokens, paired)
        raise SpecError(f"--shape-input {_show(shapes)}: layer {number} takes {_show(wanted)}"
                        + (", or fewer tokens" if size.kind == "bert" else ""))


def _show(shapes):
    return " and ".join(",".join(str(side) for side in shape) or "()" for shape in shapes)


def make_inputs(size, number, shapes, batch):
    """Random tensors of these shapes for the layer of that number."""
    generator = torch.Generator().manual_seed(0)
    if number == 1 and size.kind == "bert":
        return (torch.randint(0, _VOCABULARY, (batch, *shapes[0]), generator=generator),)
    return tuple(torch.randn((batch, *shape), generator=generator) for shape in shapes)


# ---------------------------------------------------------------------------- weights

def _same(array):
    return array


def _turned(array):
    """Flax keeps [in, out], the heads apart."""
    return array.reshape(array.shape[0], -1).T if array.ndim == 3 else array.T


def _joined(array):
    return array.reshape(-1, array.shape[-1]).T if array.ndim == 3 else array.T


def _flat(array):
    return array.reshape(-1)


def _kernel(array):
    return array.transpose(3, 2, 0, 1)


def _vit_names(number, part):
    """(parameter of a Layer, name in Google's npz, how it is turned)"""
    root = f"Transformer/encoderblock_{(number - 1) // 4}/"
    heads, mlp = root + "MultiHeadDotProductAttention_1/", root + "MlpBlock_3/"
    if part == 0:
        for name in ("query", "key", "value"):
            yield f"work.{name}.weight", heads + name + "/kernel", _turned
            yield f"work.{name}.bias", heads + name + "/bias", _flat
    names = (None, heads + "out/", mlp + "Dense_0/", mlp + "Dense_1/")[part]
    if names:
        yield "work.weight", names + "kernel", _joined
        yield "work.bias", names + "bias", _flat
    if part in (0, 2):
        yield "norm.weight", f"{root}LayerNorm_{part}/scale", _same
        yield "norm.bias", f"{root}LayerNorm_{part}/bias", _same


_VIT_FIRST = (("embeddings.tokens.0", "cls", _same),
              ("embeddings.positions", "Transformer/posembed_input/pos_embedding", _same),
              ("embeddings.projection.weight", "embedding/kernel", _kernel),
              ("embeddings.projection.bias", "embedding/bias", _same))
_VIT_LAST = (("head.norm.weight", "Transformer/encoder_norm/scale", _same),
             ("head.norm.bias", "Transformer/encoder_norm/bias", _same),
             ("head.classifier.weight", "head/kernel", _turned),
             ("head.classifier.bias", "head/bias", _same))


def _slice(index):
    """One of query, key and value, which DeiT keeps in one."""
    def take(array):
        side = array.shape[0] // 3
        return array[index * side:(index + 1) * side]
    return take


def _pair(ours, theirs):
    return [(f"{ours}.{kind}", f"{theirs}.{kind}", _same) for kind in ("weight", "bias")]


def _deit_names(number, part):
    root = f"blocks.{(number - 1) // 4}."
    if part == 0:
        for index, name in enumerate(("query", "key", "value")):
            for kind in ("weight", "bias"):
                yield f"work.{name}.{kind}", f"{root}attn.qkv.{kind}", _slice(index)
    else:
        yield from _pair("work", root + ("attn.proj", "mlp.fc1", "mlp.fc2")[part - 1])
    if part in (0, 2):
        yield from _pair("norm", f"{root}norm{1 + part // 2}")


_DEIT_FIRST = (("embeddings.tokens.0", "cls_token", _same),
               ("embeddings.tokens.1", "dist_token", _same),
               ("embeddings.positions", "pos_embed", _same),
               *_pair("embeddings.projection", "patch_embed.proj"))
_DEIT_LAST = (*_pair("head.norm", "norm"), *_pair("head.classifier", "head"))


def _bert_names(number, part):
    root = f"encoder.layer.{(number - 1) // 4}."
    if part == 0:
        for name in ("query", "key", "value"):
            yield from _pair(f"work.{name}", f"{root}attention.self.{name}")
        return
    place = root + ("attention.output", "intermediate", "output")[part - 1]
    yield from _pair("work", place + ".dense")
    if part != 2:
        yield from _pair("norm", place + ".LayerNorm")


_BERT_FIRST = (("embeddings.words.weight", "embeddings.word_embeddings.weight", _same),
               ("embeddings.positions.weight", "embeddings.position_embeddings.weight", _same),
               ("embeddings.types.weight", "embeddings.token_type_embeddings.weight", _same),
               *_pair("embeddings.norm", "embeddings.LayerNorm"))
_BERT_LAST = _pair("head.pooler", "pooler.dense")

_NAMES = {"vit": (_vit_names, _VIT_FIRST, _VIT_LAST),
          "deit": (_deit_names, _DEIT_FIRST, _DEIT_LAST),
          "bert": (_bert_names, _BERT_FIRST, _BERT_LAST)}


def weight_names(size, number):
    """(parameter, name in the file, how it is turned) of one layer."""
    inner, first, last = _NAMES[size.kind]
    names = list(inner(number, (number - 1) % 4))
    if number == 1:
        names = [*first, *names]
    if number == 4 * size.blocks:
        names += last
    if size.kind == "bert" and size.labels:
        names = [(ours, "bert." + theirs, turn) for ours, theirs, turn in names]
        if number == 4 * size.blocks:
            names += _pair("head.classifier", "classifier")
    return names


def open_weights(path):
    """Arrays by name; of a NumPy archive only those that are asked for are read."""
    import numpy
    try:
        with open(path, "rb") as file:
            start = file.read(2)
        if start == b"PK" and path.endswith(".npz"):
            return numpy.load(path, allow_pickle=False)
        found = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise SpecError(f"--model-file {path}: {error.strerror}") from error
    except Exception as error:  # an unpickler may raise anything
        raise SpecError(f"--model-file {path}: neither a NumPy archive (.npz) nor a state_dict: "
                        f"{str(error).splitlines()[0] if str(error) else type(error).__name__}"
                        ) from error
    found = found.get("state_dict", found) if isinstance(found, dict) else found
    if not isinstance(found, dict) or not all(torch.is_tensor(one) for one in found.values()):
        raise SpecError(f"--model-file {path}: holds no state_dict")
    return {name: _array(tensor) for name, tensor in found.items()}


def _array(tensor):
    """NumPy has no bfloat16 and nothing smaller: as float32, which holds every value of them."""
    tensor = tensor.detach()
    if tensor.is_floating_point() and tensor.dtype not in (torch.float16, torch.float64):
        tensor = tensor.float()
    return tensor.numpy()


def load_weights(size, layers, path):
    """Fills `layers` {number: Layer} from a file; a SpecError says what does not fit."""
    weights, wrong = open_weights(path), []
    for number, layer in layers.items():
        own = dict(layer.named_parameters())
        for ours, theirs, turn in weight_names(size, number):
            if theirs not in weights:
                wrong.append(f"{theirs} is missing")
                continue
            array = torch.from_numpy(turn(weights[theirs]).copy())
            if array.shape != own[ours].shape:
                wrong.append(f"{theirs} has the shape {_show([array.shape])}, "
                             f"not {_show([own[ours].shape])}")
                continue
            with torch.no_grad():
                own[ours].copy_(array)
    if wrong:
        more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        raise SpecError(f"--model-file {path} does not fit the model: {'; '.join(wrong[:3])}{more}")
