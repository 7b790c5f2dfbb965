# SPDX-License-Identifier: Apache-2.0
"""Samples of programs of any language, from outside: `sonde run -- ./program`, `sonde attach PID`.

The programs tell how long their parts took. What is sampled must agree with that, and with perf.
"""
import collections
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

from cli_tools import SONDE, read, read_json, sonde

PROGRAMS = pathlib.Path(__file__).parent / "programs" / "native"
POINTS = 0.03


def can_sample():
    """Whether this kernel lets a process of ours be sampled at all."""
    if not SONDE:
        return False
    done = sonde("run", "--sample", "-o", "/dev/null/none", "--", "true")
    return b"not sampled" not in done.stderr and os.path.exists("/proc/sys/kernel/perf_event_paranoid")


pytestmark = pytest.mark.skipif(not can_sample(), reason="the kernel does not let us sample")

BUILDS = {
    "plain": ("loops.c", ["gcc", "-O2", "-g"]),
    "no_frame_pointers": ("loops.c", ["gcc", "-O2", "-fomit-frame-pointer"]),
    "optimised": ("loops.c", ["gcc", "-O3", "-foptimize-sibling-calls"]),
    "frame_pointers": ("loops.c", ["gcc", "-O1", "-g", "-fno-omit-frame-pointer"]),
    "no_pie": ("loops.c", ["gcc", "-O2", "-g", "-no-pie"]),
    "static": ("loops.c", ["gcc", "-O2", "-g", "-static"]),
    "stripped": ("loops.c", ["gcc", "-O2", "-rdynamic", "-s"]),
    "inlined": ("inlined.cc", ["g++", "-O2", "-g"]),
    "threads": ("threads.c", ["gcc", "-O2", "-g", "-pthread"]),
    "children": ("children.c", ["gcc", "-O2", "-g"]),
    "rust": ("loops.rs", ["rustc", "-O", "-g"]),
    "go": ("loops.go", ["go", "build"]),
}


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """Makes a program once; skips where its compiler is absent."""
    made = {}

    def make(name):
        source, command = BUILDS[name]
        if not shutil.which(command[0]):
            pytest.skip(f"{command[0]} is not installed")
        if name not in made:
            target = tmp_path_factory.mktemp(name) / name
            env = dict(os.environ, GOCACHE=str(target.parent / "cache"), GO111MODULE="off", GOFLAGS="")
            subprocess.run([*command, "-o", str(target), str(PROGRAMS / source)], check=True, env=env,
                           timeout=300)
            made[name] = target
        return made[name]

    return make


def chains(trace):
    """{(outermost, .., innermost): ns} of a trace; the process's name and places are left off."""
    counts = collections.Counter()
    for line in read("export", trace, "--to", "folded", "-o", "-").decode().splitlines():
        stack, _, value = line.rpartition(" ")
        frames = [re.sub(r" \([^()]*\)$", "", frame) for frame in stack.split(";")[1:]]
        counts[tuple(frames)] += int(value)
    return counts


def share(counts, name, of=None):
    total = sum(n for stack, n in counts.items() if of is None or any(of in f for f in stack))
    has = sum(n for stack, n in counts.items() if any(re.search(rf"\b{name}\b", f) for f in stack))
    return has / total


def truth(stdout):
    parts = {name: float(value) for name, value in
             (line.split() for line in stdout.decode().splitlines() if len(line.split()) == 2)}
    return {name: value / sum(parts.values()) for name, value in parts.items()}


def run(tmp_path, program, *arguments, options=()):
    trace = tmp_path / "t.sonde"
    done = sonde("run", *options, "-o", trace, "--", program, *arguments)
    assert done.returncode == 7, done.stderr
    return trace, truth(done.stdout)


def own_share(counts, names):
    """Shares among the parts of the program: its start, which measures the machine, is left out."""
    times = {name: share(counts, name) for name in names}
    return {name: value / sum(times.values()) for name, value in times.items()}


CASES = {"plain": ("long_part", "deep_part"), "no_frame_pointers": ("long_part", "deep_part"),
         "frame_pointers": ("long_part", "deep_part"), "no_pie": ("long_part", "deep_part"),
         "static": ("long_part", "deep_part"), "stripped": ("long_part", "deep_part"),
         "inlined": ("inner", "edge"), "threads": ("heavy", "light"), "children": ("in_child", "in_parent"),
         "rust": ("area", "edge"), "go": ("area", "edge")}


@pytest.mark.parametrize("name", CASES)
def test_shares_are_those_of_the_program(tmp_path, build, name):
    trace, parts = run(tmp_path, build(name))
    counts = chains(trace)
    names = CASES[name]
    known = {part: parts[part] / sum(parts[n] for n in names) for part in names}
    for part, found in own_share(counts, names).items():
        assert abs(found - known[part]) < POINTS, (part, found, known)


