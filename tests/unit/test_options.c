/* SPDX-License-Identifier: Apache-2.0 */
/* cli/options/options.c: option parsing and its errors. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/options/options.h"

struct values {
    bool        flag;
    const char *text;
    int64_t     number;
    uint64_t    size;
    int64_t     maybe;
    const char *words, *list;
};

static const struct snd_option table[] = {
    { 'f', "flag", NULL, "a flag", SND_OPTION_FLAG, offsetof(struct values, flag), 0 },
    { 't', "text", "TEXT", "a text", SND_OPTION_TEXT, offsetof(struct values, text), 0 },
    { 0, "number", "N", "a number", SND_OPTION_NUMBER, offsetof(struct values, number), -1 },
    { 's', "size", "SIZE", "a size", SND_OPTION_SIZE, offsetof(struct values, size), 0 },
    { 'm', "maybe", "[HZ]", "a number or none", SND_OPTION_MAYBE, offsetof(struct values, maybe),
      0 },
    { 0, "words", "[=LIST]", "words or none", SND_OPTION_WORDS, offsetof(struct values, words), 0 },
    { 'l', "list", "LIST", "a list", SND_OPTION_LIST, offsetof(struct values, list), 0 },
};
static const struct snd_command plain = {
    .name = "plain",
    .operands = "",
    .summary = "",
    .options = table,
    .option_count = SND_COUNT_OF(table),
};
static const struct snd_command runs = {
    .name = "runs",
    .operands = "",
    .summary = "",
    .options = table,
    .option_count = SND_COUNT_OF(table),
    .program_follows = true,
};

/* Splits at blanks and parses. */
static int parse(const struct snd_command *command, const char *line, struct values *values,
                 char **words, int *operands)
{
    static char text[256];
    int         count = 0;
    char       *save = NULL;

    memset(values, 0, sizeof *values);
    snprintf(text, sizeof text, "command %s", line);
    for (char *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save))
        words[count++] = word;
    return snd_options_parse(command, count, words, values, operands);
}

static void reads_every_form(void **state)
{
    struct values values;
    char         *words[32];
    int           operands;

    (void)state;
    assert_int_equal(parse(&plain, "a -f --text=x b --number -1 -s2G c", &values, words, &operands),
                     -1);
    assert_true(values.flag);
    assert_string_equal(values.text, "x");
    assert_int_equal(values.number, -1);
    assert_int_equal(values.size, (uint64_t)2 << 30);
    assert_int_equal(operands, 3);
    assert_string_equal(words[0], "a");
    assert_string_equal(words[2], "c");

    assert_int_equal(parse(&plain, "-t-- -- -f -", &values, words, &operands), -1);
    assert_string_equal(values.text, "--");
    assert_false(values.flag);
    assert_int_equal(operands, 2);
    assert_string_equal(words[0], "-f");
    assert_string_equal(words[1], "-");
}

static void a_number_may_be_left_out(void **state)
{
    static const struct {
        const char *line;
        int64_t     maybe;
        int         operands;
    } cases[] = {
        { "--maybe prog", -1, 1 },   { "--maybe 250 prog", 250, 1 }, { "--maybe=250 prog", 250, 1 },
        { "-m -f prog 7", -1, 2 },   { "-m9 prog", 9, 1 },           { "prog --maybe", -1, 1 },
        { "--maybe -- 250", -1, 1 }, { "--maybe 2x", -1, 1 },        { "prog", 0, 1 },
    };
    struct values values;
    char         *words[32];
    int           operands;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(parse(&plain, cases[i].line, &values, words, &operands), -1);
        assert_int_equal(values.maybe, cases[i].maybe);
        assert_int_equal(operands, cases[i].operands);
    }
}

