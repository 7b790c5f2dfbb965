/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a reader of Python stacks is made of, without a Python: line tables of each kind (bytes and
 * lines as CPython gave them), memory that is not there, symbols of this program.
 */
#include <stdatomic.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "readable.h"
#include "base/count_of.h"
#include "pystack/interpreter/code_objects.h"
#include "pystack/interpreter/code_lines.h"
#include "pystack/interpreter/py_script.h"
#include "pystack/outside/locate.h"
#include "pystack/sampling/pace.h"
#include "pystack/task.h"

/* -------------------------------------------------------------- line tables */

struct stretch {
    uint32_t line;  /* 0: of no line, which is shown as the function's first */
    unsigned units; /* of two bytes */
};

/* co_lnotab of 3.9: a function with a try, a comprehension and an expression over two lines. */
static const uint8_t        lnotab[] = { 0, 1,  2, 1, 2, 255, 4, 3,  8, 1,  6, 1,  6, 255, 6, 3, 4,
                                         1, 18, 1, 4, 1, 12,  1, 12, 1, 12, 2, 12, 1, 2,   1, 2, 255 };
static const struct stretch lnotab_lines[] = {
    { 3, 1 },  { 4, 1 },  { 3, 2 },  { 6, 4 },  { 7, 3 },  { 8, 3 },
    { 7, 3 },  { 10, 2 }, { 11, 9 }, { 12, 2 }, { 13, 6 }, { 14, 6 },
    { 15, 6 }, { 17, 6 }, { 18, 1 }, { 19, 1 }, { 18, 2 },
};
/* co_linetable of 3.10: of the same. */
static const uint8_t        linetable[] = { 2,   1, 2,   1,   4, 255, 8,   3, 6, 1,  6,   1,  6,
                                            255, 4, 3,   16,  1, 4,   255, 4, 2, 12, 1,   12, 1,
                                            8,   1, 2,   255, 2, 255, 4,   4, 2, 1,  2,   1,  4,
                                            255, 2, 253, 4,   2, 2,   1,   2, 1, 4,  255, 6,  255 };
static const struct stretch linetable_lines[] = {
    { 3, 1 },  { 4, 1 },  { 3, 2 },  { 6, 4 },  { 7, 3 },  { 8, 3 },  { 7, 3 },
    { 10, 2 }, { 11, 8 }, { 10, 2 }, { 12, 2 }, { 13, 6 }, { 14, 6 }, { 15, 4 },
    { 14, 1 }, { 13, 1 }, { 17, 2 }, { 18, 1 }, { 19, 1 }, { 18, 2 }, { 15, 1 },
    { 17, 2 }, { 18, 1 }, { 19, 1 }, { 18, 2 }, { 17, 3 },
};
/* co_linetable of 3.13: of the same. */
static const uint8_t locations[] = {
    128, 0,   216, 9,   10,  216, 9,   10,  241, 3,   1,   10,  11,  128, 65,  240, 6,
    0,   8,   9,   136, 49,  131, 117, 228, 23,  28,  152, 81,  148, 120, 243, 3,   2,
    16,  10,  217, 23,  31,  144, 33,  138, 65,  145, 120, 241, 3,   2,   16,  10,  240,
    0,   2,   9,   10,  246, 6,   0,   11,  12,  216, 8,   9,   136, 81,  137, 6,   136,
    1,   144, 81,  145, 6,   144, 1,   247, 3,   0,   11,  12,  136, 33,  240, 4,   5,
    5,   14,  216, 12,  13,  137, 69,  136, 1,   240, 8,   0,   13,  14,  136, 1,   216,
    12,  13,  216, 12,  13,  240, 3,   1,   12,  15,  240, 0,   1,   5,   15,  249, 242,
    23,  2,   16,  10,  248, 244, 14,  0,   12,  29,  243, 0,   1,   5,   14,  216, 12,
    13,  138, 1,   240, 3,   1,   5,   14,  251, 240, 6,   0,   13,  14,  137, 1,   250
};
static const struct stretch location_lines[] = {
    { 2, 1 },  { 3, 1 },  { 4, 1 },  { 3, 3 },  { 6, 6 },  { 8, 11 }, { 7, 4 },
    { 8, 8 },  { 7, 3 },  { 10, 7 }, { 11, 9 }, { 10, 9 }, { 12, 1 }, { 13, 4 },
    { 17, 2 }, { 18, 1 }, { 19, 1 }, { 18, 2 }, { 0, 2 },  { 7, 3 },  { 0, 1 },
    { 14, 9 }, { 15, 4 }, { 14, 1 }, { 0, 4 },  { 17, 3 }, { 0, 3 },
};
/* A jump of two hundred lines: 3.9 and 3.10 need two entries, 3.11 on a longer number. */
static const uint8_t        lnotab_far[] = { 0, 1, 4, 127, 0, 74, 4, 1 };
static const uint8_t        linetable_far[] = { 4, 1, 0, 127, 4, 74, 8, 1 };
static const uint8_t        location_far[] = { 128, 0,  216, 8,  9,   128, 65, 240, 82, 6,   0,
                                               9,   10, 128, 65, 216, 11,  12, 137, 53, 128, 76 };
