# SPDX-License-Identifier: Apache-2.0
"""The page of every kind of trace, in a real browser: nothing that it offers is empty, nothing took no time, and every
number of its tables and of its first screen is that of `sonde report --json`. Recorded traces, as far as the corpus has them.
"""
import collections
import gzip
import re
import shutil
import subprocess
import sys

import pytest

from cli_tools import ROOT, generate, needs_tools, read, read_json, sonde
from page_tools import Opened, needs_page

pytestmark = [needs_tools, needs_page]
CORPUS = ROOT / "tests/data/corpus"

HEAP_C = """#include <stdlib.h>
#include <string.h>
static void *hold(size_t n) { void *p = malloc(n); memset(p, 1, n); return p; }
int main(void)
{
    void *kept = hold(3 << 20);
    for (int i = 0; i < 100; i++)
        free(hold(1000));
    free(kept);
    return 0;
}
"""
HEAP_PYTHON = """import json
def text_of(n):
    return json.dumps(list(range(n)))
kept = [text_of(100_000) for _ in range(3)]
"""


def unpack(name, folder):
    """A trace of the corpus as a file, or a folder of such."""
    for packed, single in ((CORPUS / f"{name}.trace.gz", True), (CORPUS / f"{name}.trace", False)):
        if not packed.exists():
            continue
        if single:
            (folder / f"{name}.sonde").write_bytes(gzip.decompress(packed.read_bytes()))
            return folder / f"{name}.sonde"
        for one in packed.iterdir():
            (folder / name).mkdir(exist_ok=True)
            (folder / name / one.name[:-3]).write_bytes(gzip.decompress(one.read_bytes()))
        return folder / name
    raise AssertionError(name)


def record_heap(folder, program):
    trace = folder / "heap.sonde"
    done = sonde("run", "-q", "--heap", "-o", trace, "--", *program)
    assert done.returncode == 0, done.stderr
    return trace


def heap_of_c(folder):
    (folder / "held.c").write_text(HEAP_C)
    subprocess.run(["cc", "-g", "-O0", folder / "held.c", "-o", folder / "held"], check=True)
    return record_heap(folder, [folder / "held"])


def heap_of_python(folder):
    (folder / "held.py").write_text(HEAP_PYTHON)
    return record_heap(folder, [sys.executable, folder / "held.py"])


KINDS = {  # what makes it
    "C": lambda folder: unpack("ranges", folder),
    "several processes": lambda folder: unpack("processes", folder),
    "operators": lambda folder: unpack("module_calls", folder),
    "GPU": lambda folder: shutil.copy(ROOT / "tests/data/cuda/train.sonde", folder / "gpu.sonde"),
    "samples of Python": lambda folder: unpack("sample_runs", folder),
    "samples of native code": lambda folder: unpack("native", folder),
    "heap of C": heap_of_c,
    "heap of Python": heap_of_python,
    "functions": lambda folder: unpack("functions", folder),
    "lines": lambda folder: unpack("line_facts", folder),
    "layers": lambda folder: unpack("layer_facts", folder),
    "a model": lambda folder: unpack("model_facts", folder),
    "ranks": lambda folder: generate("job", folder / "job", "2"),
}
# What draws on a canvas; the others are of the document itself.
DRAWN = ("timeline", "flame", "memory", "heap")


def colours(page):
    """How many differ in the largest canvas of the part."""
    return page.eval_on_selector_all("main canvas", """all => { const one = all.sort((a, b) => b.width * b.height - a.width * a.height)[0];
        if (!one || !one.width || !one.height) return 0;
        const copy = Object.assign(document.createElement('canvas'), {width: one.width, height: one.height}).getContext('2d');
        copy.drawImage(one, 0, 0);
        return new Set(new Uint32Array(copy.getImageData(0, 0, one.width, one.height).data.buffer)).size; }""")


def check_part(shown, part):
    page = shown.go(part)
    assert page.locator("main").inner_text().strip(), part
    assert page.locator("main > section > .empty").count() == 0, part
    if part.partition("/")[0] in DRAWN:
        page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert colours(page) > 3, part  # more than its background and its lines
    if part == "roofline":
        assert page.locator("main svg circle").count() > 0


