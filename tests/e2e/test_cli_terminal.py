# SPDX-License-Identifier: Apache-2.0
"""Colour and progress are for terminals; what goes to a file or a pipe has neither."""
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios

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
        os.environ.update(COLUMNS="1000", TERM="xterm")
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


def test_a_dumb_terminal_has_no_escapes(trace):
    """Emacs' shell, `ssh` without a terminal type: they show escape sequences as they are."""
    assert on_terminal("report", trace, TERM="dumb") == read("report", trace)
    assert b"\033" not in on_terminal("diff", trace, trace, TERM="dumb")


@pytest.mark.parametrize("options", [[], ["-q"]])
def test_print_says_where_the_trace_is_kept(tmp_path, options):
    seen = on_terminal("run", "--print", *options, "--", sys.executable, "-c", "import time; time.sleep(0.1)",
                       XDG_CACHE_HOME=str(tmp_path))
    said = f"sonde: kept until the next --print: {tmp_path}/sonde/last/python.sonde; next: sonde report\n"
    assert (said.encode() in seen) == (not options)
    assert len(list((tmp_path / "sonde/last").glob("*.sonde"))) == 1


def test_data_has_no_colour_on_a_terminal(trace):
    assert on_terminal("report", trace, "--json") == read("report", trace, "--json")


# ------------------------------------------------------------------------ the width

def widths(text):
    return [len(line.decode()) for line in without_colour(text).split(b"\n")]


def test_lines_fit_the_terminal(trace):
    whole = read("report", trace)
    assert max(widths(whole)) > 100
    seen = on_terminal("report", trace, COLUMNS="100", LC_ALL="C.UTF-8")
    assert max(widths(seen)) == 100
    assert "…".encode() in seen
    assert b"Lines are truncated to 100 columns; --wide shows all of them.\n" in seen
    assert without_colour(on_terminal("report", trace, "--wide", COLUMNS="100")) == whole
    assert without_colour(on_terminal("report", trace, COLUMNS="1000")).split() == whole.split()


def test_the_width_is_that_of_the_terminal(trace):
    reader, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 25, 90, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    subprocess.run([SONDE, "report", trace, "--view", "threads"], stdout=terminal, check=True,
                   env=dict(environment, NO_COLOR="1", LC_ALL="C"), stderr=subprocess.DEVNULL)
    os.close(terminal)
    text = b""
    try:
        while part := os.read(reader, 65536):
            text += part
    except OSError:
        pass
    os.close(reader)
    assert max(widths(text.replace(b"\r\n", b"\n"))) == 90
    assert b"..." in text and text.isascii()


def test_a_long_name_gives_way_before_numbers_do(tmp_path):
    names = generate("names", tmp_path / "names.sonde")
    seen = on_terminal("report", names, COLUMNS="110", NO_COLOR="1", LC_ALL="C.UTF-8")
    titles = seen.splitlines()[1]
    assert titles.split()[-3:] == [b"#", b"of", b"Calls"] and len(titles) <= 110
    assert b"\na name that is longer t... " in seen


@pytest.mark.parametrize("part, most", [("", 80), ("--tree", 80), ("--callers", 100), ("--callees", 100)])
def test_functions_keep_their_names(tmp_path, part, most):
    """Paths are shortened from the left: what pstats calls the function comes last."""
    folder = tmp_path / "a_folder_with_a_long_name" / "and_another_one_inside_of_it"
    folder.mkdir(parents=True)
    (folder / "prog.py").write_text("def inner_one():\n    return [abs(i) for i in range(9)]\n\n\n"
                                    "def outer_one():\n    return inner_one()\n\n\nouter_one()\n")
    trace = tmp_path / "t.sonde"
    subprocess.run([SONDE, "run", "-q", "--functions", "-o", trace, "--", sys.executable, folder / "prog.py"], check=True)
    shown = "report", trace, "--view", "functions", *filter(None, [part])
    seen = on_terminal(*shown, COLUMNS=str(most), NO_COLOR="1", LC_ALL="C.UTF-8").decode()
    for name in "1(inner_one)", "5(outer_one)", "1(<module>)":
        line = next(line for line in seen.splitlines() if f"…/prog.py:{name}" in line or f"/prog.py:{name}" in line)
        assert len(line) <= most and str(tmp_path) not in line
    assert "truncated" not in seen
    assert str(folder) in read(*shown).decode(), "elsewhere they are whole"