static const struct stretch old_far_lines[] = { { 321, 2 }, { 522, 2 }, { 523, 4 } };
static const struct stretch far_lines[] = { { 320, 1 }, { 321, 2 }, { 522, 2 }, { 523, 4 } };

static const struct {
    enum snd_py_lines     kind;
    uint32_t              first;
    const uint8_t        *table;
    size_t                size;
    const struct stretch *lines;
    size_t                count;
} tables[] = {
#define TABLE(kind, first, table, lines)                                             \
    {                                                                                \
        kind, first, table, sizeof(table), lines, sizeof(lines) / sizeof((lines)[0]) \
    }
    TABLE(SND_PY_LNOTAB, 2, lnotab, lnotab_lines),
    TABLE(SND_PY_LINETABLE, 2, linetable, linetable_lines),
    TABLE(SND_PY_LOCATIONS, 2, locations, location_lines),
    TABLE(SND_PY_LNOTAB, 320, lnotab_far, old_far_lines),
    TABLE(SND_PY_LINETABLE, 320, linetable_far, old_far_lines),
    TABLE(SND_PY_LOCATIONS, 320, location_far, far_lines),
#undef TABLE
};

static void test_lines(void **state)
{
    (void)state;
    for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++) {
        int64_t offset = 0;
        for (size_t i = 0; i < tables[t].count; i++)
            for (unsigned unit = 0; unit < tables[t].lines[i].units; unit++, offset += 2) {
                uint32_t expected = tables[t].lines[i].line;
                assert_int_equal(snd_py_line(tables[t].kind, tables[t].table, tables[t].size,
                                             tables[t].first, offset),
                                 expected ? expected : tables[t].first);
            }
        /* Before its first instruction a function is at its first line. */
        assert_int_equal(snd_py_line(tables[t].kind, tables[t].table, tables[t].size,
                                     tables[t].first, -2),
                         tables[t].first);
    }
}

/* A table read while its memory was given away may hold anything, and end anywhere. */
static void test_any_bytes(void **state)
{
    uint8_t  bytes[64];
    uint32_t seed = 1;

    (void)state;
    for (int round = 0; round < 20000; round++) {
        for (size_t i = 0; i < sizeof bytes; i++) {
            seed = seed * 1664525u + 1013904223u;
            bytes[i] = (uint8_t)(seed >> 24);
        }
        size_t   size = seed % (sizeof bytes + 1);
        uint8_t *exact = malloc(size ? size : 1); /* so that a sanitizer sees its end */
        memcpy(exact, bytes, size);
        for (enum snd_py_lines kind = SND_PY_LNOTAB; kind <= SND_PY_LOCATIONS; kind++)
            for (int64_t offset = 0; offset < 300; offset += 50) {
                uint32_t line = snd_py_line(kind, exact, size, 7, offset);
                assert_true(line >= 1 && line <= INT32_MAX);
            }
        free(exact);
    }
}

/* ------------------------------------------------------------------- memory */

