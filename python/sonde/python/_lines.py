# SPDX-License-Identifier: Apache-2.0
"""sonde.lines: how often each line of chosen functions ran, and for how long.

    >>> with sonde.lines(f, g) as profile:          # f and g, and nothing else
    ...     work()
    >>> profile.print()

    >>> @sonde.lines                                # from its first call on
    ... def f(): ...
    >>> f(); f.print()

    >>> profile = sonde.lines()                     # as line_profiler.LineProfiler()
    >>> g = profile(g)
    >>> g(); profile.print_stats(); profile.dump_stats("g.lprof")

Hits and times are line_profiler's: a line counts when it ends, what it calls is in its time.
"""
from ._chosen import Chosen

_UNITS = {1e-9: "auto", 1e-6: "us", 1e-3: "ms", 1.0: "s"}


class lines(Chosen):
    _kind = "lines"
    _view = "lines"
    _format = "lprof"

    def print_stats(self, stream=None, output_unit=None, stripzeros=False, details=True,
                    summarize=False, sort=False, rich=False):
        """As line_profiler's; `rich` colours nothing."""
        options = {}
        if output_unit is not None:
            if output_unit not in _UNITS:
                raise ValueError(f"sonde: output_unit={output_unit!r}: it is one of "
                                 f"{', '.join(map(str, _UNITS))}")
            options["time_unit"] = _UNITS[output_unit]
        if sort:
            options["sort"] = "time"
        text = self.report(skip_zero=stripzeros, part="summary" if summarize else "main",
                           **options)
        if not details:  # the unit, and one line per function
            unit, _, rest = text.partition("\n")
            text = f"{unit}\n\n{rest[rest.rindex(chr(10) * 2) + 2:] if summarize else ''}"
        print(text, end="", file=stream)
