# SPDX-License-Identifier: Apache-2.0
"""The timeline of the report page in a real browser: moved, searched, selected, and its pixels compared with the trace's ranges."""
import json
import math
import re

import pytest

from cli_tools import needs_tools, read, read_json
from page_tools import needs_page, wait_until

pytestmark = [needs_tools, needs_page]


def window(page):
    data = page.locator("main > .timeline").evaluate("part => [Number(part.dataset.from), Number(part.dataset.to)]")
    return data[0], data[1] - data[0]


def hold(page, key, until):
    page.keyboard.down(key)
    wait_until(page, until)
    page.keyboard.up(key)
    # The frame that was under way still moves the window.
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def test_keys_zoom_and_pan_as_in_perfetto(opened):
    _, shown = opened("torch")
    page = shown.go("timeline")
    whole = window(page)
    length = "(document.querySelector('main > .timeline').dataset.to - document.querySelector('main > .timeline').dataset.from)"
    hold(page, "w", f"{length} < {whole[1] / 2}")
    near = window(page)
    assert near[1] < whole[1] / 2
    at = "Number(document.querySelector('main > .timeline').dataset.from)"
    hold(page, "d", f"{at} > {near[0]}")
    assert window(page)[1] == pytest.approx(near[1])
    hold(page, "a", f"{at} < {window(page)[0]}")
    hold(page, "s", f"{length} > {near[1] * 1.5}")
    page.keyboard.press("0")
    wait_until(page, f"{length} >= {whole[1]} - 1")


def test_search_selects_and_tells_what_a_span_took(opened):
    trace, shown = opened("torch")
    events = read_json("export", trace, "--to", "chrome", "-o", "-")["traceEvents"]
    page = shown.go("timeline")
    name = "aten::linear"
    mine = [event for event in events if event.get("ph") == "X" and event["name"] == name]
    page.get_by_label("Search names").fill(name)
    wait_until(page, "document.querySelector('.timeline .count').textContent.includes('match')")
    assert page.locator(".timeline .count").text_content() == f"{len(mine)} match{'' if len(mine) == 1 else 'es'}"
    page.keyboard.press("Enter")
    wait_until(page, "document.querySelector('main > .timeline').dataset.selected !== ''")
    assert page.locator("main > .timeline").get_attribute("data-selected") == name
    first = min(mine, key=lambda event: event["ts"])
    assert page.locator("dd[data-fact=Duration]").text_content() == f"{first['dur']:.3f}us"
    inside = [event for event in events if event.get("ph") == "X" and event["tid"] == first["tid"] and event is not first
              and first["ts"] <= event["ts"] and event["ts"] + event["dur"] <= first["ts"] + first["dur"]]
    assert sum(row["count"] for row in shown.rows(".totals-box .table")) == len(inside) > 0


def test_a_click_selects_and_arrows_move(opened):
    _, shown = opened("threads")
    page = shown.go("timeline")
    page.locator(".timeline canvas[role=application]").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("main > .timeline").get_attribute("data-selected") == "work"
    page.keyboard.press("ArrowDown")
    assert page.locator("main > .timeline").get_attribute("data-selected") == "part"
    assert page.locator("dd[data-fact=Duration]").text_content() == "1.000us"
    page.keyboard.press("ArrowUp")
    assert page.locator("dd[data-fact=Duration]").text_content() == "5.000us"
    assert page.locator("dd[data-fact=Self]").text_content() == "4.000us"
    page.keyboard.press("Escape")
    assert page.locator("main > .timeline").get_attribute("data-selected") == ""
    lane = page.locator(".lane-name.spans").first
    box = page.locator(".timeline canvas[role=application]").bounding_box()
    top = lane.bounding_box()["y"] + 10
    for part in range(2, 98):  # some of the lane is a range
        page.mouse.click(box["x"] + box["width"] * part / 100, top)
        if page.locator("main > .timeline").get_attribute("data-selected"):
            break
    assert page.locator("main > .timeline").get_attribute("data-selected") == "work"


def test_a_part_of_the_time_is_added_up(opened):
    trace, shown = opened("threads")
    page = shown.go("timeline")
    box = page.locator(".timeline canvas[role=application]").bounding_box()
    page.mouse.move(box["x"] + 1, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 2, box["y"] + 60, steps=4)
    page.mouse.up()
    page.wait_for_selector(".totals-box")
    told = {row["key"]: row for row in read_json("report", trace, "--json")["rows"]}
    rows = {row["name"]: row for row in shown.rows(".totals-box .table")}
    for name in ("work", "part"):
        assert rows[name]["count"] == told[name]["count"]
        assert rows[name]["total_ns"] == round(told[name]["cpu_time_total"] * 1000)
        assert rows[name]["self_ns"] == round(told[name]["self_cpu_time_total"] * 1000)


