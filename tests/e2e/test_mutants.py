# SPDX-License-Identifier: Apache-2.0
"""tools/mutants: what it changes, and what it leaves alone. That tests notice the changes is what it is for (`make mutants`)."""
import pathlib
import random
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
from mutation import operators  # noqa: E402

SOURCE = """\
#include <x.h>
#define MOST 64
static const int table[] = {
    7,
    -1,
};
/* if (a < 1) return 0; */
static int add(int a, int b)
{
    char text[16] = "a + b < 3";
    assert(a > 0);
    int *room = malloc(sizeof *room * 2);
    if (!room)
        return -5;
    if (a < b && b != 9)
        a += 4;
    call(a - b);
    while (b == 'x')
        step(&b);
    free(room);
    for (int i = 0; i < b; i++)
        snd_release_tree(&trees[i]);
    if (!snd_grow(&list, &room, 8)) {
        failed = true;
        return 6;
    }
    return a + b;
}
"""


def changes():
    """(line number, kind, line after) of all mutants."""
    for mutant in operators.mutants_of("f.c", SOURCE):
        lines = operators.applied(SOURCE, mutant).splitlines()
        assert len(lines) == len(SOURCE.splitlines())
        different = [number for number, pair in enumerate(zip(SOURCE.splitlines(), lines), start=1) if pair[0] != pair[1]]
        assert different == [mutant.line]
        yield mutant.line, mutant.kind, lines[mutant.line - 1].strip()


def test_each_operator_changes_its_place():
    found = set(changes())
    assert {(4, "constant of a table", "8,"),
            (15, "condition negated", "if (!(a < b && b != 9))"),
            (15, "&& and || swapped", "if (a < b || b != 9)"),
            (15, "comparison", "if (a <= b && b != 9)"),
            (15, "comparison", "if (a < b && b == 9)"),
            (15, "constant", "if (a < b && b != 10)"),
            (16, "+= and -= swapped", "a -= 4;"),
            (16, "constant", "a += 5;"),
            (16, "assignment dropped", ";"),
            (17, "+ and - swapped", "call(a + b);"),
            (17, "call dropped", ";"),
            (18, "condition negated", "while (!(b == 'x'))"),
            (27, "+ and - swapped", "return a - b;"),
            (27, "returns 0", "return 0;")} <= found


def test_comments_strings_assertions_and_allocations_are_left_alone():
    touched = {line for line, _, _ in changes()}
    assert touched == {4, 15, 16, 17, 18, 19, 27}


def test_a_seed_draws_the_same_places_again():
    mutants = list(operators.mutants_of("f.c", SOURCE))
    draw = lambda seed: operators.choose(list(mutants), 5, random.Random(seed))
    assert draw(3) == draw(3)
    assert len(set(draw(3))) == 5 and draw(3) != draw(4)
    assert len(operators.choose(list(mutants), 1000, random.Random(1))) == len(mutants)


@pytest.mark.parametrize("arguments, expected", [
    (["--seed", "5", "--count", "7"], 7),
    (["--count", "3", "--files", "src/view/*"], 3),
    (["--files", "src/nowhere/*"], 0)])
def test_places_are_listed(arguments, expected):
    done = subprocess.run([ROOT / "tools/mutants", "--list", *arguments], stdout=subprocess.PIPE, encoding="utf-8", check=True)
    places = done.stdout.splitlines()
    assert len(places) == expected
    for place in places:
        file, line, _ = place.split(":", 2)
        assert int(line) <= len((ROOT / file).read_text(encoding="utf-8").splitlines())
        assert "--files" not in arguments or file.startswith("src/view/")


def test_what_is_argued_away_is_in_the_source():
    """A reason whose line has changed is a reason no longer."""
    file = None
    for line in (ROOT / "tests/mutants-equal.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("src/"):
            file = (ROOT / line.rstrip(":")).read_text(encoding="utf-8")
        elif line.startswith("- "):
            assert line[2:].strip() in [own.strip() for own in file.splitlines()], line
