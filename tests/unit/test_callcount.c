/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls counted in place: recursion per function and per edge, against a slow count of the same
 * calls; returns that were not seen; threads; recordings that change; memory that runs out.
 */
#include <pthread.h>

#include "failing_memory.h"
#include "probes/python/calls/call_count.h"
#include "recorded.h"

/* ----------------------------------------------------------------------- helpers */

enum { FUNCTIONS = 6 };

static uint32_t number_of(unsigned n)
{
    char name[8];
    int  length = snprintf(name, sizeof name, "f%u", n);

    return snd_calls_function(&(struct snd_calls_name){
        .name = name, .name_length = (size_t)length, .file = "f.py", .file_length = 4, .line = n });
}

static void start(const char *file)
{
    struct sonde_options options = recorded_options(file);

    recorded_start(&options);
    snd_calls_start(SND_CALLS_COUNTED, false);
}

static uint32_t kind_shown = SONDE_TALLY_CALLS; /* of the process, or of a session */

/* The tally of the edge between two functions; all 0 if there is none. Caller -1: none. */
static struct sonde_tally_row edge(const struct sonde_trace *trace, unsigned callee, int caller)
{
    struct sonde_tally_row row, found = { 0 };
    struct sonde_frame     to, from;

    for (uint32_t n = 0; sonde_trace_tally(trace, 0, n, &row); n++) {
        if (row.kind != kind_shown || !sonde_trace_frame(trace, 0, row.key, &to) ||
            to.line != callee)
            continue;
        bool called = sonde_trace_frame(trace, 0, row.other, &from);
        if (called ? caller >= 0 && from.line == (uint32_t)caller : caller < 0) {
            assert_int_equal(found.kind, 0); /* there is but one */
            found = row;
        }
    }
    return found;
}

static struct sonde_trace *stop_and_open(const char *file)
{
    struct sonde_trace *trace;

    snd_calls_stop();
    assert_int_equal(sonde_stop(NULL), SONDE_OK);
    assert_int_equal(sonde_trace_open(recorded_path(file), &trace, NULL), SONDE_OK);
    return trace;
}

static const char keys[FUNCTIONS + 1]; /* addresses */

static void enter(unsigned n)
{
    assert_true(snd_calls_enter(snd_calls_mine(true), number_of(n), &keys[n], false));
}

static void leave(unsigned n)
{
    assert_true(snd_calls_leave_key(snd_calls_mine(true), &keys[n]));
}

/* ----------------------------------------------------------------- the slow count */

static struct {
    uint64_t calls, primitive, outermost;
} expected[FUNCTIONS][FUNCTIONS + 1];
static unsigned path[64];
static unsigned path_length;
static uint32_t random_state = 1;

static unsigned draw(unsigned below)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 16) % below;
}

/* What cProfile counts at the end of a call: is the function, is the edge still open outside? */
static void count_end(void)
{
    unsigned callee = path[--path_length];
    unsigned caller = path_length ? path[path_length - 1] : FUNCTIONS;
    bool     function_open = false, edge_open = false;

    for (unsigned i = 0; i < path_length; i++) {
        function_open |= path[i] == callee;
        edge_open |= path[i] == callee && (i ? path[i - 1] : FUNCTIONS) == caller;
    }
    expected[callee][caller].calls++;
    expected[callee][caller].primitive += !edge_open;
    expected[callee][caller].outermost += !function_open;
}

static void call_at_random(unsigned depth)
{
    unsigned n = draw(FUNCTIONS);

    enter(n);
    path[path_length++] = n;
    for (unsigned i = draw(3); depth < 60 && i > 0; i--)
        call_at_random(depth + 1);
    count_end();
    leave(n);
}

