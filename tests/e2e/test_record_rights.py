# SPDX-License-Identifier: Apache-2.0
"""Python programs that give up rights, or change their root, and then fork: as servers do."""
import os
import subprocess
import sys

import pytest

from cli_tools import SONDE, needs_tools, read_json

pytestmark = [needs_tools, pytest.mark.skipif(os.geteuid() != 0, reason="only root has rights to give up")]

PROGRAM = """
import os, sys, time
def work():
    end = time.monotonic() + 0.05
    while time.monotonic() < end:
        sum(range(1000))
work()
if sys.argv[1] == "setuid":
    os.setgid(65534), os.setuid(65534)
else:
    os.chroot("/proc"), os.chdir("/")
child = os.fork()
if child == 0:
    work()
    os._exit(0)
os.waitpid(child, 0)
"""


def record(tmp_path, how):
    program = tmp_path / "server.py"
    program.write_text(PROGRAM)
    os.chmod(tmp_path, 0o700)
    trace = tmp_path / "x.sonde"
    done = subprocess.run([SONDE, "run", "--functions", "-o", trace, "--", sys.executable, program, how],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    ledger = {row["key"]: row for row in read_json("report", trace, "--view", "ledger", "--json")["rows"]}
    functions = read_json("report", trace, "--view", "functions", "--json")["rows"]
    return done.stderr, ledger, sum(row["calls"] for row in functions if row["function"] == "work")


def test_a_child_that_may_not_write_is_counted_and_said(tmp_path):
    said, ledger, calls = record(tmp_path, "setuid")
    lines = [line for line in said.splitlines() if "cannot create the trace" in line]
    assert len(lines) == 1 and "Permission denied" in lines[0] and "runs unrecorded" in lines[0]
    assert ledger["lost_children"]["count"] == 1 and "Permission denied" in ledger["lost_children"]["text"]
    assert calls == 1


def test_a_child_behind_another_root_is_recorded(tmp_path):
    said, ledger, calls = record(tmp_path, "chroot")
    assert "cannot create" not in said and "lost_children" not in ledger
    assert calls == 2