static void test_memory(void **state)
{
    char *pages = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char  out[8192];
    pid_t self = getpid();

    (void)state;
    skip_unless_readable();
    assert_true(pages != MAP_FAILED);
    munmap(pages + 4096, 4096); /* a hole */
    memset(pages, 'a', 4096);
    memset(pages + 8192, 'c', 4096);
    uint64_t at = (uint64_t)(uintptr_t)pages;
    assert_true(snd_memory_read(self, at, out, 4096));
    assert_int_equal(out[4095], 'a');
    assert_false(snd_memory_read(self, at + 4000, out, 200)); /* into the hole */
    assert_false(snd_memory_read(self, 0, out, 8));
    assert_false(snd_memory_read(self, UINT64_MAX - 4, out, 8));
    const struct snd_piece pieces[] = {
        { at, out, 8 }, { at + 8192, out + 8, 8 }, { at + 4096, out + 16, 8 }, { at, out + 24, 8 }
    };
    memcpy(pages + 100, "12", 2);
    memcpy(pages + 300, "34", 2);
    const struct snd_piece near[] = { /* what is between them goes nowhere */
                                      { at + 100, out, 2 },      { at + 300, out + 2, 2 },
                                      { at + 302, out + 4, 2 },  { at + 100, out + 6, 2 },
                                      { at + 4095, out + 8, 1 }, { at + 4096, out + 9, 1 }
    };
    for (int known = 0; known < 2; known++) { /* as another process's, then as its own */
        memset(out, 0, sizeof out);
        assert_int_equal(snd_memory_read_many(self, pieces, 4), 2); /* up to the hole */
        assert_int_equal(snd_memory_read_many(self, pieces, 0), 0);
        assert_int_equal(out[8], 'c');
        assert_int_equal(out[24], 0);
        out[9] = 'c';
        assert_int_equal(snd_memory_read_many(self, near, 6), 5);
        assert_memory_equal(out, "1234aa12ac", 10);
        snd_memory_know_own();
    }
    munmap(pages, 4096);
    munmap(pages + 8192, 4096);
}

/* ---------------------------------------------------------- symbols, processes */

int a_symbol_of_ours = 42;

static uint64_t base_of_self(void)
{
    FILE              *maps = fopen("/proc/self/maps", "re");
    char               line[4096 + 128], exe[4096] = "";
    unsigned long long base = 0;

    assert_non_null(maps);
    assert_true(readlink("/proc/self/exe", exe, sizeof exe - 1) > 0);
    while (base == 0 && fgets(line, sizeof line, maps))
        if (strstr(line, exe))
            base = strtoull(line, NULL, 16);
    fclose(maps);
    return base;
}

static void test_symbols(void **state)
{
    struct snd_symbol symbols[] = { { "a_symbol_of_ours", 0 }, { "nobody_s_symbol", 0 } };

    (void)state;
    assert_true(snd_elf_symbols("/proc/self/exe", base_of_self(), symbols, 2));
    assert_int_equal(symbols[0].address, (uint64_t)(uintptr_t)&a_symbol_of_ours);
    assert_int_equal(symbols[1].address, 0);
    assert_false(snd_elf_symbols("/proc/self/maps", 0, symbols, 2));
    assert_false(snd_elf_symbols("/", 0, symbols, 2));
    assert_int_equal(snd_elf_python_minor("/dev/null"), 0);
}

/* A name that was a library's may be anything's by now: a pipe that nobody writes to. */
static void test_symbols_of_a_pipe(void **state)
{
    struct snd_symbol symbol = { "_PyRuntime", 0 };
    char              folder[] = "/tmp/test_pystack.XXXXXX", path[64];

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/libpython3.9.so (deleted)", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    alarm(20); /* rather than without end */
    assert_false(snd_elf_symbols(path, 0, &symbol, 1));
    assert_int_equal(snd_elf_python_minor(path), 0);
    alarm(0);
    unlink(path);
    rmdir(folder);
}

struct shrinking {
    int         fd;
    char       *bytes;
    size_t      size;
    atomic_bool end;
    atomic_int  rounds;
};

static void *shrink(void *user)
{
    struct shrinking *file = user;

    while (!file->end) {
        if (ftruncate(file->fd, 64) != 0 ||
            pwrite(file->fd, file->bytes, file->size, 0) != (ssize_t)file->size ||
            ftruncate(file->fd, 4 << 20) != 0) /* long enough to be cut while it is read */
            abort();
        file->rounds++;
        usleep(200);
    }
    return NULL;
}

