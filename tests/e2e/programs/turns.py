# SPDX-License-Identifier: Apache-2.0
"""Parts of known length in turn, in two threads and in a child process; writes what each had to the file that it is given.

Each part has functions of its own: a stack with those of two parts, or with an operator that its part does not
call, is one that no moment had. Its share of the time is what the clock says, however busy the machine is.
"""
import ctypes
import json
import os
import sys
import threading
import time

import torch

clock = time.perf_counter
SIZE = 64
left, right = torch.ones(SIZE, SIZE), torch.ones(SIZE, SIZE, requires_grad=True)


def spin(times):
    total = 0
    for i in range(times):
        total += i * i
    return total


def pure(until, done):
    while clock() < until:
        spin(200)


def multiply():
    torch.mm(left, left)


def product(until, done):
    while clock() < until:
        multiply()
        done["multiply"] += 1


def learn():
    torch.mm(left, right).backward(left)


def learns(until, done):
    while clock() < until:
        learn()
        done["learn"] += 1


def waits(until, done):
    time.sleep(max(0, until - clock()))


def launch(gpu, number):
    """As CUDA's driver does with CUDA_INJECTION64_PATH, on the stand-in."""
    gpu.standin_call(2, 211, 0, number)
    now = gpu.standin_time()
    gpu.standin_kernel(b"_Z4gemmPfi", ctypes.c_uint64(now + 1000), ctypes.c_uint64(now + 2000), number, 7,
                       ctypes.c_uint64(0))
    gpu.standin_call(2, 211, 1, number)


def launches(until, done):
    while clock() < until:
        if gpu:
            done["launch"] += 1
            launch(gpu, done["first"] + done["launch"])
        spin(200)


def open_gpu():
    path = os.environ.get("CUDA_INJECTION64_PATH")
    if not path or not os.environ.get("SONDE_CUPTI"):
        return None
    library = ctypes.CDLL(os.environ["SONDE_CUPTI"], mode=ctypes.RTLD_GLOBAL)
    library.standin_time.restype = ctypes.c_uint64
    ctypes.CDLL(path).InitializeInjection()
    return library


# Milliseconds, at the scale that it is told. At 1 some tens of samples: where within a period a part ended, and what a sampler from
# outside that comes late has missed, weighs more then.
PARTS = ((pure, 30), (product, 30), (learns, 20), (waits, 20), (launches, 10))
SCALE = int(sys.argv[3])


def turns(times, name, told):
    done = {"multiply": 0, "learn": 0, "launch": 0, "first": 1000000 * name.endswith("other")}
    spent = {part.__name__: 0 for part, _ in PARTS}
    told[name] = {"tid": threading.get_native_id(), "pid": os.getpid(), "spent": spent, "done": done}
    for _ in range(times):
        for part, ms in PARTS:
            begin = clock()
            part(begin + SCALE * ms / 1000, done)
            spent[part.__name__] += clock() - begin


def both_threads(times, prefix):
    told = {}
    other = threading.Thread(target=turns, args=(times, prefix + "other", told))
    other.start()
    turns(times, prefix + "main", told)
    other.join()
    return told


def write(path, told):
    with open(path + ".new", "w") as out:
        json.dump(told, out)
    os.rename(path + ".new", path)


if __name__ == "__main__":
    torch.set_num_threads(1)
    times, path = int(sys.argv[1]), sys.argv[2]
    gpu = None
    child = os.fork()
    if child == 0:
        write(path + ".child", both_threads(times, "child "))
        sys.exit(0)
    _, status = os.waitpid(child, 0)  # one after the other: two processors are enough
    gpu = open_gpu()
    print(os.getpid(), flush=True)
    if "wait" in sys.argv:
        sys.stdin.readline()
    told = both_threads(times, "")
    write(path, told)
    sys.exit(status != 0)
