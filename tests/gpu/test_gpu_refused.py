# SPDX-License-Identifier: Apache-2.0
"""A GPU or a CUPTI that refuses, for real: the program runs on, the CPU's side is whole, and it is said.

What a driver's answer means that cannot be had here (permission, MIG, ..) is tested with a stand-in: tests/e2e/test_cuda_run.py.
"""
import glob
import json
import os
import shutil
import subprocess
import sys
import textwrap

import pytest
from gpu_tools import SONDE, run

PROGRAM = textwrap.dedent("""
    import ctypes, json, sys, warnings, torch
    from sonde import ProfilerActivity, profile
    from sonde.torch._cuda import _find_cupti
    a = torch.ones(64, 64, device="cuda" if torch.cuda.is_available() else "cpu")
    def session():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as result:
                for _ in range(5):
                    a.add_(1)
        rows = {row.key: [row.count, row.device_time_total] for row in result.key_averages()}
        return {"said": " ".join(str(one.message) for one in caught), "rows": rows}
    found = []
    if "subscriber" in sys.argv:
        cupti, subscriber = ctypes.CDLL(_find_cupti()), ctypes.c_void_p()
        callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p)(lambda *_: None)
        assert cupti.cuptiSubscribe(ctypes.byref(subscriber), callback, None) == 0
        found.append(session())
        assert cupti.cuptiUnsubscribe(subscriber) == 0
    found.append(session())
    assert float(a.sum()) == 64 * 64 * (1 + 5 * len(found))
    print("found", json.dumps(found))
""")


def sessions(tmp_path, *words, before=(), **environment):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    said = run(*before, sys.executable, path, *words, env={**os.environ, **environment}).stdout
    line, = [line for line in said.splitlines() if line.startswith("found ")]
    found = json.loads(line[len("found "):])
    assert all(one["rows"]["aten::add_"][0] == 5 for one in found), found
    return found


def kernels(one):
    return sum(count for name, (count, _) in one["rows"].items() if "elementwise_kernel" in name)


def test_another_subscriber(tmp_path):
    """Its callbacks are its own; afterwards they are ours."""
    beside, after = sessions(tmp_path, "subscriber")
    assert "another profiler" in beside["said"] and "aten::add_" in beside["rows"]
    assert after["said"] == "" and kernels(after) == 5 and after["rows"]["aten::add_"][1] > 0


def test_no_gpu_is_visible(tmp_path):
    one, = sessions(tmp_path, CUDA_VISIBLE_DEVICES="")
    assert "CUDA" in one["said"] and "without effect" in one["said"]
    doctor = subprocess.run([SONDE, "doctor"], capture_output=True, text=True, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
    line, = [line for line in doctor.stdout.splitlines() if line.startswith("gpu ")]
    assert "records no GPU work here" in line and "no GPU" in line


def libraries(pattern):
    places = ("/opt/nvidia/nsight-compute/*/host/*", "/usr/local/cuda*/extras/CUPTI/lib64", "/usr/local/cuda*/lib64",
              *(f"{folder or '.'}/triton/backends/nvidia/lib/cupti" for folder in sys.path))
    return sorted(path for place in places for path in glob.glob(f"{place}/{pattern}"))


@pytest.mark.parametrize("version", ["10.2", "11.0", "11.6"])
def test_a_cupti_that_is_too_old(tmp_path, version):
    found = libraries(f"libcupti.so.{version}")
    if not found:
        pytest.skip(f"no libcupti.so.{version} here: Nsight Compute brings some")
    one, = sessions(tmp_path, SONDE_CUPTI=found[0])
    assert "GPU work is not recorded: CUPTI version" in one["said"] and "is not supported" in one["said"]
    assert kernels(one) == 0


def test_a_cupti_two_generations_older(tmp_path):
    """That of CUDA 11.8 beside torch's CUDA 13 would crash the program."""
    found = libraries("libcupti.so.11.8")
    torch = pytest.importorskip("torch")
    if not found or int(torch.version.cuda.split(".")[0]) < 13:
        pytest.skip("no libcupti.so.11.8 here, which Nsight Compute brings, or torch is not for CUDA 13")
    one, = sessions(tmp_path, SONDE_CUPTI=found[0])
    assert "is that of CUDA 11, too old for this process, which uses CUDA 13" in one["said"] and kernels(one) == 0


@pytest.mark.parametrize("version", ["12", "12.9"])
def test_a_cupti_of_another_toolkit(tmp_path, version):
    """Of a version that is known: it records, or what it answers is said."""
    found = libraries(f"libcupti.so.{version}")
    if not found:
        pytest.skip(f"no libcupti.so.{version} here: Nsight Compute and Triton bring some")
    one, = sessions(tmp_path, SONDE_CUPTI=found[0])
    assert kernels(one) == 5 if one["said"] == "" else "GPU work is" in one["said"], one


HIDE = """
for file in $(find / -xdev -name 'libcupti.so*' -type f 2>/dev/null); do mount --bind /dev/null "$file" || exit 9; done
"$@"
"""


def test_no_cupti_at_all(tmp_path, plain):
    """Every libcupti of the machine is hidden, from this program alone."""
    if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
        pytest.skip("only root may hide files from one program")
    done = subprocess.run(["unshare", "-m", "sh", "-c", HIDE, "sh", SONDE, "run", "--gpu", "-o", tmp_path / "t.sonde", "--", plain],
                          capture_output=True, text=True, timeout=100)
    assert done.returncode == 0 and done.stdout.startswith("done"), done.stderr
    assert "GPU work is not recorded: no CUPTI was found" in done.stderr
    ledger = run(SONDE, "report", tmp_path / "t.sonde", "--view", "ledger", "--json").stdout
    assert "no CUPTI was found" in ledger


def test_under_nsight_compute(tmp_path):
    """Nsight has CUPTI: its kernels are its own, our CPU's side is whole, and it is said."""
    if not shutil.which("ncu"):
        pytest.skip("no ncu")
    one, = sessions(tmp_path, before=("ncu", "--clock-control", "none", "--launch-count", "1", "--target-processes", "all"))
    assert "GPU work is" in one["said"] or kernels(one) == 5, one
