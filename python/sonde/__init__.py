# SPDX-License-Identifier: Apache-2.0
"""sonde: what a program did, from model to kernel, in one trace.

    >>> import sonde
    >>> with sonde.Trace("prog.sonde") as trace:
    ...     print(trace.report(view="ops", sort="self_cpu_time_total", rows=10))
    ...     trace.export("prog.json.gz", to="chrome")

This package is a thin face: the numbers and the text come from the C library.
"""
from ._core import Error, Trace, __version__

__all__ = ["Error", "Trace", "__version__"]