static void test_recursion_as_cprofile(void **state)
{
    (void)state;
    start("random.sonde");
    for (unsigned i = 0; i < 3000; i++)
        call_at_random(1);
    struct sonde_trace *trace = stop_and_open("random.sonde");
    for (unsigned callee = 0; callee < FUNCTIONS; callee++) {
        for (unsigned caller = 0; caller <= FUNCTIONS; caller++) {
            struct sonde_tally_row row = edge(trace, callee,
                                              caller == FUNCTIONS ? -1 : (int)caller);
            assert_int_equal(row.words[SND_CALLS_CALLS], expected[callee][caller].calls);
            assert_int_equal(row.words[SND_CALLS_PRIMITIVE], expected[callee][caller].primitive);
            assert_int_equal(row.words[SND_CALLS_OUTERMOST], expected[callee][caller].outermost);
            assert_true(row.words[SND_CALLS_SELF_TICKS] > 0 || row.kind == 0);
        }
    }
    sonde_trace_close(trace);
    assert_int_equal(snd_calls.unbalanced, 0);
}

/* ------------------------------------------------------------------------- the rest */

static void test_times_add_up(void **state)
{
    (void)state;
    start("times.sonde");
    enter(1);
    enter(2);
    enter(2);
    leave(2);
    leave(2);
    leave(1);
    struct sonde_trace    *trace = stop_and_open("times.sonde");
    struct sonde_tally_row one = edge(trace, 1, -1), two = edge(trace, 2, 1),
                           in = edge(trace, 2, 2);
    assert_int_equal(one.words[SND_CALLS_TOTAL_TICKS],
                     one.words[SND_CALLS_SELF_TICKS] + two.words[SND_CALLS_TOTAL_TICKS]);
    assert_int_equal(two.words[SND_CALLS_TOTAL_TICKS],
                     two.words[SND_CALLS_SELF_TICKS] + in.words[SND_CALLS_TOTAL_TICKS]);
    assert_int_equal(in.words[SND_CALLS_OUTERMOST_TICKS], 0);
    assert_int_equal(one.words[SND_CALLS_OUTERMOST_TICKS], one.words[SND_CALLS_TOTAL_TICKS]);
    sonde_trace_close(trace);
}

/* A return that was not reported, one of a call that began before, and calls open at the end. */
static void test_unseen_ends(void **state)
{
    (void)state;
    start("unseen.sonde");
    assert_false(snd_calls_leave_key(snd_calls_mine(true), &keys[5]));
    enter(1);
    enter(2);
    enter(3);
    leave(1);
    assert_int_equal(snd_calls_mine(true)->depth, 0);
    assert_int_equal(snd_calls.unbalanced, 2);
    enter(1);
    enter(1);
    struct sonde_trace *trace = stop_and_open("unseen.sonde");
    assert_int_equal(edge(trace, 3, 2).words[SND_CALLS_CALLS], 1);
    assert_int_equal(edge(trace, 1, -1).words[SND_CALLS_CALLS], 2);
    assert_int_equal(edge(trace, 1, 1).words[SND_CALLS_CALLS], 1);
    assert_int_equal(edge(trace, 1, 1).words[SND_CALLS_OUTERMOST], 0);
    assert_int_equal(edge(trace, 5, -1).kind, 0);
    sonde_trace_close(trace);
}

static void test_suspended(void **state)
{
    (void)state;
    static const char coroutine;

    start("suspended.sonde");
    uint64_t begin = sonde_clock();
    enter(1);
    leave(1);
    snd_calls_suspend(&coroutine);
    uint64_t since = sonde_clock();
    while (sonde_clock() - since < 100000)
        ;
    struct snd_calls_thread *t = snd_calls_mine(true);
    assert_true(snd_calls_enter(t, number_of(1), &keys[1], true));
    snd_calls_resume(t, &coroutine);
    snd_calls_resume(t, &coroutine); /* known no more: adds nothing */
    leave(1);
    uint64_t               elapsed = sonde_clock() - begin;
    struct sonde_trace    *trace = stop_and_open("suspended.sonde");
    struct sonde_tally_row row = edge(trace, 1, -1);
    assert_int_equal(row.words[SND_CALLS_CALLS], 1);
    assert_int_equal(row.words[SND_CALLS_RESUMPTIONS], 1);
    assert_int_equal(row.words[SND_CALLS_OUTERMOST], 1);
    assert_true(row.words[SND_CALLS_AWAITING_TICKS] >= 100000);
    assert_true(row.words[SND_CALLS_TOTAL_TICKS] + row.words[SND_CALLS_AWAITING_TICKS] <= elapsed);
    sonde_trace_close(trace);
}

