#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/heap.py [--quick] [--sonde PATH] - what counting allocations adds to a program, beside heaptrack.

Full mode: alone, sonde run --heap and heaptrack in turn; of each the least of the whole command, of elapsed time and of
processor time (that of all processes that it waits for, which a busy machine does not lengthen). A figure is what sonde
adds over what heaptrack adds.

Sampled mode: what it adds to the program's own processor time (least of the rounds) and instructions (valgrind's, if it
is installed), in percent. The program runs as `sonde run` starts it, without sonde's own work after its end. What it adds to
any process, however short, is a figure of its own: a process that does nothing.
The floor is a library that passes malloc and free on and does nothing else: no tool that is loaded before a program
can add less. Prints as bench/run does and puts its figures into bench/results.json. Exit status: 1 if a budget is missed.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from figures import conclude, figure, number, say

FULL, SAMPLED = 0.5, 3.0  # budgets: of what heaptrack adds; percent
SMALL = r"""
#include <map>
#include <string>
#include <cstdio>
int main()
{
    size_t sum = 0;
    for (int k = 0; k < 40; k++) {
        std::map<int, std::string> m;
        for (int i = 0; i < 20000; i++) m[i * 7919 % 20000] = std::string(30 + i % 50, 'x');
        sum += m.size();
    }
    std::printf("%zu\n", sum);
}
"""


FLOOR = r"""
#include <dlfcn.h>
#include <stddef.h>
static void *(*next_malloc)(size_t);
static void (*next_free)(void *);
__attribute__((constructor)) static void load(void)
{
    next_malloc = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
    next_free = (void (*)(void *))dlsym(RTLD_NEXT, "free");
}
void *malloc(size_t size)
{
    if (__builtin_expect(!next_malloc, 0)) load();
    return next_malloc(size);
}
void free(void *block)
{
    if (__builtin_expect(!next_free, 0)) load();
    next_free(block);
}
"""

SQL = """
create table t(a integer primary key, b text, c real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 60000)
insert into t select i, 'row ' || i || ' ' || hex(i * 7919), i * 0.5 from n;
select count(distinct substr(b, 1, 8)), sum(length(b || c)) from t;
select b from t order by b desc limit 3;
"""

PYTHON = "d = {}\nfor i in range(60000): d[str(i)] = [i, (i, str(i * 3))]\nprint(len(sorted(d, reverse=True)))\n"


def programs(folder):
    """Key, name, command and environment: one that does nothing but allocate, and others that allocate much."""
    source = folder / "small.cpp"
    source.write_text(SMALL)
    subprocess.run(["c++", "-O2", "-o", folder / "small", source], check=True)
    text = "\n".join(f"int f{i}(int x) {{ int s = 0; for (int i = 0; i < x; i++) s += i * {i}; return s; }}"
                     for i in range(100))
    (folder / "many.c").write_text(text)
    compiler = subprocess.run(["cc", "-print-prog-name=cc1"], check=True, stdout=subprocess.PIPE).stdout.decode().strip()
    yield "map", "a std::map of strings", [str(folder / "small")], {}
    yield "cc1", "cc1", [compiler, "-quiet", "-O2", str(folder / "many.c"), "-o", "/dev/null"], {}
    if shutil.which("sqlite3"):
        yield "sqlite3", "sqlite3", ["sqlite3", ":memory:", SQL], {}
    # With a hash of its own in each run, its dict takes 2 % more or fewer instructions.
    yield ("python", "python, PYTHONMALLOC=malloc", [os.path.realpath(sys.executable), "-c", PYTHON],
           {"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0"})


def seconds(command, environment):
    """Elapsed time, and processor time of the command and of all that it waits for."""
    begin = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **environment})
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, command
    return time.perf_counter() - begin, usage.ru_utime + usage.ru_stime


def instructions(command, environment):
    """By cachegrind without its caches, which takes half of callgrind's time."""
    done = subprocess.run(["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", *command],
                          check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, **environment})
    return int(re.search(rb"I +refs: +([\d,]+)", done.stderr)[1].replace(b",", b""))


def instructions_of_ways(command, ways):
    """All at once, on all processors: other work does not change the counts."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(ways, pool.map(lambda environment: instructions(command, environment), ways.values())))


def environment_of_run(sonde, folder, heap="--heap=sampled"):
    """What `sonde run --heap=..` gives a program, with a trace that each run writes anew."""
    text = subprocess.run([sonde, "run", "-q", heap, "-o", folder / "e.sonde", "--", "env"], check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.decode()
    given = dict(line.split("=", 1) for line in text.splitlines() if line.startswith(("SONDE_", "LD_PRELOAD=")))
    traces = folder / "traces"
    traces.mkdir(exist_ok=True)
    return {**given, "SONDE_TRACE": f"{traces}/"}


def sampled_ways(sonde, folder, extra):
    """The environments of a program alone, with the floor's library, and in sampled mode."""
    return {"alone": extra, "floor": {**extra, "LD_PRELOAD": str(folder / "floor.so")},
            "sampled": {**extra, **environment_of_run(sonde, folder)}}