def perf_chains(tmp_path, program, names):
    """The chains that perf finds, of the program's own functions."""
    data = tmp_path / "perf.data"
    done = subprocess.run(["perf", "record", "-q", "-F", "1000", "-e", "cpu-clock:u", "--call-graph", "dwarf",
                           "-o", data, "--", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
    if done.returncode not in (0, 7) or not data.exists():
        pytest.skip(f"perf cannot record here: {done.stderr.decode()[-200:]}")
    text = subprocess.run(["perf", "script", "-i", data, "-F", "ip,sym"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=True, timeout=300).stdout.decode()
    counts = collections.Counter()
    for sample in text.strip().split("\n\n"):
        frames = [line.split(None, 1)[1].split(" (inlined)")[0] for line in sample.strip().splitlines()
                  if len(line.split(None, 1)) == 2]
        counts[tuple(f for f in reversed(frames) if f in names)] += 1
    return counts


@pytest.mark.skipif(not shutil.which("perf"), reason="perf is not installed")
@pytest.mark.parametrize("name", ["plain", "no_frame_pointers", "no_pie", "frame_pointers"])
def test_call_chains_are_those_of_perf(tmp_path, build, name):
    names = {"main", "long_part", "deep_part", "tail_part", "burn", "steps_a_second", "_start"}
    trace, parts = run(tmp_path, build(name))
    ours, theirs = collections.Counter(), perf_chains(tmp_path, build(name), names)
    for stack, n in chains(trace).items():
        ours[tuple(f for f in stack if f in names)] += n
    same = sum(n for stack, n in ours.items() if stack in theirs)
    assert same >= 0.99 * sum(ours.values()), (ours, theirs)
    for part in ("long_part", "deep_part"):
        found = sum(n for s, n in ours.items() if part in s) / sum(ours.values())
        expected = sum(n for s, n in theirs.items() if part in s) / sum(theirs.values())
        assert abs(found - expected) < POINTS


def test_recursion_and_inlined_functions_are_frames(tmp_path, build):
    trace, _ = run(tmp_path, build("plain"))
    assert any(stack.count("deep_part") == 13 for stack in chains(trace))
    trace, _ = run(tmp_path, build("inlined"))
    pair = [i for i, f in enumerate(max(chains(trace), key=chains(trace).get)) if "inner" in f or "area" in f]
    assert len(pair) == 2 and pair[1] == pair[0] + 1


def test_a_stripped_program_shows_addresses(tmp_path, build):
    source, _ = BUILDS["plain"]
    target = tmp_path / "bare"
    subprocess.run(["gcc", "-O2", "-s", "-o", target, PROGRAMS / source], check=True)
    trace, _ = run(tmp_path, target)
    assert any("bare+0x" in frame for stack in chains(trace) for frame in stack)


def test_five_hundred_threads(tmp_path, build):
    trace, parts = run(tmp_path, build("threads"), "500", "1.5")
    counts = chains(trace)
    assert abs(own_share(counts, ("heavy", "light"))["heavy"] - parts["heavy"]) < POINTS
    ledger = {row["key"] for row in read_json("report", trace, "--view", "ledger", "--json")["rows"]}
    assert "lost_samples" not in ledger


def test_a_thousand_children(tmp_path, build):
    trace, _ = run(tmp_path, build("children"), "1000", "3")
    rows = read_json("report", trace, "--view", "samples", "--group-by", "process", "--json")["rows"]
    assert len({row["process"] for row in rows}) > 500  # each takes some milliseconds
    assert share(chains(trace), "in_child") > 0.4


def test_the_program_is_as_it_was(tmp_path):
    """Output, exit status, signals, descriptors and arguments."""
    script = 'echo out; echo err >&2; ls /proc/self/fd | wc -l; i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; exit 5'
    alone = subprocess.run(["sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    done = sonde("run", "--sample", "-q", "-o", tmp_path / "t.sonde", "--", "sh", "-c", script)
    assert (done.returncode, done.stdout, done.stderr) == (5, alone.stdout, alone.stderr)
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV):
        done = sonde("run", "--sample", "-q", "-o", tmp_path / "s.sonde", "--", "sh", "-c", f"kill -{int(number)} $$")
        assert done.returncode == -number


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


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root and setpriv")
def test_another_user_samples_without_the_kernel(build):
    """With the present kernel.perf_event_paranoid: user only, and the ledger says so; or a reason."""
    level = int(pathlib.Path("/proc/sys/kernel/perf_event_paranoid").read_text())
    tmp_path = pathlib.Path(tempfile.mkdtemp(prefix="sonde-native-"))  # pytest's own are for one user
    os.chmod(tmp_path, 0o777)
    program = tmp_path / "prog"
    shutil.copy(build("plain"), program)
    os.chmod(program, 0o755)
    if subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", SONDE, "--version"],
                      stdout=subprocess.PIPE, stderr=subprocess.PIPE).returncode != 0:
        pytest.skip("another user may not run what was built here")
    done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", SONDE, "run", "--sample", "-o",
                           "u.sonde", "--", str(program)], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=120)
    assert done.returncode == 7, done.stderr
    if level > 2:
        assert b"perf_event_paranoid" in done.stderr
        return
    ledger = {row["key"] for row in read_json("report", tmp_path / "u.sonde", "--view", "ledger", "--json")["rows"]}
    assert ("user_only" in ledger) == (level == 2)
    assert share(chains(tmp_path / "u.sonde"), "long_part") > 0.3
    shutil.rmtree(tmp_path)
