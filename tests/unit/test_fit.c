/* SPDX-License-Identifier: Apache-2.0 */
/* view/fit.c: lines truncated to the width of a terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "view/fit.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_that_fit_stay),
        cmocka_unit_test(longer_lines_are_cut_and_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
