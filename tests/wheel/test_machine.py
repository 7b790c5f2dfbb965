# SPDX-License-Identifier: Apache-2.0
"""The wheel that is cross-built for another machine, in a Python of that machine under qemu.

`tools/test aarch64` builds it and sets SONDE_MACHINE_WHEEL, its file, and SONDE_MACHINE_TORCH: the wheel of a torch of that
machine which it carries the probe for. The Python is Debian's: its packages are fetched and
unpacked, since only one machine's interpreter can be installed. Of torch, only the libraries are loaded: an import of it takes
a minute there.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

WHEEL = os.environ.get("SONDE_MACHINE_WHEEL")
TORCH = os.environ.get("SONDE_MACHINE_TORCH")
VERSION = "%d.%d" % sys.version_info[:2]
TRIPLET, ARCHITECTURE = "aarch64-linux-gnu", "arm64"
pytestmark = pytest.mark.skipif(not WHEEL, reason="no wheel of another machine: run `tools/test aarch64`")

PROGRAM = """
import cProfile, json, platform, pstats, sys
import sonde

def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)

def run():
    return sum(fib(n) for n in range(10))

with sonde.functions(path=sys.argv[1]):
    run()
peer = cProfile.Profile()
peer.runcall(run)
calls = {name: count for (_, _, name), (_, count, *_) in pstats.Stats(peer).stats.items()}
with sonde.lines(fib, path=sys.argv[2]):
    run()
print(json.dumps({"machine": platform.machine(), "fib": calls["fib"], "run": calls["run"]}))
"""


@pytest.fixture(scope="module")
def there(tmp_path_factory):
    """A folder like an environment's, of the other machine: bin, lib; and how its programs are started."""
    packages = [f"{name}:{ARCHITECTURE}" for name in (f"python{VERSION}-minimal", f"libpython{VERSION}-minimal", f"libpython{VERSION}-stdlib", "libexpat1", "libffi8")]
    if subprocess.run(["apt-cache", "show", packages[0]], capture_output=True).returncode != 0:
        pytest.skip(f"this suite of Debian has no Python {VERSION} of {ARCHITECTURE}")
    folder = tmp_path_factory.mktemp("there")
    subprocess.run(["apt-get", "download", "-q", *packages], cwd=folder, check=True, capture_output=True)
    for package in folder.glob("*.deb"):
        subprocess.run(["dpkg", "-x", str(package), str(folder)], check=True)
    site = folder / f"usr/lib/python{VERSION}/site-packages"
    with zipfile.ZipFile(WHEEL) as wheel:
        wheel.extractall(site)
    program = shutil.copy(next(site.glob("sonde-*.data/scripts/sonde")), folder / "usr/bin/sonde")
    os.chmod(program, 0o755)
    libraries = ":".join(str(folder / place / TRIPLET) for place in ("lib", "usr/lib"))
    return folder / "usr", ["qemu-aarch64", "-E", f"LD_LIBRARY_PATH={libraries}", "-E", f"PYTHONHOME={folder}/usr", "-E", f"PYTHONPATH={site}"]


# The package's own choice, after all that torch is made of: every function that the probe calls must be in one of them.
LOADS = """
import ctypes, json, os, sys
site = sys.argv[1]
for name in ("torch_global_deps", "c10", "torch_cpu", "torch", "torch_python"):
    ctypes.CDLL(f"{site}/torch/lib/lib{name}.so", ctypes.RTLD_GLOBAL)
from sonde.torch import _probe, _torch_build
build = _torch_build.of_folder(site, "")
path = _probe._from_wheel(build, _probe._source_folder())
print(json.dumps({"version": build.version, "probe": path, "has": [hasattr(ctypes.CDLL(path or None), name) for name in sys.argv[2:]]}))
"""


@pytest.fixture(scope="module")
def recorded(there, tmp_path_factory):
    """What the program printed, and its two traces."""
    folder = tmp_path_factory.mktemp("traces")
    (folder / "program.py").write_text(PROGRAM)
    said = run(there, f"python{VERSION}", folder / "program.py", folder / "functions.sonde", folder / "lines.sonde")
    return json.loads(said), folder


def run(there, program, *arguments):
    place, start = there
    done = subprocess.run([*start, str(place / "bin" / program), *map(str, arguments)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_its_name_is_that_of_the_platform():
    tag = f"cp{VERSION.replace('.', '')}"
    assert re.fullmatch(rf"sonde-[\d.]+-{tag}-{tag}-manylinux_2_28_aarch64\.whl", pathlib.Path(WHEEL).name)


def test_all_its_binaries_are_of_the_machine():
    with zipfile.ZipFile(WHEEL) as wheel:
        binaries = [wheel.read(name)[18:20] for name in wheel.namelist() if wheel.read(name)[:4] == b"\x7fELF"]
    assert len(binaries) >= 5 and set(binaries) == {(183).to_bytes(2, "little")}  # EM_AARCH64


def test_the_program_runs(there):
    assert re.match(r"sonde \d+\.\d+", run(there, "sonde", "--version"))


def test_calls_are_those_of_cprofile(there, recorded):
    said, folder = recorded
    assert said["machine"] == "aarch64"
    rows = json.loads(run(there, "sonde", "report", folder / "functions.sonde", "--view", "functions", "--json"))["rows"]
    calls = {row["function"]: row["calls"] for row in rows}
    assert (calls["fib"], calls["run"]) == (said["fib"], said["run"]) and said["fib"] > 200


def test_hits_of_a_line_are_the_calls(there, recorded):
    said, folder = recorded
    rows = json.loads(run(there, "sonde", "report", folder / "lines.sonde", "--view", "lines", "--json"))["rows"]
    assert [row["hits"] for row in rows if row["hits"]] == [said["fib"]]


def test_the_probe_for_torch_is_loaded_with_torchs_libraries(there, tmp_path):
    site = there[0] / f"lib/python{VERSION}/site-packages"
    with zipfile.ZipFile(TORCH) as wheel:
        wheel.extractall(site, [name for name in wheel.namelist()
                                if re.match(r"torch(\.libs/|/lib/[^/]*\.so|/version\.py$|/share/cmake/Torch/)", name)])
    (tmp_path / "loads.py").write_text(LOADS)
    # The C++ library that torch needs is the compiler's. For this alone: with its libc, programs that record do not end under qemu.
    usr, words = there
    with_cxx = usr, [f"{word}:/usr/{TRIPLET}/lib" if word.startswith("LD_LIBRARY_PATH=") else word for word in words]
    said = json.loads(run(with_cxx, f"python{VERSION}", tmp_path / "loads.py", site, "sonde_torch_start", "sonde_torch_no_such_function"))
    release = said["version"].split("+")[0]
    assert pathlib.Path(TORCH).name.startswith(f"torch-{release}")
    assert said["probe"] and re.fullmatch(rf"torch-{release}-[01]-cpython-{VERSION.replace('.', '')}-linux-aarch64-[0-9a-f]{{16}}\.so", pathlib.Path(said["probe"]).name)
    assert said["has"] == [True, False]
