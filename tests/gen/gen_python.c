/* SPDX-License-Identifier: Apache-2.0 */
/* gen/gen_python.c - cases about Python programs: calls, lines, samples. */
#include <stdio.h>
#include "cases.h"

#include "format/layout.h"

#include "synth.h"

static const char python_source[] = "def fib(n):\n"
                                    "    if n < 2:\n"
                                    "        return n\n"
                                    "    return fib(n - 1) + fib(n - 2)\n"
                                    "\n"
                                    "def main():\n"
                                    "    for i in range(3):  # three times\n"
                                    "        fib(3)\n"
                                    "\tlen([])\n"
                                    "\n"
                                    "    # the end\n"
                                    "async def never():\n"
                                    "    pass\n";
#define PROG "/app/prog.py"

uint32_t python_frame(struct synth *s, const char *name, uint32_t first, const char *file,
                      uint32_t line)
{
    uint32_t of = synth_string(s, file); /* in this order with every compiler */

    return synth_frame_in(s, synth_string(s, name), first, of, line, false);
}

static void python_calls(struct synth *s, const uint32_t f[6])
{
    /* calls, primitive, total, self, resumptions, awaited, outermost, their total */
    static const uint64_t words[6][8] = {
        { 1, 1, 5000000, 1000000, 0, 0, 1, 5000000 },      /* the module, from outside */
        { 1, 1, 4000000, 400000, 0, 0, 1, 4000000 },       /* main, by the module */
        { 3, 3, 3500000, 1200000, 0, 0, 3, 3500000 },      /* fib, by main */
        { 12, 6, 2300000, 2300000, 0, 0, 0, 0 },           /* fib, by itself */
        { 1, 1, 100000, 100000, 0, 0, 1, 100000 },         /* len, by main */
        { 2, 2, 900000, 300000, 7, 250000000, 2, 900000 }, /* a coroutine, from outside */
    };

    synth_tally(s, SND_TALLY_CALLS, f[0], 0, words[0], 8);
    synth_tally(s, SND_TALLY_CALLS, f[1], f[0], words[1], 8);
    synth_tally(s, SND_TALLY_CALLS, f[2], f[1], words[2], 8);
    synth_tally(s, SND_TALLY_CALLS, f[2], f[2], words[3], 8);
    synth_tally(s, SND_TALLY_CALLS, f[3], f[1], words[4], 8);
    synth_tally(s, SND_TALLY_CALLS, f[4], 0, words[5], 8);
}

static void python_lines(struct synth *s)
{
    static const struct {
        const char *function;
        uint32_t    first, line;
        uint64_t    time[2], memory[6];
    } lines[] = {
        { "main", 6, 6, { 0, 0 }, { 1, 41943040, 41943040, 0, 41943040, 0 } },
        { "main", 6, 7, { 4, 2400 }, { 4, 0, 512, 512, 41943040, 512 } },
        { "main", 6, 8, { 3, 3500123456 }, { 3, 3145728, 4194304, 1048576, 45088768, 4194304 } },
        { "main", 6, 9, { 1, 150 }, { 1, -1048576, 56, 1048632, 44040192, 56 } },
        { "fib", 1, 1, { 0, 0 }, { 0, 0, 0, 0, 0, 0 } },
        { "fib", 1, 2, { 1234567890, 123456789012345 }, { 0, 0, 0, 0, 0, 0 } },
        { "fib", 1, 3, { 9, 1800 }, { 0, 0, 0, 0, 0, 0 } },
        { "fib", 1, 4, { 6, 6600 }, { 0, 0, 0, 0, 0, 0 } },
        { "never", 12, 12, { 0, 0 }, { 0, 0, 0, 0, 0, 0 } },
    };

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        uint32_t frame = python_frame(s, lines[i].function, lines[i].first, PROG, lines[i].line);
        synth_tally(s, SND_TALLY_LINE, frame, 0, lines[i].time, 2);
        if (lines[i].memory[0] > 0)
            synth_tally(s, SND_TALLY_LINE_MEMORY, frame, 0, lines[i].memory, 6);
    }
}

