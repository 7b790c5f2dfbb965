"""trio: channels, threads, cancellation, and an exception group at the end."""
import trio


def square(n):
    return n * n


async def produce(send):
    async with send:
        for n in range(100):
            await send.send(await trio.to_thread.run_sync(square, n))


async def main():
    send, receive = trio.open_memory_channel(5)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(produce, send)
        print(sum([n async for n in receive]))
    with trio.move_on_after(0.01) as scope:
        await trio.sleep_forever()
    print(scope.cancelled_caught)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(fail)


async def fail():
    raise ValueError("as it should")

trio.run(main)
