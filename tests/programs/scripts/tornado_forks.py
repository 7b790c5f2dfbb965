# SPDX-License-Identifier: Apache-2.0
"""Two forked servers with one socket; the first asks."""
import asyncio
import sys

import tornado.httpclient
import tornado.httpserver
import tornado.netutil
import tornado.process
import tornado.web


def squares(count):
    return sum(i * i for i in range(count))


class Answer(tornado.web.RequestHandler):
    def get(self):
        self.write(str(squares(20000)))


async def main(number, sockets):
    server = tornado.httpserver.HTTPServer(tornado.web.Application([("/", Answer)]))
    server.add_sockets(sockets)
    if number > 0:
        return await asyncio.sleep(1.5)
    client = tornado.httpclient.AsyncHTTPClient()
    port = sockets[0].getsockname()[1]
    answers = {(await client.fetch(f"http://127.0.0.1:{port}/")).body for _ in range(10)}
    print(answers, squares(3), flush=True)


def run():
    sockets = tornado.netutil.bind_sockets(0, "127.0.0.1")
    asyncio.run(main(tornado.process.fork_processes(2, max_restarts=0), sockets))
    sys.exit(0)


run()
