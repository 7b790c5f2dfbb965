/* SPDX-License-Identifier: Apache-2.0 */
/* record/thread/pmc_page.h: the kernel's protocol for reading an event's page, over made-up pages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "record/thread/pmc_page.h"

static struct perf_event_mmap_page page;
static uint64_t                    cycles;
static uint32_t                    asked;        /* the counter that was read last */
static int                         disturbances; /* readings that the kernel interrupts yet */
static const uint64_t              counters[4] = { 7, 1000, 0xfffffffffff0, 0x800000000000 };

static uint64_t read_counter(uint32_t number)
{
    asked = number;
    if (disturbances >
        0) { /* another event had its turn: the counter's value is in the offset now */
        disturbances--;
        page.lock += 2;
        page.offset = 5000;
        page.index = 2;
        return UINT64_MAX;
    }
    return counters[number];
}

static uint64_t read_clock(void)
{
    return cycles;
}

static const struct snd_pmc_ways ways = { read_counter, read_clock };

static struct snd_pmc_value read_page(void)
{
    struct snd_pmc_value value = { 0, 0, 0 };

    if (!SND_PMC_THERE)
        skip();
    assert_true(snd_pmc_read(&page, &ways, &value));
    return value;
}

static int prepare(void **state)
{
    (void)state;
    memset(&page, 0, sizeof page);
    page.cap_user_rdpmc = 1;
    page.pmc_width = 48;
    disturbances = 0;
    return 0;
}

/* The value of the counter is added to what was counted before it was given to the event. */
static void adds_the_counter(void **state)
{
    (void)state;
    page.offset = 100;
    page.index = 2; /* counter 1 */
    assert_int_equal(read_page().count, 1100);
    assert_int_equal(asked, 1);
}

/* Counters begin below 0, and have fewer bits than 64. */
static void extends_the_sign(void **state)
{
    (void)state;
    page.offset = 1 << 20;
    page.index = 3; /* 0xfffffffffff0: -16 in 48 bits */
    assert_int_equal(read_page().count, (1 << 20) - 16);
    page.index = 4;
    page.offset = (int64_t)1 << 47;
    assert_int_equal(read_page().count, 0);
    assert_int_equal(snd_pmc_extend(0xf123, 12), 0x123);
    assert_int_equal((int64_t)snd_pmc_extend(0xf923, 12), -0x6dd);
    assert_int_equal(snd_pmc_extend(5, 0), 5);
    assert_int_equal((int64_t)snd_pmc_extend(UINT64_MAX, 64), -1);
}

/* An event that has no counter at the moment: what it has counted so far, and no counter is read. */
static void is_without_a_counter(void **state)
{
    (void)state;
    asked = 99;
    page.offset = 42;
    assert_int_equal(read_page().count, 42);
    assert_int_equal(asked, 99);
}

/* What the kernel changes in between is read again. */
static void reads_again(void **state)
{
    (void)state;
    page.offset = 1;
    page.index = 1;
    disturbances = 3;
    assert_int_equal(read_page().count, 6000);
    assert_int_equal(disturbances, 0);
}

/* Where events take turns the times go on by the processor's clock; running only with a counter. */
static void goes_on_with_the_times(void **state)
{
    (void)state;
    page.cap_user_time = 1;
    page.time_enabled = 1000;
    page.time_running = 400;
    page.time_offset = 50;
    page.time_mult = 3;
    page.time_shift = 1;
    cycles = 101; /* 151 ns: 50 x 3 and half of 1 x 3, and the offset */
    page.index = 1;
    struct snd_pmc_value value = read_page();
    assert_int_equal(value.enabled_ns, 1000 + 50 + 150 + 1);
    assert_int_equal(value.running_ns, 400 + 50 + 150 + 1);
    page.index = 0;
    value = read_page();
    assert_int_equal(value.enabled_ns, 1201);
    assert_int_equal(value.running_ns, 400);
    page.time_running = 1000; /* always on a counter: both are the same, and need no clock */
    value = read_page();
    assert_true(value.enabled_ns == 1000 && value.running_ns == 1000);
}

/* A clock of fewer bits: what it has gone on by since the page was written. */
static void wraps_a_short_clock(void **state)
{
    (void)state;
    page.cap_user_time = page.cap_user_time_short = 1;
    page.time_enabled = 10;
    page.time_mult = 1;
    page.time_cycles = 0xfffff0;
    page.time_mask = 0xffffff;
    cycles = 0x10;
    assert_int_equal(read_page().enabled_ns, 10 + 0xfffff0 + 0x20);
}

/* Not permitted to be read so: the descriptor is read. */
static void is_refused_without_the_capability(void **state)
{
    struct snd_pmc_value value;

    (void)state;
    page.cap_user_rdpmc = 0;
    page.index = 1;
    assert_false(snd_pmc_read(&page, &ways, &value));
}

static void scales_what_took_turns(void **state)
{
    static const struct {
        struct snd_pmc_value before, now;
        uint64_t             rise;
    } cases[] = {
        { { 100, 1000, 1000 }, { 150, 2000, 2000 }, 50 }, /* always counting */
        { { 100, 1000, 500 }, { 150, 2000, 1000 }, 100 }, /* half of the time */
        { { 100, 1000, 500 }, { 150, 5000, 1500 }, 200 }, /* a quarter */
        { { 100, 7, 7 }, { 150, 7, 7 }, 50 },             /* times that need not be read */
        { { 100, 1000, 500 }, { 100, 2000, 1000 }, 0 },
        { { 100, 1000, 500 }, { 99, 2000, 1000 }, 0 }, /* never falls */
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(snd_pmc_rise(&cases[i].before, &cases[i].now), cases[i].rise);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(adds_the_counter, prepare),
        cmocka_unit_test_setup(extends_the_sign, prepare),
        cmocka_unit_test_setup(is_without_a_counter, prepare),
        cmocka_unit_test_setup(reads_again, prepare),
        cmocka_unit_test_setup(goes_on_with_the_times, prepare),
        cmocka_unit_test_setup(wraps_a_short_clock, prepare),
        cmocka_unit_test_setup(is_refused_without_the_capability, prepare),
        cmocka_unit_test(scales_what_took_turns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
