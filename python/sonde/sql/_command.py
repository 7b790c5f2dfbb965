# SPDX-License-Identifier: Apache-2.0
"""The Python half of `sonde sql`: hands the tables that a query names to DuckDB and prints the rows.

Its arguments come from the command (src/cli/command/cmd_sql.c): list; or text, json or csv, then `name` or `sql`, the query, the
traces. It exits with 0, with 1 after one line on stderr, or with 78 where duckdb is not installed.
"""
import importlib.util
import os
import sys

from . import Error, connect, queries, query
from ._show import FORMATS, plain

NOT_INSTALLED = 78


def list_queries(out):
    ready = queries()
    width = max(map(len, ready))
    for name, what in ready.items():
        out.write(f"{name.ljust(width)}  {what}\n")


def write(form, names, rows):
    """0, or 1 after a line on stderr; a reader that goes away ends it silently."""
    try:
        FORMATS[form](names, rows, sys.stdout)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        print(f"sonde: sql: cannot write to standard output: {error.strerror}", file=sys.stderr)
        return 1
    return 0


def main(arguments):
    sys.stdout.reconfigure(encoding="utf-8", errors="replace")
    if arguments == ["list"]:
        list_queries(sys.stdout)
        return 0
    form, kind, text, *paths = arguments
    if importlib.util.find_spec("duckdb") is None:
        return NOT_INSTALLED
    import duckdb
    try:
        if kind == "name":
            text = query(text.replace("-", "_"))
        connection = connect(*paths, query=text)
        connection.execute("set enable_progress_bar = false")  # it would be among the rows
        found = connection.execute(text)
        names, rows = [column[0] for column in found.description or []], found.fetchall()
    except (Error, duckdb.Error) as error:
        print(f"sonde: sql: {plain(str(error).partition(chr(10))[0])}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return write(form, names, rows)
