# SPDX-License-Identifier: Apache-2.0
"""The Python package, as installed in .venv: it says what the command line says."""
import gzip
import json
import os
import pathlib
import subprocess
import sys
import threading

import pytest
import sonde

ROOT = pathlib.Path(__file__).resolve().parents[2]
SONDE = ROOT / ".venv/bin/sonde"
CONVNET = ROOT / "build/examples/convnet"


@pytest.fixture(scope="module")
def trace_path(tmp_path_factory):
    path = tmp_path_factory.mktemp("python") / "convnet.sonde"
    subprocess.run([CONVNET, "1"], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "CONVNET_TRACE": str(path)})
    return path


def cli(*arguments):
    return subprocess.run([SONDE, *arguments], check=True, text=True, stdout=subprocess.PIPE).stdout


def test_installed_in_the_venv():
    assert str(ROOT / ".venv") in sonde.__file__
    assert (pathlib.Path(sonde.__file__).parent / "py.typed").exists()
    assert sonde.__version__ in cli("--version")


@pytest.mark.parametrize("view", ["summary", "ops", "tree", "memory", "threads", "steps", "ledger"])
def test_report_is_the_cli_text(trace_path, view):
    with sonde.Trace(trace_path) as trace:
        assert trace.report(view=view) == cli("report", trace_path, "--view", view, "--sort", "none")


def test_report_options(trace_path):
    with sonde.Trace(str(trace_path)) as trace:
        rows = json.loads(trace.report(view="ops", sort="count", rows=2, format="json"))["rows"]
        assert len(rows) == 2 and rows[0]["count"] >= rows[1]["count"]
        shapes = json.loads(trace.report(group_by="shape,thread", format="json"))["rows"]
        assert any(row["key"] == "conv2d" and "224" in str(row["input_shapes"]) for row in shapes)
        assert trace.report(format="csv").count("\n") > 3


def test_export(trace_path, tmp_path):
    with sonde.Trace(trace_path) as trace:
        trace.export(tmp_path / "t.json")
        trace.export(tmp_path / "t.json.gz", to="chrome")
        trace.export(tmp_path / "t.folded", to="folded")
    plain = json.loads((tmp_path / "t.json").read_text())
    packed = json.loads(gzip.decompress((tmp_path / "t.json.gz").read_bytes()))
    assert any(event.get("name") == "conv2d" for event in plain["traceEvents"])
    # Each names itself, as torch's do; all else is the same.
    assert (plain.pop("traceName"), packed.pop("traceName")) == (str(tmp_path / "t.json"),
                                                                 str(tmp_path / "t.json.gz"))
    assert plain == packed
    assert "conv2d" in (tmp_path / "t.folded").read_text()
    (tmp_path / "plain").touch()
    assert (tmp_path / "t.json").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize("wrong", [
    lambda trace: trace.report(view="nothing"),
    lambda trace: trace.report(sort="nothing"),
    lambda trace: trace.report(group_by="nothing"),
    lambda trace: trace.report(format="nothing"),
    lambda trace: trace.report(part="nothing"),
    lambda trace: trace.report(time_unit="nothing"),
    lambda trace: trace.export("/nowhere/file", to="chrome"),
])
def test_wrong_use_says_what(trace_path, wrong):
    with sonde.Trace(trace_path) as trace, pytest.raises(sonde.Error) as caught:
        wrong(trace)
    assert "nothing" in str(caught.value) or "/nowhere/file" in str(caught.value)


def test_failed_export_leaves_no_file(trace_path, tmp_path):
    with sonde.Trace(trace_path) as trace, pytest.raises(sonde.Error):
        trace.export(tmp_path / "x", to="no such format")
    assert not (tmp_path / "x").exists()


def test_not_a_trace(tmp_path):
    (tmp_path / "text").write_text("hello")
    for path in (tmp_path / "text", tmp_path / "absent"):
        with pytest.raises(sonde.Error) as caught:
            sonde.Trace(path)
        assert str(path) in str(caught.value) and caught.value.status != 0


def test_closed(trace_path):
    trace = sonde.Trace(trace_path)
    trace.close()
    trace.close()
    with pytest.raises(sonde.Error, match="closed"):
        trace.report()


def test_threads_get_an_answer_or_an_error(trace_path):
    """Never a race: every call either works or says that the trace is in use."""
    trace, answers = sonde.Trace(trace_path), []

    def work():
        for _ in range(20):
            try:
                answers.append("conv2d" in trace.report())
            except sonde.Error as error:
                answers.append("another thread" in str(error))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 80 and all(answers)


def test_no_leak(trace_path):
    """Thousands of open and report, also failing: resident memory stays."""
    def resident():
        return int(pathlib.Path("/proc/self/statm").read_text().split()[1])

    def turn():
        with sonde.Trace(trace_path) as trace:
            trace.report()
            with pytest.raises(sonde.Error):
                trace.report(view="nothing")

    for _ in range(50):
        turn()
    before = resident()
    for _ in range(300):
        turn()
    assert resident() - before < 512  # pages: 2 MiB


def test_module_runs_the_command_line(trace_path):
    done = subprocess.run([sys.executable, "-m", "sonde", "report", trace_path], text=True,
                          stdout=subprocess.PIPE)
    assert done.returncode == 0 and "conv2d" in done.stdout
    assert subprocess.run([sys.executable, "-m", "sonde", "nothing"],
                          stderr=subprocess.DEVNULL).returncode == 2
