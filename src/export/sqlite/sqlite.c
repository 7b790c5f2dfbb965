/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/sqlite/sqlite.c - the tables of a trace (tables.def) as an SQLite database.
 *
 * The file is written as its format has it (sqlite_file.h), without SQLite, of whose time most would go into finding the end of
 * a table anew for each row. Page 1 is the last to be known, so that what is no file is copied from a temporary one.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/processors.h"
#include "base/text/buf.h"
#include "base/data/map.h"
#include "base/text/utf8.h"
#include "export/common/exporter.h"
#include "export/tables/row_lists.h"
#include "export/sqlite/sqlite_file.h"
#include "export/tables/row_parts.h"

#define INDEXED_NAME "ranges_name"
#define INDEXED_TABLE SND_TABLE_ranges

/* How many columns a table has, their types, and which of them are texts. */
struct columns {
    size_t  count, text_count;
    uint8_t types[SND_SQL_COLUMNS_MAX];
    size_t  texts[SND_SQL_COLUMNS_MAX];
};

/* What snd_sqlmaker_texts() gives, of which the first, the name, is indexed. */
#define RANGE_TEXTS 3
static const struct columns range_texts = { RANGE_TEXTS, RANGE_TEXTS, { 0 }, { 0, 1, 2 } };

struct database {
    struct snd_sqlite_file *file;
    struct snd_sqlite_tree  tables[SND_SQL_TABLES];
    struct columns          columns[SND_SQL_TABLES];
    struct sonde_buffer     record;
    struct sonde_buffer     texts[SND_SQL_COLUMNS_MAX]; /* by column, of what had to be cleaned */
    uint32_t                valid[SND_SQL_NAMES];       /* names whose texts are UTF-8 */
    struct snd_rowlists     names;                      /* rows of the index, by name */
    bool                    failed;
};

static struct columns list_columns(const struct snd_sql_table *table)
{
    struct columns columns = { .count = snd_sql_column_count(table) };

    for (size_t i = 0; i < columns.count; i++) {
        columns.types[i] = (uint8_t)table->columns[i].type;
        if (table->columns[i].type == SND_SQL_TEXT)
            columns.texts[columns.text_count++] = i;
    }
    return columns;
}

/* ---------------------------------------------------------------------- records */

static bool is_clean(struct database *d, const struct snd_sql_value *value)
{
    uint32_t *valid = &d->valid[snd_sql_name_place(value->name)];

    if (value->is_null || (value->name != 0 && *valid == value->name))
        return true;
    if (snd_utf8_valid(value->text.bytes, value->text.length) != value->text.length)
        return false;
    if (value->name != 0)
        *valid = value->name;
    return true;
}

/*
 * Readers decode text: what is not UTF-8 becomes the replacement character, as in JSON. `given`, or a copy in `cleaned` if it
 * has such texts.
 */
static const struct snd_sql_value *clean(struct database *d, const struct columns *columns,
                                         const struct snd_sql_value *given,
                                         struct snd_sql_value       *cleaned)
{
    const struct snd_sql_value *values = given;

    for (size_t k = 0; k < columns->text_count; k++) {
        size_t                   i = columns->texts[k];
        const struct sonde_text *text = &given[i].text;
        if (is_clean(d, &given[i]))
            continue;
        if (values == given)
            memcpy(cleaned, given, columns->count * sizeof *given);
        values = cleaned;
        snd_buf_clear(&d->texts[i]);
        snd_utf8_clean(&d->texts[i], text->bytes, text->length);
        cleaned[i].text = (struct sonde_text){ d->texts[i].bytes, d->texts[i].length };
        d->failed |= d->texts[i].failed;
    }
    return values;
}

/* The sizes of a record's parts: the types of its values, led by the size of both, and their bytes at the most. */
static size_t measure_types(const struct columns *columns, const struct snd_sql_value *values,
                            size_t *body)
{
    size_t types = columns->count;

    *body = 8 * columns->count;
    for (size_t k = 0; k < columns->text_count; k++) {
        size_t i = columns->texts[k];
        if (values[i].is_null)
            continue;
        types += snd_sqlite_varint_size(SND_SQLITE_TEXT(values[i].text.length)) - 1;
        *body += values[i].text.length;
    }
    return types + (types + 1 < 0x80 ? 1 : 2);
}

