/* SPDX-License-Identifier: Apache-2.0 */
/* view/render/fit_lines.c: lines truncated to the width of a terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text/buf.h"
#include "view/render/fit_lines.h"

#define NOTE "Lines are truncated to 20 columns; --wide shows all of them.\n"

/* `text` written in pieces of three bytes. */
static void expect(const char *text, bool ascii, const char *expected)
{
    struct sonde_buffer buffer = { 0 };
    struct sonde_sink   sink = sonde_sink_buffer(&buffer);
    struct snd_line_fit fit;
    size_t              length = strlen(text);

    snd_fit_init(&fit, &sink, 20, ascii);
    for (size_t at = 0; at < length; at += 3)
        assert_true(fit.sink.write(fit.sink.user, text + at, length - at < 3 ? length - at : 3));
    assert_true(snd_fit_finish(&fit));
    assert_string_equal(buffer.bytes ? buffer.bytes : "", expected);
    sonde_buffer_release(&buffer);
}

static void lines_that_fit_stay(void **state)
{
    (void)state;
    expect("", false, "");
    expect("short\n\nno end", false, "short\n\nno end");
    expect("12345678901234567890\n", false, "12345678901234567890\n");
    expect("1234567890123456  \n", false, "1234567890123456  \n");
    expect("123456789012345678        \n", false, "123456789012345678\n"); /* blanks at the end */
    expect("\033[31m12345678901234567890\033[0m\n", false,
           "\033[31m12345678901234567890\033[0m\n"); /* colours take no room */
}

static void longer_lines_are_cut_and_said(void **state)
{
    (void)state;
    expect("123456789012345678901\nab\n", false, "1234567890123456789\xe2\x80\xa6\nab\n" NOTE);
    expect("123456789012345678901\n", true, "12345678901234567...\n" NOTE);
    expect("\033[31m123456789012345678901234\033[0m\n", false,
           "\033[31m1234567890123456789\xe2\x80\xa6\033[0m\n" NOTE);
    /* ten characters of two columns each fit; an eleventh does not */
    expect("\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5"
           "\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5x\n",
           false,
           "\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5"
           "\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5\xe2\x80\xa6\n" NOTE);
}

/* The bytes of a character in UTF-8. */
static size_t encode(uint32_t point, char *bytes)
{
    if (point < 0x80) {
        bytes[0] = (char)point;
        return 1;
    }
    size_t length = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    for (size_t i = length; i-- > 1; point >>= 6)
        bytes[i] = (char)(0x80 | (point & 0x3f));
    bytes[0] = (char)((0xf00 >> length & 0xff) | point);
    return length;
}

/* Whether 20 columns hold `letters` letters and the character after them. */
static bool fits(size_t letters, uint32_t point)
{
    char                text[64];
    struct sonde_buffer buffer = { 0 };
    struct sonde_sink   sink = sonde_sink_buffer(&buffer);
    struct snd_line_fit fit;

    memset(text, 'x', letters);
    size_t length = letters + encode(point, text + letters);
    snd_fit_init(&fit, &sink, 20, false);
    assert_true(fit.sink.write(fit.sink.user, text, length));
    assert_true(snd_fit_finish(&fit));
    bool whole = buffer.length == length && memcmp(buffer.bytes, text, length) == 0;
    assert_true(whole || strstr(buffer.bytes, NOTE));
    sonde_buffer_release(&buffer);
    return whole;
}

