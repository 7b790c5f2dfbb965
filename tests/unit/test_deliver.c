/* SPDX-License-Identifier: Apache-2.0 */
/* read/walk/deliver.c: what of a thread is shown once the warm-up is over. */
#include "read/walk/deliver.h"

#include "scratch.h"

struct thread {
    struct snd_process     process;
    struct snd_walk_thread thread;
};

static bool shown(struct thread *t, uint64_t raw, uint8_t kind, uint64_t word1)
{
    t->thread.last_raw = raw;
    return snd_deliver_is_shown(&t->process, &t->thread, kind, word1);
}

static void check(const struct thread *t, uint64_t open, uint64_t hidden)
{
    assert_int_equal(t->thread.open, open);
    assert_int_equal(t->thread.hidden, hidden);
}

#define WARM 49u
#define OVER 50u

/* A range that began in the warm-up is not shown, nor is its end; one inside it that began later is. */
static void ranges_of_the_warm_up(void **state)
{
    struct thread t = { .process = { .valid_from = OVER } };

    (void)state;
    assert_false(shown(&t, WARM, SND_EV_BEGIN, 0));
    assert_false(shown(&t, WARM, SND_EV_BEGIN, 0));
    check(&t, 0, 2);
    assert_false(shown(&t, WARM, SND_EV_END, 0));
    check(&t, 0, 1);
    assert_false(shown(&t, WARM, SND_EV_MARK, 0));
    assert_true(shown(&t, OVER, SND_EV_MARK, 0));
    assert_false(shown(&t, OVER, SND_EV_ATTR, 0)); /* of the hidden range */
    assert_true(shown(&t, OVER, SND_EV_BEGIN, 0));
    check(&t, 1, 1);
    assert_true(shown(&t, OVER, SND_EV_ATTR, 0));
    assert_true(shown(&t, OVER, SND_EV_ATTR64, 0));
    assert_false(shown(&t, WARM, SND_EV_ATTR64, 0));
    assert_true(shown(&t, OVER, SND_EV_END, 0));
    check(&t, 0, 1);
    assert_false(shown(&t, OVER, SND_EV_END, 0));
    check(&t, 0, 0);
    assert_true(shown(&t, OVER, SND_EV_END, 0)); /* of nothing: for the reader to count */
    assert_true(shown(&t, OVER, SND_EV_ATTR, 0));
}

/* Which of the open ones ends, counted from the inside. */
static void ends_out_of_order(void **state)
{
    static const struct {
        uint64_t inside;
        bool     shown;
        uint64_t open, hidden;
    } cases[] = { { 0, true, 1, 2 },  { 1, true, 1, 2 }, { 2, false, 2, 1 },
                  { 3, false, 2, 1 }, { 4, true, 2, 2 }, { 9, true, 2, 2 } };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct thread t = { .process = { .valid_from = OVER } };
        t.thread.open = t.thread.hidden = 2;
        if (shown(&t, OVER, SND_EV_END_AT, cases[i].inside) != cases[i].shown)
            fail_msg("%u inside", (unsigned)cases[i].inside);
        check(&t, cases[i].open, cases[i].hidden);
    }
}

/* A gap in which ranges ended: the inner ones, and no more than are open. */
static void gaps_end_ranges(void **state)
{
    static const struct {
        uint64_t ends, open, hidden;
    } cases[] = { { 0, 2, 3 }, { 1, 1, 3 }, { 2, 0, 3 }, { 3, 0, 2 }, { 5, 0, 0 }, { 6, 0, 0 } };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (uint64_t raw = WARM; raw <= OVER; raw++) {
            struct thread t = { .process = { .valid_from = OVER } };
            t.thread.open = 2;
            t.thread.hidden = 3;
            assert_int_equal(shown(&t, raw, SND_EV_GAP, cases[i].ends << 32 | 99), raw == OVER);
            check(&t, cases[i].open, cases[i].hidden);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_of_the_warm_up),
        cmocka_unit_test(ends_out_of_order),
        cmocka_unit_test(gaps_end_ranges),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
