# SPDX-License-Identifier: Apache-2.0
"""Samples of programs of any language, from outside: `sonde run -- ./program`, `sonde attach PID`.

What the program does stays as it was; threads, children, other users, attach.
"""
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

from cli_tools import SONDE, read_json, sonde
from native_tools import (BUILDS, POINTS, PROGRAMS, build, chains, needs_samples, own_share, run,  # noqa: F401
                          share)

pytestmark = needs_samples


def test_recursion_and_inlined_functions_are_frames(tmp_path, build):
    trace, _ = run(tmp_path, build("plain"))
    assert any(stack.count("deep_part") == 13 for stack in chains(trace))
    trace, _ = run(tmp_path, build("inlined"))
    pair = [i for i, f in enumerate(max(chains(trace), key=chains(trace).get)) if "inner" in f or "area" in f]
    assert len(pair) == 2 and pair[1] == pair[0] + 1


def test_a_stripped_program_shows_addresses(tmp_path, build):
    source, _ = BUILDS["plain"]
    target = tmp_path / "bare"
    subprocess.run(["gcc", "-O2", "-s", "-o", target, PROGRAMS / source], check=True)
    trace, _ = run(tmp_path, target)
    assert any("bare+0x" in frame for stack in chains(trace) for frame in stack)


def test_five_hundred_threads(tmp_path, build):
    trace, parts = run(tmp_path, build("threads"), "500", "1.5")
    counts = chains(trace)
    assert abs(own_share(counts, ("heavy", "light"))["heavy"] - parts["heavy"]) < POINTS
    ledger = {row["key"] for row in read_json("report", trace, "--view", "ledger", "--json")["rows"]}
    assert "lost_samples" not in ledger


def test_a_thousand_children(tmp_path, build):
    trace, _ = run(tmp_path, build("children"), "1000", "3")
    rows = read_json("report", trace, "--view", "samples", "--group-by", "process", "--json")["rows"]
    assert len({row["process"] for row in rows}) > 500  # each takes some milliseconds
    assert share(chains(trace), "in_child") > 0.4


def sampler_of(pid):
    """The child of a `sonde run` that has the kernel's events open."""
    for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        if any("perf_event" in os.readlink(fd) for fd in pathlib.Path(f"/proc/{child}/fd").iterdir()):
            return int(child)
    raise AssertionError("there is no sampler")


def test_lost_samples_are_counted(tmp_path, build):
    """The sampler is stopped until the program has ended: its buffers hold 2,000 samples of one processor."""
    hz, seconds, one = 5000, 1.5, min(os.sched_getaffinity(0))
    script = f'echo begins; read go; exec taskset -c {one} "{build("plain")}" {seconds / 10}'
    with subprocess.Popen([SONDE, "run", f"--sample={hz}", "-q", "-o", tmp_path / "t.sonde", "--", "sh", "-c", script],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as runner:
        runner.stdout.readline()
        sampler = sampler_of(runner.pid)
        os.kill(sampler, signal.SIGSTOP)
        try:
            runner.stdin.write(b"\n")
            runner.stdin.flush()
            parts = [float(runner.stdout.readline().split()[1]) for _ in range(3)]
        finally:
            os.kill(sampler, signal.SIGCONT)
        assert runner.wait(120) == 7
    report = read_json("report", tmp_path / "t.sonde", "--view", "samples", "--json")
    lost = {row["key"]: row["count"] for row in
            read_json("report", tmp_path / "t.sonde", "--view", "ledger", "--json")["rows"]}["lost_samples"]
    taken, least = report["totals"]["samples"], hz * sum(parts)
    assert lost > 1000 and taken > 1000
    assert 0.9 * least < taken + lost, (taken, lost, parts)  # and the program's start, which measures the machine
    assert taken + lost < 1.1 * least + hz, (taken, lost, parts)


def test_the_program_is_as_it_was(tmp_path):
    """Output, exit status, signals, descriptors and arguments."""
    script = 'echo out; echo err >&2; ls /proc/self/fd | wc -l; i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; exit 5'
    alone = subprocess.run(["sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    done = sonde("run", "--sample", "-q", "-o", tmp_path / "t.sonde", "--", "sh", "-c", script)
    assert (done.returncode, done.stdout, done.stderr) == (5, alone.stdout, alone.stderr)
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV):
        done = sonde("run", "--sample", "-q", "-o", tmp_path / "s.sonde", "--", "sh", "-c", f"kill -{int(number)} $$")
        assert done.returncode == -number


def test_a_program_that_is_not_there_leaves_nothing(tmp_path):
    done = sonde("run", "--sample", "--", "./nothing", cwd=tmp_path)
    assert done.returncode == 127 and list(tmp_path.iterdir()) == []


def test_attach_to_any_process(tmp_path, build):
    """Threads that were there, and children; it goes on as before."""
    program = subprocess.Popen([build("threads"), "4", "20"], stdout=subprocess.PIPE)
    try:
        while len(os.listdir(f"/proc/{program.pid}/task")) < 5:
            time.sleep(0.01)
        done = sonde("attach", "-d", "1", "-o", tmp_path / "a.sonde", program.pid)
        assert done.returncode == 0, done.stderr
        assert program.poll() is None
        assert share(chains(tmp_path / "a.sonde"), "heavy") > 0.2
    finally:
        program.kill()
        program.wait()


def test_attach_ends_at_ctrl_c(tmp_path, build):
    program = subprocess.Popen([build("threads"), "2", "20"], stdout=subprocess.PIPE)
    try:
        observer = subprocess.Popen([SONDE, "attach", "-o", tmp_path / "c.sonde", str(program.pid)],
                                    stderr=subprocess.PIPE)
        while not list(tmp_path.glob("c.sonde/*")):
            time.sleep(0.05)
        time.sleep(0.5)
        observer.send_signal(signal.SIGINT)
        _, said = observer.communicate(timeout=120)
        assert observer.returncode == 0 and b"recorded" in said, said
        assert chains(tmp_path / "c.sonde")
    finally:
        program.kill()
        program.wait()


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root and setpriv")
def test_another_user_samples_without_the_kernel(build):
    """With the present kernel.perf_event_paranoid: user only, and the ledger says so; or a reason."""
    level = int(pathlib.Path("/proc/sys/kernel/perf_event_paranoid").read_text())
    tmp_path = pathlib.Path(tempfile.mkdtemp(prefix="sonde-native-"))  # pytest's own are for one user
    os.chmod(tmp_path, 0o777)
    program = tmp_path / "prog"
    shutil.copy(build("plain"), program)
    os.chmod(program, 0o755)
    if subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", SONDE, "--version"],
                      stdout=subprocess.PIPE, stderr=subprocess.PIPE).returncode != 0:
        pytest.skip("another user may not run what was built here")
    done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", SONDE, "run", "--sample", "-o",
                           "u.sonde", "--", str(program)], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=120)
    assert done.returncode == 7, done.stderr
    if level > 2:
        assert b"perf_event_paranoid" in done.stderr
        return
    ledger = {row["key"] for row in read_json("report", tmp_path / "u.sonde", "--view", "ledger", "--json")["rows"]}
    assert ("user_only" in ledger) == (level == 2)
    assert share(chains(tmp_path / "u.sonde"), "long_part") > 0.3
    shutil.rmtree(tmp_path)
