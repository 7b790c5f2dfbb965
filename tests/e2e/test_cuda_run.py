# SPDX-License-Identifier: Apache-2.0
"""sonde run --gpu and NVTX, without a GPU: a stand-in for CUPTI, and a program that injects as the driver does."""
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


def run(injected, trace, *words, options=(), **more):
    program, standin = injected
    return subprocess.run([SONDE, "run", "--gpu", *options, "-o", trace, "--", program, *words], timeout=60,
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
