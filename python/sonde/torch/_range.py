# SPDX-License-Identifier: Apache-2.0
"""record_function for programs without torch. With torch, torch's own one is used."""
import contextlib

from .. import _record


class record_function(contextlib.ContextDecorator):
    """Marks a block, or every call of a function, with a name."""

    def __init__(self, name, args=None):
        self.name = name
        self.args = args

    def _recreate_cm(self):
        """A decorated function may call itself."""
        return type(self)(self.name, self.args)

    def __enter__(self):
        _record.begin(self.name)
        return self

    def __exit__(self, kind, value, traceback):
        _record.end()
