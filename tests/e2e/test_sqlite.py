# SPDX-License-Identifier: Apache-2.0
"""sonde export --to sqlite, read by Python's sqlite3: the numbers of the ops view, of every synthetic trace."""
import contextlib
import pathlib
import re
import sqlite3
import subprocess

import pytest

from cli_tools import GEN, ROOT, generate, needs_tools, read, read_json, sonde

pytestmark = needs_tools

OPS = """
    select case when name like 'ProfilerStep#%' then 'ProfilerStep*' else name end, is_user,
           count(*), sum(duration_ns), sum(self_ns), min(duration_ns), max(duration_ns),
           sum(cpu_bytes), sum(self_cpu_bytes), sum(device_bytes), sum(self_device_bytes), sum(flops)
    from ranges group by 1, 2
"""
SUMS = ("count", "cpu_time_total", "self_cpu_time_total", "cpu_time_min", "cpu_time_max", "cpu_memory_usage",
        "self_cpu_memory_usage", "device_memory_usage", "self_device_memory_usage", "flops")
CASES = [line.split()[0] for line in subprocess.run([GEN, "--list"], stdout=subprocess.PIPE, text=True,
                                                    check=True).stdout.splitlines()] if GEN else []
SIZED = ("gpu_large", "many_names", "large", "python_random")


@contextlib.contextmanager
def export(trace, path):
    assert read("export", trace, "--to", "sqlite", "-o", path) == b""
    with contextlib.closing(sqlite3.connect(path)) as db:
        assert db.execute("pragma integrity_check").fetchall() == [("ok",)]
        yield db


def as_text(name):
    """Bytes that are not UTF-8: JSON has lone surrogates, SQLite the replacement character."""
    return "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in name)


@pytest.mark.parametrize("case", CASES)
def test_ops_table(case, tmp_path):
    trace = generate(case, tmp_path / "t.sonde", *(["500"] if case in SIZED else []))
    with export(trace, tmp_path / "t.db") as db:
        found = {(name, bool(user)): sums for name, user, *sums in db.execute(OPS)}
        steps = db.execute("select process, number, start_ns, duration_ns from steps").fetchall()
        pids = dict(db.execute("select id, pid from processes"))
        kept = db.execute("select count(*) from ranges where step is not null").fetchone()[0]
    report = read_json("report", trace, "--view", "ops", "--json", "--rows", "-1")
    expected = {(as_text(row["key"]), row["is_user_annotation"]): row for row in report["rows"]
                if row["key"] != "[memory]" and row["device_type"] == "CPU"}
    assert set(found) == set(expected)
    passes = report["totals"].get("passes") or 1  # of a benchmark the view shows one pass
    for key, sums in found.items():
        values = dict(zip(SUMS, sums))
        for name, value in values.items():
            shown = expected[key][name] or 0
            if name.startswith(("cpu_time", "self_cpu_time")):
                shown = round(shown * 1000)
            if name not in ("cpu_time_min", "cpu_time_max"):
                value /= passes
            assert value == pytest.approx(shown, rel=1e-12 if name == "flops" else 0,
                                          abs=0 if passes == 1 else 1), (key, name)
    view = read_json("report", trace, "--view", "steps", "--json", "--rows", "-1")["rows"]
    assert [(pids[process], *rest) for process, *rest in steps] == [
        (row["process"], row["step"], row["start_ns"], row["duration_ns"]) for row in view]
    if len(steps) == 0:
        assert kept == 0


def test_schema_is_documented(tmp_path):
    """docs/SCHEMA.md names every table and column, in order, and no other."""
    text = (ROOT / "docs/SCHEMA.md").read_text(encoding="utf-8")
    documented = {table: re.findall(r"^\| `(\w+)` \| (\w+) \|", body, re.M)
                  for table, body in re.findall(r"^### (\w+)\n(.*?)(?=^##|\Z)", text, re.M | re.S)}
    with export(generate("convnet", tmp_path / "t.sonde"), tmp_path / "t.db") as db:
        tables = [name for name, in db.execute("select name from sqlite_master where type = 'table'")]
        made = {table: [(row[1], row[2].lower()) for row in db.execute(f"pragma table_info({table})")] for table in tables}
    assert documented == made
    page = (ROOT / "man/sonde-sql.1").read_text(encoding="utf-8")
    listed = re.search(r"over the tables of traces: (.*?)\.\n", page, re.S)[1]
    assert re.findall(r"\w+", listed.replace(" and ", ", ")) == list(made)


