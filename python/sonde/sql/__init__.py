# SPDX-License-Identifier: Apache-2.0
"""The tables of traces (docs/SCHEMA.md) in DuckDB, and the ready queries.

    import sonde.sql
    sonde.sql.connect("train.sonde").sql("select name, sum(self_ns) from ranges group by name")

libsonde makes the tables; DuckDB takes them through Arrow in batches, of the columns that a query needs. The queries are the
files NAME.sql of this folder: they run on DuckDB and on Spark alike.
"""
import functools
import os
import re

from .._core import Error, Trace

_FOLDER = os.path.dirname(__file__)
_EVERY = re.compile(r"\b(?:show|information_schema|duckdb_\w+|sqlite_master)\b", re.I)


def queries():
    """{name: what it is for} of the ready queries."""
    return {name[:-len(".sql")]: query(name[:-len(".sql")]).partition("\n")[0].lstrip("- ")
            for name in sorted(os.listdir(_FOLDER)) if name.endswith(".sql")}


def query(name):
    """The text of a ready query."""
    path = os.path.join(_FOLDER, name + ".sql")
    if not re.fullmatch(r"\w+", name) or not os.path.exists(path):
        raise Error(f"unknown query '{name}'; queries: {', '.join(queries())}; or give SQL")
    with open(path, encoding="utf-8") as file:
        return file.read()


def named_tables(names, text=None):
    """Those of the tables that the query may use: the others are not made."""
    if text is None or _EVERY.search(text):
        return list(names)
    words = set(re.findall(r"\w+", re.sub(r"--.*", "", text).lower()))
    return [name for name in names if name in words]


def _literal(text):
    return "'" + text.replace("'", "''") + "'"


def is_parquet(path):
    """A folder that sonde export --to parquet made."""
    return os.path.isdir(os.path.join(path, "ranges")) and os.path.isdir(os.path.join(path, "processes"))


class _Traces:
    """Opens the paths and makes their tables in a connection."""

    def __init__(self, connection, paths):
        self.connection, self.sources, self.names = connection, [], []
        opened = {}
        for path in map(os.fspath, paths):
            if is_parquet(path):
                self.sources.append(path)
                self.names = self.names or sorted(one for one in os.listdir(path) if one[0] not in "._")
                continue
            try:
                trace = Trace(path)
            except Error as error:
                text = str(error)  # most name it
                raise Error(text if path in text else f"{path}: {text}") from None
            if trace.job() in opened:
                raise Error(f"{path}: of the same recording as {opened[trace.job()]}; give the folder that has both")
            opened[trace.job()] = path
            self.sources.append(trace)
            self.names = trace.table_names()

    def _part(self, source, table):
        if not isinstance(source, Trace):
            files = _literal(os.path.join(source, table, "**", "*.parquet"))
            return self.connection.sql(f"select * from read_parquet({files}, hive_partitioning = true)")
        return self.connection.from_arrow(_scanned(source, table)).project(f"{_literal(source.job())} as job, *")

    def make(self, table):
        """One view of all sources, by the names of the columns; what a source is made of has no name of its own."""
        parts = [self._part(source, table) for source in self.sources]
        names = list(dict.fromkeys(name for part in parts for name in part.columns))
        parts = [part.project(", ".join(f'"{name}"' if name in part.columns else f'null as "{name}"' for name in names))
                 for part in parts]
        whole = functools.reduce(lambda first, second: first.union(second), parts)
        if _scans_again():
            whole.create_view(table)
        else:
            whole.create(table)


@functools.lru_cache(maxsize=None)
def _source_class():
    """What DuckDB asks for some columns of a table, where it has such a class, which is its own; or None."""
    try:
        from duckdb._sources import ArrowScanSource
    except ImportError:
        return None

    class Source(ArrowScanSource):
        """The table `name` of a trace."""
        schema_is_stable = True

        def __init__(self, trace, name):
            super().__init__(trace.arrow(name))
            self.trace, self.name = trace, name

        def __arrow_c_schema__(self):
            return self.obj.__arrow_c_schema__()

        def __arrow_c_stream__(self, requested_schema=None):
            return self.obj.__arrow_c_stream__(requested_schema)

        def stream(self, columns, filters):
            """A stream, and whether it has these columns alone, in this order."""
            if columns is None:
                return self.obj.__arrow_c_stream__(), False
            names = self.obj.columns
            return self.trace.arrow(self.name, [names[one] for one in columns]).__arrow_c_stream__(), True

    return Source


def _scanned(trace, name):
    source = _source_class()
    return source(trace, name) if source else trace.arrow(name)


def _scans_again():
    """DuckDB before 2.0 reads a stream of Arrow once, and then fails: it gets a copy."""
    import duckdb
    return int(duckdb.__version__.partition(".")[0]) >= 2


def connect(*paths, query=None):  # pylint: disable=redefined-outer-name
    """A DuckDB connection that has the tables of the traces, or of folders of Parquet files; with `query`, only those it names."""
    import duckdb
    connection = duckdb.connect(config={"autoinstall_known_extensions": "false"})
    traces = _Traces(connection, paths)
    for table in named_tables(traces.names, query):
        traces.make(table)
    return connection
