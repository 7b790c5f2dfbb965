# SPDX-License-Identifier: Apache-2.0
"""The heap over time in the page: every moment has the bytes and blocks of `sonde report --view heap --at`."""
from cli_tools import needs_tools, read_json
from page_tools import needs_page

pytestmark = [needs_tools, needs_page]


def told_at(trace, moment):
    """By function and line: blocks and bytes that it held itself, of one kind of memory."""
    sums = {}
    report = read_json("report", trace, "--view", "heap", "--json", "--rows", "-1", "--at", str(moment["time_ns"]))
    for row in report["rows"]:
        if row["memory"] == moment["memory"] and row["held_bytes"]:
            function, place = row["stack"][0].rstrip(")").split(" (") if row["stack"] != ["(not known)"] else ("(not known)", "")
            blocks, size = sums.get((function, place), (0, 0))
            sums[function, place] = blocks + row["held_blocks"], size + row["held_bytes"]
    return sums


def shown_at(shown):
    return {(row["function"], row["place"]): (row["blocks"], row["bytes"]) for row in shown.rows(".holders .table") if row["bytes"]}


def test_each_moment_has_who_held_it(opened):
    trace, shown = opened("heap")
    moments = read_json("report", trace, "--view", "heap-moments", "--json", "--rows", "-1")["rows"]
    page = shown.go("heap")
    malloc = [moment for moment in moments if moment["memory"] == "malloc"]
    highest = max(range(len(malloc)), key=lambda i: malloc[i]["held_bytes"])
    part = page.locator("main > .heap")
    assert int(part.get_attribute("data-held")) == malloc[highest]["held_bytes"]  # it opens with the highest
    page.locator("main > .heap > .chart > canvas").focus()
    for _ in malloc:
        page.keyboard.press("ArrowLeft")
    seen = []
    for moment in malloc:
        assert int(part.get_attribute("data-at")) == moment["time_ns"] and int(part.get_attribute("data-held")) == moment["held_bytes"]
        seen.append(shown_at(shown))
        assert seen[-1] == told_at(trace, moment) and sum(size for _, size in seen[-1].values()) == moment["held_bytes"]
        assert int(page.locator(".heap .flamegraph").get_attribute("data-whole")) == moment["held_bytes"]
        page.keyboard.press("ArrowRight")
    assert len({str(one) for one in seen}) == len(malloc)  # they differ
    page.locator(".heap > .tools select").select_option(label="mapped memory")
    mapped = next(moment for moment in moments if moment["memory"] == "mapped")
    assert shown_at(shown) == told_at(trace, mapped)


def test_a_moment_is_chosen_on_the_curve_and_stays_in_the_address(opened):
    trace, shown = opened("heap")
    malloc = [row for row in read_json("report", trace, "--view", "heap-moments", "--json")["rows"] if row["memory"] == "malloc"]
    page = shown.go("heap")
    part, chart = page.locator("main > .heap"), page.locator("main > .heap > .chart > canvas")
    chart.click(position={"x": 75, "y": 60})
    assert int(part.get_attribute("data-at")) == malloc[0]["time_ns"]
    box = chart.bounding_box()
    chart.click(position={"x": box["width"] - 2, "y": 60})
    assert int(part.get_attribute("data-at")) == malloc[-1]["time_ns"]
    shown.until("() => location.hash.includes('moment=0.2')")
    page.keyboard.press("p")
    assert int(part.get_attribute("data-held")) == max(moment["held_bytes"] for moment in malloc)
    shown.go("heap?moment=0.0")
    shown.until("at => document.querySelector('main > .heap').dataset.at === at", str(malloc[0]["time_ns"]))
