#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/page.py [--quick] - the report page of a million events: how long its export and its opening take, its size, how it pans.

A trace of a million events on four threads is exported by `sonde export --to html` and opened from disk in headless Chromium,
where a key is held for some seconds at several depths of zoom; frames are counted by the page's own animation frames. Best rounds.
Prints as bench/run does and puts its figures into bench/results.json. Exit status: 1 if a budget is missed.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from figures import conclude, figure, leave_out, say

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from page_tools import CHROMIUM, Opened, has_page, open_browser  # noqa: E402

SONDE = os.environ.get("SONDE") or shutil.which("sonde") or os.path.join(os.path.dirname(sys.executable), "sonde")
GEN = ROOT / "build/tests/gen/gen"
# name, what, unit, budget, at least
FIGURES = [("page_export", "sonde export --to html of {events:,} events", "s", 2.0, False),
           ("page_open", "the page opens in headless Chromium", "s", 3.0, False),
           ("page_pan", "frames a second while it pans and zooms", "/s", 30.0, True),
           ("page_bytes", "bytes of the page an event, less 300 KB", "bytes", 12.0, False)]


def export(trace, page):
    begin = time.monotonic()
    subprocess.run([SONDE, "export", trace, "--to", "html", "-o", page], check=True)
    return time.monotonic() - begin


def frames(shown, seconds):
    """Frames a second that the page draws while keys are held, at a depth each; the least."""
    page = shown.go("timeline")
    rates = []
    for keys in ("d", "w", "d", "w", "a"):
        before, begin = (page.locator("main > .timeline").get_attribute("data-frames"), time.monotonic())
        page.keyboard.down(keys)
        page.wait_for_timeout(1000 * seconds)
        page.keyboard.up(keys)
        after, end = (page.locator("main > .timeline").get_attribute("data-frames"), time.monotonic())
        rates.append((int(after) - int(before)) / (end - begin))
    return min(rates)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--quick", action="store_true")
    quick = options.parse_args().quick
    if not CHROMIUM or not has_page():
        leave_out("the report page", "no chromium, or sonde was built without the page")
    events = 100_000 if quick else 1_000_000
    with tempfile.TemporaryDirectory(prefix="sonde-bench-") as folder:
        trace, page = pathlib.Path(folder) / "large.sonde", pathlib.Path(folder) / "large.html"
        subprocess.run([GEN, "large", trace, str(events)], check=True)
        exported = min(export(trace, page) for _ in range(2 if quick else 5))
        size = max(0, page.stat().st_size - 300_000) / events
        opened, rate = [], []
        with open_browser() as browser:
            for _ in range(1 if quick else 3):
                shown = Opened(browser, page, size=(1600, 900))
                opened.append(int(shown.page.evaluate("document.documentElement.dataset.ready")) / 1000)
                rate.append(frames(shown, 1 if quick else 2))
                shown.close()
    values = [exported, min(opened), max(rate), size]
    conclude([say(figure(name, what.format(events=events), value, unit, budget, at_least=at_least))
              for (name, what, unit, budget, at_least), value in zip(FIGURES, values)])


if __name__ == "__main__":
    main()