def test_links_lead_from_calls_to_kernels_and_back(opened):
    _, shown = opened("gpu")
    page = shown.go("timeline")
    page.get_by_label("Search names").fill("cudaLaunchKernel")
    page.keyboard.press("Enter")
    page.wait_for_selector("button.link")
    kernel = page.locator("button.link").first.text_content()
    page.locator("button.link").first.click()
    wait_until(page, "name => document.querySelector('main > .timeline').dataset.selected === name", arg=kernel)
    assert "GPU" not in kernel and page.locator("dt", has_text="Launched by").count() == 1
    assert "stream" in page.locator("dd[data-fact=Where]").text_content()


def test_links_lead_from_forward_to_backward_operators(opened):
    trace, shown = opened("torch")
    flows = [event for event in read_json("export", trace, "--to", "chrome", "-o", "-")["traceEvents"] if event.get("cat") == "fwdbwd"]
    page = shown.go("timeline")
    page.get_by_label("Search names").fill("aten::addmm")
    page.keyboard.press("Enter")
    page.wait_for_selector("button.link")
    target = page.locator("button.link").first.text_content()
    assert flows and target == "AddmmBackward0"
    page.locator("button.link").first.click()
    wait_until(page, "name => document.querySelector('main > .timeline').dataset.selected === name", arg=target)
    page.locator("button.link", has_text="aten::addmm").first.click()
    wait_until(page, "document.querySelector('main > .timeline').dataset.selected === 'aten::addmm'")


def test_a_collective_is_joined_with_that_of_the_other_ranks(opened):
    """Rank 2 computes for longer: the others say how long they wait for it; rank 1 calls first. A line leads through all of their lanes."""
    trace, shown = opened("job", "121")
    assert "The others wait" in shown.go("summary").locator(".advice li[data-name=straggler]").text_content()
    page = shown.go("timeline")
    before = picture(page)["lines"]
    page.get_by_label("Search names").fill("c10d::allreduce_")
    page.keyboard.press("Enter")
    page.wait_for_selector("button.link")
    page.get_by_label("Search names").fill("")
    wait_until(page, "!document.querySelector('.timeline .count').textContent.includes('match')")
    titles = page.locator("dt:has(+ dd button.link)").all_text_contents()
    assert [title.split(",")[0] for title in titles] == ["rank 0", "rank 2", "rank 3"] and titles[1] == "rank 2, last"
    waits = read_json("report", trace, "--view", "ranks", "--group-by", "step", "--json")["rows"]
    assert titles[0] == f"rank 0, waits {waits[0]['wait_ns'] / 1000:.3f}us"
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    changed = [sum(a != b for a, b in zip(*lines)) for lines in zip(before, picture(page)["lines"])]
    drawn = [y for y, count in enumerate(changed) if count]
    assert sum(count > 0 for count in changed[drawn[0]:drawn[-1]]) > 0.95 * (drawn[-1] - drawn[0]) > 100
    page.locator("button.link").nth(1).click()
    wait_until(page, "document.querySelector('.facts').textContent.includes('rank 1')")
    titles = page.locator("dt:has(+ dd button.link)").all_text_contents()
    assert [title.split(",")[0] for title in titles] == ["rank 0", "rank 1", "rank 3"]
    page.get_by_label("Search names").fill("gloo:all_reduce")  # the work of another thread likewise
    page.keyboard.press("Enter")
    wait_until(page, "document.querySelector('main > .timeline').dataset.selected === 'gloo:all_reduce'")
    assert page.locator("button.link", has_text="gloo:all_reduce").count() == 3


def test_lanes_of_processes_steps_streams_and_counters(opened):
    names = []
    for case in ("gpu", "steps", "counters", "two_processes"):
        _, shown = opened(case)
        names.append(shown.go("timeline").locator(".lane-name .title").all_text_contents())
    gpu, steps, counters, processes = names
    assert any("stream" in name for name in gpu)
    assert "Steps" in steps
    assert {"loss", "rate"} <= set(counters)
    assert len([name for name in processes if re.search(r" \d+$", name)]) >= 2


