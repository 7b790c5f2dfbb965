/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/tables/column_store.c and export/parquet/parquet_part.c: rows as columns, with nulls and texts; and a table of more rows than
 * are kept in memory, some of which come late.
 */
#include "export/parquet/parquet_part.h"

#include <sys/stat.h>

#include "base/count_of.h"
#include "scratch.h"
#include "sonde/export.h"

/* A table that has a time. */
static enum snd_sql_table_id find_table(size_t *time)
{
    for (size_t i = 0; i < SND_SQL_TABLES; i++) {
        *time = snd_sql_column_find(&snd_sql_tables[i], "time_ns");
        if (*time != SIZE_MAX && snd_sql_column_find(&snd_sql_tables[i], "start_ns") == SIZE_MAX &&
            snd_sql_column_find(&snd_sql_tables[i], "process") != SIZE_MAX)
            return (enum snd_sql_table_id)i;
    }
    fail_msg("no table has a time");
    return SND_SQL_TABLES;
}

static const struct sonde_text texts[] = { { "", 0 }, { "one", 3 }, { "two", 3 }, { NULL, 0 } };

/* Every column of row `i` has a value that tells it, but for those that are null: each third row's, of every other column. */
static bool is_null(size_t column, uint64_t i)
{
    return i % 3 == 2 && column % 2 == 1;
}

static void fill(struct snd_sql_value *values, const struct snd_sql_table *table, uint64_t i)
{
    for (size_t k = 0; k < snd_sql_column_count(table); k++) {
        values[k] = (struct snd_sql_value){ .is_null = is_null(k, i) };
        if (table->columns[k].type == SND_SQL_TEXT)
            values[k].text = texts[(i + k) % 4];
        else if (table->columns[k].type == SND_SQL_REAL)
            values[k].real = (double)i + (double)k / 100;
        else
            values[k].number = (int64_t)(i * 100 + k);
    }
}

static void check_values(const struct snd_columns *columns, const struct snd_column_texts *kept,
                         size_t left_out, size_t row, const struct snd_sql_value *values)
{
    for (size_t k = 0; k < columns->column_count; k++) {
        size_t                      from = k + (k >= left_out);
        const struct snd_column    *column = &columns->columns[k];
        const struct snd_sql_value *value = &values[from];
        if (snd_column_is_null(column, row) != value->is_null)
            fail_msg("row %zu, column %zu: null or not", row, k);
        if (value->is_null)
            continue;
        if (column->type == SND_SQL_TEXT) {
            const struct snd_text *text = &kept->all.items[column->texts[row]];
            assert_int_equal(text->length, value->text.length);
            assert_memory_equal(text->bytes, value->text.bytes ? value->text.bytes : "",
                                text->length);
        } else {
            assert_int_equal(column->numbers[row], value->number);
        }
    }
}

static void check_row(const struct snd_columns *columns, const struct snd_column_texts *kept,
                      const struct snd_sql_table *table, size_t left_out, size_t row, uint64_t i)
{
    struct snd_sql_value values[SND_SQL_COLUMNS_MAX];

    fill(values, table, i);
    check_values(columns, kept, left_out, row, values);
}

/* Rows come out as they went in, whichever column is left out; a copy has the rows that were asked for, in their order. */
static void rows_are_kept(void **state)
{
    const uint32_t picked[] = { 39, 2, 3, 0, 17, 8 };

    (void)state;
    for (size_t id = 0; id < SND_SQL_TABLES; id++)
        for (size_t which = 0; which < 3; which++) {
            const struct snd_sql_table *table = &snd_sql_tables[id];
            size_t                      left_out = which == 0   ? SIZE_MAX
                                                   : which == 1 ? 0
                                                                : snd_sql_column_count(table) - 1;
            struct snd_columns          columns = { .count = 0 }, copy = { .count = 0 };
            struct snd_column_texts     kept = { .latest = { 0 } };
            struct snd_sql_value        values[SND_SQL_COLUMNS_MAX];
            snd_columns_init(&columns, table, snd_chosen_but(table, left_out));
            snd_columns_init(&copy, table, snd_chosen_but(table, left_out));
            assert_int_equal(columns.column_count, snd_sql_column_count(table) - (which > 0));
            for (uint64_t i = 0; i < 40; i++) {
                fill(values, table, i);
                assert_true(snd_columns_add(&columns, values, SND_SQL_COLUMNS_MAX, &kept));
            }
            assert_int_equal(columns.count, 40);
            snd_columns_spread(&columns);
            for (uint64_t i = 0; i < 40; i++)
                check_row(&columns, &kept, table, left_out, i, i);
            for (int turn = 0; turn < 2; turn++)
                assert_true(snd_columns_copy(&copy, &columns, picked, 6));
            assert_int_equal(copy.count, 12);
            for (size_t i = 0; i < 12; i++)
                check_row(&copy, &kept, table, left_out, i, picked[i % 6]);
            snd_columns_release(&columns);
            snd_columns_release(&copy);
            snd_texts_release(&kept.all);
        }
}

