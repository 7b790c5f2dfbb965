import sys


def collatz(n):
    steps = 0
    while n != 1:
        if n % 2:
            n = 3 * n + 1
        else:
            n //= 2
        steps += 1
    return steps


def never():
    return 1


print(sum(collatz(n) for n in range(1, 1000)))
sys.exit(4)
