/* SPDX-License-Identifier: Apache-2.0 */
/* cli/options/option_help.c: the help of a command, wrapped and in groups. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/options/option_help.h"
#include "cli/options/options.h"

#define LONG                                                                              \
    "this text is longer than what is left of a line of one hundred columns, so that it " \
    "continues below itself"
#define UNBROKEN                                                                              \
    "wait=N,warmup=N,active=N,repeat=N,skip_first=N,skip_first_wait=N,wait=N,warmup=N,active" \
    "=N,repeat=N"

static const struct snd_option table[] = {
    { 'o', "output", "FILE", "short", SND_OPTION_TEXT, 0, 0 },
    { 0, "long", NULL, LONG, SND_OPTION_FLAG, 0, 0 },
    { 0, "list", "[=WORDS]", "steps: " UNBROKEN, SND_OPTION_WORDS, 0, 0 },
};
static const struct snd_option_group groups[] = { { "long", "others" }, { NULL, NULL } };

static char *print_help(const struct snd_command *command)
{
    char  *text = NULL;
    size_t length = 0;
    FILE  *out = open_memstream(&text, &length);

    assert_non_null(out);
    snd_command_help(command, out);
    fclose(out);
    return text;
}

static void options_are_wrapped_and_grouped(void **state)
{
    const struct snd_command command = {
        .name = "toy",
        .operands = "[TRACE]",
        .summary = "do something",
        .options = table,
        .option_count = SND_COUNT_OF(table),
        .groups = groups,
    };
    char *text = print_help(&command);

    (void)state;
    assert_string_equal(
        text, "usage: sonde toy [OPTIONS] [TRACE]\n\ndo something\n"
              "\noptions:\n"
              "  -o, --output FILE   short\n"
              "\nothers:\n"
              "      --long          this text is longer than what is left of a line of one "
              "hundred columns, so\n"
              "                      that it continues below itself\n"
              "      --list[=WORDS]  steps:\n"
              "                      " UNBROKEN "\n");
    free(text);
}

static void a_command_without_options_has_none(void **state)
{
    const struct snd_command command = { .name = "toy", .operands = "", .summary = "do nothing" };
    char                    *text = print_help(&command);

    (void)state;
    assert_string_equal(text, "usage: sonde toy\n\ndo nothing\n");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_are_wrapped_and_grouped),
        cmocka_unit_test(a_command_without_options_has_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
