# SPDX-License-Identifier: Apache-2.0
"""The static `sonde` (tools/static), alone in a root without a C library, a shell, or any other file (the stage `static` of tools/test)."""
import gzip
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("SONDE_STATIC")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="there is no static sonde: run `make test-static`")

# What the new root has of the machine: /proc, of the processes in it.
ENTER = 'mount -t proc proc "$0/proc" 2>/dev/null || mount --rbind /proc "$0/proc"; exec /usr/bin/env -i /usr/sbin/chroot "$0" "$@"'
BUSY = r"""
#include <cstdlib>
namespace deep {
struct Layer {
    __attribute__((noinline)) double forward(double x) {
        for (int i = 1; i < 20000000; i++)
            x += 1.0 / ((double)i * i);
        return x;
    }
};
}
int main(int count, char **words) {
    deep::Layer layer;
    double      x = 0;
    for (int i = 0; i < atoi(words[count - 1]); i++)
        x = layer.forward(x);
    return x < 0;
}
"""
WAITS = "import time\ndef spin():\n    end = time.time() + 30\n    while time.time() < end:\n        pass\nspin()\n"


def compile_static(compiler, source, target, *options):
    subprocess.run([*compiler, "-O1", "-static", "-o", target, source, *options], check=True)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A root with the program, two programs to record, and traces that other versions wrote: nothing else."""
    place = tmp_path_factory.mktemp("root")
    for name in ("proc", "tmp", "out"):
        (place / name).mkdir()
    shutil.copy(PROGRAM, place / "sonde")
    (place.parent / "busy.cc").write_text(BUSY)
    compile_static(["g++"], place.parent / "busy.cc", place / "busy")
    compile_static(["gcc"], ROOT / "tests/e2e/programs/two_layers.c", place / "layers", f"-I{ROOT}/include",
                   f"-L{ROOT}/build-static/src", "-lsonde_record", "-pthread")
    for name in ("samples", "torch", "packed", "functions", "lines", "layers"):
        (place / f"{name}.sonde").write_bytes(gzip.decompress((ROOT / f"tests/data/corpus/{name}.trace.gz").read_bytes()))
    return place


def sonde(root, *arguments):
    """In a process and mount namespace of its own; with user namespaces where we are not root."""
    rights = [] if os.geteuid() == 0 else ["--map-root-user"]
    return subprocess.run(["unshare", *rights, "--mount", "--pid", "--fork", "sh", "-c", ENTER, root, "/sonde", *arguments],
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)


def good(root, *arguments):
    done = sonde(root, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_needs_no_library():
    said = subprocess.run(["readelf", "-ld", PROGRAM], text=True, stdout=subprocess.PIPE, check=True).stdout
    assert "INTERP" not in said and "NEEDED" not in said


@pytest.mark.parametrize("name", ["samples", "torch", "packed", "functions", "lines", "layers"])
def test_traces_of_all_kinds_are_reported(root, name):
    """As by the program that `make` built."""
    expected = subprocess.run([ROOT / ".venv/bin/sonde", "report", root / f"{name}.sonde", "--json"], text=True,
                              stdout=subprocess.PIPE, check=True).stdout
    assert json.loads(good(root, "report", f"/{name}.sonde", "--json"))["rows"] == json.loads(expected)["rows"]


def test_every_format_is_exported(root):
    """Of each, the first of some traces that has what it is for."""
    formats = [line.split()[0] for line in good(root, "export", "--list").splitlines()]
    assert len(formats) > 15
    refused = {}
    for name in formats:
        for trace in ("torch", "samples", "functions", "lines", "layers"):
            done = sonde(root, "export", f"/{trace}.sonde", "--to", name, "-o", f"/out/{name}")
            if done.returncode == 0:
                break
            refused[name] = done.stderr
        else:
            continue
        assert (root / "out" / name).exists()
        refused.pop(name, None)
    # which need what no trace of these has, and say so
    assert set(refused) <= {"mprof", "benchmark", "benchmark-json"}, refused
    assert all(len(said.strip().splitlines()) == 1 for said in refused.values()), refused
    assert b"<html" in (root / "out/html").read_bytes()[:2000]


def test_a_program_is_sampled_and_its_names_are_demangled(root):
    done = sonde(root, "run", "-o", "/out/busy.sonde", "--", "/busy", "10")
    assert done.returncode == 0 and done.stderr == "sonde: recorded /out/busy.sonde; next: sonde report /out/busy.sonde\n"
    rows = json.loads(good(root, "report", "/out/busy.sonde", "--view", "functions", "--json"))["rows"]
    assert rows[0]["function"].startswith("deep::Layer::forward"), rows
    assert "ledger is empty" in good(root, "report", "/out/busy.sonde", "--view", "ledger")


def test_marks_of_a_program_are_recorded(root):
    good(root, "run", "-q", "-o", "/out/layers.sonde", "--", "/layers")
    rows = json.loads(good(root, "report", "/out/layers.sonde", "--view", "ops", "--json"))["rows"]
    assert [(row["key"], row["count"], row["flops"]) for row in rows] == [("layer", 18, 1800)]


def test_counters_are_counted(root):
    done = sonde(root, "run", "--counters", "-o", "/out/counted.sonde", "--", "/busy", "1")
    assert done.returncode == 0 and "task-clock" in done.stderr


@pytest.mark.parametrize("mode", ["--heap", "--functions", "--gpu", "--ops"])
def test_what_it_cannot_do_is_one_line(tmp_path, mode):
    """Beside the machine's other files, where a program has a loader."""
    shutil.copy(PROGRAM, tmp_path / "sonde")
    done = subprocess.run([tmp_path / "sonde", "run", mode, "--", "/bin/true"], cwd=tmp_path, env={}, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
    assert "pip install" in done.stderr and "SONDE_PYTHON" in done.stderr


def test_a_python_program_needs_the_package(tmp_path):
    shutil.copy(PROGRAM, tmp_path / "sonde")
    done = subprocess.run([tmp_path / "sonde", "run", "--", sys.executable, "-c", "print(1)"], cwd=tmp_path, env={}, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert (done.returncode, done.stdout) == (0, "1\n") and "package is not beside" in done.stderr and "sonde attach" in done.stderr


def test_doctor_says_what_is_missing(root):
    checks = {check["name"]: check for check in json.loads(good(root, "doctor", "--json"))["checks"]}
    assert {name: checks[name]["verdict"] for name in ("zstd", "zlib", "yaml", "page", "lines", "heap")} == {
        "zstd": "ok", "zlib": "ok", "yaml": "ok", "page": "ok", "lines": "limited", "heap": "no"}
    assert "static" in checks["lines"]["text"]


def test_it_is_not_recorded_itself(root, tmp_path):
    """Its recorder is for others: the variables of an outer `sonde run` do not start it."""
    (tmp_path / "traces").mkdir()
    done = subprocess.run([PROGRAM, "report", root / "torch.sonde"], text=True, env={"SONDE_TRACE": f"{tmp_path}/traces/"},
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 0 and done.stderr == "" and os.listdir(tmp_path / "traces") == []


def test_a_running_python_is_sampled(tmp_path):
    """From outside: no package of sonde, and no Python of its own."""
    shutil.copy(PROGRAM, tmp_path / "sonde")
    process = subprocess.Popen([sys.executable, "-c", WAITS])
    try:
        done = subprocess.run([tmp_path / "sonde", "attach", str(process.pid), "--duration", "1", "-o", tmp_path / "t.sonde"],
                              env={}, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    finally:
        process.kill()
        process.wait()
    assert done.returncode == 0, done.stderr
    said = subprocess.run([tmp_path / "sonde", "report", tmp_path / "t.sonde", "--view", "functions"], env={}, text=True,
                          stdout=subprocess.PIPE, check=True).stdout
    assert "spin" in said