void make_python(const char *path, uint64_t n)
{
    struct synth  *s = synth_new(path, NULL);
    uint32_t       t = synth_thread(s, "main", 0), rss = synth_string(s, "process.rss");
    const uint32_t functions[6] = {
        python_frame(s, "<module>", 1, PROG, 1),
        python_frame(s, "main", 6, PROG, 6),
        python_frame(s, "fib", 1, PROG, 1),
        python_frame(s, "<built-in method builtins.len>", 0, "~", 0),
        python_frame(s, "never", 12, PROG, 12),
    };

    (void)n;
    synth_meta(s, "command", "prog.py --fast");
    synth_meta(s, "python.source:" PROG, python_source);
    python_calls(s, functions);
    python_lines(s);
    uint32_t work = synth_string(s, "prog.main");
    for (uint64_t i = 0; i < 4; i++) {
        synth_counter(s, t, 1000000 + i * 100000000, rss, (double)((40 + i) << 20));
        if (i == 1) {
            synth_begin(s, t, 150000000, work, 0);
            synth_attr(s, t, SND_ATTR_SCOPE, 8);
        }
    }
    synth_end(s, t, 350000000);
    synth_close(s, true);
}

/* Names of functions and files that are no plain text, numbers as large as they come. */
void make_python_names(const char *path, uint64_t n)
{
    static const char *const names[] = { "plain", "not UTF-8: \xff",
                                         "\xe4\xb8\xad\xe6\x96\x87 \xf0\x9f\x9a\x80",
                                         "new\nline; and \"quotes\"" };
    static const uint64_t    calls[8] = { UINT64_MAX, (uint64_t)1 << 40, 5, 4, 3, 2, 1, 7 };
    static const uint64_t    time[2] = { UINT64_MAX, UINT64_MAX };
    struct synth            *s = synth_new(path, NULL);

    (void)n;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        uint32_t frame = python_frame(s, names[i], 7, "a.py", 7);
        synth_tally(s, SND_TALLY_CALLS, frame, i ? 1 : 0, calls, 8);
        synth_tally(s, SND_TALLY_LINE, python_frame(s, names[i], 7, "a.py", 8), 0, time, 2);
    }
    synth_close(s, true);
}

/* The same calls, each with a range; a generator that is resumed; an operator in between. */
static void python_call(struct synth *s, uint32_t t, uint64_t ns, uint32_t frame, const char *name,
                        bool resumed)
{
    synth_begin(s, t, ns, synth_string(s, name), 0);
    synth_attr(s, t, SND_ATTR_FRAME, frame | (uint64_t)resumed << 32);
    if (resumed)
        synth_attr(s, t, SND_ATTR_AWAITED, 7000);
}

static uint64_t python_fib(struct synth *s, uint32_t t, uint64_t ns, uint32_t frame, unsigned n)
{
    python_call(s, t, ns, frame, "fib", false);
    ns += 100;
    if (n >= 2) {
        ns = python_fib(s, t, ns, frame, n - 1) + 10;
        ns = python_fib(s, t, ns, frame, n - 2) + 10;
    }
    synth_end(s, t, ns);
    return ns;
}

