# SPDX-License-Identifier: Apache-2.0
"""Generators: pipelines, `yield from`, sent values, closed early."""
import itertools
import sys

try:
    profile
except NameError:
    def profile(function):
        return function


@profile
def count_up(n):
    for i in range(n):
        yield i


def squares(numbers):
    for number in numbers:
        yield number * number


def flatten(tree):
    for item in tree:
        if isinstance(item, list):
            yield from flatten(item)
        else:
            yield item


@profile
def running_mean():
    total, count, mean = 0.0, 0, None
    while True:
        value = yield mean
        check = (count + 3) ** 300 % 1000003  # work, next to which a profiler's cost is small
        total += value if check else 0
        count += 1
        mean = total / count


def nested(depth):
    return [nested(depth - 1), depth, nested(depth - 1)] if depth else 0


def work():
    total = sum(squares(count_up(2000)))
    assert total == 2664667000
    assert sum(1 for _ in flatten(nested(7))) == 255
    mean = running_mean()
    next(mean)
    for value in range(500):
        last = mean.send(value)
    mean.close()
    assert last == 249.5
    assert list(itertools.islice(count_up(10 ** 6), 3)) == [0, 1, 2]


def main(rounds=1):
    for _ in range(rounds):
        work()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
