/* SPDX-License-Identifier: Apache-2.0 */
/* export/tables/table_columns.c - sonde/tables.h: a table as columns in memory. */
#include "sonde/tables.h"

#include <stdlib.h>
#include <string.h>

#include "base/text/utf8.h"
#include "export/tables/column_store.h"
#include "read/reader.h"

_Static_assert((int)SONDE_COLUMN_INTEGER == (int)SND_SQL_INTEGER &&
                   (int)SONDE_COLUMN_REAL == (int)SND_SQL_REAL &&
                   (int)SONDE_COLUMN_TEXT == (int)SND_SQL_TEXT,
               "types are handed out as they are");

struct sonde_table {
    const struct snd_sql_table *of;
    struct snd_columns          rows;
    struct snd_column_texts     texts;
    struct sonde_table_column   shown[SND_SQL_COLUMNS_MAX];
    bool                        failed;
};

const char *sonde_table_name(size_t index)
{
    return index < SND_SQL_TABLES ? snd_sql_tables[index].name : NULL;
}

void sonde_trace_job(const struct sonde_trace *trace, char job[SONDE_JOB_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t    *id = trace->processes[0].header.session;

    *job++ = 's'; /* readers of folders take digits alone for a number */
    for (size_t i = 0; i < sizeof trace->processes[0].header.session; i++) {
        *job++ = digits[id[i] >> 4];
        *job++ = digits[id[i] & 15];
    }
    *job = '\0';
}

static enum sonde_status refuse(const char *name, struct sonde_error *err)
{
    struct sonde_buffer names = { 0 };

    for (size_t i = 0; i < SND_SQL_TABLES; i++)
        snd_buf_format(&names, "%s%s", i ? ", " : "", snd_sql_tables[i].name);
    enum sonde_status st = snd_fail(err, SONDE_E_ARGUMENT, "unknown table '%.60s'; tables: %s",
                                    name, snd_buf_string(&names));
    sonde_buffer_release(&names);
    return st;
}

static bool take_row(void *user, enum snd_sql_table_id id, const struct snd_sql_value *values)
{
    struct sonde_table *table = user;

    (void)id; /* it is the only one wanted */
    table->failed = !snd_columns_add(&table->rows, values, SIZE_MAX, &table->texts);
    return !table->failed;
}

/* Texts become UTF-8 once they are all there; most are already. */
static bool clean_texts(struct snd_texts *texts)
{
    struct sonde_buffer clean = { 0 };
    bool                good = true;

    for (uint32_t i = 0; good && i < texts->count; i++) {
        struct snd_text *text = &texts->items[i];
        snd_buf_clear(&clean);
        snd_utf8_clean(&clean, text->bytes, text->length);
        if (clean.length == text->length)
            continue;
        text->bytes = clean.failed ? NULL
                                   : snd_arena_copy(&texts->arena, clean.bytes, clean.length);
        text->length = clean.length;
        good = text->bytes != NULL;
    }
    good &= !clean.failed;
    sonde_buffer_release(&clean);
    return good;
}

static void show_columns(struct sonde_table *table)
{
    for (size_t i = 0; i < table->rows.column_count; i++) {
        const struct snd_column *column = &table->rows.columns[i];
        table->shown[i] = (struct sonde_table_column){
            .name = table->of->columns[i].name,
            .type = (enum sonde_column_type)column->type,
            .data = column->any,
            .valid = column->null_count > 0 ? column->valid : NULL,
            .null_count = column->null_count,
        };
    }
}

enum sonde_status sonde_table_new(struct sonde_trace *trace, const char *name,
                                  struct sonde_table **out, struct sonde_error *err)
{
    size_t id = 0;

    *out = NULL;
    while (id < SND_SQL_TABLES && strcmp(snd_sql_tables[id].name, name) != 0)
        id++;
    if (id == SND_SQL_TABLES)
        return refuse(name, err);
    struct sonde_table *table = calloc(1, sizeof *table);
    if (!table)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the table %s", name);
    table->of = &snd_sql_tables[id];
    snd_columns_init(&table->rows, table->of, SIZE_MAX);
    enum sonde_status st = snd_sql_rows(trace, 1u << id, take_row, table, err);
    if (st == SONDE_OK && (table->failed || !clean_texts(&table->texts.all)))
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for the table %s", name);
    if (st != SONDE_OK) {
        sonde_table_free(table);
        return st;
    }
    show_columns(table);
    *out = table;
    return SONDE_OK;
}

void sonde_table_free(struct sonde_table *table)
{
    if (!table)
        return;
    snd_columns_release(&table->rows);
    snd_texts_release(&table->texts.all);
    free(table);
}

size_t sonde_table_row_count(const struct sonde_table *table)
{
    return table->rows.count;
}

const struct sonde_table_column *sonde_table_column(const struct sonde_table *table, size_t index)
{
    return index < table->rows.column_count ? &table->shown[index] : NULL;
}

size_t sonde_table_text_count(const struct sonde_table *table)
{
    return table->texts.all.count;
}

struct sonde_text sonde_table_text(const struct sonde_table *table, size_t index)
{
    if (index >= table->texts.all.count)
        return (struct sonde_text){ "", 0 };
    return (struct sonde_text){ table->texts.all.items[index].bytes,
                                table->texts.all.items[index].length };
}
