/* SPDX-License-Identifier: Apache-2.0 */
/* Walking events: by thread, by time, warm-up, clocks, unknown kinds. */
#include "read/walk/trace_walk.h"

#include "format/fields.h"
#include "scratch.h" /* before it, cmocka and what that needs */
#include "same_event.h"

#define KEPT 100000

struct events {
    struct sonde_event *list;
    size_t              count, stop_after;
};

static bool keep(const struct sonde_event *event, void *user)
{
    struct events *events = user;

    assert_true(events->count < KEPT);
    events->list[events->count++] = *event;
    return events->count != events->stop_after;
}

static struct events walk(struct sonde_trace *trace, enum sonde_order order)
{
    struct events events = { calloc(KEPT, sizeof *events.list), 0, 0 };

    assert_int_equal(sonde_trace_walk(trace, order, keep, &events, NULL), SONDE_OK);
    return events;
}

static void nothing_begins(void *u, uint32_t t, int64_t ns, uint32_t n, uint32_t s)
{
    (void)u, (void)t, (void)ns, (void)n, (void)s;
}

static void nothing_ends(void *u, uint32_t t, int64_t ns)
{
    (void)u, (void)t, (void)ns;
}

static void nothing_else(void *u, uint32_t t, int64_t ns, const uint64_t *w)
{
    (void)u, (void)t, (void)ns, (void)w;
}

static struct snd_walk_stats count(struct sonde_trace *trace, enum sonde_order order)
{
    struct snd_visitor    visitor = { .begin = nothing_begins,
                                      .end = nothing_ends,
                                      .other = nothing_else };
    struct snd_walk_stats stats;

    assert_int_equal(snd_walk(trace, order, &visitor, &stats, NULL), SONDE_OK);
    return stats;
}

/* Every kind arrives with its fields. */
static void fields_arrive(void **state)
{
    const char   *path = scratch_path("fields");
    struct synth *s = synth_new(path, NULL);
    uint32_t      t = synth_thread(s, "main", 0), other = synth_thread(s, "worker", 0);

    (void)state;
    synth_begin(s, t, 10, 3, 4);
    synth_attr(s, t, SND_ATTR_FLOPS, 1000);
    synth_attr(s, t, SND_ATTR_BYTES, UINT64_MAX);
    synth_mark(s, t, 20, 5, 6);
    synth_step(s, t, 30, UINT64_MAX - 1);
    synth_gap(s, t, 40, 7, 1);
    synth_counter(s, t, 50, 8, -2.5);
    synth_link(s, t, 60, SND_LINK_LAUNCH, true, 99);
    synth_sample(s, t, 70, 9, SND_SAMPLE_ON_CPU, 0, 1000);
    synth_sample(s, t, 75, 9, SND_SAMPLE_GIL | 7 << 8, other, 7000);
    synth_sample(s, t, 77, 9, 0, 99, 1); /* of nobody: the lane's */
    synth_alloc(s, t, 80, SND_DEVICE(1, 0), 0xabc, 64);
    synth_free(s, t, 90, SND_DEVICE(1, 0), 0xabc, 64);
    synth_close(s, true);
    struct sonde_trace      *trace = scratch_open(path);
    struct events            e = walk(trace, SONDE_BY_THREAD);
    const struct sonde_event expected[] = {
        { SONDE_EVENT_BEGIN, 0, 0, 10, .begin = { 3, 4 } },
        { SONDE_EVENT_ATTR, 0, 0, 10, .attr = { 1000, SND_ATTR_FLOPS } },
        { SONDE_EVENT_ATTR, 0, 0, 10, .attr = { UINT64_MAX, SND_ATTR_BYTES } },
        { SONDE_EVENT_MARK, 0, 0, 20, .mark = { 5, 6 } },
        { SONDE_EVENT_STEP, 0, 0, 30, .step = { UINT64_MAX - 1 } },
        { SONDE_EVENT_GAP, 0, 0, 40, .gap = { 7, 1 } },
        { SONDE_EVENT_COUNTER, 0, 0, 50, .counter = { -2.5, 8 } },
        { SONDE_EVENT_LINK, 0, 0, 60, .link = { 99, SND_LINK_LAUNCH, true } },
        { SONDE_EVENT_SAMPLE, 0, 0, 70, .sample = { 1000, 9, 1, SONDE_SAMPLE_ON_CPU } },
        { SONDE_EVENT_SAMPLE, 0, 1, 75, .sample = { 7000, 9, 7, SONDE_SAMPLE_GIL } },
        { SONDE_EVENT_SAMPLE, 0, 0, 77, .sample = { 1, 9, 1, 0 } },
        { SONDE_EVENT_ALLOC, 0, 0, 80, .memory = { 0xabc, 64, SND_DEVICE(1, 0), 0 } },
        { SONDE_EVENT_FREE, 0, 0, 90, .memory = { 0xabc, 64, SND_DEVICE(1, 0), 0 } },
    };
    assert_int_equal(e.count, sizeof expected / sizeof expected[0]);
    for (size_t i = 0; i < e.count; i++)
        same_event(&e.list[i], &expected[i]);
    free(e.list);
    sonde_trace_close(trace);
}

