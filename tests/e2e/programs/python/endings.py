# SPDX-License-Identifier: Apache-2.0
"""Works, for so many seconds more if told, and then ends in the way that its argument names."""
import os
import signal
import sys
import time


def work(n):
    total = 0
    for i in range(n):
        total += len(bytes(i))
    return total


def fail(n):
    if n == 0:
        raise ValueError("as asked")
    fail(n - 1)


def die(number):
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


ENDS = {
    "return": lambda: None,
    "raise": lambda: fail(3),
    "hook": lambda: (setattr(sys, "excepthook", lambda *error: print("hook", error[1])), fail(1)),
    "exit": lambda: sys.exit(3),
    "exit-text": lambda: sys.exit("a last word"),
    "_exit": lambda: os._exit(4),
    "interrupt": lambda: os.kill(os.getpid(), signal.SIGINT),
    "sigint": lambda: die(signal.SIGINT),
    "sigterm": lambda: os.kill(os.getpid(), signal.SIGTERM),
    "sigkill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "abort": os.abort,
    "exec": lambda: os.execv(sys.executable, [sys.executable, "-c", "raise SystemExit(5)"]),
    "exec-other": lambda: os.execv("/bin/sh", ["sh", "-c", "exit 6"]),
    "fork": lambda: os.waitpid(os.fork() or os._exit(len(str(work(500)))), 0),
}


def main():
    for _ in range(20):
        work(2000)
    end = time.monotonic() + float(sys.argv[2]) if len(sys.argv) > 2 else 0
    while time.monotonic() < end:
        work(2000)
    sys.stdout.flush()
    ENDS[sys.argv[1]]()


if __name__ == "__main__":
    main()
