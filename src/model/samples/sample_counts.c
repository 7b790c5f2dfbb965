/* SPDX-License-Identifier: Apache-2.0 */
#include "model/samples/sample_counts.h"

#include <stdlib.h>
#include <string.h>

#include "read/reader.h"
#include "read/file/scale.h"

/* Whatever it waits for: who waits for the interpreter's lock does not do what its stack says either. */
static bool is_waiting(uint64_t state)
{
    return !(state & (SONDE_SAMPLE_ON_CPU | SONDE_SAMPLE_GIL));
}

/* -------------------------------------------------------------------- threads */

static void add_states(struct sonde_sample_thread *t, uint64_t state, int64_t ns)
{
    t->time_ns = snd_add(t->time_ns, ns);
    if (state & SONDE_SAMPLE_ON_CPU)
        t->cpu_ns = snd_add(t->cpu_ns, ns);
    if (state & SONDE_SAMPLE_GIL)
        t->gil_ns = snd_add(t->gil_ns, ns);
    if (state & SONDE_SAMPLE_GIL_WAIT)
        t->gil_wait_ns = snd_add(t->gil_wait_ns, ns);
    else if (is_waiting(state))
        t->idle_ns = snd_add(t->idle_ns, ns);
}

static void add_to_thread(struct snd_sample_counts *c, const struct sonde_event *sample, int64_t ns)
{
    struct sonde_sample_thread *t = &c->threads[sample->thread];

    if (t->threads == 0) {
        *t = (struct sonde_sample_thread){
            .thread = sample->thread, .threads = 1, .first_ns = INT64_MAX, .last_ns = INT64_MIN
        };
        c->seen[c->seen_count++] = sample->thread;
    }
    if (snd_sub(sample->time_ns, ns) < t->first_ns)
        t->first_ns = snd_sub(sample->time_ns, ns);
    if (sample->time_ns > t->last_ns)
        t->last_ns = sample->time_ns;
    t->samples += sample->sample.count;
    add_states(t, sample->sample.state, ns);
}

/* --------------------------------------------------------------------- stacks */

static struct snd_sample_count *find_row(struct snd_sample_counts *c, uint32_t thread,
                                         uint32_t stack, uint32_t chain, bool waits)
{
    struct snd_key key = { thread, stack, (uint64_t)chain << 1 | waits };
    uint32_t       row;

    if (snd_map_get(&c->index, key, &row))
        return &c->rows[row];
    if (!snd_grow(&c->rows, &c->room, c->count, sizeof *c->rows) ||
        !snd_map_put(&c->index, key, c->count)) {
        c->failed = true;
        return NULL;
    }
    c->rows[c->count] = (struct snd_sample_count){
        .thread = thread, .stack = stack, .chain = chain, .waits = waits
    };
    return &c->rows[c->count++];
}

static bool on_sample(void *user, const struct sonde_event *event, uint32_t chain)
{
    struct snd_sample_counts *c = user;

    int64_t ns = (int64_t)event->sample.covered_ns;
    add_to_thread(c, event, ns);
    struct snd_sample_count *row = find_row(c, event->thread, event->sample.stack, chain,
                                            is_waiting(event->sample.state));
    if (!row)
        return false;
    row->samples += event->sample.count;
    row->time_ns = snd_add(row->time_ns, ns);
    row->cpu_ns = snd_add(row->cpu_ns, event->sample.state & SONDE_SAMPLE_ON_CPU ? ns : 0);
    row->gil_ns = snd_add(row->gil_ns, event->sample.state & SONDE_SAMPLE_GIL ? ns : 0);
    row->gil_wait_ns = snd_add(row->gil_wait_ns,
                               event->sample.state & SONDE_SAMPLE_GIL_WAIT ? ns : 0);
    return true;
}

/* ---------------------------------------------------------------------- walks */

enum sonde_status snd_sample_counts_make(struct snd_sample_counts *c, struct sonde_trace *trace,
                                         struct sonde_error *err)
{
    enum sonde_status status = SONDE_OK;

    *c = (struct snd_sample_counts){ .trace = trace };
    c->threads = calloc((size_t)trace->thread_count + 1, sizeof *c->threads);
    c->seen = calloc((size_t)trace->thread_count + 1, sizeof *c->seen);
    c->failed = !c->threads || !c->seen;
    if (!c->failed)
        status = snd_mixed_walk(&c->mixed, trace, on_sample, c, err);
    if (status == SONDE_OK && c->failed)
        status = snd_fail(err, SONDE_E_NOMEM, "out of memory for the samples");
    return status;
}

void snd_sample_counts_release(struct snd_sample_counts *c)
{
    free(c->rows);
    free(c->threads);
    free(c->seen);
    snd_map_release(&c->index);
    if (c->mixed.trace)
        snd_mixed_release(&c->mixed);
}
