# SPDX-License-Identifier: Apache-2.0
"""The GPUs' work in a recording: the CUDA probe (src/probes/cuda), started and stopped.

If it cannot record, one warning and the trace give the reason; everything else goes on.
"""
import glob
import os
import sys
import warnings

from .. import _record
from .._core import Error
from ._installed import torch_module

_LIBRARY = os.path.join(os.path.dirname(os.path.dirname(__file__)), "_native", "probe_cuda.so")
LEVELS = ("full", "light")  # of recording
_is_on = False


def is_usable():
    """Whether torch's profiler would record CUDA here: a CUDA build of torch, and a GPU."""
    torch = torch_module()
    return torch is not None and bool(torch.version.cuda) and torch.cuda.is_available()


def _find_cupti():
    """That of torch's own packages, for a process that has not loaded it yet."""
    for folder in sys.path:
        for pattern in ("nvidia/cu13/lib/libcupti.so.*", "nvidia/cuda_cupti/lib/libcupti.so.*"):
            found = sorted(glob.glob(os.path.join(folder or ".", pattern)))
            if found:
                return found[-1]
    return None


def torch_records():
    """Whether torch's own profiler is on. Only valid before ours starts, which sets torch's flag too."""
    torch = torch_module()
    try:
        return torch is not None and bool(torch._C._autograd._profiler_enabled())
    except AttributeError:
        return False


def checked_level(gpu):
    """How GPUs are recorded: "full", or "light", without CUDA's calls."""
    if gpu not in LEVELS:
        raise ValueError(f"sonde: gpu: expected {' or '.join(map(repr, LEVELS))}, got {gpu!r}")
    return gpu


def start(share, level):
    """`share`: take CUPTI's buffers where another profiler has its callbacks, and does not record."""
    global _is_on
    try:
        missing = _record.cuda_start(_LIBRARY, _find_cupti(), share, level == "light")
        _is_on = True
    except Error as error:
        missing = str(error)
    if missing:
        warnings.warn(f"sonde: {missing}", stacklevel=2)


def again():
    """torch's own profiler has stopped, and unregistered CUPTI's callbacks: registers ours again."""
    if _is_on:
        _record.cuda_again()


def stop():
    """As torch.profiler does, waits for the GPU first, in a call that is recorded."""
    global _is_on
    if not _is_on:
        return
    _is_on = False
    torch = torch_module()
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.synchronize()
    _record.cuda_stop()
