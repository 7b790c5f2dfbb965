/* SPDX-License-Identifier: Apache-2.0 */
#include "export/tables/column_store.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_ROWS 64

static size_t item_size(const struct snd_column *column)
{
    return column->type == SND_SQL_TEXT ? sizeof(uint32_t) : sizeof(int64_t);
}

struct snd_chosen snd_chosen_but(const struct snd_sql_table *table, size_t left_out)
{
    struct snd_chosen chosen = { 0 };

    for (size_t i = 0; i < snd_sql_column_count(table); i++)
        if (i != left_out)
            chosen.items[chosen.count++] = (uint8_t)i;
    return chosen;
}

void snd_columns_init(struct snd_columns *columns, const struct snd_sql_table *table,
                      struct snd_chosen chosen)
{
    *columns = (struct snd_columns){ .column_count = chosen.count, .is_in_order = true };
    for (size_t i = 0; i < chosen.count; i++) {
        struct snd_column *column = &columns->columns[i];
        column->from = chosen.items[i];
        column->type = table->columns[column->from].type;
        column->is_same = true;
        columns->row_bytes += item_size(column);
        columns->is_in_order &= i == 0 || column->from > columns->columns[i - 1].from;
    }
}

void snd_columns_clear(struct snd_columns *columns)
{
    columns->count = columns->lacking = 0;
    for (size_t i = 0; i < columns->column_count; i++) {
        columns->columns[i].null_count = 0;
        columns->columns[i].is_same = true;
    }
}

void snd_columns_release(struct snd_columns *columns)
{
    for (size_t i = 0; i < columns->column_count; i++) {
        free(columns->columns[i].any);
        free(columns->columns[i].valid);
    }
    *columns = (struct snd_columns){ 0 };
}

static bool grow_one(void **array, size_t size)
{
    void *grown = realloc(*array, size);

    if (grown)
        *array = grown;
    return grown != NULL;
}

/* Room for so many rows. A multiple of 8 rows, so that bits fill whole bytes. */
static bool grow_to(struct snd_columns *columns, size_t capacity)
{
    for (size_t i = 0; i < columns->column_count; i++) {
        struct snd_column *column = &columns->columns[i];
        void              *valid = column->valid;
        if (!grow_one(&column->any, capacity * item_size(column)) ||
            !grow_one(&valid, capacity / 8))
            return false;
        column->valid = valid;
    }
    columns->capacity = capacity;
    return true;
}

static bool grow(struct snd_columns *columns)
{
    return grow_to(columns, columns->capacity ? 2 * columns->capacity : FIRST_ROWS);
}

/* Bits are kept from the first null on: most columns have none. Not for a value before it. */
static void set_valid(struct snd_column *column, size_t row, bool is_valid)
{
    if (column->null_count == 0)
        memset(column->valid, 0xff, row / 8 + 1);
    uint8_t bit = (uint8_t)(1u << row % 8);
    column->valid[row / 8] = (uint8_t)(is_valid ? column->valid[row / 8] | bit
                                                : column->valid[row / 8] & ~bit);
    column->null_count += !is_valid;
}

bool snd_column_text(struct snd_column_texts *texts, struct sonde_text text, uint32_t *number)
{
    const char *bytes = text.bytes ? text.bytes : "";
    uint32_t   *latest = &texts->latest[((uintptr_t)bytes >> 4) % SND_COLUMN_TEXTS];

    if (*latest != 0) { /* the bytes there may be others by now */
        const struct snd_text *known = &texts->all.items[*latest - 1];
        if (known->length == text.length && memcmp(known->bytes, bytes, text.length) == 0) {
            *number = *latest - 1;
            return true;
        }
    }
    if (!snd_texts_add(&texts->all, bytes, text.length, number))
        return false;
    *latest = *number + 1;
    return true;
}

static inline bool set_text(struct snd_column_texts *texts, const struct snd_sql_value *value,
                            uint32_t *number)
{
    size_t at = snd_sql_name_place(value->name);

    if (value->is_null) {
        *number = 0;
        return true;
    }
    if (value->name != 0 && texts->names[at].name == value->name) {
        *number = texts->names[at].text;
        return true;
    }
    if (!snd_column_text(texts, value->text, number))
        return false;
    if (value->name != 0) {
        texts->names[at].name = value->name;
        texts->names[at].text = *number;
    }
    return true;
}

static void fill(struct snd_column *column, size_t first, size_t count, int64_t value)
{
    if (column->type == SND_SQL_TEXT)
        for (size_t i = first; i < count; i++)
            column->texts[i] = (uint32_t)value;
    else
        for (size_t i = first; i < count; i++)
            column->numbers[i] = value;
}

/* What is the same of the rows before is written of each of them. */
void snd_column_spread(struct snd_column *column, size_t count)
{
    if (!column->is_same)
        return;
    column->is_same = false;
    column->null_count = column->is_same_null ? count : 0;
    if (column->is_same_null && count > 0)
        memset(column->valid, 0, (count + 7) / 8);
    fill(column, 0, count, column->same);
}