/* The other process may write to its file while we read it. */
static void test_symbols_of_a_file_that_changes(void **state)
{
    struct shrinking file = { .size = 0 };
    struct stat      st;
    char             path[] = "/tmp/test_pystack.XXXXXX";
    pthread_t        thread;
    int              self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

    (void)state;
    assert_int_equal(fstat(self, &st), 0);
    file.size = (size_t)st.st_size;
    file.bytes = malloc(file.size);
    assert_int_equal(read(self, file.bytes, file.size), file.size);
    close(self);
    file.fd = mkstemp(path);
    assert_true(file.fd >= 0);
    assert_int_equal(pthread_create(&thread, NULL, shrink, &file), 0);
    while (file.rounds < 300) {
        struct snd_symbol symbol = { "nobody_s_symbol", 0 };
        (void)snd_elf_symbols(path, 0, &symbol, 1); /* found or not: it is lived through */
        (void)snd_elf_python_minor(path);
        assert_int_equal(symbol.address, 0);
    }
    file.end = true;
    pthread_join(thread, NULL);
    close(file.fd);
    unlink(path);
    free(file.bytes);
}

/* The words that tell the version, wherever they lie in the file. */
static void test_minor(void **state)
{
    static const struct {
        const char *text;
        unsigned    minor;
    } cases[] = { { "lib/python3.9", 9 }, { "python3.13", 13 }, { "python3.x", 0 } };
    static char bytes[140000];
    char        path[] = "/tmp/test_pystack.XXXXXX";
    int         fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
        for (size_t at = 65536 - 40; at < 65536 + 40; at++) {
            memset(bytes, 'x', sizeof bytes);
            memcpy(bytes + at, cases[c].text, strlen(cases[c].text) + 1);
            assert_int_equal(pwrite(fd, bytes, sizeof bytes, 0), sizeof bytes);
            assert_int_equal(snd_elf_python_minor(path), cases[c].minor);
        }
    close(fd);
    unlink(path);
}

/* ------------------------------------------------- offsets that a process made up */

/* Words of _Py_DebugOffsets that are indexes into what is read, by version, and how large that is. */
static const struct {
    unsigned word[3], most;
} indexes[] = {
    { { 21, 24, 24 }, 248 }, { { 22, 25, 25 }, 248 }, { { 24, 27, 30 }, 248 },
    { { 25, 28, 31 }, 248 }, { { 29, 32, 40 }, 104 }, { { 30, 33, 41 }, 104 },
    { { 31, 34, 42 }, 104 }, { { 33, 36, 44 }, 111 }, { { 35, 40, 48 }, 232 },
    { { 36, 41, 49 }, 232 }, { { 37, 42, 50 }, 232 }, { { 38, 43, 51 }, 232 },
    { { 39, 44, 52 }, 232 }, { { 45, 51, 59 }, 232 }, { { 65, 75, 87 }, 56 },
    { { 66, 76, 88 }, 64 },  { { 68, 78, 90 }, 72 },  { { 69, 79, 91 }, 72 },
    { { 70, 80, 92 }, 80 },
};

#define OFFSET_WORDS (SND_PY_OFFSETS_SIZE / 8)

static void check_hostile(unsigned minor)
{
    static char          object[200000];
    uint64_t             words[OFFSET_WORDS] = { 0 };
    struct snd_py_layout layout;
    struct snd_codes    *codes = malloc(sizeof *codes);

    assert_non_null(codes);
    memcpy(words, "xdebugpy", 8);
    for (size_t i = 0; i < sizeof indexes / sizeof indexes[0]; i++) {
        const uint64_t bad[] = { indexes[i].most + 1, 100000, UINT32_MAX, UINT64_MAX };
        const unsigned word = indexes[i].word[minor - 13];
        words[word] = indexes[i].most;
        assert_true(snd_py_layout_refine(&layout, minor, words, sizeof words));
        /* What was accepted is used: a sanitizer sees where. */
        snd_codes_init(codes, getpid(), &layout, 0);
        snd_codes_check(codes, NULL, 0);
        assert_null(snd_codes_get(codes, (uint64_t)(uintptr_t)object));
        snd_codes_release(codes);
        for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
            words[word] = bad[k];
            assert_false(snd_py_layout_refine(&layout, minor, words, sizeof words));
        }
        words[word] = 8;
    }
    free(codes);
}

static void test_hostile_offsets(void **state)
{
    (void)state;
    for (unsigned minor = 13; minor <= snd_py_minor_most; minor++)
        check_hostile(minor);
}

