/* SPDX-License-Identifier: Apache-2.0 */
#include "model/highlights/advice.h"

#include <stdlib.h>

#include "base/count_of.h"
#include "base/data/sort.h"
#include "format/layout.h"
#include "model/gpu/gpu.h"
#include "model/highlights/advisor.h"
#include "model/kept.h"
#include "model/memory/memory_peaks.h"
#include "model/samples/sample_counts.h"
#include "read/reader.h"
#include "read/walk/kinds.h"

static int by_share(const void *x, const void *y)
{
    const struct snd_advice *a = x, *b = y;

    return SND_ORDER(SND_FALLING(a->share, b->share), SND_RISING(a->pattern, b->pattern));
}

static bool has_heap(const struct sonde_trace *trace)
{
    struct sonde_tally_row row;

    for (uint32_t p = 0; p < sonde_trace_process_count(trace); p++)
        for (uint32_t n = 0; sonde_trace_tally(trace, p, n, &row); n++)
            if (row.kind == SND_TALLY_HEAP_PROCESS)
                return true;
    return false;
}

static enum sonde_status wait_for_gpu(struct snd_advisor *a, struct sonde_error *err)
{
    for (uint32_t p = 0; p < a->trace->process_count; p++)
        if (a->trace->processes[p].tables.work_count > 0)
            return snd_gpu_wait(a->trace, &a->gpu, err);
    return SONDE_OK;
}

static enum sonde_status wait_for_samples(struct snd_advisor *a, struct sonde_error *err)
{
    return snd_sample_counts_wait(a->trace, &a->counts, err);
}

static enum sonde_status wait_for_memory(struct snd_advisor *a, struct sonde_error *err)
{
    const struct snd_kinds *kinds;
    enum sonde_status       st = snd_trace_kinds(a->trace, &kinds, err);

    return st == SONDE_OK && kinds->events[SND_EV_ALLOC]
               ? snd_memory_wait(a->trace, SONDE_GROUP_MODULE, &a->memory, err)
               : st;
}

static void free_advisor(void *advisor)
{
    snd_advisor_free(advisor);
}

enum sonde_status snd_advisor_new(struct sonde_trace *trace, struct snd_advisor **out,
                                  struct sonde_error *err)
{
    static enum sonde_status (*const waits[])(struct snd_advisor *, struct sonde_error *) = {
        wait_for_gpu, wait_for_samples, wait_for_memory, snd_advise_ranges_wait,
        snd_advise_operators_wait
    };
    enum sonde_status st = SONDE_OK;

    *out = snd_kept_lend(trace, free_advisor, 0);
    if (*out)
        return SONDE_OK;
    struct snd_advisor *advisor = calloc(1, sizeof *advisor);
    *out = advisor;
    if (advisor)
        advisor->trace = trace;
    if (!advisor || !snd_library_paths_read(&advisor->libraries, trace))
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for the advice");
    for (size_t i = 0; i < SND_COUNT_OF(waits) && st == SONDE_OK; i++)
        st = waits[i](advisor, err);
    if (st != SONDE_OK) {
        snd_advisor_free(advisor);
        *out = NULL;
    }
    return st;
}

void snd_advisor_free(struct snd_advisor *advisor)
{
    if (!advisor || snd_kept_return(advisor->trace, advisor))
        return;
    snd_gpu_free(advisor->gpu);
    snd_sample_counts_free(advisor->counts);
    sonde_memory_free(advisor->memory);
    snd_range_advice_free(advisor->ranges);
    snd_operator_advice_free(advisor->operators);
    snd_sampled_release(&advisor->sampled);
    snd_library_paths_release(&advisor->libraries);
    free(advisor);
}

enum sonde_status snd_advisor_finish(struct snd_advisor *advisor, struct sonde_error *err)
{
    enum sonde_status st = SONDE_OK;

    if (advisor->is_finished)
        return SONDE_OK;
    if (advisor->gpu)
        st = snd_gpu_finish(&advisor->gpu, err);
    if (st == SONDE_OK)
        st = snd_sample_counts_finish(&advisor->counts, err);
    if (st == SONDE_OK && advisor->memory)
        st = snd_memory_finish(&advisor->memory, err);
    if (st == SONDE_OK)
        st = snd_advise_ranges_finish(advisor, err);
    if (st == SONDE_OK)
        st = snd_advise_operators_finish(advisor, err);
    advisor->is_finished = st == SONDE_OK;
    if (st == SONDE_OK)
        snd_kept_add(advisor->trace, free_advisor, 0, advisor);
    return st;
}

static bool has_ranks(const struct sonde_trace *trace)
{
    for (uint32_t p = 0; p < trace->process_count; p++)
        if (trace->processes[p].shown.rank != SONDE_NONE)
            return true;
    return false;
}

enum sonde_status snd_advice_find(struct snd_advisor *advisor, struct sonde_summary *summary,
                                  const struct snd_advices **out, struct sonde_error *err)
{
    const struct sonde_summary_totals *all = sonde_summary_totals(summary);
    const struct {
        bool there;
        enum sonde_status (*find)(struct snd_advisor *, struct sonde_error *);
    } finders[] = {
        { all->samples > 0, snd_advise_samples }, /* first: others ask it for lines */
        { advisor->gpu && advisor->gpu->launches, snd_advise_gpu },
        { all->ranges > 0, snd_advise_ranges },
        { advisor->operators != NULL, snd_advise_operators },
        { all->allocs > 0 && advisor->memory, snd_advise_memory },
        { has_heap(advisor->trace), snd_advise_heap },
        { has_ranks(advisor->trace), snd_advise_ranks },
    };
    struct snd_advices *found = &advisor->found;
    enum sonde_status   st = snd_advisor_finish(advisor, err);

    advisor->summary = summary;
    for (size_t i = 0; i < SND_COUNT_OF(finders) && st == SONDE_OK && !advisor->is_found; i++)
        if (finders[i].there)
            st = finders[i].find(advisor, err);
    if (st == SONDE_OK)
        snd_sort(found->items, found->count, sizeof found->items[0], by_share);
    advisor->is_found = st == SONDE_OK;
    *out = found;
    return st;
}
