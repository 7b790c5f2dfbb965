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
    *columns = (struct snd_columns){ .column_count = chosen.count };
    for (size_t i = 0; i < chosen.count; i++) {
        struct snd_column *column = &columns->columns[i];
        column->from = chosen.items[i];
        column->type = table->columns[column->from].type;
        columns->row_bytes += item_size(column);
    }
}

void snd_columns_clear(struct snd_columns *columns)
{
    columns->count = 0;
    for (size_t i = 0; i < columns->column_count; i++)
        columns->columns[i].null_count = 0;
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

/* Room for more rows. A multiple of 8 rows, so that bits fill whole bytes. */
static bool grow(struct snd_columns *columns)
{
    size_t capacity = columns->capacity ? 2 * columns->capacity : FIRST_ROWS;
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

static bool add_text(struct snd_column_texts *texts, struct sonde_text text, uint32_t *number)
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

/* Reals are kept by their bits, as numbers are. */
static inline bool set_value(struct snd_column *column, size_t row,
                             const struct snd_sql_value *value, struct snd_column_texts *texts)
{
    if (value->is_null || column->null_count > 0)
        set_valid(column, row, !value->is_null);
    if (column->type != SND_SQL_TEXT) {
        column->numbers[row] = value->is_null ? 0 : value->number;
        return true;
    }
    column->texts[row] = 0;
    return value->is_null || add_text(texts, value->text, &column->texts[row]);
}

bool snd_columns_add(struct snd_columns *columns, const struct snd_sql_value *values,
                     struct snd_column_texts *texts)
{
    if (columns->count == columns->capacity && !grow(columns))
        return false;
    for (size_t i = 0; i < columns->column_count; i++) {
        struct snd_column *column = &columns->columns[i];
        if (!set_value(column, columns->count, &values[column->from], texts))
            return false;
    }
    columns->count++;
    return true;
}

/* A column at a time: its values lie side by side. */
static void copy_values(struct snd_column *to, size_t at, const struct snd_column *from,
                        const uint32_t *rows, size_t count)
{
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
    for (size_t i = 0; i < columns->column_count; i++)
        copy_values(&columns->columns[i], columns->count, &source->columns[i], rows, count);
    columns->count += count;
    return true;
}
