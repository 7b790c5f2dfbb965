# SPDX-License-Identifier: Apache-2.0
"""`sonde view`: who is served what, and when it ends."""
import contextlib
import http.client
import json
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
def viewing(traces, *options, **env):
    """The process and the address that it printed."""
    given = traces if isinstance(traces, list) else [traces]
    process = subprocess.Popen([SONDE, "view", *options, *map(str, given)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
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


def raw(address, request):
    """The status that a request gets which is written by hand."""
    parts = urllib.parse.urlsplit(address)
    with socket.create_connection((parts.hostname, parts.port), timeout=120) as one:
        one.sendall(request)
        return int(one.recv(100).split()[1])


def test_the_host_is_this_machine_and_is_named_once(trace):
    with viewing(trace, "--no-open") as (_, address):
        parts = urllib.parse.urlsplit(address)
        path, port = parts.path, parts.port
        # A tunnel (ssh -L) has a port of its own.
        for host in (f"localhost:{port}", "localhost:9000", "127.0.0.1:9000", "localhost", "[::1]:9000", f"LocalHost:{port}"):
            assert ask(address, host=host)[0] == 200, host
        for host in ("localhost.evil.example", "evil.example", "127.0.0.1.evil.example:80", "localhost:80x", "localhost:80@evil", "0.0.0.0"):
            assert ask(address, host=host)[0] == 403, host
        mine = f"Host: 127.0.0.1:{port}\r\n"
        get = f"GET {path} HTTP/1.1\r\n"
        assert raw(address, f"{get}{mine}\r\n".encode()) == 200
        for hosts in (mine + mine, mine + "Host: evil.example\r\n", "Host: evil.example\r\n" + mine, mine + "host:evil.example\r\n", ""):
            assert raw(address, f"{get}{hosts}\r\n".encode()) == 403, hosts


def test_connections_that_ask_for_nothing_do_not_block_it(trace):
    with viewing(trace, "--no-open") as (process, address), contextlib.ExitStack() as idle:
        parts = urllib.parse.urlsplit(address)
        for _ in range(200):
            idle.enter_context(socket.create_connection((parts.hostname, parts.port)))
        assert ask(address)[0] == 200
        for _ in range(65):
            idle.enter_context(socket.create_connection((parts.hostname, parts.port))).sendall(b"GET / HTTP/1.1\r\n")
        assert ask(address)[0] == 200 and process.poll() is None


def test_a_port_of_choice(trace):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = subprocess.run([SONDE, "view", "--no-open", "--port", str(port), str(trace)], capture_output=True, text=True)
        assert refused.returncode == 1 and refused.stdout == ""
        assert refused.stderr.endswith(f"cannot serve the page on 127.0.0.1:{port}: Address already in use\n")
    with viewing(trace, "--no-open", "--port", str(port)) as (_, address):
        assert address.startswith(f"http://127.0.0.1:{port}/") and ask(address)[0] == 200
    assert subprocess.run([SONDE, "view", "--port", "65536", str(trace)], capture_output=True).returncode == 2


@pytest.fixture
def folder(tmp_path):
    """Three traces; one is a folder of two processes, one another tool's."""
    runs = tmp_path / "runs"
    runs.mkdir()
    generate("threads", runs / "a.sonde")
    generate("two_processes", runs / "b.sonde")
    read("export", generate("convnet", tmp_path / "c.sonde"), "--to", "chrome", "-o", runs / "c.json")
    (runs / "notes.txt").write_text("no trace")
    return runs


def test_of_a_folder_one_is_chosen_without_a_restart(folder):
    with viewing(folder, "--no-open") as (process, address), open_browser() as browser:
        shown = Opened(browser, address)
        page = shown.page
        assert page.locator(".listing tbody a").all_text_contents() == ["a.sonde", "b.sonde", "c.json"]
        page.get_by_text("a.sonde").first.click()
        page.wait_for_selector("header select")
        shown.go("table/ops")
        assert shown.texts("key") == ["work", "part"]
        page.locator("header select").select_option(label="c.json")
        page.wait_for_url("**/2/")
        page.wait_for_selector("html[data-ready] header select")
        shown.go("table/ops")
        assert "forward" in shown.texts("key")
        page.locator("header select").select_option(label="All traces …")
        page.wait_for_selector(".listing")
        page.locator(".tools select").nth(1).select_option(label="b.sonde")
        page.get_by_text("Show what changed").click()
        page.wait_for_url("**/0-1/")
        page.wait_for_selector("html[data-ready] header select")
        assert page.get_by_role("link", name="What changed").count() == 1
        assert [fault for fault in shown.faults if not re.search(r"/[0-9-]*/?(open|list|)$", fault)] == []
        page.close()
        assert process.wait(timeout=120) == 0


def test_of_several_traces_only_those_are_served(folder, tmp_path):
    bad = tmp_path / "bad.sonde"
    bad.write_bytes(b"no trace at all")
    with viewing([folder / "a.sonde", folder / "b.sonde", bad], "--no-open") as (_, address):
        path = urllib.parse.urlsplit(address).path
        listed = json.loads(ask(address, path + "list")[1])
        assert [one["name"] for one in listed] == ["runs/a.sonde", "runs/b.sonde", "bad.sonde"]
        assert [one["bytes"] > 0 for one in listed] == [True] * 3
        assert ask(address, path + "0/")[0] == 200
        assert ask(address, path + "2/")[0] == 500 and b"bad.sonde" in ask(address, path + "2/")[1]
        for wrong in ("3/", "-1/", "0-3/", "00x/", "0", "../0/", "0/list", "list/"):
            assert ask(address, path + wrong)[0] == 404, wrong
        assert ask(address, "/0/")[0] == 404


@pytest.mark.parametrize("case", ["two_processes", "job", "bench"])
def test_the_files_of_one_run_are_one_trace(tmp_path, case):
    for name in ("run.sonde", "run"):
        with viewing(generate(case, tmp_path / name), "--no-open") as (_, address):
            assert ask(address, urllib.parse.urlsplit(address).path + "list")[0] == 404
            assert b'application/x-sonde" id="data">list' not in ask(address)[1]


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
