/* SPDX-License-Identifier: Apache-2.0 */
/* Events of counters by stack: what a sample stands for, and whose the events after the last samples are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "failing_memory.h"
#include "native/perf/stack_events.h"

#define STACKS 16

static struct snd_stack_events events;
static uint64_t                sums[2][STACKS], samples[2][STACKS];

static void add(void *user, uint32_t stack, uint32_t counter, uint64_t more, uint64_t count)
{
    (void)user;
    assert_true(stack < STACKS && counter < 2);
    samples[counter][stack] += more;
    sums[counter][stack] += count;
}

static int set_up(void **state)
{
    (void)state;
    memset(sums, 0, sizeof sums);
    memset(samples, 0, sizeof samples);
    snd_stack_events_init(&events, add, NULL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    snd_stack_events_release(&events);
    return 0;
}

static void take(uint32_t tid, uint64_t event, uint32_t stack, uint64_t count, uint64_t period)
{
    struct snd_event_sample sample = { .tid = tid,
                                       .event = event,
                                       .stack = stack,
                                       .period = period,
                                       .count = count,
                                       .has_count = count > 0 };

    snd_stack_events_sample(&events, &sample);
}

static void settle(uint64_t counted)
{
    snd_stack_events_settle(&events, &counted, 1);
}

static void test_counts_are_believed_before_periods(void **state)
{
    (void)state;
    take(10, 1, 3, 1, 33);
    take(10, 1, 4, 34, 100);
    take(10, 1, 4, 134, 200);
    settle(134);
    assert_int_equal(sums[0][3], 1);
    assert_int_equal(sums[0][4], 133);
    assert_int_equal(samples[0][4], 2);
}

static void test_threads_and_processors_count_apart(void **state)
{
    (void)state;
    take(10, 1, 3, 50, 50);
    take(11, 1, 4, 20, 50); /* another thread, on the same processor */
    take(10, 2, 3, 30, 50); /* the first, on another */
    take(10, 1, 3, 60, 50);
    assert_int_equal(sums[0][3], 50 + 30 + 10);
    assert_int_equal(sums[0][4], 20);
}

static void test_the_rest_goes_by_intervals(void **state)
{
    (void)state;
    take(10, 1, 3, 100, 10); /* may have had 10 more at most */
    take(11, 1, 4, 30, 40);
    take(11, 1, 5, 40, 30); /* 30 more at most: three quarters of them where 30 of its 40 were */
    snd_stack_events_exit(&events, 11);
    settle(140 + 20);
    assert_int_equal(sums[0][3], 100 + 5);
    assert_int_equal(sums[0][4] + sums[0][5], 40 + 15);
    assert_in_range(sums[0][4], 30 + 11, 30 + 12);
    assert_int_equal(samples[0][3] + samples[0][4] + samples[0][5], 3);
}

static void test_threads_without_a_sample_are_not_known(void **state)
{
    (void)state;
    take(10, 1, 3, 100, 50);
    snd_stack_events_exit(&events, 77);
    settle(100 + 50);
    assert_int_equal(sums[0][0], 25);
    assert_int_equal(sums[0][3], 100 + 25);
    assert_int_equal(samples[0][0], 0);
}

static void test_a_thread_number_is_used_again(void **state)
{
    (void)state;
    take(10, 1, 3, 100, 50);
    snd_stack_events_exit(&events, 10);
    take(10, 1, 4, 7, 50);
    assert_int_equal(sums[0][4], 7);
    take(11, 1, 5, 100, 50); /* whose end is not seen */
    take(11, 1, 6, 9, 50);
    assert_int_equal(sums[0][6], 9);
}

static void test_without_counts_by_period(void **state)
{
    (void)state;
    take(10, 1, 3, 0, 40);
    take(10, 1, 3, 0, 60);
    settle(110);
    assert_int_equal(sums[0][3], 110);
    settle(90); /* more was sampled than counted: nothing is taken away */
    assert_int_equal(sums[0][3], 110);
}

static void test_left_out_threads_keep_their_rest(void **state)
{
    (void)state;
    take(10, 1, SND_STACK_LEFT_OUT, 1000, 30);
    take(11, 1, 3, 100, 10);
    settle(1100 + 40);
    assert_int_equal(sums[0][3], 100 + 10);
}

static void test_counters_apart(void **state)
{
    struct snd_event_sample other = {
        .tid = 10, .counter = 1, .event = 2, .stack = 3, .period = 1, .count = 5, .has_count = true
    };
    uint64_t counted[2] = { 110, 6 };

    (void)state;
    take(10, 1, 3, 100, 50);
    snd_stack_events_sample(&events, &other);
    snd_stack_events_settle(&events, counted, 2);
    assert_int_equal(sums[0][3], 110);
    assert_int_equal(sums[1][3], 6);
}

/* Whatever allocation fails, no sample is lost. */
static void test_out_of_memory(void **state)
{
    for (long left = 0; left < 12; left++) {
        set_up(state);
        allocations_left = left;
        for (uint32_t tid = 10; tid < 13; tid++) {
            take(tid, 1, tid % STACKS, 10, 10);
            take(tid, 1, 3, 20, 10);
            snd_stack_events_exit(&events, tid);
        }
        settle(60);
        allocations_left = -1;
        tear_down(state);
        assert_int_equal(samples[0][3] + samples[0][10] + samples[0][11] + samples[0][12], 6);
        uint64_t whole = 0;
        for (size_t i = 0; i < STACKS; i++)
            whole += sums[0][i];
        assert_in_range(whole, 60, 70); /* an interval at most is counted twice */
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_counts_are_believed_before_periods),
        TEST(test_threads_and_processors_count_apart),
        TEST(test_the_rest_goes_by_intervals),
        TEST(test_threads_without_a_sample_are_not_known),
        TEST(test_a_thread_number_is_used_again),
        TEST(test_without_counts_by_period),
        TEST(test_left_out_threads_keep_their_rest),
        TEST(test_counters_apart),
        cmocka_unit_test(test_out_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
