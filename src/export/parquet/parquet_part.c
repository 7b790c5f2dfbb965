/* SPDX-License-Identifier: Apache-2.0 */
#include "export/parquet/parquet_part.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/fd_io.h"

#define OUT_OF_MEMORY "out of memory for the tables"
#define MOVES_MOST 16 /* of each row, on average, until merging is the better way to sort */

void snd_parquet_shared_release(struct snd_parquet_shared *shared)
{
    snd_parquet_queue_release(&shared->queue);
    snd_texts_release(&shared->texts.all);
    snd_ranges_release(&shared->ranges);
    free(shared->order);
    free(shared->kept);
    free(shared->is_kept);
    *shared = (struct snd_parquet_shared){ 0 };
}

static size_t find_time(const struct snd_sql_table *table)
{
    size_t start = snd_sql_column_find(table, "start_ns");

    return start != SIZE_MAX ? start : snd_sql_column_find(table, "time_ns");
}

static void clear_rows(struct snd_parquet_part *part)
{
    const struct snd_sql_table *table = &snd_sql_tables[part->table];

    snd_columns_release(&part->rows);
    snd_columns_release(&part->late);
    snd_columns_init(&part->rows, table, snd_chosen_but(table, part->left_out));
    snd_columns_init(&part->late, table, snd_chosen_but(table, part->left_out));
    part->written_to = INT64_MIN;
}

void snd_parquet_part_init(struct snd_parquet_part *part, enum snd_sql_table_id table, char *path)
{
    *part = (struct snd_parquet_part){ .table = table, .path = path };
    part->left_out = snd_sql_column_find(&snd_sql_tables[table], "process");
    part->time = find_time(&snd_sql_tables[table]);
    clear_rows(part);
}

void snd_parquet_part_release(struct snd_parquet_part *part)
{
    snd_columns_release(&part->rows);
    snd_columns_release(&part->late);
    sonde_buffer_release(&part->groups);
    free(part->path);
    *part = (struct snd_parquet_part){ 0 };
}

/* ------------------------------------------------------------------------ order */

/* Merges order[from..middle) and order[middle..to), both sorted by `times`, by way of `spare`. */
static void merge(const int64_t *times, uint32_t *order, uint32_t *spare, size_t from,
                  size_t middle, size_t to)
{
    size_t left = 0, left_count = middle - from, right = middle, at = from;

    memcpy(spare, order + from, left_count * sizeof *order);
    while (left < left_count && right < to)
        order[at++] = times[order[right]] < times[spare[left]] ? order[right++] : spare[left++];
    memcpy(order + at, spare + left, (left_count - left) * sizeof *order);
}

/* Puts rows where they belong, one after the other; false: that takes too long, and order[] is none. */
static bool insert_rows(const int64_t *times, uint32_t *order, size_t count)
{
    size_t moved = 0;

    for (size_t i = 0; i < count; i++) {
        size_t at = i;
        for (; at > 0 && times[order[at - 1]] > times[i]; at--)
            order[at] = order[at - 1];
        order[at] = (uint32_t)i;
        moved += i - at;
        if (moved > MOVES_MOST * count)
            return false;
    }
    return true;
}

/* Sorts rows by their time. They come nearly sorted: a range comes after those that lie in it. */
static void sort_rows(const int64_t *times, uint32_t *order, uint32_t *spare, size_t count)
{
    if (times && insert_rows(times, order, count))
        return;
    for (size_t i = 0; i < count; i++)
        order[i] = (uint32_t)i;
    for (size_t width = 1; times && width < count; width *= 2)
        for (size_t from = 0; from + width < count; from += 2 * width) {
            size_t middle = from + width, to = middle + width < count ? middle + width : count;
            if (times[order[middle - 1]] > times[order[middle]])
                merge(times, order, spare, from, middle, to);
        }
}

/* Fills shared->order. */
static enum sonde_status order_rows(const struct snd_parquet_part *part,
                                    struct snd_parquet_shared *shared, struct snd_columns *rows,
                                    struct sonde_error *err)
{
    size_t by = snd_parquet_sorted_by(part);

