# SPDX-License-Identifier: Apache-2.0
"""sonde run: a program runs under it as it runs alone, and is recorded."""
import json
import os
import signal
import stat
import subprocess

import pytest

from cli_tools import SONDE, WORKER, needs_worker, read_json, sonde

pytestmark = needs_worker


def run(folder, *arguments, options=(), **extra):
    return sonde("run", *options, "--", WORKER, *arguments, cwd=folder, **extra)


def names_of(trace):
    return sorted(row["key"] for row in read_json("report", trace, "--json")["rows"])


def test_arguments_pass_untouched(tmp_path):
    words = ["a b", "", "--help", "-o", "x", "--", "*", "\u00e9\U0001f680", "$HOME"]
    done = run(tmp_path, "args", *words)
    assert done.returncode == 0
    assert done.stdout.decode().split("\n")[:-1] == words
    assert done.stderr == (b"sonde: recorded e2e_worker.sonde; next: sonde report "
                           b"e2e_worker.sonde\n")  # a terminal or not
    assert run(tmp_path, "args", options=["-q"]).stderr == b""
    assert names_of(tmp_path / "e2e_worker.sonde") == ["args"]


def test_roof_is_measured_and_kept(tmp_path):
    def roof():
        process = read_json("export", tmp_path / "e2e_worker.sonde", "--to", "json", "-o", "-")["processes"][0]
        return [json.loads(one["value"]) for one in process["metadata"] if one["key"] == "machine.roof"]

    run(tmp_path, "args", env={**os.environ, "SONDE_ROOF": "{}"})
    assert roof() == []  # run measures, or there is none
    done = run(tmp_path, "args", options=["--roof"])
    assert done.returncode == 0 and b"--roof" not in done.stderr
    (one,) = roof()
    assert one["threads"] == len(os.sched_getaffinity(0))
    # Bounds of any machine that runs this: a slow one under load, and a large one.
    assert 1e7 < one["flops_per_second"] < 1e15 and 1e6 < one["bytes_per_second"] < 1e14


def test_stdin_and_stdout_are_the_programs(tmp_path):
    data = os.urandom(1 << 20)
    done = run(tmp_path, "copy", input=data)
    assert done.stdout == data
    assert names_of(tmp_path / "e2e_worker.sonde") == ["copy"]


@pytest.mark.parametrize("status", [0, 1, 2, 42, 126, 127, 255])
def test_the_exit_status_is_the_programs(tmp_path, status):
    assert run(tmp_path, "exit", str(status)).returncode == status
    assert names_of(tmp_path / "e2e_worker.sonde") == ["exit"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT,
                                    signal.SIGINT])
def test_a_signal_that_ends_it_ends_us(tmp_path, number):
    def listen():  # a shell's background job ignores SIGINT, and so would its children
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)

    done = run(tmp_path, "raise", str(int(number)), preexec_fn=listen)
    assert done.returncode == -number
    # What was recorded before is there; the ledger says how it ended.
    document = read_json("report", tmp_path / "e2e_worker.sonde", "--json")
    assert [row["key"] for row in document["rows"]] == ["raise"]
    assert document["ledger"]["unfinished_ranges"] == 1


def test_signals_are_passed_on(tmp_path):
    process = subprocess.Popen([SONDE, "run", "--", WORKER, "wait"], cwd=tmp_path,
                               stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT,
                   signal.SIGWINCH, signal.SIGTERM):
        process.send_signal(number)
        assert process.stdout.readline() == b"%d\n" % number
    assert process.wait(timeout=30) == 0
    process.stdout.close()
    assert names_of(tmp_path / "e2e_worker.sonde") == ["wait"]


def test_one_process_is_a_file_several_a_folder(tmp_path):
    assert run(tmp_path, "fork", "0").returncode == 0
    trace = tmp_path / "e2e_worker.sonde"
    assert trace.is_file()
    assert stat.S_IMODE(trace.stat().st_mode) == 0o600
    assert [p.name for p in tmp_path.iterdir()] == ["e2e_worker.sonde"]

    assert run(tmp_path, "fork", "3").returncode == 0
    assert trace.is_dir()
    assert stat.S_IMODE(trace.stat().st_mode) == 0o700
    files = list(trace.iterdir())
    assert len(files) == 4
    assert {stat.S_IMODE(f.stat().st_mode) for f in files} == {0o600}
    rows = {row["key"]: row["count"] for row in read_json("report", trace, "--json")["rows"]}
    assert rows["child"] == 3
    # And back to a file.
    assert run(tmp_path, "exit", "0").returncode == 0
    assert trace.is_file()


