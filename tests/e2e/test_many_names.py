# SPDX-License-Identifier: Apache-2.0
"""A table of very many names: memory is bounded by the name, and --rows is honoured."""
import subprocess
import sys

from cli_tools import SONDE, generate, needs_tools

pytestmark = needs_tools

NAMES = 200000
BYTES_A_NAME = 250  # 180 measured; 400 when rows were kept as they are shown
BASE = 16 << 20     # the program itself


# Runs a command and prints its peak. Linux hands a process's peak on through fork and exec, and
# pytest's own is above a gigabyte when torch was imported: a small process stands between.
MEASURE = """
import os, subprocess, sys
child = subprocess.Popen(sys.argv[1:])
_, status, usage = os.wait4(child.pid, 0)
child.returncode = os.waitstatus_to_exitcode(status)
print(usage.ru_maxrss * 1024, file=sys.stderr)
sys.exit(child.returncode)
"""


def peak_of(*arguments):
    """Standard output, and the most memory that the command had, in bytes."""
    done = subprocess.run([sys.executable, "-S", "-c", MEASURE, SONDE, *map(str, arguments)],
                          capture_output=True, text=True, check=True)
    return done.stdout, int(done.stderr.split()[-1])


def test_memory_is_bounded_by_the_name(tmp_path):
    trace = generate("many_names", tmp_path / "t.sonde", str(NAMES))
    text, peak = peak_of("report", trace, "--view", "ops", "--rows", 5)
    assert text.count("name of range") == 5
    assert peak < BASE + NAMES * BYTES_A_NAME


def test_rows_are_sorted_before_they_are_cut(tmp_path):
    trace = generate("many_names", tmp_path / "t.sonde", "1000")
    text, _ = peak_of("report", trace, "--sort", "cpu_time_total", "--rows", 3, "--csv")
    names = [line.split(",")[0] for line in text.splitlines()[1:]]
    assert names == ["name of range 96", "name of range 193", "name of range 290"]
