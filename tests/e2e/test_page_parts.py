# SPDX-License-Identifier: Apache-2.0
"""Parts of the report page that show one view each, in a real browser: the model's tree, source lines, the roofline. Their
numbers are compared with `sonde report --json`.
"""
import base64
import gzip
import json
import re

import pytest

from cli_tools import generate, needs_tools, read_json, sonde
from page_tools import Opened, contrast_faults, needs_page, unnamed_controls

pytestmark = [needs_tools, needs_page]


def told(trace, view):
    return read_json("report", trace, "--view", view, "--json", "--rows", "-1")


# ---- model

def tree_rows(page):
    return page.eval_on_selector_all(".treegrid .tr[aria-level]", """rows => rows.map(row => ({name: row.dataset.name,
        level: Number(row.getAttribute('aria-level')), open: row.getAttribute('aria-expanded'),
        ...Object.fromEntries([...row.querySelectorAll('[data-key]')].map(cell => [cell.dataset.key, JSON.parse(cell.dataset.value)]))}))""")


def test_model_tree_has_the_shares_of_json(opened):
    trace, shown = opened("torch")
    page = shown.go("model")
    page.get_by_role("button", name="Open all").click()
    rows, modules = tree_rows(page), told(trace, "modules")["rows"]
    assert [row["level"] for row in rows] == [max(1, module["depth"]) for module in modules]
    for key in ("time_percent", "activation_percent", "parameters_percent", "flops_percent"):
        assert [row[key] for row in rows] == [module[key] for module in modules]
    assert rows[0]["name"] == "Net" and rows[1]["name"] == "features" and rows[2]["name"] == "0"


def test_model_tree_opens_and_closes_by_keys(opened):
    _, shown = opened("torch")
    page = shown.go("model")
    page.get_by_role("button", name="Close all").click()
    assert [row["level"] for row in tree_rows(page)] == [1, 1]
    page.locator(".treegrid").focus()
    page.keyboard.press("ArrowRight")
    assert [row["name"] for row in tree_rows(page)][:3] == ["Net", "features", "fc"]
    page.keyboard.press("ArrowDown")
    assert page.locator(".treegrid .focused").get_attribute("data-name") == "features"
    page.keyboard.press("Enter")
    assert [row["name"] for row in tree_rows(page)][:4] == ["Net", "features", "0", "1"]
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert page.locator(".treegrid .focused").get_attribute("data-name") == "Net"


def test_layers_are_a_model_too(opened):
    trace, shown = opened("layers")
    page = shown.go("model")
    layers = told(trace, "layers")["rows"]
    assert [(row["name"], row["time_percent"]) for row in tree_rows(page)] == [(row["name"], row["time_percent"]) for row in layers]


# ---- source

@pytest.mark.parametrize("case", ["python", "tensor_lines", "samples"])
def test_source_lines_have_their_numbers_in_the_margin(opened, case):
    trace, shown = opened(case)
    page = shown.go("source")
    rows, compared = told(trace, "source")["rows"], 0
    for number, file in enumerate(dict.fromkeys(row["file"] for row in rows)):
        page.get_by_label("File").select_option(str(number))
        assert page.locator("main > .source").get_attribute("data-file") == file
        mine = [row for row in rows if row["file"] == file]
        lines = shown.rows()
        assert [line["source"] for line in lines] == [row["source"] for row in mine]
        for line, row in zip(lines, mine):
            assert {key: row[key] for key in line} == line
            compared += sum(value is not None for value in line.values())
    assert compared > 2


def test_source_is_the_text_as_it_was_with_times_hits_and_bytes(opened):
    trace, shown = opened("python")
    shown.go("source")
    assert shown.texts("source")[1] == "    if n < 2:" and shown.texts("hits")[1] == "1234567890"
    lines = told(trace, "lines")["rows"]
    memory = {row["line"]: row["increment_bytes"] for row in told(trace, "line-memory")["rows"]}
    for row in shown.rows():
        counted = [line for line in lines if line["line"] == row["line"]]
        assert (row["hits"], row["time_ns"]) == ((counted[0]["hits"], counted[0]["time_ns"]) if counted else (None, None))
        assert row["added_bytes"] == memory.get(row["line"])


