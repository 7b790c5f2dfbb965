/* SPDX-License-Identifier: Apache-2.0 */
/* gen/gen_ranges.c - cases about ranges: their names, nesting, threads, steps and processes. */
#include "cases.h"

#include <stdio.h>

#include "format/layout.h"
#include "synth.h"

/* -------------------------------------------------------------- names of all kinds */

void make_labels(const char *path, uint64_t n)
{
    static const char *const names[] = {
        "<img src=x onerror=\"document.title='run'\">",
        "</script><script>document.title='run'</script>",
        "javascript:document.title='run'",
        "&lt;b&gt; {{constructor}}",
    };
    struct synth *s = synth_new(path, NULL);
    uint32_t      t = synth_thread(s, "<b>thread</b>", 0);

    (void)n;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        synth_begin(s, t, 1000 * (i + 1), synth_string(s, names[i]), 0);
        synth_end(s, t, 1000 * (i + 1) + 900);
    }
    synth_close(s, true);
}

void make_names(const char *path, uint64_t n)
{
    static const struct {
        const char *bytes;
        size_t      length;
    } names[] = {
#define NAME(text) { text, sizeof text - 1 }
        NAME("plain"),
        NAME("with \"quotes\""),
        NAME("back\\slash"),
        NAME("new\nline and tab\t"),
        NAME("control \x01\x1f\x7f"),
        NAME("nul \0 inside"),
        NAME("\xf0\x9f\x9a\x80 emoji and \xc3\xa9\xc3\xa8"),
        NAME("\xe4\xb8\xad\xe6\x96\x87"),
        NAME("not UTF-8: \xff\xc3"),
        NAME("surrogate \xed\xa0\x80 overlong \xc0\xaf"),
        NAME("a;semicolon and spaces"),
        NAME("comma,separated"),
        NAME("=formula"),
        NAME("a name that is longer than fifty-five characters, so that tables have to cut it off"),
        NAME(""),
#undef NAME
    };
    struct synth *s = synth_new(path, NULL);
    uint32_t      t = synth_thread(s, "th\"re\\ad\n\xf0\x9f\x9a\x80", 0);
    uint64_t      ns = 1000;

    (void)n;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        uint32_t id = synth_string_n(s, names[i].bytes, names[i].length);
        synth_begin(s, t, ns, id, 0);
        synth_mark(s, t, ns + 10, id, 0);
        synth_counter(s, t, ns + 20, id, (double)i + 0.5);
        synth_end(s, t, ns + 500 + i);
        ns += 1000;
    }
    synth_meta(s, "quo\"te", "back\\slash\n\xff");
    synth_close(s, true);
}

/* ----------------------------------------------------------------- several threads */

void make_threads(const char *path, uint64_t n)
{
    struct synth *s = synth_new(path, NULL);
    uint32_t      work = synth_string(s, "work"), part = synth_string(s, "part");
    uint32_t      threads[4];

    (void)n;
    for (unsigned i = 0; i < 4; i++) {
        char name[16];
        snprintf(name, sizeof name, "worker %u", i);
        threads[i] = synth_thread(s, name, i * 100);
    }
    for (unsigned round = 0; round < 5; round++)
        for (unsigned i = 0; i < 4; i++) {
            uint64_t ns = 1000 + round * 10000 + i * 37;
            synth_begin(s, threads[i], ns, work, 0);
            synth_begin(s, threads[i], ns + 100, part, 0);
            synth_end(s, threads[i], ns + 1100 + i * 100);
            synth_end(s, threads[i], ns + 5000);
        }
    for (unsigned i = 0; i < 4; i++)
        synth_thread_done(s, threads[i], 60000, 0);
    synth_close(s, true);
}

/* A chunk handed from a thread that ended to others. */
void make_thread_switch(const char *path, uint64_t n)
{
    struct synth *s = synth_new(path, NULL);
    uint32_t      short_work = synth_string(s, "short work");
    uint32_t      first = synth_thread(s, "first", 0);

    (void)n;
    for (uint64_t i = 0; i < 6; i++) {
        uint32_t t = i == 0 ? first : synth_thread(s, i == 3 ? NULL : "next", 1000 * i);
        synth_share(s, first, t);
        synth_begin(s, t, 1000 * i + 100, short_work, 0);
        synth_end(s, t, 1000 * i + 200 + i);
        synth_thread_done(s, t, 1000 * i + 300, 0);
    }
    synth_close(s, true);
}

