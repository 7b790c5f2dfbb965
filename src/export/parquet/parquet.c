/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/parquet/parquet.c - the tables of a trace (tables.def) as a folder of Parquet files (docs/SCHEMA.md).
 *
 * A file for each table and process, in folders named after both (hive-style partitions). They are made in a folder beside
 * the one that was asked for and moved there at the end, so that a failure leaves nothing half done.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/folders.h"
#include "base/text/buf.h"
#include "export/common/exporter.h"
#include "export/common/walk_ahead.h"
#include "export/parquet/parquet_part.h"
#include "sonde/tables.h"

#define MEMORY_MOST ((size_t)96 << 20) /* bytes of rows that are collected, of all parts */

struct folder {
    struct snd_parquet_shared shared;
    const char               *path;
    char                      job[SONDE_JOB_SIZE];
    struct snd_parquet_part **parts; /* each stays where it is */
    uint32_t                  part_count, part_room;
    struct snd_map            numbers; /* of parts, by table and process */
    struct {
        size_t                   process_column; /* or SIZE_MAX */
        int64_t                  process;        /* of its latest row */
        struct snd_parquet_part *part;           /* that it went to; NULL: none yet */
    } tables[SND_SQL_TABLES];
    struct {
        struct snd_parquet_part    *part;
        uint32_t                    process;
        size_t                      count, most; /* may wait: they take no memory */
        const struct snd_sql_range *items[SND_RANGES_MOST];
    } waiting; /* ranges that will be rows all at once */
    size_t              memory;
    struct sonde_error *err;
    enum sonde_status   status;
};

/* ------------------------------------------------------------------------- parts */

static char *part_path(const struct folder *f, enum snd_sql_table_id table, int64_t process)
{
    struct sonde_buffer path = { 0 };

    snd_buf_format(&path, "%s/%s/job=%s/", f->path, snd_sql_tables[table].name, f->job);
    if (process >= 0)
        snd_buf_format(&path, "process=%lld/", (long long)process);
    snd_buf_text(&path, "part-0.parquet");
    if (path.failed) {
        sonde_buffer_release(&path);
        return NULL;
    }
    return path.bytes;
}

/* The part of a table and process, -1 where the table has no such column; NULL when memory is out. */
static struct snd_parquet_part *find_part(struct folder *f, enum snd_sql_table_id table,
                                          int64_t process)
{
    struct snd_key key = { (uint64_t)table, (uint64_t)process, 0 };
    uint32_t       number;

    if (snd_map_get(&f->numbers, key, &number))
        return f->parts[number];
    if (!snd_grow(&f->parts, &f->part_room, f->part_count, sizeof *f->parts) ||
        !snd_map_put(&f->numbers, key, f->part_count))
        return NULL;
    struct snd_parquet_part *part = malloc(sizeof *part);
    char                    *path = part ? part_path(f, table, process) : NULL;
    if (!path) {
        free(part);
        return NULL;
    }
    snd_parquet_part_init(part, table, path);
    f->parts[f->part_count++] = part;
    return part;
}

/* The same, most often that of the row before. */
static struct snd_parquet_part *find_latest(struct folder *f, enum snd_sql_table_id table,
                                            int64_t process)
{
    if (!f->tables[table].part || f->tables[table].process != process) {
        f->tables[table].part = find_part(f, table, process);
        f->tables[table].process = process;
    }
    return f->tables[table].part;
}

/* The part that holds most memory writes half of its rows. */
static enum sonde_status spill_largest(struct folder *f)
{
    struct snd_parquet_part *largest = f->parts[0];

    for (uint32_t i = 1; i < f->part_count; i++)
        if (snd_parquet_part_memory(f->parts[i]) > snd_parquet_part_memory(largest))
            largest = f->parts[i];
    size_t            before = snd_parquet_part_memory(largest);
    enum sonde_status st = snd_parquet_part_spill(largest, &f->shared, f->err);
    f->memory -= before - snd_parquet_part_memory(largest);
    return st;
}

/* Rows were added to a part, which took so much `before`. */
static enum sonde_status count_memory(struct folder *f, const struct snd_parquet_part *part,
                                      size_t before, enum sonde_status st)
{
    size_t after = snd_parquet_part_memory(part);

    if (before == after)
        return st;
    f->memory += after - before;
    return st == SONDE_OK && f->memory > MEMORY_MOST ? spill_largest(f) : st;
}

static enum sonde_status add_ranges(struct folder *f, struct snd_parquet_part *part,
                                    const struct snd_sql_range *const *ranges, size_t count)
{
    size_t            before = snd_parquet_part_memory(part);
    enum sonde_status st = snd_parquet_part_add_ranges(part, &f->shared, ranges, count, f->err);

    return count_memory(f, part, before, st);
}

static enum sonde_status add_waiting(struct folder *f)
{
    size_t count = f->waiting.count;

    f->waiting.count = f->waiting.most = 0;
    return count > 0 ? add_ranges(f, f->waiting.part, f->waiting.items, count) : SONDE_OK;
}

