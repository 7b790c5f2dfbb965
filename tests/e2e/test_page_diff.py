# SPDX-License-Identifier: Apache-2.0
"""Two traces on the report page (`sonde diff A B --html`, `sonde view A B`): the table of what changed and the flame graph
coloured by change, in a real browser, against `sonde diff --json` and the trees of both traces.
"""
import re

import pytest

from cli_tools import generate, needs_tools, read, read_json, sonde
from page_tools import Opened, contrast_faults, needs_page, unnamed_controls

pytestmark = [needs_tools, needs_page]


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """A, and B where conv is 5 % slower, relu was renamed, pool is gone and extra is new; their page."""
    folder = tmp_path_factory.mktemp("diff")
    a, b, page = generate("diff", folder / "a.sonde", "0"), generate("diff", folder / "b.sonde", "1031"), folder / "d.html"
    read("diff", a, b, "--html", page)
    return a, b, page


@pytest.fixture
def shown(browser, compared):
    page = Opened(browser, compared[2])
    yield page
    page.close()


def frame(shown, name):
    """Selects the frame of a name by keys; the facts that are shown of it."""
    page = shown.page
    page.locator(".flamegraph canvas").focus()
    for _ in range(20):
        page.keyboard.press("ArrowRight")
        if page.locator("main > .flamegraph").get_attribute("data-selected") == name:
            return dict(page.eval_on_selector_all(".details dd", "all => all.map(one => [one.dataset.fact, one.textContent])"))
    raise AssertionError(f"no frame of {name}")


def microseconds(text):
    number, unit = re.match(r"([\d.]+)(us|ms|s)", text).groups()
    return float(number) * {"us": 1, "ms": 1e3, "s": 1e6}[unit]


def totals(trace):
    return {row["name"]: row["total_ns"] for row in read_json("report", trace, "--view", "tree", "--json", "--rows", "-1")["rows"] if row["depth"] == 1}


def test_the_table_has_the_rows_of_sonde_diff(shown, compared):
    told = read_json("diff", compared[0], compared[1], "--json", "--rows", "-1")
    page = shown.go("table/diff")
    page.locator("main .check input").check()
    rows = shown.rows()
    assert len(rows) == len(told["rows"]) > 5
    for mine, theirs in zip(rows, told["rows"]):
        assert {key: theirs[key] for key in mine} == mine


def test_the_first_screen_says_what_changed(shown, compared):
    """Before all that is said of B: the whole, how many rows there are of each verdict, the rows that are slower or faster."""
    told = read_json("diff", compared[0], compared[1], "--json", "--rows", "-1")
    page = shown.go("summary")
    assert page.locator(".summary h2").first.text_content() == "What changed from A to B"
    first, *rows = page.locator(".compared li").all()
    whole = re.fullmatch(r"A (\w+): (\S+) -> (\S+), (.*)", first.locator("a").text_content())
    totals = told["totals"]
    assert (whole[1], whole[4]) == (totals["unit"], totals["whole_verdict"])
    for text, key in ((whole[2], "a_whole_ns"), (whole[3], "b_whole_ns")):
        assert microseconds(text) == pytest.approx(totals[key] / 1000, abs=1e-3, rel=1e-3)
    counted = {word: int(number) for number, word in re.findall(r"(\d+) ([a-z ]+)", first.locator("p").text_content().partition(";")[0])}
    assert counted == {word: totals[key] for key, word in {**{key: key for key in ("slower", "faster", "new", "gone", "renamed", "unclear")},
                                                           "same": "the same", "not_judged": "not judged"}.items() if totals[key]}
    assert {"slower", "new", "gone"} <= set(counted)
    changed = [row for row in told["rows"] if row["verdict"] in ("slower", "faster")]
    assert [row.locator("a").text_content() for row in rows] == [f"{row['name']} is {row['verdict']}" for row in changed[:5]]
    page.locator(".compared a").first.click()
    page.wait_for_selector("main > .view")


