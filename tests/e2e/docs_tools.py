# SPDX-License-Identifier: Apache-2.0
"""What a page of docs/ shows: its programs, its commands, what they print."""
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# A process for `sonde attach PID`: prints a line when it is up, then computes until it is killed.
BUSY = "print('up', flush=True)\nwhile True: sum(i * i for i in range(1000))"


def fences(text):
    """(words after the fence, what is in it) of each block, in order."""
    return re.findall(r"^```([^\n]*)\n(.*?)^```$", text, re.S | re.M)


def blocks(text, kind):
    return [block for words, block in fences(text) if words == kind]


def write_programs(text, folder):
    """Blocks with a title are files."""
    for words, block in fences(text):
        title = re.search(r'title="(.+?)"', words)
        if title:
            (folder / title.group(1)).write_text(block)


def words_of(line):
    """What of a line does not change from run to run: names, not numbers, units and the ends of names that are cut."""
    return [word for word in re.findall(r"[A-Za-z_<>~][\w.:<>#()'\[\]-]*", line)
            if len(word) > 2 and not re.fullmatch(r"\S*\.\.\.?|\d\S*|[KMG]?B|[munk]?s", word)]


def missing(shown, printed):
    """Lines of a page that no line of the output is like: all of a line's words, in any order."""
    lines = printed.splitlines()
    return [line for line in shown.splitlines()
            if words_of(line) and not any(all(word.rstrip(".") in other for word in words_of(line)) for other in lines)]


@pytest.fixture
def busy():
    process = subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE)
    process.stdout.readline()
    yield process.pid
    process.kill()
    process.communicate()