/* A record that is being filled: where the type of the next value goes, and its bytes. */
struct record {
    uint8_t *type, *at;
};

/* Room for a record with so many bytes of types and at most so many of values; false: out of memory. */
static bool begin_record(struct database *d, size_t header, size_t body, struct record *record)
{
    snd_buf_clear(&d->record);
    record->type = (uint8_t *)snd_buf_room(&d->record, header + body);
    if (!record->type) {
        d->failed = true;
        return false;
    }
    record->at = record->type + header;
    record->type += snd_sqlite_varint(record->type, header);
    return true;
}

static inline void add_null(struct record *to)
{
    *to->type++ = SND_SQLITE_NULL;
}

static inline void add_integer(struct record *to, int64_t value)
{
    to->at += snd_sqlite_integer(to->at, value, to->type++);
}

static inline void add_real(struct record *to, double value)
{
    to->at += snd_sqlite_real(to->at, value, to->type++);
}

static inline void add_text(struct record *to, struct sonde_text text)
{
    to->type += snd_sqlite_varint(to->type, SND_SQLITE_TEXT(text.length));
    if (text.length > 0)
        memcpy(to->at, text.bytes, text.length);
    to->at += text.length;
}

static void make_record(struct database *d, const struct columns *columns,
                        const struct snd_sql_value *values)
{
    struct record record;
    size_t        body, header = measure_types(columns, values, &body);

    if (!begin_record(d, header, body, &record))
        return;
    const struct snd_sql_value *value = values;
    for (const uint8_t *of = columns->types; of < columns->types + columns->count; of++, value++) {
        if (value->is_null) {
            add_null(&record);
        } else if (*of == SND_SQL_INTEGER || (*of == SND_SQL_REAL && value->number == 0)) {
            add_integer(&record, value->number);
        } else if (*of == SND_SQL_REAL) {
            add_real(&record, value->real);
        } else {
            add_text(&record, value->text);
        }
    }
    snd_buf_end(&d->record, (char *)record.at);
}

/* Adds the record to a table. */
static bool add_record(struct database *d, enum snd_sql_table_id id)
{
    struct snd_sqlite_tree *tree = &d->tables[id];

    if (d->failed)
        return false;
    snd_sqlite_add(d->file, tree, tree->rowid + 1, (const uint8_t *)d->record.bytes,
                   d->record.length);
    return !snd_sqlite_failed(d->file);
}

static bool put_row(void *user, enum snd_sql_table_id id, const struct snd_sql_value *row,
                    size_t given)
{
    struct database     *d = user;
    struct snd_sql_value cleaned[SND_SQL_COLUMNS_MAX];

    (void)given;
    make_record(d, &d->columns[id], clean(d, &d->columns[id], row, cleaned));
    return add_record(d, id);
}

/* What make_range_record() goes by: a column more, or elsewhere, goes there as well. */
#define AT(column, number)                                                                   \
    _Static_assert(offsetof(struct snd_columns_of_ranges, column) == (number), "columns of " \
                                                                               "ranges")
AT(name, 2);
AT(depth, 6);
AT(step, 7);
AT(shapes, 10);
AT(module, 11);
AT(stack, 12);
AT(flops, 13);
AT(self_device_bytes, 17);
_Static_assert(sizeof(struct snd_columns_of_ranges) == 18, "columns of ranges");

/* The record of a range, in the order of its columns, without values between: most rows of most traces are ranges. */
static void make_range_record(struct database *d, const struct snd_sql_range *r,
                              const struct snd_sql_value texts[RANGE_TEXTS])
{
    size_t        types = d->columns[SND_TABLE_ranges].count, body = 8 * types;
    struct record record;

    for (size_t k = 0; k < RANGE_TEXTS; k++)
        if (!texts[k].is_null) {
            types += snd_sqlite_varint_size(SND_SQLITE_TEXT(texts[k].text.length)) - 1;
            body += texts[k].text.length;
        }
    if (!begin_record(d, types + (types + 1 < 0x80 ? 1 : 2), body, &record))
        return;
    add_integer(&record, r->process);
    add_integer(&record, r->thread);
    add_text(&record, texts[0].text);
    add_integer(&record, r->start_ns);
    add_integer(&record, r->total_ns);
    add_integer(&record, r->self_ns);
    add_integer(&record, r->depth);
    if (r->has_step)
        add_integer(&record, (int64_t)r->step);
    else
        add_null(&record);
    add_integer(&record, r->is_user);
    add_integer(&record, r->is_async);
    for (size_t k = 1; k < RANGE_TEXTS; k++)
        if (texts[k].is_null)
            add_null(&record);
        else
            add_text(&record, texts[k].text);
    if (r->stack != 0)
        add_integer(&record, r->stack);
    else
        add_null(&record);
    if (isnan(r->flops))
        add_null(&record);
    else
        add_real(&record, r->flops);
    add_integer(&record, r->cpu_bytes);
    add_integer(&record, r->self_cpu_bytes);
    add_integer(&record, r->device_bytes);
    add_integer(&record, r->self_device_bytes);
    snd_buf_end(&d->record, (char *)record.at);
}

