# SPDX-License-Identifier: Apache-2.0
"""Samples on the report page's timeline, in a real browser: the stacks of each thread by time, running and waiting told
apart. The sums are those of `sonde report --view samples --json`.
"""
import collections
import json
import re
import subprocess
import sys

import pytest

from cli_tools import SONDE, needs_tools, read, read_json
from page_tools import Opened, contrast_faults, needs_page, unnamed_controls, wait_until

pytestmark = [needs_tools, needs_page]


def lanes(page):
    """By thread number: what the lane says of its samples, and whether it is open."""
    found = page.locator(".lane-name[data-samples]").evaluate_all("all => all.map(one => [one.dataset.samples, one.getAttribute('aria-expanded')])")
    return {json.loads(text)["tid"]: {**json.loads(text), "open": is_open == "true"} for text, is_open in found}


def threads(trace):
    """By thread number: samples, time and processor time, of `--view samples`."""
    rows = read_json("report", trace, "--view", "samples", "--json", "--rows", "-1")["rows"]
    return {row["thread"]: row for row in rows if row["depth"] == 0}


def add_up_all(page):
    """Selects all of the time, by the mouse: the sums of the table below."""
    box = page.locator(".timeline canvas[role=application]").bounding_box()
    page.mouse.move(box["x"] + 1, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + 300, box["y"] + 100)
    page.mouse.move(box["x"] + box["width"] - 2, box["y"] + 100)
    page.mouse.up()
    page.wait_for_selector(".totals-box .table .body .tr")


@pytest.mark.parametrize("case", ["samples", "native", "samples_children"])
def test_each_thread_has_a_lane_with_the_times_of_its_samples(opened, case):
    trace, shown = opened(case)
    shown_lanes, told = lanes(shown.go("timeline")), threads(trace)
    assert set(shown_lanes) == set(told) and told
    for tid, row in told.items():
        lane = shown_lanes[tid]
        assert lane["samples"] == row["samples"]
        assert (lane["running_ns"], lane["running_ns"] + lane["lock_ns"] + lane["waiting_ns"]) == (row["cpu_ns"], row["time_ns"])


@pytest.mark.parametrize("case", ["samples", "native"])
def test_the_sums_of_functions_are_those_of_the_report(opened, case):
    trace, shown = opened(case)
    page = shown.go("timeline")
    told = collections.Counter()
    for row in read_json("report", trace, "--view", "samples", "--json", "--rows", "-1", "--show-all")["rows"]:
        if row["depth"] > 0:
            told[row["function"]] += row["time_ns"]
    add_up_all(page)
    mine = {row["name"]: row["total_ns"] for row in shown.rows(".totals-box .table")}
    states = {"Running", "Waiting", "Waiting for the interpreter's lock"}
    assert states & set(mine) and len(set(mine) - states) > 3
    assert {name: ns for name, ns in mine.items() if name not in states} == {name: told[name] for name in mine if name not in states}


def test_a_function_is_found_with_its_place(opened):
    trace, shown = opened("samples")
    page = shown.go("timeline")
    row = next(row for row in read_json("report", trace, "--view", "samples", "--json", "--rows", "-1")["rows"] if row["function"] == "dumps")
    page.get_by_label("Search names").fill("dumps")
    page.keyboard.press("Enter")
    wait_until(page, "document.querySelector('main > .timeline').dataset.selected === 'dumps'")
    assert page.locator("dd[data-fact=Place]").text_content() == f"{row['file']}:{row['line']}"
    assert page.locator("dd[data-fact=Duration]").text_content() == f"{row['time_ns'] / 1e6:.3f}ms"
    assert page.locator("dd[data-fact=Self]").text_content() == f"{row['self_ns'] / 1e3:.3f}us"


PROGRAM = """
import threading, time
def spin(until):
    while time.monotonic() < until:
        sum(range(1000))
def nap(until):
    time.sleep(until - time.monotonic())
until = time.monotonic() + 0.6
waiter = threading.Thread(target=nap, args=(until,), name="waiter")
waiter.start()
spin(until)
waiter.join()
"""


