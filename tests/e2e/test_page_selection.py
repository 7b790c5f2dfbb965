# SPDX-License-Identifier: Apache-2.0
"""What is chosen on the report page, in a real browser: a part of the time, a lane; what follows it, and the address that keeps it."""
import pytest

from cli_tools import needs_tools, read_json
from page_tools import needs_page, wait_until

pytestmark = [needs_tools, needs_page]


def drag(page, begin, end):
    """Selects a part of the time by the mouse, in parts of the width."""
    box = page.locator(".timeline canvas[role=application]").bounding_box()
    for act, part in ((page.mouse.move, begin), (None, 0), (page.mouse.move, (begin + end) / 2), (page.mouse.move, end)):
        act(box["x"] + part * box["width"], box["y"] + 60) if act else page.mouse.down()
    page.mouse.up()
    page.wait_for_selector(".facts-box dd[data-fact=Begin]")


def facts(page):
    return dict(page.locator(".facts-box dd[data-fact]").evaluate_all("all => all.map(one => [one.dataset.fact, one.textContent])"))


def address(page, *parts):
    """Once it has these."""
    for part in parts:
        wait_until(page, "part => decodeURIComponent(location.hash).includes(part)", part)
    return page.evaluate("location.hash")


def reopen(shown, hash_):
    """The same address in a page that is new: what a person gets who is sent it."""
    shown.page.reload()
    shown.page.wait_for_selector("html[data-ready]")
    assert shown.page.evaluate("location.hash") == hash_
    return shown.page


def work_between(trace, begin, end):
    """ns of the range `work` of each step (gen_ranges.c) between two moments."""
    starts = [row["start_ns"] for row in read_json("report", trace, "--view", "steps", "--json")["rows"]]
    return sum(max(0, min(end, start + 100000) - max(begin, start + 10)) for start in starts)


@pytest.mark.parametrize("begin,end", [(150000, 420000), (1000, 4001000), (205000, 206000)])
def test_the_flame_graph_is_of_the_chosen_time(opened, begin, end):
    trace, shown = opened("slow_steps", "0")
    page = shown.go(f"flame?part={begin}-{end}")
    wait_until(page, "document.querySelector('.flamegraph').dataset.source === 'part-ranges'")
    assert float(page.get_attribute(".flamegraph", "data-whole")) == work_between(trace, begin, end)
    page.locator("#part button").click()
    wait_until(page, "document.querySelector('.flamegraph').dataset.source === 'ranges'")
    assert float(page.get_attribute(".flamegraph", "data-whole")) == 40 * (100000 - 10)


def test_all_of_the_time_has_the_tree_of_the_trace(opened):
    for case, source, part in (("convnet", "ranges", "part-ranges"), ("samples", "samples", "part-samples")):
        trace, shown = opened(case)
        page = shown.go(f"flame/{source}")
        whole = float(page.get_attribute(".flamegraph", "data-whole"))
        span = shown.go("timeline").evaluate("[document.querySelector('.timeline').dataset.from, document.querySelector('.timeline').dataset.to].map(v => Math.round(v))")
        page = shown.go(f"flame/{part}?part={span[0]}-{span[1]}")
        wait_until(page, "source => document.querySelector('.flamegraph').dataset.source === source", part)
        if case == "convnet":
            assert float(page.get_attribute(".flamegraph", "data-whole")) == whole
        else:  # the tree of the trace is of threads, and the part's of functions: those of all threads
            rows = read_json("report", trace, "--view", "samples", "--json", "--rows", "-1", "--show-all")["rows"]
            assert float(page.get_attribute(".flamegraph", "data-whole")) == sum(row["time_ns"] for row in rows if row["depth"] == 1)


