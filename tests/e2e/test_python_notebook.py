# SPDX-License-Identifier: Apache-2.0
"""%load_ext sonde, in IPython and in a notebook's kernel."""
import pickle
import re

import pytest

interactive = pytest.importorskip("IPython.core.interactiveshell",
                                  reason="IPython is not installed: the magics are its")

CELL = '''import time

def slow(n):
    kept = []
    for i in range(n):
        kept.append(bytes(10000))
    return kept

def spin(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass
'''


@pytest.fixture
def shell(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shell = interactive.InteractiveShell.instance()
    shell.run_line_magic("load_ext", "sonde")
    shell.reset(new_session=False)
    run(shell, CELL)
    capsys.readouterr()
    yield shell
    interactive.InteractiveShell.clear_instance()


def run(shell, text):
    done = shell.run_cell(text)
    done.raise_error()
    return done.result


def test_functions_as_prun(shell, capsys):
    run(shell, "%sonde -s ncalls slow(50)")
    text = capsys.readouterr().out
    assert "function calls" in text and re.search(r"^ +1 .*\(slow\)$", text, re.M)
    assert re.search(r"^ +50 .*\{method 'append' of 'list' objects\}$", text, re.M)


def test_only_the_statements_own_calls(shell, capsys):
    """Neither those of the magic, nor IPython's."""
    run(shell, "%sonde spin(0)")
    text = capsys.readouterr().out
    names = re.findall(r"(\([^()]*\)|\{.*\})$", text, re.M)
    assert set(names) == {"(function)", "(<module>)", "(spin)",
                          "{built-in method time.perf_counter}"}


def test_a_cell_and_what_it_leaves(shell, capsys):
    run(shell, "%%sonde --lines slow --sample 500\nleft = len(slow(20))\nspin(0.3)\n")
    text = capsys.readouterr().out
    assert "Function: slow at line 3" in text and "kept.append(bytes(10000))" in text
    assert "spin" in text and run(shell, "left") == 20


def test_a_file_too(shell, capsys):
    import pstats
    run(shell, "%sonde -o calls.prof slow(5)")
    assert any(key[2] == "slow" for key in pstats.Stats("calls.prof").stats)
    run(shell, "%sonde -o calls.sonde slow(5)")
    import sonde
    assert "slow" in sonde.Trace("calls.sonde").report(view="functions")


def test_lprun_is_line_profilers(shell, capsys):
    """The same text but for the times; the same file; the same words."""
    run(shell, "%lprun -f slow -D ours.lprof -T ours.txt -u 1e-6 -z slow(30)")
    ours = capsys.readouterr().out
    assert "*** Profile stats pickled to file 'ours.lprof'." in ours
    assert "*** Profile printout saved to text file 'ours.txt'." in ours
    with open("ours.lprof", "rb") as file:
        (lines,) = pickle.load(file).timings.values()
    assert [(line, hits) for line, hits, _ in lines] == [(4, 1), (5, 31), (6, 30), (7, 1)]
    table = open("ours.txt").read()
    assert table.strip() in ours
    peer = pytest.importorskip("line_profiler", reason="line_profiler is not installed: the oracle")
    profile = peer.LineProfiler(shell.user_ns["slow"])
    profile.runctx("slow(30)", shell.user_ns, shell.user_ns)
    profile.print_stats(output_unit=1e-6)

    def masked(text):
        text = re.sub(r"Total time: \S+ s", "Total time", text)
        rows = [line.split() for line in text.strip().splitlines()]
        return [words[:2] + words[5:] if words[:1] and words[0].isdigit() and len(words) > 5
                else words for words in rows]

    assert masked(table) == masked(capsys.readouterr().out)


def test_lprun_of_a_module_and_what_it_returns(shell, capsys):
    assert run(shell, "import textwrap\n%lprun -m textwrap textwrap.dedent('  a')") is None
    assert "Function: dedent" in capsys.readouterr().out
    session = run(shell, "%lprun -r -f slow slow(2)")
    assert "slow" in session.report()


def test_lprun_says_what_is_wrong(shell, capsys):
    shell.run_cell("%lprun -f nothing slow(2)")
    assert "Could not find function nothing" in capsys.readouterr().err
    shell.run_cell("%lprun -m nothing_at_all slow(2)")
    assert "Could not find module nothing_at_all" in capsys.readouterr().err
    run(shell, "%lprun -f slow slow(2); raise SystemExit")
    assert "*** SystemExit exception caught in code being profiled." in capsys.readouterr().out


def test_mprun(shell, capsys):
    run(shell, "%mprun -f slow -T ours.txt slow(200)")
    text = capsys.readouterr().out
    assert "Line #    Mem usage    Increment  Occurrences   Line Contents" in text
    row = re.search(r"^ +6 +\S+ MiB +(\S+) MiB +200 +kept\.append", text, re.M)
    assert abs(float(row.group(1)) - 200 * 10033 / 2 ** 20) < 0.15, text
    assert open("ours.txt").read().strip() in text


def test_memit(shell, capsys):
    result = run(shell, "%memit -o bytes(50 << 20)")
    text = capsys.readouterr().out
    found = re.match(r"peak memory: (\S+) MiB, increment: (\S+) MiB\n", text)
    assert 49.9 < float(found.group(2)) < 51 and float(found.group(1)) > float(found.group(2))
    assert repr(result).startswith("<MemitResult : peak memory:")
    run(shell, "%%memit -r 2 data = bytes(30 << 20)\nmore = data + b'x'\n")
    found = re.match(r"peak memory: \S+ MiB, increment: (\S+) MiB\n", capsys.readouterr().out)
    assert 29.9 < float(found.group(1)) < 62


def test_decorated_in_the_cell(shell, capsys):
    run(shell, "%%sonde --lines slow\n@profile\ndef here(n):\n    return n + 1\nhere(1)\n"
               "@profile\ndef there(n):\n    return n + 2\nthere(1)\n")
    text = capsys.readouterr().out
    assert "Function: here at line" in text and "    return n + 1" in text
    assert "Function: there at line" in text and "    return n + 2" in text


def test_errors_of_the_cell_are_its_own(shell, capsys):
    with pytest.raises(ZeroDivisionError):
        run(shell, "%sonde 1 / 0")
    run(shell, "%sonde slow(3)")  # and the next works
    assert "slow" in capsys.readouterr().out


def test_in_a_real_kernel(tmp_path):
    """Through the wire: a table for the notebook, and the text beside it."""
    pytest.importorskip("ipykernel", reason="ipykernel is not installed: no notebook to run in")
    client = pytest.importorskip("jupyter_client", reason="jupyter_client is not installed")
    import sys
    manager = client.KernelManager()
    manager.kernel_spec.argv = [sys.executable, "-m", "ipykernel_launcher", "-f",
                                "{connection_file}"]
    manager.start_kernel(cwd=str(tmp_path))
    kernel = manager.blocking_client()
    try:
        kernel.start_channels()
        kernel.wait_for_ready(timeout=60)
        shown = []

        def collect(message):
            if message["msg_type"] in ("display_data", "error"):
                shown.append(message["content"])

        for text in ("%load_ext sonde", CELL, "%lprun -f slow slow(10)", "%sonde slow(10)"):
            reply = kernel.execute_interactive(text, timeout=60, output_hook=collect)
            assert reply["content"]["status"] == "ok", reply["content"]
    finally:
        kernel.stop_channels()
        manager.shutdown_kernel(now=True)
    lines, functions = (content["data"] for content in shown)
    assert "kept.append(bytes(10000))" in lines["text/plain"]
    assert "<table>" in lines["text/html"] and "kept.append(bytes(10000))" in lines["text/html"]
    assert "<table>" in functions["text/html"] and "slow" in functions["text/html"]