def check_table(trace, shown, view):
    page = shown.go(f"table/{view}")
    if page.locator("main .check input").count():
        page.locator("main .check input").check()
    sort = ("--sort", "self_cpu_time_total") if view == "ops" else ()
    told = read_json("report", trace, "--view", view, "--json", "--rows", "-1", *sort)
    totals = dict(page.eval_on_selector_all("main > .view .totals dd", "all => all.map(one => [one.dataset.key, JSON.parse(one.dataset.value)])"))
    assert totals == {key: told["totals"][key] for key in totals}, view
    if page.locator("main .rows").count() == 0:
        return len(totals)
    rows = shown.rows()
    assert page.locator("main .count").first.text_content().split()[0] == str(len(told["rows"])), view
    assert all(mine and mine.items() <= theirs.items() for mine, theirs in zip(rows, told["rows"])), view
    assert rows or told["rows"] == [], view
    return len(rows)


def told_bars(trace, view):
    """By the first screen's list: the numbers that its bars must have, greatest first."""
    def rows(name):
        return read_json("report", trace, "--view", name, "--json", "--rows", "-1")["rows"]
    if view == "lines":  # functions that share a line are one bar
        sums = collections.Counter()
        for number, row in enumerate(rows("lines")):
            sums[(row["file"], row["line"]) if row["line"] else number] += row["self_ns"]
        return sorted(sums.values(), reverse=True)
    name, key = {"summary": ("summary", "self_ns"), "functions": ("functions", "self_ns"), "counted": ("functions", "self_ns"),
                 "heap-functions": ("heap-functions", "peak_bytes"), "layers": ("layers", "time_ns")}[view]
    return sorted((row[key] for row in rows(name)), reverse=True)


def check_first_screen(trace, shown):
    page = shown.go("summary")
    told = read_json("report", trace, "--view", "summary", "--json")["totals"]
    totals = dict(page.eval_on_selector_all(".summary .totals dd", "all => all.map(one => [one.dataset.key, JSON.parse(one.dataset.value)])"))
    assert totals == {key: told[key] for key in totals}
    assert told["span_ns"] > 0 and int(page.locator(".summary p.about").get_attribute("data-span")) == told["span_ns"]
    sections = page.eval_on_selector_all(".summary > section", "all => all.map(one => [one.querySelector('h2').textContent, one.children.length])")
    assert sections and all(parts > 1 for _, parts in sections)
    title = page.locator("#summary-title").text_content()
    assert page.locator("#program").text_content() == title and page.title() == f"{title} – sonde"
    assert page.locator(".summary .empty").count() == 0
    assert not re.search(r"\b0\.00[01]us\b|\b0\.00%|\b0 blocks|:0\b(?!\d)", page.locator("main").inner_text().partition("What ran")[0])
    for view in page.eval_on_selector_all(".bars", "all => all.map(one => one.dataset.view)"):
        bars = page.eval_on_selector_all(f".bars[data-view={view}] li", "all => all.map(one => Number(one.dataset.self))")
        assert bars == told_bars(trace, view)[:len(bars)] and bars[-1] > 0, view
    assert [row["text"] for row in told["advice"]] == page.locator(".advice a").all_text_contents()
    # A place that the sentence has is not said twice.
    assert [row["place"] for row in told["advice"] if row["place"] and row["place"] not in row["text"]] == \
        page.locator(".advice .place code").all_text_contents()


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_trace_has_a_page_without_holes(browser, tmp_path, kind):
    if kind == "heap of C" and not shutil.which("cc"):
        pytest.skip("needs a C compiler")
    trace, page = KINDS[kind](tmp_path), tmp_path / "page.html"
    read("export", trace, "--to", "html", "-o", page)
    shown = Opened(browser, page)
    check_first_screen(trace, shown)
    links = shown.page.eval_on_selector_all("nav > a", "all => all.map(one => one.getAttribute('href').slice(1))")
    assert len(links) == len(set(links)) > 3
    compared = 0
    for link in links:
        if link.startswith("table/"):
            compared += check_table(trace, shown, link[6:])
        elif link not in ("summary", "matches"):
            check_part(shown, link)
    assert compared > 0
    # A telephone: nothing of the first screen is wider than it.
    shown.page.set_viewport_size({"width": 390, "height": 800})
    shown.go("summary")
    assert shown.page.eval_on_selector("main", "main => main.scrollWidth - main.clientWidth") <= 0
    shown.close()
