# SPDX-License-Identifier: Apache-2.0
"""Samples of programs of any language, from outside: `sonde run -- ./program`, `sonde attach PID`.

What the program does stays as it was; threads, children, other users, attach.
"""
import os
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pytest

from cli_tools import SONDE, read_json, sonde
from native_tools import (BUILDS, POINTS, PROGRAMS, build, chains, needs_samples, own_share, run,  # noqa: F401
                          share)

pytestmark = needs_samples


def test_recursion_and_inlined_functions_are_frames(tmp_path, build):
    trace, _ = run(tmp_path, build("plain"))
    assert any(stack.count("deep_part") == 13 for stack in chains(trace))
    trace, _ = run(tmp_path, build("inlined"))
    pair = [i for i, f in enumerate(max(chains(trace), key=chains(trace).get)) if "inner" in f or "area" in f]
    assert len(pair) == 2 and pair[1] == pair[0] + 1


def test_a_stripped_program_has_one_name_for_each_function(tmp_path):
    """The place where it begins, from the tables for exceptions; the names are those of a copy that was not stripped."""
    source, _ = BUILDS["plain"]
    whole, bare = tmp_path / "whole", tmp_path / "bare"
    subprocess.run(["gcc", "-O2", "-o", whole, PROGRAMS / source], check=True)
    subprocess.run(["strip", "-o", bare, whole], check=True)
    symbols = [line.split() for line in subprocess.run(["nm", "--defined-only", whole], check=True, text=True,
                                                       stdout=subprocess.PIPE).stdout.splitlines()]
    places = {name: f"bare+0x{int(address, 16):x}" for address, kind, name in symbols if kind in "tTwW"}
    parts = ("long_part", "deep_part")
    trace, known = run(tmp_path, bare, names=parts)
    counts = chains(trace)
    ours = own_share(counts, [re.escape(places[part]) for part in parts])
    for part, value in zip(parts, ours.values()):
        assert abs(value - known[part]) < POINTS, (part, ours, known)
    shown = {frame for stack in counts for frame in stack if frame.startswith("bare+0x")}
    assert shown <= set(places.values()), (shown, places)
    rows = read_json("report", trace, "--view", "functions", "--json")["rows"]
    assert sum(places["long_part"] in str(row) for row in rows) == 1, rows


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the program is for x86-64")
def test_a_chain_of_frame_pointers_that_ends_is_whole(tmp_path, build):
    """Without tables, as a stripped program of Go: a frame pointer of 0 marks the outermost frame."""
    assert sonde("run", "-q", "-o", tmp_path / "t.sonde", "--", build("bare")).returncode == 0
    samples = read_json("report", tmp_path / "t.sonde", "--view", "samples", "--json")["totals"]["samples"]
    ledger = {row["key"]: row["count"] for row in
              read_json("report", tmp_path / "t.sonde", "--view", "ledger", "--json")["rows"]}
    counts = chains(tmp_path / "t.sonde")
    whole = sum(n for stack, n in counts.items() if stack[:3] == ("_start", "outer", "inner"))
    assert samples > 50 and whole > 0.9 * sum(counts.values()), counts
    assert ledger.get("broken_stacks", 0) < 0.1 * samples  # the program's start, before it has a frame


def test_a_stack_that_begins_in_the_loader_is_whole(tmp_path):
    """Constructors of libraries: called by the loader's _start, of which no table says that nobody calls it."""
    (tmp_path / "early.c").write_text(
        "#include <time.h>\n__attribute__((constructor)) static void early(void)\n"
        "{ for (clock_t end = clock() + CLOCKS_PER_SEC / 2; clock() < end;) ; }\n")
    (tmp_path / "main.c").write_text("int main(void) { return 0; }\n")
    subprocess.run("gcc -O1 -g -shared -fPIC early.c -o libearly.so && "
                   "gcc main.c -o main -Wl,--no-as-needed -L. -learly -Wl,-rpath,$PWD", shell=True, check=True, cwd=tmp_path)
    assert sonde("run", "-q", "-o", tmp_path / "t.sonde", "--", tmp_path / "main").returncode == 0
    totals = read_json("report", tmp_path / "t.sonde", "--view", "samples", "--json")["totals"]
    ledger = {row["key"]: row["count"] for row in
              read_json("report", tmp_path / "t.sonde", "--view", "ledger", "--json")["rows"]}
    assert totals["samples"] > 20 and ledger.get("broken_stacks", 0) < 0.1 * totals["samples"], (totals, ledger)


