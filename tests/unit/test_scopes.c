/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scopes that are left without their end: longjmp out of SONDE_RANGE, as lua's errors and yields
 * do, in several threads. The scope around the jump sets things right.
 */
#include <pthread.h>

#include "unit/recorded.h"

#define ROUNDS 1000
#define THREADS 4
#define DEPTH 5

static _Thread_local jmp_buf out;
static volatile int          jumps = 1; /* so that the compiler does not know */

static void sink(int depth)
{
    SONDE_RANGE("inner");
    if (depth > 0)
        sink(depth - 1);
    else if (jumps)
        longjmp(out, 1);
}

static void serve(int round)
{
    SONDE_RANGE("request");
    {
        SONDE_RANGE("before");
    }
    if (setjmp(out) == 0)
        sink(round % DEPTH);
    {
        SONDE_RANGE("after");
    }
}

static void *work(void *unused)
{
    SONDE_RANGE("thread");
    for (int i = 0; i < ROUNDS; i++)
        serve(i);
    return unused;
}

struct seen {
    uint64_t count;
    int64_t  total_ns, longest_ns;
};

static struct seen look(struct sonde_trace *trace, const char *name)
{
    struct sonde_averages *averages;
    struct seen            seen = { 0 };

    assert_int_equal(sonde_averages_new(trace, NULL, &averages, NULL), SONDE_OK);
    for (size_t i = 0; i < sonde_averages_count(averages); i++) {
        const struct sonde_average *row = sonde_averages_row(averages, i);
        if (row->name.length == strlen(name) &&
            memcmp(row->name.bytes, name, row->name.length) == 0)
            seen = (struct seen){ row->count, row->total_ns, row->max_ns };
    }
    sonde_averages_free(averages);
    return seen;
}

struct depths {
    int64_t open[THREADS + 2], most;
};

static bool on_event(const struct sonde_event *event, void *user)
{
    struct depths *d = user;
    int64_t       *open = &d->open[event->thread];

    if (event->kind == SONDE_EVENT_BEGIN)
        ++*open;
    else if (event->kind == SONDE_EVENT_END)
        --*open;
    else if (event->kind == SONDE_EVENT_GAP)
        *open -= (int64_t)event->gap.ends;
    d->most = *open > d->most ? *open : d->most;
    assert_true(*open >= 0);
    return true;
}

static void a_scope_ends_what_a_jump_left_open(void **state)
{
    (void)state;
    struct sonde_options options = recorded_options("jumps.sonde");
    pthread_t            threads[THREADS];

    recorded_start(&options);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    recorded_stop();

    struct sonde_trace *trace = recorded_open("jumps.sonde");
    struct depths       depths = { 0 };
    recorded_walk(trace, on_event, &depths);
    assert_int_equal(depths.most, 2 + DEPTH + 1); /* "after" lies in what the jump left */
    for (int i = 0; i < THREADS + 2; i++)
        assert_int_equal(depths.open[i], 0);
    uint64_t inner = 0;
    for (int i = 0; i < ROUNDS; i++)
        inner += (uint64_t)(i % DEPTH) + 1;
    struct seen thread = look(trace, "thread"), request = look(trace, "request");
    assert_int_equal(thread.count, THREADS);
    assert_int_equal(request.count, THREADS * ROUNDS);
    assert_int_equal(look(trace, "before").count, THREADS * ROUNDS);
    assert_int_equal(look(trace, "after").count, THREADS * ROUNDS);
    assert_true(request.total_ns <= thread.total_ns);
    assert_int_equal(look(trace, "inner").count, THREADS * inner);
    assert_true(look(trace, "inner").longest_ns <= request.longest_ns);
    assert_int_equal(recorded_ledger(trace, "unfinished_ranges"), THREADS * inner);
    assert_int_equal(recorded_ledger(trace, "ends_without_begin"), 0);
    sonde_trace_close(trace);
}

/* A jump past ranges that had no room, and were dropped with their ends. */
static void a_jump_past_dropped_ranges_keeps_pairs(void **state)
{
    (void)state;
    struct sonde_options options = recorded_options("full.sonde");

    options.max_bytes = (uint64_t)1 << 19;
    options.chunk_bytes = (size_t)1 << 16;
    recorded_start(&options);
    work(NULL);
    for (int i = 0; i < 20; i++)
        work(NULL);
    recorded_stop();
    struct sonde_trace *trace = recorded_open("full.sonde");
    struct depths       depths = { 0 };
    recorded_walk(trace, on_event, &depths);
    assert_true(depths.most <= 2 + DEPTH + 1);
    assert_true(recorded_ledger(trace, "lost_events") > 0);
    assert_int_equal(recorded_ledger(trace, "ends_without_begin"), 0);
    sonde_trace_close(trace);
}

/* sonde_end_at() and keys leave the scopes around them their ordinary ends. */
static void ends_out_of_order_do_not_disturb_scopes(void **state)
{
    (void)state;
    struct sonde_options options = recorded_options("order.sonde");

    recorded_start(&options);
    for (int i = 0; i < 100; i++) {
        SONDE_RANGE("outer");
        sonde_begin("early");
        {
            SONDE_RANGE("inside");
            sonde_end_at(1);
        }
        sonde_begin("keyed");
        sonde_attr(SONDE_ATTR_KEY, 7);
        sonde_end_key(7);
        {
            SONDE_RANGE("last");
        }
    }
    recorded_stop();
    struct sonde_trace *trace = recorded_open("order.sonde");
    assert_int_equal(look(trace, "outer").count, 100);
    assert_int_equal(look(trace, "early").count, 100);
    assert_int_equal(look(trace, "inside").count, 100);
    assert_int_equal(look(trace, "keyed").count, 100);
    assert_int_equal(look(trace, "last").count, 100);
    assert_int_equal(recorded_ledger(trace, "unfinished_ranges"), 0);
    assert_int_equal(recorded_ledger(trace, "ends_without_begin"), 0);
    sonde_trace_close(trace);
}

/* What began before the recording or in a pause is not ended in it. */
static void a_scope_ends_only_in_its_own_recording(void **state)
{
    (void)state;
    struct sonde_options options = recorded_options("own.sonde");
    {
        SONDE_RANGE("unrecorded");
        recorded_start(&options);
        {
            SONDE_RANGE("first");
            sonde_pause();
            {
                SONDE_RANGE("paused");
                sonde_resume();
                sonde_mark("resumed");
                sonde_begin("second");
            }
        }
    }
    sonde_end();
    recorded_stop();
    struct sonde_trace *trace = recorded_open("own.sonde");
    assert_int_equal(look(trace, "first").count, 1);
    assert_int_equal(look(trace, "second").count, 1);
    assert_int_equal(look(trace, "paused").count, 0);
    assert_int_equal(recorded_ledger(trace, "unfinished_ranges"), 1); /* by the pause */
    assert_int_equal(recorded_ledger(trace, "ends_without_begin"), 0);
    sonde_trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_scope_ends_what_a_jump_left_open),
        cmocka_unit_test(a_jump_past_dropped_ranges_keeps_pairs),
        cmocka_unit_test(ends_out_of_order_do_not_disturb_scopes),
        cmocka_unit_test(a_scope_ends_only_in_its_own_recording),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
