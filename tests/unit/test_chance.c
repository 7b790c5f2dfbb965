/* SPDX-License-Identifier: Apache-2.0 */
/* model/ranks/chance.c: blocks of amounts, merged when there are many, and what chance gives a rank. */
#include "model/ranks/chance.h"

#include "scratch.h"

static void counts_blocks_and_sums(void **state)
{
    struct snd_blocks b;
    uint32_t          any;

    (void)state;
    assert_true(snd_blocks_init(&b, 2));
    snd_blocks_add(&b, 0, 5); /* begins the first */
    snd_blocks_add(&b, 2, 7); /* of no rank */
    snd_blocks_next(&b);
    snd_blocks_next(&b);
    snd_blocks_add(&b, 1, 1);
    snd_blocks_add(&b, 0, 3);
    snd_blocks_add(&b, 0, 4);
    assert_int_equal(b.count, 3);
    assert_int_equal(snd_blocks_sum(&b, 0), 12);
    assert_int_equal(snd_blocks_sum(&b, 1), 1);
    assert_int_equal(snd_blocks_with(&b, 0, &any), 2);
    assert_int_equal(any, 2);
    assert_int_equal(snd_blocks_with(&b, 1, &any), 1);
    snd_blocks_next(&b);
    snd_blocks_add(&b, 1, 1); /* the least that is something, of one rank alone */
    assert_int_equal(snd_blocks_with(&b, 0, &any), 2);
    assert_int_equal(any, 3);
    assert_int_equal(snd_blocks_with(&b, 1, &any), 2);
    snd_blocks_clear(&b);
    assert_int_equal(b.count, 0);
    assert_int_equal(b.begun, 0);
    assert_int_equal(b.fold, 1);
    snd_blocks_next(&b);
    assert_int_equal(snd_blocks_sum(&b, 0), 0);
    snd_blocks_release(&b);
    snd_blocks_release(&b); /* nothing is left to release */
}

/* Block i has i, so that each place shows what was merged into it. */
static void merges_neighbours(void **state)
{
    struct snd_blocks b;

    (void)state;
    assert_true(snd_blocks_init(&b, 2));
    for (uint32_t i = 0; i < SND_BLOCKS_MAX; i++) {
        snd_blocks_next(&b);
        snd_blocks_add(&b, 1, i);
    }
    assert_int_equal(b.count, SND_BLOCKS_MAX);
    assert_int_equal(b.fold, 1);
    snd_blocks_next(&b);
    assert_int_equal(b.count, SND_BLOCKS_MAX / 2 + 1);
    assert_int_equal(b.fold, 2);
    for (uint32_t i = 0; i < SND_BLOCKS_MAX / 2; i++) {
        assert_int_equal(b.amounts[2 * i], 0);
        assert_int_equal(b.amounts[2 * i + 1], 4 * i + 1);
    }
    for (uint32_t i = 2 * (SND_BLOCKS_MAX / 2); i < 2 * SND_BLOCKS_MAX; i++)
        assert_int_equal(b.amounts[i], 0);
    snd_blocks_next(&b); /* the second of two that make one */
    assert_int_equal(b.count, SND_BLOCKS_MAX / 2 + 1);
    snd_blocks_next(&b);
    assert_int_equal(b.count, SND_BLOCKS_MAX / 2 + 2);
    snd_blocks_clear(&b); /* begins anew, one block at a time */
    snd_blocks_next(&b);
    snd_blocks_next(&b);
    assert_int_equal(b.count, 2);
    snd_blocks_release(&b);
}

static void chance_is_known_where_it_is_plain(void **state)
{
    struct snd_blocks b;

    (void)state;
    assert_true(snd_blocks_init(&b, 4));
    snd_blocks_add(&b, 0, 1); /* the least that there is: some rank always has it */
    assert_true(snd_blocks_chance(&b, 1) == 1.0);
    assert_true(snd_blocks_chance(&b, 2) == 1.0 / 2000);
    snd_blocks_add(&b, 1, -5); /* does not count */
    assert_true(snd_blocks_chance(&b, 1) == 1.0);
    snd_blocks_next(&b);
    snd_blocks_add(&b, 0, 1);
    snd_blocks_next(&b);
    snd_blocks_add(&b, 0, 1);
    double all = snd_blocks_chance(&b, 3), two = snd_blocks_chance(&b, 2);
    assert_true(all > 0.04 && all < 0.09);                    /* 1 of 16 */
    assert_true(two > 0.58 && two < 0.68);                    /* 10 of 16 */
    assert_true(all == 135.0 / 2000 && two == 1272.0 / 2000); /* as its draws have it, everywhere */
    assert_true(snd_blocks_chance(&b, 1) == 1.0);
    snd_blocks_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_blocks_and_sums),
        cmocka_unit_test(merges_neighbours),
        cmocka_unit_test(chance_is_known_where_it_is_plain),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