static void expect_attrs(const struct events *e, size_t at, const struct sonde_event_attr *expected,
                         size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(e->list[at + i].kind, SONDE_EVENT_ATTR);
        assert_int_equal(e->list[at + i].attr.key, expected[i].key);
        assert_int_equal(e->list[at + i].attr.value, expected[i].value);
    }
}

/* A call arrives as the range and the attributes that its record stands for. */
static void calls_are_described(void **state)
{
    const char            *path = scratch_path("calls");
    struct synth          *s = synth_new(path, NULL);
    uint32_t               t = synth_thread(s, "main", 0), other = synth_thread(s, "other", 0);
    struct snd_call_record all = { .name = 3,
                                   .shapes = 4,
                                   .strides = 5,
                                   .arguments = 6,
                                   .overload = 7,
                                   .stack = 8,
                                   .module = 9,
                                   .scope = 2,
                                   .flags = SND_CALL_SEQUENCE,
                                   .fwd_thread = 10 };
    struct snd_call_record bare = { .name = 3, .flags = SND_CALL_SEQUENCE };
    uint32_t               full_id = synth_call(s, &all), bare_id = synth_call(s, &bare);

    (void)state;
    synth_attr(s, t, SND_ATTR_CALLS_SEQUENCE, 0);
    synth_call_range(s, t, 10, full_id, 5); /* closed in place */
    synth_call_range(s, t, 20, bare_id, 0); /* the same number, until it changes */
    synth_end(s, t, 30);
    synth_seal(s, t);
    synth_call_range(s, t, 40, bare_id, 5); /* another chunk, where none was told */
    synth_call_range(s, other, 50, bare_id, 5);
    synth_close(s, true);
    const struct sonde_event_attr described[] = {
        { 0, SND_ATTR_SEQUENCE }, { 5, SND_ATTR_STRIDES },     { 6, SND_ATTR_ARGUMENTS },
        { 2, SND_ATTR_SCOPE },    { 10, SND_ATTR_FWD_THREAD }, { 7, SND_ATTR_OVERLOAD },
        { 8, SND_ATTR_STACK },    { 9, SND_ATTR_MODULE },
    };
    struct sonde_trace *trace = scratch_open(path);
    for (int order = 0; order < 2; order++) {
        struct events e = walk(trace, order ? SONDE_BY_TIME : SONDE_BY_THREAD);
        assert_int_equal(e.count, 4 * 2 + 8 + 1);
        assert_int_equal(e.list[0].begin.name, 3);
        assert_int_equal(e.list[0].begin.shapes, 4);
        expect_attrs(&e, 1, described, 8);
        assert_int_equal(e.list[9].kind, SONDE_EVENT_END);
        assert_int_equal(e.list[9].time_ns, 15);
        assert_int_equal(e.list[10].kind, SONDE_EVENT_BEGIN);
        expect_attrs(&e, 11, described, 1);
        for (size_t i = 12; i < e.count; i++)
            assert_int_not_equal(e.list[i].kind, SONDE_EVENT_ATTR);
        free(e.list);
    }
    sonde_trace_close(trace);
}

