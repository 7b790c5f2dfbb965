#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/ranks.py [--quick] - jobs of many ranks: what standing by costs a program, and what their traces cost to divide.

Standing by: operators of a small model, in a program that `sonde run --standby` started and in one of its own, in turn; what the end of
a step costs it, over a range of Python while nothing records. Ranges: a generated job of four ranks that train a model of 16 layers
(tests/gen/gen layers_job), read and no more, by the view ranks, as Parquet, and of that by the query rank_times on DuckDB: CPU time of the
whole command, scaled to 1 G ranges. A sum over its ranges by sonde sql: elapsed, and memory. Best of several rounds.
Exit status: 1 if a budget is missed.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from figures import BUILD, ROOT, build, conclude, figure, ratio, say

SONDE = f"{ROOT}/.venv/bin/sonde"
GEN = f"{ROOT}/build/tests/gen/gen"
RANGES_OF_A_STEP = 2272  # of four ranks

PROGRAM = """
import json, time, torch, sonde
torch.set_num_threads(1)
model, x = torch.nn.Sequential(*[torch.nn.Linear(16, 16) for _ in range(16)]), torch.randn(4, 16)

def operators():
    with torch.no_grad():
        for _ in range(40):
            model(x)

def steps():
    for _ in range(20000):
        sonde.step()

def ranges():
    for _ in range(20000):
        with sonde.record_function("x"):
            pass

def best(work, times):
    found = []
    for _ in range(ROUNDS):
        begin = time.thread_time_ns()
        work()
        found.append((time.thread_time_ns() - begin) / times)
    return min(found)

print(json.dumps([best(operators, 40 * 16), best(steps, 20000), best(ranges, 20000)]))
"""


def run_program(folder, rounds, standby):
    command = [sys.executable, "-c", PROGRAM.replace("ROUNDS", str(rounds))]
    if standby:
        command = [SONDE, "run", "-q", "--standby", "-o", f"{folder}/job", "--", *command]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def cost(command):
    """Seconds, of the CPU and elapsed, and the most memory in MB."""
    with open(os.devnull, "wb") as nowhere:
        begin = time.perf_counter()
        child = subprocess.Popen(command, stdout=nowhere, stderr=nowhere)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"ranks.py: failed: {command}")
    return used.ru_utime + used.ru_stime, time.perf_counter() - begin, used.ru_maxrss / 1024


def cpu_seconds(command):
    return cost(command)[0]


def measure_standby(folder, quick):
    pairs = [[run_program(folder, 5 if quick else 50, standby) for standby in (True, False)] for _ in range(2 if quick else 5)]
    ours, bare = [[one[side] for one in pairs] for side in (0, 1)]
    yield ratio("standby_operator", "an operator of a program that stands by, over one of its own",
                [one[0] for one in ours], [one[0] for one in bare])
    step, idle = (min(one[1] for one in side) for side in (ours, bare))
    usual = min(one[2] for one in bare)
    yield figure("standby_step", "standing by adds to a step, over a range while nothing records", max(step - idle, 0) / usual, "x", 1,
                 best_ns=[step - idle, usual])


def measure_ranges(folder, quick):
    steps = 2250 if quick else 4500
    job, tables = f"{folder}/ranks", f"{folder}/tables"
    count, tries = steps * RANGES_OF_A_STEP, range(2 if quick else 5)
    subprocess.run([GEN, "layers_job", job, str(steps)], check=True)
    found = json.loads(subprocess.run([SONDE, "report", job, "--view", "summary", "--json"], stdout=subprocess.PIPE, check=True).stdout)
    if found["totals"]["ranges"] != count:
        sys.exit(f"ranks.py: {count} ranges expected: {found['totals']}")

    def scaled(*command):
        return min(cpu_seconds([SONDE, *command]) for _ in tries) / count * 1e9
    floor = scaled("report", job, "--view", "ops")
    yield figure("ranks_floor", "the table of operators of 1 G ranges, by thread, CPU time", floor, "s")
    yield figure("ranks_view", f"view ranks of 1 G ranges, scaled from {count:,}, CPU time", scaled("report", job, "--view", "ranks"), "s", 60,
                 why=f"the table of operators, which is one walk over the same ranges and a sum for each name, takes {floor:.0f} s.")
    export = min(cpu_seconds([SONDE, "export", job, "--to", "parquet", "-o", f"{tables}{i}"]) for i in tries)
    size = sum(one.stat().st_size for one in pathlib.Path(f"{tables}0").rglob("*") if one.is_file())
    build("bench/export_limit")
    least = min(cpu_seconds([f"{BUILD}/bench/export_limit", job, str(size), f"{folder}/limit"]) for _ in tries)
    yield figure("parquet_ranges", f"ranges to Parquet a CPU second, of {count:,}", count / export, "/s", 4e6, at_least=True, limit=count / least,
                 why=f"one reading pass and the bytes take {least:.1f} s of its {export:.1f} s; the walk and the columns have a thread each, "
                     "and both count (docs/decisions/0029).")
    yield from measure_query(f"{tables}0", count, tries)
    yield from measure_scan(job, count, tries)


# What a query over the table must do at least: read each number that the division is made of.
FLOOR = "select sum(duration_ns), sum(is_compute), sum(is_communication), sum(is_loading), count(step) from activity"


QUERY = """
import resource, sys, sonde.sql

def used():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime

connection = sonde.sql.connect(sys.argv[1])
begin = used()
connection.execute(sys.argv[2] if " " in sys.argv[2] else sonde.sql.query(sys.argv[2])).fetchall()
print(used() - begin)
"""


def measure_query(tables, count, tries):
    """CPU time of DuckDB alone. The division itself is made by the export."""
    def least(query):
        return min(float(subprocess.run([sys.executable, "-c", QUERY, tables, query], stdout=subprocess.PIPE, check=True).stdout)
                   for _ in tries)
    floor, found = least(FLOOR), least("rank_times")
    yield figure("ranks_sql_floor", "the columns of 1 G ranges' activity read by DuckDB, CPU time", floor / count * 1e9, "s")
    yield figure("ranks_sql", f"rank_times of 1 G ranges of Parquet on DuckDB, scaled from {count:,}, CPU time", found / count * 1e9, "s", 40,
                 both=f"{found:.3f} s, of which {floor:.3f} s read the columns")


def measure_scan(job, count, tries):
    """A query that one pass answers, of the trace itself, with the start of Python and DuckDB."""
    found = [cost([SONDE, "sql", job, "select name, count(*), sum(self_ns) from ranges group by name"]) for _ in tries]
    cpu, elapsed, memory = (min(one) for one in zip(*found))
    yield figure("sql_time", f"sonde sql: a sum by name over {count:,} ranges of a trace, elapsed", elapsed, "s", 2,
                 both=f"{cpu:.2f} s of CPU time")
    yield figure("sql_memory", f"the most memory of sonde sql over {count:,} ranges", memory, "MB", 200)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--quick", action="store_true")
    quick = options.parse_args().quick
    with tempfile.TemporaryDirectory(prefix="sonde-bench-") as folder:
        results = [say(one) for measure in (measure_ranges, measure_standby) for one in measure(folder, quick)]
    conclude(results, keeps=not quick)


if __name__ == "__main__":
    main()
