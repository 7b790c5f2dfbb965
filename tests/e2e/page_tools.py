# SPDX-License-Identifier: Apache-2.0
"""What the tests of the report page share: a browser, and pages opened from disk that report every fault."""
import contextlib
import json
import os
import re
import shutil

import pytest

from cli_tools import SONDE, generate, read, sonde

CHROMIUM = os.environ.get("SONDE_CHROMIUM") or shutil.which("chromium")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking",
             "--disable-component-update", "--disable-sync"]


def has_page():
    checks = json.loads(sonde("doctor", "--json").stdout)["checks"] if SONDE else []
    return any(check["name"] == "page" and check["verdict"] == "ok" for check in checks)


needs_page = pytest.mark.skipif(not CHROMIUM or not has_page(), reason="no chromium, or sonde was built without the "
                                "report page: `tools/setup test`, then `make`")


@contextlib.contextmanager
def open_browser():
    from playwright.sync_api import sync_playwright
    with sync_playwright() as playwright:
        # A busy machine takes long to start a browser; nothing here waits for a time to pass.
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS, timeout=180_000)
        yield Browser(chromium)
        chromium.close()


class Browser:
    """Its tabs are used again: a new one is a new process, which takes more than most of what is shown in it."""

    def __init__(self, chromium):
        self.chromium, self.free = chromium, []

    def take(self, dark, size):
        """An empty tab. Pages of disk keep nothing (no storage, no cache), so that none is left of another."""
        tab = self.free.pop() if self.free else self.chromium.new_context().new_page()
        tab.set_default_timeout(120_000)
        tab.set_viewport_size({"width": size[0], "height": size[1]})
        tab.emulate_media(media="null", color_scheme="dark" if dark else "light")
        return tab

    def give_back(self, tab):
        tab.mouse.move(-1, -1)  # nothing of the next page is under it
        tab.goto("about:blank")
        self.free.append(tab)


def wait_until(page, expression, arg=None):
    for _ in range(6000):
        if page.evaluate(expression, arg):
            return
        page.wait_for_timeout(20)
    raise AssertionError(f"it never came true: {expression}")


class Opened:
    """A page from disk. `faults`: errors, messages of the console, requests beyond the page itself."""

    def __init__(self, browser, path, dark=False, size=(1280, 800)):
        self.browser, self.page = browser, browser.take(dark, size)
        self.faults = []
        address = path.as_uri() if hasattr(path, "as_uri") else path
        self.listeners = {
            "pageerror": lambda error: self.faults.append(f"error: {error}"),
            "console": lambda message: self.faults.append(f"console: {message.text}"),
            "request": lambda request: None if request.url.partition("#")[0] in (address, "about:blank")
            else self.faults.append(f"request: {request.url}"),
        }
        for event, listener in self.listeners.items():
            self.page.on(event, listener)
        self.page.goto(address)
        self.page.wait_for_selector("html[data-ready]")

    def go(self, part):
        self.page.evaluate("part => { location.hash = part; }", part)
        kind = part.partition("?")[0].split("/")[0]
        selector = {"timeline": "main > .timeline[data-frames]", "flame": "main > .flamegraph", "table": "main > .view",
                    "summary": "main > .summary"}.get(kind, f"main > .{kind}")
        self.page.wait_for_selector(selector)
        return self.page

    def until(self, expression, arg=None):
        """Until it is true. Playwright's own wait evaluates text in the page, which the page's policy forbids."""
        wait_until(self.page, expression, arg)

    def rows(self, table="main .rows .table"):
        """The rows that are in the document: key to value, as the page has them."""
        return self.page.eval_on_selector_all(f"{table} .body .tr", """rows => rows.map(row => Object.fromEntries(
            [...row.querySelectorAll('.td')].map(cell => [cell.dataset.key, JSON.parse(cell.dataset.value)])))""")

    def texts(self, key, table="main .rows .table"):
        return self.page.eval_on_selector_all(f"{table} .body .td[data-key='{key}']", "cells => cells.map(cell => cell.textContent)")

    def close(self):
        """Leaves the page first: what it does at its end is seen as well."""
        self.browser.give_back(self.page)
        for event, listener in self.listeners.items():
            self.page.remove_listener(event, listener)
        assert self.faults == []


# ---- for everybody

def contrast(first, second):
    def light(colour):
        parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        return sum(weight * (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4)
                   for weight, part in zip((0.2126, 0.7152, 0.0722), parts))
    bright, dim = sorted((light(first), light(second)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def contrast_faults(page):
    """Texts that are shown and are hard to read: [text, colour, background]."""
    pairs = page.eval_on_selector_all("main *, nav *", """all => all.filter(one => one.checkVisibility() &&
        [...one.childNodes].some(node => node.nodeType === 3 && node.textContent.trim())).map(one => {
        let back = one; while (back && getComputedStyle(back).backgroundColor === 'rgba(0, 0, 0, 0)') back = back.parentElement;
        const style = getComputedStyle(one);
        return [one.textContent.slice(0, 40), one instanceof SVGElement ? style.fill : style.color,
                getComputedStyle(back ?? document.body).backgroundColor]; })""")
    assert pairs
    return [pair for pair in pairs if contrast(pair[1], pair[2]) < 4.5]


def unnamed_controls(page):
    return page.eval_on_selector_all("button, input, select, canvas:not([aria-hidden]), circle, [role=treegrid]", """all => all.filter(one =>
        !(one.getAttribute('aria-label') || one.textContent.trim() || one.labels?.length)).map(one => one.outerHTML)""")


# ---- fixtures of the tests of pages: see conftest.py

@contextlib.contextmanager
def opened_pages(browser, traces):
    pages = []

    def show(case, *more, **extra):
        trace, path = traces(case, *more)
        pages.append(Opened(browser, path, **extra))
        return trace, pages[-1]
    yield show
    for page in pages:
        page.close()


def page_maker(folder):
    """Makes traces and their pages, when they are first asked for."""
    made = {}

    def make(case, *more):
        if case not in made:
            trace = generate(case, folder / f"{case}.sonde", *more)
            read("export", trace, "--to", "html")
            made[case] = trace, folder / f"{case}.sonde.html"
        return made[case]
    return make
