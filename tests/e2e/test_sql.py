# SPDX-License-Identifier: Apache-2.0
"""sonde sql on DuckDB, python -m sonde.spark on a Spark of this machine: the same rows, and the numbers of the views."""
import csv
import io
import json
import math
import os
import re
import shutil
import statistics
import subprocess
import sys

import pytest

from cli_tools import ROOT, SONDE, generate, needs_tools, read, read_json, sonde

core = pytest.importorskip("sonde._core", reason="sonde is not installed in this Python: run `make`")
pytest.importorskip("duckdb", reason="duckdb is not installed: pip install duckdb")

from sonde import sql  # noqa: E402

pytestmark = needs_tools

QUERIES = sorted(path.stem for path in (ROOT / "python/sonde/sql").glob("*.sql"))
PROCESSES = 64


def run_sql(*arguments):
    """The columns and the rows."""
    found = read_json("sql", "--json", *arguments)
    return found["columns"], [tuple(row[name] for name in found["columns"]) for row in found["rows"]]


@pytest.fixture
def convnet(tmp_path):
    return generate("convnet", tmp_path / "t.sonde")


# --------------------------------------------------------------------- the views' numbers

@pytest.mark.parametrize("case", ["convnet", "torch", "steps", "threads", "two_processes"])
def test_hot_operators_are_those_of_the_view(case, tmp_path):
    trace = generate(case, tmp_path / "t.sonde")
    view = {(row["key"], row["is_user_annotation"]): (row["count"], round(1000 * row["self_cpu_time_total"]),
                                                      round(1000 * row["cpu_time_total"]))
            for row in read_json("report", trace, "--view", "ops", "--json", "--rows", "-1")["rows"]
            if row["key"] not in ("[memory]", "ProfilerStep*")}
    _, rows = run_sql(trace, "hot_operators")
    assert {(name, bool(user)): (calls, own, total) for name, user, calls, own, total, *_ in rows
            if not name.startswith("ProfilerStep#")} == view
    assert sum(row[-1] for row in rows) == pytest.approx(100)


@pytest.mark.parametrize("case", ["memory", "convnet", "torch"])
def test_memory_peaks_are_those_of_the_view(case, tmp_path):
    trace = generate(case, tmp_path / "t.sonde")
    devices = read_json("report", trace, "--view", "memory", "--json")["totals"]["devices"]
    _, rows = run_sql(trace, "memory_peaks")
    assert sorted(row[4:] for row in rows) == sorted((one["peak_bytes"], one["peak_time_ns"]) for one in devices)


def test_steps_and_gaps(tmp_path):
    trace = generate("convnet", tmp_path / "t.sonde")
    view = read_json("report", trace, "--view", "steps", "--json", "--rows", "-1")["rows"]
    _, rows = run_sql(trace, "select number, start_ns, duration_ns from steps order by number")
    assert rows == [(row["step"], row["start_ns"], row["duration_ns"]) for row in view]
    names, rows = run_sql(trace, "idle_gaps")
    assert [dict(zip(names, row))["next_range"] for row in rows] == ["forward", "forward"]
    ranges = run_sql(trace, "select start_ns, start_ns + duration_ns from ranges")[1]
    for row in rows:
        start, length = dict(zip(names, row))["gap_start_ns"], dict(zip(names, row))["gap_ns"]
        assert length > 0 and not [one for one in ranges if one[0] < start + length and one[1] > start]


def test_slow_steps_are_steps(tmp_path):
    """The sixth of eight steps is slow. What follows the last mark is longer, and nothing began in it: it is none."""
    trace = tmp_path / "t.sonde"
    script = ("import sonde, sys, time\nfrom sonde import _record\n_record.start(sys.argv[1])\n"
              "for i in range(8):\n"
              "    sonde.step()\n    _record.begin('work')\n    time.sleep(0.2 if i == 5 else 0.01)\n    _record.end()\n"
              "sonde.step()\ntime.sleep(0.4)\n_record.stop()\n")
    subprocess.run([sys.executable, "-c", script, trace], check=True)
    whole = dict(run_sql(trace, "select number, duration_ns from steps where part = 'whole'")[1])
    assert sorted(whole) == [*range(1, 9)]
    median = statistics.median(whole.values())
    slow = {number for number, ns in whole.items() if ns >= 1.5 * median}  # on a busy machine others may be, too
    names, rows = run_sql(trace, "slow_steps")
    assert {dict(zip(names, row))["step"] for row in rows} == slow and 6 in slow