static void lists_add_up(void **state)
{
    struct values values = { 0 };
    char         *words[32];
    int           operands;

    (void)state;
    assert_int_equal(parse(&plain, "--list a,b", &values, words, &operands), -1);
    assert_string_equal(values.list, "a,b");
    assert_int_equal(parse(&plain, "--list a,b -lc prog --list=d", &values, words, &operands), -1);
    assert_string_equal(values.list, "a,b,c,d");
    assert_int_equal(parse(&plain, "--words --words=x --words --words=y,z", &values, words,
                           &operands),
                     -1);
    assert_string_equal(values.words, "x,y,z");
    assert_int_equal(parse(&plain, "--text a --text b", &values, words, &operands), -1);
    assert_string_equal(values.text, "b");
}

static void words_may_be_left_out(void **state)
{
    struct values values;
    char         *words[32];
    int           operands;

    (void)state;
    assert_int_equal(parse(&plain, "--words prog", &values, words, &operands), -1);
    assert_string_equal(values.words, "");
    assert_int_equal(operands, 1);
    assert_int_equal(parse(&plain, "--words=a,b prog", &values, words, &operands), -1);
    assert_string_equal(values.words, "a,b");
    assert_int_equal(operands, 1);
    assert_int_equal(parse(&plain, "prog", &values, words, &operands), -1);
    assert_null(values.words);
}

static void a_programs_options_are_its_own(void **state)
{
    struct values values;
    char         *words[32];
    int           operands;

    (void)state;
    assert_int_equal(parse(&runs, "-f prog -t --help -- x", &values, words, &operands), -1);
    assert_true(values.flag);
    assert_null(values.text);
    assert_int_equal(operands, 5);
    assert_string_equal(words[1], "-t");
    assert_string_equal(words[3], "--");
}

/* What is refused is told on stderr, which is not what is looked at here. */
static int hide_stderr(void **state)
{
    static int saved;
    int        null = open("/dev/null", O_WRONLY | O_CLOEXEC);

    saved = dup(STDERR_FILENO);
    *state = &saved;
    return null >= 0 && saved >= 0 && dup2(null, STDERR_FILENO) >= 0 && close(null) == 0 ? 0 : -1;
}

static int show_stderr(void **state)
{
    int *saved = *state;

    return dup2(*saved, STDERR_FILENO) >= 0 && close(*saved) == 0 ? 0 : -1;
}

static void sizes_have_units(void **state)
{
    static const struct {
        const char *text;
        uint64_t    size; /* 0: refused */
    } cases[] = { { "-s 1", 1 },
                  { "-s 1k", 1024 },
                  { "-s 3M", 3u << 20 },
                  { "-s 1GiB", 1u << 30 },
                  { "-s 2KB", 2048 },
                  { "-s 0", 0 },
                  { "-s -1", 0 },
                  { "-s M", 0 },
                  { "-s 1X", 0 },
                  { "-s 1MM", 0 },
                  { "-s 99999999999999999999", 0 },
                  { "-s 99999999999T", 0 } };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct values values;
        char         *words[32];
        int           operands;
        int           expected = cases[i].size ? -1 : SND_EXIT_USAGE;
        assert_int_equal(parse(&plain, cases[i].text, &values, words, &operands), expected);
        if (cases[i].size)
            assert_true(values.size == cases[i].size);
    }
}

static void refuses_nonsense(void **state)
{
    static const char *const lines[] = {
        "--nonsense", "-x",         "--text",      "-t",           "--flag=1",
        "-fx",        "--number x", "--number -2", "--number 1.5", "--number 99999999999999999999",
        "-t -f x",    "-t --flag",  "-t --flag=1", "--text -- x"
    };

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct values values;
        char         *words[32];
        int           operands;
        assert_int_equal(parse(&plain, lines[i], &values, words, &operands), SND_EXIT_USAGE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_every_form),
        cmocka_unit_test(a_number_may_be_left_out),
        cmocka_unit_test(lists_add_up),
        cmocka_unit_test(words_may_be_left_out),
        cmocka_unit_test(a_programs_options_are_its_own),
        cmocka_unit_test_setup_teardown(sizes_have_units, hide_stderr, show_stderr),
        cmocka_unit_test_setup_teardown(refuses_nonsense, hide_stderr, show_stderr),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
