/* SPDX-License-Identifier: Apache-2.0 */
#include "export/parquet/parquet_group.h"

#include <stdlib.h>
#include <string.h>

#include "base/text/utf8.h"
#include "export/encode/little_endian.h"
#include "export/encode/thrift.h"
#include "export/parquet/parquet_pack.h"
#include "sonde/export.h"

/* By enum snd_sql_type. */
static const int32_t type_numbers[] = { SND_PARQUET_INT64, SND_PARQUET_DOUBLE, SND_PARQUET_BYTES };

/* Parquet's numbers (parquet.thrift). */
enum { ENCODING_PLAIN = 0, ENCODING_RLE = 3, ENCODING_DELTA = 5, ENCODING_DICTIONARY = 8 };
enum { PAGE_DATA = 0, PAGE_DICTIONARY = 2 };
enum { REPETITION_OPTIONAL = 1, CONVERTED_UTF8 = 0 };

#define DICTIONARY_MOST 256u /* different numbers; texts are always in a dictionary */
#define SLOTS 1024u
#define BOUND_BYTES 128u /* a longer text is no bound of a row group */

/* What the footer says of a column of the group. */
struct chunk {
    int32_t  encoding;
    uint64_t dictionary_at, data_at, end_at; /* in the file; equal: no dictionary */
    size_t   null_count;
    bool     has_bounds;
    size_t   bound_length[2];
    char     bounds[2][BOUND_BYTES]; /* least, greatest */
};

void snd_parquet_scratch_release(struct snd_parquet_scratch *scratch)
{
    sonde_buffer_release(&scratch->bytes);
    sonde_buffer_release(&scratch->page);
    sonde_buffer_release(&scratch->text);
    free(scratch->values);
    free(scratch->ids);
    free(scratch->local);
    free(scratch->locals);
    *scratch = (struct snd_parquet_scratch){ 0 };
}

static bool make_room(struct snd_parquet_scratch *s, size_t values, size_t texts)
{
    if (values > s->value_room) {
        free(s->values);
        free(s->ids);
        free(s->locals);
        s->values = malloc(values * sizeof *s->values);
        s->ids = malloc(values * sizeof *s->ids);
        s->locals = malloc(values * sizeof *s->locals);
        s->value_room = s->values && s->ids && s->locals ? values : 0;
    }
    if (texts > s->local_room) { /* zero between columns: a text is not in the dictionary */
        free(s->local);
        s->local = calloc(2 * texts, sizeof *s->local);
        s->local_room = s->local ? 2 * texts : 0;
    }
    return values <= s->value_room && texts <= s->local_room;
}

/* ------------------------------------------------------------------------- pages */

static void put_page(struct snd_parquet_scratch *s, int32_t kind, size_t values, int32_t encoding)
{
    struct snd_thrift t;

    snd_thrift_begin(&t, &s->bytes);
    snd_thrift_i32(&t, 1, kind);
    snd_thrift_i32(&t, 2, (int32_t)s->page.length);
    snd_thrift_i32(&t, 3, (int32_t)s->page.length);
    snd_thrift_struct(&t, kind == PAGE_DATA ? 5 : 7);
    snd_thrift_i32(&t, 1, (int32_t)values);
    snd_thrift_i32(&t, 2, encoding);
    if (kind == PAGE_DATA) {
        snd_thrift_i32(&t, 3, ENCODING_RLE);
        snd_thrift_i32(&t, 4, ENCODING_RLE);
    }
    snd_thrift_end(&t);
    snd_thrift_end(&t);
    snd_buf_put(&s->bytes, s->page.bytes, s->page.length);
    s->bytes.failed |= s->page.failed;
    snd_buf_clear(&s->page);
}

/* Which rows are not null, `count` of them: 4 bytes of length, then runs of 0 and 1. */
static void put_levels(struct snd_parquet_scratch *s, const struct snd_parquet_rows *rows,
                       const struct snd_column *column, size_t count)
{
    snd_buf_clear(&s->text);
    if (count == 0 || count == rows->columns->count) {
        snd_parquet_run(&s->text, count > 0, rows->columns->count, 1);
    } else {
        for (size_t i = 0; i < rows->columns->count; i++)
            s->locals[i] = !snd_column_is_null(column, i);
        snd_parquet_runs(&s->text, s->locals, rows->columns->count, 1);
    }
    snd_buf_le(&s->page, s->text.length, 4);
    snd_buf_put(&s->page, s->text.bytes, s->text.length);
    s->page.failed |= s->text.failed;
}

