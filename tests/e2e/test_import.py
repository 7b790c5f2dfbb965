# SPDX-License-Identifier: Apache-2.0
"""Traces of other tools: read by every command as they are, kept by `sonde import`."""
import gzip
import json
import pathlib
import random
import struct
from decimal import Decimal

import pytest

import sonde
from cli_tools import ROOT, read, sonde as run

DATA = ROOT / "tests/data/import"
KINETO = ROOT / "tests/data/gpu/train_stack.trace.json.gz"


def rows(path, view, *options):
    return json.loads(read("report", path, "--view", view, "--json", "--rows", "-1", *options))["rows"]


def ledger(path):
    return {row["key"]: row["count"] for row in rows(path, "ledger")}


def write(path, events, **members):
    path.write_text(json.dumps({**members, "traceEvents": events}))
    return path


def complete(name, ts, dur, **more):
    return {"ph": "X", "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, **more}


def without(row, key):
    """Counters of a GPU's memory are repeated where the thread changes: there are more of them in the order of time."""
    return {k: v for k, v in row.items() if k != key}


# ------------------------------------------------------------------------- the same, in every way

def test_exported_and_read_again(tmp_path):
    """All tables of a trace, and of the Chrome trace that was written of it, are the same."""
    first, second = tmp_path / "first.sonde", tmp_path / "second.json.gz"
    read("import", KINETO, "-o", first)
    read("export", first, "--to", "chrome", "-o", second)
    for view in ("ops", "kernels", "gpu", "memory", "threads", "tree", "modules"):
        assert [without(row, "events") for row in rows(first, view)] == \
            [without(row, "events") for row in rows(second, view)], view
    assert {k: v for k, v in ledger(second).items() if k not in ("derived_events", "unkept_arguments")} == \
        {k: v for k, v in ledger(first).items() if k not in ("derived_events", "unkept_arguments")}


def test_imported_is_what_the_file_is(tmp_path):
    packed = tmp_path / "t.sonde"
    read("import", KINETO, "-o", packed)
    for view in ("ops", "kernels", "tree", "summary"):
        assert rows(packed, view) == rows(KINETO, view), view
    assert b"whole" in read("check", packed)


def test_python_reads_it():
    trace = sonde.Trace(str(KINETO))
    averages = {row.key: row.count for row in trace.averages()}
    assert averages["aten::addmm"] == 3


def test_every_command(tmp_path):
    read("diff", KINETO, KINETO)
    for kind, name in (("perfetto", "p.pb"), ("speedscope", "s.json"), ("json", "t.json"), ("parquet", "parquet")):
        read("export", KINETO, "--to", kind, "-o", tmp_path / name)
        assert (tmp_path / name).exists()


# --------------------------------------------------------------------------------- times, order

def test_times_to_the_digit(tmp_path):
    """As doubles these would be the same."""
    base = Decimal("1700000000000000.125")
    text = ",".join('{"ph": "X", "name": "e%d", "pid": 1, "tid": 1, "ts": %s, "dur": 0.001}' %
                    (i, base + Decimal(i) * Decimal("0.002")) for i in range(50))
    path = tmp_path / "t.json"
    path.write_text("[" + text + "]")
    read("export", path, "--to", "chrome", "-o", tmp_path / "out.json")
    out = json.loads((tmp_path / "out.json").read_text(), parse_float=Decimal)
    starts = {e["name"]: e["ts"] * 1000 + out["baseTimeNanoseconds"] for e in out["traceEvents"] if e["ph"] == "X"}
    assert starts == {f"e{i}": base * 1000 + 2 * i for i in range(50)}


def by_torchs_rule(events):
    """{name: self time}, as torch's lists have it: sorted by start and end, a range that outlasts another is no child of it."""
    open_, own = [], {e["name"]: e["dur"] for e in events}
    for e in sorted(events, key=lambda e: (e["ts"], -e["dur"])):
        while open_ and (e["ts"] >= open_[-1]["ts"] + open_[-1]["dur"] or
                         e["ts"] + e["dur"] > open_[-1]["ts"] + open_[-1]["dur"]):
            open_.pop()
        if open_:
            own[open_[-1]["name"]] -= e["dur"]
        open_.append(e)
    return own


@pytest.mark.parametrize("seed", range(3))
def test_out_of_order_and_nested(tmp_path, seed):
    """Ranges that nest, in any order in the file."""
    draw = random.Random(seed)
    events = []

    def make(begin, end, depth):
        events.append(complete(f"r{len(events)}", begin, end - begin))
        cuts = sorted(draw.sample(range(begin + 1, end), min(4, max(0, (end - begin) // 20)) // 2 * 2)) if depth < 6 and end - begin > 3 else []
        for left, right in zip(cuts[::2], cuts[1::2]):
            make(left, right, depth + 1)
    for i in range(40):
        make(i * 1000, i * 1000 + 900, 0)
    draw.shuffle(events)
    found = {row["key"]: Decimal(str(row["self_cpu_time_total"])) for row in rows(write(tmp_path / "t.json", events), "ops")}
    assert found == {name: Decimal(ns) for name, ns in by_torchs_rule(events).items()}


def test_a_file_of_many_events_is_sorted_on_disk(tmp_path):
    """More than memory holds at a time, backwards."""
    path = tmp_path / "t.json.gz"
    with gzip.open(path, "wt", compresslevel=1) as file:
        file.write('{"traceEvents": [\n')
        file.write(",\n".join('{"ph":"X","name":"n%d","pid":1,"tid":%d,"ts":%d.5,"dur":1}' % (i % 7, i % 3, (200000 - i) * 2)
                              for i in range(200000)))
        file.write("\n]}")
    table = rows(path, "ops")
    assert sum(row["count"] for row in table) == 200000
    assert sum(row["self_cpu_time_total"] for row in table) == 200000
    assert ledger(path) == {}


# ------------------------------------------------------------------------- damage, odd files

def read_by_python(text):
    """How many events Python's json finds; None: it is no JSON."""
    try:
        found = json.loads(text)
    except ValueError:
        return None
    found = found.get("traceEvents") if isinstance(found, dict) else found
    return len([e for e in found if isinstance(e, dict)]) if isinstance(found, list) else None


def test_changed_at_random(tmp_path):
    """What Python's json reads, we read; nothing else ends in anything but an error or a recovered part."""
    draw, text = random.Random(5), (DATA / "odd.json").read_bytes()
    judged = 0
    for i in range(60):
        changed = bytearray(text)
        for _ in range(draw.randint(1, 3)):
            changed[draw.randrange(len(changed))] = draw.choice(b'"{}[],:0 \\x')
        path = tmp_path / "t.json"
        path.write_bytes(changed)
        done = run("report", path, "--view", "ledger", "--csv")
        assert done.returncode in (0, 1), (i, done)
        if done.returncode:
            assert b"is not a trace of sonde" in done.stderr and b"Traceback" not in done.stderr, done.stderr
        if read_by_python(changed.decode()) is not None:
            judged += 1
            assert done.returncode == 0 and b"cut_text" not in done.stdout, done
    assert judged > 5


def test_compressed_in_parts_and_cut(tmp_path):
    whole = gzip.decompress(KINETO.read_bytes())
    path = tmp_path / "t.json.gz"
    path.write_bytes(gzip.compress(whole[:50000]) + gzip.compress(whole[50000:]))
    assert rows(path, "ops") == rows(KINETO, "ops")
    path.write_bytes(KINETO.read_bytes()[:30000])
    short = rows(path, "ops")
    assert 0 < sum(row["count"] for row in short) < sum(row["count"] for row in rows(KINETO, "ops"))
    assert ledger(path)["cut_text"] > 0


def test_bytes_that_are_no_text(tmp_path):
    path = tmp_path / "t.json"
    path.write_bytes(b'[{"ph":"X","name":"a\xff\x01b","pid":1,"tid":1,"ts":1,"dur":1},'
                     b'{"ph":"X","name":"\\ud800","pid":1,"tid":1,"ts":3,"dur":1}')
    assert len(rows(path, "ops")) == 2
    assert ledger(path)["repaired_events"] == 1


# --------------------------------------------------------------------------------- ranks, folders

def test_rank(tmp_path):
    first = write(tmp_path / "a.json", [complete("a", 1, 2)], distributedInfo={"rank": 3, "world_size": 8, "backend": "nccl"})
    second = write(tmp_path / "host_rank-5.pt.trace.json", [complete("a", 1, 2)])
    for path, told in ((first, (3, 8)), (second, (5, 0xffffffff))):
        read("import", path, "-o", tmp_path / "t.sonde")
        assert struct.unpack_from("<II", (tmp_path / "t.sonde").read_bytes(), 56) == told


def test_a_folder_of_tensorboard(tmp_path):
    for rank in range(3):
        write(tmp_path / f"worker{rank}.pt.trace.json", [complete("step", 10, 5 + rank, cat="user_annotation")],
              distributedInfo={"rank": rank, "world_size": 3})
    (tmp_path / "notes.txt").write_text("none")
    table = rows(tmp_path, "ops", "--group-by", "process")
    assert sorted(row["cpu_time_total"] for row in table) == [5, 6, 7]


def test_no_events(tmp_path):
    for text, said in (('{"a": 1}', "no list traceEvents"), ('{"traceEvents": []}', "no events"), ("[", "no events"),
                       ('{"a": [1,\n x]}', "line 1, byte 2")):
        path = tmp_path / "t.json"
        path.write_text(text)
        done = run("report", path)
        assert done.returncode == 1 and said in done.stderr.decode(), done.stderr
    assert not pathlib.Path(tmp_path / "t.sonde").exists()