/* A call whose record is not there: a range without a name, and nothing else is disturbed. */
static void unknown_call(void **state)
{
    const char   *path = scratch_path("nocall");
    struct synth *s = synth_new(path, NULL);
    uint32_t      t = synth_thread(s, "main", 0);

    (void)state;
    synth_call_range(s, t, 10, 77, 5);
    synth_close(s, true);
    struct sonde_trace *trace = scratch_open(path);
    struct events       e = walk(trace, SONDE_BY_THREAD);
    assert_int_equal(e.count, 2);
    assert_int_equal(e.list[0].begin.name, 0);
    free(e.list);
    sonde_trace_close(trace);
}

/* Many chunks of several threads, some shared: merged, no event is lost or out of order. */
static void time_order_holds(void **state)
{
    struct synth_options options = { .grain = 4096 };
    const char          *path = scratch_path("merge");
    struct synth        *s = synth_new(path, &options);
    uint32_t             threads[5], name = synth_string(s, "x");
    uint64_t             at[5] = { 0 }, seed = 12345, made = 0;

    (void)state;
    for (unsigned i = 0; i < 5; i++)
        threads[i] = synth_thread(s, "t", 0);
    synth_share(s, threads[0], threads[4]);
    for (unsigned i = 0; i < 20000; i++, made++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        unsigned k = (unsigned)(seed >> 33) % 5;
        if (k == 4 && i < 10000)
            k = 0; /* thread 4 follows thread 0 in its chunk */
        if (k == 0 && i >= 10000)
            k = 4;
        if (k == 4 && at[4] < at[0])
            at[4] = at[0];
        at[k] += 1 + (seed >> 40) % (50 + 200 * k);
        if (seed >> 63)
            synth_begin(s, threads[k], at[k], name, i);
        else
            synth_end(s, threads[k], at[k]);
    }
    synth_close(s, true);
    struct sonde_trace *trace = scratch_open(path);
    struct events by_time = walk(trace, SONDE_BY_TIME), by_thread = walk(trace, SONDE_BY_THREAD);
    assert_int_equal(by_time.count, made);
    assert_int_equal(by_thread.count, made);
    for (size_t i = 1; i < by_time.count; i++)
        assert_true(by_time.list[i - 1].time_ns <= by_time.list[i].time_ns);
    /* Each thread tells the same story in both. */
    for (uint32_t t = 0; t < 5; t++) {
        size_t a = 0, b = 0;
        for (;;) {
            while (a < made && by_time.list[a].thread != t)
                a++;
            while (b < made && by_thread.list[b].thread != t)
                b++;
            assert_int_equal(a == made, b == made);
            if (a == made)
                break;
            assert_memory_equal(&by_time.list[a], &by_thread.list[b], sizeof by_time.list[0]);
            a++;
            b++;
        }
    }
    free(by_time.list);
    free(by_thread.list);
    sonde_trace_close(trace);
}

static void walks_end_early(void **state)
{
    struct synth *s = synth_new(scratch_path("early"), NULL);
    uint32_t      t = synth_thread(s, "main", 0);

    (void)state;
    for (unsigned i = 0; i < 100; i++)
        synth_end(s, t, i);
    synth_close(s, true);
    struct sonde_trace *trace = scratch_open(scratch_path("early"));
    struct events       e = { calloc(KEPT, sizeof *e.list), 0, 7 };
    assert_int_equal(sonde_trace_walk(trace, SONDE_BY_THREAD, keep, &e, NULL), SONDE_OK);
    assert_int_equal(e.count, 7);
    e.count = 0;
    assert_int_equal(sonde_trace_walk(trace, SONDE_BY_TIME, keep, &e, NULL), SONDE_OK);
    assert_int_equal(e.count, 7);
    free(e.list);
    sonde_trace_close(trace);
}

