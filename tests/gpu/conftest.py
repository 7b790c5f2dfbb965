# SPDX-License-Identifier: Apache-2.0
"""These tests need an NVIDIA GPU; without one they say so, and none is run."""
import pytest


def reason():
    try:
        import torch
    except ImportError:
        return "torch is not installed"
    return "" if torch.cuda.is_available() else "no NVIDIA GPU that torch can use"


def pytest_collection_modifyitems(items):
    why = reason()
    for item in items if why else ():
        item.add_marker(pytest.mark.skip(reason=f"needs a GPU: {why}"))