def test_the_memory_of_a_device_is_one_lane_in_bytes(opened):
    trace, shown = opened("gpu_memory")
    page = shown.go("timeline")
    names = page.locator(".lane-name.counter .title").all_text_contents()
    assert names == ["Memory of cuda:0", "Memory"]
    device = next(one for one in read_json("report", trace, "--view", "memory", "--json")["totals"]["devices"] if one["device"] == "cuda:0")
    facts = [json.loads(text) for text in page.locator(".lane-name.counter").evaluate_all("all => all.map(one => one.dataset.series)")]
    assert facts[0] == {"unit": "bytes", "most": device["peak_bytes"], "reserved": device["reserved_peak_bytes"]}
    assert facts[1]["unit"] == "bytes" and "reserved" not in facts[1]


def test_counters_of_bytes_have_their_unit(opened):
    _, shown = opened("python")
    page = shown.go("timeline")
    units = dict(page.locator(".lane-name.counter").evaluate_all("all => all.map(one => [one.querySelector('.title').textContent, JSON.parse(one.dataset.series).unit])"))
    assert units["process.rss"] == "bytes"
    _, shown = opened("counters")
    page = shown.go("timeline")
    units = dict(page.locator(".lane-name.counter").evaluate_all("all => all.map(one => [one.querySelector('.title').textContent, JSON.parse(one.dataset.series).unit])"))
    assert units["loss"] == "count"


@pytest.mark.parametrize("case, expected", [
    (("diff", "0"), ["Others"]),  # "conv", "linear", "norm", "loss": ranges of a program that is no torch program
    (("gpu_memory",), ["Backward", "Matrix products, convolutions", "Calls of CUDA"]),
    (("gpu",), ["Matrix products, convolutions", "Data movement", "Calls of CUDA", "Kernels", "Others"]),
    (("python_trace",), ["Python functions", "Others"]),
])
def test_colours_are_of_what_a_range_is_not_of_its_name(opened, case, expected):
    _, shown = opened(*case)
    page = shown.go("timeline")
    assert page.locator(".legend span").all_text_contents() == expected


def test_the_name_of_a_python_function_comes_first_on_its_span(opened):
    """Its text is FILE(LINE): NAME, as torch.profiler has it, of which little room would show the path alone."""
    trace, shown = opened("python_trace")
    page = shown.go("timeline")
    labels = page.locator("main > .timeline").get_attribute("data-labels").split("\n")
    names = [event["name"] for event in read_json("export", trace, "--to", "chrome", "-o", "-")["traceEvents"] if event.get("cat") == "python_function"]
    functions = {re.sub(r".*\(\d+\): ", "", name) for name in names}
    assert any(re.search(r"\(\d+\): ", name) for name in names)
    mine = [label for label in labels if "  " in label]
    assert mine and all(label.split("  ")[0] in functions for label in mine)
    assert not [label for label in labels if re.search(r"\.py\(", label)]


@pytest.mark.parametrize("width", [700, 1001, 1280])
def test_no_label_of_the_axis_is_cut(browser, page_traces, width):
    _, path = page_traces("gpu_memory")
    from page_tools import Opened
    shown = Opened(browser, path, size=(width, 700))
    page = shown.go("timeline")
    room = page.locator(".timeline .ruler").bounding_box()["width"]
    places = json.loads(page.locator(".timeline .ruler").get_attribute("data-labels"))
    assert len(places) > 1 and all(0 <= left < right <= room for left, right in places)
    assert all(a[1] < b[0] for a, b in zip(places, places[1:]))
    shown.close()


# ---- pixels

# Zooms around a point and moves, by events of the wheel whose sum is the same however many frames are drawn between them.
WHEEL = """async ([zoom, moves, each]) => {
    const canvas = document.querySelector('.timeline canvas[role=application]'), box = canvas.getBoundingClientRect();
    const frame = () => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
    const wheel = more => canvas.dispatchEvent(new WheelEvent('wheel', {clientX: box.left + 300, clientY: box.top + 9, cancelable: true, ...more}));
    wheel({ctrlKey: true, deltaY: zoom});
    for (const by of moves) { if (each) await frame(); wheel({deltaX: by}); }
    await frame();
}"""
MOVES = [37, 411, -120, 5, 64, 250, -33.5, 8]


def picture(page):
    """What the canvas shows: the window in ns, the lanes of spans (text, top), and the pixels, a list for each line."""
    return json.loads(page.evaluate("""() => {
        const canvas = document.querySelector('.timeline canvas[role=application]'), {from, to} = canvas.closest('.timeline').dataset;
        // Of a copy: a canvas that is read more than once says so on the console.
        const copy = Object.assign(document.createElement('canvas'), {width: canvas.width, height: canvas.height}).getContext('2d');
        copy.drawImage(canvas, 0, 0);
        const {data} = copy.getImageData(0, 0, canvas.width, canvas.height);
        const pixels = new Uint32Array(data.buffer), lines = [];
        for (let y = 0; y < canvas.height; y++) lines.push([...pixels.subarray(y * canvas.width, (y + 1) * canvas.width)]);
        const lanes = [...document.querySelectorAll('.lane-name.spans')].map(lane => [lane.textContent, lane.parentElement.offsetTop]);
        return JSON.stringify({window: [Number(from), Number(to)], lanes, lines}); }"""))


