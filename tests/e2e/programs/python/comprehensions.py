# SPDX-License-Identifier: Apache-2.0
"""Comprehensions of every kind, nested, with calls in them."""
import sys

try:
    profile
except NameError:
    def profile(function):
        return function


def square(x):
    return x * x


@profile
def primes(n):
    composite = {j for i in range(2, int(n ** 0.5) + 1) for j in range(i * i, n, i)}
    return [p for p in range(2, n) if p not in composite]


@profile
def residues(n):
    """Long work for each item."""
    return [(i + 1000) ** 500 % 1000003 for i in range(n)]


@profile
def matrix(n):
    rows = [[i * j for j in range(n)] for i in range(n)]
    columns = [[row[j] for row in rows] for j in range(n)]
    diagonal = {i: square(rows[i][i]) for i in range(n)}
    total = sum(square(x) for row in columns for x in row if x % 2)
    keyed = sorted(diagonal.items(), key=lambda item: -item[1])
    return total + keyed[0][1]


def words(text):
    lengths = {word: len(word) for word in text.split()}
    return max(lengths, key=lengths.get), [w.upper() for w in lengths if w[0] in "aeiou"]


def main(rounds=1):
    for _ in range(rounds):
        assert len(primes(3000)) == 430
        assert sum(residues(50)) == 28239027
        assert matrix(30) == 20912306
        assert words("the animal in an open field")[0] == "animal"


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