static void put_ids(struct snd_parquet_scratch *s, size_t count, size_t dictionary)
{
    unsigned width = snd_bit_width(dictionary - 1);
    char     byte = (char)(width > 0 ? width : 1);

    snd_buf_put(&s->page, &byte, 1);
    snd_parquet_runs(&s->page, s->ids, count, (unsigned)byte);
}

/* ----------------------------------------------------------------------- numbers */

/* Little-endian, as Parquet has them and all that sonde runs on. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are written as they are");

static size_t number_any(const int64_t *values, size_t count, uint32_t *ids,
                         int64_t dictionary[DICTIONARY_MOST])
{
    uint16_t slots[SLOTS] = { 0 };
    size_t   n = 0;

    for (size_t i = 0; i < count; i++) {
        if (i > 0 && values[i] == values[i - 1]) {
            ids[i] = ids[i - 1];
            continue;
        }
        size_t at = (size_t)(((uint64_t)values[i] * 0x9e3779b97f4a7c15u) >> 54) % SLOTS;
        while (slots[at] && dictionary[slots[at] - 1u] != values[i])
            at = (at + 1) % SLOTS;
        if (!slots[at]) {
            if (n == DICTIONARY_MOST)
                return 0;
            dictionary[n++] = values[i];
            slots[at] = (uint16_t)n;
        }
        ids[i] = slots[at] - 1u;
    }
    return n;
}

/* The same of values that lie close together: each has a place of its own. */
static size_t number_close(const int64_t *values, size_t count, int64_t least, uint32_t *ids,
                           int64_t dictionary[DICTIONARY_MOST])
{
    uint16_t slots[DICTIONARY_MOST] = { 0 };
    size_t   n = 0;

    for (size_t i = 0; i < count; i++) {
        uint16_t *slot = &slots[(uint64_t)values[i] - (uint64_t)least];
        if (*slot == 0) {
            dictionary[n++] = values[i];
            *slot = (uint16_t)n;
        }
        ids[i] = *slot - 1u;
    }
    return n;
}

/*
 * Numbers each value by its place in `dictionary`; how many there are, or 0 if more than DICTIONARY_MOST.
 * Values are compared by their bits. All of them lie between the bounds.
 */
static size_t number_values(const int64_t *values, size_t count, const int64_t bounds[2],
                            uint32_t *ids, int64_t dictionary[DICTIONARY_MOST])
{
    return (uint64_t)bounds[1] - (uint64_t)bounds[0] < DICTIONARY_MOST
               ? number_close(values, count, bounds[0], ids, dictionary)
               : number_any(values, count, ids, dictionary);
}

static void put_bounds(struct chunk *chunk, int64_t least, int64_t greatest)
{
    chunk->has_bounds = true;
    chunk->bound_length[0] = chunk->bound_length[1] = sizeof least;
    memcpy(chunk->bounds[0], &least, sizeof least);
    memcpy(chunk->bounds[1], &greatest, sizeof greatest);
}

static void find_bounds(const int64_t *values, size_t count, int64_t bounds[2])
{
    int64_t least = values[0], greatest = values[0];

    for (size_t i = 1; i < count; i++) {
        least = values[i] < least ? values[i] : least;
        greatest = values[i] > greatest ? values[i] : greatest;
    }
    bounds[0] = least;
    bounds[1] = greatest;
}

/* A zero has both signs as a bound, as Parquet asks. NaN is null in the tables. */
static void bound_reals(struct chunk *chunk, const int64_t *bits, size_t count)
{
    double  value, least = 0, greatest = 0;
    int64_t bounds[2];

    for (size_t i = 0; i < count; i++) {
        memcpy(&value, &bits[i], sizeof value);
        least = i == 0 || value < least ? value : least;
        greatest = i == 0 || value > greatest ? value : greatest;
    }
    least = least == 0 ? -0.0 : least;
    greatest = greatest == 0 ? 0.0 : greatest;
    memcpy(&bounds[0], &least, sizeof least);
    memcpy(&bounds[1], &greatest, sizeof greatest);
    put_bounds(chunk, bounds[0], bounds[1]);
}

static void put_numbers(struct snd_parquet_scratch *s, const struct snd_parquet_rows *rows,
                        const struct snd_column *column, const int64_t *values, size_t count,
                        struct chunk *chunk)
{
    int64_t dictionary[DICTIONARY_MOST], bounds[2];
    bool    is_real = column->type == SND_SQL_REAL;

