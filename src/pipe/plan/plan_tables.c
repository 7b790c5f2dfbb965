/* SPDX-License-Identifier: Apache-2.0 */
/* pipe/plan/plan_tables.c - which stages and transfers are within a period. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pipe/plan/plan_search.h"

#define MB (1024.0 * 1024.0)
#define WORDS_MAX ((uint64_t)1 << 25)          /* of all sets: 256 MB */
#define WORK_MAX ((double)((uint64_t)1 << 36)) /* steps of one question: about a minute */

/* ------------------------------------------------------------------- kinds */

bool snd_device_types_alike(const struct snd_pipeline *p, const struct snd_device_type *a,
                            const struct snd_device_type *b)
{
    if (a->memory_mb != b->memory_mb || a->bandwidth_mbps != b->bandwidth_mbps)
        return false;
    for (uint32_t i = 0; i < p->layers; i++)
        if (a->time_s[i] != b->time_s[i])
            return false;
    return true;
}

static void add_level(struct snd_search *s, double bandwidth)
{
    uint32_t at = 0;

    while (at < s->level_count && s->bandwidths[at] < bandwidth)
        at++;
    if (at < s->level_count && s->bandwidths[at] == bandwidth)
        return;
    memmove(s->bandwidths + at + 1, s->bandwidths + at,
            (s->level_count - at) * sizeof *s->bandwidths);
    s->bandwidths[at] = bandwidth;
    s->level_count++;
}

static void add_kind(struct snd_search *s, uint32_t type)
{
    const struct snd_device_type *t = &s->p->types[type];
    uint32_t                      k = 0;

    if (t->count == 0)
        return;
    while (k < s->kind_count && !snd_device_types_alike(s->p, t, &s->p->types[s->kinds[k].type]))
        k++;
    if (k == s->kind_count)
        s->kinds[s->kind_count++] = (struct snd_kind){ .type = type };
    uint32_t room = s->layers - s->kinds[k].count;
    s->kinds[k].count += t->count < room ? t->count : room;
    add_level(s, t->bandwidth_mbps);
}

static enum sonde_status count_states(struct snd_search *s, struct sonde_error *err)
{
    double states = 1, devices = 0;

    for (uint32_t k = 0; k < s->kind_count; k++) {
        s->kinds[k].stride = (uint64_t)states;
        for (uint32_t level = 0; level < s->level_count; level++)
            if (s->bandwidths[level] == s->p->types[s->kinds[k].type].bandwidth_mbps)
                s->kinds[k].level = level;
        states *= s->kinds[k].count + 1.0;
        devices += s->kinds[k].count;
        if (states * s->level_count * s->words > (double)WORDS_MAX ||
            states * s->kind_count * s->layers * s->words > WORK_MAX)
            return snd_fail(err, SONDE_E_LIMIT,
                            "%.0f or more devices of %u kinds have too many combinations for an "
                            "exact search; remove some, or give identical devices one type",
                            devices, s->kind_count);
    }
    s->states = (uint64_t)states;
    return SONDE_OK;
}

/* ------------------------------------------------------------------ tables */

static void fill_fits(struct snd_search *s)
{
    for (uint32_t k = 0; k < s->kind_count; k++) {
        double available = s->p->types[s->kinds[k].type].memory_mb * MB;
        for (uint32_t i = 0; i < s->layers; i++) {
            double sum = 0;
            for (uint32_t j = i + 1; j <= s->layers; j++) {
                sum += s->p->memory_mb[j - 1];
                /* What is needed must be less, as PipeEdge has it. */
                if (snd_stage_memory_bytes(s->p, sum, i + 1, j) < available)
                    snd_set_put(snd_search_row(s, s->fits, k, i), j);
            }
        }
    }
}

/* No period can be less than what the slowest layer takes on its fastest device. */
static double least_period(const struct snd_search *s)
{
    double least = 0;

    for (uint32_t i = 0; i < s->layers; i++) {
        double best = INFINITY;
        for (uint32_t k = 0; k < s->kind_count; k++)
            best = fmin(best, s->p->types[s->kinds[k].type].time_s[i]);
        least = fmax(least, best);
    }
    return least;
}

static bool add_period(struct snd_search *s, double period, double least)
{
    if (!isfinite(period) || period < least)
        return true;
    if (s->period_count == s->period_room) {
        size_t  room = s->period_room ? s->period_room * 2 : 1024;
        double *more = realloc(s->periods, room * sizeof *more);
        if (!more)
            return false;
        s->periods = more;
        s->period_room = room;
    }
    s->periods[s->period_count++] = period;
    return true;
}

