# SPDX-License-Identifier: Apache-2.0
"""sonde.line_memory: the bytes that each line of chosen functions allocates and frees.

    >>> with sonde.line_memory(f) as profile:
    ...     f()
    >>> profile.print()

Used as sonde.lines is. Bytes are counted as the allocators are called, Python's and malloc's
(torch's tensors are malloc's), thread by thread. "Mem usage" is what was resident when counting
began, and what was taken since; the resident size itself is recorded ten times a second.
"""
from .. import _python
from ._chosen import Chosen
from ._kinds import CodeType


class line_memory(Chosen):
    _kind = "line-memory"
    _view = "line-memory"
    _events = False, True, False
    _format = "mprof"
    _memory = True
    _what = "memory of lines"

    def _with_inner(self, code):
        """What a function defines is part of it, as in memory_profiler."""
        found = [code]
        for part in found:
            found.extend(inner for inner in part.co_consts if isinstance(inner, CodeType))
        return found

    def _attach(self):
        _python.memory_start()
        try:
            super()._attach()
        except BaseException:
            _python.memory_stop()
            raise

    def _detach(self):
        super()._detach()
        _python.memory_stop()

    def _keep(self):
        if not self._kept and not self._finished:
            super()._keep()
            _python.memory_start()

    def stop(self):
        kept = self._kept
        super().stop()
        if kept:
            _python.memory_stop()


def memit(function):
    """Calls `function`; (most bytes in use meanwhile, how much more that is than before)."""
    _, most, before = _python.memory_peak(function)
    return most, most - before
