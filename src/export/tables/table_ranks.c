/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/tables/table_ranks.c - the tables of a job, in one walk: collectives, a row for each rank of each, and
 * activity, a row for each stretch of time in which the threads of a rank do the same.
 */
#include <stdlib.h>
#include <string.h>

#include "base/text/buf.h"
#include "export/tables/tables.h"
#include "model/ranks/collectives.h"
#include "model/ranks/rank_activity.h"

/* The row of a process that is not over yet, and the step that it is in. */
struct stretch {
    int64_t start_ns, end_ns;
    int64_t step;
    bool    does[SND_DOINGS];
    bool    is_open;
    bool    has_step;
};

struct snd_sql_ranks {
    struct sonde_trace           *trace;
    struct snd_collective_watcher watcher;
    struct snd_collectives       *walk; /* or NULL: none is needed */
    struct snd_groups             groups;
    struct snd_activity           activity;
    struct stretch               *stretches; /* by process */
    snd_sql_row_fn               *row;
    void                         *user;
    bool                         *stopped;
    struct sonde_buffer           ranks; /* of the group of the row */
    int64_t                       count; /* collectives so far */
};

static struct snd_sql_value number(int64_t value)
{
    return (struct snd_sql_value){ .number = value };
}

static struct snd_sql_value text(struct sonde_text value)
{
    return (struct snd_sql_value){ .text = value, .is_null = value.length == 0 };
}

static struct snd_sql_value word(const char *value)
{
    return text((struct sonde_text){ value, strlen(value) });
}

/* ------------------------------------------------------------------ collectives */

static void on_done(void *user, const struct snd_collective *c)
{
    struct snd_sql_ranks *rows = user;

    snd_buf_clear(&rows->ranks);
    if (c->group->ranks)
        snd_ranks_text(&rows->ranks, c->group->ranks, c->group->size);
    for (uint32_t i = 0; i < c->count && !*rows->stopped; i++) {
        const struct snd_collective_member *m = &c->members[i];
        const struct snd_collective_spec   *spec = &rows->groups.specs[m->spec];
        struct snd_sql_value                values[] = {
                           number(m->process),
                           number(m->rank),
                           text(c->group->name),
                           word(snd_buf_string(&rows->ranks)),
                           number(c->sequence),
                           word(snd_collective_word(spec->kind)),
                           number((int64_t)spec->size_bytes),
                           text(spec->dtype),
                           number(m->start_ns),
                           number(snd_sub(m->end_ns, m->start_ns)),
                           { .number = m->wait_ns, .is_null = m->wait_ns < 0 },
                           number(m->is_complete),
                           number(rows->count),
                           number(m->arrive_ns),
        };
        if (!rows->row(rows->user, SND_TABLE_collectives, values, SND_SQL_COLUMNS_MAX))
            *rows->stopped = true;
    }
    rows->count++;
}

/* --------------------------------------------------------------------- activity */

static void end_row(struct snd_sql_ranks *rows, uint32_t process)
{
    struct stretch            *s = &rows->stretches[process];
    const struct snd_sql_value values[] = {
        number(process),
        number(s->start_ns),
        number(snd_sub(s->end_ns, s->start_ns)),
        { .number = s->step, .is_null = !s->has_step },
        number(s->does[SND_COMPUTES]),
        number(s->does[SND_COMMUNICATES]),
        number(s->does[SND_LOADS]),
    };

    if (s->is_open && !*rows->stopped &&
        !rows->row(rows->user, SND_TABLE_activity, values, SND_SQL_COLUMNS_MAX))
        *rows->stopped = true;
    s->is_open = false;
}

/* How many threads do it is not told: a row goes on while the same is done by one or more. */
static void on_stretch(void *user, uint32_t process, const uint32_t threads[SND_DOINGS],
                       int64_t from_ns, int64_t to_ns)
{
    struct snd_sql_ranks *rows = user;
    struct stretch       *s = &rows->stretches[process];
    bool                  is_same = s->is_open;

    for (enum snd_doing d = SND_COMPUTES; is_same && d < SND_DOINGS; d++)
        is_same = s->does[d] == (threads[d] > 0);
    if (!is_same) {
        if (s->is_open && s->end_ns > s->start_ns)
            end_row(rows, process);
        s->start_ns = from_ns;
        s->is_open = true;
        for (enum snd_doing d = SND_COMPUTES; d < SND_DOINGS; d++)
            s->does[d] = threads[d] > 0;
    }
    s->end_ns = to_ns;
}

static void on_open(void *user, struct snd_lane *lane, struct snd_open_range *open)
{
    struct snd_sql_ranks *rows = user;

    snd_activity_open(&rows->activity, lane, open);
}