    find_bounds(values, count, bounds);
    size_t different = number_values(values, count, bounds, s->ids, dictionary);
    if (is_real)
        bound_reals(chunk, values, count);
    else
        put_bounds(chunk, bounds[0], bounds[1]);
    if (different > 0) {
        snd_buf_put(&s->page, dictionary, different * sizeof dictionary[0]);
        put_page(s, PAGE_DICTIONARY, different, ENCODING_PLAIN);
        chunk->data_at = rows->offset + s->bytes.length;
    }
    put_levels(s, rows, column, count);
    if (different > 0)
        put_ids(s, count, different);
    else if (is_real)
        snd_buf_put(&s->page, values, count * sizeof *values);
    else
        snd_parquet_deltas(&s->page, values, count);
    chunk->encoding = different > 0 ? ENCODING_DICTIONARY
                      : is_real     ? ENCODING_PLAIN
                                    : ENCODING_DELTA;
}

/* ------------------------------------------------------------------------- texts */

static void bound_text(struct chunk *chunk, int which, const struct sonde_buffer *text)
{
    size_t length = text->length < chunk->bound_length[which] ? text->length
                                                              : chunk->bound_length[which];
    int order = chunk->has_bounds ? memcmp(snd_buf_string(text), chunk->bounds[which], length) : 0;

    if (order == 0 && chunk->has_bounds)
        order = text->length < chunk->bound_length[which] ? -1 : 1;
    if (chunk->has_bounds && (which == 0 ? order > 0 : order < 0))
        return;
    memcpy(chunk->bounds[which], snd_buf_string(text), text->length);
    chunk->bound_length[which] = text->length;
}

/* The dictionary is numbered as texts come; s->local is the number of each plus one. */
static size_t number_texts(struct snd_parquet_scratch *s, const struct snd_texts *texts,
                           size_t count, struct chunk *chunk)
{
    size_t n = 0;
    bool   has_long = false;

    for (size_t i = 0; i < count; i++) {
        uint32_t text = (uint32_t)s->values[i];
        if (s->local[text] == 0) {
            snd_buf_clear(&s->text);
            snd_utf8_clean(&s->text, texts->items[text].bytes, texts->items[text].length);
            s->page.failed |= s->text.failed;
            snd_buf_le(&s->page, s->text.length, 4);
            snd_buf_put(&s->page, s->text.bytes, s->text.length);
            has_long |= s->text.length > BOUND_BYTES;
            if (!has_long) {
                bound_text(chunk, 0, &s->text);
                bound_text(chunk, 1, &s->text);
                chunk->has_bounds = true;
            }
            s->locals[n++] = text;
            s->local[text] = (uint32_t)n;
        }
        s->ids[i] = s->local[text] - 1;
    }
    for (size_t i = 0; i < n; i++)
        s->local[s->locals[i]] = 0;
    chunk->has_bounds &= !has_long;
    return n;
}

static void put_texts(struct snd_parquet_scratch *s, const struct snd_parquet_rows *rows,
                      const struct snd_column *column, size_t count, struct chunk *chunk)
{
    size_t different = number_texts(s, rows->texts, count, chunk);

    put_page(s, PAGE_DICTIONARY, different, ENCODING_PLAIN);
    chunk->data_at = rows->offset + s->bytes.length;
    put_levels(s, rows, column, count);
    put_ids(s, count, different);
    chunk->encoding = ENCODING_DICTIONARY;
}

/* ------------------------------------------------------------------------ groups */

/* The numbers that are not null, or numbers of texts, in order; how many. */
static size_t gather(struct snd_parquet_scratch *s, const struct snd_parquet_rows *rows,
                     const struct snd_column *column, const int64_t **values)
{
    size_t n = 0, count = rows->columns->count;

    *values = s->values;
    if (column->null_count == count)
        return 0;
    if (column->is_same) { /* a few rows */
        for (; n < count; n++)
            s->values[n] = column->same;
        return n;
    }
    if (column->null_count == 0 && column->type != SND_SQL_TEXT) {
        *values = column->numbers;
        return count;
    }
    for (size_t i = 0; i < count; i++)
        if (!snd_column_is_null(column, i))
            s->values[n++] = column->type == SND_SQL_TEXT ? column->texts[i] : column->numbers[i];
    return n;
}