def test_frames_have_the_times_of_both_traces(shown, compared):
    a, b, _ = compared
    before, after = totals(a), totals(b)
    shown.go("flame/diff-ranges")
    assert read_json("diff", a, b, "--json", "--rows", "-1")["totals"]["unit"] == "step"
    facts = frame(shown, "conv")
    assert microseconds(facts["Before (A)"]) == pytest.approx(before["conv"] / 20 / 1000, abs=0.0006)
    assert microseconds(facts["After (B)"]) == pytest.approx(after["conv"] / 20 / 1000, abs=0.0006)
    change = 100 * (after["conv"] - before["conv"]) / before["conv"]
    assert facts["Change"].endswith(f", +{change:.1f} %") and change > 3
    assert facts["Calls"] == "1 → 1"
    assert frame(shown, "extra")["Change"] == "new"


def test_frames_have_the_verdict_of_sonde_diff(shown, compared):
    rows = {row["name"]: row for row in read_json("diff", compared[0], compared[1], "--json", "--rows", "-1")["rows"]}
    shown.go("flame/diff-ranges")
    for name in ("conv", "linear"):
        text, row = frame(shown, name)["Self time of all"], rows[name]
        assert text.startswith(row["verdict"])
        numbers = [float(number) for number in re.findall(r"([+-]?[\d.]+) %", text.replace("95 %", ""))]
        assert numbers == [pytest.approx(row[key], abs=0.051) for key in ("change_percent", "low_percent", "high_percent")]


def colours(shown):
    """The colour of each frame of the first row, by name: below its text, where nothing is selected."""
    page, found = shown.page, {}
    shown.until("document.querySelector('main > .flamegraph').dataset.from !== undefined")
    # Read once: a canvas that is read often says so on the console.
    line = page.evaluate("""() => { const canvas = document.querySelector('.flamegraph canvas');
        return [...canvas.getContext('2d').getImageData(0, 17 * devicePixelRatio, canvas.width, 1).data]; }""")
    width, titles = page.evaluate("""() => { const canvas = document.querySelector('.flamegraph canvas'), box = canvas.getBoundingClientRect();
        const title = (x) => { canvas.dispatchEvent(new PointerEvent('pointermove', { clientX: box.x + x, clientY: box.y + 10 })); return canvas.title; };
        return [box.width, Array.from({ length: Math.floor((box.width - 4) / 6) }, (_, n) => [2 + 6 * n, title(2 + 6 * n)])]; }""")
    for x, title in titles:
        name = title.split(" · ")[0]
        at = 4 * round(x * len(line) / 4 / width)
        if name:
            found.setdefault(name, line[at:at + 4])
    return found


def test_slower_is_red_faster_is_blue(browser, compared, tmp_path):
    a, b, page = compared
    back = tmp_path / "back.html"
    read("diff", b, a, "--html", back)
    for path, longer in ((page, True), (back, False)):
        shown = Opened(browser, path)
        shown.go("flame/diff-ranges")
        found = colours(shown)
        red, _, blue, _ = found["conv"]
        assert (red > blue + 8) if longer else (blue > red + 8)
        # Renamed and equal: neither.
        other = found["gelu" if longer else "relu"]
        assert abs(other[0] - other[2]) < 24
        shown.close()


GREY = [226, 228, 232, 255]


def test_only_what_the_verdict_calls_changed_has_a_colour(shown, compared):
    verdicts = {row["name"]: row["verdict"] for row in read_json("diff", compared[0], compared[1], "--json", "--rows", "-1")["rows"]}
    shown.go("flame/diff-ranges")
    found = colours(shown)
    assert len(found) > 4
    assert {name for name, colour in found.items() if colour != GREY} == {
        name for name in found if verdicts[name] in ("slower", "faster", "new", "gone")} >= {"conv"}


@pytest.mark.parametrize("case, seeds, by, tree", [("diff", ("0", "256"), "ops", "diff-ranges"),
                                                   ("python_random", ("3", "4"), "functions", "diff-functions"),
                                                   ("python_random", ("3", "4"), "functions", "diff-samples")])