static void clocks_do_not_run_backwards(void **state)
{
    struct synth *s = synth_new(scratch_path("backwards"), NULL);
    uint32_t      t = synth_thread(s, "main", 0);

    (void)state;
    synth_end(s, t, 1000);
    synth_end(s, t, 900); /* a hair: raised, and not worth a word */
    synth_end(s, t, 90000000);
    synth_end(s, t, 1100);
    synth_end(s, t, 90000001);
    synth_close(s, true);
    struct sonde_trace *trace = scratch_open(scratch_path("backwards"));
    struct events       e = walk(trace, SONDE_BY_THREAD);
    assert_int_equal(e.list[1].time_ns, 1000);
    assert_int_equal(e.list[3].time_ns, 90000000);
    assert_int_equal(e.list[4].time_ns, 90000001);
    assert_int_equal(count(trace, SONDE_BY_THREAD).clock_backwards, 1);
    assert_int_equal(count(trace, SONDE_BY_TIME).clock_backwards, 1);
    free(e.list);
    sonde_trace_close(trace);
}

/* A time far past the end of a closed recording is damage, not a century of waiting. */
static void impossible_times_are_damage(void **state)
{
    struct synth *s = synth_new(scratch_path("future"), NULL);
    uint32_t      t = synth_thread(s, "main", 0);

    (void)state;
    synth_end(s, t, 1000);
    const uint64_t later = SND_WORD0(SND_EV_END, synth_raw_clock(s, (uint64_t)1 << 50));
    synth_raw(s, t, &later, 1);
    synth_end(s, t, 2000);
    synth_close(s, true);
    struct sonde_trace *trace = scratch_open(scratch_path("future"));
    for (unsigned order = SONDE_BY_THREAD; order <= SONDE_BY_TIME; order++) {
        struct snd_walk_stats stats = count(trace, order);
        assert_int_equal(stats.events, 1);
        assert_int_equal(stats.damaged_chunks, 1);
    }
    sonde_trace_close(trace);
    struct sonde_check check;
    assert_int_equal(sonde_check(scratch_path("future"), &check, NULL), SONDE_OK);
    assert_int_equal(check.damaged_chunks, 1);
    assert_int_equal(check.events, 1);
    assert_true(check.closed);
}

/* What follows in a chunk belongs to a thread that the tables do not have: it is counted, and nobody gets it. */
static void threads_that_are_not_there_are_counted(void **state)
{
    struct synth *s = synth_new(scratch_path("nobody"), NULL);
    uint32_t      t = synth_thread(s, "main", 0);

    (void)state;
    synth_end(s, t, 1000);
    for (uint64_t i = 0; i < 2; i++) {
        const uint64_t words[] = { SND_WORD0(SND_EV_THREAD, synth_raw_clock(s, 1100 + 100 * i)), 77,
                                   SND_WORD0(SND_EV_END, synth_raw_clock(s, 1150 + 100 * i)) };
        synth_raw(s, t, words, 3);
    }
    synth_close(s, true);
    struct sonde_trace *trace = scratch_open(scratch_path("nobody"));
    for (unsigned order = SONDE_BY_THREAD; order <= SONDE_BY_TIME; order++) {
        struct snd_walk_stats stats = count(trace, order);
        assert_int_equal(stats.lost_threads, 4); /* with what names them */
        assert_int_equal(stats.damaged_chunks, 0);
        assert_int_equal(stats.events, 1);
    }
    sonde_trace_close(trace);
}

/* ----------------------------------------------------------- work of devices */

struct works {
    struct snd_device_work list[8];
    size_t                 count;
};

static void keep_work(void *user, uint32_t process, const struct snd_device_work *work)
{
    struct works *works = user;

    assert_int_equal(process, 0);
    assert_true(works->count < 8);
    works->list[works->count++] = *work;
}

/* One work of a device, from `begin` on, in a recording that stopped at 1000 ns; the file is closed. */
static struct snd_walk_stats walk_work(uint64_t begin, uint64_t ticks, struct works *works)
{
    struct synth         *s = synth_new(scratch_path("work"), NULL);
    uint32_t              t = synth_thread(s, "main", 0);
    const uint64_t        words[4] = { SND_WORD0(SND_EV_DEVICE, begin), SND_PAIR(3, 4), ticks, 5 };
    struct snd_visitor    visitor = { .begin = nothing_begins,
                                      .end = nothing_ends,
                                      .other = nothing_else,
                                      .device = keep_work,
                                      .user = works };
    struct snd_walk_stats stats;