JIT = """\
#include <string.h>
#include <sys/mman.h>
int main(void)
{
    /* mov ecx, 4000000; dec ecx; jnz; ret: at 200 places, as a compiler at run time puts them */
    static const unsigned char code[] = { 0xb9, 0x00, 0x09, 0x3d, 0x00, 0xff, 0xc9, 0x75, 0xfc, 0xc3 };
    unsigned char *page = mmap(0, 1 << 16, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 200; i++) {
        memcpy(page + i * 64, code, sizeof code);
        ((void (*)(void))(page + i * 64))();
    }
    return 0;
}
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the code is for x86-64")
def test_unnamed_code_of_a_jit_is_one_row(tmp_path):
    (tmp_path / "jit.c").write_text(JIT)
    subprocess.run(["gcc", "-O1", "jit.c", "-o", "jit"], check=True, cwd=tmp_path)
    assert sonde("run", "-q", "-o", tmp_path / "t.sonde", "--", tmp_path / "jit").returncode == 0
    rows = read_json("report", tmp_path / "t.sonde", "--view", "functions", "--json")["rows"]
    made = [row for row in rows if "JIT" in str(row)]
    assert len(made) == 1 and not [row for row in rows if "+0x" in str(row) and "perf-" in str(row)], rows


def test_programs_are_named(tmp_path):
    """That of the run is the one that was given, whichever process has the first sample; the others by process."""
    (tmp_path / "leader.c").write_text("#include <time.h>\n#include <unistd.h>\n#include <sys/wait.h>\n"
                                       "int main(int n, char **v) { if (n > 1) {\n"
                                       "    if (fork() == 0) execl(v[1], \"follower\", (char *)0);\n"
                                       "    wait(0); return 0; }\n"
                                       "    for (clock_t end = clock() + CLOCKS_PER_SEC / 5; clock() < end;) ; return 0; }\n")
    for name in "leader", "follower":
        subprocess.run(["gcc", "-O1", "leader.c", "-o", name], check=True, cwd=tmp_path)
    assert sonde("run", "-q", "-o", tmp_path / "t.sonde", "--", tmp_path / "leader", tmp_path / "follower").returncode == 0
    for options in (), ("--group-by", "process"):
        text = sonde("report", tmp_path / "t.sonde", "--view", "samples", *options).stdout.decode()
        program = re.search(r"Program: (.*)", text)[1]
        assert program.startswith(f"{tmp_path}/leader"), text
    assert "follower" in re.findall(r"^Process \d+ (\w+): 1 thread", text, re.M), text


MANY = """\
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
    struct rusage used;
    for (int i = 0; i < 150; i++) {
        if (fork() == 0)
            execl("/bin/true", "true", (char *)0);
        wait(0);
    }
    getrusage(RUSAGE_CHILDREN, &used);
    printf("%ld\\n", (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000L + used.ru_utime.tv_usec + used.ru_stime.tv_usec);
    return 0;
}
"""


def test_short_lived_processes_have_their_time(tmp_path):
    """The kernel knows what each used that ends between two samples, or before its first."""
    (tmp_path / "many.c").write_text(MANY)
    subprocess.run(["gcc", "-O1", "many.c", "-o", "many"], check=True, cwd=tmp_path)
    done = sonde("run", "-q", "-o", tmp_path / "t.sonde", "--", tmp_path / "many")
    assert done.returncode == 0, done.stderr
    used = int(done.stdout) / 1e6
    rows = read_json("report", tmp_path / "t.sonde", "--view", "samples", "--json")["rows"]
    children = read_json("report", tmp_path / "t.sonde", "--view", "threads", "--json")["rows"]
    ledger = {row["key"]: row["count"] for row in
              read_json("report", tmp_path / "t.sonde", "--view", "ledger", "--json")["rows"]}
    pids = {row["process"] for row in children if row["name"] == "true"}
    seen = sum(row["self_ns"] for row in rows if row["process"] in pids) / 1e9
    assert len(pids) >= 145 and ledger["unseen_threads"] >= 5, (len(pids), ledger)  # before they are seen to be short
    assert 0.8 * used < seen < 1.1 * used, (seen, used)


SHORT = """\
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static void burn(long ns)
{
    struct timespec from, now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while ((now.tv_sec - from.tv_sec) * 1000000000L + now.tv_nsec - from.tv_nsec < ns);
}
__attribute__((noinline)) void long_part(void) { burn(75000); __asm__ volatile(""); }
__attribute__((noinline)) void short_part(void) { burn(25000); __asm__ volatile(""); }
int main(void)
{
    struct rusage used;
    for (int i = 0; i < 400; i++) {
        if (fork() == 0) {
            burn(i * 7919L % 125 * 1000); /* else the n-th sample is at one place of all of them */
            for (int k = 0; k < 6; k++) {
                long_part();
                short_part();
            }
            _exit(0);
        }
        wait(0);
    }
    getrusage(RUSAGE_CHILDREN, &used);
    printf("%ld\\n", (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000L + used.ru_utime.tv_usec + used.ru_stime.tv_usec);
    return 0;
}
"""


def test_functions_of_short_lived_processes_have_their_shares(tmp_path):
    """None lives for a whole period. Once they are seen to be short, those that begin are sampled more often."""
    (tmp_path / "short.c").write_text(SHORT)
    subprocess.run(["gcc", "-O1", "-g", "short.c", "-o", "short"], check=True, cwd=tmp_path)
    done = sonde("run", "-q", "-o", tmp_path / "t.sonde", "--", tmp_path / "short")
    assert done.returncode == 0, done.stderr
    rows = read_json("report", tmp_path / "t.sonde", "--view", "functions", "--json", "--rows", "-1")["rows"]
    total = {row["function"]: row["total_ns"] for row in rows}
    whole = sum(row["self_ns"] for row in rows)
    used = int(done.stdout) * 1000
    parts = total["long_part"], total["short_part"]
    samples = sum(parts) / 125e3
    share, doubt = parts[0] / sum(parts), 3 * (0.75 * 0.25 / samples) ** 0.5  # three deviations of so many draws
    assert samples > 200 and abs(share - 0.75) < doubt + 0.01, (share, doubt, samples)
    assert sum(parts) > used / 2 and total["(not sampled)"] < used / 2, (total, used)
    assert 0.95 * used < whole < 1.25 * used, (whole, used)  # with the parent's own


def test_a_program_without_short_lived_processes_is_not_sampled_more_often(tmp_path, build):
    trace, _ = run(tmp_path, build("plain"))
    covered = {event["covered_ns"] for event in read_json("export", trace, "--to", "json", "-o", "-")["events"]
               if event["kind"] == "sample" and "not sampled" not in str(event["stack"])}
    assert covered == {1000000}


def test_the_duration_is_that_of_the_recording(tmp_path):
    """A program that waits most of the time has samples of a moment only."""
    sleeper = tmp_path / "sleeper.c"
    sleeper.write_text("#include <stdio.h>\n#include <time.h>\n#include <unistd.h>\n"
                       "int main(void) { for (int i = 0;; i++) {\n"
                       "    for (clock_t end = clock() + CLOCKS_PER_SEC / 20; clock() < end;);\n"
                       "    if (i == 0) { puts(\"ready\"); fflush(stdout); }\n"
                       "    usleep(700000); } }\n")
    subprocess.run(["gcc", "-O1", "-o", tmp_path / "sleeper", sleeper], check=True)
    program = subprocess.Popen([tmp_path / "sleeper"], stdout=subprocess.PIPE)
    try:
        assert program.stdout.readline() == b"ready\n"
        assert sonde("attach", "-q", program.pid, "-d", "1.5", "-o", tmp_path / "t.sonde").returncode == 0
    finally:
        program.kill()
        program.communicate()
    text = sonde("report", tmp_path / "t.sonde", "--view", "samples").stdout.decode()
    duration = float(text.partition("Duration:")[2].split()[0])
    assert 1.5 <= duration < 60 and float(text.partition("CPU time:")[2].split()[0]) < 1


@pytest.mark.parametrize("options", [(), ("--counters=task-clock",), ("--counters=page-faults", "--per-function")])
def test_the_trace_names_the_program(tmp_path, build, options):
    """Not sonde, which it was until it became the program."""
    trace, _ = run(tmp_path, build("plain"), options=options)
    totals = read_json("report", trace, "--view", "summary", "--json")["totals"]
    assert (totals["program"], totals["processes"]) == (str(build("plain").resolve()), 1)


@pytest.mark.long
@pytest.mark.alone  # who reads what the kernel holds waits for a processor beside so many: beside other tests too, some is lost
def test_five_hundred_threads(tmp_path, build):
    trace, parts = run(tmp_path, build("threads"), "500", "4.5")  # of 1,500 samples a share is off by two points, by chance
    counts = chains(trace)
    assert abs(own_share(counts, ("heavy", "light"))["heavy"] - parts["heavy"]) < POINTS
    ledger = {row["key"] for row in read_json("report", trace, "--view", "ledger", "--json")["rows"]}
    assert "lost_samples" not in ledger


@pytest.mark.long
def test_a_thousand_children(tmp_path, build):
    trace, _ = run(tmp_path, build("children"), "1000", "3")
    rows = read_json("report", trace, "--view", "samples", "--group-by", "process", "--json")["rows"]
    assert len({row["process"] for row in rows}) > 500  # each takes some milliseconds
    assert share(chains(trace), "in_child") > 0.4


def sampler_of(pid):
    """The child of a `sonde run` that has the kernel's events open."""
    for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        if any("perf_event" in os.readlink(fd) for fd in pathlib.Path(f"/proc/{child}/fd").iterdir()):
            return int(child)
    raise AssertionError("there is no sampler")


def test_lost_samples_are_counted(tmp_path, build):
    """The sampler is stopped until the program has ended: its buffers hold 2,000 samples of one processor."""
    hz, seconds, one = 5000, 1.5, min(os.sched_getaffinity(0))
    script = f'echo begins; read go; exec taskset -c {one} "{build("plain")}" {seconds / 10}'
    with subprocess.Popen([SONDE, "run", f"--sample={hz}", "-q", "-o", tmp_path / "t.sonde", "--", "sh", "-c", script],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as runner:
        runner.stdout.readline()
        sampler = sampler_of(runner.pid)
        os.kill(sampler, signal.SIGSTOP)
        try:
            runner.stdin.write(b"\n")
            runner.stdin.flush()
            parts = [float(runner.stdout.readline().split()[1]) for _ in range(3)]
        finally:
            os.kill(sampler, signal.SIGCONT)
        assert runner.wait(120) == 7
    report = read_json("report", tmp_path / "t.sonde", "--view", "samples", "--json")
    lost = {row["key"]: row["count"] for row in
            read_json("report", tmp_path / "t.sonde", "--view", "ledger", "--json")["rows"]}["lost_samples"]
    taken, least = report["totals"]["samples"], hz * sum(parts)
    assert lost > 1000 and taken > 1000
    assert 0.9 * least < taken + lost, (taken, lost, parts)  # and the program's start, which measures the machine
    assert taken + lost < 1.1 * least + hz, (taken, lost, parts)


def test_the_program_is_as_it_was(tmp_path):
    """Output, exit status, signals, descriptors and arguments."""
    script = 'echo out; echo err >&2; ls /proc/self/fd | wc -l; i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; exit 5'
    alone = subprocess.run(["sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    done = sonde("run", "--sample", "-q", "-o", tmp_path / "t.sonde", "--", "sh", "-c", script)
    assert (done.returncode, done.stdout, done.stderr) == (5, alone.stdout, alone.stderr)
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV):
        done = sonde("run", "--sample", "-q", "-o", tmp_path / "s.sonde", "--", "sh", "-c", f"kill -{int(number)} $$")
        assert done.returncode == -number


def test_a_program_that_ignores_signals(tmp_path, build):
    """What a terminal sends at Ctrl-C goes to all: the program goes on, and is sampled to its end."""
    script = f'trap "" HUP INT QUIT TERM; echo begins; read go; exec "{build("plain")}"'
    with subprocess.Popen([SONDE, "run", "--sample", "-q", "-o", tmp_path / "t.sonde", "--", "sh", "-c", script],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True) as runner:
        assert runner.stdout.readline() == b"begins\n"
        os.killpg(runner.pid, signal.SIGINT)
        os.killpg(runner.pid, signal.SIGQUIT)
        said, _ = runner.communicate(b"\n", timeout=120)
    assert runner.returncode == 7 and len(said.splitlines()) == 3
    assert share(chains(tmp_path / "t.sonde"), "deep_part") > 0.1


@pytest.fixture
def open_folder():
    """A folder that all may write to: pytest's own are for one user."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="sonde-native-"))
    os.chmod(folder, 0o777)
    yield folder
    shutil.rmtree(folder)


OTHER_USER = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
needs_other_user = pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root and setpriv")


def run_as_other(*command, cwd):
    """Skips where another user may not run what was built here."""
    if subprocess.run([*OTHER_USER, SONDE, "--version"], stdout=subprocess.PIPE, stderr=subprocess.PIPE).returncode != 0:
        pytest.skip("another user may not run what was built here")
    return subprocess.run([*OTHER_USER, *command], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)


@needs_other_user
def test_a_setuid_program(open_folder, build):
    """Root samples it; others are told that they cannot. It has its rights, output and status."""
    program, shown = open_folder / "prog", open_folder / "shown"
    (open_folder / "shown.c").write_text(
        '#include "parts.h"\n#include <unistd.h>\n'
        'PART void work(long n) { burn(n); sink++; }\n'
        'int main(void) { work(steps_a_second() / 2); printf("%d\\n", (int)geteuid()); return 7; }\n')
    subprocess.run(["gcc", "-O2", "-g", "-I", PROGRAMS, open_folder / "shown.c", "-o", shown], check=True)
    for owner, asks in ((0, 65534), (65534, 0)):
        shutil.copy(shown, program)
        os.chown(program, owner, -1)
        os.chmod(program, 0o4755)
        command = [SONDE, "run", "--sample", "-o", f"t{owner}.sonde", "--", "./prog"]
        done = run_as_other(*command, cwd=open_folder) if asks else sonde(*command[1:], cwd=open_folder)
        if done.stdout.decode() == f"{asks}\n":
            pytest.skip("programs have no rights of their own here (nosuid)")
        assert (done.returncode, done.stdout.decode()) == (7, f"{owner}\n"), done.stderr
        if asks:
            assert b"other rights" in done.stderr and not (open_folder / "t0.sonde").exists()
        else:
            assert share(chains(open_folder / "t65534.sonde"), "work") > 0.3
        os.remove(program)


@needs_other_user
def test_a_setuid_child_is_in_the_ledger(open_folder, build):
    shutil.copy(build("plain"), open_folder / "prog")
    shutil.copy(shutil.which("true"), open_folder / "other")
    os.chmod(open_folder / "other", 0o4755)
    done = run_as_other(SONDE, "run", "--sample", "-o", "t.sonde", "--", "sh", "-c", "./other; ./prog", cwd=open_folder)
    assert done.returncode == 7, done.stderr
    ledger = {row["key"]: row["count"] for row in
              read_json("report", open_folder / "t.sonde", "--view", "ledger", "--json")["rows"]}
    assert ledger.get("other_rights") == 1


BLAS = """
import numpy
a = numpy.ones((600, 600))
for _ in range(80):
    a = numpy.minimum(a @ a, 1)
"""


def test_threads_of_a_python_that_run_no_python(tmp_path):
    """With --native the workers of a BLAS are sampled from outside; threads that sample themselves are not twice."""
    pytest.importorskip("numpy")
    (tmp_path / "blas.py").write_text(BLAS)
    env = dict(os.environ, OPENBLAS_NUM_THREADS="3", OMP_NUM_THREADS="3")
    done = sonde("run", "--sample=500", "--native", "-q", "-o", tmp_path / "t.sonde", "--", sys.executable,
                 tmp_path / "blas.py", env=env)
    assert done.returncode == 0, done.stderr
    threads = read_json("report", tmp_path / "t.sonde", "--view", "samples", "--json")["totals"]["threads"]
    places = [(t["process"], t["thread"]) for t in threads]
    assert len(set(places)) == len(places), threads
    assert not [t for t in threads if t["name"].startswith("sonde")], threads
    assert [t for t in threads if t["process"] == t["thread"]]  # the main one, by itself
    others = [t for t in threads if t["process"] != t["thread"]]
    assert sum(t["cpu_ns"] for t in others) > 0, threads
    totals = read_json("report", tmp_path / "t.sonde", "--view", "summary", "--json")["totals"]
    assert len(os.listdir(tmp_path / "t.sonde")) == 2  # files of one process
    assert totals["processes"] == 1 and totals["program"] == os.path.realpath(sys.executable)


def test_a_python_that_a_shell_starts_is_not_sampled_twice(tmp_path):
    """It samples itself; from outside it is seen until then. One without our probes (-I) is sampled from outside."""
    script = tmp_path / "spin.py"
    script.write_text("import time\nwhile time.process_time() < 1.5: sum(range(1000))\n")
    for option, sampled_outside in (("-B", False), ("-I", True)):
        trace = tmp_path / f"t{option}.sonde"
        sonde("run", "-q", "--sample", "-o", trace, "--", "sh", "-c", f"'{sys.executable}' {option} {script}; true")
        stacks = chains(trace)
        outside = sum(ns for stack, ns in stacks.items() if stack and stack[0] in ("_start", "main"))
        assert (outside > 1e6) == sampled_outside, (option, stacks)  # microseconds
        assert any("spin.py" in frame or "<module>" in frame for stack in stacks for frame in stack) != sampled_outside


def test_a_daemon_that_lives_on_is_told_of(tmp_path, build):
    """It is sampled up to the end of the program, which ends at once, and goes on."""
    script = f'"{build("plain")}"; sleep 300 >/dev/null 2>&1 </dev/null & echo $!; exit 3'
    done = sonde("run", "--sample", "-o", tmp_path / "t.sonde", "--", "sh", "-c", script)
    daemon = int(done.stdout.splitlines()[-1])
    try:
        os.kill(daemon, 0)
        assert done.returncode == 3 and b"sampled up to here" in done.stderr, done.stderr
        assert share(chains(tmp_path / "t.sonde"), "long_part") > 0.3
    finally:
        os.kill(daemon, signal.SIGKILL)
    done = sonde("run", "--sample", "-o", tmp_path / "u.sonde", "--", build("plain"))
    assert b"sampled up to here" not in done.stderr


def test_a_program_that_is_not_there_leaves_nothing(tmp_path):
    done = sonde("run", "--sample", "--", "./nothing", cwd=tmp_path)
    assert done.returncode == 127 and list(tmp_path.iterdir()) == []


def test_attach_to_any_process(tmp_path, build):
    """Threads that were there, and children; it goes on as before."""
    program = subprocess.Popen([build("threads"), "4", "20"], stdout=subprocess.PIPE)
    try:
        while len(os.listdir(f"/proc/{program.pid}/task")) < 5:
            time.sleep(0.01)
        done = sonde("attach", "-d", "1", "-o", tmp_path / "a.sonde", program.pid)
        assert done.returncode == 0, done.stderr
        assert program.poll() is None
        assert share(chains(tmp_path / "a.sonde"), "heavy") > 0.2
    finally:
        program.kill()
        program.wait()


def test_attach_ends_at_ctrl_c(tmp_path, build):
    program = subprocess.Popen([build("threads"), "2", "20"], stdout=subprocess.PIPE)
    try:
        observer = subprocess.Popen([SONDE, "attach", "-o", tmp_path / "c.sonde", str(program.pid)],
                                    stderr=subprocess.PIPE)
        while not list(tmp_path.glob("c.sonde/*")):
            time.sleep(0.05)
        time.sleep(0.5)
        observer.send_signal(signal.SIGINT)
        _, said = observer.communicate(timeout=120)
        assert observer.returncode == 0 and b"recorded" in said, said
        assert chains(tmp_path / "c.sonde")
    finally:
        program.kill()
        program.wait()


@needs_other_user
def test_another_user_samples_without_the_kernel(open_folder, build):
    """With the present kernel.perf_event_paranoid: user only, and the ledger says so; or a reason."""
    level = int(pathlib.Path("/proc/sys/kernel/perf_event_paranoid").read_text())
    program = open_folder / "prog"
    shutil.copy(build("plain"), program)
    os.chmod(program, 0o755)
    done = run_as_other(SONDE, "run", "--sample", "-o", "u.sonde", "--", program, cwd=open_folder)
    assert done.returncode == 7, done.stderr
    if level > 2:
        assert b"perf_event_paranoid" in done.stderr
        return
    ledger = {row["key"] for row in
              read_json("report", open_folder / "u.sonde", "--view", "ledger", "--json")["rows"]}
    assert ("user_only" in ledger) == (level == 2)
    assert share(chains(open_folder / "u.sonde"), "long_part") > 0.3
