# SPDX-License-Identifier: Apache-2.0
"""`sonde view`: who is served what, and when it ends."""
import contextlib
import http.client
import os
import re
import signal
import socket
import subprocess
import urllib.parse

import pytest

from cli_tools import SONDE, generate, needs_tools, read
from page_tools import Opened, needs_page, open_browser

pytestmark = [needs_tools, needs_page]


@contextlib.contextmanager
def viewing(trace, *options, **env):
    """The process and the address that it printed."""
    process = subprocess.Popen([SONDE, "view", *options, str(trace)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={**{name: value for name, value in os.environ.items()
                                       if name not in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")}, **env})
    try:
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def trace(tmp_path):
    return generate("threads", tmp_path / "t.sonde")


def ask(address, path=None, method="GET", host=None):
    parts = urllib.parse.urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=120)
    connection.request(method, path if path is not None else parts.path, headers={"Host": host} if host else {})
    answer = connection.getresponse()
    return answer.status, answer.read(), dict(answer.getheaders())


def test_only_the_page_is_served_and_only_to_who_knows_the_token(trace, tmp_path):
    read("export", trace, "--to", "html", "-o", tmp_path / "page.html")
    with viewing(trace, "--no-open") as (_, address):
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[0-9a-f]{32}/", address)
        status, body, headers = ask(address)
        assert status == 200 and headers["Cache-Control"] == "no-store" and headers["X-Frame-Options"] == "DENY"
        assert body.replace(b"connect-src 'self'", b"connect-src 'none'") == (tmp_path / "page.html").read_bytes()
        parts = urllib.parse.urlsplit(address)
        for path in ("/", "/open", "/" + "0" * 32 + "/", parts.path + "x", parts.path + "../", "//etc/passwd", parts.path[:-1]):
            assert ask(address, path)[:2] == (404, b""), path
        assert ask(address, method="POST")[0] == 404
        assert ask(address, host=f"evil.example:{parts.port}")[0] == 403


def test_it_listens_on_the_loopback_interface_alone(trace):
    with viewing(trace, "--no-open") as (process, address):
        port = urllib.parse.urlsplit(address).port
        inodes = {re.match(r"socket:\[(\d+)\]", os.readlink(f"/proc/{process.pid}/fd/{fd}")).group(1)
                  for fd in os.listdir(f"/proc/{process.pid}/fd")
                  if os.readlink(f"/proc/{process.pid}/fd/{fd}").startswith("socket:")}
        lines = [line.split() for name in ("tcp", "tcp6") for line in open(f"/proc/{process.pid}/net/{name}")][1:]
        mine = {line[1] for line in lines if len(line) > 9 and line[9] in inodes and line[3] == "0A"}
        assert mine == {f"0100007F:{port:04X}"}


def test_it_ends_when_the_last_page_is_closed(trace):
    with viewing(trace, "--no-open") as (process, address), open_browser() as browser:
        first, second = Opened(browser, address), Opened(browser, address)
        first.go("table/ops")
        assert first.texts("key") == ["work", "part"]
        first.page.close()
        second.go("timeline")
        assert process.poll() is None and ask(address)[0] == 200
        second.page.close()
        assert process.wait(timeout=120) == 0
        assert [fault for page in (first, second) for fault in page.faults if not fault.endswith("/open")] == []


def test_ctrl_c_ends_it(trace):
    with viewing(trace, "--no-open") as (process, _):
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=120) == -signal.SIGINT


def test_a_slow_or_broken_client_does_not_stop_others(trace):
    with viewing(trace, "--no-open") as (process, address):
        parts = urllib.parse.urlsplit(address)
        idle = [socket.create_connection((parts.hostname, parts.port)) for _ in range(4)]
        idle[0].sendall(b"GET /")
        idle[1].sendall(b"\x00" * 5000)
        idle[2].close()
        assert ask(address)[0] == 200
        assert process.poll() is None
        for one in idle:
            one.close()


def test_the_browser_gets_the_address(trace, tmp_path):
    browser = tmp_path / "browser"
    browser.write_text(f"#!/bin/sh\necho \"$1\" > {tmp_path}/asked\n")
    browser.chmod(0o755)
    with viewing(trace, BROWSER=str(browser)) as (_, address):
        assert (tmp_path / "asked").read_text().strip() == address


def test_without_a_browser_it_says_where_the_file_is(trace):
    with viewing(trace) as (process, line):
        assert process.wait(timeout=120) == 0
        assert line == f"{trace}.html"
    assert "application/x-sonde" in open(f"{trace}.html", encoding="utf-8").read()
