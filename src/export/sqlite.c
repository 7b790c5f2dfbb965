/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/sqlite.c - the tables of a trace (tables.def) as an SQLite database.
 *
 * SQLite is opened at run time: no build needs it, and where it is missing only this format is. It writes
 * files, not streams, so that the database is made in a temporary file and then copied out.
 */
#include "export/sqlite.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "export/exporter.h"
#include "export/tables.h"

#define LIBRARY "libsqlite3.so.0"
#define OK 0
#define DONE 101
#define STATIC NULL /* SQLite need not copy the text: it stays until the row is inserted */
/* Of open: read, write, create; without locks, since one thread uses the database. */
#define OPEN_FLAGS (0x2 | 0x4 | 0x8000)

/* What is used of it, as its manual declares it: https://sqlite.org/c3ref. */
struct sqlite {
    void *handle;
    int (*open)(const char *path, void **db, int flags, const char *vfs);
    int (*close)(void *db);
    int (*exec)(void *db, const char *sql, void *callback, void *user, char **message);
    int (*prepare)(void *db, const char *sql, int length, void **statement, const char **tail);
    int (*bind_int64)(void *statement, int at, int64_t value);
    int (*bind_double)(void *statement, int at, double value);
    int (*bind_text)(void *statement, int at, const char *text, int length,
                     void (*release)(void *));
    int (*bind_null)(void *statement, int at);
    int (*step)(void *statement);
    int (*reset)(void *statement);
    int (*finalize)(void *statement);
    const char *(*errmsg)(void *db);
};

static enum sonde_status load(struct sqlite *api, struct sonde_error *err)
{
    const struct {
        const char *name;
        void       *to;
    } functions[] = {
        { "sqlite3_open_v2", &api->open },
        { "sqlite3_close", &api->close },
        { "sqlite3_exec", &api->exec },
        { "sqlite3_prepare_v2", &api->prepare },
        { "sqlite3_bind_int64", &api->bind_int64 },
        { "sqlite3_bind_double", &api->bind_double },
        { "sqlite3_bind_text", &api->bind_text },
        { "sqlite3_bind_null", &api->bind_null },
        { "sqlite3_step", &api->step },
        { "sqlite3_reset", &api->reset },
        { "sqlite3_finalize", &api->finalize },
        { "sqlite3_errmsg", &api->errmsg },
    };

    api->handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!api->handle)
        return snd_fail(err, SONDE_E_UNSUPPORTED,
                        "cannot write sqlite: cannot open " LIBRARY "; install SQLite (Debian: "
                        "libsqlite3-0)");
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *at = dlsym(api->handle, functions[i].name);
        if (!at) {
            dlclose(api->handle);
            return snd_fail(err, SONDE_E_UNSUPPORTED, "cannot write sqlite: " LIBRARY " has no %s",
                            functions[i].name);
        }
        memcpy(functions[i].to, &at, sizeof at);
    }
    return SONDE_OK;
}

enum sonde_status snd_sqlite_check(struct sonde_error *err)
{
    struct sqlite     api;
    enum sonde_status st = load(&api, err);

    if (st == SONDE_OK)
        dlclose(api.handle);
    return st;
}

/* ------------------------------------------------------------------- database */

struct database {
    struct sqlite       api;
    void               *db;
    void               *inserts[SND_SQL_TABLES];
    size_t              columns[SND_SQL_TABLES];
    struct sonde_buffer texts[SND_SQL_COLUMNS_MAX]; /* by column, of what had to be cleaned */
    bool                failed;
};

static bool run_sql(struct database *d, const char *sql)
{
    return d->api.exec(d->db, sql, NULL, NULL, NULL) == OK;
}

static bool make_table(struct database *d, const struct snd_sql_table *table, void **insert)
{
    static const char *const types[] = { "integer", "real", "text" };
    struct sonde_buffer      create = { 0 }, fill = { 0 };

    snd_buf_format(&create, "create table %s (", table->name);
    snd_buf_format(&fill, "insert into %s values (", table->name);
    for (size_t i = 0; i < snd_sql_column_count(table); i++) {
        snd_buf_format(&create, "%s\"%s\" %s", i ? ", " : "", table->columns[i].name,
                       types[table->columns[i].type]);
        snd_buf_text(&fill, i ? ", ?" : "?");
    }
    snd_buf_text(&create, ")");
    snd_buf_text(&fill, ")");
    bool made = !create.failed && !fill.failed && run_sql(d, create.bytes) &&
                d->api.prepare(d->db, fill.bytes, -1, insert, NULL) == OK;
    sonde_buffer_release(&create);
    sonde_buffer_release(&fill);
    return made;
}