/* The block of a version that is not known: any words at all are refused or used within bounds. */
static void test_hostile_new_version(void **state)
{
    uint64_t             words[OFFSET_WORDS], seed = 88172645463325252u;
    struct snd_py_layout layout;
    unsigned             taken = 0;

    (void)state;
    for (unsigned turn = 0; turn < 20000; turn++) {
        for (size_t i = 0; i < OFFSET_WORDS; i++) {
            seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
            words[i] = seed >> (seed & 1 ? 58 : 32);
        }
        /* What it is recognized by, at any place, with limits that are passed now and then. */
        const uint64_t thread[] = { seed & 1023, 0, 8, 16, seed >> 8 & 127 };
        const uint64_t frame[] = { 80 + (seed >> 16 & 63), 8, 0, 56, 76, 70 };
        const uint64_t code[] = { 400, 112, 120, 128, 136, 68, 0, 0, 0, seed >> 24 & 511 };
        memcpy(words, "xdebugpy", 8);
        memcpy(words + 20 + (seed & 7), thread, sizeof thread);
        memcpy(words + 40 + (seed >> 4 & 7), frame, sizeof frame);
        memcpy(words + 60 + (seed >> 8 & 7), code, sizeof code);
        if (!snd_py_layout_refine(&layout, 99, words, sizeof words))
            continue;
        taken++;
        assert_true(layout.thread_interp <= SND_PY_THREAD_READ - 8);
        assert_true(layout.frame_size <= SND_PY_FRAME_READ);
        assert_true(layout.code_lines <= SND_PY_CODE_READ - 8);
        assert_true(layout.code_firstline <= SND_PY_CODE_READ - 8);
    }
    assert_true(taken > 0);
    memset(words, 0, sizeof words);
    memcpy(words, "xdebugpy", 8);
    assert_false(snd_py_layout_refine(&layout, 99, words, sizeof words));
}

static void test_not_python(void **state)
{
    struct snd_python  python;
    struct sonde_error err = { 0 };

    (void)state;
    skip_unless_readable();
    assert_int_equal(snd_python_find(&python, getpid(), &err), SONDE_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "not a Python program"));
    assert_int_equal(snd_python_find(&python, 4194305, &err), SONDE_E_IO);
    assert_non_null(strstr(err.message, "no such process"));
    assert_int_equal(snd_python_open(&python, getpid(), 8, 0, 0, &err), SONDE_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "3.8"));
    /* Addresses that hold something else: not believed, but it might come. */
    for (unsigned minor = snd_py_minor_least; minor <= snd_py_minor_most; minor++)
        assert_int_equal(snd_python_open(&python, getpid(), minor,
                                         (uint64_t)(uintptr_t)&a_symbol_of_ours,
                                         (uint64_t)(uintptr_t)&a_symbol_of_ours, &err),
                         SONDE_E_STATE);
}

static _Atomic uint32_t spinner, waiter;
static atomic_bool      over;
static pthread_mutex_t  held = PTHREAD_MUTEX_INITIALIZER;

static void *spin(void *unused)
{
    prctl(PR_SET_NAME, "spinner"); /* before, it is the program's, or that of what runs it */
    spinner = (uint32_t)syscall(SYS_gettid);
    while (!over)
        ;
    return unused;
}

static void *wait_for_it(void *unused)
{
    waiter = (uint32_t)syscall(SYS_gettid);
    pthread_mutex_lock(&held);
    pthread_mutex_unlock(&held);
    return unused;
}

/* Until a thread is seen to run, or to wait for `held`: where the kernel does not tell for what, to wait. */
static void wait_for_state(struct snd_task *task, bool running, uint64_t held_at)
{
    uint64_t futex = 0, deadline = snd_clock_ns(CLOCK_MONOTONIC) + 20000000000u;
    bool     is_so;

    do {
        bool runs = snd_task_is_running(task, &futex);
        is_so = running ? runs : !runs && (futex == 0 || futex == held_at);
        if (!is_so)
            sched_yield();
    } while (!is_so && snd_clock_ns(CLOCK_MONOTONIC) < deadline);
    assert_true(is_so);
}