/* As row `i`, whose values are plain from `given` on; which of them are null depends on the table alone. */
static void fill_plain(struct snd_sql_value *values, const struct snd_sql_table *table, uint64_t i,
                       size_t given)
{
    fill(values, table, i);
    for (size_t k = given; k < snd_sql_column_count(table); k++)
        values[k] = (struct snd_sql_value){ .is_null = table->columns[k].type == SND_SQL_TEXT ||
                                                       k % 3 == 1 };
}

/* How many values of a row are given: all, or two kinds of less, in stretches of any length. */
static size_t count_given(const struct snd_sql_table *table, uint64_t i)
{
    size_t count = snd_sql_column_count(table);

    return i % 41 < 20 ? 1 : i % 41 < 33 ? SND_SQL_COLUMNS_MAX : count / 2;
}

/* Values that are not given are written later, and are what they would have been; some rows are kept in place. */
static void plain_values_are_written(void **state)
{
    enum { ROWS = 300, KEPT = 120 };

    (void)state;
    for (size_t id = 0; id < SND_SQL_TABLES; id++) {
        const struct snd_sql_table *table = &snd_sql_tables[id];
        struct snd_columns          columns = { .count = 0 };
        struct snd_column_texts     kept = { .latest = { 0 } };
        struct snd_sql_value        values[SND_SQL_COLUMNS_MAX];
        /* one that stays where it is, neighbours, single rows, and more rows than there are before them */
        static const struct snd_run runs[] = {
            { 0, 1 }, { 3, 9 }, { 20, 1 }, { 22, 1 }, { 150, 108 }
        };
        uint32_t picked[KEPT], kept_count = 0;
        snd_columns_init(&columns, table, snd_chosen_but(table, SIZE_MAX));
        for (uint64_t i = 0; i < ROWS; i++) {
            fill_plain(values, table, i, count_given(table, i));
            assert_true(snd_columns_add(&columns, values, count_given(table, i), &kept));
        }
        snd_columns_spread(&columns);
        for (uint64_t i = 0; i < ROWS; i++) {
            fill_plain(values, table, i, count_given(table, i));
            check_values(&columns, &kept, SIZE_MAX, i, values);
        }
        for (size_t k = 0; k < SND_COUNT_OF(runs); k++)
            for (uint32_t i = 0; i < runs[k].count; i++)
                picked[kept_count++] = runs[k].first + i;
        snd_columns_keep(&columns, runs, SND_COUNT_OF(runs));
        assert_int_equal(kept_count, KEPT);
        assert_int_equal(columns.count, KEPT);
        for (uint64_t i = 0; i < KEPT; i++) {
            fill_plain(values, table, picked[i], count_given(table, picked[i]));
            check_values(&columns, &kept, SIZE_MAX, i, values);
        }
        snd_columns_release(&columns);
        snd_texts_release(&kept.all);
    }
}

/* Each column is the same until another row, or to the end; others come from a copy and from keeping some. */
static void columns_stay_the_same(void **state)
{
    enum { ROWS = 100, PICKED = 30 };
    size_t                      time;
    const struct snd_sql_table *table = &snd_sql_tables[find_table(&time)];
    size_t                      count = snd_sql_column_count(table);

    (void)state;
    for (uint32_t first = 0; first < 3; first++) {
        struct snd_columns      columns = { .count = 0 }, picked = { .count = 0 };
        struct snd_column_texts kept = { .latest = { 0 } };
        struct snd_sql_value    values[SND_SQL_COLUMNS_MAX];
        uint32_t                rows[PICKED];
        snd_columns_init(&columns, table, snd_chosen_but(table, SIZE_MAX));
        snd_columns_init(&picked, table, snd_chosen_but(table, SIZE_MAX));
        for (uint64_t i = 0; i < ROWS; i++) { /* column k is another one from row 20 * k on */
            for (size_t k = 0; k < count; k++) {
                struct snd_sql_value all[SND_SQL_COLUMNS_MAX];
                fill(all, table, first + (i >= 20 * k));
                values[k] = all[k];
            }
            assert_true(snd_columns_add(&columns, values, SND_SQL_COLUMNS_MAX, &kept));
        }
        snd_columns_settle(&columns);
        assert_true(columns.columns[0].is_same && columns.columns[count - 1].is_same);
        assert_false(columns.columns[1].is_same);
        for (uint32_t i = 0; i < PICKED; i++)
            rows[i] = ROWS - 1 - 3 * i;
        assert_true(snd_columns_pick(&picked, &columns, rows, PICKED));
        assert_true(picked.columns[0].is_same);
        snd_columns_spread(&picked);
        snd_columns_spread(&columns);
        for (uint64_t i = 0; i < ROWS; i++) {
            for (size_t k = 0; k < count; k++) {
                struct snd_sql_value all[SND_SQL_COLUMNS_MAX];
                fill(all, table, first + (i >= 20 * k));
                values[k] = all[k];
            }
            check_values(&columns, &kept, SIZE_MAX, i, values);
            if ((ROWS - 1 - i) % 3 == 0 && (ROWS - 1 - i) / 3 < PICKED)
                check_values(&picked, &kept, SIZE_MAX, (ROWS - 1 - i) / 3, values);
        }
        snd_columns_release(&columns);
        snd_columns_release(&picked);
        snd_texts_release(&kept.all);
    }
}

