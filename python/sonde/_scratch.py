# SPDX-License-Identifier: Apache-2.0
"""Temporary folders that are removed with the object that they are for.

An object may be collected anywhere, also while a program's calls are being recorded. So nothing
of the standard library runs then: weakref.finalize and shutil would be in the program's table.
"""
import os
from _weakref import ref

from . import _record

_alive = {}  # by id
_is_registered = False  # to be removed at exit


class _Link(ref):
    __slots__ = ("folder", "owner")


def folder_for(thing, prefix="sonde-"):
    """A new folder, removed when `thing` goes, or the program ends."""
    global _is_registered
    import tempfile  # not in programs that are recorded from outside
    if not _is_registered:
        import atexit
        atexit.register(_remove_all)
        _is_registered = True
    link = _Link(thing, _remove)
    link.folder, link.owner = tempfile.mkdtemp(prefix=prefix), os.getpid()
    _alive[id(link)] = link
    return link.folder


def _remove(link):
    """A forked child has the object too, but the folder is its parent's."""
    del _alive[id(link)]
    if link.owner == os.getpid():
        _record.remove_folder(link.folder)


def _remove_all():
    for link in list(_alive.values()):
        _remove(link)
