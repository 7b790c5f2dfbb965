# SPDX-License-Identifier: Apache-2.0
"""sonde export --to parquet, read back by pyarrow: the rows that the SQLite export has, of every trace of the corpus and
every synthetic one; row groups that scans can prune; folders that hold many traces."""
import contextlib
import gzip
import math
import pathlib
import re
import shutil
import sqlite3
import struct
import subprocess
import sys

import pytest

from cli_tools import GEN, ROOT, generate, needs_tools, read, sonde

pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed: pip install pyarrow")
dataset = pytest.importorskip("pyarrow.dataset", reason="pyarrow is not installed: pip install pyarrow")

pytestmark = needs_tools

CASES = [line.split()[0] for line in subprocess.run([GEN, "--list"], stdout=subprocess.PIPE, text=True,
                                                    check=True).stdout.splitlines()] if GEN else []
SIZED = ("gpu_large", "many_names", "large", "python_random")
CORPUS = sorted(path for path in (ROOT / "tests/data/corpus").iterdir() if ".trace" in path.name)


def unpack(path, place):
    """A trace of the corpus as a file, or a folder of such."""
    if path.is_dir():
        place.mkdir()
        for file in path.iterdir():
            unpack(file, place / file.name.removesuffix(".gz"))
    elif path.suffix == ".gz":
        place.write_bytes(gzip.decompress(path.read_bytes()))
    else:
        shutil.copyfile(path, place)
    return place


def export(trace, folder):
    assert read("export", trace, "--to", "parquet", "-o", folder) == b""
    return folder


def read_table(folder, table):
    return dataset.dataset(folder / table, partitioning="hive").to_table()


def sortable(row):
    """None and bits of doubles have an order, too."""
    return tuple((value is not None, struct.pack(">d", value) if isinstance(value, float) else value or (
        b"" if isinstance(value, float) else "" if isinstance(value, str) else 0)) for value in row)


def compare(trace, tmp_path):
    """Each table as SQLite has it: the same columns, the same rows."""
    done = sonde("export", trace, "--to", "sqlite", "-o", tmp_path / "t.db")
    if done.returncode != 0:
        pytest.skip(done.stderr.decode())
    folder = export(trace, tmp_path / "tables")
    with contextlib.closing(sqlite3.connect(tmp_path / "t.db")) as db:
        tables = [name for name, in db.execute("select name from sqlite_master where type = 'table'")]
        assert sorted(tables) == sorted(path.name for path in folder.iterdir())
        for table in tables:
            cursor = db.execute(f"select * from {table}")
            names, expected = [column[0] for column in cursor.description], cursor.fetchall()
            found = read_table(folder, table)
            assert set(found.column_names) == {*names, "job"}
            rows = list(zip(*(found[name].to_pylist() for name in names)))
            assert sorted(map(sortable, rows)) == sorted(map(sortable, expected)), table


@pytest.mark.parametrize("case", CASES)
def test_rows_of_synthetic_traces(case, tmp_path):
    compare(generate(case, tmp_path / "t.sonde", *(["500"] if case in SIZED else [])), tmp_path)


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_rows_of_the_corpus(path, tmp_path):
    compare(unpack(path, tmp_path / "t.sonde"), tmp_path)


def groups_of(file):
    """Of each row group: rows, least and greatest start."""
    meta = pq.ParquetFile(file).metadata
    at = meta.schema.names.index("start_ns")
    for i in range(meta.num_row_groups):
        group = meta.row_group(i)
        assert group.sorting_columns[0].column_index == at and not group.sorting_columns[0].descending
        bounds = group.column(at).statistics
        yield group.num_rows, bounds.min, bounds.max


def test_row_groups_prune(tmp_path):
    """Sorted, with bounds that do not overlap; each bound is that of the rows."""
    folder = export(generate("large", tmp_path / "t.sonde", "400000"), tmp_path / "tables")
    file, = folder.glob("ranges/*/*/*.parquet")
    groups = list(groups_of(file))
    assert len(groups) > 3 and sum(rows for rows, *_ in groups) == read_table(folder, "ranges").num_rows
    assert all(rows <= 32768 for rows, *_ in groups)
    for (_, _, before), (_, after, _) in zip(groups[:-1], groups[1:]):
        assert before <= after
    for i, (_, least, greatest) in enumerate(groups):
        starts = pq.ParquetFile(file).read_row_group(i, columns=["start_ns"])["start_ns"].to_pylist()
        assert starts == sorted(starts) and (starts[0], starts[-1]) == (least, greatest)




