/* SPDX-License-Identifier: Apache-2.0 */
/* base/text/nearest.c: the known name that is nearest to a mistyped one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text/nearest.h"

static const char *const known[] = { "line",    "summary",   "ops",
                                     "tree",    "functions", "line-memory",
                                     "samples", "threads",   "self_cpu_time_total" };

static const char *hint_for(const char *word, size_t length)
{
    static char        hint[SND_HINT_MAX];
    struct snd_nearest nearest = { .word = word, .length = length };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        snd_nearest_try(&nearest, known[i]);
    return snd_nearest_hint(&nearest, hint);
}

static void finds_the_nearest(void **state)
{
    static const struct {
        const char *word, *hint;
    } cases[] = {
        { "funtcions", " (did you mean 'functions'?)" }, /* two neighbours swapped */
        { "function", " (did you mean 'functions'?)" },  /* one is missing */
        { "opss", " (did you mean 'ops'?)" },            /* one too many */
        { "OPS", " (did you mean 'ops'?)" },             /* case */
        { "trie", " (did you mean 'tree'?)" },           /* replaced */
        { "func", " (did you mean 'functions'?)" },      /* abbreviated */
        { "line_memory", " (did you mean 'line-memory'?)" },
        { "self_cpu_tiem_total", " (did you mean 'self_cpu_time_total'?)" },
        { "bogus", "" },
        { "size", "" }, /* two of four letters would make a name of it */
        { "x", "" },
        { "", "" },
        { "a word that is longer than any name could ever be", "" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(hint_for(cases[i].word, strlen(cases[i].word)), cases[i].hint);
}

/* A word of a list with commas has no zero after it. */
static void reads_no_further_than_the_word(void **state)
{
    (void)state;
    assert_string_equal(hint_for("sampels,ops", 7), " (did you mean 'samples'?)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_nearest),
        cmocka_unit_test(reads_no_further_than_the_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