void snd_columns_spread(struct snd_columns *columns)
{
    snd_columns_settle(columns);
    for (size_t i = 0; i < columns->column_count; i++)
        snd_column_spread(&columns->columns[i], columns->count);
}

/* Whether all rows are the same with this one, too. */
static inline bool stays_same(struct snd_column *column, size_t row, bool is_null, int64_t value)
{
    if (row == 0) {
        column->is_same_null = is_null;
        column->same = value;
    }
    return column->is_same_null == is_null && column->same == value;
}

/* Rows from `first` on have the plain value, which of texts is null or empty. */
static void fill_plain(struct snd_column *column, size_t first, size_t count)
{
    int64_t value = column->type == SND_SQL_TEXT ? 0 : column->plain;

    if (column->is_same && stays_same(column, first, column->is_plain_null, value))
        return;
    snd_column_spread(column, first);
    if (column->is_plain_null && column->null_count == first) { /* nothing but nulls so far */
        memset(column->valid, 0, (count + 7) / 8);
        column->null_count = count;
    } else if (column->is_plain_null || column->null_count > 0) {
        for (size_t i = first; i < count; i++)
            set_valid(column, i, !column->is_plain_null);
    }
    fill(column, first, count, value);
}

void snd_columns_settle(struct snd_columns *columns)
{
    size_t first = columns->count - columns->lacking;

    for (size_t i = columns->lacked_from; columns->lacking > 0 && i < columns->column_count; i++)
        fill_plain(&columns->columns[i], first, columns->count);
    columns->lacking = 0;
    for (size_t i = 0; i < columns->column_count; i++)
        if (columns->columns[i].is_same)
            columns->columns[i].null_count = columns->columns[i].is_same_null ? columns->count : 0;
}

/* The first column that rows with so many given lack; what it is in them, `values` tell. */
static size_t begin_lacking(struct snd_columns *columns, const struct snd_sql_value *values,
                            size_t given)
{
    size_t from = columns->column_count;

    snd_columns_settle(columns);
    while (from > 0 && columns->columns[from - 1].from >= given)
        from--;
    for (size_t i = from; i < columns->column_count; i++) {
        struct snd_column *column = &columns->columns[i];
        column->plain = values[column->from].number;
        column->is_plain_null = values[column->from].is_null;
    }
    columns->lacked_from = from;
    columns->lacked_given = given;
    return from;
}

static bool add_text_value(struct snd_column *c, size_t row, const struct snd_sql_value *value,
                           struct snd_column_texts *texts)
{
    bool     is_null = value->is_null;
    uint32_t number;

    if (!set_text(texts, value, &number))
        return false;
    if (c->is_same && stays_same(c, row, is_null, number))
        return true;
    snd_column_spread(c, row);
    if (is_null || c->null_count > 0)
        set_valid(c, row, !is_null);
    c->texts[row] = number;
    return true;
}

/* Reals are kept by their bits, as numbers are; of what is null they are 0. */
bool snd_columns_add(struct snd_columns *columns, const struct snd_sql_value *values, size_t given,
                     struct snd_column_texts *texts)
{
    size_t row = columns->count, count = columns->column_count;

    if (row == columns->capacity && !grow(columns))
        return false;
    if (given < SND_SQL_COLUMNS_MAX && columns->is_in_order) {
        count = columns->lacking > 0 && columns->lacked_given == given
                    ? columns->lacked_from
                    : begin_lacking(columns, values, given);
        columns->lacking++;
    } else if (columns->lacking > 0) {
        snd_columns_settle(columns);
    }
    for (struct snd_column *c = columns->columns, *end = c + count; c < end; c++) {
        const struct snd_sql_value *value = &values[c->from];
        bool                        is_null = value->is_null;
        if (c->type == SND_SQL_TEXT) {
            if (!add_text_value(c, row, value, texts))
                return false;
            continue;
        }
        if (c->is_same && row > 0) {
            if (is_null == c->is_same_null && (is_null || value->number == c->same))
                continue;
            snd_column_spread(c, row);
        } else if (c->is_same) {
            stays_same(c, row, is_null, is_null ? 0 : value->number);
            continue;
        }
        if (is_null || c->null_count > 0)
            set_valid(c, row, !is_null);
        c->numbers[row] = is_null ? 0 : value->number;
    }
    columns->count++;
    return true;
}

/* ------------------------------------------------------------------ many at once */

bool snd_columns_reserve(struct snd_columns *columns, size_t count)
{
    snd_columns_settle(columns);
    while (columns->capacity < columns->count + count)
        if (!grow(columns))
            return false;
    return true;
}

/* Whether all rows are the same with these, too. */
static bool stay_same(struct snd_column *column, size_t row, const void *values, size_t count,
                      const bool *is_null)
{
    const int64_t  *numbers = values;
    const uint32_t *texts = values;
    bool            is_text = column->type == SND_SQL_TEXT;
    uint64_t        other = 0;

    if (row == 0) {
        column->is_same_null = is_null && is_null[0];
        column->same = is_text ? texts[0] : numbers[0];
    }
    if (!is_null && column->is_same_null)
        return false;
    for (size_t i = 0; is_null && i < count; i++)
        other |= is_null[i] != column->is_same_null;
    for (size_t i = 0; is_text && i < count; i++)
        other |= texts[i] ^ (uint32_t)column->same;
    for (size_t i = 0; !is_text && i < count; i++)
        other |= (uint64_t)(numbers[i] ^ column->same);
    return other == 0;
}

