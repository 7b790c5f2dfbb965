/* SPDX-License-Identifier: Apache-2.0 */
/* model/ranges/live_memory.c: live memory during a walk by time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "format/layout.h"
#include "model/ranges/live_memory.h"
#include "sonde/trace.h"

static int64_t step(struct snd_live *live, enum sonde_event_kind kind, uint32_t device,
                    uint64_t address, uint64_t size, int64_t expected_total)
{
    const uint64_t words[4] = { kind == SONDE_EVENT_ALLOC ? SND_EV_ALLOC : SND_EV_FREE, device,
                                address, size };
    struct snd_live_change change = snd_live_event(live, 0, words);

    assert_int_equal(change.total, expected_total);
    return change.held;
}

static void follows_what_is_held(void **state)
{
    struct snd_live live = { 0 };

    (void)state;
    assert_int_equal(step(&live, SONDE_EVENT_FREE, 0, 0x900, 64, 0), 0); /* not seen taken */
    assert_int_equal(step(&live, SONDE_EVENT_ALLOC, 0, 0x100, 10, 10), 10);
    assert_int_equal(step(&live, SONDE_EVENT_ALLOC, 1, 0x100, 7, 7), 7); /* another device */
    assert_int_equal(step(&live, SONDE_EVENT_ALLOC, 0, 0x200, 20, 30), 20);
    assert_int_equal(step(&live, SONDE_EVENT_FREE, 0, 0x100, 0, 20), -10); /* size not told */
    assert_int_equal(step(&live, SONDE_EVENT_FREE, 0, 0x100, 10, 20), 0);  /* twice */
    assert_int_equal(step(&live, SONDE_EVENT_ALLOC, 0, 0x200, 5, 5), -15); /* its free was lost */
    assert_int_equal(step(&live, SONDE_EVENT_FREE, 1, 0x100, 7, 0), -7);
    assert_int_equal(step(&live, SONDE_EVENT_FREE, 0, 0x200, 5, 0), -5);
    assert_false(live.failed);
    snd_live_release(&live);
}

/* What counts for a range is what the event tells, or else what was held there. */
static void knows_what_counts(void **state)
{
    const uint64_t take[4] = { SND_EV_ALLOC, 0, 0x100, 10 }, give[4] = { SND_EV_FREE, 0, 0x100, 0 };
    const uint64_t other[4] = { SND_EV_FREE, 0, 0x200, 8 };
    struct snd_live live = { 0 };

    (void)state;
    assert_int_equal(snd_live_event(&live, 0, take).counted, 10);
    assert_int_equal(snd_live_event(&live, 0, give).counted, -10);
    assert_false(snd_live_event(&live, 0, give).known);
    assert_int_equal(live.unmatched, 1);
    assert_int_equal(snd_live_event(&live, 0, other).counted, -8); /* taken before the recording */
    assert_int_equal(live.unmatched, 1);
    snd_live_release(&live);
}

static void reuses_its_places(void **state)
{
    struct snd_live live = { 0 };

    (void)state;
    for (uint64_t i = 0; i < 10000; i++) {
        step(&live, SONDE_EVENT_ALLOC, 0, i, 8, 8);
        step(&live, SONDE_EVENT_FREE, 0, i, 8, 0);
    }
    assert_true(live.size_count <= 1);
    snd_live_release(&live);
}

static void absurd_sizes_are_harmless(void **state)
{
    struct snd_live live = { 0 };

    (void)state;
    for (uint64_t i = 0; i < 20; i++) {
        const uint64_t words[4] = { SND_EV_ALLOC, 0, i, UINT64_MAX };
        assert_int_equal(snd_live_event(&live, 0, words).counted, 0);
    }
    snd_live_release(&live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(follows_what_is_held),
        cmocka_unit_test(knows_what_counts),
        cmocka_unit_test(reuses_its_places),
        cmocka_unit_test(absurd_sizes_are_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
