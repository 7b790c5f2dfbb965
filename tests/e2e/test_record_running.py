# SPDX-License-Identifier: Apache-2.0
"""sonde record PID of a program that was not started by sonde: its own interpreter runs what makes it listen (PEP 768)."""
import json
import pathlib
import subprocess
import sys

import pytest

from cli_tools import SONDE

HAS_IT = sys.version_info >= (3, 14)
takes_scripts = pytest.mark.skipif(not HAS_IT, reason="before 3.14 Python takes no script from outside")

TRAIN = """
import os, sys, time, torch
model = torch.nn.Sequential(torch.nn.Linear(32, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
steps = 0
while not os.path.exists(sys.argv[1]):
    optimizer.zero_grad()
    model(torch.randn(4, 32)).sum().backward()
    optimizer.step()
    steps += 1
    if steps == 3:
        print("runs", flush=True)
    time.sleep(0.01)
print("done", sorted(name for name in sys.modules["__main__"].__dict__ if "sonde" in name or name in ("listen", "folder")), flush=True)
"""
WAITS = "import sys\nprint('runs', flush=True)\nsys.stdin.read(1)\nwhile True:\n    pass\n"


def record(*words, cwd):
    return subprocess.run([SONDE, "record", *map(str, words)], capture_output=True, text=True, timeout=200, cwd=cwd)


def start(tmp_path, text, *arguments, options=()):
    (tmp_path / "program.py").write_text(text)
    child = subprocess.Popen([sys.executable, *options, "program.py", *map(str, arguments)], cwd=tmp_path, text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout.readline() == "runs\n", child.stderr.read()
    return child


def report(trace, view):
    done = subprocess.run([SONDE, "report", trace, "--view", view, "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["rows"]


@takes_scripts
def test_steps_of_a_training_that_is_running(tmp_path):
    pytest.importorskip("torch")
    child = start(tmp_path, TRAIN, tmp_path / "end")
    try:
        for number, options in ((1, ["--steps", "3", "--shapes"]), (2, ["--seconds", "0.3"])):
            done = record(child.pid, *options, cwd=tmp_path)
            assert done.returncode == 0, done.stderr
            trace, = (tmp_path / f"record-{child.pid}/{number}").glob("*.sonde")
            calls = {row["key"]: row["count"] for row in report(trace, "ops")}
            assert calls["aten::addmm"] == 2 * 3 if number == 1 else calls["aten::addmm"] > 0, calls
            if number == 1:
                assert len(report(trace, "steps")) == 3
        left = {path.name for path in pathlib.Path(tmp_path, f"record-{child.pid}").iterdir()}
        assert left == {"1", "2", "standby"}, "no script, no reason of a failure"
        (tmp_path / "end").touch()
        assert child.wait(60) == 0
        assert child.stdout.read() == "done []\n" and child.stderr.read() == ""
    finally:
        child.kill()
        child.communicate()


@takes_scripts
@pytest.mark.parametrize("options, why", [
    ((), "it has not imported torch, of which operators would be recorded; sonde attach samples any program"),
    (("-X", "disable-remote-debug"), "it takes no script from outside: PYTHON_DISABLE_REMOTE_DEBUG is set, or "
                                     "it was started with -X disable-remote-debug"),
])
def test_what_prevents_it_is_said(tmp_path, options, why):
    child = start(tmp_path, WAITS, options=options)
    try:
        child.stdin.write("x")
        child.stdin.flush()
        done = record(child.pid, cwd=tmp_path)
        assert done.returncode == 1 and done.stderr == f"sonde: record {child.pid}: it was not started by sonde run --standby: {why}\n"
        assert not (tmp_path / f"record-{child.pid}").exists() and child.poll() is None
    finally:
        child.kill()
        assert child.communicate()[1] == ""


@pytest.mark.skipif(HAS_IT, reason="since 3.14 Python takes scripts from outside")
def test_a_python_that_takes_no_script(tmp_path):
    child = start(tmp_path, WAITS)
    try:
        done = record(child.pid, cwd=tmp_path)
        version = "%d.%d" % sys.version_info[:2]
        assert done.returncode == 1 and done.stderr == (f"sonde: record {child.pid}: it was not started by sonde run --standby: Python {version} takes "
                                                        "no script from outside; 3.14 and later do\n")
        assert not (tmp_path / f"record-{child.pid}").exists()
    finally:
        child.kill()
        child.communicate()


def test_no_python_at_all(tmp_path):
    child = subprocess.Popen(["sleep", "60"])
    try:
        done = record(child.pid, cwd=tmp_path)
        assert done.returncode == 1 and len(done.stderr.splitlines()) == 1 and "Python" in done.stderr
        assert record(child.pid, "--list", cwd=tmp_path).returncode == 1 and list(tmp_path.iterdir()) == []
    finally:
        child.kill()
        child.wait()
