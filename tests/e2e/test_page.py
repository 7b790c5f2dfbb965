# SPDX-License-Identifier: Apache-2.0
"""The report page (`sonde export --to html`) in a real browser, from disk: it is used as a person uses it, and what it
shows is compared with `sonde report --json`. No console message, no error, no request is allowed in any of it.
"""
import re

import pytest

from cli_tools import generate, needs_tools, read, read_json, sonde
from page_tools import Opened, contrast_faults, needs_page, unnamed_controls, wait_until

pytestmark = [needs_tools, needs_page]


def same(shown, told):
    return {key: value for key, value in told.items() if key in shown} == shown


# ---- the file

def test_the_file_has_a_policy_and_nothing_from_elsewhere(page_traces):
    text = page_traces("torch")[1].read_text(encoding="utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text).group(1)
    assert "default-src 'none'" in policy and "connect-src 'none'" in policy and "unsafe" not in policy
    assert re.search(r"script-src 'sha256-[\w+/=]+'", policy)
    assert not re.search(r'(?:src|href)="(?:https?:)?//', text)


def test_size_is_bounded(page_traces):
    trace, page = page_traces("large", "100000")
    events = read_json("report", trace, "--view", "summary", "--json")["totals"]["events"]
    assert page.stat().st_size <= 12 * events + 300_000


# ---- summary

def test_summary_has_the_totals_and_the_ledger(opened):
    trace, shown = opened("gaps")
    told = read_json("report", trace, "--view", "summary", "--json")
    page = shown.go("summary")
    totals = dict(page.eval_on_selector_all(".summary .totals dd", "all => all.map(one => [one.dataset.key, JSON.parse(one.dataset.value)])"))
    assert totals["events"] == told["totals"]["events"] and totals["span_ns"] == told["totals"]["span_ns"]
    assert same(totals, told["totals"])
    ledger = dict(page.eval_on_selector_all(".ledger li", "all => all.map(one => [one.dataset.key, Number(one.dataset.value)])"))
    assert ledger == told["ledger"] and ledger


@pytest.mark.parametrize("case", ["samples", "heap", "torch", "gpu", "python", "steps"])
def test_the_first_line_has_the_span_of_the_totals(opened, case):
    trace, shown = opened(case)
    told = read_json("report", trace, "--view", "summary", "--json")["totals"]
    page = shown.go("summary")
    line = page.locator(".summary p.about")
    assert int(line.get_attribute("data-span")) == told["span_ns"]
    processes, threads, *span = line.text_content().split(", ")
    assert (int(processes.split()[0]), int(threads.split()[0])) == (told["processes"], told["threads"])
    assert span == ([page.locator(".summary .totals dd[data-key=span_ns]").text_content()] if told["span_ns"] else [])
    assert told["span_ns"] > 0 or case == "heap"  # of allocations that are counted in place nothing has a time


def test_highlights_are_links_to_where_they_are_seen(opened):
    trace, shown = opened("torch")
    page = shown.go("summary")
    texts = page.locator(".highlights a").all_text_contents()
    assert 1 <= len(texts) <= 5
    most = next(text for text in texts if "of the time is spent in" in text)
    percent, count = map(int, re.search(r"(\d+) % of the time is spent in (\d+) of", most).groups())
    rows = sorted(read_json("report", trace, "--json", "--rows", "-1")["rows"], key=lambda row: -row["self_cpu_time_total"])
    assert round(sum(row["self_cpu_percent"] for row in rows[:count])) == percent
    page.get_by_text(most).click()
    page.wait_for_selector("main > .view")
    assert page.locator("main h1").text_content() == "Operators"


def test_highlights_of_gpus_memory_and_steps(opened):
    def follow(case, pattern, part):
        trace, shown = opened(case)
        page = shown.go("summary")
        link = page.locator(".highlights a").filter(has_text=re.compile(pattern))
        numbers = re.search(pattern, link.text_content()).groups()
        link.click()
        page.wait_for_selector(part)
        return trace, page, numbers

    trace, page, (percent,) = follow("gpu", r"The GPU runs no kernel (\d+) % of the time", "main > .view")
    assert page.locator("main h1").text_content() == "GPU use"
    device = read_json("report", trace, "--view", "gpu", "--json")["totals"]["devices"][0]
    assert round(100 - 100 * device["kernel_ns"] / device["span_ns"]) == int(percent)

    trace, page, (size, holder, percent) = follow("convnet", r"Memory peaks at ([\d.]+) MB; (\S+) holds (\d+) % of it", "main > .memory")
    told = read_json("report", trace, "--view", "memory", "--json", "--rows", "-1")
    peak = told["totals"]["devices"][0]["peak_bytes"]
    most = max(told["rows"], key=lambda row: row["peak_bytes"])
    assert float(size) == round(peak / 1048576, 2) and holder == most["name"] and int(percent) == round(100 * most["peak_bytes"] / peak)

    trace, page, (count, each) = follow("steps", r"(\d+) steps of ([\d.]+)us in the median; none takes twice as long", "main > .view")
    rows = read_json("report", trace, "--view", "steps", "--json", "--rows", "-1")["rows"]
    assert int(count) == len(rows) and float(each) * 1000 == sorted(row["duration_ns"] for row in rows)[len(rows) // 2]


def test_steps_that_take_twice_as_long_are_counted(opened):
    trace, shown = opened("slow_steps")
    page = shown.go("summary")
    link = page.locator(".advice a").filter(has_text="steps")
    assert link.text_content().startswith("4 of 40 steps take twice the median of 100.000us or more (step 5: 250.000us)")
    assert page.locator(".highlights a").filter(has_text="steps").count() == 0  # nothing is said twice
    rows = read_json("report", trace, "--view", "steps", "--json", "--rows", "-1")["rows"]
    times = sorted(row["duration_ns"] for row in rows)
    assert len(rows) == 40 and [row["step"] for row in rows if row["duration_ns"] >= 2 * times[20]] == [5, 12, 17, 31]
    # The link leads to the steps; their table and the text of `sonde report` have the same numbers.
    link.click()
    page.wait_for_selector("main > .view")
    assert page.locator("main h1").text_content() == "Steps"
    page.get_by_placeholder("Filter").fill(f"duration_ns>={2 * times[20]}")
    wait_until(page, "document.querySelector('main .count').textContent.startsWith('4 ')")
    assert [row["step"] for row in shown.rows()] == [5, 12, 17, 31]
    text = read("report", trace, "--view", "steps", "--rows", "-1").decode().splitlines()
    assert [line.split()[1] for line in text if len(line.split()) == 5 and line.split()[3] in ("200.000us", "250.000us")] == ["5", "12", "17", "31"]
    told = {line.split(": ")[0].lower(): float(line.split(": ")[1][:-2]) for line in text if re.match("(Median|Shortest|Longest): ", line)}
    assert told == {"median": 100, "shortest": 100, "longest": 250}


def test_one_step_that_takes_twice_as_long(browser, tmp_path):
    read("export", generate("slow_steps", tmp_path / "one.sonde", "1"), "--to", "html")
    shown = Opened(browser, tmp_path / "one.sonde.html")
    assert "1 of 40 steps takes at least twice as long as the median step" in shown.go("summary").locator(".highlights a").all_text_contents()
    shown.close()


def test_highlights_name_no_line_that_is_not_known(opened):
    _, shown = opened("native")
    details = shown.go("summary").locator(".highlights p").all_text_contents()
    assert details and not [text for text in details if text.endswith(":0") or text.startswith(":")]


def test_memory_from_before_the_recording_is_in_no_blocks(opened):
    _, shown = opened("gpu_memory", "1")
    assert not [text for text in shown.go("summary").locator(".highlights p").all_text_contents() if " 0 blocks" in text]


def test_one_call_is_one_call(opened):
    trace, shown = opened("diff", "0")
    rows = read_json("report", trace, "--view", "summary", "--json")["rows"]
    texts = shown.go("summary").locator(".bars li .value.wide:last-child").all_text_contents()
    assert texts == [f"{row['count']} call{'' if row['count'] == 1 else 's'}" for row in rows] and "1 call" in texts


# ---- tables

def test_the_navigation_lists_nothing_twice(opened):
    for case in ("torch", "python", "roofline", "samples"):
        _, shown = opened(case)
        names = shown.page.locator("nav a").all_text_contents()
        assert [name for name in names if names.count(name) > 1] == [] and len(names) > 5


@pytest.mark.parametrize("case", ["torch", "gpu", "heap", "samples", "memory", "steps", "layers", "roofline", "python"])
def test_columns_have_titles_of_their_own_and_rows_have_names(opened, case):
    _, shown = opened(case)
    page = shown.page
    for view in page.eval_on_selector_all("nav > a[href^='#table/']", "links => links.map(one => one.getAttribute('href').slice(7))"):
        shown.go(f"table/{view}")
        titles = page.locator("main .rows .th button").all_text_contents()
        assert len(set(titles)) == len(titles), view
        if titles and view != "steps":  # which have numbers for names
            assert page.locator("main .rows .th:not(.number)").count() > 0, view


def test_the_call_tree_has_indented_names(opened):
    trace, shown = opened("torch")
    page = shown.go("table/tree")
    told = read_json("report", trace, "--view", "tree", "--json", "--rows", "-1")["rows"]
    shown_rows = page.eval_on_selector_all("main .rows .body .td[data-key=name]", "all => all.map(one => [one.textContent, parseFloat(getComputedStyle(one).paddingLeft)])")
    assert [name for name, _ in shown_rows] == [row["name"] for row in told[:len(shown_rows)]]
    first = shown_rows[0][1]
    assert [left - first for _, left in shown_rows] == [12 * (row["depth"] - 1) for row in told[:len(shown_rows)]]
    assert "Total FLOPs" in page.locator("main .rows .th button").all_text_contents()


def test_bytes_of_a_heap_have_units(opened):
    trace, shown = opened("heap")
    shown.go("table/heap")
    told = read_json("report", trace, "--view", "heap", "--json", "--rows", "-1")["rows"]
    texts = shown.texts("peak_bytes")
    assert texts and all(re.fullmatch(r"[\d.]+ [KMG]?B", text) for text in texts)
    assert [row["peak_bytes"] for row in shown.rows()] == [row["peak_bytes"] for row in told[:len(texts)]]

@pytest.mark.parametrize("group", ["shape", "stack", "module", "thread"])
def test_operators_are_grouped_as_json_groups_them(opened, group):
    trace, shown = opened("torch")
    page = shown.go("table/ops")
    page.get_by_label("Group by").select_option(group)
    wait_until(page, "group => location.hash === `#table/ops/${group}`", arg=group)
    told = read_json("report", trace, "--group-by", group, "--json", "--rows", "-1", "--sort", "self_cpu_time_total")["rows"]
    rows = shown.rows()
    assert page.locator(".count").text_content() == f"{len(told)} rows"
    assert rows and all(same(mine, theirs) for mine, theirs in zip(rows, told))


@pytest.mark.parametrize("case", ["torch", "threads", "memory", "samples", "python", "gpu", "steps", "layers", "heap"])
def test_every_table_has_the_numbers_of_json(opened, case):
    trace, shown = opened(case)
    views = shown.page.eval_on_selector_all("nav a[href^='#table/']", "links => links.map(one => one.getAttribute('href').slice(7))")
    compared = 0
    for view in views:
        shown.go(f"table/{view}")
        if shown.page.locator("main .rows").count() == 0:
            continue
        if shown.page.locator("main .check input").count():
            shown.page.locator("main .check input").check()
        sort = ("--sort", "self_cpu_time_total") if view == "ops" else ()
        told = read_json("report", trace, "--view", view, "--json", "--rows", "-1", *sort)["rows"]
        rows = shown.rows()
        assert rows and all(same(mine, theirs) and mine for mine, theirs in zip(rows, told)), view
        compared += len(rows)
    assert compared > 0


def test_cells_are_written_as_text_writes_them(opened):
    trace, shown = opened("torch")
    text = read("report", trace, "--view", "ops", "--rows", "3", "--sort", "self_cpu_time_total").decode()
    shown.go("table/ops")
    for row in range(3):
        for key in ("self_cpu_percent", "self_cpu_time_total", "cpu_time_total", "cpu_time", "count"):
            assert f" {shown.texts(key)[row]} " in text, key


def test_sort_filter_and_group(opened):
    trace, shown = opened("torch")
    page = shown.go("table/ops")
    page.locator(".th[data-key=count] button").click()
    counts = [row["count"] for row in shown.rows()]
    assert counts == sorted(counts, reverse=True) and len(set(counts)) > 1
    assert page.locator(".th[data-key=count]").get_attribute("aria-sort") == "descending"
    page.locator(".th[data-key=count] button").click()
    assert [row["count"] for row in shown.rows()] == sorted(counts)

    least = sorted(counts)[len(counts) // 2]
    page.get_by_label("Filter: words, or count>10").fill(f"aten count>{least}")
    rows = shown.rows()
    told = read_json("report", trace, "--view", "ops", "--json", "--rows", "-1")["rows"]
    assert sorted(row["key"] for row in rows) == sorted(row["key"] for row in told
                                                        if "aten" in row["key"].lower() and row["count"] > least)
    page.get_by_label("Group by").select_option("shape")
    wait_until(page, "location.hash === '#table/ops/shape'")
    grouped = read_json("report", trace, "--view", "ops", "--group-by", "shape", "--json", "--rows", "-1",
                        "--sort", "self_cpu_time_total")["rows"]
    rows = shown.rows()
    assert all(same(mine, theirs) for mine, theirs in zip(rows, grouped)) and any(row["input_shapes"] for row in rows)


def test_a_table_of_thousands_has_some_rows_in_the_document(opened):
    trace, shown = opened("many_names", "3000")
    page = shown.go("table/ops")
    assert page.locator(".count").text_content() == "3000 rows"
    assert len(shown.rows()) < 200
    first = shown.rows()[0]["key"]
    page.locator("main .rows .scroller").evaluate("box => { box.scrollTop = box.scrollHeight; }")
    wait_until(page, "first => ![...document.querySelectorAll('.td[data-key=key]')].some(one => one.textContent === first)", arg=first)
    told = read_json("report", trace, "--json", "--rows", "-1", "--sort", "self_cpu_time_total")["rows"]
    assert shown.rows()[-1]["key"] == told[-1]["key"]


# ---- flame graph

def test_flame_graph_zooms_searches_and_has_the_trees_numbers(opened):
    trace, shown = opened("torch")
    page = shown.go("flame/ranges")
    tree = read_json("report", trace, "--view", "tree", "--json", "--rows", "-1")["rows"]
    page.locator(".flamegraph canvas").focus()
    page.keyboard.press("ArrowRight")
    top = max((row for row in tree if row["depth"] == 1), key=lambda row: row["total_ns"])
    assert page.locator("main > .flamegraph").get_attribute("data-selected") == top["name"]
    assert page.locator("dd[data-fact=Calls]").text_content() == str(top["count"])
    page.keyboard.press("Enter")
    wait_until(page, "total => document.querySelector('.flamegraph').dataset.to - document.querySelector('.flamegraph').dataset.from === total",
                           arg=top["total_ns"])
    page.keyboard.press("Escape")
    page.get_by_label("Search names").fill("aten::")
    found = [row for row in tree if "aten::" in row["name"] and row["total_ns"] > 0]
    assert page.locator(".flamegraph .count").text_content().startswith(f"{len(found)} match")


def test_flame_graph_of_samples_and_in_order_of_time(opened):
    trace, shown = opened("samples")
    page = shown.go("flame/samples")
    page.locator(".flamegraph canvas").focus()
    page.keyboard.press("ArrowRight")
    page.get_by_label("Direction").select_option("flame")
    assert int(page.locator("dd[data-fact=Samples]").text_content()) > 0
    _, other = opened("threads")
    page = other.go("flame")
    page.locator(".flamegraph select").first.select_option("time-0")
    page.locator(".flamegraph canvas").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("main > .flamegraph").get_attribute("data-selected") == "work"
    assert page.locator("dd[data-fact=Total]").text_content() == "5.000us"


def test_callers_and_callees_of_a_function(opened):
    """relu is called in one place, forward, and calls nothing; what forward calls is below it."""
    trace, shown = opened("convnet")
    rows = read_json("report", trace, "--view", "tree", "--json", "--rows", "-1")["rows"]
    of = {row["name"]: row for row in rows}
    page = shown.go("flame/ranges?sandwich=aten::conv2d")
    wait_until(page, "document.querySelector('.flamegraph').dataset.source === 'sandwich'")
    assert float(page.get_attribute(".flamegraph", "data-whole")) == of["aten::conv2d"]["total_ns"]
    names = []
    page.locator(".flamegraph canvas").focus()
    page.keyboard.press("ArrowUp")
    names.append(page.get_attribute(".flamegraph", "data-selected"))
    # Of its caller only the time in these calls counts.
    assert page.locator("dd[data-fact=Total]").text_content() == "10.920ms"
    for _ in range(3):
        page.keyboard.press("ArrowDown")
        names.append(page.get_attribute(".flamegraph", "data-selected"))
    assert names == ["forward", "aten::conv2d", "aten::convolution", "aten::_convolution"]
    page.keyboard.press("c")
    wait_until(page, "location.hash.includes('sandwich=aten%3A%3A_convolution')")
    assert float(page.get_attribute(".flamegraph", "data-whole")) == of["aten::_convolution"]["total_ns"]


def test_search_steps_through_matches_and_lists_them(opened):
    trace, shown = opened("convnet")
    rows = read_json("report", trace, "--view", "tree", "--json", "--rows", "-1")["rows"]
    page = shown.go("flame/ranges")
    page.get_by_label("Search names").fill("conv")
    found = [row["name"] for row in rows if "conv" in row["name"]]
    seen = []
    for at in range(len(found)):
        page.keyboard.press("Enter")
        wait_until(page, "text => document.querySelector('.flamegraph .count').textContent.startsWith(text)", f"{at + 1} of {len(found)} matches")
        seen.append(page.get_attribute(".flamegraph", "data-selected"))
    assert sorted(seen) == sorted(found)
    page.get_by_text("all of them").click()
    page.wait_for_selector("main > .matches")
    ops = {row["key"]: row for row in read_json("report", trace, "--json", "--rows", "-1")["rows"]}
    assert {row["name"]: (row["count"], row["total_ns"]) for row in shown.rows()} == \
        {name: (ops[name]["count"], round(1000 * ops[name]["cpu_time_total"])) for name in set(found)}
    page = shown.go("table/ops")
    page.get_by_label("Filter: words, or count>10").fill("conv")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    assert page.locator(".tr.focused").get_attribute("aria-rowindex") == "3"


@pytest.mark.parametrize("tree, key, blocks", [("heap-peak", "peak_bytes", "peak_blocks"), ("heap-left", "leaked_bytes", "leaked_blocks")])
def test_flame_graphs_of_a_heap_have_the_bytes_of_json(opened, tree, key, blocks):
    trace, shown = opened("heap")
    page = shown.go(f"flame/{tree}")
    told = read_json("report", trace, "--view", "heap", "--json", "--rows", "-1")
    heaps = {"malloc": "malloc", "mapped": "mapped memory"}
    sums = {heaps[memory]: sum(row[key] for row in told["rows"] if row["memory"] == memory) for memory in heaps}
    page.locator(".flamegraph canvas").focus()
    found = {}
    for _ in range(3):
        page.keyboard.press("ArrowRight")
        name = page.locator("main > .flamegraph").get_attribute("data-selected")
        found[name] = page.locator("dd[data-fact=Total]").text_content(), int(page.locator("dd[data-fact=Blocks]").text_content())
    count = {heaps[memory]: sum(row[blocks] for row in told["rows"] if row["memory"] == memory) for memory in heaps}
    assert {name: n for name, (_, n) in found.items()} == {name: n for name, n in count.items() if sums[name] > 0}
    for name, (text, _) in found.items():
        number, unit = text.split()
        assert float(number) == pytest.approx(sums[name] / {"B": 1, "KB": 1024, "MB": 1048576}[unit], abs=0.006)
    # Search adds up what a function of the stacks holds, as the rows have it.
    inner = next(row for row in told["rows"] if row[key] > 0 and row["memory"] == "malloc")["stack"][0].split(" (")[0]
    mine = sum(row[key] for row in told["rows"] if any(frame.split(" (")[0] == inner for frame in row["stack"]))
    page.get_by_label("Search names").fill(inner)
    assert page.locator(".flamegraph .count").text_content().endswith(f", {100 * mine / sum(sums.values()):.1f} %")


def test_a_heap_and_samples_open_with_a_flame_graph_of_their_own(opened):
    for case, tree in (("heap", "heap-peak"), ("samples", "samples")):
        _, shown = opened(case)
        shown.go("flame")
        assert shown.page.locator("main > .flamegraph").get_attribute("data-source") == tree


def test_a_heap_has_something_worth_knowing(opened):
    trace, shown = opened("heap")
    page = shown.go("summary")
    link = page.locator(".highlights a").filter(has_text="The heap peaks at")
    told = read_json("report", trace, "--view", "heap", "--json", "--rows", "-1")["rows"]
    peak = sum(row["peak_bytes"] for row in told if row["memory"] == "malloc")
    most = max((row for row in told if row["memory"] == "malloc"), key=lambda row: row["peak_bytes"])
    size, name, share = re.fullmatch(r"The heap peaks at ([\d.]+) KB; (.+) allocated (\d+) % of it", link.text_content()).groups()
    assert float(size) == round(peak / 1024, 2) and int(share) == round(100 * most["peak_bytes"] / peak) and most["stack"][0].startswith(name)
    link.click()
    page.wait_for_selector("main > .flamegraph")
    assert page.locator("main > .flamegraph").get_attribute("data-source") == "heap-peak"


# ---- memory

def holders(shown):
    rows = shown.rows(".holders .table")
    sums = {}
    for row in rows:
        sums[row["name"]] = sums.get(row["name"], 0) + row["bytes"]
    return sums


@pytest.mark.parametrize("case", ["convnet", "torch", "memory"])
def test_memory_has_the_peak_and_its_holders(opened, case):
    trace, shown = opened(case)
    told = read_json("report", trace, "--view", "memory", "--json", "--rows", "-1")
    device = next(one for one in told["totals"]["devices"] if one["device"] == "cpu")
    page = shown.go("memory")
    data = page.locator("main > .memory").evaluate("part => ({...part.dataset})")
    assert int(data["peak"]) == int(data["held"]) == device["peak_bytes"]
    assert int(data["peakAt"]) == device["peak_time_ns"]
    assert holders(shown) == {row["name"]: row["peak_bytes"] for row in told["rows"]
                              if row["device"] == "cpu" and row["peak_bytes"] > 0}
    for by in ("module", "owner", "category"):
        page.get_by_label("Stacked by").select_option(by)
        assert int(page.locator("main > .memory").get_attribute("data-peak")) == device["peak_bytes"]


def test_memory_under_the_cursor(opened):
    trace, shown = opened("convnet")
    page = shown.go("memory")
    page.locator(".memory canvas").focus()
    peak = int(page.locator("main > .memory").get_attribute("data-held"))
    for _ in range(900):
        page.keyboard.press("ArrowRight")
        if int(page.locator("main > .memory").get_attribute("data-held")) != peak:
            break
    held = int(page.locator("main > .memory").get_attribute("data-held"))
    assert held < peak and sum(holders(shown).values()) == held
    assert "At the cursor" in page.locator(".holders h2").text_content()
    page.keyboard.press("p")
    assert "At the peak" in page.locator(".holders h2").text_content()


# ---- what names and empty traces may do

def test_labels_are_text(opened):
    trace, shown = opened("labels")
    told = {row["key"] for row in read_json("report", trace, "--json")["rows"]}
    page = shown.go("table/ops")
    assert set(shown.texts("key")) == told and any("<img" in name for name in told)
    page.get_by_label("Filter: words, or count>10").fill("<img")
    assert len(shown.rows()) == 1
    for part in ("timeline", "flame", "table/tree", "table/threads", "summary"):
        shown.go(part)
        assert page.locator("main img, main b, main script, nav img").count() == 0
    assert page.title() != "run"
    page = shown.go("timeline")
    page.locator(".timeline canvas[role=application]").focus()
    page.keyboard.press("ArrowRight")
    assert "<img" in page.locator(".details h2").text_content()


@pytest.mark.parametrize("case", ["empty", "unknown", "unfinished", "names", "keep_last", "left_open"])
def test_traces_of_little_or_odd_content(opened, case):
    _, shown = opened(case)
    for part in ("summary", "timeline", "flame", "table/ops", "table/samples", "table/ledger"):
        shown.page.evaluate("part => { location.hash = part; }", part)
        wait_until(shown.page, "part => document.querySelector('nav [aria-current]')?.getAttribute('href').slice(1) === part", arg=part)
        assert shown.page.locator("main").inner_text().strip()


# ---- for everybody

def test_dark_light_and_names_of_controls(opened):
    for dark in (False, True):
        _, shown = opened("torch", dark=dark)
        page = shown.go("timeline")
        back = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, re.findall(r"\d+", back)[:3])) < 200) == dark
        assert unnamed_controls(page) == []
        page.get_by_text("Theme").click()
        after = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, re.findall(r"\d+", after)[:3])) < 200) != dark


@pytest.mark.parametrize("dark", [False, True])
def test_text_has_contrast(opened, dark):
    _, shown = opened("torch", dark=dark)
    for part in ("summary", "table/ops"):
        shown.go(part)
        assert contrast_faults(shown.page) == []


def test_on_paper_a_table_has_its_rows(opened):
    trace, shown = opened("torch")
    page = shown.go("table/ops")
    page.emulate_media(media="print")
    rows = read_json("report", trace, "--json", "--rows", "-1")["rows"]
    assert page.locator("table.printed tbody tr").count() == len(rows)
    assert page.locator("table.printed").is_visible() and not page.locator("nav").is_visible()


# ---- the command

def test_a_pipe_gets_the_page_too(page_traces):
    trace, path = page_traces("threads")
    assert sonde("export", trace, "--to", "html", "-o", "-").stdout == path.read_bytes()
