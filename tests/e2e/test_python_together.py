# SPDX-License-Identifier: Apache-2.0
"""With others who hook the interpreter too: a debugger, coverage, cProfile, TorchDynamo.

They see what they see without sonde, and so does sonde.
"""
import re

import pytest

from python_tools import rows, sonde_run, python

WORK = """
def work(n):
    total = 0
    for i in range(n):
        total += helper(i)
    return total

def helper(i):
    return i + 1
"""

OTHERS = {
    # A debugger: every line of work() is reported to it.
    "bdb": """
import bdb, sys
seen = []
class Debugger(bdb.Bdb):
    def user_line(self, frame):
        if frame.f_code.co_name == "work":
            seen.append(frame.f_lineno)
        self.set_step()
debugger = Debugger()
debugger.runcall(work, 10)
print(len(seen), seen[:4])
""",
    "settrace": """
import sys
seen = []
def trace(frame, event, arg):
    if frame.f_code.co_name in ("work", "helper"):
        seen.append((frame.f_code.co_name, event))
    return trace
sys.settrace(trace)
work(10)
sys.settrace(None)
print(len(seen), sys.gettrace())
""",
    "coverage": """
import coverage, sys
cover = coverage.Coverage(data_file=None, include=[__file__])
cover.start()
work(10)
cover.stop()
print(sorted(cover.get_data().lines(__file__)))
""",
    "setprofile": """
import sys
seen = []
def hook(frame, event, arg):
    if frame.f_code.co_name in ("work", "helper"):
        seen.append((frame.f_code.co_name, event))
sys.setprofile(hook)
work(10)
sys.setprofile(None)
print(len(seen), seen[:3])
""",
    "cProfile": """
import cProfile, pstats
other = cProfile.Profile()
other.enable()
work(10)
other.disable()
print(sorted((key[2], value[:2]) for key, value in pstats.Stats(other).stats.items()
             if key[2] in ("work", "helper")))
""",
}
CHECKS = {
    "functions": ["--functions"],
    "lines": ["--lines", "work"],
    "line-memory": ["--line-memory", "work"],
}


SAMPLED = """
import time

def spend(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        work(100)

def before(seconds):
    spend(seconds)

def after(seconds):
    spend(seconds)
"""


def said(done):
    return re.findall(r"^sonde: .*$", done.stderr, re.MULTILINE)


def runs_of_lines(trace, view):
    key = "hits" if view == "lines" else "occurrences"
    found = [row for row in rows(trace, view) if row["function"] == "work"]
    return sum(row[key] for row in found if row["line"] > row["first_line"])


@pytest.mark.parametrize("other", OTHERS)
def test_both_are_sampled(other, tmp_path):
    """Stacks are seen before the other tool came and after it went, and it sees what it saw."""
    if other == "coverage":
        pytest.importorskip("coverage", reason="coverage is not installed: it is run beside")
    for seconds in (0.3, 1, 3):  # the machine may be too busy to let the sampler run
        (tmp_path / "prog.py").write_text(
            WORK + SAMPLED + f"before({seconds})\n" + OTHERS[other] + f"after({seconds})\n")
        alone = python("prog.py", cwd=tmp_path)
        done = sonde_run(["--sample", "200", "-o", "t.sonde"], "prog.py", cwd=tmp_path)
        assert done.stdout == alone.stdout and not said(done)
        found = {row["function"] for row in rows(tmp_path / "t.sonde", "samples")
                 if row["samples"] > 0}
        if {"before", "after", "spend", "work"} <= found:
            break
    else:
        pytest.fail(f"seen: {found}")


@pytest.mark.parametrize("probe", CHECKS)
@pytest.mark.parametrize("other", OTHERS)
def test_both_see_everything(other, probe, tmp_path):
    if other == "coverage":
        pytest.importorskip("coverage", reason="coverage is not installed: it is run beside")
    (tmp_path / "prog.py").write_text(
        WORK + "work(10)\n" + OTHERS[other] + "work(10)\nprint('end')\n")
    alone = python("prog.py", cwd=tmp_path)
    done = sonde_run([*CHECKS[probe], "-o", "t.sonde"], "prog.py", cwd=tmp_path)
    assert done.stdout == alone.stdout
    trace = tmp_path / "t.sonde"
    if probe == "functions":
        found = {row["function"]: row["calls"] for row in rows(trace, "functions")}
        assert (found["work"], found["helper"]) == (3, 30)
    else:
        assert runs_of_lines(trace, probe) == 3 * (1 + 11 + 10 + 1)
        assert not said(done) and not rows(trace, "ledger")


@pytest.mark.long
def test_torch_compile_runs_on(tmp_path):
    """With everything on at once, operators too: one program, one timeline."""
    pytest.importorskip("torch", reason="torch is installed for the Python of .venv alone")
    import warm_torch
    (tmp_path / "prog.py").write_text(WORK + """
import torch
work(10)

@torch.compile(backend="eager", dynamic=False)
def model(x):
    return torch.relu(x) * 2 + helper(1)

print(model(torch.ones(3)).tolist(), model(torch.ones(3)).tolist())
import torch._dynamo.utils as utils
print(utils.counters["stats"]["unique_graphs"], utils.counters["frames"]["ok"])
work(10)
""")
    done = sonde_run(["--functions", "--lines", "work", "--line-memory", "work", "--sample", "--ops",
                      "-o", "t.sonde"], "prog.py", cwd=tmp_path, interpreter=warm_torch.python())
    assert done.stdout == "[4.0, 4.0, 4.0] [4.0, 4.0, 4.0]\n1 1\n"
    trace = tmp_path / "t.sonde"
    assert [runs_of_lines(trace, view) for view in ("lines", "line-memory")] == [46, 46]
    found = {row["function"]: row["calls"] for row in rows(trace, "functions")
             if row["file"].endswith("prog.py")}
    assert found["work"] == 2 and found["helper"] >= 20
    assert {row["key"]: row["count"] for row in rows(trace, "ops")}["aten::relu"] >= 2
    assert rows(trace, "samples")
