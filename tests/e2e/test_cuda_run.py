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


def run(injected, trace, *words, **more):
    program, standin = injected
    return subprocess.run([SONDE, "run", "--gpu", "-o", trace, "--", program, *words], timeout=60,
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


def test_refused(tmp_path, injected):
    """One line, the ledger; the program runs on."""
    done = run(injected, tmp_path / "t.sonde", REFUSED="35")
    assert done.returncode == 0 and done.stdout.startswith("done")
    assert done.stderr.count("GPU work is not recorded: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES") == 1, done.stderr
    ledger = subprocess.run([SONDE, "report", tmp_path / "t.sonde", "--view", "ledger"], check=True,
                            capture_output=True, text=True).stdout
    assert "recorded no work of GPUs" in ledger and "NVreg_RestrictProfilingToAdminUsers" in ledger


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
