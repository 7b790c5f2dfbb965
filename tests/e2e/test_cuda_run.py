# SPDX-License-Identifier: Apache-2.0
"""sonde run --gpu and NVTX, without a GPU: a stand-in for CUPTI, and a program that injects as the driver does."""
import collections
import importlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest
from cli_tools import SONDE

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMPILER = shutil.which("cc") or shutil.which("gcc")
pytestmark = pytest.mark.skipif(not COMPILER, reason="no C compiler")


def cc(*words):
    done = subprocess.run([COMPILER, "-std=c17", "-D_GNU_SOURCE", f"-I{ROOT}/src", f"-I{ROOT}/tests",
                           f"-I{ROOT}/include", *(str(word) for word in words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def injected(tmp_path_factory):
    """The program, and the stand-in that it is to be run with."""
    folder = tmp_path_factory.mktemp("injected")
    cc("-shared", "-fPIC", "-o", folder / "libstandin.so", ROOT / "tests/gpu/standin.c", "-lpthread")
    cc("-o", folder / "injected", ROOT / "tests/gpu/injected.c", folder / "libstandin.so", "-ldl",
       f"-Wl,-rpath,{folder}")
    return folder / "injected", folder / "libstandin.so"


def run(injected, trace, *words, options=(), gpu="--gpu", **more):
    program, standin = injected
    return subprocess.run([SONDE, "run", gpu, *options, "-o", trace, "--", program, *words], timeout=60,
                          capture_output=True, text=True,
                          env={**os.environ, "SONDE_CUPTI": str(standin), **more})


def kernels(trace):
    """{name: how often} of the view kernels."""
    done = subprocess.run([SONDE, "report", trace, "--view", "kernels", "--json"], check=True,
                          capture_output=True, text=True)
    rows = json.loads(done.stdout)
    rows = rows.get("rows", rows) if isinstance(rows, dict) else rows
    return {row["name"]: row["count"] for row in rows}


def test_kernels_of_any_program(tmp_path, injected):
    done = run(injected, tmp_path / "t.sonde")
    assert done.returncode == 0 and done.stdout.startswith("done"), done.stderr
    assert kernels(tmp_path / "t.sonde") == {"gemm(float*, int)": 50}


def test_killed_program(tmp_path, injected):
    """What the GPU had finished is in the file."""
    run(injected, tmp_path / "t.sonde", "kill")
    assert kernels(tmp_path / "t.sonde") == {"gemm(float*, int)": 50}


def test_program_that_forks(tmp_path, injected):
    done = run(injected, tmp_path / "t.sonde", "fork")
    assert done.returncode == 0, done.stderr
    assert kernels(tmp_path / "t.sonde") == {"gemm(float*, int)": 50}


def text(trace, view):
    return subprocess.run([SONDE, "report", trace, "--view", view], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("how", ["", "kill", "fork"])
def test_light(tmp_path, injected, how):
    """All kernels without the calls that asked for them, which each view, and the ledger, says."""
    done = run(injected, tmp_path / "t.sonde", how, gpu="--gpu=light")
    assert how == "kill" or (done.returncode == 0 and done.stdout.startswith("done")), done.stderr
    assert kernels(tmp_path / "t.sonde") == {"gemm(float*, int)": 50}
    assert "cudaLaunchKernel" not in text(tmp_path / "t.sonde", "ops")
    for view in ("kernels", "gpu", "ops", "summary"):
        shown = text(tmp_path / "t.sonde", view)
        assert "GPU work was recorded without CUDA's calls (--gpu=light)" in shown, view
        assert "(no range)" not in shown and "Launched by" not in shown, view
    assert "why is not known without CUDA's calls" in text(tmp_path / "t.sonde", "gpu")
    ledger = json.loads(subprocess.run([SONDE, "report", tmp_path / "t.sonde", "--view", "ledger", "--json"], check=True,
                                       capture_output=True, text=True).stdout)
    row, = [row for row in ledger["rows"] if "gpu" in row["key"]]
    assert row["key"] == "unasked_gpu_calls" and row["is_note"] and "--gpu=light" in row["text"]
    roof = text(tmp_path / "t.sonde", "roofline")
    assert "is not in the trace: it was recorded with --gpu=light" in roof


def test_full_says_nothing_of_light(tmp_path, injected):
    done = run(injected, tmp_path / "t.sonde", gpu="--gpu=full")
    assert done.returncode == 0, done.stderr
    assert "Launched by" in text(tmp_path / "t.sonde", "kernels")
    assert not any("light" in text(tmp_path / "t.sonde", view) for view in ("kernels", "gpu", "ops", "summary", "ledger"))


@pytest.mark.parametrize("command", [["run", "--gpu=lite", "true"], ["record", "--gpu=lite", "."]], ids=["run", "record"])
def test_unknown_level(command):
    done = subprocess.run([SONDE, *command], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and done.stdout == ""
    assert "--gpu: expected full or light, got 'lite'" in done.stderr.splitlines()[0]


FUNCTIONS = """
import ctypes, os
def work():
    pass
library = ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"])
work()
assert library.InitializeInjection() == 1
for _ in range(50):
    work()
print("done")
"""
# What CUPTI answers: what is said of it, and what to do.
REFUSALS = {
    14: ("CUPTI_ERROR_NOT_COMPATIBLE", "the driver is too old for this CUPTI", "update the driver"),
    15: ("CUPTI_ERROR_NOT_INITIALIZED", "no GPU, or no driver", "nvidia-smi"),
    33: ("CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED", "this virtual GPU cannot be profiled", "passed through whole"),
    35: ("CUPTI_ERROR_INSUFFICIENT_PRIVILEGES", "lets only administrators profile", "NVreg_RestrictProfilingToAdminUsers=0"),
    39: ("CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED", "another profiler has CUPTI", "stop it first"),
    40: ("CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES", "host does not allow profiling", "enable_profiling=1"),
    41: ("CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED", "confidential-computing", "devtools mode"),
    43: ("CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED", "divided GPU (MIG)", "nvidia-smi -mig 0"),
    45: ("CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED", "under this WSL", "driver of Windows"),
    998: ("error 998 of CUPTI", "look this error up", "update the driver"),
}
ALL_REFUSALS = [(f"{what}={code}", said) for code, said in REFUSALS.items() for what in ("subscribe", "enable")]
ALL_REFUSALS.append(("version=17", ("CUPTI version 17", "is not supported", "set SONDE_CUPTI")))


@pytest.mark.parametrize("answer, said", ALL_REFUSALS, ids=[answer for answer, _ in ALL_REFUSALS])
def test_refused(tmp_path, injected, answer, said):
    """One line with the reason and what to do, which the ledger and doctor say as well; the CPU's side is whole."""
    _, standin = injected
    (tmp_path / "program.py").write_text(FUNCTIONS)
    done = run((sys.executable, standin), tmp_path / "t.sonde", tmp_path / "program.py",
               options=["--functions"], STANDIN=answer)
    assert done.returncode == 0 and done.stdout.startswith("done"), done.stderr
    line, = [line for line in done.stderr.splitlines() if "GPU work is not recorded" in line]
    assert all(words in line for words in said), line

    def report(view):
        return json.loads(subprocess.run([SONDE, "report", tmp_path / "t.sonde", "--view", view, "--json"], check=True,
                                         capture_output=True, text=True).stdout)

    assert [row["calls"] for row in report("functions")["rows"] if row["function"] == "work"] == [51]
    ledger = json.dumps(report("ledger"))
    assert all(words in ledger for words in said), ledger
    (tmp_path / "libcuda.so.1").symlink_to(standin)  # the driver, which is there
    doctor = subprocess.run([SONDE, "doctor"], capture_output=True, text=True, timeout=60,
                            env={**os.environ, "SONDE_CUPTI": str(standin), "STANDIN": answer,
                                 "LD_LIBRARY_PATH": str(tmp_path)})
    line, = [line for line in doctor.stdout.splitlines() if line.startswith("gpu ")]
    assert "records no GPU work here" in line and all(words in line for words in said), line


def test_doctor_finds_a_gpu(tmp_path, injected):
    _, standin = injected
    (tmp_path / "libcuda.so.1").symlink_to(standin)
    doctor = subprocess.run([SONDE, "doctor"], capture_output=True, text=True, timeout=60,
                            env={**os.environ, "SONDE_CUPTI": str(standin), "LD_LIBRARY_PATH": str(tmp_path)})
    line, = [line for line in doctor.stdout.splitlines() if line.startswith("gpu ")]
    assert "records 1 GPU, CUPTI version 130001" in line


def test_no_cupti(tmp_path, injected):
    program, _ = injected
    done = run((program, "/no/such/libcupti.so"), tmp_path / "t.sonde")
    assert done.returncode == 0 and done.stdout.startswith("done")
    assert "no CUPTI was found at SONDE_CUPTI=/no/such/libcupti.so" in done.stderr


NVTX = r"""
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
int main(void)
{
    nvtxDomainHandle_t domain = nvtxDomainCreateA("library");
    nvtxEventAttributes_t event = { 0 };
    event.version = NVTX_VERSION;
    event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    event.message.registered = nvtxDomainRegisterStringA(domain, "registered");
    int outer = nvtxRangePushA("outer");
    nvtxDomainRangePushEx(domain, &event);
    int inner = nvtxRangePushW(L"inn\u00e9r");
    nvtxMarkA("a mark");
    nvtxRangePop();
    nvtxDomainRangePop(domain);
    nvtxRangeId_t range = nvtxRangeStartA("started");
    nvtxRangePop();
    nvtxRangeEnd(range);
    printf("%d %d\n", outer, inner);
    return 0;
}
"""


def test_nvtx(tmp_path):
    """Ranges and marks of a program that never heard of sonde."""
    folder = next((pathlib.Path(path) / "nvidia/cu13/include" for path in sys.path
                   if (pathlib.Path(path) / "nvidia/cu13/include/nvtx3/nvToolsExt.h").exists()), None)
    if folder is None:
        pytest.skip("NVTX's headers are not installed (they come with CUDA builds of torch)")
    (tmp_path / "nvtx.c").write_text(NVTX)
    cc("-w", "-o", tmp_path / "nvtx", tmp_path / "nvtx.c", "-isystem", folder, "-ldl")
    done = subprocess.run([SONDE, "run", "--gpu", "-o", tmp_path / "t.sonde", "--", tmp_path / "nvtx"],
                          timeout=60, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "0 2"
    report = subprocess.run([SONDE, "report", tmp_path / "t.sonde", "--view", "ops", "--json"], check=True,
                            capture_output=True, text=True).stdout
    for name in ("outer", "registered", "inn\u00e9r", "started"):
        assert name in report or json.dumps(name)[1:-1] in report


LIGHT = """
import ctypes, os, sys
import torch
import sonde
from sonde.torch import _cuda
_cuda.is_usable = lambda: True  # as with a GPU
cupti = ctypes.CDLL(os.environ["SONDE_CUPTI"])
cupti.standin_time.restype = ctypes.c_uint64
cupti.standin_get.restype = ctypes.c_long
cupti.standin_kernel.argtypes = [ctypes.c_char_p] + [ctypes.c_uint64] * 2 + [ctypes.c_uint32] * 2 + [ctypes.c_uint64]

def launch(correlation):
    cupti.standin_call(2, 211, 0, correlation)
    now = cupti.standin_time()
    cupti.standin_kernel(b"_Z4gemmPfi", now + 1000, now + 3000, correlation, 7, 0)
    cupti.standin_call(2, 211, 1, correlation)

def record(level):
    with sonde.profile(activities=[sonde.ProfilerActivity.CPU, sonde.ProfilerActivity.CUDA], gpu=level,
                       schedule=sonde.schedule(wait=0, warmup=1, active=2)) as prof:
        for step in range(3):
            torch.ones(3).add_(1)
            with sonde.record_function("launching"):
                launch(10 * len(level) + step)
            prof.step()
    prof.save(sys.argv[1] + "/" + level + ".sonde")
    return prof

for level in ("full", "light"):
    record(level)
    print(level, cupti.standin_get(b"calls"))
try:
    sonde.profile(gpu="lite")
except ValueError as error:
    print(error)
"""


def test_light_from_python(tmp_path, injected):
    """profile(gpu="light"): operators, ranges and steps as with "full", the same kernels, no calls."""
    pytest.importorskip("torch")
    _, standin = injected
    (tmp_path / "light.py").write_text(LIGHT)
    done = subprocess.run([sys.executable, tmp_path / "light.py", tmp_path], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "SONDE_CUPTI": str(standin)})
    assert done.returncode == 0, done.stderr
    full, light, error = done.stdout.splitlines()
    assert full.split()[1] == light.split()[1] != "0"  # what CUPTI reported: nothing more
    assert error == "sonde: gpu: expected 'full' or 'light', got 'lite'"

    def ranges(level):
        rows = json.loads(subprocess.run([SONDE, "report", tmp_path / f"{level}.sonde", "--view", "ops", "--rows", "-1",
                                          "--json"], check=True, capture_output=True, text=True).stdout)["rows"]
        return {row["key"]: row["count"] for row in rows}

    assert kernels(tmp_path / "light.sonde") == kernels(tmp_path / "full.sonde") == {"gemm(float*, int)": 2}
    calls = ranges("full").keys() - ranges("light").keys()
    assert calls == {"cudaLaunchKernel"}
    assert {name: count for name, count in ranges("full").items() if name not in calls} == ranges("light")
    assert ranges("light")["launching"] == 2


@pytest.mark.parametrize("words, level", [("ops", None), ("ops,gpu", "full"), ("ops,gpu=full", "full"),
                                          ("ops,shapes,gpu=light", "light")])
def test_levels_of_standby(words, level):
    """What `sonde record --gpu=..` asks a process that stands by for."""
    from sonde.torch._standby import _Recording
    assert _Recording("t.sonde", words.split(",")).cuda == level


def test_what_the_tests_of_gpus_read_traces_with(monkeypatch):
    """They run only where there is a GPU: tests/gpu/works.c is to be of this tree's interfaces before that."""
    monkeypatch.syspath_prepend(str(ROOT / "tests/gpu"))
    gpu_tools = importlib.import_module("gpu_tools")
    trace = ROOT / "tests/data/cuda/train.sonde"
    works, calls, tally = gpu_tools.read(trace)
    names = collections.Counter(work["name"] for work in works if work["kind"] in gpu_tools.KINDS.values())
    assert names == kernels(trace) and sum(work["kind"] == gpu_tools.KINDS["kernel"] for work in works) == 75
    asked = {work["correlation"] for work in works if work["kind"] in gpu_tools.KINDS.values()}
    assert asked <= {call["correlation"] for call in calls} and tally["dropped"] == 0
