# SPDX-License-Identifier: Apache-2.0
"""These tests need an NVIDIA GPU; without one they say so, and none is run but those that read traces of one."""
import os
import shutil

import pytest
from gpu_tools import HERE, run


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


@pytest.fixture(scope="session")
def plain(tmp_path_factory):
    """A CUDA program without Python: plain.cu."""
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if not os.path.exists(nvcc):
        pytest.skip("nvcc is not installed: CUDA's toolkit has it")
    path = tmp_path_factory.mktemp("plain") / "plain"
    run(nvcc, "-o", path, os.path.join(HERE, "plain.cu"))
    return path
