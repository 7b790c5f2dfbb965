# SPDX-License-Identifier: Apache-2.0
"""Threads: a pool, a queue, a relay."""
import queue
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

try:
    profile
except NameError:
    def profile(function):
        return function


def collatz(n):
    steps = 0
    while n != 1:
        n = step(n)
        steps += 1
    return steps


def step(n):
    return 3 * n + 1 if n % 2 else n // 2


@profile
def consume(source, results):
    while True:
        item = source.get()
        if item is None:
            break
        results.append(collatz(item))


@profile
def lap(baton):
    """Long work, on a number that is handed on."""
    value = baton.pop()
    for step in range(100):
        value = (value + step) ** 300 % 1000003
    baton.append(value)


def relay(runners):
    """One thread after the other: none waits for another's turn on the interpreter."""
    baton = [1]
    for _ in range(runners):
        thread = threading.Thread(target=lap, args=(baton,))
        thread.start()
        thread.join()
    return baton[0]


def path_of(n):
    """All numbers on the way to 1."""
    path = []
    while n != 1:
        n = 3 * n + 1 if n % 2 else n // 2
        path.append(n)
    return path


def in_a_thread(n):
    return collatz(n)


def main(rounds=1):
    for _ in range(rounds):
        source, results = queue.Queue(), []
        consumers = [threading.Thread(target=consume, args=(source, results)) for _ in range(3)]
        for thread in consumers:
            thread.start()
        for n in range(1, 61):
            source.put(n)
        for _ in consumers:
            source.put(None)
        for thread in consumers:
            thread.join()
        assert sum(results) == 1457
        with ThreadPoolExecutor(2) as pool:
            assert sum(pool.map(in_a_thread, range(1, 41))) == 709
            assert sum(map(len, pool.map(path_of, [27, 97]))) == 229
        assert relay(4) == 148069


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