#define RUN_LEAST 8u /* values that are written as a run rather than one by one */

/* A dictionary of one, and one run of it. */
static void put_constant(struct snd_parquet_scratch *s, const struct snd_parquet_rows *rows,
                         const struct snd_column *column, struct chunk *chunk)
{
    static const char width = 1;

    if (column->type == SND_SQL_TEXT) {
        s->values[0] = column->same;
        number_texts(s, rows->texts, 1, chunk);
    } else {
        int64_t value = column->same;
        if (column->type == SND_SQL_REAL)
            bound_reals(chunk, &value, 1);
        else
            put_bounds(chunk, value, value);
        snd_buf_put(&s->page, &value, sizeof value);
    }
    put_page(s, PAGE_DICTIONARY, 1, ENCODING_PLAIN);
    chunk->data_at = rows->offset + s->bytes.length;
    put_levels(s, rows, column, rows->columns->count);
    snd_buf_put(&s->page, &width, 1);
    snd_parquet_run(&s->page, 0, rows->columns->count, 1);
    chunk->encoding = ENCODING_DICTIONARY;
}

static void put_chunk(struct snd_parquet_scratch *s, const struct snd_parquet_rows *rows,
                      const struct snd_column *column, struct chunk *chunk)
{
    size_t         all = rows->columns->count;
    const int64_t *values = NULL;
    bool           is_same = column->is_same && column->null_count == 0 && all >= RUN_LEAST;
    size_t         count = is_same ? all : gather(s, rows, column, &values);

    *chunk = (struct chunk){ .null_count = all - count };
    chunk->dictionary_at = chunk->data_at = rows->offset + s->bytes.length;
    snd_buf_clear(&s->page);
    if (is_same) {
        put_constant(s, rows, column, chunk);
    } else if (count == 0) {
        put_levels(s, rows, column, count);
        chunk->encoding = ENCODING_PLAIN;
    } else if (column->type == SND_SQL_TEXT) {
        put_texts(s, rows, column, count, chunk);
    } else {
        put_numbers(s, rows, column, values, count, chunk);
    }
    put_page(s, PAGE_DATA, rows->columns->count, chunk->encoding);
    chunk->end_at = rows->offset + s->bytes.length;
}

/* A ColumnChunk of the footer. */
static void describe_chunk(struct snd_thrift *t, const char *name, int32_t type, size_t rows,
                           const struct chunk *chunk)
{
    int64_t bytes = (int64_t)(chunk->end_at - chunk->dictionary_at);
    bool    has_dictionary = chunk->data_at != chunk->dictionary_at;

    snd_thrift_element(t);
    snd_thrift_i64(t, 2, (int64_t)chunk->dictionary_at);
    snd_thrift_struct(t, 3);
    snd_thrift_i32(t, 1, type);
    snd_thrift_list(t, 2, SND_THRIFT_I32, has_dictionary ? 3 : 2);
    snd_thrift_element_i32(t, ENCODING_RLE);
    snd_thrift_element_i32(t, chunk->encoding);
    if (has_dictionary)
        snd_thrift_element_i32(t, ENCODING_PLAIN);
    snd_thrift_list(t, 3, SND_THRIFT_BINARY, 1);
    snd_thrift_element_text(t, name);
    snd_thrift_i32(t, 4, 0); /* not compressed */
    snd_thrift_i64(t, 5, (int64_t)rows);
    snd_thrift_i64(t, 6, bytes);
    snd_thrift_i64(t, 7, bytes);
    snd_thrift_i64(t, 9, (int64_t)chunk->data_at);
    if (has_dictionary)
        snd_thrift_i64(t, 11, (int64_t)chunk->dictionary_at);
    snd_thrift_struct(t, 12);
    snd_thrift_i64(t, 3, (int64_t)chunk->null_count);
    if (chunk->has_bounds) {
        snd_thrift_bytes(t, 5, chunk->bounds[1], chunk->bound_length[1]);
        snd_thrift_bytes(t, 6, chunk->bounds[0], chunk->bound_length[0]);
    }
    snd_thrift_end(t);
    snd_thrift_end(t);
    snd_thrift_end(t);
}

