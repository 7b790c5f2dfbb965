# SPDX-License-Identifier: Apache-2.0
"""Mixed stacks: Python functions, operators and ranges, native functions in one stack."""
import json
import os
import subprocess
import sys
import textwrap

import pytest

import warm_torch
from cli_tools import SONDE

pytestmark = pytest.mark.skipif(not SONDE, reason="the program sonde is not built: run `make`")
torchvision = pytest.importorskip("torchvision")


@pytest.mark.long
def test_a_resnet_has_python_operator_and_native_frames_in_one_stack(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent("""
        import time
        import torch, torchvision
        def infer(model, x):
            with torch.no_grad():
                return model(x)
        model = torchvision.models.resnet18().eval()
        x = torch.randn(2, 3, 96, 96)
        end = time.monotonic() + 60
        begin = time.process_time()
        while time.process_time() - begin < 0.8 and time.monotonic() < end:  # enough samples, however busy the machine is
            infer(model, x)
    """))
    trace = tmp_path / "t.sonde"
    done = subprocess.run([SONDE, "run", "-o", trace, "--ops", "--sample", "200", "--native", "--", sys.executable,
                           program], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    folded = subprocess.run([SONDE, "export", trace, "--to", "folded", "-o", "-"], capture_output=True, text=True,
                            check=True).stdout
    mixed = [line for line in folded.splitlines()
             if "infer (" in line and ";aten::conv2d;" in line and ".so" in line.split(";aten::conv2d;")[1]]
    assert mixed, folded[-3000:]
    for line in mixed:  # in this order
        before, after = line.split(";aten::conv2d;", 1)
        assert "forward (" in before and ".py:" not in after.split(" (")[0]
    report = subprocess.run([SONDE, "report", trace, "--view", "functions", "--json"], capture_output=True,
                            text=True, check=True).stdout
    rows = json.loads(report)["rows"]
    operators = {row["function"]: row for row in rows if row["function"].startswith("aten::")}
    python = next(row for row in rows if row["function"].endswith("infer"))
    assert 0 < operators["aten::conv2d"]["total_ns"] <= python["total_ns"]


ORDERED = """
import contextlib
import time
import torch
from torch.profiler import record_function

@contextlib.contextmanager
def named(name):
    with record_function(name):
        yield
end = time.monotonic() + 60
def spin(s):
    begin = time.process_time()
    while time.process_time() - begin < s and time.monotonic() < end:
        sum(range(500))
def inner():
    with record_function("tail"):
        spin(0.15)
    spin(0.1)
def outer():
    with named("step"):
        inner()
        torch.ones(300, 300).exp().sum()
def generate():
    with record_function("from a generator"):
        yield spin(0.1)
        yield
outer()
rows = generate()
next(rows)
spin(0.1)
"""


@pytest.mark.parametrize("options, compiler", [([], True), (["--native"], True), ([], False)],
                         ids=["python", "native", "names only"])
def test_a_range_comes_after_the_function_that_opened_it(tmp_path, options, compiler):
    """A range that Python opens has Python functions in it, and they are below it: whatever the probe is."""
    environment = dict(os.environ)
    if not compiler:
        environment |= {"CXX": "no-such-compiler", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    program = tmp_path / "program.py"
    program.write_text(ORDERED)
    trace = tmp_path / "t.sonde"
    done = subprocess.run([SONDE, "run", "-o", trace, "--ops", "--sample", "500", *options, "--", warm_torch.python(), program],
                          capture_output=True, text=True, timeout=600, env=environment)
    assert done.returncode == 0, done.stderr
    assert ("names and times" in done.stderr) == (not compiler)
    folded = subprocess.run([SONDE, "export", trace, "--to", "folded", "-o", "-"], capture_output=True, text=True,
                            check=True).stdout
    ours = ("outer", "inner", "spin", "generate", "step", "tail", "from a generator")
    seen = set()
    for line in folded.splitlines():
        names = [frame.partition(" (")[0] for frame in line.rpartition(" ")[0].split(";")]
        seen.add(";".join(name for name in names if name in ours))
    assert {"outer;step;inner;tail;spin", "outer;step;inner;spin", "generate;from a generator;spin"} <= seen
    # A range that is still open when its function has been left comes last.
    possible = {"", "outer", "outer;step", "outer;step;inner", "outer;step;inner;tail", "generate", "generate;from a generator",
                "spin", "spin;from a generator", "from a generator", "from a generator;spin"}
    assert all(stack.removesuffix(";spin") in possible or stack in possible for stack in seen), seen
    tree = json.loads(subprocess.run([SONDE, "report", trace, "--view", "samples", "--json"], capture_output=True, text=True,
                                     check=True).stdout)
    assert '"step"' in json.dumps(tree)


LOADED = """
import time
import torch
from torch.utils.data import DataLoader

class Sentences:
    def __len__(self):
        return 10
    def __getitem__(self, i):
        return torch.tensor(self.rarity(i))
    def rarity(self, i):
        end, spins = time.process_time() + 0.03, 0
        while time.process_time() < end:
            spins += 1
        return i
for batch in DataLoader(Sentences(), batch_size=5):
    pass
"""


@pytest.mark.parametrize("compiler", [True, False], ids=["full", "names only"])
def test_the_time_of_a_function_in_a_range_is_its_own(tmp_path, compiler):
    """torch's DataLoader opens a range around what the data set does: that is no time of the range."""
    program, trace = tmp_path / "program.py", tmp_path / "t.sonde"
    program.write_text(LOADED)
    environment = dict(os.environ)
    if not compiler:
        environment |= {"CXX": "no-such-compiler", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run([SONDE, "run", "-o", trace, "--ops", "--sample", "500", "--", warm_torch.python(), program],
                          capture_output=True, text=True, timeout=600, env=environment)
    assert done.returncode == 0, done.stderr
    assert ("names and times" in done.stderr) == (not compiler)
    rows = json.loads(subprocess.run([SONDE, "report", trace, "--view", "functions", "--json", "--rows", "-1"],
                                     capture_output=True, text=True, check=True).stdout)["rows"]
    rarity = next(row for row in rows if row["function"].endswith("rarity"))
    loader = next(row for row in rows if row["function"].startswith("enumerate(DataLoader)#"))
    assert rarity["self_ns"] > 0.25e9
    assert loader["self_ns"] < 0.1 * rarity["self_ns"] and loader["total_ns"] >= rarity["self_ns"]


def test_building_the_probe_is_in_no_sample(tmp_path):
    """At its first use the torch probe is compiled while the program waits: that is not the program's time."""
    compiler = tmp_path / "c++"
    compiler.write_text("#!/bin/sh\nsleep 2\nexit 1\n")
    compiler.chmod(0o755)
    (tmp_path / "program.py").write_text("import torch\n")
    trace = tmp_path / "t.sonde"
    done = subprocess.run([SONDE, "run", "-o", trace, "--ops", "--sample", "200", "--", sys.executable, tmp_path / "program.py"],
                          capture_output=True, text=True, timeout=600,
                          env={**os.environ, "CXX": str(compiler), "XDG_CACHE_HOME": str(tmp_path / "cache")})
    assert done.returncode == 0 and "cannot build the torch probe" in done.stderr, done.stderr
    folded = subprocess.run([SONDE, "export", trace, "--to", "folded", "-o", "-"], capture_output=True, text=True,
                            check=True).stdout
    assert "torch/__init__.py" in folded and "sonde/torch/_probe.py" not in folded