def test_frees_have_the_size_of_what_they_free(tmp_path):
    """torch does not tell it of CPU memory: it is that of the allocation, from whatever thread."""
    torch = pytest.importorskip("torch")
    import threading

    import sonde
    kept = []
    with sonde.profile(profile_memory=True) as prof:
        thread = threading.Thread(target=lambda: kept.append(torch.ones(1000)))
        thread.start()
        thread.join()
        kept.append(torch.ones(300))
        kept.clear()
    prof.save(tmp_path / "t.sonde")
    for query in ("select is_free, size_bytes from memory order by time_ns",
                  "select memory.is_free, memory.size_bytes from memory left join ranges on false order by time_ns"):
        _, rows = run_sql(tmp_path / "t.sonde", query)
        assert [size for is_free, size in rows if not is_free] == [4000, 1200]
        assert sorted(size for is_free, size in rows if is_free) == [1200, 4000]


def test_samples_with_a_stack_are_counted_once(tmp_path):
    trace = generate("samples", tmp_path / "t.sonde")
    _, rows = run_sql(trace, "select sum(count) from samples where stack is not null")
    assert rows == [(sum(row[2] for row in run_sql(trace, "hot_functions")[1]),)]


def test_hot_functions_are_those_of_the_view(tmp_path):
    trace = generate("samples", tmp_path / "t.sonde")
    view = {}
    for row in read_json("report", trace, "--view", "samples", "--json", "--rows", "-1")["rows"]:
        view[row["function"], row["file"]] = view.get((row["function"], row["file"]), 0) + row["self_ns"]
    names, rows = run_sql(trace, "hot_functions")
    rows = {row[:2]: row[names.index("self_total_ns")] for row in rows}
    # The import system's own frames are what imports to the view; a sample without a stack is the root's.
    rows["<module>", "/app/prog.py"] += rows.pop(("_find", "<frozen importlib._bootstrap>"))
    del view["[root]", None]
    assert rows == {key: own for key, own in view.items() if own > 0} and len(rows) == 8


@pytest.mark.parametrize("wrong", range(9))
def test_ranks_and_collectives_are_those_of_the_views(wrong, tmp_path):
    """Of a job of four ranks, with all that gen_ranks.c has that may be wrong with one of them."""
    trace = generate("job", tmp_path / "job", str(wrong))
    view = read_json("report", trace, "--view", "ranks", "--json")["rows"]
    for query in ("rank_waits", "rank_times"):
        names, rows = run_sql(trace, query)
        numbers = [name for name in names if name not in ("job", "rank", "process")]
        assert [tuple(row[name] for name in ("rank", *numbers)) for row in view] \
            == [tuple(dict(zip(names, row))[name] for name in ("rank", *numbers)) for row in rows], query
    view = read_json("report", trace, "--view", "collectives", "--json")["rows"]
    names, rows = run_sql(trace, "collective_times")
    shared = [name for name in names if name in view[0]]
    assert len(shared) == 13 and [[row[name] for name in shared] for row in view] \
        == [[dict(zip(names, row))[name] for name in shared] for row in rows]


def test_activity_of_steps_is_that_of_the_view(tmp_path):
    """Rows of a rank follow each other without a gap, and each lies in one step."""
    trace = generate("layers_job", tmp_path / "job", "3")
    view = read_json("report", trace, "--view", "ranks", "--group-by", "step", "--json")["rows"]
    _, rows = run_sql(trace, """
        select step, rank, sum(activity.duration_ns), sum(activity.duration_ns * is_compute), sum(activity.duration_ns * is_communication),
            sum(activity.duration_ns * is_communication * (1 - is_compute)), sum(activity.duration_ns * is_loading)
        from activity join processes on id = process where step is not null group by step, rank order by step, rank""")
    keys = ("step", "rank", "span_ns", "compute_ns", "communication_ns", "exposed_communication_ns", "data_loading_ns")
    assert len(view) > 0 and rows[:len(view)] == [tuple(row[key] for key in keys) for row in view]
    _, rows = run_sql(trace, "select process, start_ns, duration_ns from activity order by process, start_ns, duration_ns")
    assert all(a[0] != b[0] or a[1] + a[2] == b[1] for a, b in zip(rows, rows[1:])) and len(rows) > 100


