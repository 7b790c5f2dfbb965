# SPDX-License-Identifier: Apache-2.0
"""`sonde export --to svg`: well-formed for every trace of the set, and what is not drawn is said."""
import csv
import io
import re
import subprocess
import xml.etree.ElementTree as ElementTree

import pytest

from cli_tools import GEN, generate, needs_tools, read

pytestmark = needs_tools

CASES = [line.split()[0] for line in
         subprocess.run([GEN, "--list"], stdout=subprocess.PIPE, check=True, text=True).stdout.splitlines()] if GEN else []
SVG = "{http://www.w3.org/2000/svg}"
PLACES = {"x", "y", "width", "height", "x1", "x2", "y1", "y2"}


def draw(trace):
    return ElementTree.fromstring(read("export", trace, "--to", "svg", "-o", "-"))


def recorded(trace):
    """The ranges of threads, as the CSV has them; the work of GPUs has a stream as its thread."""
    rows = csv.DictReader(io.StringIO(read("export", trace, "--to", "csv", "-o", "-").decode(), newline=""))
    return [row for row in rows if row["thread"].isdigit()]


def not_drawn(picture):
    texts = [text.text or "" for text in picture.iter(f"{SVG}text")]
    return sum(int(number) for text in texts for number in re.findall(r"^not drawn: .*: (\d+)$", text))


@pytest.mark.parametrize("case", CASES)
def test_is_well_formed_and_counts_all_ranges(case, tmp_path):
    trace = generate(case, tmp_path / "t.sonde")
    picture, ranges = draw(trace), recorded(trace)
    rectangles = list(picture.iter(f"{SVG}rect"))
    assert len(rectangles) + not_drawn(picture) == len(ranges)
    assert len(rectangles) <= 3000 and bool(rectangles) == bool(ranges)
    assert {part.tag for part in picture.iter()} <= {SVG + tag for tag in ("svg", "style", "text", "line", "rect", "title")}
    assert not {name for part in picture.iter() if part is not picture for name in part.attrib} - PLACES - {"class"}


def test_is_inside_its_frame_and_begins_and_ends_with_it(tmp_path):
    picture = draw(generate("convnet", tmp_path / "t.sonde"))
    width, height = (float(number) for number in picture.get("viewBox").split()[2:])
    boxes = [[float(box.get(name)) for name in ("x", "y", "width", "height")] for box in picture.iter(f"{SVG}rect")]
    assert width == 1200 and all(y > 0 and y + tall < height for _, y, _, tall in boxes)
    assert min(x for x, *_ in boxes) == 10 and 1189 <= max(x + wide for x, _, wide, _ in boxes) <= 1190.5


def test_a_label_that_is_markup_is_text(tmp_path):
    titles = [title.text for title in draw(generate("labels", tmp_path / "t.sonde")).iter(f"{SVG}title")]
    assert any(title.startswith("</script><script>document.title=") for title in titles)


def test_the_longest_ranges_are_drawn(tmp_path):
    trace = generate("large", tmp_path / "t.sonde", "40000")
    picture, ranges = draw(trace), recorded(trace)
    longest = max(ranges, key=lambda row: int(row["duration_ns"]))
    rectangles = list(picture.iter(f"{SVG}rect"))
    assert len(ranges) > 3000 >= len(rectangles) and not_drawn(picture) == len(ranges) - len(rectangles)
    assert longest["name"] in [box.find(f"{SVG}title").text.splitlines()[0] for box in rectangles]
