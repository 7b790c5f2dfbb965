"""gevent's WSGI server, and urllib as its client, by greenlets."""
from gevent import monkey
monkey.patch_all()

import urllib.request

import gevent
from gevent.pywsgi import WSGIServer
from wsgi import application


def ask(n):
    return int(urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/{n}").read())


server = WSGIServer(("127.0.0.1", 0), application, log=None)
server.start()
print(sorted(job.value for job in gevent.joinall([gevent.spawn(ask, n) for n in range(40)])))
server.stop()