    synth_end(s, t, 1000);
    synth_raw(s, t, words, 4);
    synth_header(s)->stopped_at = synth_raw_clock(s, 1000);
    synth_close(s, true);
    struct sonde_trace *trace = scratch_open(scratch_path("work"));
    works->count = 0;
    assert_int_equal(snd_walk(trace, SONDE_BY_THREAD, &visitor, &stats, NULL), SONDE_OK);
    sonde_trace_close(trace);
    return stats;
}

/* Work may last no time at all, and begin before what its thread wrote last; it cannot end before it begins. */
static void work_of_devices(void **state)
{
    const uint64_t start = SYNTH_START_MONO_NS, slack = (uint64_t)1 << 32;
    const struct {
        uint64_t begin, ticks;
        bool     good;
    } cases[] = {
        { start + 500, 20, true },
        { start + 500, 0, true },
        { start + 1000 + slack, 0, true },
        { start + 1000 + slack + 1, 0, false },
        { start + 1000 + slack + 1, 20, false },
        { start + 500, UINT64_MAX - start, false },       /* around the end of the clock */
        { start + 500, UINT64_C(1) << 61, false },        /* for a century */
        { start + 500, UINT64_MAX - start - 500, false }, /* at its end: before the start */
    };
    struct works works;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct snd_walk_stats stats = walk_work(cases[i].begin, cases[i].ticks, &works);
        if (works.count != cases[i].good)
            fail_msg("case %zu", i);
        assert_int_equal(stats.damaged_chunks, !cases[i].good);
        assert_int_equal(stats.events, 1 + cases[i].good);
        assert_int_equal(stats.clock_backwards, 0);
        if (!cases[i].good)
            continue;
        assert_int_equal(works.list[0].start_ns, cases[i].begin - start);
        assert_int_equal(works.list[0].duration_ns, cases[i].ticks);
        assert_int_equal(works.list[0].work, 3);
        assert_int_equal(works.list[0].queue, 4);
        assert_int_equal(works.list[0].correlation, 5);
        assert_int_equal(works.list[0].node, 0);
        assert_int_equal(works.list[0].thread, 0);
    }
}

/* The three events of a device's work; what began in the warm-up is counted, and not shown. */
static void forms_of_work(void **state)
{
    struct synth         *s = synth_new(scratch_path("forms"), NULL);
    uint32_t              t = synth_thread(s, "main", 0);
    struct works          works = { .count = 0 };
    struct snd_visitor    visitor = { .begin = nothing_begins,
                                      .end = nothing_ends,
                                      .other = nothing_else,
                                      .device = keep_work,
                                      .user = &works };
    const uint64_t        short_one[3] = { SND_WORD0(SND_EV_DEVICE_SHORT, synth_raw_clock(s, 400)),
                                           SND_PAIR(6, 70), SND_PAIR(8, 9) };
    struct snd_walk_stats stats;

    (void)state;
    synth_device(s, t, 199, 1, 2, 30, 4, 0);
    synth_device(s, t, 200, 1, 2, 30, 4, 0);
    synth_device(s, t, 300, 1, 2, 30, 4, 5);
    synth_raw(s, t, short_one, 3);
    synth_header(s)->valid_from = synth_raw_clock(s, 200);
    synth_close(s, true);
    struct sonde_trace *trace = scratch_open(scratch_path("forms"));
    assert_int_equal(snd_walk(trace, SONDE_BY_TIME, &visitor, &stats, NULL), SONDE_OK);
    assert_int_equal(stats.warmup_events, 1);
    assert_int_equal(stats.events, 3);
    assert_int_equal(works.count, 3);
    assert_int_equal(works.list[0].node, 0);
    assert_int_equal(works.list[1].node, 5);
    assert_int_equal(works.list[2].work, 6);
    assert_int_equal(works.list[2].duration_ns, 70);
    assert_int_equal(works.list[2].correlation, 8);
    assert_int_equal(works.list[2].queue, 9);
    assert_int_equal(works.list[2].node, 0);
    sonde_trace_close(trace);
}

