# SPDX-License-Identifier: Apache-2.0
"""The report page for everybody: axe-core finds nothing in any part, by day and by night; a telephone's screen; the keyboard alone."""
import json

import pytest

from cli_tools import ROOT, needs_tools
from page_tools import needs_page

AXE = ROOT / "report/node_modules/axe-core/axe.min.js"
pytestmark = [needs_tools, needs_page, pytest.mark.skipif(not AXE.exists(), reason="report/node_modules lacks axe-core: `tools/page prepare`")]

# Each part of the page, in a trace that has it.
PARTS = [("torch", ["summary", "timeline", "flame", "memory", "model", "roofline", "matches?search=aten", "table/ops"]),
         ("samples", ["summary", "timeline", "source", "table/functions"]), ("heap", ["summary", "flame", "heap", "table/heap", "table/heap-functions"])]


def faults(page):
    page.evaluate(AXE.read_text(encoding="utf-8") + ";0")
    found = page.evaluate("async () => JSON.stringify((await axe.run(document, {resultTypes: ['violations']})).violations"
                          ".map(one => [one.id, one.nodes.slice(0, 3).map(node => node.html.slice(0, 200))]))")
    return json.loads(found)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("case, parts", PARTS)
def test_axe_finds_nothing(opened, case, parts, dark):
    _, shown = opened(case, dark=dark)
    assert {part: found for part in parts for found in [faults(shown.go(part))] if found} == {}


def test_a_telephone_has_room_for_names_and_numbers(opened):
    _, shown = opened("torch", size=(390, 780))
    for part in ("summary", "timeline", "flame", "memory", "model", "table/ops", "matches?search=aten"):
        page = shown.go(part)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, part
    page = shown.go("table/ops")
    name = page.locator(".body .td[data-key=key]").first.bounding_box()
    assert name["x"] >= 0 and name["width"] >= 80
    seen = page.locator(".body .tr").first.locator(".td.number").evaluate_all(
        "cells => cells.filter(cell => cell.getBoundingClientRect().right <= innerWidth).length")
    assert seen >= 1
    page = shown.go("timeline")
    assert page.locator(".timeline canvas[role=application]").bounding_box()["width"] >= 250


def test_lanes_are_used_by_keys(opened):
    _, shown = opened("threads")
    page = shown.go("timeline")
    page.locator(".lane-name.spans").first.focus()
    labels = []
    for _ in range(4):
        page.keyboard.press("Tab")
        labels.append(page.evaluate("document.activeElement.getAttribute('aria-label') ?? document.activeElement.className"))
    assert [label.split()[0] for label in labels] == ["Hide", "Pin", "Select", "lane-name"]
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector(".facts-box dd[data-fact=Where]")


def test_timeline_and_flame_graph_are_printed(opened):
    _, shown = opened("torch")
    for part in ("timeline", "flame"):
        page = shown.go(part)
        page.emulate_media(media="print")
        assert page.locator("main canvas[role=application]").is_visible() and not page.locator("nav").is_visible()
        page.emulate_media(media="null")
