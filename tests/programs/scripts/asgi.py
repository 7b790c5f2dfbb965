"""An ASGI application, for uvicorn."""
import asyncio


def digits(n):
    return sum(int(digit) for digit in str(3 ** n))


async def application(scope, receive, send):
    if scope["type"] != "http":
        return
    await asyncio.sleep(0.001)
    body = f"{digits(2000 + int(scope['path'].strip('/')))}\n".encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})