/* A part of a recording that was cut out of it does not say when it was stopped: every time can be. */
static void a_file_that_does_not_say_when_it_stopped(void **state)
{
    struct synth  *s = synth_new(scratch_path("cut"), NULL);
    uint32_t       t = synth_thread(s, "main", 0);
    const uint64_t unsaid = 0;

    (void)state;
    synth_end(s, t, 1000);
    synth_end(s, t, (uint64_t)100 * 1000000000);
    synth_close(s, true);
    size_t   size;
    uint8_t *bytes = scratch_load(scratch_path("cut"), &size);
    memcpy(bytes + offsetof(struct snd_file_header, stopped_at), &unsaid, sizeof unsaid);
    scratch_save(scratch_path("cut"), bytes, size);
    free(bytes);
    struct sonde_trace *trace = scratch_open(scratch_path("cut"));
    for (unsigned order = SONDE_BY_THREAD; order <= SONDE_BY_TIME; order++) {
        assert_int_equal(count(trace, order).events, 2);
        assert_int_equal(count(trace, order).damaged_chunks, 0);
    }
    sonde_trace_close(trace);
}

static void warmup_is_hidden(void **state)
{
    struct synth *s = synth_new(scratch_path("warm"), NULL);
    uint32_t      t = synth_thread(s, "main", 0);

    (void)state;
    synth_begin(s, t, 10, 1, 0); /* ends after the warm-up: hidden */
    synth_begin(s, t, 20, 2, 0);
    synth_end(s, t, 30);
    synth_attr(s, t, SND_ATTR_FLOPS, 1);
    synth_begin(s, t, 60, 3, 0);
    synth_attr(s, t, SND_ATTR_FLOPS, 2);
    synth_end(s, t, 70);
    synth_attr(s, t, SND_ATTR_FLOPS, 3); /* of the hidden one */
    synth_end(s, t, 80);
    synth_begin(s, t, 90, 4, 0);
    synth_end(s, t, 95);
    synth_header(s)->valid_from = synth_raw_clock(s, 50);
    synth_close(s, true);
    struct sonde_trace *trace = scratch_open(scratch_path("warm"));
    struct events       e = walk(trace, SONDE_BY_TIME);
    assert_int_equal(e.count, 5);
    assert_int_equal(e.list[0].begin.name, 3);
    assert_int_equal(e.list[1].attr.value, 2);
    assert_int_equal(e.list[3].begin.name, 4);
    assert_int_equal(count(trace, SONDE_BY_THREAD).warmup_events, 6);
    free(e.list);
    sonde_trace_close(trace);
}

/* Whose ends were lost: of those that are shown first, then of hidden ones. */
static void gaps_end_ranges_of_the_warmup(void **state)
{
    struct synth *s = synth_new(scratch_path("gaps"), NULL);
    uint32_t      t = synth_thread(s, "main", 0);

    (void)state;
    synth_begin(s, t, 10, 1, 0);
    synth_begin(s, t, 20, 2, 0);
    synth_begin(s, t, 30, 3, 0); /* three hidden ones */
    synth_gap(s, t, 40, 1, 1);   /* of the last; itself in the warm-up */
    synth_begin(s, t, 60, 4, 0);
    synth_begin(s, t, 61, 5, 0);
    synth_gap(s, t, 70, 2, 3); /* both that are shown, and another hidden one: the first is left */
    synth_end(s, t, 80);       /* its end: hidden */
    synth_begin(s, t, 90, 6, 0);
    synth_end(s, t, 95);
    synth_end(s, t, 99); /* of nothing: shown */
    synth_header(s)->valid_from = synth_raw_clock(s, 50);
    synth_close(s, true);
    struct sonde_trace *trace = scratch_open(scratch_path("gaps"));
    struct events       e = walk(trace, SONDE_BY_TIME);
    assert_int_equal(e.count, 6);
    assert_int_equal(e.list[0].begin.name, 4);
    assert_int_equal(e.list[1].begin.name, 5);
    assert_int_equal(e.list[2].kind, SONDE_EVENT_GAP);
    assert_int_equal(e.list[3].begin.name, 6);
    assert_int_equal(e.list[4].time_ns, 95);
    assert_int_equal(e.list[5].time_ns, 99);
    free(e.list);
    sonde_trace_close(trace);
}