static bool put_range(void *user, struct snd_sql_maker *maker, const struct snd_sql_range *r)
{
    struct database            *d = user;
    const struct snd_sql_value *given = snd_sqlmaker_texts(maker, r);
    struct snd_sql_value        cleaned[RANGE_TEXTS];

    if (!given)
        return false;
    const struct snd_sql_value *texts = clean(d, &range_texts, given, cleaned);
    make_range_record(d, r, texts);
    if (!add_record(d, SND_TABLE_ranges))
        return false;
    d->failed |= !snd_rowlists_add(&d->names, texts[0].text, texts[0].name,
                                   d->tables[SND_TABLE_ranges].rowid);
    return !d->failed;
}

/* ------------------------------------------------------------------------ index */

/* An entry is a record of the name and the rowid, of which only the latter differs between rows of a name. */
static void put_entries(struct database *d, struct snd_sqlite_tree *index,
                        const struct snd_rowlist *list)
{
    const struct snd_text      *name = &d->names.texts.items[list->text];
    struct snd_rowlist_position at = snd_rowlist_first(list);
    uint8_t                     types[1 + SND_SQLITE_VARINT_MAX];
    size_t header = 1 + snd_sqlite_varint(types + 1, SND_SQLITE_TEXT(name->length));

    types[0] = (uint8_t)(header + 1);
    snd_buf_clear(&d->record);
    uint8_t *record = (uint8_t *)snd_buf_room(&d->record, header + 1 + name->length + 8);
    if (!record) {
        d->failed = true;
        return;
    }
    memcpy(record, types, header);
    memcpy(record + header + 1, name->bytes, name->length);
    for (int64_t rowid; snd_rowlist_next(&d->names, &at, &rowid);) {
        size_t length = header + 1 + name->length;
        length += snd_sqlite_integer(record + length, rowid, record + header);
        snd_sqlite_add(d->file, index, 0, record, length);
    }
}

static uint32_t put_index(struct database *d)
{
    struct snd_sqlite_tree index = { .is_index = true };

    snd_rowlists_sort(&d->names);
    for (uint32_t i = 0; !d->failed && i < d->names.list_count; i++)
        put_entries(d, &index, &d->names.lists[i]);
    return snd_sqlite_end_tree(d->file, &index);
}

/* ----------------------------------------------------------------------- schema */

static void describe_table(const struct snd_sql_table *table, struct sonde_buffer *sql)
{
    static const char *const types[] = { "integer", "real", "text" };

    snd_buf_format(sql, "CREATE TABLE %s (", table->name);
    for (size_t i = 0; i < snd_sql_column_count(table); i++)
        snd_buf_format(sql, "%s\"%s\" %s", i ? ", " : "", table->columns[i].name,
                       types[table->columns[i].type]);
    snd_buf_text(sql, ")");
}

/* A row of sqlite_schema: type, name, table, root page, SQL. */
static void put_schema(struct database *d, struct snd_sqlite_tree *schema, const char *type,
                       const char *name, enum snd_sql_table_id id, uint32_t root, const char *sql)
{
    static const struct snd_sql_table of = { "sqlite_schema",
                                             { { "type", SND_SQL_TEXT },
                                               { "name", SND_SQL_TEXT },
                                               { "tbl_name", SND_SQL_TEXT },
                                               { "rootpage", SND_SQL_INTEGER },
                                               { "sql", SND_SQL_TEXT } } };
    const char                       *table = snd_sql_tables[id].name;
    const struct snd_sql_value        values[] = { { .text = { type, strlen(type) } },
                                                   { .text = { name, strlen(name) } },
                                                   { .text = { table, strlen(table) } },
                                                   { .number = root },
                                                   { .text = { sql, strlen(sql) } } };
    const struct columns              columns = list_columns(&of);

    make_record(d, &columns, values);
    if (!d->failed)
        snd_sqlite_add(d->file, schema, schema->rowid + 1, (const uint8_t *)d->record.bytes,
                       d->record.length);
}