def test_bounds_hold_every_row(tmp_path):
    """pyarrow's filters read row groups by their bounds: nothing is lost by them."""
    folder = export(generate("threads", tmp_path / "t.sonde"), tmp_path / "tables")
    table = read_table(folder, "ranges")
    for column in ("start_ns", "duration_ns", "name", "depth"):
        for value in set(table[column].to_pylist()):
            kept = dataset.dataset(folder / "ranges", partitioning="hive").to_table(
                filter=dataset.field(column) == value)
            assert kept.num_rows == table[column].to_pylist().count(value) > 0, (column, value)


@pytest.mark.parametrize("case", ["convnet", "gpu"])
def test_a_bound_of_zero_has_both_signs(case, tmp_path):
    """-0.0 equals 0.0: readers that go by the bits must not pass over a group for it (parquet.thrift, ColumnOrder)."""
    folder, zeros = export(generate(case, tmp_path / "t.sonde"), tmp_path / "tables"), 0
    for file in folder.glob("**/*.parquet"):
        meta = pq.ParquetFile(file).metadata
        for group in map(meta.row_group, range(meta.num_row_groups)):
            for bounds in (group.column(i).statistics for i in range(group.num_columns) if group.column(i).physical_type == "DOUBLE"):
                if bounds is None or not bounds.has_min_max:
                    continue
                assert bounds.min != 0 or math.copysign(1, bounds.min) == -1
                assert bounds.max != 0 or math.copysign(1, bounds.max) == 1
                zeros += (bounds.min == 0) + (bounds.max == 0)
    assert zeros


def test_one_folder_for_many_traces(tmp_path):
    folder, one = export(generate("convnet", tmp_path / "a.sonde"), tmp_path / "tables"), tmp_path / "b.sonde"
    before = read_table(folder, "ranges").to_pylist()
    # The same recording again: replaced, not doubled.
    assert read_table(export(tmp_path / "a.sonde", folder), "ranges").to_pylist() == before
    unpack(ROOT / "tests/data/corpus/ranges.trace.gz", one)
    both = read_table(export(one, folder), "ranges").to_pylist()
    jobs = {row["job"] for row in both}
    assert len(jobs) == 2 and [row for row in both if row["job"] == before[0]["job"]] == before
    assert all(re.fullmatch("s[0-9a-f]{32}", job) for job in jobs)
    assert not list(tmp_path.glob("tables.*"))  # nothing is left beside it


def test_folder_with_something_else(tmp_path):
    trace = generate("convnet", tmp_path / "t.sonde")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/todo.txt").write_text("buy milk", encoding="utf-8")
    done = sonde("export", trace, "--to", "parquet", "-o", tmp_path / "notes")
    assert done.returncode == 1 and b"has 'todo.txt' in it, which is not a table; give another folder" in done.stderr
    assert [path.name for path in tmp_path.glob("notes/*")] == ["todo.txt"]
    done = sonde("export", trace, "--to", "parquet", "-o", tmp_path / "notes/todo.txt")
    assert done.returncode == 1 and b"Not a directory" in done.stderr
    (tmp_path / "empty").mkdir()
    export(trace, tmp_path / "empty")


def test_from_python(tmp_path):
    core = pytest.importorskip("sonde._core", reason="sonde is not installed in this Python: run `make`")
    with core.Trace(generate("convnet", tmp_path / "t.sonde")) as trace:
        trace.export(tmp_path / "tables", to="parquet")
        ranges = read_table(tmp_path / "tables", "ranges")
        assert set(ranges["job"].to_pylist()) == {trace.job()}
        assert {path.name for path in tmp_path.glob("tables/*")} == set(trace.table_names())
        with pytest.raises(core.Error, match="todo"):
            (pathlib.Path(tmp_path) / "tables/todo").mkdir()
            trace.export(tmp_path / "tables", to="parquet")


LONG_RUN = """
import sys
from sonde import _record
_record.start(sys.argv[1])
_record.begin("whole run")
for _ in range(70_000):
    _record.begin("part")
    _record.end()
_record.end()
_record.stop()
"""


def test_ranges_that_stay_open(tmp_path):
    """They come long after the row group of their time was written, and are in a short one of their own at the end."""
    core = pytest.importorskip("sonde._core", reason="sonde is not installed in this Python: run `make`")
    trace = tmp_path / "t.sonde"
    subprocess.run([sys.executable, "-c", LONG_RUN, trace], check=True)
    folder = export(trace, tmp_path / "tables")
    file, = folder.glob("ranges/*/*/*.parquet")
    groups = list(groups_of(file))
    assert [rows for rows, *_ in groups] == [32768, 32768, 70_000 - 2 * 32768, 1]
    for (_, _, before), (_, after, _) in zip(groups[:-2], groups[1:-1]):
        assert before <= after
    assert pq.ParquetFile(file).read_row_group(3)["name"].to_pylist() == ["whole run"]
    with core.Trace(trace) as opened:
        assert len(opened.table("ranges")) == 70_001
