# SPDX-License-Identifier: Apache-2.0
"""Ten million events from 8 threads in bounded memory (`make soak`: a hundred million)."""
import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
SONDE = ROOT / ".venv/bin/sonde"
EVENTS = 10_000_000
MIB = 1 << 20


def measured(command):
    child = subprocess.Popen(command, text=True, stdout=subprocess.PIPE)
    text = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, command
    return text, usage.ru_maxrss * 1024


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