def test_steps_of_ranges(tmp_path):
    with export(generate("steps", tmp_path / "t.sonde"), tmp_path / "t.db") as db:
        wrong = db.execute("""
            select count(*) from ranges r join steps s on s.process = r.process and s.number = r.step
            where r.start_ns < s.start_ns or r.start_ns >= s.start_ns + s.duration_ns""").fetchone()
        assert wrong == (0,) and db.execute("select count(*) from ranges where step is null").fetchone() == (0,)


@pytest.mark.parametrize("case", ["train", "gpu", "gpu_idle", "gpu_large"])
def test_gpu_work_is_that_of_the_view(case, tmp_path):
    """Of a training recorded on a GPU, and of synthetic traces: rows add up to the view's, operator by operator."""
    trace = ROOT / "tests/data/cuda/train.sonde" if case == "train" else generate(
        case, tmp_path / "t.sonde", *(["500"] if case in SIZED else []))
    shown = read_json("report", trace, "--view", "kernels", "--group-by", "operator", "--json", "--rows", "-1")["rows"]
    expected = {(row["name"], row["kind"], row["operator"]):
                (row["count"], row["total_ns"], row["min_ns"], row["max_ns"], row["bytes"], row["graph_count"]) for row in shown}
    with export(trace, tmp_path / "t.db") as db:
        found = {row[:3]: row[3:] for row in db.execute("""
            select name, kind, coalesce(operator, iif(thread is null, null, '(no range)')), count(*), sum(duration_ns), min(duration_ns), max(duration_ns),
                   sum(bytes), count(graph_node) from gpu_work group by 1, 2, 3""")}
        lost = db.execute("select count(*) from gpu_work where (thread is null) != (launch_ns is null)").fetchone()
        around = db.execute("""
            select count(*) from gpu_work g where operator is not null and operator != 'ProfilerStep*' and not exists (
                select * from ranges r where r.thread = g.thread and r.name = g.operator
                    and g.launch_ns between r.start_ns and r.start_ns + r.duration_ns)""").fetchone()
    assert found == expected and expected and lost == around == (0,)


def test_many_rows_and_names(tmp_path):
    """Trees of several levels, of a table and of an index."""
    trace = generate("many_names", tmp_path / "t.sonde", "20000")
    with export(trace, tmp_path / "t.db") as db:
        by_scan = sorted(db.execute("select +name, rowid from ranges").fetchall(), key=lambda row: (row[0].encode(), row[1]))
        assert db.execute("select name, rowid from ranges order by name, rowid").fetchall() == by_scan and len(by_scan) >= 20000
        name = by_scan[12345][0]
        plan = db.execute("explain query plan select * from ranges where name = ?", (name,)).fetchone()[3]
        assert plan == "SEARCH ranges USING INDEX ranges_name (name=?)"
        assert db.execute("select rowid from ranges where name = ?", (name,)).fetchall() == [
            (row,) for one, row in by_scan if one == name]


def test_to_standard_output_and_compressed(tmp_path):
    trace = generate("convnet", tmp_path / "t.sonde")
    assert read("export", trace, "--to", "sqlite", "-o", tmp_path / "t.db") == b""
    assert read("export", trace, "--to", "sqlite", "-o", "-") == (tmp_path / "t.db").read_bytes()
    assert b"GPU work" in read("export", "--list")
    done = sonde("export", trace, "--to", "sqlite", "-o", tmp_path / "no/x.db")
    assert done.returncode == 1 and b"cannot create" in done.stderr
    assert not list(pathlib.Path(tmp_path).glob("sonde-sqlite-*"))
