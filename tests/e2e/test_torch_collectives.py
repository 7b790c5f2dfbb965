# SPDX-License-Identifier: Apache-2.0
"""What a collective transfers, as torch.profiler says it.

Only torch's NCCL groups tell, which need a GPU (tests/gpu/test_gpu_nccl.py). Here the same calls are made by a
library of our own.
"""
import ctypes
import json
import os
import shutil
import subprocess
import sysconfig

import pytest
import torch

import sonde

SOURCE = r"""
#include <torch/csrc/distributed/c10d/ParamCommsUtils.hpp>
extern "C" void collective(const char *name, int64_t in, int64_t out, int type)
{
    RECORD_PARAM_COMMS(
        std::make_tuple(static_cast<int64_t>(7), false),          // sequence
        std::make_tuple(std::string("0"), std::string("default")), // group
        0, name, in, out, static_cast<at::ScalarType>(type), std::vector<int64_t>(), std::vector<int64_t>(),
        0, 1, 4);
}
"""
RUN = (("allreduce", 1000, 1000, 6), ("_allgather_base", 8, 32, 15), ("allreduce", 1000, 1000, 6))


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if not compiler:
        pytest.skip("no C++ compiler")
    folder = tmp_path_factory.mktemp("collectives")
    (folder / "collective.cpp").write_text(SOURCE)
    root = os.path.dirname(torch.__file__)
    done = subprocess.run(
        [compiler, "-std=c++20", "-O0", "-shared", "-fPIC", "-w", "-DUSE_DISTRIBUTED", "-DUSE_C10D",
         f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}", "-o", "collective.so", "collective.cpp",
         f"-I{root}/include", f"-I{root}/include/torch/csrc/api/include", f"-I{sysconfig.get_paths()['include']}",
         f"-L{root}/lib", "-lc10", "-ltorch_cpu"], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"torch {torch.__version__} has other macros: {done.stderr[-300:]}")
    return ctypes.PyDLL(str(folder / "collective.so")).collective


def arguments(profiler, library, path):
    with profiler.profile(activities=[profiler.ProfilerActivity.CPU], record_shapes=True) as result:
        for name, size_in, size_out, kind in RUN:
            library(name.encode(), ctypes.c_int64(size_in), ctypes.c_int64(size_out), kind)
    result.export_chrome_trace(str(path))
    with open(path) as file:
        events = [event for event in json.load(file)["traceEvents"] if event.get("name") == "record_param_comms"]
    own = {"External id", "Ev Idx", "Record function id"}
    return [{key: value for key, value in event["args"].items() if key not in own}
            for event in sorted(events, key=lambda event: event["ts"])]


def test_arguments_are_torchs(library, tmp_path):
    theirs = arguments(torch.profiler, library, tmp_path / "theirs.json")
    ours = arguments(sonde, library, tmp_path / "ours.json")
    assert len(theirs) == len(RUN)
    assert theirs[0]["Collective name"] == "allreduce" and theirs[1]["Out msg nelems"] == 32
    assert ours == theirs