def test_begin_end_length_and_totals_are_of_what_is_dragged(opened):
    trace, shown = opened("slow_steps", "0")
    page = shown.go("timeline")
    drag(page, 0.25, 0.5)
    for _ in range(250):  # the address follows a moment later
        begin, end = map(int, address(page, "part=").partition("part=")[2].split("-"))
        told = facts(page)
        in_ns = {title: float(told[title][:-2]) * (1e6 if told[title].endswith("ms") else 1e3) for title in ("Begin", "End", "Length")}
        apart = [(title, ns) for title, ns in (("Begin", begin), ("End", end), ("Length", end - begin)) if abs(in_ns[title] - ns) >= 1000]
        if not apart:
            break
        page.wait_for_timeout(20)
    assert not apart, told
    rows = {row["name"]: row for row in shown.rows(".totals-box .table")}
    assert abs(rows["work"]["total_ns"] - work_between(trace, begin, end)) <= 2
    page.get_by_text("Flame graph of it").click()
    page.wait_for_selector(".flamegraph[data-source=part-ranges]")
    assert abs(float(page.get_attribute(".flamegraph", "data-whole")) - work_between(trace, begin, end)) <= 2


def test_a_lane_alone(opened):
    trace, shown = opened("threads")
    page = shown.go("timeline")
    lanes = page.locator(".lane-name.spans .title").all_text_contents()
    assert len(lanes) == 4
    all_names = set()
    for name in lanes:
        page = shown.go("timeline")
        page.get_by_label(f"Select {name}", exact=True).click()
        page.wait_for_selector(".facts-box dd[data-fact=Where]")
        assert facts(page)["Where"] == name
        assert page.get_by_label(f"Select {name}", exact=True).get_attribute("aria-pressed") == "true"
        all_names |= {(name, row["name"], row["total_ns"]) for row in shown.rows(".totals-box .table")}
        page.get_by_label(f"Select {name}", exact=True).click()
        page.wait_for_selector(".details p.empty")
    grouped = read_json("report", trace, "--view", "ops", "--group-by", "thread", "--json", "--rows", "-1")["rows"]
    assert sorted(round(total) for _, _, total in all_names) == sorted(round(1000 * row["cpu_time_total"]) for row in grouped)


def test_the_gpu_and_its_memory_are_of_the_chosen_time(opened):
    trace, shown = opened("gpu_idle")
    device = read_json("report", trace, "--view", "gpu", "--json")["totals"]["devices"][0]
    page = shown.go("timeline?part=0-700000")
    told = facts(page)
    assert told["GPU busy"].startswith(f"{device['busy_ns'] / 1000:.3f}us")
    page = shown.go("timeline?part=30000-80000")  # 30 to 60 and 64 to 80 us: gen_idle.c
    wait_until(page, "document.querySelector('dd[data-fact=\"GPU busy\"]').textContent.startsWith('46.000us, 92')")


def test_the_peak_of_memory_is_that_of_the_chosen_time(opened):
    trace, shown = opened("memory")
    page = shown.go("memory")
    whole = page.locator(".holders").text_content()
    first = shown.go("timeline").evaluate("Number(document.querySelector('.timeline').dataset.from)")
    page = shown.go(f"memory?part={round(first)}-{round(first) + 25}")
    wait_until(page, "whole => document.querySelector('.holders').textContent !== whole", whole)
    assert page.locator("#part button").count() == 1


def test_an_address_keeps_zoom_selection_search_and_view(opened):
    trace, shown = opened("slow_steps", "0")
    page = shown.go("timeline")
    page.get_by_label("Search names").fill("work")
    page.keyboard.press("Enter")
    wait_until(page, "document.querySelector('main > .timeline').dataset.selected === 'work'")
    page.get_by_label("Zoom in (W)").click()
    kept = address(page, "search=work", "span=", "at=")
    before = page.evaluate("({...document.querySelector('.timeline').dataset})")
    page = reopen(shown, kept)
    page.wait_for_selector("main > .timeline[data-frames]")
    after = page.evaluate("({...document.querySelector('.timeline').dataset})")
    assert after["selected"] == "work" and page.get_by_label("Search names").input_value() == "work"
    assert all(abs(float(after[key]) - float(before[key])) < 2 for key in ("from", "to"))
    page = shown.go("flame")
    page.locator(".flamegraph canvas").focus()
    page.keyboard.press("ArrowRight")
    page.get_by_label("Search names").fill("wor")
    kept = address(page, "flame/ranges", "search=wor", "frame=")
    page = reopen(shown, kept)
    page.wait_for_selector("main > .flamegraph[data-selected=work]")
    page = shown.go("table/ops")
    page.get_by_label("Filter: words, or count>10").fill("work count>1")
    kept = address(page, "table/ops", "count>1")
    page = reopen(shown, kept)
    page.wait_for_selector("main > .view")
    assert page.get_by_label("Filter: words, or count>10").input_value() == "work count>1" and shown.texts("key") == ["work"]


