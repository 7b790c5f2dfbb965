# SPDX-License-Identifier: Apache-2.0
"""The report page of a trace inside a notebook. The page is libsonde's (docs/REPORT_PAGE.md)."""
import html
import os

from . import _scratch
from ._core import Error

_MOST = 24 << 20  # bytes added to a notebook, at most
_FRAME = ('<iframe title="sonde report" sandbox="allow-scripts" srcdoc="{}" '
          'style="width:100%;height:720px;border:1px solid #8884;border-radius:6px"></iframe>')


class _Folder:
    """An object that a temporary folder is removed with."""


def inline(trace):
    """A frame with the page; where there is none, a sentence why."""
    owner = _Folder()
    path = os.path.join(_scratch.folder_for(owner), "page.html")
    try:
        trace.export(path, to="html")
    except Error as error:
        return f"<p>{html.escape(str(error))}</p>"
    size = os.path.getsize(path)
    if size > _MOST:
        return (f"<p>The report page has {size >> 20} MB, too many for a notebook: "
                "<code>to_html(path)</code> writes it to a file.</p>")
    with open(path, encoding="utf-8") as file:
        return _FRAME.format(html.escape(file.read()))