/* ------------------------------------------------------------------------ parts */

struct writing {
    struct snd_parquet_part   part;
    struct snd_parquet_shared shared;
    size_t                    time;
};

static struct writing begin(void)
{
    struct writing        w = { .time = 0 };
    enum snd_sql_table_id table = find_table(&w.time);

    snd_parquet_part_init(&w.part, table, strdup(scratch_path("a/b/c.parquet")));
    return w;
}

static void add(struct writing *w, int64_t time)
{
    struct snd_sql_value values[SND_SQL_COLUMNS_MAX];

    fill(values, &snd_sql_tables[w->part.table], 1);
    values[w->time] = (struct snd_sql_value){ .number = time };
    assert_int_equal(snd_parquet_part_add(&w->part, &w->shared, values, SND_SQL_COLUMNS_MAX, NULL),
                     SONDE_OK);
}

static void end(struct writing *w, uint64_t rows, uint32_t groups)
{
    struct stat st;
    uint8_t    *bytes;
    size_t      size;

    assert_int_equal(snd_parquet_part_finish(&w->part, &w->shared, NULL), SONDE_OK);
    assert_int_equal(w->part.row_count, rows);
    assert_int_equal(w->part.group_count, groups);
    assert_int_equal(stat(w->part.path, &st), 0);
    assert_int_equal(w->part.size + 4, st.st_size);
    bytes = scratch_load(w->part.path, &size);
    assert_memory_equal(bytes, "PAR1", 4);
    assert_memory_equal(bytes + size - 4, "PAR1", 4);
    free(bytes);
    snd_parquet_shared_release(&w->shared);
    snd_parquet_part_release(&w->part);
}

/* At two groups' rows the earlier half is written; what comes from before its end is late, and kept apart until it is a group. */
static void parts_are_written_as_they_fill(void **state)
{
    struct writing w = begin();
    const int64_t  half = SND_PARQUET_GROUP_ROWS;

    (void)state;
    for (int64_t i = 0; i < 2 * half - 1; i++)
        add(&w, 2 * half - i); /* from the last to the first */
    assert_int_equal(w.part.group_count, 0);
    assert_int_equal(w.part.rows.count, 2 * half - 1);
    add(&w, 1);
    assert_int_equal(w.part.group_count, 1);
    assert_int_equal(w.part.row_count, half);
    assert_int_equal(w.part.rows.count, half);
    assert_int_equal(w.part.written_to, half);
    assert_true(snd_parquet_part_memory(&w.part) >= (size_t)half * w.part.rows.row_bytes);
    for (size_t i = 0; i < w.part.rows.count; i++)
        assert_true(w.part.rows.columns[w.time - (w.time > w.part.left_out)].numbers[i] > half);
    add(&w, half); /* not before what was written */
    assert_int_equal(w.part.late.count, 0);
    for (int64_t i = 0; i < half - 1; i++)
        add(&w, half - 1);
    assert_int_equal(w.part.late.count, half - 1);
    assert_int_equal(w.part.late.column_count, w.part.rows.column_count);
    snd_columns_spread(&w.part.late);
    for (size_t i = 0; i < w.part.late.count; i++)
        assert_int_equal(w.part.late.columns[w.time - (w.time > w.part.left_out)].numbers[i],
                         half - 1);
    assert_int_equal(w.part.group_count, 1);
    add(&w, half - 1);
    assert_int_equal(w.part.late.count, 0);
    assert_int_equal(w.part.group_count, 2);
    add(&w, 5);
    assert_int_equal(w.part.late.count, 1);
    end(&w, 3 * (uint64_t)half + 2, 5); /* the rest is a group and one row, the late one another */
}

#define MANY (5 * (uint64_t)SND_PARQUET_GROUP_ROWS + 777)