def test_what_an_address_has_and_the_trace_not_is_left_out(opened):
    _, shown = opened("slow_steps", "0")
    for bad in ("timeline?part=9-3&lane=99&span=1.2.3&at=x", "flame/part-ranges?frame=9.9&at=-", "table/ops?search=%00", "timeline?part=nonsense"):
        shown.go(bad)
    assert shown.faults == []


def test_the_kept_address_does_not_undo_where_one_goes(opened):
    """The page writes the address a moment after it is shown; whoever goes on in that moment gets there."""
    _, shown = opened("torch")
    shown.page.evaluate("""() => {
        location.hash = "timeline";
        return new Promise(done => addEventListener("hashchange", () => {
            // While the page is busy both become due: this one, then the page's own, and then the event of this one.
            setTimeout(() => { for (const end = performance.now() + 300; performance.now() < end;); }, 100);
            setTimeout(() => { location.hash = "memory"; done(); }, 190);
        }, { once: true }));
    }""")
    shown.page.wait_for_selector("main > .memory", timeout=10_000)


# ---- tables

def whole_time(page):
    """As a part: all that the timeline has."""
    return "-".join(str(round(float(page.get_attribute("main > .timeline", name)))) for name in ("data-from", "data-to"))


@pytest.mark.parametrize("case, view, key, columns", [
    ("torch", "ops", "key", ["count", "self_cpu_time_total", "cpu_time_total", "cpu_time"]),
    ("fold", "ops", "key", ["count", "self_cpu_time_total", "cpu_time_total"]),
    ("gpu", "kernels", "name", ["count", "total_ns", "total_percent", "mean_ns", "min_ns", "max_ns"]),
    ("samples", "functions", "function", ["self_ns"]),
])
def test_a_table_of_all_time_is_that_of_the_report(opened, case, view, key, columns):
    trace, shown = opened(case)
    part = whole_time(shown.go("timeline"))
    page = shown.go(f"table/{view}?part={part}")
    assert page.locator(".part-note").text_content().startswith("Of the selected part")
    rows = shown.rows()
    told = read_json("report", trace, "--view", view, "--json", "--rows", "-1")["rows"]
    told = [row for row in told if row.get(columns[0]) and row[key] != "[memory]"]  # that has no time
    mine = {row[key]: [pytest.approx(row[column], abs=1e-6) for column in columns] for row in rows if row[columns[0]]}
    assert mine and {row[key]: [row[column] for column in columns] for row in told} == mine


def test_tables_follow_the_chosen_time(opened):
    trace, shown = opened("slow_steps", "0")
    page = shown.go("table/ops?part=150000-420000")
    assert [(row["key"], 1000 * row["cpu_time_total"]) for row in shown.rows()] == [("work", pytest.approx(work_between(trace, 150000, 420000)))]
    steps = read_json("report", trace, "--view", "steps", "--json", "--rows", "-1")["rows"]
    page = shown.go("table/steps")
    assert [row["step"] for row in shown.rows()] == [row["step"] for row in steps
                                                     if row["start_ns"] < 420000 and row["start_ns"] + row["duration_ns"] > 150000]
    page = shown.go("table/threads")
    page.locator("#part button").click()
    wait_until(page, "document.querySelector('.part-note') === null")
    shown.go("table/steps")
    assert page.locator(".count").first.text_content() == f"{len(steps)} rows"