static void later_kinds_are_stepped_over(void **state)
{
    struct synth  *s = synth_new(scratch_path("later"), NULL);
    uint32_t       t = synth_thread(s, "main", 0);
    const uint64_t later[8] = { SND_KIND(30, 8) | 5000 << 8, 0, 0, 0, 0, 0, 0, 0 };

    (void)state;
    synth_end(s, t, 10);
    synth_raw(s, t, later, 8);
    synth_end(s, t, 20);
    synth_close(s, true);
    struct sonde_trace *trace = scratch_open(scratch_path("later"));
    for (unsigned order = SONDE_BY_THREAD; order <= SONDE_BY_TIME; order++) {
        struct snd_walk_stats stats = count(trace, order);
        assert_int_equal(stats.events, 2);
        assert_int_equal(stats.unknown_events, 1);
        assert_int_equal(stats.damaged_chunks, 0);
    }
    sonde_trace_close(trace);
}

static bool take_leaf(void *taken, uint32_t t, const struct snd_leaf *leaf)
{
    (void)t;
    assert_int_equal(leaf->end_ns - leaf->start_ns, 5);
    ++*(unsigned *)taken;
    return true;
}

static void nothing_called(void *u, uint32_t t, int64_t ns, const struct snd_table_call *call,
                           const uint64_t *sequence)
{
    (void)u, (void)t, (void)ns, (void)call, (void)sequence;
}

/* A call or span that is taken in one piece is two events, in what the file says it should have, too. */
static void leaves_are_counted(void **state)
{
    struct synth *s = synth_new(scratch_path("leaves"), NULL);
    uint32_t      t = synth_thread(s, "main", 0), name = synth_string(s, "a");
    uint32_t      call = synth_call(s, &(struct snd_call_record){ .name = name });

    (void)state;
    for (uint64_t i = 0; i < 50; i += 2) {
        synth_call_range(s, t, 10 * i + 1, call, 5);
        synth_span(s, t, 10 * i + 11, name, 5);
    }
    synth_close(s, true);
    size_t   size;
    uint8_t *bytes = scratch_load(scratch_path("leaves"), &size);
    ((struct snd_file_header *)(void *)bytes)->closed_events = 103; /* three were lost */
    scratch_save(scratch_path("leaves"), bytes, size);
    free(bytes);
    struct sonde_trace *trace = scratch_open(scratch_path("leaves"));
    unsigned            taken = 0;
    struct snd_visitor  visitor = { .user = &taken,
                                    .begin = nothing_begins,
                                    .end = nothing_ends,
                                    .other = nothing_else,
                                    .call = nothing_called,
                                    .leaf = take_leaf };
    for (unsigned order = SONDE_BY_THREAD; order <= SONDE_BY_TIME; order++) {
        struct snd_walk_stats whole = count(trace, order), leaves;
        assert_int_equal(snd_walk(trace, order, &visitor, &leaves, NULL), SONDE_OK);
        assert_int_equal(whole.events, 100);
        assert_int_equal(whole.missing_events, 3);
        assert_int_equal(leaves.events, 100);
        assert_int_equal(leaves.missing_events, 3);
    }
    assert_int_equal(taken, 2 * 49); /* all but the first, in both orders */
    sonde_trace_close(trace);
}

/* What a thread's ranges come to, whichever way they are handed over. */
struct told {
    struct {
        uint32_t name; /* 0: an end */
        int64_t  ns;
    } list[2][400];
    unsigned count[2], leaves;
};

static void tell(struct told *told, uint32_t t, uint32_t name, int64_t ns)
{
    assert_true(t < 2 && told->count[t] < 400);
    told->list[t][told->count[t]].name = name;
    told->list[t][told->count[t]++].ns = ns;
}

