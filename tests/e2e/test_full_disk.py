# SPDX-License-Identifier: Apache-2.0
"""Real file systems that refuse: full, read-only, not ours. The program goes on; the loss is counted."""
import os
import pathlib
import pstats
import re
import shutil
import signal
import subprocess
import sys
import time

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


@pytest.mark.parametrize("attempt", range(4))
def test_a_full_disk_costs_events_not_the_program(tmp_path, attempt):
    """Several times: the sampler of `sonde run` wants room on the same disk at about the same moment."""
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


def test_a_small_disk_is_used_up(tmp_path):
    """Chunks get smaller with the room that is left, and the sampler beside leaves some to the program."""
    done = in_mount(tmp_path, 'mount -t tmpfs -o size=3m none "$DISK"',
                    '"$SONDE" run -o "$DISK/x.sonde" -- "$WORKER" steps "$STEPS"; status=$?; '
                    'cp "$DISK/x.sonde" "$KEPT" && exit $status')
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert 1_500_000 < os.path.getsize(tmp_path / "kept.sonde") < 3 << 20, done.stderr


OPEN_AT_THE_LIMIT = """\
import time
def short():
    pass
def many():
    for _ in range(100_000):
        short()
many()
time.sleep(1)
"""


def test_ranges_end_where_recording_does(tmp_path):
    (tmp_path / "prog.py").write_text(OPEN_AT_THE_LIMIT)
    done = subprocess.run([SONDE, "run", "-q", "--functions", "--timeline", "--max-size", "1M", "-o", tmp_path / "x.sonde",
                           "--", sys.executable, tmp_path / "prog.py"], capture_output=True, text=True)
    assert done.returncode == 0 and "its size limit" in done.stderr, done.stderr
    rows = read_json("report", tmp_path / "x.sonde", "--view", "ops", "--json")["rows"]
    assert {row["key"] for row in rows} >= {"<module>", "many", "short"}
    assert all(row["cpu_time_total"] < 900_000 for row in rows), rows


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


def test_what_a_file_of_functions_lacks_is_counted(tmp_path):
    """400,000 calls of 40,000 functions: those in the file and those lost are all of them."""
    (tmp_path / "prog.py").write_text(PYTHON_CALLS)
    done = in_mount(tmp_path, "true", f'"$SONDE" run -o "$DISK/x.prof" -- "{sys.executable}" '
                    f'{tmp_path}/prog.py; status=$?; cp "$DISK/x.prof" {tmp_path}/x.prof; exit $status')
    limited = subprocess.run([SONDE, "run", "-o", tmp_path / "y.prof", "--max-size", "1M", "--", sys.executable,
                              tmp_path / "prog.py"], capture_output=True, text=True)
    for result, name, why in ((done, "x.prof", "No space left on device"), (limited, "y.prof", "its size limit")):
        found = re.match(r"sonde: export: (\d+\.\d) % of the calls were lost \((\d+) of (\d+)\): ", result.stderr)
        if name == "x.prof" and not found:  # no room even for the file of functions
            assert "cannot" in result.stderr and why in result.stderr, result.stderr
            continue
        assert result.returncode == 0 and found and why in result.stderr, result.stderr
        share, lost, total = float(found[1]), int(found[2]), int(found[3])
        kept = sum(row[1] for row in pstats.Stats(str(tmp_path / name)).stats.values())
        # Each turn of the program's loop is 13 calls: exec, format, the module, ten of the function.
        assert total == lost + kept and abs(total - 40_000 * 13) < 1000
        assert abs(share - 100 * lost / total) <= 0.05 and share > 50


def test_a_disk_that_is_full_from_the_start(tmp_path):
    done = in_mount(tmp_path, 'mkdir "$DISK/d" && ! head -c 2m /dev/zero > "$DISK/fill" 2>/dev/null',
                    '"$SONDE" run -o "$DISK/x.sonde" -- "$WORKER" args hello')
    assert (done.returncode, done.stdout) in ((0, "hello\n"), (1, "")), done.stderr
    assert "No space left on device" in done.stderr.splitlines()[-1], done.stderr
    assert "it neither runs a Python" not in done.stderr


def faults_in_btrfs(pid):
    """Is the process, each time that one looks, in a fault of a page that btrfs finds no space for, and in no other call?"""
    stack = pathlib.Path(f"/proc/{pid}/stack")
    seen = []
    for _ in range(20):
        seen.append("btrfs_page_mkwrite" in stack.read_text())
        time.sleep(0.05)
    return sum(seen) > 10


