# SPDX-License-Identifier: Apache-2.0
"""No test waits for ever: at its limit it fails, with what it and the processes it started were doing. And Ctrl-C is sent to
programs that do not begin with it ignored, however the tests were started. TEST_FAILURES=FILE: what failed is appended to it as it
ends, since a run of many minutes says nothing else before its end."""
import os
import signal
import threading
import traceback

import pytest

# The longest take half a minute on a quiet machine. A test whose C code does not return sees no signal: pytest
# prints its stacks later (faulthandler_timeout), and tools/test ends the run.
LIMIT = int(os.environ.get("TEST_LIMIT", "400"))

MAIN = threading.main_thread().ident

# A shell starts what runs in the background with both ignored, and so would be every program of a test.
for interruption in (signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(interruption) is signal.SIG_IGN:
        signal.signal(interruption, signal.default_int_handler)


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:  # it has ended, or is another user's
        return ""


def descendants(process):
    """With their depth: those that run, and those that have ended and nobody has waited for."""
    found = []

    def visit(parent, depth):
        for task in threads_of(parent):
            for child in read(f"/proc/{parent}/task/{task}/children").split():
                found.append((int(child), depth))
                visit(child, depth + 1)

    visit(process, 1)
    return found


def threads_of(process):
    try:
        return os.listdir(f"/proc/{process}/task")
    except OSError:
        return []


def describe(process, depth):
    """What it is, and where in the kernel each of its threads waits."""
    yield f"{'  ' * depth}{process}: {read(f'/proc/{process}/cmdline')[:300] or read(f'/proc/{process}/comm')}"
    for task in threads_of(process):
        place = f"/proc/{process}/task/{task}"
        state = read(f"{place}/stat").rpartition(") ")[2][:1]
        call = read(f"{place}/syscall").split(" ")[0]
        yield f"{'  ' * depth}  {read(f'{place}/comm')} {task}: {state}, system call {call}, {read(f'{place}/wchan')}"


def on_limit(_signal, frame):
    started = descendants(os.getpid())
    report = [f"the test has not ended after {LIMIT} s; it is at", *traceback.format_stack(frame)[-6:],
              "and had started", *(line for one in started for line in describe(*one))]
    for process, _ in started:
        try:
            os.kill(process, signal.SIGKILL)
        except OSError:
            pass
    pytest.fail("\n".join(report), pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    if threading.get_ident() != MAIN:
        return (yield)
    before = signal.signal(signal.SIGALRM, on_limit)
    signal.alarm(LIMIT)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def pytest_runtest_logreport(report):
    """In the process that the workers report to, where there are any."""
    if report.failed and os.environ.get("TEST_FAILURES") and "PYTEST_XDIST_WORKER" not in os.environ:
        with open(os.environ["TEST_FAILURES"], "a", encoding="utf-8", errors="replace") as out:
            out.write(f"== {report.nodeid} ({report.when})\n{report.longreprtext}\n")
