/* SPDX-License-Identifier: Apache-2.0 */
#include "model/ranks/collective_rows.h"

#include <stdlib.h>

#include "base/data/sort.h"

static struct snd_collective_row *find_row(struct snd_collective_rows  *rows,
                                           const struct snd_collective *c)
{
    struct snd_key key = { SND_PAIR(c->group_number, c->kind), c->size_bytes, 0 };
    uint32_t       at;

    if (snd_map_get(&rows->index, key, &at))
        return &rows->rows[at];
    at = rows->count;
    if (!snd_grow(&rows->rows, &rows->room, at, sizeof *rows->rows) ||
        !snd_map_put(&rows->index, key, at))
        return NULL;
    rows->rows[rows->count++] = (struct snd_collective_row){ .group = c->group_number,
                                                             .kind = c->kind,
                                                             .size_bytes = c->size_bytes,
                                                             .last_rank = SONDE_NONE };
    return &rows->rows[at];
}

static bool keep_unfinished(struct snd_collective_rows *rows, const struct snd_collective *c)
{
    struct snd_unfinished one = { .group = c->group_number,
                                  .kind = c->kind,
                                  .size_bytes = c->size_bytes,
                                  .sequence = c->sequence,
                                  .start_ns = INT64_MAX,
                                  .came = c->count,
                                  .absent = c->absent_count };

    rows->unfinished_all++;
    if (rows->unfinished_count >= SND_UNFINISHED_MAX)
        return true;
    one.ranks = malloc(((size_t)c->count + c->absent_count) * sizeof *one.ranks);
    if (!one.ranks || !snd_grow(&rows->unfinished, &rows->unfinished_room, rows->unfinished_count,
                                sizeof *rows->unfinished)) {
        free(one.ranks);
        return false;
    }
    for (uint32_t i = 0; i < c->count; i++) {
        one.ranks[i] = c->members[i].rank;
        if (c->members[i].start_ns >= one.start_ns)
            continue;
        one.start_ns = c->members[i].start_ns;
        one.process = c->members[i].process;
        one.stack = c->members[i].stack;
    }
    for (uint32_t i = 0; i < c->absent_count; i++)
        one.ranks[c->count + i] = c->absent[i];
    rows->unfinished[rows->unfinished_count++] = one;
    return true;
}

/* Who came last. Ranks that called at the same moment share nothing: the first of them counts. */
static bool count_last(struct snd_collective_rows *rows, struct snd_collective_row *row,
                       const struct snd_collective *c)
{
    uint32_t       rank = c->members[c->last].rank, count = 0;
    struct snd_key key = { (uint64_t)(row - rows->rows), rank, 0 };

    (void)snd_map_get(&rows->last_by, key, &count);
    if (!snd_map_put(&rows->last_by, key, ++count))
        return false;
    if (count > row->last_count || (count == row->last_count && rank < row->last_rank)) {
        row->last_count = count;
        row->last_rank = rank;
    }
    return true;
}

static void on_done(void *user, const struct snd_collective *c)
{
    struct snd_collective_rows *rows = user;
    struct snd_collective_row  *row = find_row(rows, c);
    int64_t                     duration = 0, wait = 0, end = INT64_MIN;

    if (!row) {
        rows->failed = true;
        return;
    }
    row->count++;
    row->mismatched += c->kind_differs || c->size_differs;
    if (!c->is_complete) {
        row->unfinished++;
        rows->failed |= !keep_unfinished(rows, c);
        return;
    }
    for (uint32_t i = 0; i < c->count; i++) {
        const struct snd_collective_member *m = &c->members[i];
        duration = snd_add(duration, snd_sub(m->end_ns, m->start_ns));
        wait = snd_add(wait, c->is_whole ? m->wait_ns : 0);
        end = m->end_ns > end ? m->end_ns : end;
    }
    row->duration_ns = snd_add(row->duration_ns, duration / (int64_t)c->count);
    if (!c->is_whole || c->kind_differs)
        return;
    row->whole++;
    row->wait_ns = snd_add(row->wait_ns, wait / (int64_t)c->count);
    row->transfer_ns = snd_add(row->transfer_ns, snd_sub(end, c->last_start_ns));
    rows->failed |= !count_last(rows, row, c);
}

static int compare_rows(const void *a, const void *b)
{
    const struct snd_collective_row *x = a, *y = b;

    return SND_ORDER(SND_FALLING(x->duration_ns, y->duration_ns), SND_RISING(x->group, y->group),
                     SND_RISING(x->kind, y->kind), SND_RISING(x->size_bytes, y->size_bytes));
}

enum sonde_status snd_collective_rows_make(struct sonde_trace          *trace,
                                           struct snd_collective_rows **out,
                                           struct sonde_error          *err)
{
    *out = NULL;
    struct snd_collective_rows *rows = calloc(1, sizeof *rows);
    if (!rows)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the collectives of the trace");
    struct snd_collective_watcher watcher = { .user = rows, .done = on_done };
    enum sonde_status status = snd_collectives_walk(trace, &rows->groups, &watcher, err);
    if (status == SONDE_OK && rows->failed)
        status = snd_fail(err, SONDE_E_NOMEM, "out of memory for the collectives of the trace");
    if (status != SONDE_OK) {
        snd_collective_rows_free(rows);
        return status;
    }
    snd_sort(rows->rows, rows->count, sizeof *rows->rows, compare_rows);
    *out = rows;
    return SONDE_OK;
}

void snd_collective_rows_free(struct snd_collective_rows *rows)
{
    if (!rows)
        return;
    for (uint32_t i = 0; i < rows->unfinished_count; i++)
        free(rows->unfinished[i].ranks);
    free(rows->unfinished);
    free(rows->rows);
    snd_map_release(&rows->index);
    snd_map_release(&rows->last_by);
    snd_groups_release(&rows->groups);
    free(rows);
}
