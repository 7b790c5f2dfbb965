/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/diff/diff_sampler.c - the times of each row, step by step and call by call; declared in diff.h.
 *
 * Walks are by time, so that a step is known before what lies in it. A range may end after the next
 * step began: it belongs to the one in which it began. What follows the last step is none (snd_steps_is_open).
 */
#include <stdlib.h>
#include <string.h>

#include "format/fields.h"
#include "model/diff/diff.h"
#include "model/summary/steps.h"

struct snd_diff_step {
    uint64_t number;
    int64_t  start_ns, end_ns;
    uint32_t process, before; /* the process's step before, plus one */
    bool     used, ended;
};

struct step_sums {
    uint32_t             step;
    struct snd_diff_sums sums;
};

struct snd_diff_tally {
    struct snd_diff_sums all;
    struct step_sums    *steps; /* rising */
    double              *calls;
    uint32_t             step_count, step_room, call_count, call_room;
    uint64_t             stride; /* one call in so many is kept */
};

static void on_other(void *user, struct snd_lane *lane, int64_t ns, const uint64_t *words)
{
    struct snd_diff_sampler *s = user;

    if (s->failed || SND_EVENT_KIND(words[0]) != SND_EV_STEP)
        return;
    uint32_t *latest = &s->latest[lane->process];
    if (*latest && !s->steps[*latest - 1].ended) {
        s->steps[*latest - 1].end_ns = ns;
        s->steps[*latest - 1].ended = true;
    }
    if (s->step_count >= SND_DIFF_STEPS_MOST)
        return;
    if (!snd_grow(&s->steps, &s->step_room, s->step_count, sizeof *s->steps)) {
        s->failed = true;
        return;
    }
    s->steps[s->step_count++] = (struct snd_diff_step){
        .number = words[1],
        .start_ns = ns,
        .end_ns = s->trace->processes[lane->process].shown.stop_ns,
        .process = lane->process,
        .before = *latest,
    };
    *latest = s->step_count;
}

static void on_memory(void *user, struct snd_lane *lane, int64_t ns, const uint64_t *words,
                      struct snd_open_range *innermost)
{
    struct snd_diff_sampler *s = user;

    (void)lane, (void)ns, (void)words, (void)innermost;
    s->has_memory = true;
}

/* The step in which the range began, plus one; 0: none, or one that is not sampled. */
static uint32_t find_step(const struct snd_diff_sampler *s, uint32_t process, int64_t ns)
{
    uint32_t at = s->latest[process];

    while (at && s->steps[at - 1].start_ns > ns)
        at = s->steps[at - 1].before;
    return at && (!s->steps[at - 1].ended || ns < s->steps[at - 1].end_ns) ? at : 0;
}

static struct snd_diff_tally *find_tally(struct snd_diff_sampler *s, uint32_t id)
{
    struct snd_key key = { id, 0, 0 };
    uint32_t       at;

    if (snd_map_get(&s->by_id, key, &at))
        return &s->tallies[at];
    if (!snd_grow(&s->tallies, &s->tally_room, s->tally_count, sizeof *s->tallies) ||
        !snd_map_put(&s->by_id, key, s->tally_count)) {
        s->failed = true;
        return NULL;
    }
    s->tallies[s->tally_count] = (struct snd_diff_tally){ .stride = 1 };
    return &s->tallies[s->tally_count++];
}

static void add_sums(struct snd_diff_sums *sums, const struct snd_range *r, int64_t self_ns)
{
    int64_t bytes = snd_add(snd_sub(r->cpu_bytes, r->child_cpu_bytes),
                            snd_sub(r->device_bytes, r->child_device_bytes));

    sums->count++;
    sums->time_ns = snd_add(sums->time_ns, self_ns);
    sums->bytes = snd_add(sums->bytes, bytes);
    sums->flops += r->flops;
}

/* When all places are taken, every second sample goes, and only so many are added. */
static bool add_call(struct snd_diff_tally *t, int64_t ns)
{
    if ((t->all.count - 1) % t->stride != 0)
        return true;
    if (t->call_count == SND_DIFF_CALLS_MOST) {
        for (uint32_t i = 0; i < SND_DIFF_CALLS_MOST / 2; i++)
            t->calls[i] = t->calls[2 * (size_t)i];
        t->call_count /= 2;
        t->stride *= 2;
        if ((t->all.count - 1) % t->stride != 0)
            return true;
    }
    if (!snd_grow(&t->calls, &t->call_room, t->call_count, sizeof *t->calls))
        return false;
    t->calls[t->call_count++] = (double)ns;
    return true;
}

