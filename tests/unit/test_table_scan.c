/* SPDX-License-Identifier: Apache-2.0 */
/* A table in batches: the rows of the whole table, of the columns that were asked for; readers that go away early. */
#include "read/reader.h"
#include "sonde/tables.h"
#include "scratch.h"

#define RANGES 70000u /* twice: more than 2 batches taken, 4 waiting and 1 being filled hold */

/* Ranges of 100 names under one that lasts; every third has a step before it. */
static struct sonde_trace *record(void)
{
    struct synth *s = synth_new(scratch_path("many"), NULL);
    uint32_t      t = synth_thread(s, "main", 0), names[100];
    char          text[16];

    for (uint32_t i = 0; i < 100; i++) {
        snprintf(text, sizeof text, "range %u", (unsigned)i);
        names[i] = synth_string(s, text);
    }
    synth_begin(s, t, 10, names[0], 0);
    for (uint32_t i = 0; i < 2 * RANGES; i++) {
        synth_begin(s, t, 100 + 10 * i, names[i % 100], 0);
        synth_end(s, t, 101 + 10 * i + i % 7);
        if (i == RANGES)
            synth_step(s, t, 108 + 10 * i, 3);
    }
    synth_end(s, t, 101 + 20 * RANGES);
    synth_close(s, true);
    return scratch_open(scratch_path("many"));
}

static bool is_null(const struct sonde_table_column *column, size_t row)
{
    return column->valid && !(column->valid[row / 8] & 1u << row % 8);
}

/* A row of a batch and one of the whole table have the same value. */
static void compare(const struct sonde_table *whole, const struct sonde_table_column *wanted,
                    size_t at, const struct sonde_table *batch,
                    const struct sonde_table_column *column, size_t row)
{
    assert_int_equal(is_null(column, row), is_null(wanted, at));
    if (column->type != SONDE_COLUMN_TEXT) {
        assert_int_equal(((const int64_t *)column->data)[row], ((const int64_t *)wanted->data)[at]);
        return;
    }
    if (is_null(column, row))
        return; /* its number is of no meaning */
    struct sonde_text a = sonde_table_text(whole, ((const uint32_t *)wanted->data)[at]);
    struct sonde_text b = sonde_table_text(batch, ((const uint32_t *)column->data)[row]);
    assert_int_equal(a.length, b.length);
    assert_memory_equal(a.bytes, b.bytes, a.length);
}

static const struct sonde_table_column *find(const struct sonde_table *table, const char *name)
{
    const struct sonde_table_column *column;

    for (size_t i = 0; (column = sonde_table_column(table, i)) != NULL; i++)
        if (strcmp(column->name, name) == 0)
            return column;
    fail_msg("no column %s", name);
    return NULL;
}

static struct sonde_table_scan *scan_of(struct sonde_trace *trace, const char *const *columns)
{
    struct sonde_table_scan *scan;
    struct sonde_error       err = { 0 };

    assert_int_equal(sonde_table_scan_new(trace, "ranges", columns, &scan, &err), SONDE_OK);
    return scan;
}

static struct sonde_table *next_of(struct sonde_table_scan *scan)
{
    struct sonde_table *batch;
    struct sonde_error  err = { 0 };

    assert_int_equal(sonde_table_scan_next(scan, &batch, &err), SONDE_OK);
    return batch;
}

static void check_scan(struct sonde_trace *trace, const char *const *columns, size_t column_count)
{
    struct sonde_table *whole;
    size_t              rows = 0, batches = 0;

    assert_int_equal(sonde_table_new(trace, "ranges", &whole, NULL), SONDE_OK);
    assert_int_equal(sonde_table_row_count(whole), 2 * RANGES + 1);
    struct sonde_table_scan *scan = scan_of(trace, columns);
    for (struct sonde_table *batch; (batch = next_of(scan)) != NULL; batches++) {
        const struct sonde_table_column *column;
        size_t                           count = 0;
        for (; (column = sonde_table_column(batch, count)) != NULL; count++) {
            if (columns)
                assert_string_equal(column->name, columns[count]);
            assert_string_equal(column->name, sonde_table_scan_column(scan, count)->name);
            const struct sonde_table_column *wanted = find(whole, column->name);
            for (size_t i = 0; i < sonde_table_row_count(batch); i++)
                compare(whole, wanted, rows + i, batch, column, i);
        }
        assert_int_equal(count, column_count);
        assert_null(sonde_table_scan_column(scan, count));
        assert_true(sonde_table_text_count(batch) <= 100);
        rows += sonde_table_row_count(batch);
        sonde_table_free(batch);
    }
    assert_int_equal(rows, sonde_table_row_count(whole));
    assert_true(batches > 4);
    assert_null(next_of(scan)); /* and stays at the end */
    sonde_table_scan_free(scan);
    sonde_table_free(whole);
}

static void batches_have_the_rows_of_the_table(void **state)
{
    struct sonde_trace *trace = record();

    (void)state;
    check_scan(trace, NULL, 18);
    check_scan(trace, (const char *const[]){ "step", "name", "self_ns", NULL }, 3);
    check_scan(trace, (const char *const[]){ "shapes", NULL }, 1);
    check_scan(trace, (const char *const[]){ NULL }, 0);
    sonde_trace_close(trace);
}

/* Who stops early, or never began, ends the walk; batches belong to who has them. */
static void a_reader_may_go_at_any_time(void **state)
{
    struct sonde_trace      *trace = record();
    struct sonde_table_scan *scan = scan_of(trace, NULL);
    uint32_t                 walks = trace->walks;

    (void)state;
    sonde_table_scan_free(scan);
    assert_int_equal(trace->walks, walks);
    scan = scan_of(trace, NULL);
    struct sonde_table *kept = next_of(scan), *other = next_of(scan);
    sonde_table_free(other);
    sonde_table_scan_free(scan);
    assert_int_equal(trace->walks, walks); /* not to its end */
    struct sonde_table *whole;
    assert_int_equal(sonde_table_new(trace, "ranges", &whole, NULL), SONDE_OK);
    for (size_t i = 0; i < sonde_table_row_count(kept); i++)
        compare(whole, find(whole, "name"), i, kept, find(kept, "name"), i);
    sonde_table_free(whole);
    sonde_table_free(kept);
    sonde_table_scan_free(NULL);
    sonde_trace_close(trace);
}

static void wrong_names_are_refused(void **state)
{
    struct sonde_trace      *trace = record();
    struct sonde_table_scan *scan;
    struct sonde_error       err = { 0 };

    (void)state;
    assert_int_equal(sonde_table_scan_new(trace, "range", NULL, &scan, &err), SONDE_E_ARGUMENT);
    assert_non_null(strstr(err.message, "unknown table 'range'; tables: trace, processes"));
    assert_null(scan);
    const char *const unknown[] = { "name", "nam", NULL }, *const twice[] = { "name", "name",
                                                                              NULL };
    assert_int_equal(sonde_table_scan_new(trace, "ranges", unknown, &scan, &err), SONDE_E_ARGUMENT);
    assert_non_null(strstr(err.message, "unknown column 'nam' of the table ranges; columns: proc"));
    assert_int_equal(sonde_table_scan_new(trace, "ranges", twice, &scan, &err), SONDE_E_ARGUMENT);
    assert_string_equal(err.message, "the column 'name' was asked for twice");
    sonde_trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_have_the_rows_of_the_table),
        cmocka_unit_test(a_reader_may_go_at_any_time),
        cmocka_unit_test(wrong_names_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