void make_python_trace(const char *path, uint64_t n)
{
    struct synth *s = synth_new(path, NULL);
    uint32_t      t = synth_thread(s, "main", 0), u = synth_thread(s, "worker", 0);
    uint32_t      module = python_frame(s, "<module>", 1, PROG, 1);
    uint32_t      main_frame = python_frame(s, "main", 6, PROG, 6);
    uint32_t      fib = python_frame(s, "fib", 1, PROG, 1);
    uint32_t      numbers = python_frame(s, "numbers", 20, PROG, 20);
    uint64_t      ns = 1000;

    (void)n;
    python_call(s, t, ns, module, "<module>", false);
    python_call(s, t, ns += 50, main_frame, "main", false);
    for (int i = 0; i < 3; i++)
        ns = python_fib(s, t, ns + 20, fib, 3);
    synth_begin(s, t, ns += 10, synth_string(s, "aten::add"), 0); /* part of main */
    for (int i = 0; i < 3; i++) {
        python_call(s, t, ns += 10, numbers, "numbers", i > 0);
        synth_end(s, t, ns += 30);
    }
    synth_end(s, t, ns += 5);
    synth_end(s, t, ns += 5);
    synth_end(s, t, ns += 50);
    python_fib(s, u, 1200, fib, 1);
    synth_close(s, true);
}

void make_samples(const char *path, uint64_t n)
{
    struct synth  *s = synth_new(path, NULL);
    uint32_t       sampler = synth_thread(s, "sonde", 0);
    uint32_t       t = synth_thread(s, "main", 0), u = synth_thread(s, "worker", 0);
    uint32_t       lib = synth_string(s, "/usr/lib/libm.so.6");
    const uint32_t stacks[] = {
        synth_stack(s, 0, python_frame(s, "<module>", 1, PROG, 9)),
        synth_stack(s, 1, python_frame(s, "main", 6, PROG, 8)),
        synth_stack(s, 2, python_frame(s, "fib", 1, PROG, 4)),
        synth_stack(s, 3, python_frame(s, "fib", 1, PROG, 2)),
        synth_stack(s, 2, python_frame(s, "dumps", 183, "/py/lib/json/__init__.py", 190)),
        synth_stack(s, 5, python_frame(s, "JSONEncoder.encode", 180, "/py/lib/json/encoder.py", 1)),
        synth_stack(s, 6, python_frame(s, "iterencode", 204, "/py/lib/json/encoder.py", 2)),
        synth_stack(s, 7, synth_frame_in(s, synth_string(s, "exp"), 0, lib, 0, true)),
        synth_stack(s, 6, python_frame(s, "main.<locals>.default", 30, PROG, 31)),
        synth_stack(s, 1, python_frame(s, "_find", 1, "<frozen importlib._bootstrap>", 7)),
        synth_stack(s, 10, python_frame(s, "helper", 3, "/app/lib/helper.py", 4)),
        synth_stack(s, 0, python_frame(s, "run", 40, "/py/lib/threading.py", 44)),
    };
    static const struct {
        unsigned stack, state, count, ms;
        bool     worker;
    } samples[] = {
        { 0, 3, 1, 1, false },   { 2, 3, 10, 10, false },  { 3, 3, 40, 40, false },
        { 1, 3, 2, 2, false },   { 7, 11, 20, 20, false }, { 6, 3, 3, 3, false },
        { 8, 3, 5, 5, false },   { 10, 3, 4, 4, false },   { 9, 3, 1, 1, false },
        { 11, 0, 90, 90, true }, { 11, 4, 5, 5, true },    { 12, 2, 1, 1, true },
    };
    uint64_t ns = 0;

    synth_meta(s, "command", "prog.py");
    synth_meta(s, "python.sample.hz", "1000");
    synth_meta(s, "python.sys_path", "[\"/app\", \"/py/lib\"]");
    synth_meta(s, "python.sys_prefixes", "[\"/py\"]");
    (void)n;
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        uint32_t stack = samples[i].stack < 12 ? stacks[samples[i].stack] : 0;
        ns += samples[i].ms * 1000000u;
        synth_sample(s, sampler, ns, stack, samples[i].state | samples[i].count << 8,
                     samples[i].worker ? u : t, samples[i].ms * 1000000u);
    }
    synth_close(s, true);
}

