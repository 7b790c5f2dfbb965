# SPDX-License-Identifier: Apache-2.0
"""The report page from Python: as a file, and inside a notebook, in a real browser."""
import html
import os
import re
import subprocess
import sys

import pytest

import sonde
from cli_tools import SONDE, read, read_json
from page_tools import Opened, needs_page, open_browser

pytestmark = needs_page


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


@pytest.fixture(scope="module")
def session():
    with sonde.functions() as one:
        fib(12)
    return one


def frame_of(markup):
    """The page in the frame, and what the frame may do."""
    found = re.fullmatch(r'<iframe title="sonde report" sandbox="([^"]*)" srcdoc="([^"]*)" style="[^"]*"></iframe>', markup)
    return html.unescape(found.group(2)), found.group(1)


def test_to_html_writes_the_page(session, tmp_path):
    session.to_html(tmp_path / "page.html")
    page, allowed = frame_of(session._repr_html_())
    assert page == (tmp_path / "page.html").read_text(encoding="utf-8")
    assert allowed == "allow-scripts"


def test_nothing_to_show_before_there_are_results():
    assert sonde.functions()._repr_html_() is None
    running = sonde.functions()
    with running:
        assert running._repr_html_() is None


def test_the_frame_works_inside_another_page(session, tmp_path):
    outer = tmp_path / "notebook.html"
    outer.write_text(f"<!doctype html><html data-ready=1><title>notebook</title><body>{session._repr_html_()}</body></html>", encoding="utf-8")
    with open_browser() as browser:
        shown = Opened(browser, outer)
        frame = shown.page.frame_locator("iframe")
        frame.locator("nav a", has_text="Functions").click()
        frame.locator("main > .view").wait_for()
        assert frame.locator("main h1").text_content() == "Functions"
        row = frame.locator(".body .tr", has_text="fib").first
        assert "465" in row.text_content()
        frame.locator("nav a", has_text="Flame graph").click()
        frame.locator("main > .flamegraph").wait_for()
        assert shown.page.title() == "notebook"
        shown.faults = [fault for fault in shown.faults if fault != "request: about:srcdoc"]
        shown.close()


def test_a_profile_of_torch_has_its_page(tmp_path):
    torch = pytest.importorskip("torch")
    with sonde.profile(record_shapes=True) as prof:
        torch.ones(4, 4) @ torch.ones(4, 4)
    prof.to_html(str(tmp_path / "page.html"))
    assert "application/x-sonde" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert frame_of(prof._repr_html_())
    assert sonde.profile()._repr_html_() is None


RECORD = """import sys, sonde
with sonde.functions() as one:
    sum(range(10))
one.save(sys.argv[1])
"""


def test_a_page_of_our_own_commands_has_what_a_person_typed(tmp_path):
    """`sonde layers` and its like run a part of the package: their page is not one of python3's, called with -c."""
    shower = tmp_path / "python"
    shower.write_text("#!/bin/sh\necho \"$PPID:$SONDE_TYPED_COMMAND\" >&2\n", encoding="utf-8")
    shower.chmod(0o755)
    done = subprocess.run([SONDE, "layers", "net.py:make", "-b", "2"], env={**os.environ, "SONDE_PYTHON_EXE": str(shower)},
                          stderr=subprocess.PIPE, encoding="utf-8", check=True)
    pid, typed = done.stderr.strip().split(":", 1)
    assert typed == f"{pid} sonde layers net.py:make -b 2"
    for parent, title in ((os.getpid(), "sonde layers"), (1, None)):  # of another process's child it is not true
        path = tmp_path / f"{parent}.sonde"
        subprocess.run([sys.executable, "-c", RECORD, path], check=True,
                       env={**os.environ, "SONDE_TYPED_COMMAND": f"{parent} sonde layers net.py:make"})
        command = read_json("report", path, "--view", "summary", "--json")["totals"]["command"]
        assert command == "sonde layers net.py:make" if title else command.endswith(str(path))
        read("export", path, "--to", "html")
        with open_browser() as browser:
            shown = Opened(browser, tmp_path / f"{parent}.sonde.html")
            assert (shown.page.title() == "sonde layers – sonde") == bool(title)
            shown.close()
