# SPDX-License-Identifier: Apache-2.0
"""sonde run --counters: what it counts, against perf stat; what it says of what it cannot count."""
import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys

import pytest

from cli_tools import ROOT, SONDE, find, needs_worker, read, read_json, sonde

COUNTED = find("SONDE_COUNTED", ROOT / "build/tests/e2e/e2e_counted")
PERF = shutil.which("perf")
pytestmark = [needs_worker, pytest.mark.skipif(not COUNTED, reason="e2e_counted is not built: run `make`")]
needs_perf = pytest.mark.skipif(not PERF, reason="perf is not installed: apt install linux-perf")
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="becomes another user")
NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]


def perf_stat(events, *program, before=()):
    """Values of perf stat by name; None: it could not count it."""
    done = subprocess.run([*before, PERF, "stat", "-x,", "-e", events, "--", *map(str, program)],
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=100)
    rows = [line.split(",") for line in done.stderr.splitlines() if line.count(",") >= 5]
    return {row[2]: None if row[0].startswith("<") else float(row[0]) for row in rows}


def counters(trace):
    return {row["counter"]: row for row in read_json("report", trace, "--view", "counters", "--json")["rows"]}


def count(tmp_path, *words, name="c.sonde", status=0, before=(), **extra):
    """The rows of a run, by name: the options, "--", the program."""
    trace = tmp_path / name
    done = subprocess.run([*before, SONDE, "run", "-q", "-o", str(trace), *map(str, words)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=100, **extra)
    assert done.returncode == status, done.stderr
    return counters(trace)


# ------------------------------------------------------------------------- as perf counts

@needs_perf
@pytest.mark.parametrize("program", [("pages", 5000), ("threads", 20), ("children", 20), ("exec", 3000)],
                         ids=lambda program: program[0])
def test_page_faults_are_perfs(tmp_path, program):
    """In turn, five times each: as many faults, within the spread of both, and never fewer than pages."""
    events = "page-faults,minor-faults"
    ours, theirs = [], []
    for turn in range(5):
        theirs.append(perf_stat(events, COUNTED, *program)["page-faults"])
        rows = count(tmp_path, f"--counters={events}", "--", COUNTED, *program, name=f"{turn}.sonde")
        ours.append(rows["page-faults"]["value"])
        assert rows["minor-faults"]["value"] <= rows["page-faults"]["value"]
        assert rows["page-faults"]["running_percent"] == 100
    pages = {"pages": 5000, "threads": 2000, "children": 2000, "exec": 3000}[program[0]]
    assert min(ours) >= pages
    spread = max(theirs) - min(theirs) + max(ours) - min(ours) + 3  # where the stack and the libraries lie
    assert abs(statistics.median(ours) - statistics.median(theirs)) <= spread, (ours, theirs)


@needs_perf
def test_switches_and_clock_are_perfs(tmp_path):
    events = "context-switches,task-clock"
    theirs = perf_stat(events, COUNTED, "sleeps", 100)
    ours = count(tmp_path, f"--counters={events}", "--", COUNTED, "sleeps", 100)
    for value in (theirs["context-switches"], ours["context-switches"]["value"]):
        assert 100 <= value < 200  # each sleep is a switch; a busy machine adds some
    ours = count(tmp_path, f"--counters={events}", "--", COUNTED, "spin", 200)
    assert 190e6 <= ours["task-clock"]["value"] < 260e6
    assert 190 <= perf_stat(events, COUNTED, "spin", 200)["task-clock"] < 260
    times = ours["user_time"]["value"] + ours["system_time"]["value"]
    assert abs(times - ours["task-clock"]["value"]) < 30e6
    assert ours["duration_time"]["value"] >= 190e6
    utilized = ours["task-clock"]["value"] / ours["duration_time"]["value"]
    assert ours["task-clock"]["metric"] == pytest.approx(utilized) and ours["task-clock"]["metric_unit"] == "CPUs utilized"


@needs_perf
def test_perf_supports_what_we_do(tmp_path):
    """The same counters have values, and the same have none."""
    names = ("task-clock,cpu-clock,context-switches,cpu-migrations,page-faults,minor-faults,major-faults,"
             "alignment-faults,emulation-faults,cycles,instructions,branches,branch-misses,cache-references,"
             "cache-misses,L1-dcache-load-misses,LLC-loads,dTLB-load-misses,r1c2")
    theirs = perf_stat(names, COUNTED, "pages", 10)
    ours = count(tmp_path, f"--counters={names}", "--", COUNTED, "pages", 10)
    assert list(ours) == [*names.split(","), "duration_time", "user_time", "system_time"]
    for name in names.split(","):
        assert (ours[name]["value"] is None) == (theirs[name] is None), name
        assert (ours[name]["absent"] is None) == (ours[name]["value"] is not None)


@needs_perf
def test_perf_around_sonde_counts_more(tmp_path):
    """sonde itself is not counted: perf stat of it has more faults than it says of the program."""
    trace = tmp_path / "c.sonde"
    around = perf_stat("page-faults", SONDE, "run", "-q", "-o", trace, "--counters=page-faults", "--", COUNTED, "pages", 2000)
    inside = counters(trace)["page-faults"]["value"]
    assert 2000 <= inside < around["page-faults"] - 50


# ------------------------------------------------------------------------------- repeating

def test_repeat_has_perfs_spread(tmp_path):
    """The mean of the runs, and the standard error of the mean; the trace has each run."""
    rows = count(tmp_path, "-r", 6, "--counters=page-faults,task-clock", "--", COUNTED, "spin", 5)
    for name in ("page-faults", "task-clock", "duration_time"):
        row = rows[name]
        assert row["runs"] == 6 and row["min"] <= row["value"] <= row["max"]
        assert row["spread_percent"] == pytest.approx(100 * row["spread"] / row["value"])
        # between two runs that differ alone and half that differ
        assert row["spread"] <= (row["max"] - row["min"]) / 2
    text = read("report", tmp_path / "c.sonde").decode()
    assert "(6 runs)" in text and re.search(r"task-clock .* \( \+- +[\d.]+% \)", text)


@needs_perf
def test_repeat_is_perfs_formula(tmp_path):
    """Values that differ by a known amount: perf's percentage of them is ours."""
    # each run touches as many pages as the file has bytes, and adds 1,000
    script = tmp_path / "more.sh"
    script.write_text('#!/bin/sh\nhead -c 1000 /dev/zero >>"$1"\nexec "$2" pages $(wc -c <"$1")\n')
    script.chmod(0o755)
    theirs = subprocess.run([PERF, "stat", "-x,", "-r", "5", "-e", "page-faults", "--", script, tmp_path / "theirs", COUNTED],
                            stderr=subprocess.PIPE, text=True, check=True).stderr.split(",")
    rows = count(tmp_path, "-r", 5, "--counters=page-faults", "--", script, tmp_path / "ours", COUNTED)
    values = [1000.0 * run for run in range(1, 6)]
    error = statistics.stdev(values) / 5 ** 0.5
    assert rows["page-faults"]["spread"] == pytest.approx(error, rel=0.02)
    # perf 6.1 writes the last run's value with -x, and the percentage of that
    assert rows["page-faults"]["spread"] == pytest.approx(float(theirs[0]) * float(theirs[3].rstrip("%")) / 100, rel=0.02)


@pytest.mark.parametrize("mode, status", [(("exit", 7), 7), (("raise", int(signal.SIGKILL)), -int(signal.SIGKILL)),
                                          (("exit", 0), 0)])
def test_status_is_kept(tmp_path, mode, status):
    rows = count(tmp_path, "-r", 3, "--counters", "--", COUNTED, *mode, status=status)
    assert rows["page-faults"]["value"] > 0
    assert rows["page-faults"]["runs"] == (1 if mode[0] == "raise" else 3)


def test_repeat_stops_at_an_interrupt(tmp_path):
    trace = tmp_path / "c.sonde"
    run = subprocess.Popen([SONDE, "run", "-q", "-o", trace, "-r", "1000", "--counters", "--", COUNTED, "wait"],
                           stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert run.stdout.readline() == "ready\n"
    os.killpg(run.pid, signal.SIGINT)
    assert run.wait(timeout=60) == -signal.SIGINT
    run.stdout.close()
    assert counters(trace)["task-clock"]["runs"] == 1


def test_a_program_that_cannot_be_run(tmp_path):
    done = sonde("run", "--counters", "-o", tmp_path / "c.sonde", "--", "./no-such-program")
    assert done.returncode == 127 and not (tmp_path / "c.sonde").exists()


# -------------------------------------------------------------------------- what is printed

def test_print_and_report_say_the_same(tmp_path):
    trace = tmp_path / "c.sonde"
    done = sonde("run", "-q", "-p", "-o", trace, "--counters", "--", COUNTED, "pages", 300)
    assert done.returncode == 0
    assert done.stdout == read("report", trace, "--view", "counters") == read("report", trace)
    text = done.stdout.decode()
    assert f"Counters of '{COUNTED} pages 300':" in text
    for words in (r"msec task-clock +# +[\d.]+ CPUs utilized", r"page-faults +# +[\d.]+ [KM]?/sec", "seconds time elapsed",
                  "seconds user", "seconds sys"):
        assert re.search(words, text), text
    rows = read("report", trace, "--csv").decode().splitlines()
    assert rows[0].startswith("counter,value,unit") and rows[1].startswith("task-clock,")


def test_printed_where_perf_stat_prints(tmp_path):
    """On standard error, beside what the program prints; not with --quiet."""
    trace = tmp_path / "c.sonde"
    done = sonde("run", "-o", trace, "--counters", "--", "echo", "its own output")
    assert (done.returncode, done.stdout) == (0, b"its own output\n")
    assert read("report", trace, "--view", "counters").strip() in done.stderr
    done = sonde("run", "-q", "-o", trace, "--counters", "--", "echo", "its own output")
    assert (done.stdout, done.stderr) == (b"its own output\n", b"")


def test_a_counter_that_is_not_there_is_named(tmp_path):
    rows = count(tmp_path, "--counters=r7fff,page-faults", "--", COUNTED, "pages", 10)
    if rows["r7fff"]["value"] is None:
        assert rows["r7fff"]["absent"].startswith(("not supported: ", "not counted: "))
        assert re.search(r"<not \w+> +r7fff +# \w", read("report", tmp_path / "c.sonde").decode())
    assert rows["page-faults"]["value"] >= 10


@pytest.mark.parametrize("words, says", [
    (["--counters=page-fault"], "unknown counter 'page-fault' (did you mean 'page-faults'?)"),
    (["--counters=cycles,"], "unknown counter ''"),
    (["--counters=cycles:x"], "counter 'cycles': unknown modifier 'x'; expected :u"),
    (["--counters=cycles:"], "expected :u, :k or :uk after it"),
    (["--counters=rxyz"], "unknown counter 'rxyz'"),
    (["--counters=task-clock:u"], "counter 'task-clock' has no modes"),
    (["--counters=user_time"], "counter 'user_time' is always recorded"),
    (["--counters=" + ",".join(f"r{number}" for number in range(33))], "more than 32 counters"),
    (["-r", "3"], "--repeat requires --counters"),
    (["--counters", "-r", "0"], "--repeat: expected an integer >= 1"),
    (["--view", "counters", "--print", "--ops"], "add --counters"),
])
def test_wrong_lists(tmp_path, words, says):
    done = sonde("run", *words, "--", COUNTED, "pages", "1", cwd=tmp_path)
    assert done.returncode == 2 and says in done.stderr.decode()
    assert list(tmp_path.iterdir()) == []


def test_modes_add_up(tmp_path):
    """Faults in user mode and in kernel mode are all of them."""
    if os.getuid() != 0:
        pytest.skip("kernel mode is not permitted")
    rows = count(tmp_path, "--counters=page-faults,page-faults:u,page-faults:k", "--", COUNTED, "pages", 100)
    assert rows["page-faults:u"]["value"] >= 100
    assert rows["page-faults:u"]["value"] + rows["page-faults:k"]["value"] == rows["page-faults"]["value"]


# ------------------------------------------------------------------------------------ users

def open_to_all(folder):
    folder.chmod(0o777)
    for parent in [*folder.parents][:-1]:
        parent.chmod(parent.stat().st_mode | 0o011)


@needs_root
def test_another_user(tmp_path):
    """User mode where no more is permitted, and said; switches are not the 0 that perf prints."""
    if int(pathlib.Path("/proc/sys/kernel/perf_event_paranoid").read_text()) < 2:
        pytest.skip("every user may count the kernel here")
    if not reachable():
        pytest.skip("another user cannot reach the programs")
    open_to_all(tmp_path)
    rows = count(tmp_path, "--counters", "--", COUNTED, "sleeps", 50, before=NOBODY)
    assert rows["page-faults:u"]["value"] > 0 and "user mode only" in rows["page-faults:u"]["note"]
    assert rows["task-clock"]["value"] > 0
    assert 50 <= rows["context-switches"]["value"] < 120 and "getrusage" in rows["context-switches"]["note"]
    assert rows["cpu-migrations"]["absent"].startswith("not permitted: ")


@needs_root
def test_a_program_that_is_found_late(tmp_path):
    """What its process does before, here a search of a thousand folders, takes longer than the program: it is counted all the same."""
    if not reachable():
        pytest.skip("another user cannot reach the programs")
    path = ":".join([*(f"/nowhere/{number}" for number in range(1000)), "/usr/bin", "/bin"])
    open_to_all(tmp_path)
    rows = count(tmp_path, "--counters=page-faults", "--", "true", before=[*NOBODY, "env", f"PATH={path}"])
    assert rows.keys() & {"page-faults", "page-faults:u"} and "getrusage" not in str(rows), rows


def reachable():
    return subprocess.run([*NOBODY, SONDE, "--version"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode == 0 and \
        subprocess.run([*NOBODY, COUNTED, "exit", "0"]).returncode == 0


@needs_root
def test_a_setuid_program(tmp_path):
    """Of a program with more privileges than its caller the kernel ends the counting: that is said."""
    if not reachable():
        pytest.skip("another user cannot reach the programs")
    program = pathlib.Path(shutil.copy(COUNTED, "/tmp/sonde-test-setuid"))
    place = pathlib.Path("/tmp/sonde-test-setuid.d")
    try:
        program.chmod(0o4755)
        place.mkdir(mode=0o777, exist_ok=True)
        place.chmod(0o777)
        rows = count(place, "--counters=page-faults,alignment-faults", "--", program, "sleeps", 20, before=NOBODY)
        assert "set-user-id" in rows["alignment-faults"]["absent"]
        assert rows["page-faults"]["value"] > 20 and "getrusage" in rows["page-faults"]["note"]
    finally:
        program.unlink()
        shutil.rmtree(place, ignore_errors=True)


# ----------------------------------------------------------------------------- with others

def test_beside_other_probes(tmp_path):
    """A program that marks has its own file; both are in the trace, and every view finds its own."""
    worker = find("SONDE_WORKER", ROOT / "build/tests/e2e/e2e_worker")
    rows = count(tmp_path, "--counters", "--ops", "--", worker, "steps", 3)
    assert rows["page-faults"]["value"] > 0
    ops = read_json("report", tmp_path / "c.sonde", "--view", "ops", "--json")
    assert ops["rows"] and ops["ledger"] == {}


def test_a_python_program_runs_as_if_alone(tmp_path):
    """Counters alone start nothing in the program."""
    code = "import os, sys; print(sorted(k for k in os.environ if k.startswith('SONDE_') and k != 'SONDE_TRACE'), 'sitecustomize' in sys.modules and sys.modules['sitecustomize'].__file__)"
    done = sonde("run", "-q", "-o", tmp_path / "c.sonde", "--counters=page-faults", "--", "python3", "-c", code)
    alone = subprocess.run(["python3", "-c", code], stdout=subprocess.PIPE, check=True).stdout
    assert done.stdout.replace(b"'SONDE_COUNTERS'", b"") == alone


# ---------------------------------------------------------------------------------- ranges

RANGES = find("SONDE_RANGEPAGES", ROOT / "build/tests/e2e/e2e_rangepages")


def test_ranges_have_counters(tmp_path):
    """Two threads and a child, each 10 pages outside and 300 inside; 20 sleeps each."""
    count(tmp_path, "--counters=page-faults,context-switches,task-clock", "--per-range", "--", RANGES)
    rows = {row["name"]: row for row in read_json("report", tmp_path / "c.sonde", "--view", "range-counters", "--json")["rows"]}
    assert {name: row["count"] for name, row in rows.items()} == {"outer": 3, "inner": 9, "sleep": 3}
    assert 900 <= rows["inner"]["page_faults"] < 920 and rows["inner"]["self_page_faults"] == rows["inner"]["page_faults"]
    assert 30 <= rows["outer"]["self_page_faults"] < 60
    for key in ("page_faults", "context_switches", "task_clock"):
        parts = sum(row[f"self_{key}"] for row in rows.values())
        assert rows["outer"][key] == parts, key
    assert rows["sleep"]["self_context_switches"] >= 60
    assert 0 < rows["outer"]["task_clock"] <= rows["outer"]["total_ns"]
    ops = read_json("report", tmp_path / "c.sonde", "--view", "ops", "--json")
    assert sorted(row["key"] for row in ops["rows"]) == ["inner", "outer", "sleep"] and ops["ledger"] == {}


def test_ranges_have_none_unasked(tmp_path):
    count(tmp_path, "--counters", "--", RANGES)
    assert b"record them with sonde run --counters --per-range" in read("report", tmp_path / "c.sonde", "--view", "range-counters")


@pytest.mark.parametrize("option, who", [("--per-range", b"ranges"), ("--per-function", b"functions")])
def test_counters_that_threads_cannot_have(tmp_path, option, who):
    done = sonde("run", "--counters=r7fff", option, "--", RANGES, cwd=tmp_path)
    assert done.returncode == 2 and option.encode() + b": " + who + b" cannot have r7fff (events by number" in done.stderr
    done = sonde("run", "-o", tmp_path / "c.sonde", "--counters=r7fff,page-faults", "--per-range", "--", RANGES)
    assert done.returncode == 0 and b"ranges have no r7fff (events by number are of the whole program)" in done.stderr
    many = "task-clock,cpu-clock,page-faults,minor-faults,major-faults,context-switches,alignment-faults,emulation-faults,page-faults:u"
    done = sonde("run", "-o", tmp_path / "c.sonde", f"--counters={many}", "--per-range", "--", RANGES)
    assert done.returncode == 0 and b"ranges have no page-faults:u (there are 8 before it, and no more are read)" in done.stderr


def test_a_full_trace_keeps_its_counters(tmp_path):
    """With a limit that is reached, what was recorded still adds up, and the loss is told."""
    worker = find("SONDE_WORKER", ROOT / "build/tests/e2e/e2e_worker")
    count(tmp_path, "--counters", "--per-range", "--max-size", "512K", "--", worker, "steps", 20000)
    rows = read_json("report", tmp_path / "c.sonde", "--view", "range-counters", "--json")["rows"]
    assert rows and all(row["self_page_faults"] <= row["page_faults"] for row in rows)


def test_operators_have_counters(tmp_path):
    """Those of PyTorch: a tensor of 4 MB that is filled takes its pages in the operator that fills it."""
    pytest.importorskip("torch", reason="torch is not installed")
    script = tmp_path / "ops.py"
    script.write_text("import torch\ntorch.set_num_threads(1)\nfor _ in range(3):\n    torch.zeros(1 << 24).add_(1)\n")
    count(tmp_path, "--counters=page-faults", "--per-range", "--ops", "--", sys.executable, script)
    rows = {row["name"]: row for row in read_json("report", tmp_path / "c.sonde", "--view", "range-counters", "--json")["rows"]}
    assert rows["aten::zeros"]["count"] == 3 and rows["aten::add_"]["count"] == 3
    assert sum(row["self_page_faults"] for row in rows.values()) > 0


def test_the_facts_are_in_the_trace(tmp_path):
    """By the public reader: name, value, run."""
    count(tmp_path, "-r", 2, "--counters=page-faults", "--", COUNTED, "pages", 10)
    info = json.loads(read("report", tmp_path / "c.sonde", "--view", "counters", "--json"))
    assert info["totals"]["runs"] == 2


# -------------------------------------------------------------------------------- functions

PYTHON = ROOT / ".venv/bin/python"
FUNCTIONS = """
import mmap, os, sys, threading
memory = [mmap.mmap(-1, 700 * 4096) for _ in range(5)]  # a page that is touched first is a fault
for one in memory:
    one.madvise(mmap.MADV_NOHUGEPAGE)
def touch(one, first, count):
    for i in range(first, first + count):
        one[i * 4096] = 1
def outer(one):
    touch(one, 0, 500)
    one[600 * 4096] = 1
def deep(one, depth):
    one[depth * 4096] = 1
    if depth:
        deep(one, depth - 1)
def drip(one):
    for i in range(30):
        one[i * 4096] = 1
        yield i
def unused():
    pass
outer(memory[0])
thread = threading.Thread(target=outer, args=(memory[1],))
thread.start()
thread.join()
deep(memory[2], 100)
for _ in drip(memory[3]):
    unused()
pid = os.fork()
if pid == 0:
    touch(memory[4], 0, 300)
    sys.exit(0)
os.waitpid(pid, 0)
"""


def function_counters(trace):
    return {row["function"]: row for row in
            read_json("report", trace, "--view", "function-counters", "--rows", "-1", "--json")["rows"]
            if row["file"].endswith("pages.py")}


@pytest.mark.parametrize("more", [(), ("--python-only",)])
def test_functions_have_counters(tmp_path, more):
    """A page that a function touches first is a page fault of it: exactly, in threads, recursion, generators and a child."""
    script = tmp_path / "pages.py"
    script.write_text(FUNCTIONS)
    count(tmp_path, "--counters=page-faults,task-clock", "--per-function", *more, "--", PYTHON, script)
    rows = function_counters(tmp_path / "c.sonde")
    calls = {"<module>": 2, "touch": 3, "outer": 2, "deep": 101, "drip": 1, "unused": 30}  # the child has the module open
    assert {name: rows[name]["calls"] for name in calls} == calls
    expected = {"touch": (1300, 1300), "outer": (1002, 2), "deep": (101, 101), "drip": (30, 30), "unused": (0, 0)}
    for name, (total, own) in expected.items():  # the interpreter itself takes a page now and then
        assert total <= rows[name]["page_faults"] <= total + 12, name
        assert own <= rows[name]["self_page_faults"] <= own + 12, name
        assert rows[name]["self_task_clock"] <= rows[name]["task_clock"]
    # the main thread's half of outer(), and all that the module's own code calls
    assert 501 + 101 + 30 <= rows["<module>"]["page_faults"]
    assert 0 < rows["touch"]["self_task_clock"]
    info = read_json("report", tmp_path / "c.sonde", "--view", "functions", "--json")
    assert info["ledger"] == {} and sum(row["function"] == "touch" for row in info["rows"]) == 1


def test_functions_have_none_unasked(tmp_path):
    script = tmp_path / "pages.py"
    script.write_text(FUNCTIONS)
    count(tmp_path, "--counters", "--functions", "--", PYTHON, script)
    assert b"record them with sonde run --counters --per-function" in read("report", tmp_path / "c.sonde", "--view", "function-counters")


def test_functions_of_a_timeline_have_none(tmp_path):
    done = sonde("run", "--counters", "--per-function", "--timeline", "--", PYTHON, "-c", "0", cwd=tmp_path)
    assert done.returncode == 2 and b"--per-function adds up over calls" in done.stderr


def test_events_are_read_by_descriptor(tmp_path):
    """Where an event cannot be read from its page, its descriptor is: migrations, which getrusage does not count."""
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < 2 or os.getuid() != 0:
        pytest.skip("needs two processors and root")
    script = tmp_path / "pages.py"
    script.write_text(f"""
import os
def hop(processor):
    os.sched_setaffinity(0, [processor])
def stay():
    os.sched_setaffinity(0, [{allowed[0]}])
hop({allowed[0]})
for _ in range(20):
    hop({allowed[1]})
    hop({allowed[0]})
stay()
pid = os.fork()
if pid == 0:
    hop({allowed[1]})
    os._exit(0)
os.waitpid(pid, 0)
""")
    count(tmp_path, "--counters=cpu-migrations,page-faults:u", "--per-function", "--", PYTHON, script)
    rows = function_counters(tmp_path / "c.sonde")
    assert 41 <= rows["hop"]["cpu_migrations"] <= 42 and rows["stay"]["cpu_migrations"] == 0
    assert rows["<module>"]["page_faults_u"] >= rows["hop"]["page_faults_u"]
    assert read_json("report", tmp_path / "c.sonde", "--view", "functions", "--json")["ledger"].keys() <= {"not_closed"}


def test_a_program_that_closes_the_descriptors(tmp_path):
    """Its next files have their numbers, and are left alone; that counters are missing is said."""
    script = tmp_path / "pages.py"
    script.write_text("""
import os, sys
def after():
    pass
after()
os.closerange(3, 2048)
pipes = [os.pipe() for _ in range(400)]
for _, write in pipes:
    os.write(write, b"12345678" * 3)
for _ in range(100):
    after()
assert all(os.read(read, 100) == b"12345678" * 3 for read, _ in pipes)
print("whole")
""")
    done = sonde("run", "-q", "-o", tmp_path / "c.sonde", "--counters=alignment-faults", "--per-function", "--", PYTHON, script)
    assert (done.returncode, done.stdout) == (0, b"whole\n"), done.stderr
    assert read_json("report", tmp_path / "c.sonde", "--view", "functions", "--json")["ledger"]["absent_counters"] == 1