def test_the_trace_goes_where_it_is_told(tmp_path):
    (tmp_path / "sub").mkdir()
    done = run(tmp_path, "exit", "0", options=["-o", "sub/my trace.sonde"])
    assert done.returncode == 0
    assert (tmp_path / "sub/my trace.sonde").is_file()
    done = run(tmp_path, "exit", "0", options=["-v", "--output", str(tmp_path / "abs.sonde")])
    assert f"next: sonde report {tmp_path}/abs.sonde" in done.stderr.decode()


@pytest.mark.parametrize("make", ["file", "folder", "link"])
def test_nothing_but_a_trace_is_replaced(tmp_path, make):
    target = tmp_path / "mine"
    if make == "file":
        target.write_text("precious")
    elif make == "folder":
        target.mkdir()
        (target / "precious").write_text("precious")
    else:
        (tmp_path / "precious").write_text("precious")
        target.symlink_to(tmp_path / "precious")
    done = run(tmp_path, "args", "ran", options=["-o", "mine"])
    assert done.returncode == 1
    assert b"refusing to overwrite mine, which is not a trace" in done.stderr
    assert b"ran" not in done.stdout
    assert "precious" in [p.read_text() for p in tmp_path.rglob("*") if p.is_file()]


@pytest.mark.parametrize("children", ["0", "2"])
def test_an_older_trace_stays_until_there_is_a_newer(tmp_path, children):
    assert run(tmp_path, "fork", children, options=["-o", "t.sonde"]).returncode == 0
    before = names_of(tmp_path / "t.sonde")
    for program, status in (("./no-such-program", 127), ("/", 126), ("true", 0)):
        done = sonde("run", "-o", "t.sonde", "--", program, cwd=tmp_path)
        assert done.returncode == status
        assert names_of(tmp_path / "t.sonde") == before
        assert [p.name for p in tmp_path.iterdir()] == ["t.sonde"]
    assert run(tmp_path, "exit", "0", options=["-o", "t.sonde"]).returncode == 0
    assert names_of(tmp_path / "t.sonde") == ["exit"]
    assert [p.name for p in tmp_path.iterdir()] == ["t.sonde"]


def test_a_schedule_records_its_steps(tmp_path):
    done = run(tmp_path, "steps", "20", options=["--schedule", "wait=2,warmup=1,active=3,repeat=1"])
    assert done.returncode == 0
    document = read_json("report", tmp_path / "e2e_worker.sonde", "--view", "steps", "--json")
    assert 2 <= len(document["rows"]) <= 3


def test_a_limit_is_kept(tmp_path):
    done = run(tmp_path, "steps", "200000", options=["--max-size", "2M"])
    assert done.returncode == 0
    trace = tmp_path / "e2e_worker.sonde"
    assert trace.stat().st_size <= 2 << 20
    assert read_json("report", trace, "--json")["ledger"]["lost_events"] > 0
    done = run(tmp_path, "steps", "200000", options=["--max-size", "4M", "--keep-last"])
    assert done.returncode == 0
    rows = read_json("report", trace, "--view", "steps", "--json")["rows"]
    assert rows[-1]["step"] >= 199990


def test_names_of_a_real_recording_survive(tmp_path):
    assert run(tmp_path, "names").returncode == 0
    rows = read_json("report", tmp_path / "e2e_worker.sonde", "--json")["rows"]
    names = {row["key"].encode("utf-8", "surrogateescape") for row in rows}
    assert names == {b"outer", b"plain", b'"quotes" and \\', b"new\nline", b"\x01\x7f",
                     "\U0001f680".encode(), b"\xff not UTF-8 \xc3"}


@pytest.mark.parametrize("options, why", [(["--schedule", "active=1"], b"no step that it reached"),
                                          (["--functions"], b"of Python programs, and it runs none"),
                                          (["--gpu"], b"it made no call of the CUDA driver")])
def test_a_program_that_records_nothing_is_told(tmp_path, options, why):
    done = sonde("run", *options, "--", "sh", "-c", "exit 7", cwd=tmp_path)
    assert done.returncode == 7
    assert b"recorded nothing" in done.stderr and why in done.stderr
    assert done.stderr.count(b"\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_an_inherited_setting_does_not_leak_in(tmp_path):
    env = {**os.environ, "SONDE_MAX_BYTES": "1", "SONDE_SCHEDULE": "wait=9,active=1",
           "SONDE_TRACE": "/nonexistent/"}
    assert run(tmp_path, "exit", "0", env=env).returncode == 0
    assert names_of(tmp_path / "e2e_worker.sonde") == ["exit"]
