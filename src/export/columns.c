/* SPDX-License-Identifier: Apache-2.0 */
#include "export/columns.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_ROWS 64

static size_t item_size(const struct snd_column *column)
{
    return column->type == SND_SQL_TEXT ? sizeof(uint32_t) : sizeof(int64_t);
}

void snd_columns_init(struct snd_columns *columns, const struct snd_sql_table *table,
                      size_t left_out)
{
    *columns = (struct snd_columns){ 0 };
    for (size_t i = 0; i < snd_sql_column_count(table); i++)
        if (i != left_out)
            columns->columns[columns->column_count++].type = table->columns[i].type;
}

void snd_columns_release(struct snd_columns *columns)
{
    for (size_t i = 0; i < columns->column_count; i++) {
        free(columns->columns[i].any);
        free(columns->columns[i].valid);
    }
    *columns = (struct snd_columns){ 0 };
}

size_t snd_columns_row_bytes(const struct snd_columns *columns)
{
    size_t bytes = 0;

    for (size_t i = 0; i < columns->column_count; i++)
        bytes += item_size(&columns->columns[i]);
    return bytes;
}

static bool grow_one(void **array, size_t size)
{
    void *grown = realloc(*array, size);

    if (grown)
        *array = grown;
    return grown != NULL;
}

/* Room for one more row. A multiple of 8 rows, so that bits fill whole bytes. */
static bool make_room(struct snd_columns *columns)
{
    if (columns->count < columns->capacity)
        return true;
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

/* Bits are kept from the first null on: most columns have none. */
static void set_valid(struct snd_column *column, size_t row, bool is_valid)
{
    if (is_valid && column->null_count == 0)
        return;
    if (column->null_count == 0)
        memset(column->valid, 0xff, row / 8 + 1);
    uint8_t bit = (uint8_t)(1u << row % 8);
    column->valid[row / 8] = (uint8_t)(is_valid ? column->valid[row / 8] | bit
                                                : column->valid[row / 8] & ~bit);
    column->null_count += !is_valid;
}

static bool set_value(struct snd_column *column, size_t row, const struct snd_sql_value *value,
                      struct snd_texts *texts)
{
    set_valid(column, row, !value->is_null);
    switch (column->type) {
    case SND_SQL_INTEGER:
        column->numbers[row] = value->is_null ? 0 : value->number;
        return true;
    case SND_SQL_REAL:
        column->reals[row] = value->is_null ? 0 : value->real;
        return true;
    default:
        column->texts[row] = 0;
        return value->is_null || snd_texts_add(texts, value->text.bytes ? value->text.bytes : "",
                                               value->text.length, &column->texts[row]);
    }
}

bool snd_columns_add(struct snd_columns *columns, const struct snd_sql_value *values,
                     size_t left_out, struct snd_texts *texts)
{
    if (!make_room(columns))
        return false;
    for (size_t i = 0; i < columns->column_count; i++)
        if (!set_value(&columns->columns[i], columns->count, &values[i + (i >= left_out)], texts))
            return false;
    columns->count++;
    return true;
}

bool snd_columns_copy(struct snd_columns *columns, const struct snd_columns *source, size_t from)
{
    if (!make_room(columns))
        return false;
    for (size_t i = 0; i < columns->column_count; i++) {
        struct snd_column       *to = &columns->columns[i];
        const struct snd_column *of = &source->columns[i];
        set_valid(to, columns->count, !snd_column_is_null(of, from));
        if (to->type == SND_SQL_TEXT)
            to->texts[columns->count] = of->texts[from];
        else
            to->numbers[columns->count] = of->numbers[from];
    }
    columns->count++;
    return true;
}
