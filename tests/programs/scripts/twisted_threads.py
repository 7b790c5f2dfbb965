# SPDX-License-Identifier: Apache-2.0
"""A reactor, its pool of threads and its timers."""
import hashlib

from twisted.internet import defer, reactor, task, threads


def work(count):
    digest = hashlib.sha256()
    for _ in range(count):
        digest.update(b"x" * 100)
    return digest.hexdigest()[:8]


@defer.inlineCallbacks
def main():
    found = yield defer.gatherResults([threads.deferToThread(work, 20000 + i) for i in range(4)])
    yield task.deferLater(reactor, 0.1, lambda: None)
    print(found)
    reactor.stop()


reactor.callWhenRunning(main)
reactor.run()