@pytest.mark.parametrize("case", [*range(9), 247, 6001])
def test_stragglers_are_those_of_the_view(case, tmp_path):
    """24 steps, of which eight are late; 600, more than there are blocks. Four late ones of 12 (7) may be chance: the view alone knows."""
    trace = generate("job", tmp_path / "job", str(case))
    view = read_json("report", trace, "--view", "stragglers", "--json")["rows"]
    names, rows = run_sql(trace, "stragglers")
    rows = [dict(zip(names, row)) for row in rows]
    assert len(view) == (case in (1, 2, 3, 4, 247, 6001)) and len(rows) == len(view) + (case == 7)
    for found, expected in zip(rows, view):
        assert found["differs_in"] == (expected["where"] or None)
        assert are_equal(found["caused_percent"], expected["caused_percent"])
        for name in ("rank", "cause", "caused_wait_ns", "more_ns", "how"):
            assert found[name] == expected[name], name


# ------------------------------------------------------------------------- the command

def test_ready_queries(convnet):
    listed = dict(re.split(r"  +", line) for line in read("sql", "--list").decode().splitlines())
    assert sorted(listed) == QUERIES and all(what.endswith(".") for what in listed.values())
    for name in QUERIES:
        assert read("sql", convnet, name) == read("sql", "--query", name, convnet)
    done = sonde("sql", convnet, "hot_operator")
    assert done.returncode == 1 and b"unknown query 'hot_operator'; queries: " in done.stderr


def test_formats(convnet):
    text = "select name, -duration_ns as \"minus\", null as nothing, name from ranges where depth = 0 limit 2"
    lines = read("sql", convnet, text).decode().splitlines()
    assert lines[0].split() == ["name", "minus", "nothing", "name"] and len(lines) == 4
    assert run_sql(convnet, text)[0] == ["name", "minus", "nothing", "name_2"]
    rows = list(csv.reader(io.StringIO(read("sql", "--csv", convnet, text).decode())))
    assert rows[1] == ["forward", "-4099900", "", "forward"]


def test_a_name_cannot_steer_the_terminal(tmp_path):
    trace = generate("names", tmp_path / "t.sonde")
    for form in ([], ["--csv"], ["--json"]):
        shown = read("sql", trace, "select name from ranges union all select name from marks", *form).decode()
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f]", shown)


@pytest.mark.parametrize("query, words", [
    ("select 1 +", "Parser Error"), ("select * from nothing", "nothing"), ("select nothing from ranges", "nothing")])
def test_wrong_queries(convnet, query, words):
    done = sonde("sql", convnet, query)
    assert done.returncode == 1 and done.stdout == b""
    assert done.stderr.decode().startswith("sonde: sql: ") and words in done.stderr.decode()
    assert len(done.stderr.splitlines()) == 1


def test_wrong_traces(convnet, tmp_path):
    done = sonde("sql", tmp_path / "none.sonde", "select 1 from ranges")
    assert done.returncode == 1 and done.stderr.count(b"none.sonde") == 1 and b"cannot open the trace" in done.stderr
    done = sonde("sql", convnet, convnet, "select 1 from ranges")
    assert done.returncode == 1 and b"of the same recording as" in done.stderr


def test_without_duckdb(convnet, tmp_path):
    """The message has the line that mends it."""
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['duckdb'] = None\n", encoding="utf-8")
    env = {**os.environ, "SONDE_PYTHON_EXE": sys.executable, "PYTHONPATH": str(tmp_path)}
    done = sonde("sql", convnet, "select 1", env=env)
    assert done.returncode == 1 and done.stderr.decode() == (
        f"sonde: sql: {sys.executable} has no duckdb: pip install duckdb there, or name another Python with SONDE_PYTHON_EXE\n")


def test_latest_trace(convnet):
    done = subprocess.run([SONDE, "sql", "select count(*) from ranges"], cwd=convnet.parent, capture_output=True, text=True)
    assert done.stdout.split()[-1] == "51" and "the latest trace here" in done.stderr