def test_source_that_is_not_there_is_said_to_be_missing(opened):
    _, shown = opened("samples")
    page = shown.go("source")
    assert "is not here" in page.locator(".source .hint").first.text_content()


SECRET = "-----BEGIN PRIVATE KEY----- MIIEvQ"
SHOWN = {"program.py": "def steal(): return 'mine'", "script": "#!/usr/bin/env python3"}  # what may be shown


@pytest.fixture(scope="module")
def private(tmp_path_factory):
    """A trace made by somebody else that names files of whoever exports it: each has its text in its first line."""
    place = tmp_path_factory.mktemp("private")
    generate("private_files", place / "theirs.sonde")
    (place / "secret.key").write_text(SECRET + "\n", encoding="utf-8")
    (place / "link.py").symlink_to(place / "secret.key")
    (place / "binary.py").write_bytes(SECRET.encode() + b"\0\n")
    for name, line in SHOWN.items():
        (place / name).write_text(line + "\n", encoding="utf-8")
    return place


def exported(place, *more):
    """All sections of the page that is exported there, as bytes."""
    done = sonde("export", "theirs.sonde", "--to", "html", "-o", "out.html", *more, cwd=place)
    assert done.returncode == 0, done.stderr
    return data_of(place)


def data_of(place):
    text = (place / "out.html").read_text(encoding="utf-8")
    data = base64.b64decode(re.search(r'<script[^>]*application/x-sonde[^>]*>([^<]*)</script>', text).group(1))
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def test_a_trace_cannot_have_a_private_file_put_into_the_page(private):
    data = exported(private)
    assert b"/etc/passwd" in data  # by its name alone
    assert SECRET[5:20].encode() not in data and b"root:x:0" not in data and b"PATH=" not in data
    for line in SHOWN.values():
        assert json.dumps(line)[1:-1].encode() in data


def test_views_do_not_show_private_files(private):
    for view in ("source", "lines", "line-memory"):
        for form in ((), ("--json",), ("--csv",)):
            done = sonde("report", "theirs.sonde", "--view", view, "--rows", "-1", *form, cwd=private)
            assert done.returncode == 0 and b"secret.key" in done.stdout, done.stderr
            assert SECRET.encode() not in done.stdout and b"root:x:0" not in done.stdout
            assert SHOWN["program.py"].encode() in done.stdout
    text = sonde("report", "theirs.sonde", "--view", "lines", cwd=private).stdout.decode()
    assert "secret.key\nFunction: steal at line 1\nThe file cannot be read, or is not source code: its lines are not shown.\n" in text


def test_no_source_leaves_all_of_it_out(private, browser):
    data = exported(private, "--no-source")
    assert not [line for line in SHOWN.values() if json.dumps(line)[1:-1].encode() in data]
    shown = Opened(browser, private / "out.html")
    page = shown.go("table/lines")
    assert len(shown.rows()) == 7 and all("source" not in row for row in shown.rows())
    assert page.locator("nav a", has_text="Source").count() == 1  # among what is empty, with the reason
    shown.go("table/source")
    assert "Left out by --no-source." in page.locator("main").text_content()
    shown.close()
    done = sonde("export", "theirs.sonde", "--to", "chrome", "--no-source", cwd=private)
    assert done.returncode == 2 and b"--no-source requires --to html, got 'chrome'" in done.stderr


def test_no_source_of_a_diff(private):
    for more, is_there in ((), True), (("--no-source",), False):
        done = sonde("diff", "--by", "lines", "theirs.sonde", "theirs.sonde", "--html", "out.html", *more, cwd=private)
        assert done.returncode == 0, done.stderr
        data = data_of(private)
        assert [json.dumps(line)[1:-1].encode() in data for line in SHOWN.values()] == [is_there] * len(SHOWN)
    done = sonde("diff", "theirs.sonde", "theirs.sonde", "--no-source", cwd=private)
    assert done.returncode == 2 and b"--no-source requires --html" in done.stderr