static int compare_doubles(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

/* Every time of a stage or transfer. */
static bool fill_periods(struct snd_search *s)
{
    double least = least_period(s);
    bool   good = true;

    for (uint32_t k = 0; k < s->kind_count; k++) {
        const double *time = s->p->types[s->kinds[k].type].time_s;
        for (uint32_t i = 0; i < s->layers && good; i++) {
            double sum = 0;
            for (uint32_t j = i + 1; j <= s->layers && good; j++) {
                sum += time[j - 1];
                if (snd_set_has(snd_search_row(s, s->fits, k, i), j))
                    good = add_period(s, sum, least);
            }
        }
    }
    for (uint32_t level = 0; level < s->level_count; level++)
        for (uint32_t j = 1; j < s->layers && good; j++)
            good = add_period(s, snd_send_time(s->p, j, s->bandwidths[level]), least);
    if (s->period_count > 1)
        qsort(s->periods, s->period_count, sizeof *s->periods, compare_doubles);
    size_t kept = 0;
    for (size_t i = 0; i < s->period_count; i++)
        if (kept == 0 || s->periods[kept - 1] != s->periods[i])
            s->periods[kept++] = s->periods[i];
    s->period_count = kept;
    return good;
}

/*
 * Whether a start may be put off: the stages that end before the later start are dropped, and the
 * one around it gets shorter. That holds if a shorter stage with the same end is allowed whenever
 * the longer is (buffers may forbid it), and a cut that can be sent to one device to any.
 */
static bool is_monotone(const struct snd_search *s)
{
    for (uint32_t level = 1; level < s->level_count; level++)
        if (memcmp(s->sendable, s->sendable + (size_t)level * s->words, s->words * 8) != 0)
            return false;
    for (uint32_t k = 0; k < s->kind_count; k++)
        for (uint32_t i = 0; i + 1 < s->layers; i++) {
            const uint64_t *longer = snd_search_row(s, s->allowed, k, i),
                           *shorter = snd_search_row(s, s->allowed, k, i + 1);
            for (uint32_t w = 0; w < s->words; w++) {
                uint64_t lost = longer[w] & ~shorter[w];
                if (w == (i + 1) / 64)
                    lost &= ~((uint64_t)1 << ((i + 1) % 64));
                if (lost)
                    return false;
            }
        }
    return true;
}

void snd_search_allow(struct snd_search *s, double period)
{
    memset(s->allowed, 0, (size_t)s->kind_count * s->layers * s->words * 8);
    memset(s->sendable, 0, (size_t)s->level_count * s->words * 8);
    for (uint32_t k = 0; k < s->kind_count; k++) {
        const double *time = s->p->types[s->kinds[k].type].time_s;
        s->kinds[k].span = 0;
        for (uint32_t i = 0; i < s->layers; i++) {
            double sum = 0;
            for (uint32_t j = i + 1; j <= s->layers; j++) {
                sum += time[j - 1];
                if (sum > period || !snd_set_has(snd_search_row(s, s->fits, k, i), j))
                    continue;
                snd_set_put(snd_search_row(s, s->allowed, k, i), j);
                s->kinds[k].span = j - i > s->kinds[k].span ? j - i : s->kinds[k].span;
            }
        }
    }
    for (uint32_t level = 0; level < s->level_count; level++)
        for (uint32_t j = 1; j < s->layers; j++)
            if (snd_send_time(s->p, j, s->bandwidths[level]) <= period)
                snd_set_put(s->sendable + (size_t)level * s->words, j);
    s->monotone = is_monotone(s);
}

/* ----------------------------------------------------------------- the whole */

static bool make_tables(struct snd_search *s)
{
    size_t rows = (size_t)s->kind_count * s->layers * s->words;

    if (rows == 0 || s->level_count == 0) /* never: there is a device, and a layer */
        return false;
    s->fits = calloc(rows, sizeof *s->fits);
    s->allowed = calloc(rows, sizeof *s->allowed);
    s->sendable = calloc((size_t)s->level_count * s->words, sizeof *s->sendable);
    s->reach = malloc(s->states * s->level_count * s->words * sizeof *s->reach);
    s->start = calloc(s->words, sizeof *s->start);
    if (!s->fits || !s->allowed || !s->sendable || !s->reach || !s->start)
        return false;
    fill_fits(s);
    return fill_periods(s);
}

enum sonde_status snd_search_init(struct snd_search *s, const struct snd_pipeline *p,
                                  struct sonde_error *err)
{
    *s = (struct snd_search){ .p = p, .layers = p->layers, .words = p->layers / 64 + 1 };
    s->kinds = calloc(p->type_count + 1, sizeof *s->kinds);
    s->bandwidths = calloc(p->type_count + 1, sizeof *s->bandwidths);
    if (!s->kinds || !s->bandwidths)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the plan");
    for (uint32_t t = 0; t < p->type_count; t++)
        add_kind(s, t);
    if (s->kind_count == 0)
        return snd_fail(err, SONDE_E_STATE, "no plan: there is no device");
    enum sonde_status status = count_states(s, err);
    if (status == SONDE_OK && !make_tables(s))
        status = snd_fail(err, SONDE_E_NOMEM,
                          "out of memory for %" PRIu64 " combinations of devices", s->states);
    return status;
}

void snd_search_release(struct snd_search *s)
{
    free(s->kinds);
    free(s->bandwidths);
    free(s->fits);
    free(s->allowed);
    free(s->sendable);
    free(s->reach);
    free(s->start);
    free(s->periods);
}
