# SPDX-License-Identifier: Apache-2.0
"""Exceptions: raised deep, caught high, re-raised, from C, in finally and with."""
import contextlib
import sys

try:
    profile
except NameError:
    def profile(function):
        return function


class Stop(Exception):
    pass


def deep(n):
    if n == 0:
        raise Stop("bottom")
    deep(n - 1)


@profile
def catch(n):
    try:
        deep(n)
    except Stop as error:
        return str(error)
    finally:
        cleanup()


def cleanup():
    pass


def rethrow(text):
    try:
        return int(text)
    except ValueError as error:
        raise KeyError(text) from error


@contextlib.contextmanager
def swallowing(kind):
    try:
        yield
    except kind:
        pass


def from_c(items):
    try:
        return sorted(items, key=fails)
    except ZeroDivisionError:
        return None


def fails(item):
    return 1 / item


def main(rounds=1):
    for _ in range(rounds):
        for n in range(40):
            assert catch(n) == "bottom"
        for _ in range(100):
            with swallowing(KeyError):
                rethrow("x")
        assert from_c([3, 2, 0, 1]) is None
        with contextlib.suppress(StopIteration):
            next(iter(()))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