/* What is open when the recording is paused goes on in it afterwards, without the pause. */
static void test_another_epoch(void **state)
{
    (void)state;
    start("epochs.sonde");
    enter(1);
    sonde_pause();
    enter(2);
    leave(2); /* while nothing records */
    uint64_t since = sonde_clock();
    while (sonde_clock() - since < 1000000)
        ;
    since = sonde_clock();
    sonde_resume();
    enter(2);
    leave(2);
    leave(1);
    uint64_t            elapsed = sonde_clock() - since;
    struct sonde_trace *trace = stop_and_open("epochs.sonde");
    assert_int_equal(edge(trace, 2, 1).words[SND_CALLS_CALLS], 1);
    assert_int_equal(edge(trace, 1, -1).words[SND_CALLS_CALLS], 1);
    assert_int_equal(edge(trace, 1, -1).words[SND_CALLS_OUTERMOST], 1);
    assert_true(edge(trace, 1, -1).words[SND_CALLS_TOTAL_TICKS] <= elapsed);
    assert_true(edge(trace, 2, 1).words[SND_CALLS_TOTAL_TICKS] <= elapsed);
    sonde_trace_close(trace);
}

/* The first thing after a pause may be a return, and of a call that began in the pause. */
static void test_pause_and_resume(void **state)
{
    (void)state;
    start("paused.sonde");
    uint64_t since = sonde_clock();
    enter(1);
    enter(2);
    sonde_pause();
    sonde_resume();
    leave(2);
    sonde_pause();
    enter(3);
    sonde_resume();
    leave(3);
    leave(1);
    uint64_t            elapsed = sonde_clock() - since;
    struct sonde_trace *trace = stop_and_open("paused.sonde");
    for (unsigned n = 2; n <= 3; n++) {
        assert_int_equal(edge(trace, n, 1).words[SND_CALLS_CALLS], 1);
        assert_true(edge(trace, n, 1).words[SND_CALLS_TOTAL_TICKS] <= elapsed);
    }
    assert_int_equal(edge(trace, 1, -1).words[SND_CALLS_CALLS], 1);
    assert_true(edge(trace, 1, -1).words[SND_CALLS_SELF_TICKS] <= elapsed);
    sonde_trace_close(trace);
}

static void record_next(const char *file)
{
    struct sonde_options options = recorded_options(file);

    assert_int_equal(sonde_stop(NULL), SONDE_OK);
    recorded_start(&options);
}

/* A call that is open from one recording to the next is one of each. */
static void test_another_recording(void **state)
{
    (void)state;
    static const char *const files[] = { "one.sonde", "two.sonde", "three.sonde" };

    start(files[0]);
    enter(1);
    enter(1);
    record_next(files[1]);
    enter(2);
    leave(2);
    record_next(files[2]);
    leave(1);
    leave(1);
    sonde_trace_close(stop_and_open(files[2]));
    for (unsigned i = 0; i < 3; i++) {
        struct sonde_trace *trace = recorded_open(files[i]);
        assert_int_equal(edge(trace, 1, -1).words[SND_CALLS_CALLS], 1);
        assert_int_equal(edge(trace, 1, -1).words[SND_CALLS_OUTERMOST], 1);
        assert_int_equal(edge(trace, 1, 1).words[SND_CALLS_CALLS], 1);
        assert_int_equal(edge(trace, 1, 1).words[SND_CALLS_OUTERMOST], 0);
        assert_int_equal(edge(trace, 2, 1).words[SND_CALLS_CALLS], i == 1);
        sonde_trace_close(trace);
    }
}

