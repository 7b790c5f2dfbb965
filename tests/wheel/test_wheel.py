# SPDX-License-Identifier: Apache-2.0
"""The wheel, in an environment that has nothing else of sonde: every command works there.

`tools/test wheel` (make test-wheel) builds the wheel, installs it and sets SONDE_WHEEL, its file, and
SONDE_WHEEL_ENV, the environment, in which torch is the one of .venv.
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import textwrap
import time
import urllib.request
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
WHEEL = os.environ.get("SONDE_WHEEL")
ENV = pathlib.Path(os.environ.get("SONDE_WHEEL_ENV", "/nonexistent"))
PYTHON = ENV / "bin/python"
PIPEEDGE = ROOT / "tests/data/pipeedge/edge"
# What a wheel may need of the system, by auditwheel's policies; torch is there where its probe is loaded.
ALLOWED = re.compile(r"lib(c|m|dl|pthread|rt|stdc\+\+|gcc_s)\.so\.\d+|ld-linux.*|libsonde_record\.so\.1|"
                     r"lib(torch|torch_cpu|c10)\.so")

pytestmark = pytest.mark.skipif(not WHEEL, reason="no wheel: run `make test-wheel`")

SCRIPT = """
    import time
    import torch

    def work():
        until = time.monotonic() + 0.3
        while time.monotonic() < until:
            sum(range(1000))

    model = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU())
    for _ in range(3):
        model(torch.randn(2, 8)).sum().backward()
    work()
    print(sorted({line.split()[-1] for line in open("/proc/self/maps") if "libsonde_record" in line}))
"""


def sonde(*arguments, env=ENV, **extra):
    """What it printed. Nothing of the tree helps it: no path, no other Python package."""
    environment = {"PATH": f"{env}/bin:/usr/bin:/bin", "HOME": os.environ.get("HOME", "/"), "OMP_NUM_THREADS": "1",
                   **{name: os.environ[name] for name in ("TMPDIR", "XDG_CACHE_HOME") if name in os.environ}}
    done = subprocess.run([env / "bin/sonde", *map(str, arguments)], env=environment, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=170, **extra)
    assert done.returncode == 0, f"sonde {' '.join(map(str, arguments))}: {done.stderr}"
    return done.stdout


def rows(trace, view):
    return json.loads(sonde("report", trace, "--view", view, "--json"))["rows"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with the traces that the commands are given."""
    folder = tmp_path_factory.mktemp("wheel")
    (folder / "train.py").write_text(textwrap.dedent(SCRIPT))
    (folder / "net.py").write_text("from torch import nn\n\n\ndef net():\n"
                                   "    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())\n")
    said = sonde("run", "--ops", "--shapes", "--sample", "-o", "train.sonde", "--", PYTHON, "train.py", cwd=folder)
    (folder / "maps").write_text(said.splitlines()[-1])
    return folder


# ------------------------------------------------------------------- what is in it

def elf_files():
    with zipfile.ZipFile(WHEEL) as wheel:
        for name in wheel.namelist():
            data = wheel.read(name)
            if data.startswith(b"\x7fELF"):
                yield name, data


def dynamic(path, kind):
    text = subprocess.run(["readelf", "-dW", path], check=True, stdout=subprocess.PIPE, text=True).stdout
    return re.findall(rf"\({kind}\).*\[(.*)\]", text)


def test_it_is_a_wheel_for_the_systems_that_torch_runs_on():
    assert re.fullmatch(r"sonde-[0-9.]+-cp3\d+-cp3\d+-manylinux_2_28_\w+\.whl", os.path.basename(WHEEL))


def test_its_libraries_need_the_system_alone(tmp_path):
    recorders = []
    for name, data in elf_files():
        path = tmp_path / "library"
        path.write_bytes(data)
        assert not [lib for lib in dynamic(path, "NEEDED") if not ALLOWED.fullmatch(lib)], name
        for run_path in dynamic(path, "R(?:UN)?PATH"):
            assert set(run_path.split(":")) <= {"$ORIGIN", "$ORIGIN/_native", "$ORIGIN/../_native"}, name
        recorders += [name] if dynamic(path, "SONAME") == ["libsonde_record.so.1"] else []
    assert recorders == ["sonde/_native/libsonde_record.so.1"]


def test_the_libraries_of_probes_are_in_it():
    """Those that `sonde run` has programs load: SND_BY_LIBRARY of the table of probes."""
    table = (ROOT / "src/probes/probes.def").read_text().split("clang-format off")[1]
    libraries = {f"sonde/_native/probe_{name}.so" for name in re.findall(r"SND_BY_LIBRARY\((\w+)", table)}
    assert libraries and libraries <= {name for name, _ in elf_files()}


def test_what_is_linked_into_it_has_its_license_in_it():
    with zipfile.ZipFile(WHEEL) as wheel:
        names = wheel.namelist()
    for library in ("zstd", "zlib", "yaml"):
        assert [name for name in names if re.search(rf"licenses/.*{library}", name)], library


