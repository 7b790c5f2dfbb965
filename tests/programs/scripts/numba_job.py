import numba
import numpy


@numba.njit
def count(limit):
    found = 0
    for n in range(2, limit):
        for d in range(2, int(n ** 0.5) + 1):
            if n % d == 0:
                break
        else:
            found += 1
    return found


@numba.vectorize
def halve(x):
    return x / 2


def main():
    print(count(100_000), halve(numpy.arange(5.0)).tolist())


main()
