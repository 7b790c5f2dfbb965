/* SPDX-License-Identifier: Apache-2.0 */
/* gen/gen_counters.c - cases about counters of the kernel and the processor. */
#include "cases.h"
#include "format/layout.h"
#include "synth.h"

struct row {
    const char *name;
    uint64_t    value, enabled, running;
    const char *unit, *absent, *note;
};

static void put_row(struct synth *s, uint32_t run, const struct row *row)
{
    struct snd_fact_member m[8];
    uint32_t               n = 0;

    if (row->absent)
        m[n++] = (struct snd_fact_member){ SND_FIELD_COUNTER_ABSENT, SND_FACT_TEXT,
                                           synth_string(s, row->absent), 0 };
    else
        m[n++] = (struct snd_fact_member){ SND_FIELD_COUNTER_VALUE, SND_FACT_NUMBER, 0,
                                           row->value };
    if (row->enabled) {
        m[n++] = (struct snd_fact_member){ SND_FIELD_COUNTER_ENABLED_NS, SND_FACT_NUMBER, 0,
                                           row->enabled };
        m[n++] = (struct snd_fact_member){ SND_FIELD_COUNTER_RUNNING_NS, SND_FACT_NUMBER, 0,
                                           row->running };
    }
    if (row->unit)
        m[n++] = (struct snd_fact_member){ SND_FIELD_COUNTER_UNIT, SND_FACT_TEXT,
                                           synth_string(s, row->unit), 0 };
    if (row->note)
        m[n++] = (struct snd_fact_member){ SND_FIELD_COUNTER_NOTE, SND_FACT_TEXT,
                                           synth_string(s, row->note), 0 };
    if (row->value == 4000000) /* the one of cache lines */
        m[n++] = (struct snd_fact_member){ SND_FIELD_COUNTER_LINE_BYTES, SND_FACT_NUMBER, 0, 64 };
    synth_fact(s, SND_FACT_OF_COUNTER, synth_string(s, row->name), run, m, n);
}

