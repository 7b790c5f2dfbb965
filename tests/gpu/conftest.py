# SPDX-License-Identifier: Apache-2.0
"""These tests need an NVIDIA GPU; without one they say so, and none is run but those that read traces of one."""
import os

import pytest


def reason():
    try:
        import torch
    except ImportError:
        return "torch is not installed"
    return "" if torch.cuda.is_available() else "no NVIDIA GPU that torch can use"


def pytest_collection_modifyitems(items):
    why = reason()
    reads = "test_gpu_hta.py" if os.environ.get("SONDE_GPU_TRACES") else ""
    for item in [item for item in items if why and item.path.name != reads]:
        item.add_marker(pytest.mark.skip(reason=f"needs a GPU: {why}"))