/* As terminals show them: accents on other letters take no column, East Asian letters and pictures take two. */
static void characters_have_their_columns(void **state)
{
    static const struct {
        uint32_t point;
        size_t   columns;
    } known[] = {
        { 'a', 1 },     { 0xe9, 1 },    { 0x2ff, 1 },   { 0x300, 0 },   { 0x301, 0 },
        { 0x36f, 0 },   { 0x370, 1 },   { 0x10ff, 1 },  { 0x1100, 2 },  { 0x115f, 2 },
        { 0x1160, 1 },  { 0x2e7f, 1 },  { 0x2e80, 2 },  { 0x65e5, 2 },  { 0xa4cf, 2 },
        { 0xa4d0, 1 },  { 0xabff, 1 },  { 0xac00, 2 },  { 0xd7a3, 2 },  { 0xd7a4, 1 },
        { 0xf8ff, 1 },  { 0xf900, 2 },  { 0xfaff, 2 },  { 0xfb00, 1 },  { 0xfe2f, 1 },
        { 0xfe30, 2 },  { 0xfe6f, 2 },  { 0xfe70, 1 },  { 0xfeff, 1 },  { 0xff00, 2 },
        { 0xff60, 2 },  { 0xff61, 1 },  { 0x1f2ff, 1 }, { 0x1f300, 2 }, { 0x1f64f, 2 },
        { 0x1f650, 1 }, { 0x1f67f, 1 }, { 0x1f680, 2 }, { 0x1f6ff, 2 }, { 0x1f700, 1 },
        { 0x1f8ff, 1 }, { 0x1f900, 2 }, { 0x1f9ff, 2 }, { 0x1fa00, 1 }, { 0x1ffff, 1 },
        { 0x20000, 2 }, { 0x3fffd, 2 }, { 0x3fffe, 1 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        size_t most = 20 - known[i].columns;
        if (!fits(most, known[i].point))
            fail_msg("U+%04X takes more than %zu columns", known[i].point, known[i].columns);
        if (most < 20 && fits(most + 1, known[i].point))
            fail_msg("U+%04X takes less than %zu columns", known[i].point, known[i].columns);
    }
    /* five letters with accents and fifteen without are twenty */
    expect("e\xcc\x81"
           "e\xcc\x81"
           "e\xcc\x81"
           "e\xcc\x81"
           "e\xcc\x81"
           "123456789012345\n",
           false,
           "e\xcc\x81"
           "e\xcc\x81"
           "e\xcc\x81"
           "e\xcc\x81"
           "e\xcc\x81"
           "123456789012345\n");
}

/* An escape sequence that never ends is no letter, and one letter after ESC is not a sequence. */
static void broken_escapes(void **state)
{
    (void)state;
    expect("12345678901234567890\033[31", false, "12345678901234567890\033[31");
    expect("12345678901234567890\033[31;1m\033[0K\n", false,
           "12345678901234567890\033[31;1m\033[0K\n");
}

/* Blanks at the end have no ink: they are not cut, whatever colour they are in. */
static void blanks_in_colour(void **state)
{
    (void)state;
    expect("\033[1m123456789012345678      \033[0m\n", false, "\033[1m123456789012345678\033[0m\n");
    expect("\033[1m1234567890123456789012    \033[0m\n", false,
           "\033[1m1234567890123456789\xe2\x80\xa6\033[0m\n" NOTE);
}

static void expect_path(const char *text, size_t path, size_t room, const char *expected)
{
    struct sonde_buffer name = { 0 };

    snd_buf_text(&name, text);
    snd_fit_path(&name, path, room, "...");
    assert_string_equal(snd_buf_string(&name), expected);
    sonde_buffer_release(&name);
}

/* The function's name stays whole; the path begins at a slash, if its last part fits. */
static void paths_are_shortened_from_the_left(void **state)
{
    (void)state;
    expect_path("/data/me/nets/net.py:7(forward)", 20, 25, ".../net.py:7(forward)");
    expect_path("/data/me/nets/net.py:7(forward)", 20, 26, ".../nets/net.py:7(forward)");
    expect_path("/home/me/long_name.py:7(f)", 21, 14, "...ame.py:7(f)");
    expect_path("/a/b.py:7(a_function_of_a_long_name)", 7, 16, "...:7(a_function_of_a_long_name)");
    expect_path("/\xc3\xa9\xc3\xa9/\xc3\xa9\xc3\xa9.py:7(f)", 13, 14,
                ".../\xc3\xa9\xc3\xa9.py:7(f)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_that_fit_stay),
        cmocka_unit_test(longer_lines_are_cut_and_said),
        cmocka_unit_test(characters_have_their_columns),
        cmocka_unit_test(broken_escapes),
        cmocka_unit_test(blanks_in_colour),
        cmocka_unit_test(paths_are_shortened_from_the_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