def test_a_place_is_cut_at_its_begin(tmp_path):
    trace = generate("samples", tmp_path / "s.sonde")
    seen = on_terminal("report", trace, COLUMNS="40", NO_COLOR="1", LC_ALL="C.UTF-8").decode()
    assert any(line.startswith("│") and line.endswith(".py:183") and "…" in line
               for line in seen.splitlines())


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


def test_the_doctor_prints_the_lines_that_mend():
    """As a script: comments and commands. Here a shell's limit, and a path without a compiler."""
    def doctor(*options, **env):
        return subprocess.run(["bash", "-c", 'ulimit -S -f 200000; exec "$@"', "bash", SONDE, "doctor", *options], check=True, text=True,
                              stdout=subprocess.PIPE, env={**os.environ, **env}).stdout
    limited = doctor("--fix").splitlines()
    assert limited[limited.index("ulimit -S -f unlimited") - 1].startswith("# file size: 200000 KB")
    fixed = {check["name"]: check["fix"] for check in json.loads(doctor("--json"))["checks"] if "fix" in check}
    assert fixed["file size"] == "ulimit -S -f unlimited" and set(fixed.values()) <= set(limited)
    without = subprocess.run([SONDE, "doctor", "--fix"], env={"PATH": "/nowhere"}, text=True, stdout=subprocess.PIPE, check=True).stdout
    assert "sudo apt-get install -y g++\n" in without
    assert subprocess.run(["sh", "-n"], input=without, text=True).returncode == 0
    mended = subprocess.run(["sh"], input=f"ulimit -S -f 200000\n{limited[limited.index('ulimit -S -f unlimited')]}\n{SONDE} doctor", text=True,
                            stdout=subprocess.PIPE, check=True).stdout
    assert re.search(r"^file size +ok +no limit$", mended, re.M)


def test_the_doctor_knows_whether_a_page_can_be_opened():
    def browser(**env):
        checks = json.loads(subprocess.run([SONDE, "doctor", "--json"], env=env, stdout=subprocess.PIPE, check=True).stdout)["checks"]
        return next((check["verdict"], check.get("fix")) for check in checks if check["name"] == "browser")
    assert browser(BROWSER="firefox") == ("ok", None)
    assert browser() == ("limited", None)
    assert browser(DISPLAY=":0", PATH="/nowhere") == ("limited", "sudo apt-get install -y xdg-utils chromium")


def test_the_doctor_says_where_it_cannot_write():
    text = subprocess.run([SONDE, "doctor"], cwd="/proc", stdout=subprocess.PIPE, check=True).stdout
    assert b"cannot write in the current folder" in text


@pytest.mark.parametrize("view, kept", [("model", [b"Batch", b"Median", b"Samples/s"]),
                                        ("graph", [b"Node", b"Time %", b"Mean"])])
def test_columns_are_chosen_by_the_terminals_width(view, kept, tmp_path):
    folder = generate({"model": "bench", "graph": "graph"}[view], tmp_path / "folder")
    seen = without_colour(on_terminal("report", folder, "--view", view, COLUMNS="80"))
    lines = seen.splitlines()
    assert all(len(line.decode().rstrip()) <= 80 for line in lines)
    assert all(word in seen for word in kept)
    assert b" columns omitted for lack of space; --wide shows all\n" in seen
    assert b"truncated to 80 columns" not in seen  # whole columns go, no line is cut
    wide = without_colour(on_terminal("report", folder, "--view", view, "--wide", COLUMNS="80"))
    assert wide == read("report", folder, "--view", view)