@pytest.mark.parametrize("scans_again", [True, False])
def test_only_the_tables_of_the_query_are_made(convnet, tmp_path, scans_again, monkeypatch):
    """... and nothing else is listed, of one source or several: also where DuckDB gets copies (before 2.0)."""
    import sonde.sql
    if not scans_again:
        monkeypatch.setattr(sonde.sql, "_scans_again", lambda: False)
    connection = sonde.sql.connect(convnet, query="select count(*) from RANGES")
    assert connection.sql("show tables").fetchall() == [("ranges",)]
    with core.Trace(convnet) as trace:
        every = [(name,) for name in sorted(trace.table_names())]
    assert sonde.sql.connect(convnet).sql("show tables").fetchall() == every
    read("export", convnet, "--to", "parquet", "-o", tmp_path / "tables")
    both = sonde.sql.connect(tmp_path / "tables", convnet)
    assert both.sql("show all tables").fetchall() and both.sql("show tables").fetchall() == every
    twice = "select count(*), sum(duration_ns), count(distinct job) from ranges"
    rows = [both.sql(twice).fetchall() for _ in range(2)]  # a table is read as often as one likes
    assert rows[0] == rows[1] == both.sql("select 2 * count(*), 2 * sum(duration_ns), 1 from " + str(_parquet(tmp_path))).fetchall()


def _parquet(place):
    return f"read_parquet('{place}/tables/ranges/**/*.parquet')"


def test_show_tables_lists_the_tables_alone(convnet):
    with core.Trace(convnet) as trace:
        assert [name for name, in run_sql(convnet, "show tables")[1]] == sorted(trace.table_names())


def test_tables_without_a_copy(convnet):
    """DuckDB has the memory of the C library, which stays until the last user is gone."""
    import duckdb
    with core.Trace(convnet) as trace:
        table = trace.table("ranges")
    connection = duckdb.connect()
    connection.register("kept", table)
    assert len(table) == 51 and "self_ns" in table.columns
    del table
    assert connection.execute("select count(*), sum(self_ns), count(shapes) from kept").fetchall()[0][0] == 51
    with core.Trace(convnet) as trace, pytest.raises(core.Error, match="unknown table 'range'; tables: trace, processes"):
        trace.table("range")


# ------------------------------------------------------------------------ tables in batches

@pytest.fixture(scope="module")
def long(tmp_path_factory):
    """A million ranges of 65 names."""
    trace = tmp_path_factory.mktemp("long") / "t.sonde"
    subprocess.run([ROOT / "build/bench/soak", trace, "2000000", "2"], check=True, capture_output=True)
    return trace


def peak_of(*arguments):
    """The largest resident size of `sonde sql` in bytes, and what it wrote."""
    script = ("import resource, subprocess, sys\n"
              "done = subprocess.run(sys.argv[1:], check=True, stdout=subprocess.PIPE)\n"
              "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024, done.stdout.decode())\n")
    done = subprocess.run([sys.executable, "-c", script, SONDE, "sql", *arguments], check=True, capture_output=True, text=True)
    peak, _, text = done.stdout.partition(" ")
    return int(peak), text


@pytest.mark.parametrize("query", ["select count(*), sum(self_ns) from ranges", "select max(columns(*)) from ranges",
                                   "select name, count(*) from ranges group by name"])
def test_memory_does_not_grow_with_the_trace(long, query):
    """The whole table takes 130 MB."""
    alone, _ = peak_of(long, "select 1")
    peak, _ = peak_of(long, query)
    assert peak < alone + 50e6


def test_a_limit_ends_the_reading(long):
    rows = run_sql(long, "select start_ns, name from ranges limit 100000")[1]
    assert len(rows) == 100000 and rows[:2] == run_sql(long, "select start_ns, name from ranges limit 2")[1]
    both = "select count(*) from (from ranges union all from ranges), (select count(*) from ranges) where depth = 1"
    assert run_sql(long, both)[1] == [(1000000,)]  # three streams


