# SPDX-License-Identifier: Apache-2.0
"""Inputs and outputs of a model: tensors in tuples, lists and dicts; and its failure, in one line."""
import json


def tensors_of(value):
    """Every tensor in it, in order: tuples, lists, dicts and Hugging Face's outputs."""
    import torch
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (tuple, list)):
        return []
    return [one for part in value for one in tensors_of(part)]


def move(value, device):
    import torch
    if isinstance(value, torch.Tensor):
        return value.to(device)
    if isinstance(value, dict):
        return {key: move(one, device) for key, one in value.items()}
    if isinstance(value, (tuple, list)):
        return tuple(move(one, device) for one in value)
    return value


def byte_count(tensors):
    return sum(one.numel() * one.element_size() for one in tensors)


def shapes(value):
    """Of every tensor in it, as JSON."""
    return json.dumps([list(one.shape) for one in tensors_of(value)])


def describe(value):
    """In words: "ids 1x128 int64, mask 1x128 bool"."""
    parts = value.items() if isinstance(value, dict) else [("", value)]
    words = [f"{name} {'x'.join(map(str, one.shape)) or 'scalar'} "
             f"{str(one.dtype).removeprefix('torch.')}".strip()
             for name, part in parts for one in tensors_of(part)]
    return ", ".join(words)


def describe_error(error):
    """Its class, and the first line of what it says."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