static void tell_begin(void *told, uint32_t t, int64_t ns, uint32_t name, uint32_t shapes)
{
    assert_int_equal(shapes, 0);
    tell(told, t, name, ns);
}

static void tell_end(void *told, uint32_t t, int64_t ns)
{
    tell(told, t, 0, ns);
}

static bool tell_leaf(void *user, uint32_t t, const struct snd_leaf *leaf)
{
    struct told *told = user;

    tell(told, t, leaf->id, leaf->start_ns);
    tell(told, t, 0, leaf->end_ns);
    told->leaves++;
    return true;
}

/* Begins without a duration go with the leaves and ends beside them, and come to the same as one by one. */
static void runs_hold_ranges_with_others_inside(void **state)
{
    struct synth  *s = synth_new(scratch_path("runs"), NULL);
    const uint32_t threads[2] = { synth_thread(s, "one", 0), synth_thread(s, "two", 0) },
                   outer = synth_string(s, "outer"), inner = synth_string(s, "inner");
    struct told one_by_one, in_runs;

    (void)state;
    for (uint64_t i = 0; i < 50; i++)
        for (uint64_t t = 0; t < 2; t++) {
            uint64_t at = 1 + 100 * i +
                          (i / 10 % 2 ? 50 * t : 3 * t); /* side by side, and across each other */
            synth_span(s, threads[t], at, outer, 0);
            synth_span(s, threads[t], at + 10, inner, 5);
            synth_span(s, threads[t], at + 20, inner, 15);
            synth_end(s, threads[t], at + 40);
        }
    synth_close(s, true);
    struct sonde_trace *trace = scratch_open(scratch_path("runs"));
    for (unsigned order = SONDE_BY_THREAD; order <= SONDE_BY_TIME; order++) {
        struct snd_visitor plain = { .user = &one_by_one,
                                     .begin = tell_begin,
                                     .end = tell_end,
                                     .other = nothing_else },
                           runs = { .user = &in_runs,
                                    .begin = tell_begin,
                                    .end = tell_end,
                                    .other = nothing_else,
                                    .leaf = tell_leaf };
        struct snd_walk_stats stats[2];
        memset(&one_by_one, 0, sizeof one_by_one);
        memset(&in_runs, 0, sizeof in_runs);
        assert_int_equal(snd_walk(trace, order, &plain, &stats[0], NULL), SONDE_OK);
        assert_int_equal(snd_walk(trace, order, &runs, &stats[1], NULL), SONDE_OK);
        assert_int_equal(stats[0].events, 600);
        assert_int_equal(stats[1].events, 600);
        assert_int_equal(stats[0].missing_events, stats[1].missing_events);
        assert_true(in_runs.leaves > 100);
        for (unsigned t = 0; t < 2; t++) {
            assert_int_equal(one_by_one.count[t], 300);
            assert_int_equal(in_runs.count[t], 300);
            for (unsigned i = 0; i < 300; i++) {
                assert_int_equal(in_runs.list[t][i].name, one_by_one.list[t][i].name);
                assert_int_equal(in_runs.list[t][i].ns, one_by_one.list[t][i].ns);
            }
        }
    }
    sonde_trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_arrive),
        cmocka_unit_test(calls_are_described),
        cmocka_unit_test(unknown_call),
        cmocka_unit_test(leaves_are_counted),
        cmocka_unit_test(runs_hold_ranges_with_others_inside),
        cmocka_unit_test(time_order_holds),
        cmocka_unit_test(walks_end_early),
        cmocka_unit_test(clocks_do_not_run_backwards),
        cmocka_unit_test(impossible_times_are_damage),
        cmocka_unit_test(threads_that_are_not_there_are_counted),
        cmocka_unit_test(work_of_devices),
        cmocka_unit_test(forms_of_work),
        cmocka_unit_test(a_file_that_does_not_say_when_it_stopped),
        cmocka_unit_test(warmup_is_hidden),
        cmocka_unit_test(gaps_end_ranges_of_the_warmup),
        cmocka_unit_test(later_kinds_are_stepped_over),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