/* A coroutine that goes on in another recording than it was suspended in counts in that one. */
static void test_resumed_in_another_recording(void **state)
{
    (void)state;
    static const char coroutine;

    start("before.sonde");
    enter(1);
    leave(1);
    snd_calls_suspend(&coroutine);
    record_next("between.sonde");
    record_next("after.sonde");
    struct snd_calls_thread *t = snd_calls_mine(true);
    assert_true(snd_calls_enter(t, number_of(1), &keys[1], true));
    snd_calls_resume(t, &coroutine);
    leave(1);
    struct sonde_trace *trace = stop_and_open("after.sonde");
    assert_int_equal(edge(trace, 1, -1).words[SND_CALLS_CALLS], 0);
    assert_int_equal(edge(trace, 1, -1).words[SND_CALLS_RESUMPTIONS], 1);
    assert_true(edge(trace, 1, -1).words[SND_CALLS_AWAITING_TICKS] > 0);
    sonde_trace_close(trace);
}

/* The trace has a call from its begin on: the program may be killed in it. */
static void test_open_calls_are_there(void **state)
{
    (void)state;
    start("open.sonde");
    enter(1);
    enter(2);
    enter(2);
    struct sonde_trace *trace = recorded_open("open.sonde");
    assert_int_equal(edge(trace, 1, -1).words[SND_CALLS_CALLS], 1);
    assert_int_equal(edge(trace, 2, 1).words[SND_CALLS_OUTERMOST], 1);
    assert_int_equal(edge(trace, 2, 2).words[SND_CALLS_CALLS], 1);
    assert_int_equal(edge(trace, 2, 2).words[SND_CALLS_OUTERMOST], 0);
    assert_int_equal(edge(trace, 1, -1).words[SND_CALLS_TOTAL_TICKS], 0);
    sonde_trace_close(trace);
    sonde_trace_close(stop_and_open("open.sonde"));
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* stands for the interpreter's */

static void *work(void *unused)
{
    (void)unused;
    for (unsigned i = 0; i < 100; i++) {
        pthread_mutex_lock(&lock);
        enter(1);
        pthread_mutex_unlock(&lock);
        pthread_mutex_lock(&lock);
        enter(1);
        leave(1);
        leave(1);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    enum { THREADS = 4, TIMES = 5 };
    pthread_t threads[THREADS];

    start("threads.sonde");
    for (unsigned time = 0; time < TIMES; time++) {
        for (unsigned i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, work, NULL), 0);
        for (unsigned i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
    }
    struct sonde_trace *trace = stop_and_open("threads.sonde");
    assert_int_equal(edge(trace, 1, -1).words[SND_CALLS_OUTERMOST], THREADS * TIMES * 100);
    assert_int_equal(edge(trace, 1, 1).words[SND_CALLS_CALLS], THREADS * TIMES * 100);
    assert_int_equal(edge(trace, 1, 1).words[SND_CALLS_OUTERMOST], 0);
    sonde_trace_close(trace);
}

/* Whichever allocation fails: what could be entered is left, and the stack is level again. */
static void test_no_memory(void **state)
{
    (void)state;
    for (long nth = 0; nth < 40; nth++) {
        struct sonde_options options = recorded_options("nomem.sonde");
        recorded_start(&options);
        allocations_left = nth;
        snd_calls_start(SND_CALLS_COUNTED, false);
        struct snd_calls_thread *t = snd_calls_mine(true);
        for (unsigned i = 0; t && i < 600; i++) {
            uint32_t number = number_of(1000 + (unsigned)nth * 7 + i % 7);
            if (number != 0)
                snd_calls_enter(t, number, &keys[0], false);
            snd_calls_suspend(&keys[i % FUNCTIONS]);
        }
        while (t && t->depth > 0)
            snd_calls_leave(t);
        allocations_left = -1;
        snd_calls_stop();
        assert_int_equal(sonde_stop(NULL), SONDE_OK);
    }
}

/* ----------------------------------------------------------------------- sessions */

/* A session inside, begun in the middle of open calls, counts as if it were alone. */
static void test_a_session_counts_for_itself(void **state)
{
    (void)state;
    start("sessions.sonde");
    enter(0);
    enter(1);
    assert_true(snd_calls_session_start(7));
    enter(1); /* a recursion of the process, not of the session */
    enter(2);
    leave(2);
    leave(1);
    leave(1); /* was open before */
    enter(2);
    leave(2);
    snd_calls_session_stop(7);
    enter(2);
    leave(2);
    leave(0);
    struct sonde_trace *trace = stop_and_open("sessions.sonde");
    assert_int_equal(edge(trace, 1, 0).words[SND_CALLS_CALLS], 1);
    assert_int_equal(edge(trace, 1, 1).words[SND_CALLS_OUTERMOST], 0);
    assert_int_equal(edge(trace, 2, 0).words[SND_CALLS_CALLS], 2);
    kind_shown = SONDE_TALLY_OF(SONDE_TALLY_CALLS, 7);
    assert_int_equal(edge(trace, 1, 0).kind, 0);
    assert_int_equal(edge(trace, 1, -1).words[SND_CALLS_CALLS], 1);
    assert_int_equal(edge(trace, 1, -1).words[SND_CALLS_OUTERMOST], 1);
    assert_int_equal(edge(trace, 2, 1).words[SND_CALLS_CALLS], 1);
    assert_int_equal(edge(trace, 2, -1).words[SND_CALLS_CALLS], 1);
    kind_shown = SONDE_TALLY_CALLS;
    sonde_trace_close(trace);
    snd_calls_session_forget(7, false);
}

/* The first session is given what was counted so far, and what is open. */
static void test_a_session_is_split_off(void **state)
{
    (void)state;
    start("split.sonde");
    snd_calls_set_owner(3);
    enter(0);
    enter(1);
    leave(1);
    enter(1);
    snd_calls_set_owner(0);
    assert_true(snd_calls_session_split(3, true));
    enter(1);
    leave(1);
    leave(1);
    snd_calls_session_stop(3); /* in the middle of 0 */
    enter(1);
    leave(1);
    leave(0);
    struct sonde_trace *trace = stop_and_open("split.sonde");
    assert_int_equal(edge(trace, 1, 0).words[SND_CALLS_CALLS], 3);
    kind_shown = SONDE_TALLY_OF(SONDE_TALLY_CALLS, 3);
    assert_int_equal(edge(trace, 0, -1).words[SND_CALLS_CALLS], 1);
    assert_true(edge(trace, 0, -1).words[SND_CALLS_TOTAL_TICKS] > 0);
    assert_int_equal(edge(trace, 1, 0).words[SND_CALLS_CALLS], 2);
    assert_int_equal(edge(trace, 1, 0).words[SND_CALLS_OUTERMOST], 2);
    assert_int_equal(edge(trace, 1, 1).words[SND_CALLS_CALLS], 1);
    assert_int_equal(edge(trace, 1, 1).words[SND_CALLS_OUTERMOST], 0);
    kind_shown = SONDE_TALLY_CALLS;
    sonde_trace_close(trace);
    snd_calls_session_forget(3, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_session_counts_for_itself),
        cmocka_unit_test(test_a_session_is_split_off),
        cmocka_unit_test(test_recursion_as_cprofile),
        cmocka_unit_test(test_times_add_up),
        cmocka_unit_test(test_unseen_ends),
        cmocka_unit_test(test_suspended),
        cmocka_unit_test(test_another_epoch),
        cmocka_unit_test(test_pause_and_resume),
        cmocka_unit_test(test_another_recording),
        cmocka_unit_test(test_resumed_in_another_recording),
        cmocka_unit_test(test_open_calls_are_there),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