static void end_group(struct snd_thrift *t, const struct snd_parquet_rows *rows, int64_t bytes)
{
    snd_thrift_i64(t, 2, bytes);
    snd_thrift_i64(t, 3, (int64_t)rows->columns->count);
    if (rows->sorted_by != SIZE_MAX) {
        snd_thrift_list(t, 4, SND_THRIFT_STRUCT, 1);
        snd_thrift_element(t);
        snd_thrift_i32(t, 1, (int32_t)rows->sorted_by);
        snd_thrift_bool(t, 2, false);
        snd_thrift_bool(t, 3, false);
        snd_thrift_end(t);
    }
    snd_thrift_i64(t, 5, (int64_t)rows->offset);
    snd_thrift_i64(t, 6, bytes);
    snd_thrift_i16(t, 7, rows->ordinal);
    snd_thrift_end(t);
}

bool snd_parquet_group(struct snd_parquet_scratch *scratch, const struct snd_parquet_rows *rows,
                       struct sonde_buffer *footer)
{
    const struct snd_columns *columns = rows->columns;
    struct snd_thrift         t;
    struct chunk              chunk;

    if (!make_room(scratch, rows->columns->count, rows->texts->count))
        return false;
    snd_buf_clear(&scratch->bytes);
    snd_thrift_begin(&t, footer);
    snd_thrift_list(&t, 1, SND_THRIFT_STRUCT, columns->column_count);
    for (size_t i = 0; i < columns->column_count; i++) {
        put_chunk(scratch, rows, &columns->columns[i], &chunk);
        describe_chunk(&t, rows->table->columns[i + (i >= rows->left_out)].name,
                       type_numbers[columns->columns[i].type], rows->columns->count, &chunk);
    }
    end_group(&t, rows, (int64_t)scratch->bytes.length);
    return !scratch->bytes.failed && !footer->failed;
}

/* ------------------------------------------------------------------------ footer */

static void describe_column(struct snd_thrift *t, const struct snd_sql_column *column)
{
    snd_thrift_element(t);
    snd_thrift_i32(t, 1, type_numbers[column->type]);
    snd_thrift_i32(t, 3, REPETITION_OPTIONAL);
    snd_thrift_bytes(t, 4, column->name, strlen(column->name));
    if (column->type == SND_SQL_TEXT) {
        snd_thrift_i32(t, 6, CONVERTED_UTF8);
        snd_thrift_struct(t, 10); /* LogicalType, of which STRING is the first, without fields */
        snd_thrift_struct(t, 1);
        snd_thrift_end(t);
        snd_thrift_end(t);
    }
    snd_thrift_end(t);
}

static void describe_schema(struct snd_thrift *t, const struct snd_sql_table *table,
                            size_t left_out)
{
    size_t columns = snd_sql_column_count(table);
    size_t written = columns - (left_out < columns);

    snd_thrift_list(t, 2, SND_THRIFT_STRUCT, written + 1);
    snd_thrift_element(t);
    snd_thrift_bytes(t, 4, table->name, strlen(table->name));
    snd_thrift_i32(t, 5, (int32_t)written);
    snd_thrift_end(t);
    for (size_t i = 0; i < columns; i++)
        if (i != left_out)
            describe_column(t, &table->columns[i]);
}

void snd_parquet_footer(struct sonde_buffer *out, const struct snd_sql_table *table,
                        size_t left_out, const struct sonde_buffer *groups, size_t count,
                        uint64_t rows)
{
    struct snd_thrift   t;
    struct sonde_buffer writer = { 0 };
    size_t columns = snd_sql_column_count(table), written = columns - (left_out < columns);

    snd_buf_format(&writer, "sonde version %s", sonde_version());
    snd_thrift_begin(&t, out);
    snd_thrift_i32(&t, 1, 2);
    describe_schema(&t, table, left_out);
    snd_thrift_i64(&t, 3, (int64_t)rows);
    snd_thrift_list(&t, 4, SND_THRIFT_STRUCT, count);
    snd_buf_put(out, groups->bytes, groups->length);
    snd_thrift_bytes(&t, 6, writer.bytes, writer.length);
    snd_thrift_list(&t, 7, SND_THRIFT_STRUCT, written); /* bounds are in the order of the types */
    for (size_t i = 0; i < written; i++) {
        snd_thrift_element(&t);
        snd_thrift_struct(&t, 1);
        snd_thrift_end(&t);
        snd_thrift_end(&t);
    }
    snd_thrift_end(&t);
    snd_buf_le(out, out->length, 4);
    snd_buf_put(out, "PAR1", 4);
    out->failed |= groups->failed || writer.failed;
    sonde_buffer_release(&writer);
}
