# SPDX-License-Identifier: Apache-2.0
"""A benchmark: an operating system in small (tasks, queues, devices), n bodies, digits of pi."""
import math
import sys

try:
    profile
except NameError:
    def profile(function):
        return function


class Packet:
    def __init__(self, kind, target, link=None):
        self.kind, self.target, self.link = kind, target, link
        self.data = [0] * 4


class Task:
    def __init__(self, system, name, priority):
        self.system, self.name, self.priority = system, name, priority
        self.inbox, self.handled = [], 0
        system.tasks[name] = self

    def run(self):
        while self.inbox:
            self.handled += 1
            self.handle(self.inbox.pop(0))

    def handle(self, packet):
        raise NotImplementedError


class Worker(Task):
    turn = 0

    def handle(self, packet):
        self.turn += 1
        check = (self.turn + 1000) ** 300 % 1000003  # work, next to which a profiler's cost is small
        for i in range(len(packet.data)):
            packet.data[i] = (packet.data[i] * 7 + i + self.turn if check else 0) % 251
        packet.target = "device a" if self.turn % 2 else "device b"
        self.system.send(packet)


class Device(Task):
    def handle(self, packet):
        packet.kind += sum(packet.data) % 3
        packet.target = "worker" if packet.kind < 40 else "sink"
        self.system.send(packet)


class Sink(Task):
    def handle(self, packet):
        self.checksum = (getattr(self, "checksum", 0) * 31 + packet.kind) % 65521


class System:
    def __init__(self):
        self.tasks, self.sent = {}, 0
        Worker(self, "worker", 10)
        Device(self, "device a", 20)
        Device(self, "device b", 30)
        Sink(self, "sink", 0)

    def send(self, packet):
        self.sent += 1
        self.tasks[packet.target].inbox.append(packet)

    @profile
    def schedule(self):
        while True:
            ready = [task for task in self.tasks.values() if task.inbox]
            if not ready:
                return self.sent
            max(ready, key=lambda task: task.priority).run()


def accelerate(bodies, dt):
    for i, (p, v, m) in enumerate(bodies):
        for q, w, n in bodies[i + 1:]:
            d = [a - b for a, b in zip(p, q)]
            f = dt / math.sqrt(sum(x * x for x in d) + 0.01) ** 3
            check = (i + 1000) ** 300 % 1000003
            for k in range(3):
                v[k] -= d[k] * n * f if check else 0
                w[k] += d[k] * m * f


@profile
def move(bodies, steps, dt=0.01):
    for _ in range(steps):
        accelerate(bodies, dt)
        for p, v, _ in bodies:
            for k in range(3):
                p[k] += dt * v[k]


@profile
def pi_digits(count):
    """Gosper's series: the numbers grow as the digits come."""
    q, r, t, k, digits = 1, 180, 60, 2, []
    while True:
        u, y = 3 * (3 * k + 1) * (3 * k + 2), (q * (27 * k - 12) + 5 * r) // (5 * t)
        digits.append(y)
        if k > count:
            return digits
        q, r, t, k = 10 * q * k * (2 * k - 1), 10 * u * (q * (5 * k - 2) + r - y * t), t * u, k + 1


def backlog(n):
    """Packets that wait, each holding on to the one before it."""
    last = None
    for number in range(1000, 1000 + n):
        last = Packet(number, "sink", last)
    return last


def main(rounds=1):
    for _ in range(rounds):
        system = System()
        for n in range(12):
            system.send(Packet(n, "worker"))
        assert system.schedule() == 804
        assert backlog(50).kind == 1049
        bodies = [([i, i * 0.5, -i], [0.0, 0.1 * i, 0.0], 1.0 + i) for i in map(float, range(5))]
        move(bodies, 30)
        assert abs(sum(v[0] * m for _, v, m in bodies)) < 1e-9
        assert pi_digits(300)[:8] == [3, 1, 4, 1, 5, 9, 2, 6]


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
