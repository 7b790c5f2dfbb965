# SPDX-License-Identifier: Apache-2.0
"""Plain Python: recursion, a generator, an exception, C functions, code in no file, memory, a thread.

work.py [SECONDS]: for how long it is busy (0.1).
"""
import sys
import threading
import time


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def squares(n):
    for i in range(n):
        yield i * i


def grow(size):
    kept = [0] * size
    text = "x" * size
    del kept
    return len(text)


def fails():
    raise ValueError("on purpose")


def wait():
    time.sleep(0.05)


def spin(seconds):
    end = time.perf_counter() + seconds
    total = 0
    while time.perf_counter() < end:
        total += sum(squares(100))
    return total


def main():
    fibonacci(8)
    sorted(squares(20), key=lambda value: -value)
    for size in (100000, 200000):
        grow(size)
    try:
        fails()
    except ValueError:
        pass
    exec(compile("def made(n):\n    return n + 1\nmade(1)\n", "<made>", "exec"), {})
    thread = threading.Thread(target=wait, name="waiter")
    thread.start()
    spin(float(sys.argv[1]) if len(sys.argv) > 1 else 0.1)
    thread.join()


if __name__ == "__main__":
    main()
