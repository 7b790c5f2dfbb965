/* SPDX-License-Identifier: Apache-2.0 */
/* export/tables/table_columns.c - sonde/tables.h: a table as columns in memory. */
#include <stdlib.h>
#include <string.h>

#include "base/text/utf8.h"
#include "export/tables/table_rows.h"
#include "read/reader.h"

_Static_assert((int)SONDE_COLUMN_INTEGER == (int)SND_SQL_INTEGER &&
                   (int)SONDE_COLUMN_REAL == (int)SND_SQL_REAL &&
                   (int)SONDE_COLUMN_TEXT == (int)SND_SQL_TEXT,
               "types are handed out as they are");

/* A table on its way. */
struct filled {
    struct sonde_table *table;
    bool                failed;
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

enum sonde_status snd_sqltable_find(const char *name, enum snd_sql_table_id *id,
                                    struct sonde_error *err)
{
    for (size_t i = 0; i < SND_SQL_TABLES; i++)
        if (strcmp(snd_sql_tables[i].name, name) == 0) {
            *id = (enum snd_sql_table_id)i;
            return SONDE_OK;
        }
    return refuse(name, err);
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

bool snd_sqltable_show(struct sonde_table *table)
{
    snd_columns_spread(&table->rows);
    for (size_t i = 0; i < table->rows.column_count; i++) {
        const struct snd_column *column = &table->rows.columns[i];
        table->shown[i] = (struct sonde_table_column){
            .name = table->of->columns[column->from].name,
            .type = (enum sonde_column_type)column->type,
            .data = column->any,
            .valid = column->null_count > 0 ? column->valid : NULL,
            .null_count = column->null_count,
        };
    }
    return clean_texts(&table->texts.all);
}

struct sonde_table *snd_sqltable_begin(const struct snd_sql_table *of, struct snd_chosen chosen)
{
    struct sonde_table *table = calloc(1, sizeof *table);

    if (table) {
        table->of = of;
        snd_columns_init(&table->rows, of, chosen);
    }
    return table;
}

void snd_sqltable_clear(struct sonde_table *table)
{
    snd_columns_clear(&table->rows);
    snd_texts_release(&table->texts.all);
    table->texts = (struct snd_column_texts){ 0 };
}

void snd_sqltable_release(struct sonde_table *table)
{
    snd_columns_release(&table->rows);
    snd_texts_release(&table->texts.all);
    free(table);
}

static bool take_row(void *user, enum snd_sql_table_id id, const struct snd_sql_value *values,
                     size_t given)
{
    struct filled *filled = user;

    (void)id; /* it is the only one wanted */
    filled->failed = !snd_columns_add(&filled->table->rows, values, given, &filled->table->texts);
    return !filled->failed;
}

enum sonde_status sonde_table_new(struct sonde_trace *trace, const char *name,
                                  struct sonde_table **out, struct sonde_error *err)
{
    enum snd_sql_table_id id;
    enum sonde_status     st = snd_sqltable_find(name, &id, err);

    *out = NULL;
    if (st != SONDE_OK)
        return st;
    const struct snd_sql_table *of = &snd_sql_tables[id];
    struct filled filled = { .table = snd_sqltable_begin(of, snd_chosen_but(of, SIZE_MAX)) };
    if (!filled.table)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the table %s", name);
    st = snd_sql_table_rows(trace, id, UINT32_MAX, SND_SQL_BY_TIME, take_row, &filled, err);
    if (st == SONDE_OK && (filled.failed || !snd_sqltable_show(filled.table)))
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for the table %s", name);
    if (st == SONDE_OK)
        *out = filled.table;
    else
        snd_sqltable_release(filled.table);
    return st;
}

void sonde_table_free(struct sonde_table *table)
{
    if (table && table->give_back)
        table->give_back(table);
    else if (table)
        snd_sqltable_release(table);
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
