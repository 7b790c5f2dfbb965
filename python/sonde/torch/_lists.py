# SPDX-License-Identifier: Apache-2.0
"""What key_averages() and events() return: lists whose rows are made on demand.

torch's EventList is a list, and programs use it as one. These are lists too, but hold nothing
until a row is read: the table of a million events costs no Python object. Only when a list is
changed (sorted in place, appended to) are all of its rows made; from then on it is an ordinary
list, whose table torch's own code prints. So is a list of averages that was pickled or copied;
a list of events takes its trace along, and is then as it was.
"""
import inspect

from .._core import STACK_METRICS, Error, make_average
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
        if isinstance(rows, list):
            self._rows = None
            list.extend(self, rows)

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
        return _list_of, (type(self), list(self), self._result.columns)

    @property
    def self_cpu_time_total(self):
        """The sum of all rows' own time, in microseconds."""
        if self._rows is None:
            return sum(row.self_cpu_time_total for row in self)
        return self._rows.self_cpu_time_total

    def total_average(self):
        """The sums over all rows, as one row called "Total"."""
        if self._rows is not None:
            return self._rows.total_average()
        total = make_average({})
        for row in self:
            total.key = None
            total.add(row)
        total.key = "Total"
        return total

    def table(self, sort_by=None, row_limit=100, max_src_column_width=75,
              max_name_column_width=55, max_shapes_column_width=80, header=None,
              top_level_events_only=False, time_unit=None):
        """The rows as text, as torch prints them. `sort_by`: any attribute, greatest first."""
        options = dict(
            sort_by=sort_by, row_limit=row_limit, max_src_column_width=max_src_column_width,
            max_name_column_width=max_name_column_width,
            max_shapes_column_width=max_shapes_column_width, header=header,
            top_level_events_only=top_level_events_only, time_unit=time_unit,
            **self._result.columns)
        if len(self) == 0:
            return ""
        if self._rows is None:
            return self._table_of_changed(**options)
        try:
            return self._rows.table(**options)
        except Error:
            if sort_by is None:
                raise
            return self._table_sorted_by(sort_by, options)

    def _table_sorted_by(self, name, options):
        """By an attribute that is no column; AttributeError, as torch's, if there is none."""
        for device in ("cuda", "xpu", "privateuse1"):
            name = name.replace(device, "device")
        getattr(self[0], name)
        return EventList(list(self), self._result)._table_of_changed(**options)

    def _table_of_changed(self, **options):
        util = torch_module("torch.autograd.profiler_util")
        if util is None:
            raise RuntimeError("printing a modified list needs torch, which is not installed; "
                               "print a new key_averages()")
        known = inspect.signature(util._build_table).parameters  # torch 2.4 has no time_unit
        return util._build_table(self, **{name: value for name, value in options.items()
                                          if name in known})

    def key_averages(self, group_by_input_shapes=False, group_by_stack_n=0,
                     group_by_overload_name=False, include_python_functions=False):
        """Averages of the same recording; of averages, those that are grouped so."""
        groups = group_by_input_shapes, group_by_stack_n, group_by_overload_name
        self._original()
        if include_python_functions:
            return self._result.events().averages_with_functions(*groups)
        return self._result.key_averages(*groups)

    def export_chrome_trace(self, path):
        """The whole recording, also of averages: they have no times of their own."""
        self._original()
        self._result.export_chrome_trace(path)

    def export_stacks(self, path, metric="self_cpu_time_total"):
        """Of averages by stack: a line for each row, as torch writes it."""
        if metric not in STACK_METRICS:
            raise ValueError(f"metric should be one of: {list(STACK_METRICS)}")
        plain = str.maketrans(" ;\t\n", "____")
        name = metric.replace("cuda", "device").replace("xpu", "device").replace("privateuse1", "device")
        with open(path, "w", encoding="utf-8") as file:
            for row in self:
                value = int(getattr(row, name))
                if row.stack and value > 0:
                    frames = ";".join(entry.translate(plain) for entry in reversed(row.stack))
                    file.write(f"{frames} {value}\n")

    def supported_export_stacks_metrics(self):
        return list(STACK_METRICS)

    def _original(self):
        if self._rows is None:
            raise RuntimeError("this list was modified; use a new one")
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
    """A method of list that first makes all rows."""
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


def _list_of(kind, rows, columns):
    """A list again that was pickled: of its rows alone."""
    return kind(rows, _Nothing(columns))


class _Nothing:
    """Stands for the recording of a list that came without one."""

    def __init__(self, columns):
        self.columns = columns

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise RuntimeError("the trace of this list is gone; get a new list from the profile, or "
                           "keep the trace with profile.save(path)")


def rows_of(result):
    """The events of a result, as libsonde has them."""
    return result.events()._rows


class Events(EventList):
    """What events() returns: every single event, in the order they began."""

    def __init__(self, rows, result):
        super().__init__(rows, result)
        if self._rows is not None:
            self._rows.result = result  # by which events are pickled

    def __reduce__(self):
        if self._rows is None:
            return super().__reduce__()
        return _events_of, (self._result,)

    def averages_with_functions(self, *groups):
        """A row for each Python function too: torch's own list, made from ours."""
        from torch.autograd.profiler_util import EventList as TorchList
        rows = TorchList(list(self), **self._result.columns)
        rows._use_device = "cuda" if any(row.device_time_total for row in rows) else None
        rows._tree_built = True
        more = inspect.signature(TorchList.key_averages).parameters
        known = {"include_python_functions": True} if "include_python_functions" in more else {}
        return rows.key_averages(*groups[:len(more) - 1 - len(known)], **known)

    def export_stacks(self, path, metric="self_cpu_time_total"):
        self._original().export_stacks(path, metric)


def _events_of(result):
    return result.events()
