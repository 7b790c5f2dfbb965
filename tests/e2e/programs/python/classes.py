# SPDX-License-Identifier: Apache-2.0
"""Classes: properties, descriptors, operators, metaclasses, super(), __slots__."""
import functools
import sys

try:
    profile
except NameError:
    def profile(function):
        return function


class Registry(type):
    known = []

    def __new__(mcs, name, bases, space):
        made = super().__new__(mcs, name, bases, space)
        mcs.known.append(made)
        return made


class Positive:
    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, instance, owner=None):
        return getattr(instance, self.name)

    def __set__(self, instance, value):
        if value < 0:
            raise ValueError(value)
        setattr(instance, self.name, value)


class Vector:
    __slots__ = ("x", "y")

    def __init__(self, x, y):
        self.x, self.y = x, y

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y)

    def __eq__(self, other):
        return (self.x, self.y) == (other.x, other.y)

    @property
    def norm(self):
        return self.x * self.x + self.y * self.y


class Residue:
    """A number modulo a prime; to raise it is long work."""

    def __init__(self, value):
        self.value = value

    @profile
    def __pow__(self, times):
        value = self.value
        for step in range(times):
            value = (value + step) ** 300 % 1000003
        return Residue(value)


class Path:
    """Points, each an object of its own."""

    def __init__(self, length):
        self.points = []
        for i in range(length):
            self.points.append(Vector(i + 1000, i + 0.5))
        self.named = {f"point {i}": point for i, point in enumerate(self.points)}


class Account(metaclass=Registry):
    balance = Positive()

    def __init__(self, balance):
        self.balance = balance

    def pay(self, amount):
        self.balance = self.balance - amount

    @classmethod
    def empty(cls):
        return cls(0)

    @staticmethod
    def fee(amount):
        return amount // 100


class Savings(Account):
    @profile
    def pay(self, amount):
        super().pay(amount + self.fee(amount))
        self.note(amount)

    @functools.lru_cache(maxsize=None)
    def note(self, amount):
        return f"paid {amount}"


def main(rounds=1):
    for _ in range(rounds):
        total = Vector(0, 0)
        for i in range(300):
            total = total + Vector(i, 1)
        assert total == Vector(44850, 300) and total.norm == 2011612500
        assert (Residue(1) ** 100).value == 997790 and len(Path(20).named) == 20
        account = Savings(100000)
        for amount in range(200):
            account.pay(amount)
        assert account.balance == 100000 - 19900 - 100
        assert Account.empty().balance == 0 and len(Registry.known) == 2


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