/* Rows in some disorder, a few of which are late. */
static uint8_t *write_many(bool apart, size_t *size)
{
    struct writing w = begin();

    w.shared.queue.apart = apart;
    for (uint64_t i = 0; i < MANY; i++)
        add(&w, (int64_t)(i % 9973 == 0 ? i / 2 : i ^ 5));
    assert_int_equal(w.shared.queue.has_thread, apart);
    end(&w, MANY, 7); /* and one of the late rows */
    return scratch_load(scratch_path("a/b/c.parquet"), size);
}

static void a_thread_writes_the_same(void **state)
{
    size_t   here, apart;
    uint8_t *bytes = write_many(false, &here), *others = write_many(true, &apart);

    (void)state;
    assert_int_equal(here, apart);
    assert_memory_equal(bytes, others, here);
    free(bytes);
    free(others);
}

/* A group that cannot be written is an error of the next one, or of the end. */
static void a_failure_of_the_thread_arrives(void **state)
{
    struct snd_sql_value values[SND_SQL_COLUMNS_MAX];
    struct writing       w = begin();
    struct sonde_error   err = { 0 };
    enum sonde_status    st = SONDE_OK;

    (void)state;
    free(w.part.path);
    w.part.path = strdup("/dev/null/c.parquet");
    w.shared.queue.apart = true;
    fill(values, &snd_sql_tables[w.part.table], 1);
    for (uint64_t i = 0; st == SONDE_OK && i < 2 * (uint64_t)SND_PARQUET_GROUP_ROWS; i++) {
        values[w.time] = (struct snd_sql_value){ .number = (int64_t)i };
        st = snd_parquet_part_add(&w.part, &w.shared, values, SND_SQL_COLUMNS_MAX, &err);
    }
    assert_int_equal(st, SONDE_OK); /* it is on its way */
    assert_int_equal(snd_parquet_part_finish(&w.part, &w.shared, &err), SONDE_E_IO);
    assert_non_null(strstr(err.message, "/dev/null/c.parquet"));
    snd_parquet_shared_release(&w.shared);
    snd_parquet_part_release(&w.part);
}

/* What is asked to be written early is halved as well; one row is written whole. */
static void parts_are_written_early(void **state)
{
    struct writing w = begin();

    (void)state;
    add(&w, 7);
    assert_int_equal(snd_parquet_part_spill(&w.part, &w.shared, NULL), SONDE_OK);
    assert_int_equal(w.part.rows.count, 0);
    assert_int_equal(w.part.group_count, 1);
    for (int64_t i = 0; i < 5; i++)
        add(&w, 10 + i);
    assert_int_equal(snd_parquet_part_spill(&w.part, &w.shared, NULL), SONDE_OK);
    assert_int_equal(w.part.rows.count, 3);
    assert_int_equal(w.part.group_count, 2);
    assert_int_equal(w.part.written_to, 11);
    end(&w, 6, 3);
    w = begin();
    end(&w, 0, 0);
}

/* A folder may have tables in it, hidden files, and what other programs leave beside tables: nothing else. */
static void a_place_for_tables(void **state)
{
    struct synth      *s = synth_new(scratch_path("trace"), NULL);
    uint32_t           t = synth_thread(s, "main", 0);
    struct sonde_error err;

    (void)state;
    synth_begin(s, t, 100, synth_string(s, "range"), 0);
    synth_end(s, t, 200);
    synth_close(s, true);
    struct sonde_trace *trace = scratch_open(scratch_path("trace"));
    assert_int_equal(mkdir(scratch_path("tables"), 0700), 0);
    scratch_save(scratch_path("tables/.hidden"), "x", 1);
    scratch_save(scratch_path("tables/_SUCCESS"), "x", 1);
    for (int again = 0; again < 2; again++) /* the second time there are tables */
        assert_int_equal(sonde_export_folder(trace, "parquet", NULL, scratch_path("tables"), NULL),
                         SONDE_OK);
    assert_int_equal(access(scratch_path("tables/ranges"), F_OK), 0);
    scratch_save(scratch_path("tables/notes"), "x", 1);
    assert_int_equal(sonde_export_folder(trace, "parquet", NULL, scratch_path("tables"), &err),
                     SONDE_E_STATE);
    assert_non_null(strstr(err.message, "has 'notes' in it, which is not a table"));
    sonde_trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_kept),
        cmocka_unit_test(plain_values_are_written),
        cmocka_unit_test(columns_stay_the_same),
        cmocka_unit_test(parts_are_written_as_they_fill),
        cmocka_unit_test(a_thread_writes_the_same),
        cmocka_unit_test(a_failure_of_the_thread_arrives),
        cmocka_unit_test(parts_are_written_early),
        cmocka_unit_test(a_place_for_tables),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
