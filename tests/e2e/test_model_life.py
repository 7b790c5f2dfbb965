# SPDX-License-Identifier: Apache-2.0
"""sonde model and sonde layers when something goes wrong on the way: nothing measured is lost."""
import json
import os
import pathlib
import resource
import stat
import subprocess
import sys
import textwrap

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: there is no model to run")
yaml = pytest.importorskip("yaml", reason="PyYAML is not installed: nothing reads our YAML")

import sonde  # noqa: E402
import warm_torch  # noqa: E402
from cli_tools import SONDE  # noqa: E402

MODEL = """
    import os
    import pathlib
    import signal

    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(4, 4)

        def forward(self, x):
            pathlib.Path(os.environ["RAN"]).touch()
            if len(x) == 4:
                os.kill(os.getpid(), getattr(signal, os.environ.get("SIGNAL", "SIGKILL")))
            return self.inner(x)
"""


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "net.py"
    path.write_text(textwrap.dedent(MODEL), encoding="utf-8")
    return f"{path}:Net"


def run(tmp_path, command, *arguments, python=None, **extra):
    assert SONDE, "the program sonde is not built: run `make`, or set SONDE"
    temporary = tmp_path / "tmp"
    temporary.mkdir(exist_ok=True)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "SONDE_PYTHON_EXE": python or warm_torch.python(),
                   "SONDE_PYTHON": os.path.dirname(sonde.__file__), "TMPDIR": str(temporary),
                   "RAN": str(tmp_path / "ran"), **extra.pop("env", {})}
    done = subprocess.run([SONDE, command, *map(str, arguments)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, encoding="utf-8", env=environment, timeout=120,
                          **extra)
    assert not list(temporary.glob("sonde-model-*")), "a folder of traces is left behind"
    return done


def measure(tmp_path, spec, *arguments, **extra):
    return run(tmp_path, "model", spec, "--input", "4", "-i", 2, "--warmup", 1, "--passes", 1,
               *arguments, **extra)


def batches(path):
    return list(yaml.safe_load(path.read_text(encoding="utf-8"))["timing"])


# ------------------------------------------------------------------------- killed

def test_killed_at_a_batch(spec, tmp_path):
    """What was measured before is written, as after any other failure; the status tells."""
    path = tmp_path / "out.yml"
    done = measure(tmp_path, spec, "-b", "1,4", "-o", path)
    assert done.returncode == 128 + 9, done.stderr
    assert "was ended by signal 9" in done.stderr
    assert batches(path) == ["batch_size_1"]


def test_crashed_at_a_batch(spec, tmp_path):
    """Shown likewise."""
    done = measure(tmp_path, spec, "-b", "1,4", "--json", env={"SIGNAL": "SIGSEGV"})
    assert done.returncode == 128 + 11, done.stderr
    assert "was ended by signal 11" in done.stderr
    assert list(json.loads(done.stdout)["timing"]) == ["batch_size_1"]


def test_killed_at_the_first_batch(spec, tmp_path):
    path = tmp_path / "out.yml"
    done = measure(tmp_path, spec, "-b", "4", "-o", path)
    assert done.returncode == 128 + 9, done.stderr
    assert "was ended by signal 9" in done.stderr


def test_layers_are_killed(tmp_path, spec):
    """Its status is the one that a shell gives."""
    done = run(tmp_path, "layers", spec, "-b", 4, "-s", "4", "-o", tmp_path / "r.yml")
    assert done.returncode == 128 + 9, done.stderr
    assert "was ended by signal 9" in done.stderr


# ------------------------------------------------------------------------ written

@pytest.mark.parametrize("name", ["no/such/folder.yml", "net.py/x.yml", "."])
def test_where_nothing_can_be_written_nothing_is_measured(spec, tmp_path, name):
    done = measure(tmp_path, spec, "-o", tmp_path / name)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1 and str(tmp_path / name) in done.stderr
    assert not (tmp_path / "ran").exists()


def test_a_link_stays_one_and_the_mode_is_kept(spec, tmp_path):
    target, link = tmp_path / "target.yml", tmp_path / "link.yml"
    target.write_text("old", encoding="utf-8")
    target.chmod(0o600)
    link.symlink_to("target.yml")
    assert measure(tmp_path, spec, "-o", link).returncode == 0
    assert link.is_symlink() and batches(target) == ["batch_size_1"]
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_what_is_no_file_stays_what_it_is(spec, tmp_path):
    """A pipe, or a device, is written to; it is not replaced."""
    fifo = tmp_path / "fifo.yml"
    os.mkfifo(fifo)
    reader = subprocess.Popen(["cat", str(fifo)], stdout=subprocess.PIPE, encoding="utf-8")
    assert measure(tmp_path, spec, "-o", fifo).returncode == 0
    text, _ = reader.communicate(timeout=60)
    assert list(yaml.safe_load(text)["timing"]) == ["batch_size_1"]
    assert stat.S_ISFIFO(fifo.stat().st_mode)


def test_a_full_disk_is_said(spec, tmp_path):
    """The device that is always full; a limit would stop the traces before."""
    if not pathlib.Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    link = tmp_path / "out.yml"
    link.symlink_to("/dev/full")
    done = measure(tmp_path, spec, "-o", link)
    assert done.returncode == 1 and "No space left on device" in done.stderr
    assert link.is_symlink()


@pytest.mark.long
def test_layers_without_room_for_a_trace(spec, tmp_path):
    """A limit on a file's size is a disk that is full: one line says so, and no results are made."""
    path = tmp_path / "r.yml"
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    done = run(tmp_path, "layers", spec, "-b", 2, "-s", "4", "-o", path, python=sys.executable,
               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (64, most)))
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("sonde: layers: cannot reserve space for the trace")
    assert not path.exists()