def test_runs_in_which_nothing_is_called_changed_are_grey(browser, tmp_path, case, seeds, by, tree):
    a, b = (generate(case, tmp_path / f"{seed}.sonde", seed) for seed in seeds)
    totals = read_json("diff", a, b, "--by", by, "--json", "--rows", "-1")["totals"]
    assert totals["slower"] == totals["faster"] == 0 < totals["same"] + totals["not_judged"]
    read("diff", a, b, "--html", tmp_path / "d.html")
    page = Opened(browser, tmp_path / "d.html")
    page.go(f"flame/{tree}")
    found = colours(page)
    rows = {row["name"] for row in read_json("diff", a, b, "--by", by, "--json", "--rows", "-1")["rows"] if row["verdict"] in ("new", "gone")}
    named = {re.sub(r"^.*\((.*)\)$", r"\1", name) for name in rows}
    assert found and all(colour == GREY for name, colour in found.items() if tree == "diff-samples" or name not in named)
    page.close()


def test_functions_of_several_runs_are_coloured_by_their_verdict(browser, tmp_path):
    """The rows of functions have their file's name and line: a frame is found by file and function."""
    runs = [generate("python_random", tmp_path / f"{at}.sonde", seed) for at, seed in enumerate("5566")]
    sides = (*runs[:2], "--", *runs[2:])
    read("diff", *sides, "--html", tmp_path / "d.html")
    page = Opened(browser, tmp_path / "d.html")
    page.go("flame/diff-functions")
    found = colours(page)
    told = {re.sub(r"^[^(]*\((.*)\)$", r"\1", row["name"]): row["verdict"] for row in read_json("diff", *sides, "--by", "functions", "--json", "--rows", "-1")["rows"]}
    signs = {"slower": 1, "faster": -1}
    assert {name: (red > blue + 8) - (blue > red + 8) for name, (red, _, blue, _) in found.items()} == {
        name: signs.get(told[name], 0) for name in found} and set(signs) & {told[name] for name in found}
    name = next(iter(found))
    assert frame(page, name)["Self time of all"].startswith(told[name])
    page.close()


def test_width_may_be_that_of_before(shown):
    page = shown.go("flame/diff-ranges")
    page.get_by_label("Width").select_option("a")
    assert frame(shown, "pool")["Change"] == "gone"
    page.get_by_label("Width").select_option("b")
    with pytest.raises(AssertionError, match="no frame of pool"):
        frame(shown, "pool")


def test_view_takes_two_traces(compared, tmp_path):
    a, b, page = compared
    done = sonde("view", a, b, env={"PATH": "/usr/bin:/bin"})
    assert done.returncode == 0 and done.stdout.decode().strip() == f"{b}.html"
    assert (b.parent / "b.sonde.html").read_bytes() == page.read_bytes()  # three are a list: test_view.py


def test_several_runs_a_side(browser, compared, tmp_path):
    runs = [generate("diff", tmp_path / f"{seed}.sonde", seed) for seed in ("0", "256", "512", "1793", "2049")]
    read("diff", *runs[:3], "--", *runs[3:], "--html", tmp_path / "d.html")
    shown = Opened(browser, tmp_path / "d.html")
    shown.go("flame/diff-ranges")
    before = sum(totals(run)["conv"] for run in runs[:3]) / 60
    assert microseconds(frame(shown, "conv")["Before (A)"]) == pytest.approx(before / 1000, abs=0.0006)
    shown.close()


def test_a_page_on_standard_output_is_all_that_is_there(compared):
    a, b, page = compared
    assert sonde("diff", a, b, "--html", "-").stdout == page.read_bytes()
    assert sonde("diff", a, b, "--html", "/nonexistent/d.html").returncode == 1


@pytest.mark.parametrize("dark", [False, True])
def test_it_has_contrast_and_names(browser, compared, dark):
    shown = Opened(browser, compared[2], dark=dark)
    for part in ("flame/diff-ranges", "table/diff"):
        page = shown.go(part)
        assert contrast_faults(page) == [] and unnamed_controls(page) == []
    shown.close()