    snd_columns_settle(rows);
    if (rows->count > shared->order_room) {
        free(shared->order);
        shared->order = malloc(2 * rows->count * sizeof *shared->order);
        shared->order_room = shared->order ? rows->count : 0;
        if (!shared->order)
            return snd_fail(err, SONDE_E_NOMEM, OUT_OF_MEMORY);
    }
    if (by != SIZE_MAX)
        snd_column_spread(&rows->columns[by], rows->count);
    sort_rows(by == SIZE_MAX ? NULL : rows->columns[by].numbers, shared->order,
              shared->order + shared->order_room, rows->count);
    return SONDE_OK;
}

/* ------------------------------------------------------------------------ writing */

/* All of `rows`, sorted, in row groups; the columns are empty then. */
static enum sonde_status write_all(struct snd_parquet_part *part, struct snd_parquet_shared *shared,
                                   struct snd_columns *rows, struct sonde_error *err)
{
    enum sonde_status st = order_rows(part, shared, rows, err);

    for (size_t from = 0; st == SONDE_OK && from < rows->count; from += SND_PARQUET_GROUP_ROWS) {
        size_t rest = rows->count - from;
        st = snd_parquet_queue_put(&shared->queue, part, rows, shared->order + from,
                                   rest < SND_PARQUET_GROUP_ROWS ? rest : SND_PARQUET_GROUP_ROWS,
                                   &shared->texts.all, err);
    }
    snd_columns_release(rows);
    snd_columns_init(rows, &snd_sql_tables[part->table],
                     snd_chosen_but(&snd_sql_tables[part->table], part->left_out));
    return st;
}

/* Writes the rows before `half` in the order of time, and leaves that order in shared->order. */
static enum sonde_status write_half(struct snd_parquet_part   *part,
                                    struct snd_parquet_shared *shared, size_t half,
                                    struct sonde_error *err)
{
    enum sonde_status st = order_rows(part, shared, &part->rows, err);

    if (st == SONDE_OK)
        st = snd_parquet_queue_put(&shared->queue, part, &part->rows, shared->order, half,
                                   &shared->texts.all, err);
    if (st == SONDE_OK && part->time != SIZE_MAX)
        part->written_to =
            part->rows.columns[snd_parquet_sorted_by(part)].numbers[shared->order[half - 1]];
    return st;
}

enum sonde_status snd_parquet_part_spill(struct snd_parquet_part   *part,
                                         struct snd_parquet_shared *shared, struct sonde_error *err)
{
    struct snd_columns kept;
    size_t             half = part->rows.count / 2;

    if (half == 0)
        return write_all(part, shared, &part->rows, err);
    enum sonde_status st = write_half(part, shared, half, err);
    if (st != SONDE_OK)
        return st;
    snd_columns_init(&kept, &snd_sql_tables[part->table],
                     snd_chosen_but(&snd_sql_tables[part->table], part->left_out));
    if (!snd_columns_copy(&kept, &part->rows, shared->order + half, part->rows.count - half)) {
        snd_columns_release(&kept);
        return snd_fail(err, SONDE_E_NOMEM, OUT_OF_MEMORY);
    }
    snd_columns_release(&part->rows);
    part->rows = kept;
    return SONDE_OK;
}

/* Rows that are in order[0..count), of `all`, as runs of them: how many runs. */
static size_t find_runs(const uint32_t *order, size_t count, size_t all, uint8_t *is_kept,
                        struct snd_run *runs)
{
    size_t n = 0;

    memset(is_kept, 0, all);
    for (size_t i = 0; i < count; i++)
        is_kept[order[i]] = 1;
    for (size_t i = 0; i < all; i++) {
        if (!is_kept[i])
            continue;
        if (i == 0 || !is_kept[i - 1])
            runs[n++] = (struct snd_run){ .first = (uint32_t)i };
        runs[n - 1].count++;
    }
    return n;
}

