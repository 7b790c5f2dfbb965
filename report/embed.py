#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""report/embed.py OUTPUT PAGE - the page as a C source: a text that the exporter writes."""
import pathlib
import sys

# A literal a line: compilers have limits on the length of a line, none on a text made of many literals.
PIECE = 4000


def quote(piece):
    """A C literal. Octal has at most three digits: what follows cannot be taken for a part of it."""
    return '"' + "".join(chr(byte) if 32 <= byte < 127 and byte not in b'"\\?' else f"\\{byte:03o}"
                         for byte in piece) + '"'


def main():
    output, page = sys.argv[1:3]
    data = pathlib.Path(page).read_bytes()
    lines = [quote(data[at:at + PIECE]) for at in range(0, len(data), PIECE)] or ['""']
    pathlib.Path(output).write_text(
        '#include "export/page/page_template.h"\n\nconst char snd_html_template[] =\n' + "\n".join(lines) + ";\n",
        encoding="ascii")


if __name__ == "__main__":
    main()