def least_of_ways(command, ways, rounds):
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(rounds):
        for way, environment in ways.items():
            best[way] = min(best[way], seconds(command, environment)[1])
    return best


def measure_process(sonde, folder, rounds):
    best = least_of_ways(["true"], sampled_ways(sonde, folder, {}), rounds)
    added = {way: 1e3 * (best[way] - best["alone"]) for way in best}
    return figure("heap_sampled_process", "a process that does nothing: --heap=sampled adds", added["sampled"], "ms",
                  limit=added["floor"], both=f"alone {1e3 * best['alone']:.2f} ms")


def measure_sampled(sonde, folder, name, title, command, extra, rounds):
    ways = sampled_ways(sonde, folder, extra)

    def adds(key, what, cost, budget=None, **more):
        percent = {way: 100 * (cost[way] / cost["alone"] - 1) for way in ways}
        return figure(f"heap_sampled_{name}_{key}", f"{title}: --heap=sampled adds to its {what}", percent["sampled"], "%", budget,
                      limit=percent["floor"], **more)

    repeated = [adds("instructions", "instructions", instructions_of_ways(command, ways), SAMPLED)] if shutil.which("valgrind") else []
    why = "".join(f"processor time varies here by some per cent; in instructions, which repeat, it adds {number(f['value'])} %."
                  for f in repeated)
    return [adds("cpu", "processor time", least_of_ways(command, ways, rounds), SAMPLED, why=why), *repeated]


def share_of_python(sonde, folder, command, extra):
    """Of the instructions of a counted allocation, those that read the frames of Python and their lines: what heaptrack does not do."""
    out = folder / "callgrind.out"
    subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", *command], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, env={**os.environ, **extra, **environment_of_run(sonde, folder, "--heap")})
    text = subprocess.run(["callgrind_annotate", "--inclusive=yes", "--auto=no", out], check=True, stdout=subprocess.PIPE, text=True).stdout

    def of(function):
        return max(int(count.replace(",", "")) for count in re.findall(rf"^ *([\d,]+) .*:{function} ", text, re.M))
    return (of("snd_heap_python_read") + of("snd_heap_python_places")) / of("snd_heap_taken_full")


def measure_full(sonde, folder, name, title, command, extra, rounds):
    ways = {"alone": command, "full": [sonde, "run", "-q", "--heap", "-o", folder / "f.sonde", "--", *command]}
    if shutil.which("heaptrack"):
        ways["heaptrack"] = ["heaptrack", "-o", folder / "ht", *command]
    why = ""
    if name == "python" and shutil.which("valgrind"):
        why = (f"of the instructions of an allocation, {100 * share_of_python(sonde, folder, command, extra):.0f} % read the frames of Python and "
               "their lines (callgrind), which heaptrack does not show.")
    best = {way: [float("inf"), float("inf")] for way in ways}
    for _ in range(rounds):
        for way, line in ways.items():
            best[way] = [min(pair) for pair in zip(best[way], seconds(line, extra))]
    for kind, what, budget in ((0, "elapsed time", None), (1, "processor time", FULL)):
        added = {way: 1e3 * (best[way][kind] - best["alone"][kind]) for way in best}
        both = f"alone {1e3 * best['alone'][kind]:.0f} ms; " + ", ".join(f"{way} +{added[way]:.0f} ms" for way in list(ways)[1:])
        if "heaptrack" in added:
            yield figure(f"heap_full_{name}_{kind}", f"{title}: --heap over heaptrack, added {what}",
                         added["full"] / added["heaptrack"], "x", budget, why=why, both=both)
        else:
            yield figure(f"heap_full_{name}_{kind}", f"{title}: --heap over alone, {what}",
                         best["full"][kind] / best["alone"][kind], "x", both=both)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--quick", action="store_true")
    options.add_argument("--sonde", default=str(pathlib.Path(sys.executable).with_name("sonde")), metavar="PATH")
    options = options.parse_args()
    rounds, figures = 2 if options.quick else 5, []
    with tempfile.TemporaryDirectory(prefix="sonde-bench-") as name:
        folder = pathlib.Path(name)
        (folder / "floor.c").write_text("#define _GNU_SOURCE\n" + FLOOR)
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", folder / "floor.so", folder / "floor.c"], check=True)
        figures.append(say(measure_process(options.sonde, folder, rounds * 20)))
        for key, title, command, extra in programs(folder):
            figures += map(say, measure_full(options.sonde, folder, key, title, command, extra, rounds))
            figures += map(say, measure_sampled(options.sonde, folder, key, title, command, extra, rounds * 8))
    conclude(figures)


if __name__ == "__main__":
    main()