void make_steps(const char *path, uint64_t n)
{
    struct synth *s = synth_new(path, NULL);
    uint32_t      t = synth_thread(s, "main", 0), other = synth_thread(s, "loader", 0);
    uint32_t      train = synth_string(s, "train"), load = synth_string(s, "load");
    char          name[32];

    (void)n;
    for (uint64_t i = 0; i < 6; i++) {
        uint64_t ns = 1000 + i * 100000;
        snprintf(name, sizeof name, "ProfilerStep#%u", (unsigned)i + 10);
        synth_step(s, t, ns, i + 10);
        synth_begin(s, t, ns + 10, synth_string(s, name), 0);
        synth_begin(s, t, ns + 100, train, 0);
        synth_begin(s, other, ns + 50, load, 0);
        synth_end(s, other, ns + 40050 + i);
        synth_end(s, t, ns + 80000 + i * 1000);
        synth_end(s, t, ns + 90000);
    }
    synth_close(s, true);
}

/*
 * 40 steps of 100 us, but 5, 17 and 31 take 250 us, 12 takes just twice as long, 23 a nanosecond less than that.
 * n: how many of these there are, at most.
 */
void make_slow_steps(const char *path, uint64_t n)
{
    static const struct {
        unsigned step;
        uint64_t ns;
    } slow[] = { { 5, 250000 }, { 12, 200000 }, { 17, 250000 }, { 23, 199999 }, { 31, 250000 } };
    struct synth *s = synth_new(path, NULL);
    uint32_t      t = synth_thread(s, "main", 0), work = synth_string(s, "work");
    uint64_t      at = 1000;

    for (unsigned i = 0; i < 40; i++) {
        uint64_t ns = 100000;
        for (size_t k = 0; k < sizeof slow / sizeof *slow && k < n; k++)
            if (slow[k].step == i)
                ns = slow[k].ns;
        synth_step(s, t, at, i);
        synth_begin(s, t, at + 10, work, 0);
        synth_end(s, t, at + ns);
        at += ns;
    }
    synth_close(s, true);
}

/* --------------------------------------------------------------- several processes */

void make_two_processes(const char *path, uint64_t n)
{
    char file[1024];

    (void)n;
    make_folder(path);
    for (uint32_t i = 0; i < 2; i++) {
        struct synth_options options = { .pid = 5000 + i,
                                         .parent_pid = i ? 5000 : 4999,
                                         .rank = i,
                                         .world_size = 2,
                                         .start_ns = i * 500000,
                                         .ticks_per_ns_x1000 = i ? 2100 : 0 };
        snprintf(file, sizeof file, "%s/rank%u.sonde", path, i);
        struct synth *s = synth_new(file, &options);
        uint32_t      t = synth_thread(s, "main", 0);
        /* Ids differ between the processes, names do not. */
        uint32_t own = synth_string(s, i ? "only in one" : "only in zero");
        uint32_t both = synth_string(s, "in both");
        synth_clock(s, 1000000, 0);
        for (uint64_t k = 0; k < 3; k++) {
            synth_begin(s, t, 10000 + k * 100000, both, 0);
            synth_begin(s, t, 20000 + k * 100000, own, 0);
            synth_link(s, t, 25000 + k * 100000, SND_LINK_FLOW, i == 1, 100 + k);
            synth_end(s, t, 30000 + k * 100000);
            synth_end(s, t, 60000 + k * 100000 + i);
        }
        synth_thread_done(s, t, 400000, 0);
        synth_close(s, true);
    }
}

/* ------------------------------------------------------------ folding and recursion */

/* A range that a framework made: it is told its scope. */
static void begin_op(struct synth *s, uint32_t t, uint64_t ns, uint32_t name)
{
    synth_begin(s, t, ns, name, 0);
    synth_attr(s, t, SND_ATTR_SCOPE, 1);
}

void make_fold(const char *path, uint64_t n)
{
    struct synth *s = synth_new(path, NULL);
    uint32_t      t = synth_thread(s, "main", 0);
    uint32_t      f = synth_string(s, "f"), g = synth_string(s, "g"), own = synth_string(s, "own");

    (void)n;
    begin_op(s, t, 1000, f); /* f > f > f > g: folds into f > g */
    begin_op(s, t, 1100, f);
    begin_op(s, t, 1200, f);
    synth_begin(s, t, 1300, g, 0);
    synth_end(s, t, 1400);
    synth_end(s, t, 1500);
    synth_end(s, t, 1600);
    synth_end(s, t, 1700);
    begin_op(s, t, 2000, f); /* two children: none folds */
    begin_op(s, t, 2100, f);
    synth_end(s, t, 2200);
    begin_op(s, t, 2300, f);
    synth_end(s, t, 2500);
    synth_end(s, t, 2600);
    synth_begin(s, t, 3000, f, 0); /* f > g > f: recursion, nothing folds */
    synth_begin(s, t, 3100, g, 0);
    synth_begin(s, t, 3200, f, 0);
    synth_end(s, t, 3300);
    synth_end(s, t, 3400);
    synth_end(s, t, 3500);
    for (uint64_t i = 0; i < 4; i++) /* a program's own recursion: each call counts */
        synth_begin(s, t, 4000 + i * 100, own, 0);
    for (uint64_t i = 0; i < 4; i++)
        synth_end(s, t, 4400 + i * 100);
    synth_close(s, true);
}

