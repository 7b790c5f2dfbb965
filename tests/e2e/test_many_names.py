# SPDX-License-Identifier: Apache-2.0
"""A table of very many names: memory is bounded by the name, and --rows is honoured."""
import os
import subprocess

from cli_tools import SONDE, generate, needs_tools

pytestmark = needs_tools

NAMES = 200000
BYTES_A_NAME = 700  # 400 measured, 2,800 when every cell of every row was kept
BASE = 48 << 20     # the program itself, and the trace that it reads


def peak_of(*arguments):
    """Standard output, and the most memory that the command had, in bytes."""
    child = subprocess.Popen([SONDE, *map(str, arguments)], stdout=subprocess.PIPE)
    out = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = status
    assert status == 0
    return out.decode(), usage.ru_maxrss * 1024


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
