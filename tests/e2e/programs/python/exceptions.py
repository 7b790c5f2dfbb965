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


@profile
def settle(value):
    """Every second step fails, after work."""
    failures = 0
    for step in range(30):
        try:
            value = (value + step) ** 300 % 1000003
            value -= value // (step % 2)
        except ZeroDivisionError:
            failures += 1
    return failures


def caught(n):
    """Errors that are kept, with the frames that they came through."""
    errors = []
    for _ in range(n):
        try:
            deep(3)
        except Stop as error:
            errors.append(error)
    return errors


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
        assert settle(1) == 15
        assert len(caught(10)) == 10
        assert from_c([3, 2, 0, 1]) is None
        with contextlib.suppress(StopIteration):
            next(iter(()))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