/* ---------------------------------------------- spans, and ends out of their order */

void make_async(const char *path, uint64_t n)
{
    struct synth *s = synth_new(path, NULL);
    /* The loop's chunk comes first: by thread, its ends would be met before the begins. */
    uint32_t loop = synth_thread(s, "loop", 0), t = synth_thread(s, "main", 0);
    uint32_t request = synth_string(s, "request"), work = synth_string(s, "work"),
             leaf = synth_string(s, "leaf"), poll = synth_string(s, "poll");

    (void)n;
    synth_span(s, loop, 500, poll, 200);
    for (uint64_t i = 0; i < 3; i++) {
        uint64_t ns = 1000 + i * 10000;
        synth_begin(s, t, ns, request, 0);
        synth_attr(s, t, SND_ATTR_KEY, 100 + i);
        synth_begin(s, t, ns + 1000, work, 0);
        synth_span(s, t, ns + 1500, leaf, 300);
        synth_end_key(s, loop, ns + 3000, 100 + i); /* work goes on */
        synth_begin(s, t, ns + 4000, leaf, 0);
        synth_begin(s, t, ns + 5000, poll, 0);
        synth_end_at(s, t, ns + 6000, 1); /* leaf ends before poll */
        synth_end(s, t, ns + 7000);
        synth_end(s, t, ns + 8000);
    }
    synth_end_key(s, loop, 40000, 999); /* nobody's */
    synth_close(s, true);
}

/* ------------------------------------------------------------------ for measuring */

/* Stacks, eight deep, of a hundred ways through sixty-four functions. */
static void intern_stacks(struct synth *s, uint32_t stacks[100])
{
    uint32_t frames[64], file = synth_string(s, "/app/prog.py");

    for (uint32_t i = 0; i < 64; i++) {
        char text[32];
        snprintf(text, sizeof text, "function_%u", i);
        frames[i] = synth_frame_in(s, synth_string(s, text), 10 * i + 1, file, 10 * i + 3, false);
    }
    for (uint32_t i = 0; i < 100; i++) {
        stacks[i] = 0;
        for (uint32_t depth = 0; depth < 8; depth++)
            stacks[i] = synth_stack(s, stacks[i], frames[8 * depth + (i >> (depth % 4)) % 8]);
    }
}

/* Begin and end of eight names on four threads, four deep, jittered like a real run. */
static void write_large(const char *path, uint64_t n, bool sampled)
{
    struct synth_options options = { .chunk_bytes = 1 << 20, .ticks_per_ns_x1000 = 2100 };
    struct synth        *s = synth_new(path, &options);
    uint32_t             names[8], threads[4];
    uint64_t             at[4] = { 0 }, random = 88172645463325252u;

    for (unsigned i = 0; i < 8; i++) {
        char text[32];
        snprintf(text, sizeof text, "operator_%u", i);
        names[i] = synth_string(s, text);
    }
    for (unsigned i = 0; i < 4; i++)
        threads[i] = synth_thread(s, "worker", 0);
    uint32_t stacks[100], sampler = sampled ? synth_thread(s, "sonde", 0) : 0;
    uint64_t sampled_at[4] = { 0 };
    if (sampled)
        intern_stacks(s, stacks);
    for (uint64_t made = 0; made < n;)
        for (unsigned i = 0; i < 4; i++, made += 8) {
            if (sampled && made % 100 < 8 && at[i] > sampled_at[i]) {
                synth_sample(s, sampler, at[i], stacks[(random >> 20) % 100], 3 | 1 << 8,
                             threads[i], (uint32_t)(at[i] - sampled_at[i]));
                sampled_at[i] = at[i];
            }
            for (unsigned k = 0; k < 8; k++) {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                at[i] += 40 + random % 400;
                if (k < 4)
                    synth_begin(s, threads[i], at[i], names[(random >> 32) & 7], 0);
                else
                    synth_end(s, threads[i], at[i]);
            }
        }
    synth_close(s, true);
}

void make_large(const char *path, uint64_t n)
{
    write_large(path, n, false);
}

void make_large_samples(const char *path, uint64_t n)
{
    write_large(path, n, true);
}

/* ------------------------------------------------------------------- many names */

void make_many_names(const char *path, uint64_t n)
{
    struct synth *s = synth_new(path, NULL);
    uint32_t      t = synth_thread(s, "main", 0);
    char          name[48];

    for (uint64_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "name of range %llu", (unsigned long long)i);
        synth_span(s, t, 1000 + i * 100, synth_string(s, name), 1 + i % 97);
    }
    synth_close(s, true);
}
