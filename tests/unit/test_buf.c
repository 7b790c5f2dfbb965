/* SPDX-License-Identifier: Apache-2.0 */
/* base/text/buf.c: a growable buffer, and numbers written the same in every locale. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <locale.h>
#include <stdlib.h>

#include "base/text/buf.h"

static void grows_and_keeps_a_nul(void **state)
{
    struct sonde_buffer buf = { 0 };

    (void)state;
    assert_string_equal(snd_buf_string(&buf), "");
    for (int i = 0; i < 1000; i++)
        snd_buf_format(&buf, "%d,", i);
    assert_int_equal(buf.length, 3890);
    assert_int_equal(buf.bytes[buf.length], '\0');
    assert_string_equal(buf.bytes + buf.length - 8, "998,999,");
    snd_buf_clear(&buf);
    assert_string_equal(snd_buf_string(&buf), "");
    snd_buf_put(&buf, "a\0b", 3);
    assert_memory_equal(buf.bytes, "a\0b", 4);
    assert_false(buf.failed);
    sonde_buffer_release(&buf);
    assert_null(buf.bytes);
}

static void failure_sticks(void **state)
{
    struct sonde_buffer buf = { 0 };

    (void)state;
    snd_buf_text(&buf, "x");
    snd_buf_put(&buf, "", SIZE_MAX / 2);
    assert_true(buf.failed);
    snd_buf_text(&buf, "y");
    assert_string_equal(snd_buf_string(&buf), "x");
    sonde_buffer_release(&buf);
}

static void check_numbers(void)
{
    char text[SND_NUMBER_MAX];

    assert_string_equal(snd_number_fixed(text, 3, 1234.5678), "1234.568");
    assert_string_equal(snd_number_fixed(text, 2, -0.125), "-0.12");
    assert_string_equal(snd_number_fixed(text, 0, 12), "12");
    assert_int_equal(strlen(snd_number_fixed(text, 3, 1.7e308)), 313);
    assert_string_equal(snd_number_shortest(text, 0.1), "0.1");
    assert_string_equal(snd_number_shortest(text, 3), "3");
    assert_string_equal(snd_number_shortest(text, -1.5), "-1.5");
    assert_string_equal(snd_number_shortest(text, 1e300), "1e+300");
    assert_string_equal(snd_number_shortest(text, 5e-324), "4.94065645841247e-324");
}

static void numbers_read_back(void **state)
{
    static const double values[] = { 0.1, 1.0 / 3, 2.0 / 3, 1e-9, 123456789.123456789, 1e22 };
    char                text[SND_NUMBER_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        assert_true(strtod(snd_number_shortest(text, values[i]), NULL) == values[i]);
}

static void numbers_ignore_the_locale(void **state)
{
    (void)state;
    check_numbers();
    /* A locale with a decimal comma, where the machine has one. */
    if (setlocale(LC_NUMERIC, "de_DE.UTF-8") || setlocale(LC_NUMERIC, "fr_FR.UTF-8"))
        check_numbers();
    setlocale(LC_NUMERIC, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows_and_keeps_a_nul),
        cmocka_unit_test(failure_sticks),
        cmocka_unit_test(numbers_read_back),
        cmocka_unit_test(numbers_ignore_the_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
