/* SPDX-License-Identifier: Apache-2.0 */
/* base/data/sort.h and the order of texts in base/text/compare.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/text/compare.h"

static void numbers_rise_and_fall(void **state)
{
    (void)state;
    assert_int_equal(SND_RISING(1, 2), -1);
    assert_int_equal(SND_RISING(2, 2), 0);
    assert_int_equal(SND_RISING(UINT64_MAX, UINT64_C(1)), 1);
    assert_int_equal(SND_RISING(INT64_MIN, INT64_MAX), -1);
    assert_int_equal(SND_FALLING(1.5, 2.5), 1);
    assert_int_equal(SND_FALLING(2.5, 2.5), 0);
    assert_int_equal(SND_FALLING(3.5, 2.5), -1);
}

/* Each key against all that follow it, which say the opposite. */
static void earlier_keys_outweigh_later_ones(void **state)
{
    (void)state;
    for (int sign = -1; sign <= 1; sign += 2) {
        assert_true(SND_ORDER(sign) * sign > 0);
        assert_true(SND_ORDER(sign, -sign) * sign > 0);
        assert_true(SND_ORDER(sign, -sign, -sign) * sign > 0);
        assert_true(SND_ORDER(sign, -sign, -sign, -sign) * sign > 0);
        assert_true(SND_ORDER(0, sign, -sign, -sign) * sign > 0);
        assert_true(SND_ORDER(0, 0, sign, -sign) * sign > 0);
        assert_true(SND_ORDER(0, 0, 0, sign) * sign > 0);
    }
    assert_int_equal(SND_ORDER(0, 0, 0, 0), 0);
}

static int compare(const void *left, const void *right)
{
    const int *x = left, *y = right;

    return SND_FALLING(*x, *y);
}

static int never(const void *left, const void *right)
{
    (void)left, (void)right;
    fail();
    return 0;
}

static void sorts_what_is_there(void **state)
{
    int numbers[] = { 2, 9, 4 };

    (void)state;
    snd_sort(NULL, 0, sizeof numbers[0], never);
    snd_sort(numbers, 1, sizeof numbers[0], never);
    snd_sort(numbers, 2, sizeof numbers[0], compare);
    assert_memory_equal(numbers, ((int[]){ 9, 2, 4 }), sizeof numbers);
    snd_sort(numbers, 3, sizeof numbers[0], compare);
    assert_memory_equal(numbers, ((int[]){ 9, 4, 2 }), sizeof numbers);
}

static void texts_are_in_order(void **state)
{
    (void)state;
    assert_true(snd_order_at("ab", 2, "b", 1) < 0);
    assert_true(snd_order_at("b", 1, "ab", 2) > 0);
    assert_true(snd_order_at("a", 1, "ab", 2) < 0);
    assert_true(snd_order_at("ab", 2, "a", 1) > 0);
    assert_true(snd_order_at("", 0, "a", 1) < 0);
    assert_int_equal(snd_order_at("abx", 2, "aby", 2), 0);
    assert_int_equal(snd_order_at(NULL, 0, "a", 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_rise_and_fall),
        cmocka_unit_test(earlier_keys_outweigh_later_ones),
        cmocka_unit_test(sorts_what_is_there),
        cmocka_unit_test(texts_are_in_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
