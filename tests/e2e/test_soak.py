# SPDX-License-Identifier: Apache-2.0
"""Ten million events from 8 threads in bounded memory (`make soak`: a hundred million)."""
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SONDE = ROOT / ".venv/bin/sonde"
EVENTS = 10_000_000
MIB = 1 << 20


# By a small process of its own: the kernel counts a child's memory from before its exec, when it
# still is a copy of its parent, and pytest may have grown large.
MEASURE = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE)
sys.stderr.write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024))
sys.stdout.buffer.write(done.stdout)
sys.exit(done.returncode)
"""


def measured(command):
    done = subprocess.run([sys.executable, "-c", MEASURE, *map(str, command)], text=True,
                          capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stdout, int(done.stderr.split()[-1])


def test_ten_million_events(tmp_path):
    trace = tmp_path / "soak.sonde"
    said, _ = measured([ROOT / "build/bench/soak", trace, str(EVENTS), "8"])
    facts = {words[1]: float(words[2]) for words in map(str.split, said.splitlines())}
    assert facts["rss_largest_bytes"] - facts["rss_before_bytes"] < 64 * MIB
    assert facts["file_bytes"] / facts["events"] <= 16

    text, resident = measured([SONDE, "report", trace, "--view", "summary", "--json"])
    report = json.loads(text)
    lost = sum(item["count"] for item in report["ledger"] if item["key"] == "lost_events") \
        if isinstance(report["ledger"], list) else report["ledger"].get("lost_events", 0)
    assert lost == 0
    text, resident = measured([SONDE, "report", trace, "--view", "ops", "--json"])
    counts = {row["key"]: row["count"] for row in json.loads(text)["rows"]}
    assert counts["outer"] == facts["events"] / 4
    assert sum(counts.values()) == facts["events"] / 2
    assert resident < 64 * MIB