def test_python_imports_the_wheels_package():
    done = subprocess.run([PYTHON, "-c", "import sonde; print(sonde.__file__, sonde.__version__)"], check=True,
                          stdout=subprocess.PIPE, text=True, cwd="/")
    file, version = done.stdout.split()
    assert pathlib.Path(file).is_relative_to(ENV) and f"sonde-{version}-" in WHEEL
    assert sonde("--version").split() == ["sonde", version]


# --------------------------------------------------------------------- every command

def run_report(place):
    assert "work" in sonde("report", place / "train.sonde", "--view", "samples")
    assert {row["key"]: row["count"] for row in rows(place / "train.sonde", "ops")}["aten::linear"] == 3


def run_run(place):
    """Of a script of PyTorch: operators, samples, and one recorder for both; then of Python alone."""
    assert eval((place / "maps").read_text()) == [str(next(ENV.glob("lib/python3*/site-packages/sonde/_native"))
                                                      / "libsonde_record.so.1")]
    shapes = sonde("report", place / "train.sonde", "--group-by", "shape")
    assert "[[2, 8], [4, 8], [4]]" in shapes
    assert "names_only" not in {row["key"] for row in rows(place / "train.sonde", "ledger")}
    (place / "plain.py").write_text("def work():\n    return 1\n\n\nfor _ in range(20):\n    work()\n")
    sonde("run", "--functions", "-o", "plain.sonde", "--", PYTHON, "plain.py", cwd=place)
    assert re.search(r"20 .*plain.py:1\(work\)", sonde("report", place / "plain.sonde", "--view", "functions"))
    sonde("run", "--lines", "work", "-o", "lines.sonde", "--", PYTHON, "plain.py", cwd=place)
    assert re.search(r"2 +20 .*return 1", sonde("report", place / "lines.sonde", "--view", "lines"))


def run_attach(place):
    attach(place, ENV)


def attach(place, env):
    child = subprocess.Popen([env / "bin/python", "-uc", "print('ready')\ndef busy():\n    while True:\n        sum(range(9999))\n"
                              "busy()"], stdout=subprocess.PIPE)
    try:
        assert child.stdout.readline() == b"ready\n"
        sonde("attach", child.pid, "--duration", "0.3", "-o", "attached.sonde", cwd=place, env=env)
    finally:
        child.kill()
        child.communicate()
    assert "busy" in sonde("report", place / "attached.sonde", "--view", "samples")


def run_record(place):
    """A program that stands by, and is asked for two steps."""
    (place / "steps.py").write_text("import os, time, torch\nw = torch.ones(4, requires_grad=True)\no = torch.optim.SGD([w], lr=0.1)\n"
                                    "while not os.path.exists('stop'):\n    w.sum().backward()\n    o.step()\n    time.sleep(0.01)\n")
    program = subprocess.Popen([ENV / "bin/sonde", "run", "-q", "--standby", "-o", "asked", "--", PYTHON, "steps.py"], cwd=place)
    try:
        until = time.monotonic() + 100
        while " step " not in subprocess.run([ENV / "bin/sonde", "record", "asked", "--list"], cwd=place, text=True, stdout=subprocess.PIPE,
                                             stderr=subprocess.DEVNULL).stdout:
            assert program.poll() is None and time.monotonic() < until
            time.sleep(0.2)
        sonde("record", "asked", "--steps", "2", cwd=place)
    finally:
        (place / "stop").touch()
        program.wait(60)
    assert len(rows(place / "asked/1", "steps")) == 2


def run_export(place):
    """Every format; those of other probes refuse a trace that has nothing for them."""
    formats = [line.split()[0] for line in sonde("export", "--list").splitlines()]
    assert "without" not in sonde("export", "--list")
    for name in formats:
        if name in ("html", "svg", "chrome", "perfetto", "folded", "speedscope", "json", "csv", "sqlite", "parquet"):
            sonde("export", place / "train.sonde", "--to", name, "-o", place / f"train.{name}")
    sonde("export", place / "train.sonde", "--to", "chrome", "-o", place / "train.json.gz")


def run_check(place):
    sonde("check", place / "train.sonde")


def run_pack(place):
    sonde("pack", place / "train.sonde", "-o", place / "packed.sonde")
    assert rows(place / "packed.sonde", "ops") == rows(place / "train.sonde", "ops")


def run_diff(place):
    assert "aten::" in sonde("diff", place / "train.sonde", place / "train.sonde")


def run_sql(place):
    """The ready queries are in it; duckdb is one of the packages that its environment has from the tests'."""
    assert "hot_operators" in sonde("sql", "--list")
    said = subprocess.run([ENV / "bin/sonde", "sql", place / "train.sonde", "hot_operators"], capture_output=True, text=True,
                          check=True, env={**os.environ, "SONDE_PYTHON_EXE": str(PYTHON)}).stdout
    assert "aten::" in said


