# SPDX-License-Identifier: Apache-2.0
"""sonde.diff: what changed between two runs, and whether that is noise. The work is sonde_diff()'s."""
import json
import os

from . import _core


def _paths(side):
    if isinstance(side, (str, bytes, os.PathLike)):
        return [side]
    return list(side)


class Diff:
    """The answer of sonde.diff(): print it, or read `rows` and `totals`, as `sonde diff --json` has them."""

    def __init__(self, *arguments):
        self._arguments = arguments
        text, self.failed = self._write(-1, "json")
        answer = json.loads(text)
        self.rows = answer["rows"]
        self.totals = answer["totals"]

    def _write(self, rows, format):
        a, b, by, fail_if, least, sort = self._arguments
        return _core.diff(a, b, by, fail_if, least, sort, rows, format)

    @property
    def changed(self):
        """Rows that are slower or faster beyond noise."""
        return [row for row in self.rows if row["verdict"] in ("slower", "faster")]

    def table(self, rows=100):
        return self._write(rows, "text")[0]

    def to_json(self):
        return self._write(-1, "json")[0]

    def __str__(self):
        return self.table()

    def __bool__(self):
        """Whether no condition of `fail_if` holds."""
        return self.failed == 0


def diff(a, b, by=None, fail_if=None, least_percent=2.0, sort=None):
    """Compares traces: a path, or a list of paths of several runs, a side. docs/DIFF.md has the method.

    `by`: ops, modules, layers, functions, lines or run; None: the first of these that all runs have.

    >>> answer = sonde.diff("before.sonde", "after.sonde", fail_if="time>+5%")
    >>> print(answer)
    >>> assert answer, answer.changed
    """
    return Diff(_paths(a), _paths(b), by, fail_if, least_percent, sort)
