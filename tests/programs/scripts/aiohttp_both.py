"""aiohttp's server and client in one process."""
import asyncio

from aiohttp import ClientSession, web


async def answer(request):
    await asyncio.sleep(0.001)
    return web.json_response({"double": 2 * int(request.match_info["n"])})


async def main():
    app = web.Application()
    app.router.add_get("/{n}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = site._server.sockets[0].getsockname()[1]

    async def ask(session, n):
        async with session.get(f"http://127.0.0.1:{port}/{n}") as response:
            return (await response.json())["double"]

    async with ClientSession() as session:
        print(sorted(await asyncio.gather(*(ask(session, n) for n in range(100)))))
    await runner.cleanup()

asyncio.run(main())
