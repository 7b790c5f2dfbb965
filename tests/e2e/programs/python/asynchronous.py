# SPDX-License-Identifier: Apache-2.0
"""async: tasks that wait for each other, an async generator, a context manager."""
import asyncio
import sys

try:
    profile
except NameError:
    def profile(function):
        return function


class Gate:
    async def __aenter__(self):
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *_):
        await asyncio.sleep(0)


def compute(n):
    return sum(i * i for i in range(n))


@profile
async def worker(queue, results):
    while True:
        job = await queue.get()
        if job is None:
            return
        async with Gate():
            results.append(compute(job))


@profile
async def digest(value):
    """Long work, which lets the others have their turn."""
    for step in range(100):
        value = (value + step) ** 300 % 1000003
        if step % 10 == 9:
            await asyncio.sleep(0)
    return value


@profile
async def collect(n):
    """Rows that come in one by one, while other coroutines have theirs."""
    found = []
    for i in range(n):
        await asyncio.sleep(0)
        found.append({"number": i + 1000, "text": str(i + 1000)})
    return found


async def ticks(n):
    for i in range(n):
        await asyncio.sleep(0)
        yield i


async def session(jobs):
    queue, results = asyncio.Queue(maxsize=4), []
    workers = [asyncio.ensure_future(worker(queue, results)) for _ in range(3)]
    async for job in ticks(jobs):
        await queue.put(100 + job)
    for _ in workers:
        await queue.put(None)
    await asyncio.gather(*workers)
    assert await asyncio.gather(*map(digest, range(3))) == [897842, 997790, 978868]
    assert list(map(len, await asyncio.gather(collect(20), collect(30)))) == [20, 30]
    await asyncio.sleep(0.01)
    return results


def main(rounds=1):
    for _ in range(rounds):
        results = asyncio.run(session(60))
        assert len(results) == 60


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
