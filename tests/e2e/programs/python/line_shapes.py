# SPDX-License-Identifier: Apache-2.0
"""Functions whose lines begin and end in every way that there is; for the tests of lines."""
import asyncio
import contextlib
import threading


def helper(n):
    t = 0
    for i in range(n):
        t += i
    return t


def loop(n):
    t = 0
    for i in range(n):
        t += helper(3)
    return t


def recursive(n):
    if n < 2:
        return n
    a = recursive(n - 1)
    b = recursive(n - 2)
    return a + b


def generator(n):
    for i in range(n):
        x = yield i
        y = x
    try:
        yield -1
    finally:
        y = 1
    return y


def generators():
    g = generator(5)
    for v in g:
        if v == -1:
            break
    g.close()
    list(generator(3))
    g = generator(2)
    next(g)
    try:
        g.throw(ValueError)
    except ValueError:
        pass


def catching(n):
    for i in range(n):
        try:
            raising(i)
        except ValueError:
            t = 1
        else:
            t = 2
        finally:
            u = t
    with contextlib.suppress(KeyError):
        {}[1]
    return u


def raising(i):
    if i % 2:
        raise ValueError(
            i)
    return [j
            for j in range(i)
            if j]


def unwound():
    x = 1
    raising(x)


def comprehending(n):
    a = [i for i in range(n)]
    b = {k: v
         for k, v in
         zip(a, a)}
    f = lambda x: x + \
        1

    def nested(q):
        r = q
        return r
    c = [f(x) for x in a if nested(x)]
    d = sorted(a, key=lambda x: -x)
    while n > 0: n -= 1
    return (a,
            b, c,
            d)


async def awaiting(n):
    for i in range(n):
        await asyncio.sleep(0)
        x = i
    async with Context() as c:
        y = c
    return x, y


class Context:
    async def __aenter__(self):
        await asyncio.sleep(0)
        return 1

    async def __aexit__(self, *a):
        return None


async def async_generator(n):
    for i in range(n):
        yield i
        await asyncio.sleep(0)


async def async_for():
    t = 0
    async for v in async_generator(4):
        t += v
    return t


def never_called():
    return 1


NAMES = ("loop", "recursive", "generator", "generators", "catching", "raising", "unwound",
         "comprehending", "awaiting", "async_generator", "async_for", "never_called")


def main():
    loop(100)
    recursive(10)
    generators()
    catching(6)
    try:
        unwound()
    except ValueError:
        pass
    comprehending(10)

    async def all_at_once():
        await asyncio.gather(awaiting(3), awaiting(4), async_for())
    asyncio.run(all_at_once())
    threads = [threading.Thread(target=recursive, args=(9,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
