# SPDX-License-Identifier: Apache-2.0
"""Shell completion, made from the tables; and help that cannot be written."""
import os
import pty
import re
import select
import shutil
import subprocess

import pytest

from cli_tools import SONDE, needs_tools, read, sonde

pytestmark = needs_tools


def complete(tmp_path, *words):
    """What bash offers for the last of the words."""
    script = tmp_path / "sonde.bash"
    script.write_bytes(read("completion", "bash"))
    text = (f"source {script}; COMP_WORDS=(sonde \"$@\"); COMP_CWORD=$#; _sonde; "
            "printf '%s\\n' \"${COMPREPLY[@]}\"")
    done = subprocess.run(["bash", "--norc", "-uc", text, "bash", *words], capture_output=True, text=True)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize("words, some, others", [
    (["re"], ["report"], ["run"]),
    ([""], ["run", "report", "export", "help", "completion"], []),
    (["help", "ex"], ["export"], []),
    (["report", "--vi"], ["--view"], ["--sort"]),
    (["run", "--pr"], ["--print"], []),
    (["report", "--view", "li"], ["lines", "line-memory"], ["ops"]),
    (["export", "--to", "sp"], ["speedscope"], []),
    (["export", "-t", "chr"], ["chrome"], []),
    (["run", "--", "prog", "--pr"], [], ["--print"]),
])
def test_bash(tmp_path, words, some, others):
    found = complete(tmp_path, *words)
    assert set(some) <= set(found) and not set(others) & set(found), found


def test_bash_has_every_option(tmp_path):
    for command in read("--help").decode().split("commands:\n")[1].split("\n\n")[0].splitlines():
        name = command.split()[0]
        if name == "help":
            continue
        listed = [word for line in read(name, "--help").decode().splitlines()
                  if line.startswith(("  -", "      --")) for word in re.split(r"[\[ ]+", line.strip())[:2] if word.startswith("--")]
        assert set(complete(tmp_path, name, "--")) == {"--help", *listed}, name


@pytest.mark.skipif(not shutil.which("zsh"), reason="zsh is not installed (tools/setup test)")
def test_zsh(tmp_path):
    """In a shell on a terminal of its own, as a person presses Tab."""
    (tmp_path / "_sonde").write_bytes(read("completion", "zsh"))
    assert subprocess.run(["zsh", "-n", tmp_path / "_sonde"], capture_output=True).stderr == b""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvpe("zsh", ["zsh", "-f", "-i"], {**os.environ, "TERM": "dumb"})
    text = b""

    def type_and_read(keys, wanted):
        nonlocal text
        text = b""
        os.write(terminal, keys)
        while wanted not in text:
            assert select.select([terminal], [], [], 20)[0], text
            text += os.read(terminal, 4096)

    type_and_read(f"PS1=; fpath=({tmp_path} $fpath); autoload -U compinit; compinit -u -d {tmp_path}/dump; "
                  'sonde() { print -r -- "<$*>" }; print rea""dy\n'.encode(), b"ready")
    type_and_read(b"sonde repo\t--vie\tthrea\t\n", b"<report --view=threads>")
    type_and_read(b"sonde export -t speed\t\n", b"<export -t speedscope>")
    type_and_read(b"sonde run --keep-\t\n", b"<run --keep-last>")
    os.write(terminal, b"exit\n")
    os.close(terminal)
    os.waitpid(pid, 0)


@pytest.mark.parametrize("words", [["--help"], ["help"], ["help", "run"], ["run", "--help"], ["--version"],
                                   ["completion", "bash"], ["export", "--list"]])
def test_help_that_cannot_be_written_is_a_failure(words):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([SONDE, *words], stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert done.stderr.count(b"\n") == 1 and b"No space left on device" in done.stderr


def test_a_trace_is_not_read_from_standard_input():
    for command in ("report", "check"):
        done = sonde(command, "-")
        assert done.returncode == 2 and b"cannot read a trace from standard input" in done.stderr