@pytest.mark.parametrize("case, more, zoom", [("torch", [], -900), ("large", ["100000"], -700), ("counters", [], -500)])
def test_a_picture_that_was_moved_is_that_of_a_fresh_page(opened, case, more, zoom):
    _, moved = opened(case, *more)
    moved.go("timeline").evaluate(WHEEL, [zoom, MOVES, True])
    _, fresh = opened(case, *more)
    fresh.go("timeline").evaluate(WHEEL, [zoom, MOVES, False])
    assert picture(moved.page) == picture(fresh.page)


def outermost(events, tid):
    """Ranges of the thread that lie in no other of it, as (from, to) in ns."""
    mine = sorted((event["ts"], -event["dur"]) for event in events if event.get("ph") == "X" and event["tid"] == tid)
    spans, end = [], -1
    for at, dur in mine:
        if at >= end:
            spans.append((at * 1000, (at - dur) * 1000))
            end = at - dur
    return spans


def columns(spans, window, width):
    """Columns that a range must colour, and those that none may."""
    scale = width / (window[1] - window[0])
    full, touched = set(), set()
    for start, end in spans:
        left, right = (start - window[0]) * scale, (end - window[0]) * scale
        if right < 0 or left >= width:
            continue
        # Of a range as wide as a pixel or wider, the first and last columns are mixed with what is beside them.
        full.update(range(math.ceil(left), math.floor(right) - 1) if right - left >= 1.01 else [math.floor(left)] if right - left < 0.99 else [])
        touched.update(range(math.floor(left) - 1, math.ceil(right) + 1))
    return {x for x in full if 0 <= x < width}, set(range(width)) - touched


@pytest.mark.parametrize("case, more, zoom", [("threads", [], 0), ("torch", [], -900), ("large", ["100000"], 0), ("large", ["100000"], -4000)])
def test_pixels_are_coloured_where_the_trace_has_ranges(opened, case, more, zoom):
    trace, shown = opened(case, *more)
    shown.go("timeline").evaluate(WHEEL, [zoom, MOVES if zoom else [], True])
    drawn = picture(shown.page)
    events = read_json("export", trace, "--to", "chrome", "-o", "-")["traceEvents"]
    name, top = drawn["lanes"][0]
    tid = int(re.search(r"(\d+)$", name).group(1))
    line = drawn["lines"][top + 3 + 15]  # of the first row, below its texts
    ground = set(drawn["lines"][-1])  # below all lanes: the background, and the lines of the grid
    coloured, empty = columns(outermost(events, tid), drawn["window"], len(line))
    assert coloured and [x for x in coloured if line[x] in ground] == []
    assert [x for x in empty if line[x] not in ground] == []


def test_what_a_search_does_not_match_is_pale_and_the_selection_has_an_outline(opened):
    _, shown = opened("threads")
    page = shown.go("timeline")
    before = picture(page)
    page.get_by_label("Search names").fill("part")
    wait_until(page, "document.querySelector('.timeline .count').textContent.includes('match')")
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    searched = picture(page)
    page.get_by_label("Search names").fill("")
    page.locator(".timeline canvas[role=application]").focus()
    page.keyboard.press("ArrowRight")
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    selected = picture(page)

    def amount(pixel):  # how far from white: the colours of spans are light
        return sum(255 - (pixel >> shift & 255) for shift in (0, 8, 16))
    y = before["lanes"][0][1] + 3
    changed = [x for x, (a, b) in enumerate(zip(before["lines"][y + 15], searched["lines"][y + 15])) if a != b]
    assert changed and all(amount(searched["lines"][y + 15][x]) < amount(before["lines"][y + 15][x]) for x in changed)
    # The row below has what is searched: "part".
    assert before["lines"][y + 18 + 15] == searched["lines"][y + 18 + 15] != before["lines"][-1]
    assert any(a != b for a, b in zip(before["lines"][y + 1], selected["lines"][y + 1]))


# ---- the whole at a glance; which lanes are shown

def lanes(page):
    return page.get_attribute("main > .timeline", "data-lanes").split("\n")


