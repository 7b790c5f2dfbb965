# SPDX-License-Identifier: Apache-2.0
"""sonde run --heap: its numbers are those of valgrind and heaptrack, and the program does not notice."""
import ctypes.util
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest

from cli_tools import PPROF, SONDE, read_json, sonde

pytestmark = pytest.mark.skipif(not (SONDE and shutil.which("cc")), reason="needs sonde and a C compiler")
needs_valgrind = pytest.mark.skipif(not shutil.which("valgrind"), reason="valgrind is not installed")
# The loader's table of thread-local storage has a place more for each library that has any: two of ours.
DTV = 2 * 16

C = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static __attribute__((noinline)) void *deep(int n)
{
    void *p = n ? deep(n - 1) : malloc(64);
    __asm__ volatile("" ::: "memory");
    return p;
}
__attribute__((noinline)) void leak(void) { *(void *volatile *)malloc(12345) = NULL; }
int main(void)
{
    char *s = NULL;
    for (int i = 1; i < 2000; i++) { s = realloc(s, (size_t)i * 37 % 5000 + 1); s[0] = 1; }
    free(s);
    void *v[50], *q;
    for (int i = 0; i < 50; i++) v[i] = memalign((size_t)1 << (4 + i % 8), 100 + i);
    for (int i = 0; i < 50; i += 2) free(v[i]);
    free(aligned_alloc(64, 640)); free(valloc(100));
    if (posix_memalign(&q, 4096, 9999)) return 1;
    for (int i = 0; i < 300; i++) free(deep(i % 150));
    char *a = strdup("abc"), *b = NULL;
    if (asprintf(&b, "%s-%d", a, 5) < 0) return 1;
    free(a);
    q = reallocarray(NULL, 10, 30); q = reallocarray(q, 20, 30);
    q = realloc(malloc(10), 0); q = calloc(0, 5); q = malloc(0);
    void *h = dlopen("libm.so.6", RTLD_NOW);
    if (h) dlclose(h);
    FILE *f = fopen("/dev/null", "w"); fprintf(f, "x"); fclose(f);
    leak();
    puts(b);
    return 3;
}
"""

CXX = r"""
#include <atomic>
#include <cstdio>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>
struct alignas(128) Big { char x[500]; };
static std::vector<std::string> names;
static std::atomic<int> started;
static void work(int n, bool together)
{
    started++; /* all live at a time: a stack, with its table, is not used twice */
    while (together && started < 4) std::this_thread::yield();
    std::map<int, std::string> m;
    for (int i = 0; i < 500; i++) m[i] = std::string(40 + i % 60, 'x');
    for (int i = 0; i < 500; i += 3) m.erase(i);
    if (n == 2) new int[77];
}
int main(int count, char **)
{
    for (int i = 0; i < 200; i++) names.push_back(std::string(100, 'a' + i % 26));
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++) {
        if (count == 1) threads.emplace_back(work, i, true); else work(i, false);
    }
    for (auto &t : threads) t.join();
    auto b = std::make_unique<Big[]>(10);
    delete new Big;
    ::operator new(33, std::nothrow);
    printf("done %zu\n", names.size());
    return 7;
}
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("heap")

    def build(name, source, compiler, *flags):
        path = folder / (name + (".cpp" if compiler == "c++" else ".c"))
        path.write_text(source)
        subprocess.run([compiler, "-O1", "-g", "-fno-builtin", "-o", folder / name, path, *flags], check=True,
                       timeout=120)
        return str(folder / name)
    return build


@pytest.fixture(scope="module")
def c_program(programs):
    return programs("c_program", C, "cc")


@pytest.fixture(scope="module")
def cxx_program(programs):
    if not shutil.which("c++"):
        pytest.skip("needs a C++ compiler")
    return programs("cxx_program", CXX, "c++", "-std=c++17", "-pthread")


def record(trace, *command, how="", status=None, **extra):
    """The heaps and the rows of a run, which must look as it does alone."""
    done = sonde("run", "-q", "--heap" + how, "-o", trace, "--", *command, **extra)
    extra.pop("env", None)
    if status is not None:
        assert (done.returncode, done.stderr) == (status, b""), done.stderr
    report = read_json("report", "--view", "heap", "--json", trace)
    return done, report


