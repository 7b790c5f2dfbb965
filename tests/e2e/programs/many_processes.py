# SPDX-License-Identifier: Apache-2.0
"""many_processes.py TRACE COUNT: forks COUNT processes, each of which records steps, ranges, memory and counters."""
import ctypes
import os
import sys

from sonde import _record

STEPS = 4


class Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_uint16), ("index", ctypes.c_uint16)]


def work(rank, recorder):
    device = Device(0, 0xffff)
    for step in range(STEPS):
        _record.step(step)
        _record.begin("forward")
        for layer in range(6):
            _record.begin(f"layer{layer % 3}")
            address = ctypes.c_void_p(4096 * (1 + layer % 4))
            recorder.sonde_alloc(device, address, ctypes.c_uint64(100 * (layer + rank + 1)))
            if layer % 2:
                recorder.sonde_free(device, address, ctypes.c_uint64(0))
            _record.end()
        _record.end()
        if rank % 8 == step:
            sum(range(200_000))  # a step that takes longer
        _record.counter("loss", 1 / (step + 1))


def main(trace, count):
    recorder = ctypes.CDLL(_record.library())
    _record.start(trace)
    children = []
    for rank in range(count):
        child = os.fork()
        if child == 0:
            work(rank, recorder)
            os._exit(0)
        children.append(child)
    for child in children:
        assert os.waitpid(child, 0)[1] == 0
    _record.stop()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
