# SPDX-License-Identifier: Apache-2.0
"""Real file systems that refuse: full, read-only, not ours. The program goes on; the loss is counted."""
import os
import re
import shutil
import subprocess
import sys

import pytest

from cli_tools import SONDE, WORKER, needs_worker, read_json

pytestmark = needs_worker

STEPS = 100_000  # some 4 MB of events
SPACE = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]


def in_mount(tmp_path, mount, script):
    """Runs a script with `$DISK`, a file system of its own, mounted as told."""
    disk = tmp_path / "disk"
    disk.mkdir()
    setup = f'mount -t tmpfs -o size=1m none "$DISK" && {mount}'
    if subprocess.run([*SPACE, "sh", "-c", setup], env={**os.environ, "DISK": str(disk)},
                      capture_output=True).returncode != 0:
        pytest.skip("this machine lets nobody mount a small file system")
    return subprocess.run([*SPACE, "sh", "-c", f"{setup} && {script}"], capture_output=True, text=True,
                          env={**os.environ, "DISK": str(disk), "SONDE": SONDE, "WORKER": WORKER,
                               "KEPT": str(tmp_path / "kept.sonde"), "STEPS": str(STEPS)})


def test_a_full_disk_costs_events_not_the_program(tmp_path):
    done = in_mount(tmp_path, "true",
                    '"$SONDE" run -o "$DISK/x.sonde" -- "$WORKER" steps "$STEPS"; status=$?; '
                    'cp "$DISK/x.sonde" "$KEPT" && exit $status')
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert re.search(r"sonde: run: \d+\.\d % of the events were lost \(\d+ of 300000\): No space left on "
                     "device", done.stderr)
    ledger = read_json("report", tmp_path / "kept.sonde", "--view", "ledger", "--json")
    counts = {row["key"]: row["count"] for row in ledger["rows"]}
    text = " ".join(row["text"] for row in ledger["rows"])
    assert counts["failed_reserves"] > 0 and "No space left on device" in text
    assert "free disk space" in text
    summary = read_json("report", tmp_path / "kept.sonde", "--view", "ops", "--json")
    ranges = sum(row["count"] for row in summary["rows"])
    assert 0 < ranges < STEPS
    # A step is three events: the mark, the begin, the end. None is lost without being counted.
    events = read_json("report", tmp_path / "kept.sonde", "--view", "threads", "--json")["rows"][0]
    assert events["events"] + counts["lost_events"] == 3 * STEPS


def test_a_read_only_folder_is_said_at_once(tmp_path):
    done = in_mount(tmp_path, 'mount -o remount,ro "$DISK"',
                    '"$SONDE" run -o "$DISK/x.sonde" -- "$WORKER" args hello')
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1 and "Read-only file system" in done.stderr
    assert "-o" in done.stderr  # what to do about it


def test_a_folder_of_others_is_said_at_once(tmp_path):
    """As somebody who may not write there; root may everywhere, so it becomes nobody first."""
    os.chmod(tmp_path, 0o755)
    command = [SONDE, "run", "-o", str(tmp_path / "x.sonde"), "--", WORKER, "args", "hello"]
    if os.geteuid() == 0:
        if not shutil.which("setpriv"):
            pytest.skip("no setpriv to become another user with")
        command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *command]
        if subprocess.run([*command[:4], SONDE, "--version"], capture_output=True).returncode != 0:
            pytest.skip("another user may not run what was built here")
    else:
        os.chmod(tmp_path, 0o555)
    done = subprocess.run(command, capture_output=True, text=True)
    os.chmod(tmp_path, 0o755)
    assert done.returncode == 1
    assert "Permission denied" in done.stderr and len(done.stderr.splitlines()) == 1


def test_what_is_made_of_a_lossy_trace_says_so(tmp_path):
    """By run -o FILE and by export; a trace that lost nothing is no word worth."""
    done = in_mount(tmp_path, "true", '"$SONDE" run -o "$DISK/x.csv" -- "$WORKER" steps "$STEPS"')
    assert "% of the events were lost" in done.stderr or "No space left on device" in done.stderr
    for size, lost in (("1M", True), ("1G", False)):
        done = subprocess.run([SONDE, "run", "-q", "-o", tmp_path / "t.sonde", "--max-size", size, "--", WORKER,
                               "steps", str(STEPS)], capture_output=True, text=True)
        assert ("the trace reached its size limit" in done.stderr) == lost and done.stderr.count("\n") == lost
        done = subprocess.run([SONDE, "export", tmp_path / "t.sonde", "--to", "json", "-o", os.devnull],
                              capture_output=True, text=True)
        assert (done.returncode, "% of the events were lost" in done.stderr) == (0, lost), done.stderr


PYTHON_CALLS = """\
source = "def f{0}():\\n    return 1\\nfor _ in range(10): f{0}()\\n"
for i in range(40000):
    exec(source.format(i), {})
"""


def test_a_full_disk_is_said_of_a_file_of_functions(tmp_path):
    (tmp_path / "prog.py").write_text(PYTHON_CALLS)
    done = in_mount(tmp_path, "true", f'cd "$DISK" && "$SONDE" run -o "{tmp_path}/x.prof" -- '
                    f'"{sys.executable}" {tmp_path}/prog.py')
    whole = subprocess.run([SONDE, "run", "-q", "--max-size", "1M", "-o", tmp_path / "y.prof", "--", sys.executable,
                            tmp_path / "prog.py"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")  # the trace is beside the file: there is room
    assert whole.returncode == 0 and whole.stderr.count("\n") == 1
    assert whole.stderr.startswith("sonde: export: a part is missing: 1 file reached its size limit")


def test_a_disk_that_is_full_from_the_start(tmp_path):
    done = in_mount(tmp_path, 'mkdir "$DISK/d" && ! head -c 2m /dev/zero > "$DISK/fill" 2>/dev/null',
                    '"$SONDE" run -o "$DISK/x.sonde" -- "$WORKER" args hello')
    assert (done.returncode, done.stdout) in ((0, "hello\n"), (1, "")), done.stderr
    assert "No space left on device" in done.stderr.splitlines()[-1], done.stderr
    assert "it neither runs a Python" not in done.stderr
