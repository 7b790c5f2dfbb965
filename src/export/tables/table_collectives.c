/* SPDX-License-Identifier: Apache-2.0 */
/* export/tables/table_collectives.c - the table collectives: a row for each rank of each collective. */
#include <string.h>

#include "base/text/buf.h"
#include "export/tables/tables.h"
#include "model/ranks/collectives.h"

struct rows {
    struct snd_groups   groups;
    snd_sql_row_fn     *row;
    void               *user;
    bool               *stopped;
    struct sonde_buffer ranks; /* of the group of the row */
    int64_t             count; /* collectives so far */
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

static void on_done(void *user, const struct snd_collective *c)
{
    struct rows *rows = user;

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
        if (!rows->row(rows->user, SND_TABLE_collectives, values))
            *rows->stopped = true;
    }
    rows->count++;
}

enum sonde_status snd_sql_collective_rows(struct sonde_trace *trace, snd_sql_row_fn *row,
                                          void *user, bool *stopped, struct sonde_error *err)
{
    struct rows                   rows = { .row = row, .user = user, .stopped = stopped };
    struct snd_collective_watcher watcher = { .user = &rows, .done = on_done };
    enum sonde_status             st = snd_collectives_walk(trace, &rows.groups, &watcher, err);

    if (st == SONDE_OK && rows.ranks.failed)
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for the table of collectives");
    snd_groups_release(&rows.groups);
    sonde_buffer_release(&rows.ranks);
    return st;
}
