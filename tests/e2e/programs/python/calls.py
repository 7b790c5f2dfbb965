# SPDX-License-Identifier: Apache-2.0
"""Small programs of many kinds of call, each the same however often it is run."""
import asyncio
import functools
import re
import threading
import time


def recursion():
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)
    fib(12)


def mutual_recursion():
    def even(n):
        return n == 0 or odd(n - 1)

    def odd(n):
        return n != 0 and even(n - 1)
    even(30)
    odd(7)

    def third(n):
        return 0 if n <= 0 else even(3) + first(n - 1) + second(n - 2)

    def second(n):
        return third(n - 1)

    def first(n):
        return second(n - 1) + third(n - 2)
    first(8)


def comprehensions():
    rows = [
        [column * row for column in range(5)]
        for row in range(6)]
    table = {index: {value for value in row if value % 2} for index, row in enumerate(rows)}
    sum([len(values) for values in table.values()])
    [str(value) for row in rows for value in row]


def nested_on_one_line():
    return (lambda rows: [(lambda row: [(lambda each: each * 2)(each) for each in row])(row) for row in rows])([[1, 2], [3]])


class Base:
    def __init__(self, value):
        self.value = value

    @property
    def double(self):
        return self.value * 2

    @classmethod
    def of(cls, value):
        return cls(value)

    @staticmethod
    def zero():
        return 0

    def __add__(self, other):
        return type(self)(self.value + other.value)

    def __eq__(self, other):
        return self.value == other.value

    def __hash__(self):
        return hash(self.value)

    def __len__(self):
        return self.value

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return name

    def __call__(self, *args):
        return len(args)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return True


class Derived(Base):
    def __init__(self, value):
        super().__init__(value)
        self.more = [value]

    def __repr__(self):
        return f"Derived({self.value})"


def classes():
    a, b = Derived(1), Derived.of(2)
    c = a + b
    len({a, b, c})
    c == Derived(3)
    repr(c)
    len(c)
    c.double + c.zero()
    c.anything
    c(1, 2)
    with c:
        raise KeyError
    sorted([c, b, a], key=lambda each: each.value)
    min([a, b], key=Base.__len__)


def exceptions():
    def fail(depth):
        if depth == 0:
            raise ValueError("here")
        fail(depth - 1)

    def catch():
        try:
            fail(5)
        except ValueError:
            return True
        finally:
            len("finally")

    def through():
        try:
            int("no number")
        except ValueError:
            pass
        try:
            {}["missing"]
        except KeyError as error:
            str(error)
    for _ in range(3):
        catch()
        through()


def builtins():
    words = "the quick brown fox".split()
    words.append("jumps")
    words.sort(key=str.upper)
    " ".join(reversed(words))
    list(map(len, words))
    functools.reduce(lambda a, b: a + len(b), words, 0)
    re.sub(r"o", lambda found: found.group().upper(), "foo boo")
    max(words, key=lambda word: (len(word), word))
    divmod(7, 3)
    isinstance(words, list)
    dict.fromkeys(words).items()


@functools.lru_cache(maxsize=None)
def cached(n):
    return n if n < 2 else cached(n - 1) + cached(n - 2)


def callbacks():
    cached.cache_clear()
    cached(20)
    sorted(range(10), key=lambda n: -n)
    list(filter(lambda n: n % 3, range(9)))


def generators():
    def count(n):
        for i in range(n):
            yield i

    def chained(n):
        yield from count(n)
        yield -1

    def receives():
        got = yield
        while got:
            got = yield got * 2
    list(chained(4))
    sum(count(3))
    g = receives()
    next(g)
    g.send(1)
    g.send(2)
    g.close()
    unfinished = count(5)
    next(unfinished)
    try:
        unfinished.throw(KeyError)
    except KeyError:
        pass


async def leaf(n):
    await asyncio.sleep(0.03)  # some of it has passed when the coroutine is suspended
    return n


async def branch():
    await leaf(1)
    return await asyncio.gather(leaf(2), leaf(3))


async def stream():
    for i in range(3):
        await asyncio.sleep(0)
        yield i


async def consume():
    return [value async for value in stream()] + await branch()


def coroutines():
    asyncio.run(consume())


async def ticks(count):
    for i in range(count):
        await asyncio.sleep(0.03)
        yield i


async def takes_ticks():
    async for _ in ticks(3):
        time.sleep(0.15)


def ticking():
    asyncio.run(takes_ticks())


def busy(n):
    total = 0
    for i in range(n):
        total += step(i)
    return total


def step(i):
    return i & 3


def threads():
    workers = [threading.Thread(target=busy, args=(100,)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


# What cProfile counts right. In the others it counts a resumption as a call, or sees one thread.
PLAIN = [recursion, mutual_recursion, comprehensions, classes, exceptions, builtins, callbacks]
