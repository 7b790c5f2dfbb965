# SPDX-License-Identifier: Apache-2.0
"""Colour and progress are for terminals; what goes to a file or a pipe has neither."""
import os
import pty
import signal
import subprocess

import pytest

from cli_tools import SONDE, generate, needs_tools, read, read_json

pytestmark = needs_tools


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    return generate("gaps", tmp_path_factory.mktemp("traces") / "gaps.sonde")


def on_terminal(*arguments, **environment):
    """What a person sees; stdout and stderr are one terminal."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.pop("NO_COLOR", None)
        os.environ.update(environment)
        os.execv(SONDE, [SONDE, *map(str, arguments)])
    text = b""
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:
            break
        if not part:
            break
        text += part
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    return text.replace(b"\r\n", b"\n")


def without_colour(text):
    for code in (b"\033[1m", b"\033[2m", b"\033[0m"):
        text = text.replace(code, b"")
    return text


def test_colour_is_for_a_terminal(trace):
    plain = read("report", trace)
    assert b"\033" not in plain
    seen = on_terminal("report", trace)
    assert b"\033[1m" in seen
    assert without_colour(seen) == plain


def test_no_color_is_respected(trace):
    assert on_terminal("report", trace, NO_COLOR="1") == read("report", trace)


def test_data_has_no_colour_on_a_terminal(trace):
    assert on_terminal("report", trace, "--json") == read("report", trace, "--json")


def test_a_name_cannot_speak_to_the_terminal(tmp_path):
    names = generate("names", tmp_path / "names.sonde")
    for view in ("ops", "tree", "summary", "threads"):
        text = read("report", names, "--view", view)
        assert not set(text) & set(range(32)) - {10}
        text.decode("utf-8")


def test_a_closed_pipe_ends_it_quietly(trace):
    process = subprocess.Popen([SONDE, "export", trace, "--to", "json", "-o", "-"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    assert process.wait(timeout=30) in (0, 1, -signal.SIGPIPE)
    assert process.stderr.read().count(b"\n") <= 1
    process.stderr.close()


def test_the_doctor_names_what_it_tried(tmp_path):
    checks = read_json("doctor", "--json")["checks"]
    assert {"clock", "populate", "folder", "space", "zstd", "zlib", "perf events",
            "locked memory"} <= {check["name"] for check in checks}
    assert all(check["verdict"] in ("ok", "limited", "no") and check["text"] for check in checks)
    text = read("doctor").decode()
    assert len(text.splitlines()) == len(checks)
    # It leaves nothing behind.
    before = os.listdir(tmp_path)
    subprocess.run([SONDE, "doctor"], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    assert os.listdir(tmp_path) == before


def test_the_doctor_says_where_it_cannot_write():
    text = subprocess.run([SONDE, "doctor"], cwd="/proc", stdout=subprocess.PIPE, check=True).stdout
    assert b"cannot write in the current folder" in text
