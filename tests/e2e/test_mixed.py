# SPDX-License-Identifier: Apache-2.0
"""Mixed stacks: Python functions, operators and ranges, native functions in one stack."""
import json
import subprocess
import sys
import textwrap

import pytest

from cli_tools import SONDE

pytestmark = pytest.mark.skipif(not SONDE, reason="the program sonde is not built: run `make`")
torchvision = pytest.importorskip("torchvision")


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
