/* SPDX-License-Identifier: Apache-2.0 */
/* base/text/utf8.c: stepping through bytes that may not be UTF-8. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text/utf8.h"

static const struct {
    const char *bytes;
    size_t      length, step;
    uint32_t    point;
} cases[] = {
    { "a", 1, 1, 'a' },
    { "\x7f", 1, 1, 0x7f },
    { "\xc2\x80", 2, 2, 0x80 },
    { "\xdf\xbf", 2, 2, 0x7ff },
    { "\xe0\xa0\x80", 3, 3, 0x800 },
    { "\xef\xbf\xbf", 3, 3, 0xffff },
    { "\xf0\x9f\x9a\x80", 4, 4, 0x1f680 },
    { "\xf4\x8f\xbf\xbf", 4, 4, 0x10ffff },
    { "\x80", 1, 0, 0 },                 /* a tail alone */
    { "\xc3", 1, 0, 0 },                 /* cut */
    { "\xe4\xb8", 2, 0, 0 },             /* cut */
    { "\xf0\x9f\x9a\x80", 3, 0, 0 },     /* the last byte is not ours to read */
    { "\xc3(", 2, 0, 0 },                /* no tail */
    { "\xc0\xaf", 2, 0, 0 },             /* overlong */
    { "\xe0\x80\xaf", 3, 0, 0 },         /* overlong */
    { "\xf0\x80\x80\xaf", 4, 0, 0 },     /* overlong */
    { "\xed\xa0\x80", 3, 0, 0 },         /* surrogate */
    { "\xf4\x90\x80\x80", 4, 0, 0 },     /* past the last */
    { "\xf8\x88\x80\x80\x80", 5, 0, 0 }, /* five bytes */
    { "\xff", 1, 0, 0 },
};

static void steps(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t point = 0;
        assert_int_equal(snd_utf8_next(cases[i].bytes, cases[i].length, &point), cases[i].step);
        assert_int_equal(point, cases[i].point);
    }
}

static void counts_and_cuts(void **state)
{
    static const char text[] = "a\xc3\xa9\xff\xf0\x9f\x9a\x80z";

    (void)state;
    assert_int_equal(snd_utf8_count(text, sizeof text - 1), 5);
    assert_int_equal(snd_utf8_count("", 0), 0);
    assert_int_equal(snd_utf8_prefix(text, sizeof text - 1, 0), 0);
    assert_int_equal(snd_utf8_prefix(text, sizeof text - 1, 2), 3);
    assert_int_equal(snd_utf8_prefix(text, sizeof text - 1, 4), 8);
    assert_int_equal(snd_utf8_prefix(text, sizeof text - 1, 99), 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps),
        cmocka_unit_test(counts_and_cuts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