/*
 * A row that takes memory may have the part write that holds most: what came before is there by then, so that row groups do not
 * depend on what waits.
 */
static enum sonde_status add_row(struct folder *f, enum snd_sql_table_id table,
                                 const struct snd_sql_value *values, size_t given)
{
    size_t                   at = f->tables[table].process_column;
    struct snd_parquet_part *part = find_latest(f, table, at == SIZE_MAX ? -1 : values[at].number);
    enum sonde_status        st = SONDE_OK;

    if (!part)
        return snd_fail(f->err, SONDE_E_NOMEM, "out of memory for the tables");
    if (f->waiting.count > 0 &&
        (snd_parquet_part_room(part) == 0 || snd_parquet_part_is_late(part, values)))
        st = add_waiting(f);
    if (st != SONDE_OK)
        return st;
    size_t before = snd_parquet_part_memory(part);
    st = snd_parquet_part_add(part, &f->shared, values, given, f->err);
    return count_memory(f, part, before, st);
}

/* Those before it are rows; the range waits for others if nothing happens when it is one, or is a row, too. */
static enum sonde_status begin_waiting(struct folder *f, const struct snd_sql_range *range)
{
    enum sonde_status        st = add_waiting(f);
    struct snd_parquet_part *part = find_latest(f, SND_TABLE_ranges, range->process);

    if (st != SONDE_OK)
        return st;
    if (!part)
        return snd_fail(f->err, SONDE_E_NOMEM, "out of memory for the tables");
    size_t room = snd_parquet_part_room(part);
    if (room == 0 || snd_parquet_part_is_past(part, range->start_ns))
        return add_ranges(f, part, &range, 1);
    f->waiting.part = part;
    f->waiting.process = range->process;
    f->waiting.most = room < SND_RANGES_MOST ? room : SND_RANGES_MOST;
    f->waiting.items[0] = range;
    f->waiting.count = 1;
    return SONDE_OK;
}

static bool take_range(void *user, struct snd_sql_maker *maker, const struct snd_sql_range *range)
{
    struct folder *f = user;

    (void)maker;
    if (f->waiting.count > 0 && f->waiting.count < f->waiting.most &&
        range->process == f->waiting.process &&
        !snd_parquet_part_is_past(f->waiting.part, range->start_ns)) {
        f->waiting.items[f->waiting.count++] = range;
        return true;
    }
    f->status = begin_waiting(f, range);
    return f->status == SONDE_OK;
}

static bool settle(void *user)
{
    struct folder *f = user;

    f->status = add_waiting(f);
    return f->status == SONDE_OK;
}

static bool take_row(void *user, enum snd_sql_table_id table, const struct snd_sql_value *values,
                     size_t given)
{
    struct folder *f = user;

    f->status = add_row(f, table, values, given);
    return f->status == SONDE_OK;
}

/*
 * Folders of all tables, made while rows are collected: each has a file at the end. Whoever needs one that could not be made says so.
 */
static void make_table_folders(void *user)
{
    const struct folder *f = user;
    struct sonde_buffer  path = { 0 };

    for (size_t i = 0; i < SND_SQL_TABLES; i++) {
        snd_buf_clear(&path);
        snd_buf_format(&path, "%s/%s", f->path, snd_sql_tables[i].name);
        int rc = path.failed ? -1 : mkdir(path.bytes, 0777);
        snd_buf_format(&path, "/job=%s", f->job);
        rc = path.failed ? -1 : mkdir(path.bytes, 0777);
        (void)rc;
    }
    sonde_buffer_release(&path);
}

/* Of a table without rows, an empty file: a query over it has no rows, instead of failing. */
static enum sonde_status add_empty(struct folder *f)
{
    bool has_part[SND_SQL_TABLES] = { false };

    for (uint32_t i = 0; i < f->part_count; i++)
        has_part[f->parts[i]->table] = true;
    for (enum snd_sql_table_id i = 0; i < SND_SQL_TABLES; i++) {
        bool by_process = f->tables[i].process_column != SIZE_MAX;
        if (!has_part[i] && !find_part(f, i, by_process ? 0 : -1))
            return snd_fail(f->err, SONDE_E_NOMEM, "out of memory for the tables");
    }
    return SONDE_OK;
}

static enum sonde_status write_parts(struct folder *f, struct sonde_trace *trace)
{
    const struct snd_sql_taker to = { take_row, take_range, settle, f };
    enum sonde_status st = snd_sql_rows(trace, SND_SQL_EVERY, SND_SQL_BY_PROCESS, &to, f->err);

    if (f->status != SONDE_OK)
        st = f->status;
    if (st == SONDE_OK)
        st = add_empty(f);
    for (uint32_t i = 0; st == SONDE_OK && i < f->part_count; i++)
        st = snd_parquet_part_flush(f->parts[i], &f->shared, f->err);
    for (uint32_t i = 0; st == SONDE_OK && i < f->part_count; i++)
        st = snd_parquet_part_finish(f->parts[i], &f->shared, f->err);
    return st;
}

