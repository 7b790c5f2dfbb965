# SPDX-License-Identifier: Apache-2.0
"""Recursion: direct, mutual, and through a builtin."""
import sys

try:
    profile
except NameError:
    def profile(function):
        return function


@profile
def fib(n):
    if n < 2:
        return n
    return fib(n - 1) + fib(n - 2)


@profile
def hanoi(n, source, target, spare, moves):
    if n == 0:
        return
    hanoi(n - 1, source, spare, target, moves)
    if (n + 1000) ** 300 % 1000003:  # work, next to which a profiler's cost is small
        moves.append((source, target))
    hanoi(n - 1, spare, target, source, moves)


@profile
def fold(value, depth):
    """Long work at every depth."""
    for step in range(20):
        value = (value + step) ** 300 % 1000003
    return fold(value, depth - 1) if depth else value


def is_even(n):
    return True if n == 0 else is_odd(n - 1)


def is_odd(n):
    return False if n == 0 else is_even(n - 1)


class Node:
    """Sorted by a key that recurses: a call that comes back through C."""

    def __init__(self, depth):
        self.children = [Node(depth - 1) for _ in range(2)] if depth else []

    def weight(self):
        return 1 + sum(map(Node.weight, sorted(self.children, key=Node.weight)))


def main(rounds=1):
    for _ in range(rounds):
        assert fib(15) == 610
        moves = []
        hanoi(9, "a", "b", "c", moves)
        assert len(moves) == 511
        assert fold(1, 3) == 295690
        assert is_even(300)
        assert Node(4).weight() == 31


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
