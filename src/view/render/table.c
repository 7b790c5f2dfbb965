/* SPDX-License-Identifier: Apache-2.0 */
#include "view/render/table.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/count_of.h"
#include "base/data/sort.h"
#include "base/text/compare.h"
#include "base/text/buf.h"
#include "base/text/nearest.h"

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
    free(table->source);
    free(table->made);
    free(table->order);
    table->cells = table->made = NULL;
    table->source = NULL;
    table->order = NULL;
    table->make = NULL;
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

void snd_table_lazy(struct snd_table *table, size_t row_count, snd_cell_fn *make, void *source)
{
    table->make = make;
    table->source = source;
    table->made = calloc(SND_COLUMNS_MAX, sizeof *table->made);
    table->failed |= !source || !table->made;
    table->row_count = table->failed ? 0 : row_count;
}

struct snd_cell snd_table_cell(const struct snd_table *table, size_t row, size_t column)
{
    if (table->make)
        return table->make(table, table->order ? table->order[row] : row, column);
    return table->cells[row * table->column_count + column];
}

const struct snd_cell *snd_table_row(const struct snd_table *table, size_t row)
{
    if (!table->make)
        return table->cells + row * table->column_count;
    for (size_t i = 0; i < table->column_count; i++)
        table->made[i] = snd_table_cell(table, row, i);
    return table->made;
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
    for (size_t i = 0; at && i < SND_COUNT_OF(devices); i++) {
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
        if (is_sortable(&table->columns[i]) && !table->absent[i]) {
            snd_buf_text(&keys, keys.length ? ", " : "");
            snd_buf_text(&keys, table->columns[i].key);
            snd_nearest_try(&nearest, table->columns[i].key);
        }
    }
    bool fits = keys.length <
                SONDE_MESSAGE_MAX / 2; /* else the one that is meant, if there is one */
    snd_nearest_hint(&nearest, hint);
    snd_fail(err, SONDE_E_ARGUMENT, "cannot sort by '%.60s'%s%s%s", key, hint,
             fits || !hint[0] ? "; keys: " : "", fits || !hint[0] ? snd_buf_string(&keys) : "");
    sonde_buffer_release(&keys);
    return SONDE_E_ARGUMENT;
}

/* What a row is sorted by: the member of its cell that the column's kind has. */
struct order {
    union {
        const char *bytes;
        int64_t     number;
        double      real;
    } key;
    uint32_t length; /* of text; NOTHING: nothing known */
    uint32_t row;
};
#define NOTHING UINT32_MAX

static struct order make_order(const struct snd_cell *cell, enum snd_kind kind, size_t row)
{
    struct order o = { .row = (uint32_t)row };

    if (cell->none) {
        o.length = NOTHING;
    } else if (kind == SND_TEXT) {
        o.key.bytes = cell->text.bytes;
        o.length = cell->text.length < NOTHING ? (uint32_t)cell->text.length : NOTHING - 1;
    } else if (is_real(kind)) {
        o.key.real = cell->real;
    } else {
        o.key.number = cell->number;
    }
    return o;
}

static int compare_numbers(double x, double y)
{
    /* What is not a number sorts last. */
    if (isnan(x) || isnan(y))
        return (int)isnan(x) - (int)isnan(y);
    return SND_FALLING(x, y);
}

static int compare_text(struct sonde_text x, struct sonde_text y)
{
    return snd_order_at(y.bytes, y.length, x.bytes, x.length);
}

static int compare_rows(const void *left, const void *right, void *column)
{
    const struct order *x = left, *y = right;
    enum snd_kind       kind = ((const struct snd_column *)column)->kind;
    bool                no_x = x->length == NOTHING, no_y = y->length == NOTHING;
    int                 sign;

    if (no_x || no_y)
        sign = (int)no_x - (int)no_y;
    else if (kind == SND_TEXT)
        sign = compare_text((struct sonde_text){ x->key.bytes, x->length },
                            (struct sonde_text){ y->key.bytes, y->length });
    else if (is_real(kind))
        sign = compare_numbers(x->key.real, y->key.real);
    else
        sign = SND_FALLING(x->key.number, y->key.number);
    return sign ? sign : SND_RISING(x->row, y->row);
}

/* Puts the rows that are kept into the order. */
static bool move_rows(struct snd_table *table, const struct order *order)
{
    size_t           width = table->column_count;
    struct snd_cell *cells = calloc(table->row_count * width, sizeof *cells);

    if (!cells)
        return false;
    for (size_t i = 0; i < table->row_count; i++)
        memcpy(cells + i * width, table->cells + order[i].row * width, width * sizeof *cells);
    free(table->cells);
    table->cells = cells;
    table->capacity = table->row_count;
    return true;
}

/* Of rows that are made on demand, only the order is kept. */
static bool note_order(struct snd_table *table, const struct order *order)
{
    uint32_t *rows = calloc(table->row_count, sizeof *rows);

    for (size_t i = 0; rows && i < table->row_count; i++)
        rows[i] = table->order ? table->order[order[i].row] : order[i].row;
    if (rows) {
        free(table->order);
        table->order = rows;
    }
    return rows != NULL;
}

static enum sonde_status sort_by(struct snd_table *table, size_t column, struct sonde_error *err)
{
    if (table->row_count < 2)
        return SONDE_OK;
    struct order *order = table->row_count < UINT32_MAX ? calloc(table->row_count, sizeof *order)
                                                        : NULL;
    for (size_t i = 0; order && i < table->row_count; i++) {
        struct snd_cell cell = snd_table_cell(table, i, column);
        order[i] = make_order(&cell, table->columns[column].kind, i);
    }
    struct snd_column by = table->columns[column];
    if (order)
        qsort_r(order, table->row_count, sizeof *order, compare_rows, &by);
    bool sorted = order && (table->make ? note_order(table, order) : move_rows(table, order));
    free(order);
    return sorted ? SONDE_OK
                  : snd_fail(err, SONDE_E_NOMEM, "cannot sort a table of %zu rows: out of memory",
                             table->row_count);
}

enum sonde_status snd_table_sort(struct snd_table *table, const char *key, struct sonde_error *err)
{
    for (size_t i = 0; i < table->column_count; i++)
        if (is_sortable(&table->columns[i]) && !table->absent[i] &&
            key_matches(key, table->columns[i].key))
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