static enum sonde_status write_folder(struct sonde_trace *trace, const char *path,
                                      struct sonde_error *err)
{
    struct folder f = { .path = path, .err = err };

    f.shared.queue.apart = snd_ahead_pays(trace);
    f.shared.queue.begin = make_table_folders;
    f.shared.queue.user = &f;
    f.shared.ranges.trace = trace;
    f.shared.ranges.texts = &f.shared.texts;

    sonde_trace_job(trace, f.job);
    for (size_t i = 0; i < SND_SQL_TABLES; i++)
        f.tables[i].process_column = snd_sql_column_find(&snd_sql_tables[i], "process");
    enum sonde_status st = write_parts(&f, trace);
    snd_parquet_shared_release(&f.shared); /* its thread is done with the parts */
    for (uint32_t i = 0; i < f.part_count; i++) {
        snd_parquet_part_release(f.parts[i]);
        free(f.parts[i]);
    }
    free(f.parts);
    snd_map_release(&f.numbers);
    return st;
}

/* ------------------------------------------------------------------------- place */

static bool is_table(const char *name)
{
    for (size_t i = 0; i < SND_SQL_TABLES; i++)
        if (strcmp(snd_sql_tables[i].name, name) == 0)
            return true;
    return false;
}

/* Nothing is there, or a folder that has tables alone; hidden files and other programs' _SUCCESS do not count. */
static enum sonde_status check_place(const char *path, struct sonde_error *err)
{
    DIR              *dir = opendir(path);
    enum sonde_status st = SONDE_OK;

    if (!dir)
        return errno == ENOENT ? SONDE_OK : snd_fail_os(err, SONDE_E_IO, "cannot use %.300s", path);
    for (struct dirent *entry; st == SONDE_OK && (entry = readdir(dir)) != NULL;)
        if (entry->d_name[0] != '.' && entry->d_name[0] != '_' && !is_table(entry->d_name))
            st = snd_fail(err, SONDE_E_STATE,
                          "the folder %.200s has '%.60s' in it, which is not a table; give another "
                          "folder",
                          path, entry->d_name);
    closedir(dir);
    return st;
}

/* Moves the job's folder of one table; what was there of the same job is replaced. */
static enum sonde_status move_table(const char *from, const char *to, const char *table,
                                    const char *job, struct sonde_error *err)
{
    struct sonde_buffer source = { 0 }, target = { 0 };
    enum sonde_status   st = SONDE_OK;

    snd_buf_format(&target, "%s/%s", to, table);
    if (!target.failed && mkdir(target.bytes, 0777) != 0 && errno != EEXIST)
        st = snd_fail_os(err, SONDE_E_IO, "cannot create %.300s", target.bytes);
    snd_buf_format(&source, "%s/%s/job=%s", from, table, job);
    snd_buf_format(&target, "/job=%s", job);
    if (source.failed || target.failed) {
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for the tables");
    } else if (st == SONDE_OK) {
        snd_folder_remove(target.bytes);
        if (rename(source.bytes, target.bytes) != 0)
            st = snd_fail_os(err, SONDE_E_IO, "cannot create %.300s", target.bytes);
    }
    sonde_buffer_release(&source);
    sonde_buffer_release(&target);
    return st;
}

static enum sonde_status move_tables(const struct sonde_trace *trace, const char *from,
                                     const char *to, struct sonde_error *err)
{
    char              job[SONDE_JOB_SIZE];
    enum sonde_status st = SONDE_OK;

    if (rename(from, to) == 0) /* nothing was there, or an empty folder */
        return SONDE_OK;
    sonde_trace_job(trace, job);
    for (size_t i = 0; st == SONDE_OK && i < SND_SQL_TABLES; i++)
        st = move_table(from, to, snd_sql_tables[i].name, job, err);
    snd_folder_remove(from);
    return st;
}

/* A folder beside `path`, with the mode that mkdir() would give it. */
static enum sonde_status make_aside(const char *path, struct sonde_buffer *aside,
                                    struct sonde_error *err)
{
    size_t length = strlen(path);

    while (length > 1 && path[length - 1] == '/')
        length--;
    snd_buf_put(aside, path, length);
    snd_buf_text(aside, ".XXXXXX");
    if (aside->failed)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the tables");
    if (!mkdtemp(aside->bytes))
        return snd_fail_os(err, SONDE_E_IO, "cannot create %.300s", path);
    mode_t mask = umask(0);
    umask(mask);
    int rc = chmod(aside->bytes, 0777 & ~mask);
    (void)rc; /* a file system without modes */
    return SONDE_OK;
}

SND_EXPORT_FOLDER(snd_export_parquet)
{
    struct sonde_buffer aside = { 0 };
    enum sonde_status   st = check_place(path, err);

    (void)options;
    if (st == SONDE_OK)
        st = make_aside(path, &aside, err);
    if (st == SONDE_OK) {
        st = write_folder(trace, aside.bytes, err);
        if (st == SONDE_OK)
            st = move_tables(trace, aside.bytes, path, err);
        else
            snd_folder_remove(aside.bytes);
    }
    sonde_buffer_release(&aside);
    return st;
}