/* Somebody else's trace: it names files of whoever reads it. Those without a folder are the test's. */
void make_private_files(const char *path, uint64_t n)
{
    static const char *const files[] = { "/etc/passwd", "/proc/self/environ", "secret.key",
                                         "link.py",     "binary.py",          "script",
                                         "program.py" };
    struct synth            *s = synth_new(path, NULL);
    uint32_t                 sampler = synth_thread(s, "sonde", 0), t = synth_thread(s, "main", 0);

    (void)n;
    synth_meta(s, "command", "prog.py");
    synth_meta(s, "python.sample.hz", "1000");
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        static const uint64_t time[] = { 1, 1000 }, memory[] = { 1, 1 << 20, 4096, 4096, 0, 0 };
        uint32_t              frame = python_frame(s, "steal", 1, files[i], 1);
        synth_tally(s, SND_TALLY_LINE, frame, 0, time, 2);
        synth_tally(s, SND_TALLY_LINE_MEMORY, frame, 0, memory, 6);
        synth_sample(s, sampler, (i + 1) * 1000000, synth_stack(s, 0, frame), 3 | 1 << 8, t,
                     1000000);
    }
    synth_close(s, true);
}

/* A parent that waits for its child, which works: five levels deep in one function. */
void make_samples_children(const char *path, uint64_t n)
{
    char file[1024];

    (void)n;
    make_folder(path);
    for (uint32_t i = 0; i < 2; i++) {
        struct synth_options options = { .pid = 5000 + i, .parent_pid = i ? 5000 : 4999 };
        snprintf(file, sizeof file, "%s/%u.sonde", path, options.pid);
        struct synth *s = synth_new(file, &options);
        uint32_t      sampler = synth_thread(s, "sonde", 0), t = synth_thread(s, "MainThread", 0);
        uint32_t      module = synth_stack(s, 0, python_frame(s, "<module>", 1, PROG, 9));
        uint32_t      at = synth_stack(s, module, python_frame(s, "start", 20, PROG, 22));
        for (uint32_t k = 0; i == 1 && k < 5; k++)
            at = synth_stack(s, at, python_frame(s, "fib", 1, PROG, 2));
        synth_meta(s, "command", "prog.py");
        synth_meta(s, "python.sample.hz", "1000");
        synth_meta(s, "python.sys_path", "[\"/app//\"]");
        synth_meta(s, "python.sys_prefixes", "[\"/py\"]");
        synth_sample(s, sampler, 5000000, module, 3 | 5 << 8, t, 5000000);
        synth_sample(s, sampler, 95000000, at, (i == 1 ? 3 : 0) | 90 << 8, t, 90000000);
        synth_close(s, true);
    }
}

void make_samples_library(const char *path, uint64_t n)
{
    static const char        reversed[] = "abc\xe2\x80\xae"
                                          "txt"; /* a right-to-left override in it */
    static const char *const names[] = { "main", "build", "read", "resolve", reversed, "write" };
    struct synth            *s = synth_new(path, NULL);
    uint32_t                 sampler = synth_thread(s, "sonde", 0), t = synth_thread(s, "main", 0);
    uint32_t                 at = 0;

    if (n == 2) /* what a package installs to start itself */
        at = synth_stack(s, at, python_frame(s, "<module>", 1, "/py/bin/tool", 8));
    for (uint32_t i = 0; i < sizeof names / sizeof names[0]; i++)
        at = synth_stack(s, at,
                         python_frame(s, names[i], 10 * i + 1, "/py/lib/site-packages/tool.py", 1));
    synth_meta(s, "command", "/py/bin/tool");
    synth_meta(s, "python.sample.hz", "1000");
    if (n != 0) { /* 0: the interpreter did not tell where libraries are */
        synth_meta(s, "python.sys_path", "[\"/py/bin\", \"/py/lib/site-packages\"]");
        synth_meta(s, "python.sys_prefixes", "[\"/py\"]");
    }
    synth_sample(s, sampler, 50000000, at, 3 | 50 << 8, t, 50000000);
    synth_close(s, true);
}
