/* SPDX-License-Identifier: Apache-2.0 */
#include "model/highlights/advice.h"

#include <stdlib.h>

#include "base/count_of.h"
#include "format/layout.h"
#include "model/highlights/advisor.h"
#include "read/reader.h"

static int by_share(const void *x, const void *y)
{
    const struct snd_advice *a = x, *b = y;

    if (a->share != b->share)
        return a->share < b->share ? 1 : -1;
    return (a->pattern > b->pattern) - (a->pattern < b->pattern);
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

static bool has_work(const struct sonde_trace *trace)
{
    for (uint32_t p = 0; p < trace->process_count; p++)
        if (trace->processes[p].tables.work_count > 0)
            return true;
    return false;
}

enum sonde_status snd_advice_find(struct sonde_trace *trace, const struct sonde_summary *summary,
                                  struct snd_advices *out, struct sonde_error *err)
{
    const struct sonde_summary_totals *all = sonde_summary_totals(summary);
    struct snd_advisor advisor = { .trace = trace, .summary = summary, .found = out };
    const struct {
        bool there;
        enum sonde_status (*find)(struct snd_advisor *, struct sonde_error *);
    } finders[] = {
        { has_work(trace), snd_advise_gpu },    { all->samples > 0, snd_advise_samples },
        { all->ranges > 0, snd_advise_ranges }, { all->allocs > 0, snd_advise_memory },
        { has_heap(trace), snd_advise_heap },
    };
    enum sonde_status st = SONDE_OK;

    out->count = 0;
    if (!snd_library_paths_read(&advisor.libraries, trace))
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for the advice");
    for (size_t i = 0; i < SND_COUNT_OF(finders) && st == SONDE_OK; i++)
        if (finders[i].there)
            st = finders[i].find(&advisor, err);
    snd_library_paths_release(&advisor.libraries);
    if (out->count > 1)
        qsort(out->items, out->count, sizeof out->items[0], by_share);
    return st;
}
