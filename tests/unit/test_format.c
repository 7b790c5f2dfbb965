/* SPDX-License-Identifier: Apache-2.0 */
/* view/render/format.c: times, sizes and counts as text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "view/render/format.h"

#define EXPECT(call, expected)                              \
    do {                                                    \
        struct sonde_buffer  buf_ = { 0 };                  \
        struct sonde_buffer *buf = &buf_;                   \
        call;                                               \
        assert_string_equal(snd_buf_string(buf), expected); \
        sonde_buffer_release(buf);                          \
    } while (0)

/* Expected is what torch 2.15's _format_time, _format_memory and _format_time_share say. */
static void times_are_torchs(void **state)
{
    (void)state;
    EXPECT(snd_format_time(buf, 0, SONDE_TIME_AUTO), "0.000us");
    EXPECT(snd_format_time(buf, 999.9994, SONDE_TIME_AUTO), "999.999us");
    EXPECT(snd_format_time(buf, 999.9999, SONDE_TIME_AUTO), "1000.000us");
    EXPECT(snd_format_time(buf, 1000, SONDE_TIME_AUTO), "1.000ms");
    EXPECT(snd_format_time(buf, 1e6, SONDE_TIME_AUTO), "1.000s");
    EXPECT(snd_format_time(buf, 123456789.0, SONDE_TIME_AUTO), "123.457s");
    EXPECT(snd_format_time(buf, 1234.5, SONDE_TIME_US), "1234.500us");
    EXPECT(snd_format_time(buf, 1234.5, SONDE_TIME_MS), "1.234ms");
    EXPECT(snd_format_time(buf, 1234.5, SONDE_TIME_S), "0.001s");
}

static void bytes_are_torchs(void **state)
{
    (void)state;
    EXPECT(snd_format_bytes(buf, 0), "0 B");
    EXPECT(snd_format_bytes(buf, 1023), "1023 B");
    EXPECT(snd_format_bytes(buf, -1023), "-1023 B");
    EXPECT(snd_format_bytes(buf, 1024), "1.00 KB");
    EXPECT(snd_format_bytes(buf, -1536), "-1.50 KB");
    EXPECT(snd_format_bytes(buf, 1048576), "1.00 MB");
    EXPECT(snd_format_bytes(buf, (int64_t)5 << 30), "5.00 GB");
    EXPECT(snd_format_bytes(buf, INT64_MIN), "-8589934592.00 GB");
}

static void shares_are_torchs(void **state)
{
    (void)state;
    EXPECT(snd_format_share(buf, 12.344), "12.34%");
    EXPECT(snd_format_share(buf, 100), "100.00%");
    EXPECT(snd_format_share(buf, (double)NAN), "NaN");
}

static void counts_have_units_of_thousands(void **state)
{
    (void)state;
    EXPECT(snd_format_count(buf, 0), "0");
    EXPECT(snd_format_count(buf, 999), "999");
    EXPECT(snd_format_count(buf, 1000), "1.000 K");
    EXPECT(snd_format_count(buf, 4089184256.0), "4.089 G");
    EXPECT(snd_format_count(buf, 2e18), "2000.000 P");
}

static void flops_follow_the_smallest(void **state)
{
    static const struct {
        double      least, scale;
        const char *name;
    } cases[] = { { 1, 1, "FLOPs" },         { 999, 1, "FLOPs" },       { 1000, 1e-3, "KFLOPs" },
                  { 2e6, 1e-6, "MFLOPs" },   { 3e9, 1e-9, "GFLOPs" },   { 4e12, 1e-12, "TFLOPs" },
                  { 5e15, 1e-15, "PFLOPs" }, { 6e20, 1e-15, "PFLOPs" }, { 0.5, 1, "FLOPs" } };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct snd_flops_unit unit = snd_flops_unit(cases[i].least);
        assert_string_equal(unit.name, cases[i].name);
        assert_true(fabs(unit.scale / cases[i].scale - 1) < 1e-12);
    }
}

static void text_cannot_speak_to_a_terminal(void **state)
{
    (void)state;
    EXPECT(snd_format_text(buf, "a\nb\tc\r", 6), "a\\nb\\tc\\r");
    EXPECT(snd_format_text(buf, "\x1b[31m\0\x7f", 7), "\\x1b[31m\\x00\\x7f");
    EXPECT(snd_format_text(buf, "\xff\xc3\xa9\xf0\x9f\x9a\x80", 7),
           "\\xff\xc3\xa9\xf0\x9f\x9a\x80");
    EXPECT(snd_format_text(buf, "\xc2\x9b", 2), "\\x9b"); /* CSI as one character */
    /* marks of direction, characters without width, soft hyphen, language tag, line separator */
    EXPECT(snd_format_text(buf,
                           "a\xe2\x80\xae"
                           "b",
                           5),
           "a\\u202eb");
    EXPECT(snd_format_text(buf, "\xe2\x80\x8b\xef\xbb\xbf\xc2\xad", 8), "\\u200b\\ufeff\\u00ad");
    EXPECT(snd_format_text(buf, "\xf3\xa0\x80\x81\xe2\x80\xa8", 7), "\\U000e0001\\u2028");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_are_torchs),
        cmocka_unit_test(bytes_are_torchs),
        cmocka_unit_test(shares_are_torchs),
        cmocka_unit_test(counts_have_units_of_thousands),
        cmocka_unit_test(flops_follow_the_smallest),
        cmocka_unit_test(text_cannot_speak_to_a_terminal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