def run_view(place):
    with subprocess.Popen([ENV / "bin/sonde", "view", "--no-open", place / "train.sonde"], stdout=subprocess.PIPE, text=True) as served:
        page = urllib.request.urlopen(served.stdout.readline().strip()).read()
        served.send_signal(signal.SIGINT)
    assert page.startswith(b"<!doctype html>")


def run_model(place):
    said = sonde("model", f"{place}/net.py:net", "--input", "3x8x8", "-i", "2", "--passes", "1")
    assert "conv2d" in said and "Conv2d" in said


def run_layers(place):
    sonde("layers", f"{place}/net.py:net", "--input", "3x8x8", "-b", "1", "-o", place / "results.yml")


def run_convert(place):
    if not (place / "results.yml").exists():
        run_layers(place)
    sonde("convert", "models", "-i", place / "results.yml", "-o", place / "models.yml")
    assert (place / "models.yml").read_text().strip()


def run_plan(place):
    assert "host" in sonde("plan", "-m", "toy", "-M", PIPEEDGE / "toy_models.yml", "-T",
                           PIPEEDGE / "toy_device_types.yml", "-D", PIPEEDGE / "toy_devices_fast_only.yml")


def run_doctor(place):
    checks = {one["name"]: one for one in json.loads(sonde("doctor", "--json", cwd=place))["checks"]}
    for name in ("torch", "zstd", "zlib", "yaml"):
        assert checks[name]["verdict"] == "ok", checks[name]


def run_import(place):
    sonde("import", ROOT / "tests/data/import/kineto.json", "-o", place / "imported.sonde")
    names = {row["key"] for row in rows(place / "imported.sonde", "ops")}
    assert names and names == {row["key"] for row in rows(ROOT / "tests/data/import/kineto.json", "ops")}


def run_completion(place):
    assert "complete" in sonde("completion", "bash")


def run_help(place):
    assert "usage: sonde run" in sonde("help", "run")


COMMANDS = {name[4:]: function for name, function in list(globals().items()) if name.startswith("run_")}


@pytest.mark.parametrize("command", COMMANDS)
def test_command(place, command):
    COMMANDS[command](place)


def test_every_command_is_tested():
    table = sonde("--help").split("commands:")[1]
    assert set(re.findall(r"^  ([a-z-]+)  ", table, re.M)) == set(COMMANDS)


def test_profile_in_a_script(place):
    program = ("import torch, sonde\nwith sonde.profile(record_shapes=True) as p:\n    torch.relu(torch.ones(3))\n"
               "print({row.key for row in p.key_averages()})")
    done = subprocess.run([PYTHON, "-c", program], check=True, stdout=subprocess.PIPE, text=True, cwd=place)
    assert "aten::relu" in done.stdout


def test_the_probe_for_torch_is_in_it(place, tmp_path):
    """Of the torch that it was built with: nothing is compiled, and nothing is missing."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "CXX": "no-such-compiler"}
    done = subprocess.run([PYTHON, "-m", "sonde.torch"], check=True, env=environment, cwd=place, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    probe = pathlib.Path(done.stdout.strip())
    assert probe.parent == next(ENV.glob("lib/python3*/site-packages/sonde/_probes")) and done.stderr == ""
    subprocess.run([ENV / "bin/sonde", "run", "--ops", "--shapes", "-o", "brought.sonde", "--", PYTHON, "train.py"],
                   check=True, env=environment, cwd=place)
    assert "[[2, 8], [4, 8], [4]]" in sonde("report", place / "brought.sonde", "--group-by", "shape")


# -------------------------------------------------------- pip install, from the source

def test_a_source_archive_builds_and_installs(place, tmp_path):
    """As `pip install .` does it: nothing linked statically, nothing audited."""
    builder = ROOT / "build-wheel" / "cp{}{}".format(*sys.version_info) / "bin"
    path = {**os.environ, "PATH": f"{builder}:{os.environ['PATH']}"}
    path.pop("MESON", None)
    subprocess.run([builder / "python", "-c", f"import mesonpy; mesonpy.build_sdist({str(tmp_path)!r})"], check=True,
                   cwd=ROOT, env=path, stdout=subprocess.DEVNULL)
    subprocess.run([builder / "python", "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation",
                    "--config-settings", "setup-args=-Doptimization=0", "-w",
                    tmp_path, next(tmp_path.glob("sonde-*.tar.gz"))], check=True, env=path)
    env = tmp_path / "env"
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", env], check=True)
    subprocess.run([builder / "python", "-m", "pip", "--python", env / "bin/python", "install", "--quiet",
                    "--no-index", next(tmp_path.glob("*.whl"))], check=True)
    attach(tmp_path, env)
    (tmp_path / "plain.py").write_text("def work():\n    return 1\n\n\nwork()\n")
    assert "plain.py:1(work)" in sonde("run", "--functions", "--print", "-o", "plain.sonde", "--", env / "bin/python",
                                       "plain.py", cwd=tmp_path, env=env)