static void put_run(struct synth *s, uint32_t run, uint64_t more)
{
    const uint64_t   ns = 2000000000;
    const struct row rows[] = {
        { "task-clock", ns + more * 1000, ns, ns, "ns", NULL, NULL },
        { "context-switches", 17 + more, 0, 0, NULL, NULL,
          "from getrusage: of processes that their parents waited for" },
        { "page-faults", 123456 + more, ns, ns, NULL, NULL, NULL },
        { "cycles", 6000000000 + more, ns, ns, NULL, NULL, NULL },
        { "instructions", 9000000000, ns, ns, NULL, NULL, NULL },
        { "branches", 1000000000, ns, ns, NULL, NULL, NULL },
        { "branch-misses", 25000000, ns, ns / 2, NULL, NULL, NULL },
        { "cache-references", 40000000, ns, ns, NULL, NULL, NULL },
        { "cache-misses", 4000000, ns, ns, NULL, NULL, NULL },
        { "LLC-loads", 0, ns, 0, NULL, NULL, NULL },
        { "r1c2:u", 12, ns, ns, NULL, NULL, NULL },
        { "cpu-migrations", 0, 0, 0, NULL, "not permitted: perf_event_paranoid is 3", NULL },
        { "duration_time", 1000000000 + more * 1000000, 0, 0, "ns", NULL, NULL },
        { "user_time", 1750000000, 0, 0, "ns", NULL, NULL },
        { "system_time", 250000000, 0, 0, "ns", NULL, NULL },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        put_row(s, run, &rows[i]);
}

void make_run_counters(const char *path, uint64_t n)
{
    static const uint64_t more[] = { 0, 10, 20, 50 };
    struct synth         *s = synth_new(path, NULL);

    synth_meta(s, "command", "./prog --size 3");
    for (uint32_t run = 1; run <= (n > 0 && n < 5 ? n : 1); run++)
        put_run(s, run, more[run - 1]);
    synth_close(s, true);
}

static void rise(struct synth *s, uint32_t thread, uint32_t number, uint64_t by)
{
    synth_attr(s, thread, SND_ATTR_COUNTED, by << 8 | number);
}

void make_range_counters(const char *path, uint64_t n)
{
    struct synth *s = synth_new(path, NULL);
    uint32_t      a = synth_thread(s, "main", 0), b = synth_thread(s, "other", 0);
    uint32_t      outer = synth_string(s, "outer"), inner = synth_string(s, "inner");

    (void)n;
    synth_meta(s, "counters.ranges", "page-faults,task-clock,of-a-later-version");
    rise(s, a, 0, 1000); /* outside all ranges */
    synth_begin(s, a, 1000, outer, 0);
    rise(s, a, 0, 5);
    rise(s, a, 2, 77);
    rise(s, a, 8, 88); /* of a later version, that has more than eight */
    rise(s, a, 255, 99);
    synth_begin(s, a, 2000, inner, 0);
    rise(s, a, 0, 100);
    rise(s, a, 1, (uint64_t)1 << 45);
    synth_end(s, a, 3000);
    rise(s, a, 0, 2);
    synth_end(s, a, 4000);
    synth_begin(s, b, 1000, outer, 0);
    rise(s, b, 0, 10);
    synth_begin(s, b, 2000, inner, 0);
    rise(s, b, 0, 20);
    synth_end_at(s, b, 3000, 1); /* the outer one */
    rise(s, b, 0, 40);
    synth_end(s, b, 4000);
    synth_close(s, true);
}

/* Three native functions, one of which calls itself, by the stacks that two counters' samples found. */
void make_stack_counters(const char *path, uint64_t n)
{
    static const char *const names[3] = { "main", "solve", "touch" };
    struct synth            *s = synth_new(path, NULL);
    uint32_t                 file = synth_string(s, "prog.c"), frames[3];

    (void)n;
    for (uint32_t i = 0; i < 3; i++)
        frames[i] = synth_frame_in(s, synth_string(s, names[i]), 10 * i + 1, file, 10 * i + 5,
                                   true);
    uint32_t in_main = synth_stack(s, 0, frames[0]);
    uint32_t solve = synth_stack(s, in_main, frames[1]);
    uint32_t again = synth_stack(s, solve, frames[1]);
    uint32_t touch = synth_stack(s, again, frames[2]);
    const struct {
        uint32_t stack, counter;
        uint64_t words[SND_STACK_COUNTERS_WORDS];
    } counted[] = {
        { in_main, 0, { 1, 1 } },     { again, 0, { 2, 40 } }, { touch, 0, { 5, 300 } },
        { touch, 1, { 2, 2 } },       { 0, 0, { 1, 7 } }, /* a stack that was not found */
        { touch, 2, { 1, 1000000 } },                     /* of a later version */
    };
    synth_meta(s, "counters.functions", "page-faults,context-switches,of-a-later-version");
    for (size_t i = 0; i < sizeof counted / sizeof counted[0]; i++)
        synth_tally(s, SND_TALLY_STACK_COUNTERS, counted[i].stack, counted[i].counter,
                    counted[i].words, SND_STACK_COUNTERS_WORDS);
    synth_close(s, true);
}

/* Two functions, one of which calls the other, and a counter of a later version. */
void make_function_counters(const char *path, uint64_t n)
{
    static const uint64_t calls[2][SND_CALLS_WORDS] = { { 1, 1, 9000, 4000, 0, 0, 1, 9000 },
                                                        { 3, 3, 5000, 5000, 0, 0, 3, 5000 } };
    static const uint64_t counted[2][3][SND_FUNCTION_COUNTERS_WORDS] = {
        { { 1, 2, 302 }, { 1, 1000, 7000 }, { 1, 5, 5 } },
        { { 3, 300, 300 }, { 3, 6000, 6000 }, { 3, 5, 5 } },
    };
    static const char *const names[2] = { "outer", "inner" };
    struct synth            *s = synth_new(path, NULL);
    uint32_t                 file = synth_string(s, "prog.py"), frames[2];

    (void)n;
    synth_meta(s, "counters.functions", "page-faults,cycles:u,of-a-later-version");
    for (uint32_t i = 0; i < 2; i++) {
        frames[i] = synth_frame(s, synth_string(s, names[i]), file, 10 * i + 1);
        synth_tally(s, SND_TALLY_CALLS, frames[i], i ? frames[0] : 0, calls[i], SND_CALLS_WORDS);
        for (uint32_t k = 0; k < 3; k++)
            synth_tally(s, SND_TALLY_FUNCTION_COUNTERS, frames[i], k, counted[i][k],
                        SND_FUNCTION_COUNTERS_WORDS);
    }
    static const uint64_t read[SND_COUNTERS_READ_WORDS] = { 4, 1, 2 };
    synth_tally(s, SND_TALLY_COUNTERS_READ, 0, 0, read, SND_COUNTERS_READ_WORDS);
    synth_close(s, true);
}
