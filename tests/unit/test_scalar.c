/* SPDX-License-Identifier: Apache-2.0 */
/* pipe/yaml/scalar.c: scalars of YAML 1.1. */
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pipe/yaml/scalar.h"

static struct snd_node resolve(const char *text)
{
    struct snd_node node = { .text = text, .length = strlen(text) };

    snd_scalar_resolve(&node);
    return node;
}

/* What PyYAML 6.0's safe loader makes of each. */
static void knows_kinds(void **state)
{
    static const struct {
        const char        *text;
        enum snd_node_kind kind;
        double             value;
    } cases[] = {
        { "yes", SND_NODE_BOOL, 1 },
        { "Off", SND_NODE_BOOL, 0 },
        { "yEs", SND_NODE_TEXT, 0 },
        { "y", SND_NODE_TEXT, 0 },
        { "~", SND_NODE_NULL, 0 },
        { "", SND_NODE_NULL, 0 },
        { "Null", SND_NODE_NULL, 0 },
        { "nULL", SND_NODE_TEXT, 0 },
        { "0", SND_NODE_INT, 0 },
        { "-0", SND_NODE_INT, 0 },
        { "+12", SND_NODE_INT, 12 },
        { "-7", SND_NODE_INT, -7 },
        { "1_000", SND_NODE_INT, 1000 },
        { "010", SND_NODE_INT, 8 },
        { "08", SND_NODE_TEXT, 0 },
        { "0x1F", SND_NODE_INT, 31 },
        { "-0b101", SND_NODE_INT, -5 },
        { "0x", SND_NODE_TEXT, 0 },
        { "0b2", SND_NODE_TEXT, 0 },
        { "1:30", SND_NODE_INT, 90 },
        { "-2:0:1", SND_NODE_INT, -7201 },
        { "1:60", SND_NODE_TEXT, 0 },
        { "1:", SND_NODE_TEXT, 0 },
        { "0:30", SND_NODE_TEXT, 0 },
        { "1.5", SND_NODE_REAL, 1.5 },
        { "1.", SND_NODE_REAL, 1 },
        { ".5", SND_NODE_REAL, 0.5 },
        { "-.5", SND_NODE_TEXT, 0 },
        { "1_0.2_5", SND_NODE_REAL, 10.25 },
        { "1.0e-05", SND_NODE_REAL, 1e-5 },
        { "1.0E+3", SND_NODE_REAL, 1000 },
        { "1.0e3", SND_NODE_TEXT, 0 },
        { "1e-05", SND_NODE_TEXT, 0 },
        { "1e5", SND_NODE_TEXT, 0 },
        { "1.0e-", SND_NODE_TEXT, 0 },
        { "1:30.5", SND_NODE_REAL, 90.5 },
        { "0.5.1", SND_NODE_TEXT, 0 },
        { ".", SND_NODE_TEXT, 0 },
        { "-", SND_NODE_TEXT, 0 },
        { "+", SND_NODE_TEXT, 0 },
        { ".inf", SND_NODE_REAL, INFINITY },
        { "-.INF", SND_NODE_REAL, -INFINITY },
        { "inf", SND_NODE_TEXT, 0 },
        { "2024-01-31", SND_NODE_STAMP, 0 },
        { "2024-1-3", SND_NODE_TEXT, 0 },
        { "2024-1-3 4:05:06.7 +1:00", SND_NODE_STAMP, 0 },
        { "2024-1-3T4:05:06Z", SND_NODE_STAMP, 0 },
        { "2024-01-31 x", SND_NODE_TEXT, 0 },
        { "torch.float32", SND_NODE_TEXT, 0 },
        { "192.168.0.1", SND_NODE_TEXT, 0 },
        { "google/vit-base-patch16-224", SND_NODE_TEXT, 0 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct snd_node node = resolve(cases[i].text);
        double          value = node.kind == SND_NODE_BOOL ? (double)node.integer : node.real;
        if (node.kind != cases[i].kind || value != cases[i].value)
            fail_msg("'%s' is of kind %d, value %g", cases[i].text, (int)node.kind, value);
        if (node.kind == SND_NODE_INT)
            assert_int_equal(node.integer, (int64_t)cases[i].value);
    }
    assert_true(isnan(resolve(".NaN").real));
    assert_int_equal(resolve("+.nan").kind, SND_NODE_TEXT);
}

/* Longer than any number is written: all of it counts, or it is none. */
static void never_cuts_a_real(void **state)
{
    char text[1024];

    (void)state;
    snprintf(text, sizeof text, "1%0700d.0e-700", 0);
    assert_int_equal(resolve(text).kind, SND_NODE_REAL);
    assert_true(resolve(text).real == 1);
    snprintf(text, sizeof text, "-1%0700d.0e-0700", 0);
    assert_true(resolve(text).real == -1);
    snprintf(text, sizeof text, "1_%0700d.0e-700", 0);
    assert_int_equal(resolve(text).kind, SND_NODE_TEXT);
    snprintf(text, sizeof text, "1_%0500d.0e-500", 0);
    assert_true(resolve(text).real == 1);
}

static void knows_the_ends_of_integers(void **state)
{
    (void)state;
    assert_true(resolve("9223372036854775807").in_range);
    assert_int_equal(resolve("9223372036854775807").integer, INT64_MAX);
    assert_false(resolve("9223372036854775808").in_range);
    assert_true(resolve("-9223372036854775808").in_range);
    assert_int_equal(resolve("-9223372036854775808").integer, INT64_MIN);
    assert_false(resolve("-9223372036854775809").in_range);
    assert_false(resolve("99999999999999999999999999").in_range);
    assert_true(resolve("99999999999999999999999999").real > 9.9e25);
    assert_false(resolve("99999999999999999999:59").in_range);
    assert_false(resolve("0xFFFFFFFFFFFFFFFFF").in_range);
}

static void tells_near_numbers(void **state)
{
    (void)state;
    assert_true(snd_scalar_is_near_number("1e-05", 5));
    assert_true(snd_scalar_is_near_number("-3.5e2", 6));
    assert_false(snd_scalar_is_near_number("fast", 4));
    assert_false(snd_scalar_is_near_number("inf", 3));
    assert_false(snd_scalar_is_near_number("", 0));
    assert_true(snd_scalar_is_special("=", 1));
    assert_true(snd_scalar_is_special("<<", 2));
    assert_true(snd_scalar_is_special("12", 2));
    assert_false(snd_scalar_is_special("1e-05", 5));
}

/* As repr() of Python, with the full stop that PyYAML adds. */
static void writes_reals(void **state)
{
    static const struct {
        double      value;
        const char *text;
    } cases[] = {
        { 0.0, "0.0" },
        { -0.0, "-0.0" },
        { 1.0, "1.0" },
        { 10, "10.0" },
        { 0.1, "0.1" },
        { 1e-5, "1.0e-05" },
        { 1.5e-5, "1.5e-05" },
        { 0.0001, "0.0001" },
        { 123456789012345.0, "123456789012345.0" },
        { 1e15, "1000000000000000.0" },
        { 1e16, "1.0e+16" },
        { 1.7976931348623157e308, "1.7976931348623157e+308" },
        { 5e-324, "5.0e-324" },
        { 2.2250738585072014e-308, "2.2250738585072014e-308" },
        { 26.808319999999995, "26.808319999999995" },
        { 0.37087414264678953, "0.37087414264678953" },
        { 5.684341886080802e-14, "5.684341886080802e-14" }, /* 2^-44: next to its border */
        { 9007199254740993.0, "9007199254740992.0" },
        { -2.5, "-2.5" },
        { INFINITY, ".inf" },
        { -INFINITY, "-.inf" },
        { NAN, ".nan" },
    };
    char text[SND_REAL_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snd_real_text(text, cases[i].value);
        assert_string_equal(text, cases[i].text);
    }
}

static void reads_back_what_it_writes(void **state)
{
    uint64_t bits = 88172645463325252u;
    char     text[SND_REAL_MAX];

    (void)state;
    for (int i = 0; i < 2000; i++) {
        double value;
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value))
            continue;
        snd_real_text(text, value);
        struct snd_node node = resolve(text);
        assert_int_equal(node.kind, SND_NODE_REAL);
        if (memcmp(&node.real, &value, sizeof value) != 0)
            fail_msg("%.17g is written %s", value, text);
    }
}

/* A program may have set a locale with another decimal mark. */
static void is_the_same_in_every_locale(void **state)
{
    static const char *const names[] = { "de_DE.UTF-8", "fr_FR.UTF-8", "C.UTF-8" };
    char                     text[SND_REAL_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (!setlocale(LC_ALL, names[i]))
            continue;
        snd_real_text(text, 0.15625);
        assert_string_equal(text, "0.15625");
        assert_true(resolve("2.5").real == 2.5);
    }
    setlocale(LC_ALL, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_kinds),
        cmocka_unit_test(never_cuts_a_real),
        cmocka_unit_test(knows_the_ends_of_integers),
        cmocka_unit_test(tells_near_numbers),
        cmocka_unit_test(writes_reals),
        cmocka_unit_test(reads_back_what_it_writes),
        cmocka_unit_test(is_the_same_in_every_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
