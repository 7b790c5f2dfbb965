/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/summary/summary_parts.c - summaries of some threads, made by a worker of a divided walk, and added up.
 *
 * All of it is sums of whole numbers, of a thread, a name or the whole, and spans of samples. Memory and links, which threads
 * have in common, are in no trace whose walk is divided.
 */
#include "model/summary/summary_state.h"

#include <stdlib.h>

bool snd_summary_begin_walk(struct sonde_summary *s)
{
    const struct sonde_trace *trace = s->trace;

    s->threads = calloc((size_t)trace->thread_count + 1, sizeof *s->threads);
    s->uncounted = calloc((size_t)trace->names.count + 1, sizeof *s->uncounted);
    s->meanings = calloc((size_t)trace->names.count + 1, sizeof *s->meanings);
    s->covered_ns = calloc((size_t)trace->thread_count + 1, sizeof *s->covered_ns);
    s->divided = calloc((size_t)trace->thread_count + 1, sizeof *s->divided);
    s->sampled = calloc((size_t)trace->thread_count + 1, sizeof *s->sampled);
    for (uint32_t i = 0; s->covered_ns && i < trace->thread_count; i++)
        s->covered_ns[i] = INT64_MIN;
    return s->covered_ns && s->divided && s->sampled && s->threads && s->uncounted && s->meanings;
}

void snd_summary_end_walk(struct sonde_summary *s)
{
    free(s->threads);
    snd_steps_release(&s->steps);
    free(s->uncounted);
    free(s->meanings);
    free(s->covered_ns);
    free(s->divided);
    free(s->sampled);
    snd_map_release(&s->links);
    free(s->flows);
    snd_map_release(&s->held);
}

static void free_part(void *user)
{
    struct sonde_summary *part = user;

    snd_summary_end_walk(part);
    free(part);
}

static bool split(void *user, struct snd_consumer *consumer)
{
    const struct sonde_summary *s = user;
    struct sonde_summary       *part = calloc(1, sizeof *part);

    if (!part)
        return false;
    part->trace = s->trace;
    part->is_part = true;
    if (!snd_summary_begin_walk(part)) {
        free_part(part);
        return false;
    }
    consumer->user = part;
    return true;
}

static uint64_t part_bytes(const void *user)
{
    const struct sonde_summary *s = user;
    uint64_t thread = sizeof *s->threads + sizeof *s->covered_ns + sizeof *s->divided +
                      sizeof *s->sampled;

    return s->trace->names.count * (sizeof *s->uncounted + sizeof *s->meanings) +
           s->trace->thread_count * thread;
}

/* Samples are of other threads than the one that wrote them, which is why several parts may have some of a thread. */
static void add_thread(struct sonde_summary *s, const struct sonde_summary *part, uint32_t thread)
{
    struct sonde_thread_row       *row = &s->threads[thread];
    const struct sonde_thread_row *one = &part->threads[thread];
    struct sampled                *seen = &s->sampled[thread];

    if (one->samples > 0) {
        const struct sampled *other = &part->sampled[thread];
        if (row->samples == 0 || other->first_ns < seen->first_ns)
            seen->first_ns = other->first_ns;
        if (row->samples == 0 || other->last_ns > seen->last_ns)
            seen->last_ns = other->last_ns;
    }
    row->samples += one->samples;
    row->ranges += one->ranges;
    row->waiting_ns = snd_add(row->waiting_ns, one->waiting_ns);
    row->busy_ns = snd_add(row->busy_ns, one->busy_ns);
}

static bool add_steps(struct sonde_summary *s, const struct sonde_summary *part)
{
    for (uint32_t i = 0; i < part->steps.count; i++) {
        const struct sonde_step_row *step = &part->steps.rows[i];
        if (!snd_steps_add(&s->steps, step->process, step->number, step->start_ns))
            return false;
    }
    return true;
}

static bool join(void *user, void *part_user)
{
    struct sonde_summary       *s = user;
    const struct sonde_summary *part = part_user;

    s->totals.samples += part->totals.samples;
    s->totals.marks += part->totals.marks;
    s->totals.counters += part->totals.counters;
    s->totals.steps += part->totals.steps;
    s->self_ns = snd_add(s->self_ns, part->self_ns);
    s->has_shapes |= part->has_shapes;
    s->compiled += part->compiled;
    s->out_of_memory |= part->out_of_memory;
    for (uint32_t i = 0; i < s->trace->thread_count; i++)
        add_thread(s, part, i);
    for (uint32_t i = 0; i < s->trace->names.count; i++)
        s->uncounted[i] = snd_add(s->uncounted[i], part->uncounted[i]);
    return add_steps(s, part);
}

const struct snd_division snd_summary_division = {
    .split = split, .join = join, .free_part = free_part, .part_bytes = part_bytes
};
