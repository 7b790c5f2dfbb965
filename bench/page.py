#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/page.py [--quick] - the report page of millions of events: how long its export and its opening take, its size, how it pans.

Traces of a million and of ten million events on four threads, with samples, are exported by `sonde export --to html` and opened from disk in
headless Chromium, where a key is held for some seconds at several depths of zoom; frames are counted by the page's own animation frames. With a
million, another part of the time is chosen while the flame graph and the operators are shown, until they are of it. Best rounds.
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
FIGURES = [("page_export", "sonde export --to html of {small:,} events", "s", 2.0, False),
           ("page_open", "the page opens in headless Chromium", "s", 3.0, False),
           ("page_pan", "frames a second while it pans and zooms", "/s", 60.0, True),
           ("page_bytes", "bytes of the page an event, less 300 KB", "bytes", 12.0, False),
           ("page_select_flame", "another part of the time is chosen: the flame graph is of it", "ms", 100.0, False),
           ("page_select_table", "another part of the time is chosen: the operators are of it", "ms", 100.0, False),
           ("page_export_large", "sonde export --to html of {large:,} events with samples", "s", 5.0, False),
           ("page_export_memory", "memory that it takes", "MB", 300.0, False),
           ("page_open_large", "the page opens in headless Chromium", "s", 3.0, False),
           ("page_pan_large", "frames a second while it pans and zooms", "/s", 60.0, True)]


def export(trace, page):
    """Seconds, and MB of memory at most."""
    begin = time.monotonic()
    child = subprocess.Popen([SONDE, "export", trace, "--to", "html", "-o", page])
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"bench/page.py: sonde export: exit status {child.returncode}")
    return time.monotonic() - begin, used.ru_maxrss / 1000


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
    return round(min(rates))


def empty_frames(browser, seconds):
    """Of a page that draws nothing: what the browser gives at most."""
    tab = browser.take(False, (1600, 900))
    count = tab.evaluate("""most => new Promise(done => { const begin = performance.now(); let count = 0;
        const next = () => performance.now() - begin < most ? (count++, requestAnimationFrame(next)) : done(1000 * count / (performance.now() - begin));
        requestAnimationFrame(next); })""", 1000 * seconds)
    browser.give_back(tab)
    return count


def select(shown, part):
    """Milliseconds from the choice of another part of the time until what is shown is of it, and drawn."""
    page = shown.go("timeline")
    begin, end = map(float, page.evaluate("[document.querySelector('.timeline').dataset.from, document.querySelector('.timeline').dataset.to]"))
    shown.go(part)
    best = None
    for at in (0.1, 0.2, 0.3, 0.4):
        chosen = f"{round(begin + at * (end - begin))}-{round(begin + (at + 0.5) * (end - begin))}"
        took = page.evaluate("""hash => new Promise(done => { const begin = performance.now();
            addEventListener('hashchange', () => requestAnimationFrame(() => done(performance.now() - begin)), {once: true});
            location.hash = hash; })""", f"{part}?part={chosen}")
        best = took if best is None else min(best, took)
    return best


def opened(browser, page, rounds, seconds):
    """Seconds until it is ready, the least; frames a second, the most."""
    ready, rate = [], []
    for _ in range(rounds):
        shown = Opened(browser, page, size=(1600, 900))
        ready.append(int(shown.page.evaluate("document.documentElement.dataset.ready")) / 1000)
        rate.append(frames(shown, seconds))
        shown.close()
    return min(ready), max(rate)


def measure(browser, folder, events, rounds, seconds):
    """Of a trace of so many events: the page, seconds and MB of its export, seconds of its opening, frames."""
    trace, page = folder / f"{events}.sonde", folder / f"{events}.html"
    subprocess.run([GEN, "large_samples", trace, str(events)], check=True)
    exports = [export(trace, page) for _ in range(rounds)]
    trace.unlink()
    return page, min(one for one, _ in exports), min(one for _, one in exports), *opened(browser, page, rounds, seconds)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--quick", action="store_true")
    quick = options.parse_args().quick
    if not CHROMIUM or not has_page():
        leave_out("the report page", "no chromium, or sonde was built without the page")
    small, large = (100_000, 1_000_000) if quick else (1_000_000, 10_000_000)
    with tempfile.TemporaryDirectory(prefix="sonde-bench-") as place, open_browser() as browser:
        folder = pathlib.Path(place)
        page, exported, _, ready, rate = measure(browser, folder, small, 1 if quick else 3, 1 if quick else 2)
        shown = Opened(browser, page, size=(1600, 900))
        chosen = [select(shown, part) for part in ("flame", "table/ops")]
        shown.close()
        size = max(0, page.stat().st_size - 300_000) / small
        most = empty_frames(browser, 1 if quick else 3)
        values = [exported, ready, rate, size, *chosen, *measure(browser, folder, large, 1 if quick else 2, 1 if quick else 2)[1:]]
    of_browser = dict(limit=most, why=f"a page that draws nothing has {most:.1f} frames a second in this browser.")
    conclude([say(figure(name, what.format(small=small, large=large), value, unit, budget, at_least=at_least, **(of_browser if unit == "/s" else {})))
              for (name, what, unit, budget, at_least), value in zip(FIGURES, values)])


if __name__ == "__main__":
    main()