def test_what_sonde_run_records_by_default_is_on_the_timeline(browser, tmp_path):
    (tmp_path / "prog.py").write_text(PROGRAM, encoding="utf-8")
    subprocess.run([SONDE, "run", "-o", "t.sonde", "--", sys.executable, "prog.py"], cwd=tmp_path, check=True, stderr=subprocess.PIPE)
    read("export", tmp_path / "t.sonde", "--to", "html")
    shown = Opened(browser, tmp_path / "t.sonde.html")
    page = shown.go("timeline")
    found, told = lanes(page), threads(tmp_path / "t.sonde")
    assert {tid: lane["running_ns"] for tid, lane in found.items()} == {tid: row["cpu_ns"] for tid, row in told.items()}
    titles = page.locator(".lane-name[data-samples] .title").all_text_contents()
    assert {"MainThread", "waiter"} <= set(titles)
    # A thread that does nothing but wait is folded: its row says so.
    folded = page.locator(".lane-name[data-samples]", has_text="waiter").get_attribute("aria-expanded")
    main = page.locator(".lane-name[data-samples]", has_text="MainThread").get_attribute("aria-expanded")
    assert (folded, main) == ("false", "true")
    names = page.locator("main > .timeline").get_attribute("data-labels").split("\n")
    assert any(re.match("spin", name) for name in names)
    assert contrast_faults(page) == [] and unnamed_controls(page) == []
    legend = page.locator(".legend span").all_text_contents()
    assert {"Python functions", "Running", "Waiting"} <= set(legend)
    shown.close()


@pytest.mark.parametrize("case", ["samples", "native", "mixed"])
def test_the_first_screen_has_the_hot_functions_and_lines_of_the_report(opened, case):
    trace, shown = opened(case)
    page = shown.go("summary")
    for view in "functions", "lines":
        sums = collections.Counter()  # functions that share a line are one bar of it
        for number, row in enumerate(read_json("report", trace, "--view", view, "--json", "--rows", "-1")["rows"]):
            sums[(row["file"], row["line"]) if view == "lines" and row["line"] else number] += row.get("self_ns") or 0
        whole = sum(sums.values())
        told = [ns for ns in sorted(sums.values(), reverse=True) if ns > whole * 0.5e-4][:8]
        found = page.locator(f".bars[data-view={view}] li").evaluate_all("all => all.map(one => Number(one.dataset.self))")
        assert found == told and (told or view == "lines")
    highest = max(read_json("report", trace, "--view", "functions", "--json", "--rows", "-1")["rows"], key=lambda row: row["self_ns"])
    link = page.locator(".highlights a").filter(has_text="takes")
    assert link.text_content() == f"The function {highest['function']} takes {highest['self_share']:.0f} % of the running time itself"
    page.locator(".bars[data-view=functions] + p a").click()
    page.wait_for_selector("main > .flamegraph")
    assert page.locator("main > .flamegraph").get_attribute("data-source") == "samples"


def test_waiting_is_paler_than_running(opened):
    """The functions of a thread that waits are drawn in less of their colour."""
    _, shown = opened("samples")
    page = shown.go("timeline")
    lane = page.locator(".lane-name[data-samples]").last  # it waits, then runs
    lane.evaluate("one => { if (one.getAttribute('aria-expanded') === 'false') one.click(); }")
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    top = page.locator(".lane-name[data-samples]").last.evaluate("one => one.offsetTop")
    line = page.evaluate("""top => { const canvas = document.querySelector('.timeline canvas[role=application]');
        const copy = Object.assign(document.createElement('canvas'), {width: canvas.width, height: canvas.height}).getContext('2d');
        copy.drawImage(canvas, 0, 0);
        return [...copy.getImageData(0, top + 3 + 18 + 16, canvas.width, 1).data]; }""", top)
    light = [sum(line[at:at + 3]) for at in range(0, len(line), 4)]
    coloured = [one for one in light if one < 3 * 255 - 6]
    assert len(set(coloured)) >= 2 and max(coloured) - min(coloured) > 20
