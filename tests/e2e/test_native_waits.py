# SPDX-License-Identifier: Apache-2.0
"""`--off-cpu`: where the threads of a program wait, and for how long, beside what the program says."""
import os
import pathlib
import subprocess
import tempfile

import pytest

from cli_tools import SONDE, read, read_json, sonde
from native_tools import PROGRAMS, needs_samples

pytestmark = needs_samples
PARTS = ("sleeps", "wants_the_lock", "reads_the_pipe")
LEVEL = int(pathlib.Path("/proc/sys/kernel/perf_event_paranoid").read_text())
needs_switches = pytest.mark.skipif(os.geteuid() != 0 and LEVEL > 1, reason="the kernel does not let us see switches")


@pytest.fixture(scope="module")
def waits(tmp_path_factory):
    target = tmp_path_factory.mktemp("waits") / "waits"
    subprocess.run(["gcc", "-O2", "-g", "-pthread", PROGRAMS / "waits.c", "-o", target], check=True, timeout=120)
    return target


def said(stdout):
    return {name: float(value) for name, value in (line.split() for line in stdout.decode().splitlines())}


@needs_switches
def test_waiting_is_in_the_functions_that_wait(tmp_path, waits):
    """Exactly: from leaving the processor to coming back. What the program measures is longer: it must get there."""
    trace = tmp_path / "t.sonde"
    done = sonde("run", "--off-cpu", "-q", "-o", trace, "--", waits)
    assert done.returncode == 7, done.stderr
    least = {"sleeps": 0.3, "wants_the_lock": 0.1, "reads_the_pipe": 0.05}
    known = said(done.stdout)
    rows = {row["function"]: row for row in read_json("report", trace, "--view", "functions", "--json")["rows"]}
    for part in PARTS:
        off = rows[part]["off_cpu_ns"] * 1e-9
        assert off <= 1.03 * known[part], (part, off, known)
        assert off >= min(0.97 * known[part], least[part]), (part, off, known)
        assert rows[part]["total_ns"] >= rows[part]["off_cpu_ns"]
    assert rows["burn"]["off_cpu_ns"] < 0.2 * rows["burn"]["total_ns"]
    text = read("report", trace, "--view", "functions").decode()
    assert "Off CPU" in text and "burn" in text  # what runs is shown, though it is short beside the waiting
    nodes = read_json("report", trace, "--view", "samples", "--json")["rows"]
    assert sum(n["off_cpu_ns"] for n in nodes if n["function"] == "sleeps") == rows["sleeps"]["off_cpu_ns"]


@needs_switches
def test_folded_stacks_of_waiting_alone(tmp_path, waits):
    trace = tmp_path / "t.sonde"
    assert sonde("run", "--off-cpu", "-q", "-o", trace, "--", waits).returncode == 7
    lines = read("export", trace, "--to", "folded", "--off-cpu", "-o", "-").decode().splitlines()
    for part in PARTS:
        assert sum(int(line.rpartition(" ")[2]) for line in lines if f";{part} " in line) > 50000
    assert not any(";steps_a_second " in line and int(line.rpartition(" ")[2]) > 50000 for line in lines)
    done = sonde("export", trace, "--to", "pprof", "--off-cpu", "-o", "-")
    assert done.returncode == 2 and b"--off-cpu requires --to folded" in done.stderr


@needs_switches
def test_attach_sees_waiting_and_threads_that_wait_at_the_end(tmp_path):
    with subprocess.Popen(["sh", "-c", "while :; do sleep 0.05; done"]) as program:
        try:
            done = sonde("attach", "--off-cpu", "-d", "0.7", "-q", "-o", tmp_path / "a.sonde", program.pid)
        finally:
            program.kill()
    assert done.returncode == 0, done.stderr
    rows = read_json("report", tmp_path / "a.sonde", "--view", "samples", "--json")["rows"]
    roots = [row["off_cpu_ns"] for row in rows if row["depth"] == 0]
    assert sum(roots) > 0.4e9  # the shell waits for its child all the time, and that for the clock


def test_without_the_option_there_is_no_waiting(tmp_path, waits):
    assert sonde("run", "--sample", "-q", "-o", tmp_path / "t.sonde", "--", waits).returncode == 7
    rows = read_json("report", tmp_path / "t.sonde", "--view", "functions", "--json")["rows"]
    assert all(row["off_cpu_ns"] == 0 for row in rows)


@pytest.mark.skipif(os.geteuid() != 0 or LEVEL != 2, reason="needs root, and perf_event_paranoid at 2")
def test_who_may_not_see_switches_is_told(waits):
    with tempfile.TemporaryDirectory(prefix="sonde-waits-") as folder:
        os.chmod(folder, 0o777)
        program = pathlib.Path(folder) / "waits"
        program.write_bytes(waits.read_bytes())
        program.chmod(0o755)
        other = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", SONDE]
        if subprocess.run([*other, "--version"], stdout=subprocess.PIPE, stderr=subprocess.PIPE).returncode != 0:
            pytest.skip("another user may not run what was built here")
        done = subprocess.run([*other, "run", "--off-cpu", "-o", "t.sonde", "--", "./waits"], cwd=folder,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
        assert done.returncode == 7 and len(done.stdout.splitlines()) == 3
        ledger = {row["key"] for row in read_json("report", f"{folder}/t.sonde", "--view", "ledger", "--json")["rows"]}
        assert "no_off_cpu" in ledger
