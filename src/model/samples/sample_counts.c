/* SPDX-License-Identifier: Apache-2.0 */
#include "model/samples/sample_counts.h"

#include <stdlib.h>
#include <string.h>

#include "model/kept.h"
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

static void free_counts(void *counts)
{
    snd_sample_counts_free(counts);
}

/* What --gil shows is not what others ask for. */
static struct snd_sample_counts *lend(const struct sonde_trace *trace)
{
    return trace->only_gil ? NULL : snd_kept_lend(trace, free_counts, 0);
}

static enum sonde_status make(struct sonde_trace *trace, struct snd_sample_counts **out,
                              struct sonde_error *err)
{
    struct snd_sample_counts *c = calloc(1, sizeof *c);

    *out = c;
    if (c) {
        c->trace = trace;
        c->threads = calloc((size_t)trace->thread_count + 1, sizeof *c->threads);
        c->seen = calloc((size_t)trace->thread_count + 1, sizeof *c->seen);
    }
    return c && c->threads && c->seen
               ? SONDE_OK
               : snd_fail(err, SONDE_E_NOMEM, "out of memory for the samples");
}

static enum sonde_status hand_over(struct snd_sample_counts *c, enum sonde_status status,
                                   struct snd_sample_counts **out, struct sonde_error *err)
{
    if (status == SONDE_OK && (c->failed || c->mixed.failed))
        status = snd_fail(err, SONDE_E_NOMEM, "out of memory for the samples");
    if (status == SONDE_OK && !c->trace->only_gil)
        snd_kept_add(c->trace, free_counts, 0, c);
    if (status != SONDE_OK)
        snd_sample_counts_free(c);
    *out = status == SONDE_OK ? c : NULL;
    return status;
}

enum sonde_status snd_sample_counts_new(struct sonde_trace *trace, struct snd_sample_counts **out,
                                        struct sonde_error *err)
{
    struct snd_sample_counts *c;

    *out = lend(trace);
    if (*out)
        return SONDE_OK;
    enum sonde_status status = make(trace, &c, err);
    if (status == SONDE_OK)
        status = snd_mixed_walk(&c->mixed, trace, on_sample, c, err);
    return hand_over(c, status, out, err);
}

enum sonde_status snd_sample_counts_wait(struct sonde_trace *trace, struct snd_sample_counts **out,
                                         struct sonde_error *err)
{
    *out = lend(trace);
    if (*out)
        return SONDE_OK;
    enum sonde_status status = make(trace, out, err);
    if (status == SONDE_OK)
        status = snd_mixed_prepare(&(*out)->mixed, trace, on_sample, *out, err);
    if (status == SONDE_OK && !(*out)->mixed.is_done)
        snd_wait(trace, &(*out)->mixed.consumer);
    if (status == SONDE_OK)
        return SONDE_OK;
    snd_sample_counts_free(*out);
    *out = NULL;
    return status;
}

enum sonde_status snd_sample_counts_finish(struct snd_sample_counts **counts,
                                           struct sonde_error        *err)
{
    struct snd_sample_counts *c = *counts;

    if (snd_kept_return(c->trace, c))
        return SONDE_OK;
    return hand_over(c, snd_wait_walk(c->trace, c->mixed.is_done, err), counts, err);
}

void snd_sample_counts_free(struct snd_sample_counts *c)
{
    if (!c || snd_kept_return(c->trace, c))
        return;
    snd_wait_end(c->trace, &c->mixed.consumer);
    free(c->rows);
    free(c->threads);
    free(c->seen);
    snd_map_release(&c->index);
    if (c->mixed.trace)
        snd_mixed_release(&c->mixed);
    free(c);
}