/* Those of the row in a step; NULL: out of memory. */
static struct snd_diff_sums *find_sums(struct snd_diff_tally *t, uint32_t step)
{
    for (uint32_t i = t->step_count; i-- > 0 && t->steps[i].step >= step;)
        if (t->steps[i].step == step)
            return &t->steps[i].sums;
    if (!snd_grow(&t->steps, &t->step_room, t->step_count, sizeof *t->steps))
        return NULL;
    uint32_t at = t->step_count++;
    for (; at > 0 && t->steps[at - 1].step > step; at--)
        t->steps[at] = t->steps[at - 1];
    t->steps[at] = (struct step_sums){ .step = step };
    return &t->steps[at].sums;
}

static bool on_row(void *user, uint32_t id, const struct snd_lane *lane, const struct snd_range *r)
{
    struct snd_diff_sampler *s = user;
    struct snd_diff_tally   *t = s->failed ? NULL : find_tally(s, id);
    int64_t                  self_ns = r->is_async ? 0 : snd_sub(r->total_ns, r->child_ns);

    if (!t)
        return false;
    add_sums(&t->all, r, self_ns);
    s->failed |= !add_call(t, self_ns);
    uint32_t step = find_step(s, lane->process, r->start_ns);
    if (step > 0) {
        struct snd_diff_sums *sums = find_sums(t, step - 1);
        s->steps[step - 1].used = true;
        s->failed |= !sums;
        if (sums)
            add_sums(sums, r, self_ns);
    }
    return !s->failed;
}

struct snd_consumer snd_diff_sampler_consumer(struct snd_diff_sampler *sampler)
{
    sampler->latest = calloc((size_t)sampler->trace->process_count + 1, sizeof *sampler->latest);
    sampler->failed = !sampler->latest;
    return (struct snd_consumer){
        .user = sampler, .any_flops = true, .memory = on_memory, .other = on_other, .row = on_row
    };
}

void snd_diff_sampler_release(struct snd_diff_sampler *s)
{
    for (uint32_t i = 0; i < s->tally_count; i++) {
        free(s->tallies[i].steps);
        free(s->tallies[i].calls);
    }
    snd_map_release(&s->by_id);
    free(s->latest);
    free(s->tallies);
    free(s->steps);
}

/* -------------------------------------------------------------------- results */

/* One that ended, as far as the program said when steps do. */
static bool is_whole(const struct snd_diff_sampler *s, uint32_t step)
{
    const struct snd_diff_step *it = &s->steps[step];

    return it->ended || !snd_steps_is_open(s->trace, it->process, it->number);
}

static void add_step(struct snd_diff_sums *to, const struct snd_diff_sums *step)
{
    to->count += step->count;
    to->time_ns = snd_add(to->time_ns, step->time_ns);
    to->bytes = snd_add(to->bytes, step->bytes);
    to->flops += step->flops;
}

static bool keep_series(struct snd_diff_run *run, struct snd_diff_series *series, double **to,
                        size_t count)
{
    *to = snd_arena_take(&run->arena, (count ? count : 1) * sizeof **to);
    *series = (struct snd_diff_series){ *to, count };
    return *to != NULL;
}

bool snd_diff_sampler_give(const struct snd_diff_sampler *s, uint32_t id, struct snd_diff_run *run,
                           struct snd_diff_item *item)
{
    uint32_t at;
    double  *steps, *calls;

    if (!snd_map_get(&s->by_id, (struct snd_key){ id, 0, 0 }, &at))
        return true;
    const struct snd_diff_tally *t = &s->tallies[at];
    item->all = t->all;
    if (!keep_series(run, &item->steps, &steps, t->step_count) ||
        !keep_series(run, &item->calls, &calls, t->call_count))
        return false;
    item->steps.count = 0;
    for (uint32_t i = 0; i < t->step_count; i++) {
        if (!is_whole(s, t->steps[i].step))
            continue;
        steps[item->steps.count++] = (double)t->steps[i].sums.time_ns;
        add_step(&item->in_steps, &t->steps[i].sums);
    }
    if (t->call_count > 0)
        memcpy(calls, t->calls, t->call_count * sizeof *calls);
    return true;
}

bool snd_diff_sampler_steps(const struct snd_diff_sampler *s, struct snd_diff_run *run)
{
    double *to;

    if (!keep_series(run, &run->step_times, &to, s->step_count))
        return false;
    for (uint32_t i = 0; i < s->step_count; i++)
        if (s->steps[i].used && is_whole(s, i))
            to[run->steps++] = (double)snd_sub(s->steps[i].end_ns, s->steps[i].start_ns);
    run->step_times.count = run->steps;
    run->has_memory = s->has_memory;
    return true;
}
