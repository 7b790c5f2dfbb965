/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/events/event_memory.c - memory of Python functions, as torch's list has it.
 *
 * What a thread takes outside any range while it runs a Python function is that function's: it has
 * no row "[memory]". A function's total has that of its calls and of the operators in it, too.
 */
#include <stdlib.h>

#include "base/data/large_pages.h"
#include "model/events/event_rows.h"

/* Functions of a thread that are running, outermost first: rows. */
struct running {
    uint32_t *rows;
    uint32_t  count, room;
};

static struct snd_row_call *call_of(const struct sonde_events *e, uint32_t row)
{
    return &e->calls[e->rows.extra[row] - 1];
}

static void add_memory(struct snd_row_memory *to, int64_t cpu, int64_t device)
{
    to->cpu_bytes = snd_add(to->cpu_bytes, cpu);
    to->device_bytes = snd_add(to->device_bytes, device);
}

/* The innermost one that is over counts for its caller. */
static void end_function(struct sonde_events *e, struct running *running)
{
    const struct snd_row_call *over = call_of(e, running->rows[--running->count]);

    if (running->count > 0)
        add_memory(&call_of(e, running->rows[running->count - 1])->total, over->total.cpu_bytes,
                   over->total.device_bytes);
}

static bool begin_function(struct running *running, uint32_t row)
{
    if (!snd_grow(&running->rows, &running->room, running->count, sizeof *running->rows))
        return false;
    running->rows[running->count++] = row;
    return true;
}

/* Goes through the rows in order of their start; `drops` is set for those that a function claims. */
static bool claim(struct sonde_events *e, struct running *threads, bool *drops)
{
    for (uint32_t i = 0; i < e->rows.count; i++) {
        struct running            *running = &threads[e->rows.thread[i]];
        const struct snd_row_kind *kind = snd_kind_of(e, i);
        while (running->count > 0 &&
               e->rows.end_ns[running->rows[running->count - 1]] < e->rows.start_ns[i])
            end_function(e, running);
        if (kind->flags & SONDE_EVENT_IS_FUNCTION) {
            if (!begin_function(running, i))
                return false;
        } else if (running->count > 0 && e->rows.parent[i] == -1) {
            struct snd_row_call        *call = call_of(e, running->rows[running->count - 1]);
            const struct snd_row_extra *extra = snd_extra_of(e, i);
            drops[i] = kind->flags & SONDE_EVENT_IS_MEMORY;
            add_memory(&call->total, extra->cpu_bytes, extra->device_bytes);
            if (drops[i])
                add_memory(&call->self, extra->cpu_bytes, extra->device_bytes);
        }
    }
    for (uint32_t i = 0; i < e->trace->thread_count; i++)
        while (threads[i].count > 0)
            end_function(e, &threads[i]);
    return true;
}

bool snd_events_claim_memory(struct sonde_events *e)
{
    if (e->call_count == 0)
        return true;
    size_t          size = (size_t)e->rows.count + 1;
    struct running *threads = calloc((size_t)e->trace->thread_count + 1, sizeof *threads);
    bool           *drops = snd_pages_take(size * sizeof *drops);
    bool            good = threads && drops && claim(e, threads, drops);

    good = good && snd_events_drop(e, drops);
    for (uint32_t i = 0; threads && i < e->trace->thread_count; i++)
        free(threads[i].rows);
    free(threads);
    snd_pages_free(drops, size * sizeof *drops);
    return good;
}