def test_source_is_left_out_from_python(private, monkeypatch):
    core = pytest.importorskip("sonde._core", reason="sonde is not installed in this Python: run `make`")
    monkeypatch.chdir(private)
    sizes = []
    for source in (True, False):
        with core.Trace("theirs.sonde") as trace:
            trace.export("python.html", to="html", source=source)
        sizes.append((private / "python.html").stat().st_size)
    assert sizes[1] < sizes[0]


# ---- roofline

def points(page):
    return {point["name"]: point for point in page.eval_on_selector_all(".roofline circle", """all => all.map(one => ({
        name: one.dataset.name, x: Number(one.dataset.x), y: Number(one.dataset.y), cx: Number(one.getAttribute('cx')),
        cy: Number(one.getAttribute('cy')), label: one.getAttribute('aria-label')}))""")}


def test_roofline_has_every_operator_as_a_point(opened):
    trace, shown = opened("roofline")
    view = told(trace, "roofline")
    page = shown.go("roofline")
    shown_points = points(page)
    assert {name: (one["x"], one["y"]) for name, one in shown_points.items()} == {
        row["name"]: (row["intensity"], row["gflops_per_second"]) for row in view["rows"]}
    assert [(row["name"], row["roof_percent"], row["bound"]) for row in shown.rows()] == [
        (row["name"], row["roof_percent"], row["bound"]) for row in view["rows"]]
    # Log-log: equal factors are equal distances, more to the right and up.
    mm, relu = shown_points["aten::mm"], shown_points["aten::relu"]
    assert mm["cx"] > relu["cx"] and mm["cy"] < relu["cy"]
    roof = page.locator(".roofline .roof")
    assert float(roof.get_attribute("data-ridge")) == view["totals"]["ridge"] == 5
    # Each point lies below the roof, by as much as its share of it says.
    (x0, y0), (x1, y1), (x2, y2) = [tuple(map(float, pair.split(","))) for pair in roof.get_attribute("points").split()]
    assert y1 == y2 and x0 < x1 < x2
    for one in shown_points.values():
        top = y1 if one["cx"] >= x1 else y0 + (y1 - y0) * (one["cx"] - x0) / (x1 - x0)
        assert one["cy"] > top
    assert "53.33% of the roof, bound by compute" in mm["label"]


def test_roofline_is_used_by_keys_and_names_are_text(opened):
    _, shown = opened("roofline")
    page = shown.go("roofline")
    page.locator(".roofline circle").nth(2).focus()
    assert page.locator(".roofline .details-line").text_content().startswith("<img src=x onerror=fail()>: ")
    assert page.locator("main img").count() == 0
    page.locator(".roofline .body .tr", has_text="aten::relu").click()
    assert page.locator(".roofline .details-line").text_content().startswith("aten::relu: 2 GFLOPS at 0.13 FLOPs a byte")


def test_roofline_without_a_roof_says_how_to_get_it(opened):
    trace, shown = opened("torch")
    page = shown.go("roofline")
    assert len(points(page)) == len(told(trace, "roofline")["rows"]) > 5
    assert page.locator(".roofline .roof").count() == 0
    assert "sonde run --roof" in page.locator(".roofline .no-roof").text_content()


# ---- for everybody

@pytest.mark.parametrize("dark", [False, True])
def test_parts_have_contrast_and_names(opened, dark):
    for case, part in (("torch", "model"), ("python", "source"), ("roofline", "roofline")):
        _, shown = opened(case, dark=dark)
        page = shown.go(part)
        assert contrast_faults(page) == [] and unnamed_controls(page) == []


def test_parts_are_printed(opened):
    for case, part, text in (("torch", "model", "features"), ("python", "source", "if n < 2:"), ("roofline", "roofline", "aten::mm")):
        _, shown = opened(case)
        page = shown.go(part)
        page.emulate_media(media="print")
        assert re.search(re.escape(text), page.locator("main").inner_text()) and not page.locator("nav").is_visible()
