# SPDX-License-Identifier: Apache-2.0
"""Three functions that are busy for known shares of the time, in turns, on two threads."""
import sys
import threading
import time

SHARES = {"half": 50, "third": 30, "fifth": 20}


def half(until):
    while time.thread_time() < until:
        pass


def third(until):
    while time.thread_time() < until:
        pass


def fifth(until):
    while time.thread_time() < until:
        pass


def turns(seconds):
    """By the CPU time of the thread: a busy machine takes it from none of them."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        for function in (half, third, fifth):
            function(time.thread_time() + SHARES[function.__name__] / 5000)


if __name__ == "__main__":
    other = threading.Thread(target=turns, args=(float(sys.argv[1]),), name="other")
    other.start()
    turns(float(sys.argv[1]))
    other.join()