def heaps(report, memory="malloc"):
    return [one for one in report["totals"]["heaps"] if one["memory"] == memory]


def memcheck(*command):
    """(allocations, frees, bytes, bytes not freed, blocks not freed)"""
    done = subprocess.run(["valgrind", "--run-libc-freeres=no", "--run-cxx-freeres=no", *command], timeout=300,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    text = done.stderr.decode().replace(",", "")
    left = re.search(r"in use at exit: (\d+) bytes in (\d+) blocks", text)
    total = re.search(r"total heap usage: (\d+) allocs (\d+) frees (\d+) bytes", text)
    return (*map(int, total.groups()), *map(int, left.groups()))


def numbers(heap):
    return (heap["allocations"], heap["allocations"] - heap["leaked_blocks"], heap["bytes"], heap["leaked_bytes"],
            heap["leaked_blocks"])


@needs_valgrind
def test_counts_are_memchecks(c_program, tmp_path):
    alone = subprocess.run([c_program], stdout=subprocess.PIPE, check=False, timeout=60)
    done, report = record(tmp_path / "t.sonde", c_program, status=3)
    assert done.stdout == alone.stdout
    heap, = heaps(report)
    assert numbers(heap) == memcheck(c_program)
    assert heap["unknown_frees"] == 0
    leaks = [row for row in report["rows"] if "leak (" in row["stack"][0]]
    assert [(row["leaked_bytes"], row["leaked_blocks"]) for row in leaks] == [(12345, 1)]
    assert any("main (" in frame for frame in leaks[0]["stack"])


@needs_valgrind
def test_counts_of_threads_and_operators_are_memchecks(cxx_program, tmp_path):
    done, report = record(tmp_path / "t.sonde", cxx_program, status=7)
    assert done.stdout == b"done 200\n"
    heap, = heaps(report)
    allocations, frees, size, left, blocks = memcheck(cxx_program)
    assert numbers(heap) == (allocations, frees, size + 4 * DTV, left + 4 * DTV, blocks)


def test_shares_of_the_peak_add_up(cxx_program, tmp_path):
    _, report = record(tmp_path / "t.sonde", cxx_program, status=7)
    heap, = heaps(report)
    assert sum(row["peak_bytes"] for row in report["rows"] if row["memory"] == "malloc") == heap["peak_bytes"]


MOMENTS = r"""
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
__attribute__((noinline)) static char *load(void) { char *p = malloc(1 << 20); __asm__ volatile("" ::: "memory"); return p; }
__attribute__((noinline)) static char *cache(void) { char *p = malloc(2 << 20); __asm__ volatile("" ::: "memory"); return p; }
static void *churn(void *unused)
{
    for (int round = 0; round < 40; round++) {
        char *blocks[500];
        for (int i = 0; i < 500; i++) blocks[i] = malloc((size_t)(i * 37 % 900 + round));
        for (int i = 0; i < 500; i++) free(blocks[i]);
        usleep(1000);
    }
    return unused;
}
int main(int count, char **arguments)
{
    char *blocks[12];
    if (count > 1) { /* with other threads */
        pthread_t threads[3];
        for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, churn, NULL);
        for (int i = 0; i < 12; i++) { blocks[i] = load(); usleep(3000); }
        for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
        return arguments[0] == NULL;
    }
    for (int i = 0; i < 4; i++) { blocks[i] = load(); usleep(25000); }
    for (int i = 4; i < 6; i++) { blocks[i] = cache(); usleep(25000); }
    for (int i = 0; i < 4; i++) { free(blocks[i]); usleep(25000); }
    return 0;
}
"""


def held_at(trace, moment):
    rows = read_json("report", trace, "--view", "heap", "--json", "--rows", "-1", "--at", str(moment["time_ns"]))["rows"]
    return [row for row in rows if row["memory"] == moment["memory"] and (row["held_bytes"] or row["held_blocks"])]


def moments_of(trace):
    return read_json("report", trace, "--view", "heap-moments", "--json", "--rows", "-1")["rows"]


def test_few_large_allocations_have_a_curve_and_their_holders(programs, tmp_path):
    """Each change is more than 10 ms after the one before, and more than 64 KiB: a moment before each but the first."""
    record(tmp_path / "trace", programs("moments", MOMENTS, "cc", "-pthread"), status=0)
    moments = [one for one in moments_of(tmp_path / "trace") if one["memory"] == "malloc"]
    mb = 1 << 20
    assert [one["held_bytes"] // mb for one in moments] == [1, 2, 3, 4, 6, 8, 7, 6, 5]
    assert [one["highest_bytes"] // mb for one in moments] == [1, 2, 3, 4, 6, 8, 8, 7, 6]
    assert all(one["since_ns"] < one["time_ns"] for one in moments)
    sums = {}
    for row in held_at(tmp_path / "trace", moments[5]):
        name = row["stack"][0].split()[0]
        blocks, size = sums.get(name, (0, 0))  # of two calls, if the compiler unrolled a loop
        sums[name] = blocks + row["held_blocks"], size + row["held_bytes"] // mb
    assert sums == {"load": (4, 4), "cache": (2, 4)}


@pytest.mark.parametrize("how", ["", "=4K"])
def test_what_stacks_held_at_moments_adds_up(programs, tmp_path, how):
    record(tmp_path / "trace", programs("moments", MOMENTS, "cc", "-pthread"), "threads", how=how, status=0)
    moments = moments_of(tmp_path / "trace")
    assert len(moments) >= 3
    for moment in moments:
        assert sum(row["held_bytes"] for row in held_at(tmp_path / "trace", moment)) == moment["held_bytes"], moment
        assert moment["highest_bytes"] >= moment["held_bytes"] and (moment["held_error"] is None) == (how == "")


@needs_valgrind
def test_peak_is_massifs(c_program, tmp_path):
    out = tmp_path / "massif"
    subprocess.run(["valgrind", "--tool=massif", "--peak-inaccuracy=0.0", f"--massif-out-file={out}", c_program],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, timeout=300)
    peak = max(int(text) for text in re.findall(r"mem_heap_B=(\d+)", out.read_text()))
    _, report = record(tmp_path / "t.sonde", c_program, status=3)
    assert heaps(report)[0]["peak_bytes"] == peak


TEMPORARY = r"""
#include <stdlib.h>
int main(void)
{
    void *volatile kept, *volatile p = NULL;
    for (int i = 0; i < 100; i++) {
        free(malloc(10));
        kept = malloc(20);
        free(malloc(30));
        free(kept);
        p = realloc(p, (size_t)i + 1);
    }
    free(calloc(3, 4));
    return 3;
}
"""


@pytest.mark.skipif(not shutil.which("heaptrack"), reason="heaptrack is not installed")
def test_temporary_allocations_are_heaptracks(programs, tmp_path):
    c_program = programs("temporary", TEMPORARY, "cc")
    subprocess.run(["heaptrack", "-o", tmp_path / "ht", c_program], stdout=subprocess.DEVNULL, check=False,
                   timeout=120)
    file, = tmp_path.glob("ht*")
    text = subprocess.run(["heaptrack_print", file], stdout=subprocess.PIPE, check=True, timeout=120).stdout.decode()
    calls = int(re.search(r"calls to allocation functions: (\d+)", text)[1])
    temporary = int(re.search(r"temporary memory allocations: (\d+)", text)[1])
    _, report = record(tmp_path / "t.sonde", c_program, status=3)
    heap, = heaps(report)
    # heaptrack counts one of its own, too.
    assert heap["allocations"] == 401 and heap["temporary"] == 201
    assert (calls - 401, temporary - 201) in [(0, 0), (1, 0), (1, 1)]


@pytest.mark.parametrize("library", ["libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2.0"])
def test_another_allocator(cxx_program, tmp_path, library):
    found = ctypes.util.find_library(re.sub(r"^lib|\.so.*", "", library))
    paths = [str(path) for path in pathlib.Path("/usr/lib").rglob(library)] if not found else [found]
    if not paths:
        pytest.skip(f"{library} is not installed")
    _, usual = record(tmp_path / "usual.sonde", cxx_program, "here", status=7)
    done, report = record(tmp_path / "t.sonde", cxx_program, "here", status=7,
                          env={**os.environ, "LD_PRELOAD": paths[0]})
    assert done.stdout == b"done 200\n"
    heap, = heaps(report)
    # An allocator of its own counts what its operators are asked for, and makes its own start.
    rows = [row for row in report["rows"] if row["memory"] == "malloc" and any("main (" in one for one in row["stack"])]
    known = [row for row in usual["rows"] if row["memory"] == "malloc" and any("main (" in one for one in row["stack"])]
    for key in ("allocations", "leaked_blocks"):
        assert sum(row[key] for row in rows) == sum(row[key] for row in known), key
    assert heap["unknown_frees"] == 0


FORKS = r"""
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **arguments)
{
    void *volatile p[3000];
    if (count > 1) { for (int i = 0; i < 7; i++) p[i] = malloc(100); return 0; }
    for (int i = 0; i < 2500; i++) p[i] = malloc(10);
    if (fork() == 0) { /* frees of its parent's blocks count for neither */
        for (int i = 0; i < 2500; i++) { free(p[i]); p[i] = malloc(20); }
        _exit(0);
    }
    wait(NULL);
    if (fork() == 0) { p[0] = malloc(33); _exit(0); }
    wait(NULL);
    if (vfork() == 0) { execl(arguments[0], arguments[0], "again", (char *)NULL); _exit(1); }
    wait(NULL);
    for (int i = 0; i < 2500; i++) free(p[i]);
    return 5;
}
"""


def test_forks_and_exec(programs, tmp_path):
    program = programs("forks", FORKS, "cc")
    _, report = record(tmp_path / "t.sonde", program, status=5)
    counted = sorted((one["allocations"], one["bytes"], one["leaked_blocks"]) for one in heaps(report))
    assert counted == [(1, 33, 1), (7, 700, 7), (2500, 25000, 0), (2500, 50000, 2500)]


KILLED = r"""
#include <signal.h>
#include <stdlib.h>
__attribute__((noinline)) static void *take(void)
{
    void *p = malloc(1000);
    __asm__ volatile("" ::: "memory");
    return p;
}
int main(void)
{
    void *volatile p;
    for (int i = 0; i < 1000; i++) p = take();
    raise(SIGKILL);
    return 0;
}
"""


def test_a_killed_program_keeps_its_numbers(programs, tmp_path):
    program = programs("killed", KILLED, "cc")
    done, report = record(tmp_path / "t.sonde", program)
    assert done.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL)
    heap, = heaps(report)
    assert numbers(heap) == (1000, 0, 1000000, 1000000, 1000)
    assert heap["peak_bytes"] == 1000000
    row, = (row for row in report["rows"] if row["allocations"] == 1000)
    assert [frame.split()[0] for frame in row["stack"][:2]] == ["take", "main"]


FEW = r"""
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#ifdef EARLY
__attribute__((constructor)) static void begin(void) { void *volatile p = malloc(10); }
#endif
int main(int count, char **arguments)
{
    void *volatile p;
    if (count == 2) p = malloc(10);
    if (count == 3) p = mmap(0, 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    raise(SIGKILL);
    return 0;
}
"""


@pytest.mark.parametrize("arguments, memory", [(["one"], "malloc"), (["one", "mapped"], "mapped")])
def test_a_single_allocation_is_counted(programs, tmp_path, arguments, memory):
    _, report = record(tmp_path / "t.sonde", programs("few", FEW, "cc"), *arguments)
    heap, = report["totals"]["heaps"]
    assert (heap["memory"], heap["allocations"], heap["leaked_blocks"]) == (memory, 1, 1)


def test_what_is_allocated_before_the_recording_begins_is_counted(programs, tmp_path):
    """By a library that the program needs, and that begins before sonde's: nothing follows."""
    programs("libearly.so", FEW.partition("int main")[0], "cc", "-shared", "-fPIC", "-DEARLY")
    program = pathlib.Path(programs("few", FEW, "cc"))
    library = str(program.parent / "libearly.so")
    _, report = record(tmp_path / "t.sonde", str(program), env={**os.environ, "LD_PRELOAD": library})
    heap, = heaps(report)
    assert (heap["allocations"], heap["bytes"]) == (1, 10)


OTHER_USER = r"""
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
    void *volatile p = malloc(10);
    for (int before = 0; before < 2; before++)
        if (fork() == 0) { /* as the workers of a server that root starts */
            if (before) p = malloc(20);
            if (setgid(65534) || (before ? setuid(65534) : setresuid(65534, 65534, 65534))) _exit(1);
            for (int i = 0; i < 1500; i++) p = malloc(100);
            return 0;
        } else {
            int status;
            if (wait(&status) < 0 || status != 0) return 1;
        }
    return 5;
}
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_child_that_becomes_another_user(programs, tmp_path):
    """It may not write to the trace's folder any more."""
    os.chmod(tmp_path, 0o700)
    _, report = record(tmp_path / "t.sonde", programs("other_user", OTHER_USER, "cc"), status=5)
    assert sorted((one["allocations"], one["bytes"]) for one in heaps(report)) == [
        (1, 10), (1500, 150000), (1501, 150020)]


MAPPED = r"""
#define _GNU_SOURCE
#include <sys/mman.h>
int main(void)
{
    char *a = mmap(0, 40960, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *b;
    munmap(a + 4096, 4096);
    b = mmap(0, 8192, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    b = mremap(b, 8192, 16384, MREMAP_MAYMOVE);
    munmap(b, 16384);
    return 0;
}
"""


def test_mappings_are_counted_apart(programs, tmp_path):
    _, report = record(tmp_path / "t.sonde", programs("mapped", MAPPED, "cc"), status=0)
    heap, = heaps(report, "mapped")
    assert (heap["bytes"], heap["leaked_bytes"], heap["leaked_blocks"]) == (40960 + 8192 + 16384, 36864, 2)
    assert heap["peak_bytes"] == 36864 + 16384


SAMPLED = r"""
#include <stdlib.h>
int main(void)
{
    void *volatile p[2000];
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 2000; i++) p[i] = malloc(16 + i * 7 % 3000);
        for (int i = 0; i < 2000 && round < 49; i++) free(p[i]);
    }
    return 0;
}
"""


def test_samples_are_within_their_confidence(programs, tmp_path):
    program = programs("sampled", SAMPLED, "cc")
    _, report = record(tmp_path / "full.sonde", program, status=0)
    exact, = heaps(report)
    inside = estimate = 0
    for seed in range(1, 9):
        _, report = record(tmp_path / "t.sonde", program, how="=64K", status=0,
                           env={**os.environ, "SONDE_HEAP_SEED": str(seed)})
        heap, = heaps(report)
        assert heap["period_bytes"] == 65536 and heap["samples"] > 0
        estimate += heap["bytes"] / 8
        inside += abs(heap["bytes"] - exact["bytes"]) <= heap["bytes_error"]
        inside += abs(heap["leaked_bytes"] - exact["leaked_bytes"]) <= heap["leaked_error"]
        assert abs(heap["bytes"] - exact["bytes"]) < 0.2 * exact["bytes"]
    assert inside >= 14  # of 16, at 95 %
    assert abs(estimate - exact["bytes"]) < 0.03 * exact["bytes"]


REPLACED = r"""
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
static int taken, given;
void *operator new(std::size_t size) { taken++; void *p = std::malloc(size); if (!p) throw std::bad_alloc(); return p; }
void operator delete(void *p) noexcept { given++; std::free(p); }
int main()
{
    char *volatile many = nullptr;
    for (int i = 0; i < 1000; i++) { many = new char[100]; delete[] many; int *volatile one = new (std::nothrow) int; delete one; }
    int thrown = 0;
    try { many = new char[(std::size_t)1 << 62]; } catch (const std::bad_alloc &) { thrown = 1; }
    std::printf("%d %d %d\n", taken, given, thrown);
}
"""
KEPT = REPLACED.replace(REPLACED[REPLACED.index("void *operator"):REPLACED.index("int main")], "")


@pytest.mark.parametrize("how", ["", "=sampled", "=1K"])
@pytest.mark.parametrize("source", [REPLACED, KEPT], ids=["replaced", "kept"])
def test_operators_that_the_program_replaces_are_called(programs, tmp_path, source, how):
    program = programs("replaced" if source is REPLACED else "kept", source, "c++")
    alone = subprocess.run([program], stdout=subprocess.PIPE, check=True)
    done, report = record(tmp_path / "t.sonde", program, how=how, status=0)
    assert done.stdout == alone.stdout
    if how == "":
        assert heaps(report)[0]["allocations"] >= 2000


def test_a_program_of_one_thread_stays_one(programs, tmp_path):
    """The C library's malloc takes locks from the second thread on: a helper of ours would cost all its calls that."""
    source = r"""
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
    int count = 0;
    for (int i = 0; i < 100000; i++) free(malloc(100 + i % 7));
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *e; (e = readdir(tasks));) count += e->d_name[0] != '.';
    closedir(tasks);
    printf("%d\n", count);
    return 0;
}
"""
    program = programs("alone", source, "cc")
    for how in "", "=sampled":
        done, _ = record(tmp_path / "t.sonde", program, how=how, status=0)
        assert done.stdout == b"1\n"


@pytest.mark.parametrize("command", [["git", "--version"], ["sqlite3", ":memory:", "select 6*7"], ["jq", "-n", "[1,2]"],
                                     ["python3", "-c", "print(sum(range(1000)))"],
                                     ["cc", "-x", "c", "-O2", "-S", "-o", "-", "/dev/null"]])
def test_programs_do_not_notice(command, tmp_path):
    if not shutil.which(command[0]):
        pytest.skip(f"{command[0]} is not installed (tools/setup test)")
    alone = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=60)
    done, report = record(tmp_path / "t.sonde", *command, status=alone.returncode)
    assert done.stdout == alone.stdout
    assert heaps(report) and all(one["allocations"] > 0 for one in heaps(report))


def test_what_cannot_be_recorded_is_refused(programs, tmp_path):
    program = programs("static", "int main(void) { return 0; }", "cc", "-static")
    done = sonde("run", "--heap", "-o", tmp_path / "t.sonde", "--", program)
    assert done.returncode == 1 and b"is linked statically" in done.stderr
    assert not (tmp_path / "t.sonde").exists()
    done = sonde("run", "--heap=some", "--", "true")
    assert done.returncode == 2 and b"--heap: expected full, sampled or a size such as 512K, got 'some'" in done.stderr


def test_heap_stacks_are_exported(c_program, tmp_path):
    """folded, speedscope and pprof have the bytes of the view; a trace of allocations alone is shown as such."""
    trace = tmp_path / "t.sonde"
    _, report = record(trace, c_program, status=3)
    heap, = heaps(report)
    text = sonde("report", trace).stdout.decode()
    assert "Held at the peak" in text
    for what, key in ("peak", "peak_bytes"), ("allocated", "bytes"), ("leaked", "leaked_bytes"):
        done = sonde("export", trace, "--to", "folded", "--heap", what, "-o", "-")
        lines = [line.rsplit(" ", 1) for line in done.stdout.decode().splitlines()]
        assert sum(int(count) for stack, count in lines if "(mapped)" not in stack) == heap[key], what
        profiles = json.loads(sonde("export", trace, "--to", "speedscope", "--heap", what, "-o", "-").stdout)
        first = profiles["profiles"][0]
        assert first["unit"] == "bytes" and sum(first["weights"]) == first["endValue"] == heap[key]
    leaked = sonde("export", trace, "--to", "folded", "--heap", "leaked", "-o", "-").stdout.decode()
    assert any(";leak (" in line and line.endswith(" 12345") for line in leaked.splitlines())
    usual, peak = (sonde("export", trace, "--to", "folded", *how, "-o", "-").stdout for how in ([], ["--heap", "peak"]))
    assert usual == peak != b""
    assert sonde("export", trace, "--to", "chrome", "--heap", "peak", "-o", "-").returncode == 2
    done = sonde("export", trace, "--to", "folded", "--heap", "most", "-o", "-")
    assert done.returncode == 2 and b"'most'" in done.stderr
    if shutil.which(PPROF[0]):
        sonde("export", trace, "--to", "pprof", "--heap", "leaked", "-o", tmp_path / "t.pb.gz")
        top = subprocess.run([*PPROF, "-top", "-unit=B", "-symbolize=none", tmp_path / "t.pb.gz"], check=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300).stdout.decode()
        assert "Type: leaked" in top and re.search(r"\b12345B .* leak$", top, re.M)


PATHS = r"""
#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static _Thread_local jmp_buf out;
static _Thread_local char way[64];
static void go(int depth);
#define AFTER __asm__ volatile("" ::: "memory")
__attribute__((noinline)) void take(void) { void *volatile p = malloc(16); free(p); }
__attribute__((noinline)) void a(int depth) { go(depth); AFTER; }
__attribute__((noinline)) void b(int depth) /* needs its frame pointer: its stack has any size */
{
    char *room = alloca((size_t)(way[0] * 16 + depth));
    __asm__ volatile("" ::"r"(room) : "memory");
    go(depth);
    AFTER;
}
__attribute__((noinline)) void c(int depth) /* calls from two places, and saves registers that change */
{
    register long x __asm__(REGISTER) = depth * 77 + way[1];
    if (way[depth + 1] % 2) go(depth); else { AFTER; go(depth); }
    __asm__ volatile("" ::"r"(x) : "memory");
}
__attribute__((noinline)) void d(int depth) { if (depth % 2) take(); go(depth); AFTER; }
static __attribute__((noinline)) void go(int depth)
{
    static void (*const next[])(int) = { a, b, c, d };
    if (way[depth] == '.') { take(); if (way[depth + 1] == 'j') longjmp(out, 1); AFTER; return; }
    next[way[depth] - 'a'](depth + 1);
    AFTER;
}
static void *work(void *which)
{
    unsigned seed = 12345 + (unsigned)(size_t)which;
    for (int n = 0; n < 6000; n++) {
        seed = seed * 1103515245 + 12345;
        unsigned kind = seed >> 16, length = 1 + (kind >> 9) % 5;
        memset(way, 0, sizeof way);
        for (unsigned i = 0; i < length; i++) way[i] = (char)('a' + (kind >> 2 * (i % 4) & 3));
        way[length] = '.';
        way[length + 1] = kind % 7 == 0 ? 'j' : 0;
        if (!setjmp(out)) go(0);
        printf("%s\n", (const char *)way);
    }
    return NULL;
}
int main(void)
{
    pthread_t threads[2];
    work(NULL);
    for (size_t i = 0; i < 2; i++) pthread_create(&threads[i], NULL, work, (void *)(i + 1));
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return 0;
}
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the program names a register")
@pytest.mark.parametrize("flags", [["-fomit-frame-pointer", '-DREGISTER="rbp"'],
                                   ["-fno-omit-frame-pointer", '-DREGISTER="rbx"']])
def test_every_call_path_has_its_own_allocations(programs, tmp_path, flags):
    """Callers that are as in the walk before are not walked again: no allocation may get another's stack."""
    program = programs("paths" + flags[0], PATHS, "cc", "-pthread", *flags)
    done, _ = record(tmp_path / "t.sonde", program, status=0)
    expected = {}
    for line in done.stdout.decode().split():
        path = line.split(".")[0]
        ends = [path] + [path[:i + 1] for i, name in enumerate(path) if name == "d" and i % 2 == 0]
        for end in ends:
            expected[end] = expected.get(end, 0) + 16
    folded = sonde("export", tmp_path / "t.sonde", "--to", "folded", "--heap", "allocated", "-o", "-").stdout.decode()
    found = {}
    for line in folded.splitlines():
        stack, size = line.rsplit(" ", 1)
        names = re.findall(r"(?:^|;)(\w+)", stack)
        if "take" in names:
            path = "".join(name for name in names if name in ("a", "b", "c", "d"))
            found[path] = found.get(path, 0) + int(size)
    assert found == expected
