# SPDX-License-Identifier: Apache-2.0
"""A program sees nothing of sonde but what docs/PYTHON.md lists, in every mode.

programs/python/sees.py prints all that it can see of its interpreter and its process. What it prints under `sonde run` is
compared with what it prints alone, and the difference with the table of docs/PYTHON.md.
"""
import collections
import fnmatch
import functools
import json
import os
import pathlib
import re
import sys

import pytest

from python_tools import FREE, PROGRAMS, SONDE, run

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = PROGRAMS / "sees.py"
HEADING = "## What a program can see of it"

MODES = {
    "default": [],
    "sample": ["--sample"],
    "native": ["--sample", "--native"],
    "functions": ["--functions"],
    "python-only": ["--functions", "--python-only"],
    "timeline": ["--functions", "--timeline"],
    "lines": ["--lines", "work"],
    "line-memory": ["--line-memory", "work"],
    "ops": ["--ops", "--shapes", "--memory", "--stacks"],
    "heap": ["--heap"],
    "counters": ["--counters"],
    "gpu": ["--gpu"],
    "all": ["--sample", "--native", "--functions", "--lines", "work", *([] if FREE else ["--line-memory", "work"]), "--ops", "--heap", "--counters"],
}


@functools.lru_cache(maxsize=None)
def seen(folder, *words):
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = run(*words, sys.executable, PROGRAM, cwd=folder, env=env, stdin=-3)
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("absence")


def differences(folder, mode):
    """[(subject, what is there besides, or is another; "-" before what is missing)]"""
    alone = seen(folder)
    under = seen(folder, SONDE, "run", "-q", *MODES[mode], "-o", f"{mode}.sonde", "--")
    assert alone.keys() == under.keys()
    for subject, mine in alone.items():
        theirs = under[subject]
        if isinstance(mine, dict):
            yield from ((subject, name) for name in {**mine, **theirs} if mine.get(name) != theirs.get(name))
        else:
            more, less = collections.Counter(theirs), collections.Counter(mine)
            yield from ((subject, text) for text in (more - less).elements())
            yield from ((subject, f"-{text}") for text in (less - more).elements())
            assert more != less or mine == theirs, f"{subject}: another order"


def listed():
    """{subject: patterns}, as the table has them."""
    table = (ROOT / "docs/PYTHON.md").read_text().split(HEADING)[1].split("\n## ")[0]
    rows = [line.split("|") for line in table.splitlines() if line.startswith("| `")]
    return {re.search("`(.*)`", row[1]).group(1): re.findall("`([^`]+)`", row[2]) for row in rows}


def matches(text, patterns):
    return [pattern for pattern in patterns if fnmatch.fnmatchcase(text, pattern)]


@pytest.mark.parametrize("mode", MODES)
def test_only_what_is_listed(folder, mode):
    table = listed()
    unlisted = [(subject, text) for subject, text in differences(folder, mode)
                if not matches(text, table.get(subject, ()))]
    assert not unlisted


def test_all_that_is_listed_is_there(folder):
    """A row that no mode needs would hide a fault."""
    used = {(subject, pattern) for mode in MODES for subject, text in differences(folder, mode)
            for pattern in matches(text, listed().get(subject, ()))}
    since = {"monitoring": (3, 12), "crash": (3, 14)}
    versions = {subject for subject, version in since.items() if sys.version_info < version}
    if FREE:
        versions.add("crash")  # --functions leaves the interpreter's own calls as they are
    # a module that this interpreter loads anyway
    own = {("modules", pattern) for pattern in listed()["modules"] if pattern in seen(folder)["modules"]}
    assert {(subject, pattern) for subject, patterns in listed().items() for pattern in patterns
            if subject not in versions} - own == used


def test_two_runs_alone_are_alike(folder):
    """What is compared is what sonde changes, not what changes by itself."""
    done = run(sys.executable, PROGRAM, cwd=folder, stdin=-3, env={
        name: value for name, value in os.environ.items() if not name.startswith("PYTEST")})
    assert json.loads(done.stdout) == seen(folder)
