"""Builds an extension with Cython and a C compiler, and calls it."""
import pathlib
import sys

import pyximport

pathlib.Path("fast.pyx").write_text("""
def total(long n):
    cdef long i, s = 0
    for i in range(n):
        s += i * i % 7
    return s

def back(f, int n):
    return [f(i) for i in range(n)]

def fail():
    raise KeyError("from Cython")
""")
pyximport.install(build_dir="built", language_level=3)
sys.path.insert(0, ".")
import fast


def twice(n):
    return 2 * n


print(fast.total(3_000_000), fast.back(twice, 1000)[-1])
try:
    fast.fail()
except KeyError as error:
    print(error)