static enum sonde_status finish(struct database *d, struct sonde_error *err)
{
    struct snd_sqlite_tree schema = { .is_schema = true };
    struct sonde_buffer    sql = { 0 };

    for (enum snd_sql_table_id i = 0; i < SND_SQL_TABLES; i++) {
        snd_buf_clear(&sql);
        describe_table(&snd_sql_tables[i], &sql);
        uint32_t root = snd_sqlite_end_tree(d->file, &d->tables[i]);
        put_schema(d, &schema, "table", snd_sql_tables[i].name, i, root, snd_buf_string(&sql));
    }
    put_schema(d, &schema, "index", INDEXED_NAME, INDEXED_TABLE, put_index(d),
               "CREATE INDEX " INDEXED_NAME " on ranges (name)");
    enum sonde_status st = snd_sqlite_finish(d->file, &schema, err);
    if (st == SONDE_OK && (d->failed || sql.failed))
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for the database");
    sonde_buffer_release(&sql);
    return st;
}

static enum sonde_status make_database(int fd, struct sonde_trace *trace, struct sonde_error *err)
{
    struct database d = { .file = malloc(sizeof *d.file) };

    if (!d.file)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the database");
    snd_sqlite_begin(d.file, fd, snd_processors() > 1);
    for (size_t i = 0; i < SND_SQL_TABLES; i++)
        d.columns[i] = list_columns(&snd_sql_tables[i]);
    const struct snd_sql_taker to = { .row = put_row, .range = put_range, .user = &d };
    enum sonde_status          st = snd_sql_rows(trace, SND_SQL_EVERY, SND_SQL_BY_TIME, &to, err);
    if (st == SONDE_OK)
        st = finish(&d, err);
    snd_sqlite_end(d.file);
    for (size_t i = 0; i < SND_SQL_TABLES; i++)
        snd_sqlite_release_tree(&d.tables[i]);
    for (size_t i = 0; i < SND_SQL_COLUMNS_MAX; i++)
        sonde_buffer_release(&d.texts[i]);
    snd_rowlists_release(&d.names);
    sonde_buffer_release(&d.record);
    free(d.file);
    return st;
}

/* ------------------------------------------------------------------------- place */

static enum sonde_status copy_out(int fd, struct snd_out *out, struct sonde_error *err)
{
    char    block[65536];
    ssize_t got;

    if (lseek(fd, 0, SEEK_SET) != 0)
        return snd_fail_os(err, SONDE_E_IO, "cannot read the temporary database");
    while ((got = read(fd, block, sizeof block)) > 0)
        snd_out_put(out, block, (size_t)got);
    return got < 0 ? snd_fail_os(err, SONDE_E_IO, "cannot read the temporary database") : SONDE_OK;
}

/* By way of a temporary file, which has no name any more: whatever happens, it is gone. */
static enum sonde_status make_aside(struct snd_out *out, struct sonde_trace *trace,
                                    struct sonde_error *err)
{
    const char         *folder = getenv("TMPDIR");
    struct sonde_buffer path = { 0 };

    if (!folder || !*folder)
        folder = "/tmp";
    snd_buf_format(&path, "%s/sonde-sqlite-XXXXXX", folder);
    if (path.failed)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the database");
    int               fd = mkostemp(path.bytes, O_CLOEXEC);
    enum sonde_status st;
    if (fd < 0) {
        st = snd_fail_os(err, SONDE_E_IO, "cannot create a temporary database in %.200s", folder);
    } else {
        unlink(path.bytes);
        st = make_database(fd, trace, err);
        if (st == SONDE_OK)
            st = copy_out(fd, out, err);
        close(fd);
    }
    sonde_buffer_release(&path);
    return st;
}

SND_EXPORT_WRITE(snd_export_sqlite)
{
    int fd = snd_sink_empty_file(out->sink);

    (void)options;
    return fd >= 0 ? make_database(fd, trace, err) : make_aside(out, trace, err);
}
