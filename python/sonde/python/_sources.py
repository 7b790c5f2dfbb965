# SPDX-License-Identifier: Apache-2.0
"""Source that is in no file of its own: a cell's, that of `python -c`, of a module in an archive.

What is needed of it goes into the trace, to be shown with the lines.
"""
import os
import sys

from .. import _record

_kept = {}  # by file: lines


def keep(code, lines):
    """Of a function, whose file has these lines."""
    import inspect
    path, first = code.co_filename, code.co_firstlineno - 1
    kept = _kept.setdefault(path, ["\n"] * len(lines))
    block = inspect.getblock(lines[first:])
    kept[first:first + len(block)] = block
    _record.metadata(_record.METADATA["PYTHON_SOURCE_TEXT"] + path, "".join(kept))


def _of_command():
    words = getattr(sys, "orig_argv", [])
    return words[words.index("-c") + 1] if "-c" in words[:-1] else ""


def _of_archive(path):
    for folder in sys.path:
        if path.startswith(folder + os.sep) and os.path.isfile(folder):
            import zipimport
            return zipimport.zipimporter(folder).get_data(path).decode(errors="replace")
    return ""


def keep_unfiled(code):
    """Stores a function's source, if its file cannot be read when the report is made."""
    path = code.co_filename
    if os.path.exists(path):
        return
    try:
        text = _of_command() if path == "<string>" else _of_archive(path)
        if text:
            keep(code, text.splitlines(keepends=True))
    except Exception:  # then the lines are shown without their text
        pass