def test_the_overview_has_all_time_and_marks_what_is_seen(opened):
    trace, shown = opened("gpu")
    page = shown.go("timeline")
    wait_until(page, "document.querySelector('.overview').dataset.to > 0")
    busy = sum(row["busy_ns"] for row in read_json("report", trace, "--view", "threads", "--json")["rows"])
    work = sum(row["total_ns"] for row in read_json("report", trace, "--view", "kernels", "--json")["rows"])
    told = page.evaluate("({...document.querySelector('.overview').dataset})")
    assert (int(told["activity"]), int(told["gpu"])) == (busy, work)
    assert page.locator(".overview-names span").all_text_contents() == ["Activity", "GPU busy"]
    box = page.locator(".overview canvas").bounding_box()
    whole = [float(page.get_attribute("main > .timeline", name)) for name in ("data-from", "data-to")]
    page.mouse.move(box["x"] + box["width"] / 4, box["y"] + 10)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 10)
    page.mouse.up()
    wait_until(page, "most => document.querySelector('main > .timeline').dataset.to < most", whole[1])
    seen = [float(page.get_attribute("main > .timeline", name)) for name in ("data-from", "data-to")]
    length = whole[1] - whole[0]
    assert abs(seen[0] - whole[0] - length / 4) < length / 100 and abs(seen[1] - whole[0] - length / 2) < length / 100
    wait_until(page, "left => Math.abs(document.querySelector('.overview').dataset.from - left) < 3", box["width"] / 4)


def test_lanes_are_pinned_hidden_sorted_and_filtered(opened):
    trace, shown = opened("job", "40")
    page = shown.go("timeline")
    first = lanes(page)
    page.get_by_label("Filter lanes").fill(first[0])  # the first process's name
    wait_until(page, "n => document.querySelector('main > .timeline').dataset.lanes.split('\\n').length < n", len(first))
    page.get_by_label("Filter lanes").fill("")
    wait_until(page, "n => document.querySelector('main > .timeline').dataset.lanes.split('\\n').length === n", len(first))
    row = page.locator(".lane-row", has=page.locator(".lane-name.spans")).last
    name = row.locator(".title").text_content()
    row.hover()
    row.get_by_title("Keep this lane on top").click()
    wait_until(page, "name => document.querySelector('main > .timeline').dataset.lanes.split('\\n')[0] === name", name)
    assert page.locator(".pins .lane-row").count() == 1 and sorted(lanes(page)) == sorted(first)
    row = page.locator(".names .lane-row", has=page.locator(".lane-name.spans")).first
    row.hover()
    row.get_by_title("Hide this lane").click()
    wait_until(page, "n => document.querySelector('main > .timeline').dataset.lanes.split('\\n').length === n", len(first) - 1)
    wait_until(page, "location.hash.includes('pinned=') && location.hash.includes('hidden=')")
    page.get_by_text("Show 1 hidden lane").click()
    wait_until(page, "n => document.querySelector('main > .timeline').dataset.lanes.split('\\n').length === n", len(first))


def test_the_busiest_lanes_come_first(opened):
    trace, shown = opened("threads")
    page = shown.go("timeline")
    page.locator(".timeline .tools select").select_option("time")
    wait_until(page, "location.hash.includes('order=time')")
    told = {str(row["thread"]): row["busy_ns"] for row in read_json("report", trace, "--view", "threads", "--json")["rows"]}
    times = [told[tid] for tid in page.locator(".lane-name.spans .detail").all_text_contents()]
    assert len(times) == 4 and times == sorted(times, reverse=True)


def test_a_hundred_threads_have_a_row_each(browser, tmp_path):
    """And sixty-four processes: what a person sees first fits into a few screens, and opens by a click."""
    events = [{"ph": "X", "name": name, "pid": 1, "tid": thread, "ts": 10 * depth, "dur": 100 - 20 * depth}
              for thread in range(100) for depth, name in enumerate(("outer", "inner", "innermost"))]
    (tmp_path / "threads.json").write_text(json.dumps({"traceEvents": events}))
    events = [{"ph": "X", "name": "step", "pid": rank, "tid": thread, "ts": 0, "dur": 100} for rank in range(64) for thread in range(4)]
    (tmp_path / "ranks.json").write_text(json.dumps({"traceEvents": events}))
    from page_tools import Opened
    for name, least in (("threads", 101), ("ranks", 64)):
        read("export", tmp_path / f"{name}.json", "--to", "html", "-o", tmp_path / f"{name}.html")
        shown = Opened(browser, tmp_path / f"{name}.html")
        page = shown.go("timeline")
        assert page.locator(".lane-row").count() >= least
        assert page.locator(".timeline .content").bounding_box()["height"] < 3000
        page.locator(".lane-name[aria-expanded=false]").first.click()
        assert page.locator(".lane-name[aria-expanded=true]").count() >= 2
        shown.close()