def retries_for_ever(session):
    """Is the recorded program of that session in such a fault, now and some seconds later?"""
    for pause in (0, 4):
        time.sleep(pause)
        listed = subprocess.run(["ps", "-s", str(session), "-o", "pid=,args="], text=True, stdout=subprocess.PIPE).stdout
        workers = [line.split()[0] for line in listed.splitlines() if line.split()[1] == str(WORKER)]
        if [faults_in_btrfs(pid) for pid in workers] != [True]:
            return False
    return True


def run_on_btrfs(command):
    """Some kernels (6.18) now and then retry such a fault without an end: no SIGBUS comes, and nobody's store would end."""
    limit = time.monotonic() + 60
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        while True:
            try:
                output, errors = process.communicate(timeout=8)
                return subprocess.CompletedProcess(command, process.returncode, output, errors)
            except subprocess.TimeoutExpired:
                is_kernel = retries_for_ever(process.pid)
                if is_kernel or time.monotonic() > limit:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.communicate()
                    if is_kernel:
                        pytest.skip("this kernel retries the fault of a full btrfs for ever")
                    raise


def test_a_full_btrfs_costs_events_not_the_program(tmp_path):
    """Filled in mid-run, while the program waits; a snapshot before it makes even reserved blocks be written elsewhere."""
    if os.geteuid() != 0 or not shutil.which("mkfs.btrfs"):
        pytest.skip("there is no root to make a btrfs" if shutil.which("mkfs.btrfs") else "btrfs-progs is not installed (tools/setup test)")
    disk, image, gate, steps = tmp_path / "disk", tmp_path / "image", tmp_path / "gate", (1_000, 399_000)
    os.mkfifo(gate)
    disk.mkdir()
    with open(image, "wb") as file:
        file.truncate(128 << 20)
    made = subprocess.run(f"mkfs.btrfs -q '{image}' && unshare --mount mount -o loop '{image}' '{disk}'", shell=True,
                          capture_output=True, text=True)
    if made.returncode != 0:
        pytest.skip(f"no btrfs can be mounted here: {made.stderr.strip()}")
    script = (f"mount -o loop '{image}' '{disk}' && cd '{disk}' || exit 99; "
              f"'{SONDE}' run -o x.sonde -- '{WORKER}' steps {steps[0]} {steps[1]} < '{gate}' & run=$!; exec 3> '{gate}'; "
              "until ls x.sonde/*.sonde >/dev/null 2>&1; do :; done; btrfs subvolume snapshot . snap; "
              "dd if=/dev/zero of=fill bs=64k; sync -f .; exec 3>&-; wait $run; status=$?; "
              f"cp x.sonde '{tmp_path}/kept.sonde'; exit $status")
    done = run_on_btrfs(["unshare", "--mount", "sh", "-c", script])
    assert done.returncode == 0, done.stderr
    ledger = read_json("report", tmp_path / "kept.sonde", "--view", "ledger", "--json")
    counts = {row["key"]: row["count"] for row in ledger["rows"]}
    events = read_json("report", tmp_path / "kept.sonde", "--view", "threads", "--json")["rows"][0]
    known = events["events"] + counts.get("lost_events", 0)
    assert "cut_files" not in counts and "truncated" not in done.stderr and events["events"] < 3 * sum(steps)
    if "could not be closed (No space left on device): it may lack events" in done.stderr:
        assert known <= 3 * sum(steps)  # not even its first block can be written any more
    else:
        assert known == 3 * sum(steps)


@pytest.mark.parametrize("blocks", [32, 200])
@pytest.mark.parametrize("mode", [[], ["--counters"], ["--heap"], ["--functions"]], ids=" ".join)
def test_a_limit_of_file_sizes_is_not_the_end(tmp_path, mode, blocks):
    """`ulimit -f`, in 512 bytes: too small for a trace. Nobody is killed by SIGXFSZ who would live without us."""
    program = [WORKER, "args", "hello"] if mode != ["--functions"] else [sys.executable, "-c", "print('hello')"]
    done = subprocess.run(["sh", "-c", f'ulimit -f {blocks}; exec "$@"', "sh", SONDE, "run", *mode, "-o",
                           tmp_path / "x.sonde", "--", *program], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "hello\n"), done.stderr
    assert "File too large" in done.stderr, done.stderr


def test_the_program_has_its_own_file_size_limit(tmp_path):
    done = subprocess.run(["sh", "-c", 'ulimit -f 2048; exec "$@"', "sh", SONDE, "run", "-o", tmp_path / "x.sonde", "--",
                           "dd", "if=/dev/zero", f"of={tmp_path}/big", "bs=64k", "count=100"],
                          capture_output=True, text=True)
    assert done.returncode in (-25, 128 + 25) and os.path.getsize(tmp_path / "big") == 1 << 20, done.stderr