/* Memory of what stays the same is not touched. */
void snd_column_put(struct snd_column *column, size_t row, const void *values, size_t count,
                    const bool *is_null)
{
    if (column->is_same && stay_same(column, row, values, count, is_null))
        return;
    snd_column_spread(column, row);
    if (column->type == SND_SQL_TEXT)
        memcpy(column->texts + row, values, count * sizeof *column->texts);
    else
        memcpy(column->numbers + row, values, count * sizeof *column->numbers);
    if (!is_null && column->null_count == 0)
        return;
    for (size_t i = 0; i < count; i++)
        if ((is_null && is_null[i]) || column->null_count > 0)
            set_valid(column, row + i, !is_null || !is_null[i]);
}

/* A column at a time: its values lie side by side. */
static void copy_values(struct snd_column *to, size_t at, const struct snd_column *from,
                        const uint32_t *rows, size_t count)
{
    if (from->is_same) {
        fill(to, at, at + count, from->same);
        for (size_t i = at; i < at + count && (from->is_same_null || to->null_count > 0); i++)
            set_valid(to, i, !from->is_same_null);
        return;
    }
    if (to->type == SND_SQL_TEXT)
        for (size_t i = 0; i < count; i++)
            to->texts[at + i] = from->texts[rows[i]];
    else
        for (size_t i = 0; i < count; i++)
            to->numbers[at + i] = from->numbers[rows[i]];
    for (size_t i = 0; i < count && from->null_count + to->null_count > 0; i++) {
        bool is_null = snd_column_is_null(from, rows[i]);
        if (is_null || to->null_count > 0)
            set_valid(to, at + i, !is_null);
    }
}

bool snd_columns_copy(struct snd_columns *columns, const struct snd_columns *source,
                      const uint32_t *rows, size_t count)
{
    while (columns->capacity < columns->count + count)
        if (!grow(columns))
            return false;
    snd_columns_spread(columns);
    for (size_t i = 0; i < columns->column_count; i++)
        copy_values(&columns->columns[i], columns->count, &source->columns[i], rows, count);
    columns->count += count;
    return true;
}

static void pick_values(struct snd_column *to, const struct snd_column *from, size_t from_count,
                        const uint32_t *rows, size_t count)
{
    to->null_count = 0;
    to->is_same = from->is_same;
    to->is_same_null = from->is_same_null;
    to->same = from->same;
    if (from->is_same ? from->is_same_null : from->null_count == from_count) {
        memset(to->valid, 0, (count + 7) / 8);
        to->null_count = count;
    } else if (!from->is_same) {
        copy_values(to, 0, from, rows, count);
    }
}

bool snd_columns_pick(struct snd_columns *columns, const struct snd_columns *source,
                      const uint32_t *rows, size_t count)
{
    if (columns->capacity < count && !grow_to(columns, (count + 7) / 8 * 8))
        return false;
    for (size_t i = 0; i < columns->column_count; i++)
        pick_values(&columns->columns[i], &source->columns[i], source->count, rows, count);
    columns->count = count;
    return true;
}

/* Bits of a column that has nulls; how many there are. */
static size_t keep_valid(struct snd_column *column, const struct snd_run *runs, size_t count)
{
    size_t nulls = 0, to = 0;

    for (size_t k = 0; k < count; k++)
        for (size_t row = runs[k].first; row < runs[k].first + runs[k].count; row++, to++) {
            uint8_t bit = (uint8_t)(1u << to % 8);
            bool    is_null = snd_column_is_null(column, row);
            column->valid[to / 8] = (uint8_t)(is_null ? column->valid[to / 8] & ~bit
                                                      : column->valid[to / 8] | bit);
            nulls += is_null;
        }
    return nulls;
}

/* Rows only move forward, so that none is overwritten before it has moved. */
static void keep_values(struct snd_column *column, const struct snd_run *runs, size_t count)
{
    size_t size = item_size(column), to = 0;
    char  *bytes = column->any;

    for (size_t k = 0; k < count; k++) {
        memmove(bytes + to * size, bytes + runs[k].first * size, runs[k].count * size);
        to += runs[k].count;
    }
}

void snd_columns_keep(struct snd_columns *columns, const struct snd_run *runs, size_t count)
{
    size_t rows = 0;

    for (size_t k = 0; k < count; k++)
        rows += runs[k].count;
    for (struct snd_column *c = columns->columns, *end = c + columns->column_count; c < end; c++) {
        if (c->is_same)
            continue;
        if (c->null_count == columns->count)
            c->null_count = rows;
        else if (c->null_count > 0)
            c->null_count = keep_valid(c, runs, count);
        keep_values(c, runs, count);
    }
    columns->count = rows;
}