def test_only_the_columns_of_the_query_are_read(convnet):
    """Where DuckDB tells which: from 2.0 on."""
    import duckdb
    pytest.importorskip("duckdb._sources", reason="this DuckDB asks for all columns")
    asked = []

    class Watched:  # pylint: disable=too-few-public-methods
        def __init__(self, trace):
            self.trace = trace

        def arrow(self, name, columns=None):
            asked.append(columns)
            return self.trace.arrow(name, columns)

    with core.Trace(convnet) as trace:
        connection = duckdb.connect()
        connection.from_arrow(sql._scanned(Watched(trace), "ranges")).create_view("ranges")
        asked.clear()
        rows = connection.sql("select name, sum(self_ns) from ranges where depth > 0 group by all order by all").fetchall()
        assert [sorted(columns) for columns in asked] == [["depth", "name", "self_ns"]]
        connection.close()
        # What DuckDB before 2.0 gets, and any other reader.
        with duckdb.connect() as plain:
            assert rows == plain.from_arrow(trace.arrow("ranges")).query(
                "r", "select name, sum(self_ns) from r where depth > 0 group by all order by all").fetchall()


@pytest.mark.parametrize("case", ["convnet", "torch", "two_processes", "samples", "memory", "gpu"])
def test_streams_have_the_rows_of_tables(case, tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install pyarrow")
    trace = core.Trace(generate(case, tmp_path / "t.sonde"))
    for name in trace.table_names():
        whole = pyarrow.table(trace.table(name))
        stream = trace.arrow(name)
        assert stream.columns == whole.column_names == pyarrow.schema(stream).names
        first, second = pyarrow.RecordBatchReader.from_stream(stream), pyarrow.RecordBatchReader.from_stream(stream)
        assert first.read_all().to_pylist() == whole.to_pylist() == second.read_all().to_pylist(), name
        some = whole.column_names[::-2]
        assert pyarrow.table(trace.arrow(name, some)).to_pylist() == whole.select(some).to_pylist(), name


def test_a_stream_and_its_trace(long, convnet):
    """The trace is lent to the stream until that has ended, and closed after it."""
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install pyarrow")
    with core.Trace(long) as trace:
        reader = pyarrow.RecordBatchReader.from_stream(trace.arrow("ranges", ["name"]))
        rows = reader.read_next_batch().num_rows
        with pytest.raises(core.Error, match="a stream of the trace is being read; read it to its end"):
            trace.report()
        assert pyarrow.RecordBatchReader.from_stream(trace.arrow("threads")).read_all().num_rows == 2
    assert rows + sum(batch.num_rows for batch in reader) == 1000000
    with pytest.raises(core.Error, match="the trace is closed"):
        trace.arrow("ranges")
    with core.Trace(convnet) as trace:
        assert pyarrow.table(trace.arrow("ranges")).num_rows == 51 and trace.report()
        with pytest.raises(core.Error, match="unknown column 'nam' of the table ranges; columns: process, thread, name"):
            trace.arrow("ranges", ["nam"])
        with pytest.raises(core.Error, match="unknown table 'range'"):
            trace.arrow("range")
        for wrong in ("name", [1], 3):
            with pytest.raises(TypeError):
                trace.arrow("ranges", wrong)


# -------------------------------------------------------------------- many processes, Spark

@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """A trace of 64 processes, and its tables as Parquet files with those of another trace, which has samples of functions."""
    place = tmp_path_factory.mktemp("many")
    program = ROOT / "tests/e2e/programs/many_processes.py"
    subprocess.run([sys.executable, program, place / "many.sonde", str(PROCESSES)], check=True, timeout=300)
    other = generate("mixed", place / "other.sonde")
    for trace in (place / "many.sonde", other):
        read("export", trace, "--to", "parquet", "-o", place / "tables")
    return place / "many.sonde", other, place / "tables"


def test_traces_and_parquet_alike(many):
    """The same tables through Arrow and through Parquet, of two traces at once."""
    trace, other, tables = many
    for name in QUERIES:
        assert run_sql(tables, name) == run_sql(trace, other, name), name
    with core.Trace(trace) as one, sql.connect(tables) as parquet, sql.connect(trace, other) as traces:
        for table in one.table_names():
            count = f"select job, count(*) from {table} group by job order by job"
            assert parquet.sql(count).fetchall() == traces.sql(count).fetchall(), table


def test_rows_of_64_processes_are_those_of_the_views(many):
    trace, _, _ = many
    view = {row["key"]: row for row in read_json("report", trace, "--view", "ops", "--json", "--rows", "-1")["rows"]}
    names, rows = run_sql(trace, "hot_operators")
    assert len(rows) == 4
    for row in (dict(zip(names, row)) for row in rows):
        assert row["calls"] == view[row["name"]]["count"] >= PROCESSES * 4
        assert row["self_total_ns"] == round(1000 * view[row["name"]]["self_cpu_time_total"])
        assert row["total_ns"] == round(1000 * view[row["name"]]["cpu_time_total"])
    steps = read_json("report", trace, "--view", "steps", "--json", "--rows", "-1")["rows"]
    _, rows = run_sql(trace, "select pid, number, steps.start_ns, duration_ns from steps join processes on steps.process = id")
    assert len(rows) == 4 * PROCESSES
    assert sorted(rows) == sorted((row["process"], row["step"], row["start_ns"], row["duration_ns"]) for row in steps)
    _, rows = run_sql(trace, "step_times")
    assert [(row[1], row[2]) for row in rows] == [(step, PROCESSES) for step in range(4)]
    assert len(run_sql(trace, "memory_peaks")[1]) == PROCESSES


def are_equal(found, expected):
    """Sums of doubles depend on their order."""
    return math.isclose(found, expected, rel_tol=1e-12) if isinstance(expected, float) else found == expected


# One JVM for all: it takes some ten seconds to start.
ON_SPARK = """
import contextlib, io, json, sys
from pyspark.sql import SparkSession
import sonde.spark
settings = dict(one.split("=", 1) for one in sys.argv[3:])
builder = SparkSession.builder.master("local[2]")
for key, value in settings.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
results = {name: sonde.spark.run(spark, folder, name) for folder, names in json.loads(sys.argv[2]).items() for name in names}
results["sql"] = sonde.spark.run(spark, sys.argv[1], "select job, process, count(*) from ranges group by job, process order by job, process")
# The command itself, last: it stops Spark.
out = io.StringIO()
with contextlib.redirect_stdout(out):
    results["status"] = sonde.spark.main(["--master", "local[2]", "--csv", sys.argv[1], "step_times"])
results["csv"] = out.getvalue()
print(json.dumps(results))
"""


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("java"), reason="Spark needs Java: install openjdk-17-jre-headless")
def test_spark_has_the_same_rows(many, tmp_path):
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install pyspark")
    _, _, tables = many
    of_jobs = ("rank_", "collective_", "stragglers")
    asked = {tables: [name for name in QUERIES if not name.startswith(("gpu_", *of_jobs))]}
    for case, number, prefixes in (("gpu", "0", ("gpu_",)), ("job", "1", of_jobs)):
        read("export", generate(case, tmp_path / case, number), "--to", "parquet", "-o", tmp_path / f"{case}.tables")
        asked[tmp_path / f"{case}.tables"] = [name for name in QUERIES if name.startswith(prefixes)]
    settings = ["spark.ui.enabled=false", "spark.ui.showConsoleProgress=false", "spark.sql.shuffle.partitions=1",
                "spark.sql.sources.parallelPartitionDiscovery.threshold=10000", "spark.driver.bindAddress=127.0.0.1",
                f"spark.local.dir={tmp_path}", f"spark.sql.warehouse.dir={tmp_path}",
                "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"]
    done = subprocess.run([sys.executable, "-c", ON_SPARK, tables, json.dumps({str(folder): names for folder, names in asked.items()}), *settings], capture_output=True, text=True,
                          env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}, cwd=tmp_path, timeout=560)
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout.splitlines()[-1])
    for folder, name in ((folder, name) for folder, names in asked.items() for name in names):
        names, rows = run_sql(folder, name)
        assert results[name][0] == names
        assert len(results[name][1]) == len(rows) > 0, name
        for found, expected in zip(results[name][1], rows):
            assert all(map(are_equal, found, expected)), (name, found, expected)
    assert len(results["sql"][1]) == PROCESSES + 1
    assert (results["status"], results["csv"].encode()) == (0, read("sql", "--csv", tables, "step_times"))


def test_spark_command_line():
    def run(*arguments, **more):
        return subprocess.run([sys.executable, "-m", "sonde.spark", *arguments], capture_output=True, text=True, **more)
    assert "hot_operators" in run("--help").stdout and "--master URL" in run("--help").stdout
    assert run("folder").returncode == 2
    done = run("--conf", "x", "folder", "query")
    assert done.returncode == 2 and "expected KEY=VALUE, got 'x'" in done.stderr