/* Readers decode text: what is not UTF-8 becomes the replacement character, as in JSON. */
static int bind_text(struct database *d, void *insert, int at, struct sonde_text text)
{
    struct sonde_buffer *clean = &d->texts[at - 1];

    if (snd_utf8_valid(text.bytes, text.length) < text.length) {
        snd_buf_clear(clean);
        snd_utf8_clean(clean, text.bytes, text.length);
        if (clean->failed)
            return -1;
        text = (struct sonde_text){ clean->bytes, clean->length };
    }
    return d->api.bind_text(insert, at, text.bytes ? text.bytes : "", (int)text.length, STATIC);
}

static int bind(struct database *d, void *insert, int at, enum snd_sql_type type,
                const struct snd_sql_value *value)
{
    if (value->is_null)
        return d->api.bind_null(insert, at);
    if (type == SND_SQL_TEXT)
        return bind_text(d, insert, at, value->text);
    return type == SND_SQL_REAL ? d->api.bind_double(insert, at, value->real)
                                : d->api.bind_int64(insert, at, value->number);
}

static bool put_row(void *user, enum snd_sql_table_id id, const struct snd_sql_value *values)
{
    struct database            *d = user;
    const struct snd_sql_table *table = &snd_sql_tables[id];
    struct sonde_buffer         sql = { 0 };

    if (!values) {
        snd_buf_format(&sql, "delete from %s", table->name);
        d->failed |= sql.failed || !run_sql(d, sql.bytes);
        sonde_buffer_release(&sql);
        return !d->failed;
    }
    for (size_t i = 0; i < d->columns[id]; i++)
        d->failed |= bind(d, d->inserts[id], (int)i + 1, table->columns[i].type, &values[i]) != OK;
    d->failed |= d->api.step(d->inserts[id]) != DONE || d->api.reset(d->inserts[id]) != OK;
    return !d->failed;
}

/* One transaction; without a journal, since a database that is not finished is thrown away. */
static enum sonde_status fill(struct database *d, struct sonde_trace *trace,
                              struct sonde_error *err)
{
    enum sonde_status st = SONDE_OK;

    d->failed = !run_sql(d, "pragma journal_mode = off; pragma synchronous = off; begin");
    for (size_t i = 0; !d->failed && i < SND_SQL_TABLES; i++) {
        d->columns[i] = snd_sql_column_count(&snd_sql_tables[i]);
        d->failed = !make_table(d, &snd_sql_tables[i], &d->inserts[i]);
    }
    if (!d->failed)
        st = snd_sql_rows(trace, SND_SQL_EVERY, put_row, d, err);
    for (size_t i = 0; i < SND_SQL_TABLES; i++)
        d->api.finalize(d->inserts[i]);
    if (st == SONDE_OK && !d->failed)
        d->failed = !run_sql(d, "create index ranges_name on ranges (name); commit");
    if (st == SONDE_OK && d->failed)
        st = snd_fail(err, SONDE_E_IO, "cannot write the database: %.200s", d->api.errmsg(d->db));
    return st;
}

static enum sonde_status copy_out(int fd, struct snd_out *out, struct sonde_error *err)
{
    char    block[65536];
    ssize_t got;

    while ((got = read(fd, block, sizeof block)) > 0)
        snd_out_put(out, block, (size_t)got);
    return got < 0 ? snd_fail_os(err, SONDE_E_IO, "cannot read the temporary database") : SONDE_OK;
}

static enum sonde_status make_database(const char *path, struct sonde_trace *trace,
                                       struct sonde_error *err)
{
    struct database   d = { 0 };
    enum sonde_status st = load(&d.api, err);

    if (st != SONDE_OK)
        return st;
    if (d.api.open(path, &d.db, OPEN_FLAGS, NULL) != OK)
        st = snd_fail(err, SONDE_E_IO, "cannot create the temporary database %.200s: %.200s", path,
                      d.db ? d.api.errmsg(d.db) : "out of memory");
    else
        st = fill(&d, trace, err);
    d.api.close(d.db);
    dlclose(d.api.handle);
    for (size_t i = 0; i < SND_SQL_COLUMNS_MAX; i++)
        sonde_buffer_release(&d.texts[i]);
    return st;
}

SND_EXPORT_WRITE(snd_export_sqlite)
{
    const char         *folder = getenv("TMPDIR");
    struct sonde_buffer path = { 0 };

    (void)options;
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
        st = make_database(path.bytes, trace, err);
        if (st == SONDE_OK)
            st = copy_out(fd, out, err);
        unlink(path.bytes);
        close(fd);
    }
    sonde_buffer_release(&path);
    return st;
}
