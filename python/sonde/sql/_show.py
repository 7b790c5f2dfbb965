# SPDX-License-Identifier: Apache-2.0
"""Rows of a query on standard output: as a table, as JSON, as CSV."""
import csv
import json
import math
import re

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def plain(text):
    """Without characters that a terminal would obey."""
    return _CONTROL.sub(lambda found: ascii(found.group())[1:-1], text)


def _unique(names):
    """Two columns of one name stay two in JSON."""
    taken = set()
    for name in names:
        number, kept = 2, name
        while kept in taken:
            number, kept = number + 1, f"{name}_{number}"
        taken.add(kept)
        yield kept


def _cell(value):
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.3f}"
    return plain(str(value))


def write_text(names, rows, out):
    cells = [list(map(plain, names)), *([_cell(value) for value in row] for row in rows)]
    is_number = [all(row[i] is None or isinstance(row[i], (int, float)) for row in rows) for i in range(len(names))]
    widths = [max(len(row[i]) for row in cells) for i in range(len(names))]
    cells.insert(1, ["-" * width for width in widths])
    for row in cells:
        line = "  ".join(cell.rjust(width) if number else cell.ljust(width)
                         for cell, width, number in zip(row, widths, is_number))
        out.write(line.rstrip() + "\n")


def _json_value(value):
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def write_json(names, rows, out):
    names = list(_unique(names))
    lines = (json.dumps({name: _json_value(value) for name, value in zip(names, row)}, default=str) for row in rows)
    out.write(f'{{"columns": {json.dumps(names)}, "rows": [\n' + ",\n".join(lines) + "\n]}\n")


def write_csv(names, rows, out):
    def field(value):  # a text that a spreadsheet would take for a formula gets an apostrophe, as in sonde report --csv
        if not isinstance(value, str):
            return value
        value = plain(value)
        return "'" + value if value[:1] in ("=", "+", "-", "@") else value
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([field(value) for value in row] for row in rows)


FORMATS = {"text": write_text, "json": write_json, "csv": write_csv}
