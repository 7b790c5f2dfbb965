# SPDX-License-Identifier: Apache-2.0
"""multiprocessing: a pool that forks, one that spawns, a subprocess."""
import multiprocessing
import subprocess
import sys

try:
    profile
except NameError:
    def profile(function):
        return function


class Job:
    """Pickled by its name in __main__."""

    def __init__(self, n):
        self.n = n


@profile
def work(job):
    total = 0
    for i in range(job.n):
        total += digit_sum(i)
    return total


def digit_sum(n):
    return sum(map(int, str(n)))


def mix(value):
    """Long work."""
    for step in range(100):
        value = (value + step) ** 300 % 1000003
    return value


def index(n):
    """Numbers by their last digit."""
    found = {}
    for i in range(1000, 1000 + n):
        found.setdefault(i % 10, []).append(str(i))
    return found


def in_a_child():
    assert mix(mix(1)) == 34592 and len(index(20)) == 10


def alone():
    """A child that forks, and then the same here: one after the other."""
    child = multiprocessing.get_context("fork").Process(target=in_a_child)
    child.start()
    child.join()
    assert child.exitcode == 0
    in_a_child()


def main(rounds=1):
    jobs = [Job(50 + n) for n in range(12)]
    expected = sum(work(job) for job in jobs)
    for _ in range(rounds):
        for kind in ("fork", "spawn"):
            with multiprocessing.get_context(kind).Pool(2) as pool:
                assert sum(pool.map(work, jobs)) == expected
                pool.close()
                pool.join()
        alone()
        subprocess.run([sys.executable, "-c", "def inner():\n    pass\ninner()\ninner()"], check=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
