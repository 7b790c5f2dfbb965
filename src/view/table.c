/* SPDX-License-Identifier: Apache-2.0 */
#include "view/table.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/nearest.h"

void snd_table_init(struct snd_table *table, const struct snd_column *columns, size_t count)
{
    assert(count <= SND_COLUMNS_MAX);
    memset(table, 0, sizeof *table);
    table->columns = columns;
    table->column_count = count;
}

void snd_table_release(struct snd_table *table)
{
    free(table->cells);
    table->cells = NULL;
    table->row_count = table->capacity = 0;
}

struct snd_cell *snd_table_add(struct snd_table *table)
{
    if (table->row_count == table->capacity) {
        size_t capacity = table->capacity ? table->capacity * 2 : 64;
        void  *cells = NULL;
        if (!table->failed && capacity < SIZE_MAX / sizeof *table->cells / SND_COLUMNS_MAX)
            cells = realloc(table->cells, capacity * table->column_count * sizeof *table->cells);
        if (!cells) {
            table->failed = true;
            return table->scratch;
        }
        table->cells = cells;
        table->capacity = capacity;
    }
    struct snd_cell *row = table->cells + table->row_count++ * table->column_count;
    memset(row, 0, table->column_count * sizeof *row);
    return row;
}

const struct snd_cell *snd_table_row(const struct snd_table *table, size_t row)
{
    return table->cells + row * table->column_count;
}

/* ---------------------------------------------------------------- sorting */

static bool is_sortable(const struct snd_column *column)
{
    return column->key && column->kind != SND_SHAPES && column->kind != SND_LINES;
}

static bool is_real(enum snd_kind kind)
{
    return kind == SND_MEAN || kind == SND_SHARE || kind == SND_FLOPS || kind == SND_REAL;
}

/* torch calls the same number by the device's name. */
static bool key_matches(const char *asked, const char *key)
{
    static const char *const devices[] = { "cuda", "xpu", "privateuse1" };
    const char              *at = strstr(key, "device");

    if (strcmp(asked, key) == 0)
        return true;
    for (size_t i = 0; at && i < sizeof devices / sizeof devices[0]; i++) {
        size_t before = (size_t)(at - key), length = strlen(devices[i]);
        if (strncmp(asked, key, before) == 0 && strncmp(asked + before, devices[i], length) == 0 &&
            strcmp(asked + before + length, at + strlen("device")) == 0)
            return true;
    }
    return false;
}

static enum sonde_status refuse_key(const struct snd_table *table, const char *key,
                                    struct sonde_error *err)
{
    struct sonde_buffer keys = { 0 };
    struct snd_nearest  nearest = { .word = key, .length = strlen(key) };
    char                hint[SND_HINT_MAX];

    for (size_t i = 0; i < table->column_count; i++) {
        if (is_sortable(&table->columns[i])) {
            snd_buf_text(&keys, keys.length ? ", " : "");
            snd_buf_text(&keys, table->columns[i].key);
            snd_nearest_try(&nearest, table->columns[i].key);
        }
    }
    snd_fail(err, SONDE_E_ARGUMENT, "cannot sort by '%.60s'%s: the keys are %s", key,
             snd_nearest_hint(&nearest, hint), snd_buf_string(&keys));
    sonde_buffer_release(&keys);
    return SONDE_E_ARGUMENT;
}

struct order {
    const struct snd_cell *cell;
    size_t                 row;
    enum snd_kind          kind;
};

static int compare_numbers(double x, double y)
{
    /* What is not a number sorts last. */
    if (isnan(x) || isnan(y))
        return (int)isnan(x) - (int)isnan(y);
    return (x < y) - (x > y);
}

static int compare_text(struct sonde_text x, struct sonde_text y)
{
    size_t least = x.length < y.length ? x.length : y.length;
    int    sign = least ? memcmp(y.bytes, x.bytes, least) : 0;

    return sign ? sign : (x.length < y.length) - (x.length > y.length);
}

static int compare_rows(const void *left, const void *right)
{
    const struct order *x = left, *y = right;
    int                 sign;

    if (x->cell->none != y->cell->none)
        sign = (int)x->cell->none - (int)y->cell->none;
    else if (x->kind == SND_TEXT)
        sign = compare_text(x->cell->text, y->cell->text);
    else if (is_real(x->kind))
        sign = compare_numbers(x->cell->real, y->cell->real);
    else
        sign = (x->cell->number < y->cell->number) - (x->cell->number > y->cell->number);
    return sign ? sign : (x->row > y->row) - (x->row < y->row);
}

static enum sonde_status sort_by(struct snd_table *table, size_t column, struct sonde_error *err)
{
    size_t width = table->column_count;

    if (table->row_count < 2)
        return SONDE_OK;
    struct order    *order = calloc(table->row_count, sizeof *order);
    struct snd_cell *cells = calloc(table->row_count * width, sizeof *cells);
    if (!order || !cells) {
        free(order);
        free(cells);
        return snd_fail(err, SONDE_E_NOMEM, "cannot sort a table of %zu rows", table->row_count);
    }
    for (size_t i = 0; i < table->row_count; i++)
        order[i] = (struct order){ &table->cells[i * width + column], i,
                                   table->columns[column].kind };
    qsort(order, table->row_count, sizeof *order, compare_rows);
    for (size_t i = 0; i < table->row_count; i++)
        memcpy(cells + i * width, table->cells + order[i].row * width, width * sizeof *cells);
    free(order);
    free(table->cells);
    table->cells = cells;
    table->capacity = table->row_count;
    return SONDE_OK;
}

enum sonde_status snd_table_sort(struct snd_table *table, const char *key, struct sonde_error *err)
{
    for (size_t i = 0; i < table->column_count; i++)
        if (is_sortable(&table->columns[i]) && key_matches(key, table->columns[i].key))
            return sort_by(table, i, err);
    return refuse_key(table, key, err);
}

/* ------------------------------------------------------------------ cells */

struct snd_cell snd_cell_text(struct sonde_text text)
{
    return (struct snd_cell){ .text = text };
}

struct snd_cell snd_cell_string(const char *text)
{
    return (struct snd_cell){ .text = { text, strlen(text) } };
}

struct snd_cell snd_cell_number(int64_t number)
{
    return (struct snd_cell){ .number = number };
}

struct snd_cell snd_cell_real(double real)
{
    return (struct snd_cell){ .real = real };
}

struct snd_cell snd_cell_none(void)
{
    return (struct snd_cell){ .none = true };
}

struct snd_cell snd_cell_share(int64_t part_ns, int64_t whole_ns)
{
    /* In microseconds and in this order, so that the last digit is torch's. */
    double part_us = (double)part_ns / 1000.0, whole_us = (double)whole_ns / 1000.0;

    return snd_cell_real(whole_ns == 0 ? (double)NAN : part_us * 100.0 / whole_us);
}
