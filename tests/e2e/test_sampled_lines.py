# SPDX-License-Identifier: Apache-2.0
"""The lines view of samples: the source of functions, with shares in the margin."""
import re
import subprocess
import sys
import textwrap

from cli_tools import needs_worker, read_json, sonde, SONDE

pytestmark = needs_worker


def test_source_lines_have_their_share_of_the_samples(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent("""
        import time
        def spin(seconds):
            end = time.process_time() + seconds
            while time.process_time() < end:
                sum(range(1000))  # the busy line
        def main():
            spin(0.4)
            spin(0.1)
        main()
    """))
    trace = tmp_path / "t.sonde"
    done = subprocess.run([SONDE, "run", "-o", trace, "--sample", "500", "--", sys.executable, program],
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    rows = {row["line"]: row for row in read_json("report", trace, "--view", "lines", "--json")["rows"]
            if row["file"] == str(program)}
    assert rows[6]["source"].strip().startswith("sum(range(1000))") and rows[6]["self_share"] > 20
    assert rows[8]["total_share"] > rows[9]["total_share"] > 0 and rows[8]["self_share"] < 5
    text = sonde("report", trace, "--view", "lines").stdout.decode()
    block = text[text.index("spin  "):]
    lines = block[:block.index("\n\n")].splitlines()
    assert re.fullmatch(r"\s+[\d.]+\s+[\d.]+\s+6 {10}sum\(range\(1000\)\)  # the busy line", lines[5].rstrip()), lines
    assert lines[2].rstrip().endswith("3  def spin(seconds):")
