# SPDX-License-Identifier: Apache-2.0
"""Some bodies that attract each other: a Python program to profile as it is.

    sonde run --functions --print -- python bodies.py
    sonde run --lines accelerate --print -- python bodies.py
    sonde run --sample 500 --print -- python bodies.py
"""
import math


class Body:
    def __init__(self, place, mass):
        self.place, self.speed, self.mass = list(place), [0.0, 0.0, 0.0], mass

    def move(self, dt):
        for k in range(3):
            self.place[k] += dt * self.speed[k]


def pairs(bodies):
    for i, a in enumerate(bodies):
        for b in bodies[i + 1:]:
            yield a, b


def accelerate(a, b, dt):
    apart = [p - q for p, q in zip(a.place, b.place)]
    pull = dt / (math.hypot(*apart) + 0.1) ** 3
    for k in range(3):
        a.speed[k] -= apart[k] * b.mass * pull
        b.speed[k] += apart[k] * a.mass * pull


def main(steps=16000, dt=0.00025):
    bodies = [Body((math.cos(i), math.sin(i), i / 10), 1 + i) for i in range(6)]
    history = []
    for _ in range(steps):
        for a, b in pairs(bodies):
            accelerate(a, b, dt)
        for body in bodies:
            body.move(dt)
        history.append([tuple(body.place) for body in bodies])
    print(f"the first body is at {', '.join(f'{x:.3f}' for x in history[-1][0])}")


if __name__ == "__main__":
    main()
