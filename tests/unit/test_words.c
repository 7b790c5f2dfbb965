/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words for values of options, and the text of a schedule: what is taken, and what is said of the
 * rest.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <sonde/export.h>

#include "format/run/schedule_text.h"

static void test_every_word_has_its_value(void **state)
{
    (void)state;
    for (int list = SONDE_WORDS_FORMAT; list <= SONDE_WORDS_METRIC; list++) {
        const struct sonde_word *word;
        size_t                   count = 0;
        for (; (word = sonde_word((enum sonde_word_list)list, count)) != NULL; count++) {
            int value = -1;
            assert_int_equal(sonde_word_value((enum sonde_word_list)list, word->name, &value, NULL),
                             SONDE_OK);
            assert_int_equal(value, word->value);
        }
        assert_true(count >= 3);
    }
}

static void test_groups_are_joined(void **state)
{
    int                value = 0;
    struct sonde_error err = { 0 };

    (void)state;
    assert_int_equal(sonde_word_value(SONDE_WORDS_GROUP, "shape,thread", &value, &err), SONDE_OK);
    assert_int_equal(value, SONDE_GROUP_SHAPE | SONDE_GROUP_THREAD);
    value = 77;
    assert_int_equal(sonde_word_value(SONDE_WORDS_GROUP, "shape,tread", &value, &err),
                     SONDE_E_ARGUMENT);
    assert_int_equal(value, 77);
    assert_string_equal(err.message,
                        "unknown group 'tread' (did you mean 'thread'?); groups: shape, "
                        "stack, thread, process, module, overload, operator, grid, device, step");
    assert_int_equal(sonde_word_value(SONDE_WORDS_FORMAT, "text,json", &value, &err),
                     SONDE_E_ARGUMENT);
    assert_int_equal(sonde_word_value(SONDE_WORDS_FLOPS, "fast", &value, &err), SONDE_E_ARGUMENT);
    assert_string_equal(err.message, "expected full, torch or none, got 'fast'");
}

static void test_a_schedule_is_read(void **state)
{
    uint32_t    values[SND_SCHEDULE_FIELDS];
    const char *bad;

    (void)state;
    assert_true(snd_schedule_read("skip_first_wait=1,active=3,wait=4294967295", values, &bad));
    assert_int_equal(values[SND_SCHEDULE_skip_first_wait], 1);
    assert_int_equal(values[SND_SCHEDULE_skip_first], 0);
    assert_int_equal(values[SND_SCHEDULE_active], 3);
    assert_int_equal(values[SND_SCHEDULE_wait], UINT32_MAX);
}

static void test_a_schedule_is_refused(void **state)
{
    static const struct {
        const char *text, *bad; /* NULL: it lacks something */
    } cases[] = {
        { "", NULL },
        { "wait=1", NULL },
        { "active=0", NULL },
        { "active=1,", "" }, /* taken: a comma at the end */
        { "active=1,,wait=1", ",wait=1" },
        { "active=4294967296", "active=4294967296" },
        { "active=99999999999999999999999", "active=99999999999999999999999" },
        { "active=-1", "active=-1" },
        { "active= 1", "active= 1" },
        { "active", "active" },
        { "active=", "active=" },
        { "wait=1,actives=1", "actives=1" },
        { "wait=1,active=1x", "active=1x" },
    };
    uint32_t values[SND_SCHEDULE_FIELDS];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *bad = "?";
        bool        good = snd_schedule_read(cases[i].text, values, &bad);
        if (cases[i].bad && !*cases[i].bad) {
            assert_true(good);
            continue;
        }
        assert_false(good);
        if (cases[i].bad)
            assert_string_equal(bad, cases[i].bad);
        else
            assert_null(bad);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_word_has_its_value),
        cmocka_unit_test(test_groups_are_joined),
        cmocka_unit_test(test_a_schedule_is_read),
        cmocka_unit_test(test_a_schedule_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