/*
 * The same, in the memory that they have: as many will come again. The rest stays in the order in which it came, most of it where it
 * is; of rows of one moment the first remains the first.
 */
static enum sonde_status make_room(struct snd_parquet_part *part, struct snd_parquet_shared *shared,
                                   struct sonde_error *err)
{
    size_t half = part->rows.count / 2, rest = part->rows.count - half;

    if (!shared->kept) {
        shared->kept = malloc(SND_PARQUET_GROUP_ROWS * sizeof *shared->kept);
        shared->is_kept = malloc(2 * SND_PARQUET_GROUP_ROWS);
    }
    if (!shared->kept || !shared->is_kept)
        return snd_fail(err, SONDE_E_NOMEM, OUT_OF_MEMORY);
    enum sonde_status st = write_half(part, shared, half, err);
    if (st == SONDE_OK)
        snd_columns_keep(&part->rows, shared->kept,
                         find_runs(shared->order + half, rest, part->rows.count, shared->is_kept,
                                   shared->kept));
    return st;
}

/* Rows were added to these of the part's: what is full is written. */
static enum sonde_status write_full(struct snd_parquet_part   *part,
                                    struct snd_parquet_shared *shared, struct snd_columns *rows,
                                    struct sonde_error *err)
{
    if (rows == &part->late)
        return rows->count < SND_PARQUET_GROUP_ROWS ? SONDE_OK : write_all(part, shared, rows, err);
    return rows->count < 2 * SND_PARQUET_GROUP_ROWS ? SONDE_OK : make_room(part, shared, err);
}

enum sonde_status snd_parquet_part_add(struct snd_parquet_part    *part,
                                       struct snd_parquet_shared  *shared,
                                       const struct snd_sql_value *values, size_t given,
                                       struct sonde_error *err)
{
    bool                is_late = snd_parquet_part_is_late(part, values);
    struct snd_columns *rows = is_late ? &part->late : &part->rows;

    if (!snd_columns_add(rows, values, given, &shared->texts))
        return snd_fail(err, SONDE_E_NOMEM, OUT_OF_MEMORY);
    return write_full(part, shared, rows, err);
}

enum sonde_status snd_parquet_part_add_ranges(struct snd_parquet_part           *part,
                                              struct snd_parquet_shared         *shared,
                                              const struct snd_sql_range *const *ranges,
                                              size_t count, struct sonde_error *err)
{
    bool                is_late = snd_parquet_part_is_past(part, ranges[0]->start_ns);
    struct snd_columns *rows = is_late ? &part->late : &part->rows;

    if (!snd_ranges_fill(&shared->ranges, rows, ranges, count))
        return snd_fail(err, SONDE_E_NOMEM, OUT_OF_MEMORY);
    return write_full(part, shared, rows, err);
}

enum sonde_status snd_parquet_part_flush(struct snd_parquet_part   *part,
                                         struct snd_parquet_shared *shared, struct sonde_error *err)
{
    enum sonde_status st = write_all(part, shared, &part->rows, err);

    return st == SONDE_OK ? write_all(part, shared, &part->late, err) : st;
}

enum sonde_status snd_parquet_part_finish(struct snd_parquet_part   *part,
                                          struct snd_parquet_shared *shared,
                                          struct sonde_error        *err)
{
    struct sonde_buffer footer = { 0 };
    enum sonde_status   st = snd_parquet_part_flush(part, shared, err);

    if (st == SONDE_OK)
        st = snd_parquet_queue_wait(&shared->queue, err);
    if (st != SONDE_OK)
        return st;
    snd_parquet_footer(&footer, &snd_sql_tables[part->table], part->left_out, &part->groups,
                       part->group_count, part->row_count);
    st = footer.failed ? snd_fail(err, SONDE_E_NOMEM, OUT_OF_MEMORY)
                       : snd_parquet_append(part, &footer, err);
    sonde_buffer_release(&footer);
    return st;
}
