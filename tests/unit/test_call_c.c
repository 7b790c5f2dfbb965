/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of functions in C that are open: who called them, and that they are known again, in each recording. */
#include "failing_memory.h"
#include "probes/python/calls/call_count.h"
#include "recorded.h"

enum { ROOM = 8 };

static const char        frames[4], methods[4];
static struct snd_c_call calls[ROOM];

static uint32_t number_of(const char *name)
{
    return snd_calls_function(
        &(struct snd_calls_name){ .name = name, .name_length = strlen(name), .file = "" });
}

static void start(const char *file, enum snd_calls_mode mode)
{
    struct sonde_options options = recorded_options(file);

    recorded_start(&options);
    snd_calls_start(mode, false);
}

static void stop(void)
{
    snd_calls_stop();
    recorded_stop();
}

/* The frame `n` calls a function in C, or is called itself. */
static void enter_c(unsigned n, const char *name)
{
    snd_calls_enter_c(snd_calls_mine(false), number_of(name), &methods[n], &frames[n]);
}

static void enter(unsigned n)
{
    assert_true(snd_calls_enter(snd_calls_mine(true), number_of("python"), &frames[n], false));
}

static void test_innermost_first(void **state)
{
    (void)state;
    start("c.sonde", SND_CALLS_EVENTS);
    assert_int_equal(snd_calls_c.list(calls, ROOM), 0);
    assert_int_equal(snd_calls_c.known(), 0);
    enter(0);
    enter_c(0, "<built-in function sorted>");
    enter(1);
    enter_c(1, "<built-in function sum>");
    assert_int_equal(snd_calls_c.list(calls, ROOM), 2);
    assert_ptr_equal(calls[0].caller, &frames[1]);
    assert_ptr_equal(calls[1].caller, &frames[0]);
    assert_true(calls[0].frame != 0 && calls[1].frame != 0 && calls[0].frame != calls[1].frame);
    assert_int_equal(snd_calls_c.list(calls, 1), 1);
    assert_ptr_equal(calls[0].caller, &frames[1]);
    /* A return that nobody saw: the call of the frame below it ends this one too. */
    assert_true(snd_calls_leave_key(snd_calls_mine(false), &frames[1]));
    assert_int_equal(snd_calls_c.list(calls, ROOM), 1);
    assert_ptr_equal(calls[0].caller, &frames[0]);
    stop();
    assert_int_equal(snd_calls_c.list(calls, ROOM), 0);
    assert_int_equal(snd_calls_c.known(), 0);
}

static void test_known_again(void **state)
{
    (void)state;
    start("again.sonde", SND_CALLS_EVENTS);
    enter(0);
    enter_c(0, "<built-in function len>");
    uint64_t first = snd_calls_c.known();
    assert_true(first != 0);
    snd_calls_leave(snd_calls_mine(false));
    assert_int_equal(snd_calls_c.known(), 0);
    enter_c(0, "<built-in function abs>");
    assert_true(snd_calls_c.known() != first);
    enter(1); /* Python's own calls change nothing */
    uint64_t second = snd_calls_c.known();
    snd_calls_leave(snd_calls_mine(false));
    assert_true(snd_calls_c.known() == second);
    snd_calls_leave(snd_calls_mine(false));
    enter_c(0, "<built-in function len>");
    assert_true(snd_calls_c.known() == first);
    enter(1);
    enter_c(1, "<built-in function len>"); /* the same in it, one level down */
    assert_true(snd_calls_c.known() != first);
    stop();
}

static void test_only_where_calls_are_events(void **state)
{
    (void)state;
    start("counted.sonde", SND_CALLS_COUNTED);
    enter(0);
    enter_c(0, "<built-in function len>");
    assert_int_equal(snd_calls_c.known(), 0);
    assert_int_equal(snd_calls_c.list(calls, ROOM), 0);
    stop();
}

/* Ids of another recording are other ids: none are given until the thread has been seen in it. */
static void test_another_recording(void **state)
{
    (void)state;
    struct sonde_frame frame;

    start("one.sonde", SND_CALLS_EVENTS);
    sonde_intern("a", 1);
    enter(0);
    enter_c(0, "<built-in function sorted>");
    assert_true(snd_calls_c.known() != 0);
    recorded_stop();
    struct sonde_options options = recorded_options("other.sonde");
    recorded_start(&options);
    assert_int_equal(snd_calls_c.known(), 0);
    assert_int_equal(snd_calls_c.list(calls, ROOM), 0);
    enter(1);
    assert_int_equal(snd_calls_c.list(calls, ROOM), 1);
    uint32_t id = calls[0].frame;
    uint64_t known = snd_calls_c.known();
    assert_true(known != 0);
    stop();
    struct sonde_trace *trace = recorded_open("other.sonde");
    assert_true(sonde_trace_frame(trace, 0, id, &frame));
    assert_memory_equal(frame.function.bytes, "<built-in function sorted>", 26);
    assert_int_equal(frame.file.length, 0);
    sonde_trace_close(trace);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_innermost_first),
        cmocka_unit_test(test_known_again),
        cmocka_unit_test(test_only_where_calls_are_events),
        cmocka_unit_test(test_another_recording),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
