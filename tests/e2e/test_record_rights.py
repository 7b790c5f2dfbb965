# SPDX-License-Identifier: Apache-2.0
"""Python programs that give up rights, or change their root, and then fork: as servers do."""
import os
import shutil
import subprocess
import sys
import tempfile

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


ALLOCATES = """\
#include <stdlib.h>
int main(void)
{
    for (int i = 0; i < 1000; i++) {
        void *volatile kept = malloc(1000);
        (void)kept;
    }
    return 0;
}
"""


@pytest.mark.parametrize("closed", ["no folder", "/tmp", "/dev/shm"], ids=["open", "closed", "other-disk"])
def test_a_program_of_another_user_is_recorded(closed, monkeypatch):
    """Root's program becomes another user and executes the next, which may not write into root's folder, or not even
    enter the one that it is in."""
    if not shutil.which("setpriv"):
        pytest.skip("no setpriv to become another user with")
    folder = tempfile.mkdtemp(dir="/tmp")
    place = folder if closed == "no folder" else tempfile.mkdtemp(dir=closed)
    before = set(os.listdir("/tmp"))
    try:
        os.chmod(folder, 0o755)
        monkeypatch.chdir(folder)
        with open("allocates.c", "w", encoding="utf-8") as file:
            file.write(ALLOCATES)
        subprocess.run(["cc", "-O0", "allocates.c", "-o", "allocates"], check=True)
        done = subprocess.run([SONDE, "run", "--heap", "-o", f"{place}/x.sonde", "--", "setpriv", "--reuid=65534", "--regid=65534",
                               "--clear-groups", f"{folder}/allocates"], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0 and "unrecorded" not in done.stderr, done.stderr
        rows = read_json("report", f"{place}/x.sonde", "--view", "heap", "--json")["rows"]
        ours = [row for row in rows if "main" in row["stack"][0]]
        assert sum(row["allocations"] for row in ours) == 1000 and sum(row["bytes"] for row in ours) == 1_000_000, rows[:3]
        trace = os.path.join(place, "x.sonde")
        assert sorted(os.listdir(trace))[0][0] != "." and os.stat(trace).st_mode & 0o777 == 0o700
        assert not [name for name in set(os.listdir("/tmp")) - before if name.startswith(".others-")]
    finally:
        shutil.rmtree(folder)
        shutil.rmtree(place, ignore_errors=True)
