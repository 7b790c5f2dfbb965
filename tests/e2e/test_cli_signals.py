# SPDX-License-Identifier: Apache-2.0
"""sonde run and signals: the program gets each once, stops and goes on as if it ran alone."""
import os
import pathlib
import pty
import select
import signal
import subprocess
import sys
import time

import pytest

from cli_tools import SONDE, WORKER, needs_worker

pytestmark = needs_worker
PATIENCE = 20


def wait_until(happened, what):
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < deadline, what
        time.sleep(0.005)


def state(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def program_of(sonde, name="e2e_worker"):
    """The process that `sonde run` runs; helpers of its own have its name."""
    for pid in pathlib.Path(f"/proc/{sonde}/task/{sonde}/children").read_text().split():
        if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() == name:
            return int(pid)
    raise AssertionError("no program")


class Terminal:
    """A program on a terminal of its own, whose session it leads unless a shell is between."""

    def __init__(self, folder, *command):
        self.text = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execv(command[0], command)

    def read_until(self, words):
        deadline = time.monotonic() + PATIENCE
        while words not in self.text:
            assert select.select([self.fd], [], [], deadline - time.monotonic())[0], self.text
            try:
                self.text += os.read(self.fd, 4096)
            except OSError:
                break
        assert words in self.text, self.text

    def type(self, keys):
        os.write(self.fd, keys)

    def wait_for_foreground(self, group):
        """Keys that make signals go to the group that the terminal has in its foreground."""
        wait_until(lambda: os.tcgetpgrp(self.fd) == group, self.text)

    def wait(self):
        deadline = time.monotonic() + PATIENCE
        while True:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            assert time.monotonic() < deadline, self.text
            time.sleep(0.005)


def start_waiting(folder, **extra):
    process = subprocess.Popen([SONDE, "run", "-q", "--", WORKER, "wait"], cwd=folder, text=True,
                               stdout=subprocess.PIPE, **extra)
    assert process.stdout.readline() == "ready\n"
    return process


def finish(process):
    """The signals that the program got, up to the SIGTERM that ends it here."""
    process.send_signal(signal.SIGTERM)
    text = process.stdout.read().split()
    process.stdout.close()
    assert process.wait(timeout=PATIENCE) == 0
    return [int(word) for word in text]


def test_a_terminals_interrupt_arrives_once(tmp_path):
    terminal = Terminal(tmp_path, SONDE, "run", "--", WORKER, "wait")
    terminal.read_until(b"ready")
    for count in (1, 2, 3):
        terminal.type(b"\x03")
        terminal.read_until(b"^C2\r\n" * count)
        time.sleep(0.05)  # a second one would come at once
    os.kill(terminal.pid, signal.SIGTERM)
    terminal.read_until(b"15\r\n")
    terminal.read_until(b"next: sonde report")
    assert terminal.wait() == 0
    assert terminal.text.count(b"2\r\n") == 3, terminal.text


def test_a_signal_to_the_group_arrives_once(tmp_path):
    process = start_waiting(tmp_path, start_new_session=True)
    for number in (signal.SIGINT, signal.SIGUSR1, signal.SIGINT, signal.SIGHUP):
        os.killpg(process.pid, number)
        assert process.stdout.readline() == f"{int(number)}\n"
    time.sleep(0.05)  # what sonde would pass on
    assert finish(process) == [signal.SIGTERM]


def test_signals_to_the_group_in_quick_succession_arrive_once(tmp_path):
    """The next comes as soon as the program has the one before: sonde is still at work on that."""
    process = start_waiting(tmp_path, start_new_session=True)
    for number in [signal.SIGINT, signal.SIGINT, signal.SIGUSR1] * 40:
        os.killpg(process.pid, number)
        assert process.stdout.readline() == f"{int(number)}\n"
    time.sleep(0.05)  # what sonde would pass on
    assert finish(process) == [signal.SIGTERM]


def test_a_signal_to_sonde_alone_is_passed_on(tmp_path):
    """By a process of its own group, as a script's `kill $!` is."""
    process = start_waiting(tmp_path)
    for number in (signal.SIGINT, signal.SIGUSR1, signal.SIGINT, signal.SIGHUP):
        process.send_signal(number)
        assert process.stdout.readline() == f"{int(number)}\n"
    assert finish(process) == [signal.SIGTERM]


def test_a_hangup_of_the_session_leader_reaches_the_program(tmp_path):
    """As `ssh -t host sonde run ..`: the kernel tells the leader alone."""
    said = tmp_path / "said"
    os.mkfifo(said)
    program = ("import signal, sys, os\n"
               "out = os.open(sys.argv[1], os.O_WRONLY)\n"
               "def end(number, frame):\n"
               "    os.write(out, b'hangup'); sys.exit(0)\n"
               "signal.signal(signal.SIGHUP, end)\n"
               "os.write(out, b'ready ')\n"
               "while True: signal.pause()\n")
    terminal = Terminal(tmp_path, SONDE, "run", "-o", "x.sonde", "--", sys.executable, "-c",
                        program, str(said))
    with open(said, "rb") as out:
        assert out.read(6) == b"ready "
        os.close(terminal.fd)
        assert out.read() == b"hangup"
    terminal.wait()
    # Its name is final though the terminal is gone.
    assert {entry.name for entry in tmp_path.iterdir()} == {"said", "x.sonde"}


def test_what_comes_while_the_trace_is_settled_waits(tmp_path):
    """A hangup that is sent again and again from the moment the program ends."""
    for _ in range(5):
        process = start_waiting(tmp_path, start_new_session=True)
        process.send_signal(signal.SIGTERM)
        while process.poll() is None:
            os.killpg(process.pid, signal.SIGHUP)
        process.stdout.close()
        assert [entry.name for entry in tmp_path.iterdir()] == ["e2e_worker.sonde"]
        assert (tmp_path / "e2e_worker.sonde").is_file()


STOPS = "import os, signal; print('ready', flush=True); os.kill(os.getpid(), signal.SIGSTOP); " \
        "print('on', flush=True)"


@pytest.mark.parametrize("who", ["both", "sonde", "program"])
def test_a_program_that_stops_stops_us(tmp_path, who):
    process = subprocess.Popen([SONDE, "run", "-q", "--", sys.executable, "-c", STOPS], text=True,
                               cwd=tmp_path, stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout.readline() == "ready\n"
    wait_until(lambda: state(process.pid) == "T", "sonde is not stopped")
    if who == "both":
        os.killpg(process.pid, signal.SIGCONT)
    elif who == "sonde":
        process.send_signal(signal.SIGCONT)
    else:
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
        for pid in children.split():
            if "signal.SIGSTOP" in pathlib.Path(f"/proc/{pid}/cmdline").read_text():
                os.kill(int(pid), signal.SIGCONT)
    assert process.stdout.readline() == "on\n"
    assert process.wait(timeout=PATIENCE) == 0
    process.stdout.close()


def test_a_program_that_ignores_the_terminals_stop_keeps_us(tmp_path):
    program = ("import signal; signal.signal(signal.SIGTSTP, signal.SIG_IGN)\n"
               "print('ready', flush=True); print('got', input(), flush=True)")
    shell = f"{SONDE} run -q -- {sys.executable} -c \"{program}\"; echo status $?"
    terminal = Terminal(tmp_path, "/bin/bash", "--norc", "-mc", shell)
    terminal.read_until(b"ready")
    terminal.type(b"\x1a")  # Ctrl-Z
    terminal.type(b"words\n")
    terminal.read_until(b"got words")
    terminal.read_until(b"status 0")
    assert terminal.wait() == 0


def test_the_terminals_stop_gives_the_shell_back(tmp_path):
    """And `fg` goes on."""
    shell = f"{SONDE} run -q -- {WORKER} wait; echo stopped $?; fg; echo status $?"
    terminal = Terminal(tmp_path, "/bin/bash", "--norc", "-imc", shell)
    terminal.read_until(b"ready")
    sonde = os.tcgetpgrp(terminal.fd)
    terminal.type(b"\x1a")
    terminal.read_until(b"stopped 148")
    terminal.wait_for_foreground(sonde)  # fg
    terminal.type(b"\x03")
    terminal.read_until(b"2\r\n")
    terminal.type(b"\x03")
    os.kill(program_of(sonde), signal.SIGTERM)
    terminal.read_until(b"status 0")
    terminal.wait()