static void test_task(void **state)
{
    struct snd_task task;
    uint64_t        before, after, futex = 0;
    char            name[17];
    uint32_t        offset = 0;
    pthread_t       threads[2];

    (void)state;
    skip_unless_readable();
    pthread_mutex_lock(&held);
    pthread_create(&threads[0], NULL, spin, NULL);
    pthread_create(&threads[1], NULL, wait_for_it, NULL);
    while (spinner == 0 || waiter == 0)
        sched_yield();
    snd_task_open(&task, getpid(), spinner);
    assert_true(snd_task_cpu_ns(&task, &before));
    do
        assert_true(snd_task_cpu_ns(&task, &after));
    while (after == before);
    task.own = false; /* as another process would be asked */
    assert_true(snd_task_cpu_ns(&task, &before));
    assert_true(before > 0);
    /* Not at each look: valgrind lets one thread run at a time, and the machine may have no processor for it. */
    wait_for_state(&task, true, 0);
    assert_int_equal(snd_task_tid(getpid(), (uint64_t)threads[0], &offset), spinner);
    snd_task_name(&task, name);
    assert_string_equal(name, "spinner");
    snd_task_close(&task);

    snd_task_open(&task, getpid(), waiter);
    wait_for_state(&task, false, (uint64_t)(uintptr_t)&held);
    snd_task_close(&task);
    over = true;
    pthread_mutex_unlock(&held);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);

    snd_task_open(&task, getpid(), 4194305); /* nobody */
    assert_false(snd_task_cpu_ns(&task, &before));
    assert_false(snd_task_is_running(&task, &futex));
    snd_task_close(&task);
}

/* Rounds are a period apart on average; those that came too late are counted. */
static void test_pace(void **state)
{
    struct snd_pace pace = snd_pace_begin(1000000);
    uint64_t        first = pace.due_ns + 3600000000000u, missed = 0;

    (void)state;
    pace.due_ns = first; /* an hour ahead: none is late */
    for (int i = 0; i < 10000; i++) {
        uint64_t before = pace.due_ns;
        missed += snd_pace_next(&pace);
        assert_in_range(pace.due_ns - before, 750000, 1250000);
    }
    assert_int_equal(missed, 0);
    assert_in_range((pace.due_ns - first) / 10000, 980000, 1020000);
    pace.due_ns = snd_clock_ns(CLOCK_MONOTONIC) - 50000000; /* fifty rounds ago */
    missed = snd_pace_next(&pace);
    assert_true(missed >= 47);
}

/* The block of each version, with words of which each has another value. */
static void test_script(void **state)
{
    static const struct {
        unsigned minor;
        uint64_t first; /* 0: it takes no script, or its block is not known */
    } versions[] = { { 13, 0 }, { 14, 89 }, { 15, 105 }, { 16, 0 } };
    uint64_t             words[SND_PY_OFFSETS_SIZE / 8];
    struct snd_py_script script;

    (void)state;
    for (size_t i = 0; i < SND_COUNT_OF(versions); i++) {
        unsigned minor = versions[i].minor;
        uint64_t first = versions[i].first;
        for (size_t k = 0; k < SND_COUNT_OF(words); k++)
            words[k] = 1000 + k;
        memcpy(words, "xdebugpy", 8);
        assert_int_equal(snd_py_script_read(&script, minor, words, sizeof words), first > 0);
        if (first == 0)
            continue;
        assert_int_equal(script.breaker, 1000 + first);
        assert_int_equal(script.place, 1001 + first);
        assert_int_equal(script.allowed, 1002 + first);
        assert_int_equal(script.pending, 1003 + first);
        assert_int_equal(script.path, 1004 + first);
        assert_int_equal(script.path_size, 1005 + first);
        assert_false(snd_py_script_read(&script, minor, words, (first + 5) * 8));
        words[first + 5] = 63; /* no room for a path */
        assert_false(snd_py_script_read(&script, minor, words, sizeof words));
        words[first + 5] = 512;
        words[first] = UINT64_MAX;
        assert_false(snd_py_script_read(&script, minor, words, sizeof words));
        words[first] = 8;
        assert_true(snd_py_script_read(&script, minor, words, sizeof words));
        words[0] = 0;
        assert_false(snd_py_script_read(&script, minor, words, sizeof words));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_script),
        cmocka_unit_test(test_any_bytes),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_symbols),
        cmocka_unit_test(test_not_python),
        cmocka_unit_test(test_task),
        cmocka_unit_test(test_pace),
        cmocka_unit_test(test_minor),
        cmocka_unit_test(test_symbols_of_a_pipe),
        cmocka_unit_test(test_symbols_of_a_file_that_changes),
        cmocka_unit_test(test_hostile_offsets),
        cmocka_unit_test(test_hostile_new_version),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
