/* SPDX-License-Identifier: Apache-2.0 */
/* view/render/table.c: tables of typed cells, sorted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "view/render/table.h"

static const struct snd_column columns[] = {
    { "key", "Name", SND_TEXT, SND_FIT_NAME },
    { "count", "# of Calls", SND_COUNT, SND_FIT_FIXED },
    { "device_memory_usage", "CUDA Mem", SND_BYTES, SND_FIT_FIXED },
    { "share", "Share", SND_SHARE, SND_FIT_FIXED },
    { "shapes", "Shapes", SND_SHAPES, SND_FIT_SHAPES },
    { NULL, "Text alone", SND_TEXT, SND_FIT_CONTENT },
};

static void fill(struct snd_table *table)
{
    static const struct {
        const char *name;
        int64_t     count, bytes;
        double      share;
    } rows[] = {
        { "b", 2, 5, 1 }, { "a", 3, 5, 2 }, { "c", 2, -7, (double)NAN }, { "d", 9, 0, 3 }
    };

    snd_table_init(table, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct snd_cell *cell = snd_table_add(table);
        cell[0] = snd_cell_string(rows[i].name);
        cell[1] = snd_cell_number(rows[i].count);
        cell[2] = snd_cell_number(rows[i].bytes);
        cell[3] = snd_cell_real(rows[i].share);
    }
}

static void expect_order(const char *key, const char *names)
{
    struct snd_table table;

    fill(&table);
    assert_int_equal(snd_table_sort(&table, key, NULL), SONDE_OK);
    for (size_t i = 0; i < table.row_count; i++)
        assert_int_equal(snd_table_row(&table, i)[0].text.bytes[0], names[i]);
    snd_table_release(&table);
}

static void sorts_down_and_keeps_ties(void **state)
{
    (void)state;
    expect_order("count", "dabc");
    expect_order("key", "dcba");
    expect_order("share", "dabc"); /* not a number comes last */
    expect_order("device_memory_usage", "badc");
    expect_order("cuda_memory_usage", "badc");
    expect_order("xpu_memory_usage", "badc");
}

static void names_the_keys_there_are(void **state)
{
    static const char *const wrong[] = { "counts", "", "cudamemory_usage", "shapes", "cuda" };

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct snd_table   table;
        struct sonde_error err;
        fill(&table);
        assert_int_equal(snd_table_sort(&table, wrong[i], &err), SONDE_E_ARGUMENT);
        assert_non_null(strstr(err.message, "keys: key, count, device_memory_usage, share"));
        snd_table_release(&table);
    }
}

static void shares_of_nothing_are_no_number(void **state)
{
    (void)state;
    assert_true(isnan(snd_cell_share(0, 0).real));
    assert_true(snd_cell_share(1, 4).real == 25.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sorts_down_and_keeps_ties),
        cmocka_unit_test(names_the_keys_there_are),
        cmocka_unit_test(shares_of_nothing_are_no_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
