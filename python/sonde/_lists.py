# SPDX-License-Identifier: Apache-2.0
"""What key_averages() and events() return: lists whose rows are made when they are asked for.

torch's EventList is a list, and programs use it as one. These are lists too, but hold nothing
until a row is read: the table of a million events costs no Python object. Only when a list is
changed (sorted in place, appended to) are all of its rows made; from then on it is an ordinary
list, whose table torch's own code prints.
"""
from ._installed import torch_module

_READING = ("index", "count", "copy", "__contains__", "__reversed__", "__add__", "__mul__",
            "__rmul__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")
_CHANGING = ("append", "extend", "insert", "pop", "remove", "clear", "reverse", "sort",
             "__setitem__", "__delitem__", "__iadd__", "__imul__")


class EventList(list):
    """`rows` is libsonde's sequence; `result` is the recording that it is of."""
    __hash__ = None

    def __init__(self, rows, result):
        super().__init__()
        self._rows = rows  # None once the list itself holds them
        self._result = result

    def __len__(self):
        return list.__len__(self) if self._rows is None else len(self._rows)

    def __getitem__(self, index):
        return list.__getitem__(self, index) if self._rows is None else self._rows[index]

    def __iter__(self):
        return list.__iter__(self) if self._rows is None else iter(self._rows)

    def __repr__(self):
        return repr(list(self))

    def __str__(self):
        return self.table()

    def __reduce__(self):
        raise TypeError("rows of a trace cannot be pickled; save the trace: profile.save(path)")

    @property
    def self_cpu_time_total(self):
        """The sum of all rows' own time, in microseconds."""
        if self._rows is None:
            return sum(row.self_cpu_time_total for row in self)
        return self._rows.self_cpu_time_total

    def total_average(self):
        """The sums over all rows, as one row called "Total"."""
        return self._original().total_average()

    def table(self, sort_by=None, row_limit=100, max_src_column_width=75,
              max_name_column_width=55, max_shapes_column_width=80, header=None,
              top_level_events_only=False, time_unit=None):
        """The rows as text, as torch prints them. `sort_by`: any column, greatest first."""
        print_table = self._table_of_changed if self._rows is None else self._rows.table
        return print_table(
            sort_by=sort_by, row_limit=row_limit, max_src_column_width=max_src_column_width,
            max_name_column_width=max_name_column_width,
            max_shapes_column_width=max_shapes_column_width, header=header,
            top_level_events_only=top_level_events_only, time_unit=time_unit,
            **self._result.columns)

    def _table_of_changed(self, **options):
        util = torch_module("torch.autograd.profiler_util")
        if util is None:
            raise RuntimeError("a list that was changed is printed by torch, which is not "
                               "installed; print the table of a fresh key_averages()")
        return util._build_table(self, **options)

    def _original(self):
        if self._rows is None:
            raise RuntimeError("this list was changed; ask a fresh one")
        return self._rows

    def column(self, name):
        """One column of all rows, for numpy.asarray(), without a copy. Names: `columns`."""
        return self._original().column(name)

    @property
    def columns(self):
        return self._original().columns

    def __arrow_c_stream__(self, requested_schema=None):
        """For pandas, Polars, DuckDB and whoever else reads Arrow."""
        return self._original().__arrow_c_stream__(requested_schema)


def _through(name, change):
    """A method of list that first sees to it that the rows are there."""
    method = getattr(list, name)

    def call(self, *args, **kwargs):
        if change and self._rows is not None:
            rows, self._rows = self._rows, None
            list.extend(self, rows)
        return method(self if self._rows is None else list(self), *args, **kwargs)

    call.__name__ = name
    call.__doc__ = method.__doc__
    return call


for _name in _READING + _CHANGING:
    setattr(EventList, _name, _through(_name, _name in _CHANGING))


class Events(EventList):
    """What events() returns: every single event, in the order they began."""

    def key_averages(self, group_by_input_shapes=False, group_by_stack_n=0,
                     group_by_overload_name=False, include_python_functions=False):
        return self._result.key_averages(group_by_input_shapes, group_by_stack_n,
                                         group_by_overload_name)

    def export_chrome_trace(self, path):
        self._result.export_chrome_trace(path)

    def export_stacks(self, path, metric="self_cpu_time_total"):
        self._original().export_stacks(path, metric)