static void on_close(void *user, struct snd_lane *lane, struct snd_open_range *open)
{
    struct snd_sql_ranks *rows = user;

    snd_activity_close(&rows->activity, lane, open);
}

static uint32_t on_kind(void *user, const struct snd_lane *lane, const struct snd_range *shared)
{
    struct snd_sql_ranks *rows = user;

    return snd_activity_kind(&rows->activity, lane, shared);
}

static void on_leaf(void *user, const struct snd_lane *lane, const struct snd_leaf *leaf,
                    const struct snd_known_leaf *known, uint32_t kind,
                    const struct snd_open_range *above, struct snd_open_range *parent)
{
    struct snd_sql_ranks *rows = user;

    (void)known, (void)above, (void)parent;
    snd_activity_leaf(&rows->activity, lane, leaf, kind);
}

/* A row for each step at least: in the last one there may be nothing. */
static void on_step(void *user, uint32_t process, int64_t ns, uint64_t step)
{
    struct snd_sql_ranks *rows = user;
    struct stretch       *s = &rows->stretches[process];

    if (!rows->activity.processes[process].is_rank)
        return;
    snd_activity_step(&rows->activity, process, ns);
    end_row(rows, process);
    *s = (struct stretch){ .start_ns = rows->activity.processes[process].at_ns,
                           .step = (int64_t)step,
                           .is_open = true,
                           .has_step = true };
    s->end_ns = s->start_ns;
}

static void end_rows(struct snd_sql_ranks *rows, uint32_t count)
{
    snd_activity_end(&rows->activity);
    for (uint32_t i = 0; i < count; i++)
        end_row(rows, i);
}

/* --------------------------------------------------------------------- the walk */

static enum sonde_status begin_activity(struct snd_sql_ranks *rows, struct sonde_error *err)
{
    rows->activity.user = rows;
    rows->activity.stretch = on_stretch;
    rows->stretches = calloc((size_t)rows->trace->process_count + 1, sizeof *rows->stretches);
    if (!rows->stretches || !snd_activity_begin(&rows->activity, rows->trace))
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the table activity");
    if (snd_activity_rank_count(&rows->activity) == 0)
        return SONDE_OK; /* a process alone is no job: not walked for it */
    rows->watcher.open = on_open;
    rows->watcher.close = on_close;
    rows->watcher.kind = on_kind;
    rows->watcher.leaf = on_leaf;
    rows->watcher.step = on_step;
    return SONDE_OK;
}

enum sonde_status snd_sql_ranks_begin(struct sonde_trace *trace, unsigned wanted,
                                      snd_sql_row_fn *row, void *user, bool *stopped,
                                      struct snd_sql_ranks **out, struct sonde_error *err)
{
    struct snd_sql_ranks *rows = *out = calloc(1, sizeof *rows);
    enum sonde_status     st = SONDE_OK;

    if (!rows)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the tables of ranks");
    rows->trace = trace;
    rows->row = row;
    rows->user = user;
    rows->stopped = stopped;
    rows->watcher.user = rows;
    if (wanted & SND_SQL_ONLY(collectives))
        rows->watcher.done = on_done;
    if (wanted & SND_SQL_ONLY(activity))
        st = begin_activity(rows, err);
    if (st == SONDE_OK && (rows->watcher.done || rows->watcher.open))
        st = snd_collectives_begin(trace, &rows->groups, &rows->watcher, &rows->walk, err);
    snd_collectives_wait(rows->walk);
    return st;
}

enum sonde_status snd_sql_ranks_walk(struct snd_sql_ranks *rows, struct sonde_error *err)
{
    const struct snd_consumer nobody = { .any_flops = true, .no_ranges = true, .by_process = true };
    struct snd_assembly       assembly;

    if (!rows->walk)
        return SONDE_OK;
    enum sonde_status st = snd_assemble(&assembly, rows->trace, SONDE_BY_TIME, &nobody, 1, err);
    snd_assembly_release(&assembly);
    return st;
}

enum sonde_status snd_sql_ranks_end(struct snd_sql_ranks *rows, enum sonde_status st,
                                    struct sonde_error *err)
{
    if (!rows)
        return st;
    st = snd_collectives_end(rows->walk, st, err);
    if (st == SONDE_OK && rows->watcher.open)
        end_rows(rows, rows->trace->process_count);
    if (st == SONDE_OK && rows->ranks.failed)
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for the table of collectives");
    snd_groups_release(&rows->groups);
    snd_activity_release(&rows->activity);
    free(rows->stretches);
    sonde_buffer_release(&rows->ranks);
    free(rows);
    return st;
}
