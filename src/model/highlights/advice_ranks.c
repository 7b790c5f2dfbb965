/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks of a job tell of it: who makes the others wait, who never came to a collective. */
#include <inttypes.h>

#include "base/text/buf.h"
#include "model/highlights/advisor.h"
#include "model/ranks/collective_rows.h"
#include "model/ranks/rank_times.h"
#include "read/said/trace_metadata.h"

/* The worst of them. */
static void tell_straggler(struct snd_advisor *advisor, const struct snd_rank_times *times)
{
    const struct snd_straggler *worst = NULL;

    for (uint32_t i = 0; i < times->straggler_count; i++)
        if (!worst ||
            times->rows[times->stragglers[i].row].caused_ns > times->rows[worst->row].caused_ns)
            worst = &times->stragglers[i];
    if (!worst)
        return;
    const struct snd_rank_row *row = &times->rows[worst->row];
    struct snd_spot            spot = { .function = worst->where };
    double share = row->span_ns > 0 ? 100 * (double)row->caused_ns / (double)row->span_ns : 0;
    char   place[SND_RANK_TEXT];
    snd_advise(advisor, SND_ADVICE_STRAGGLER, share, "table/stragglers",
               worst->where.length > 0 ? &spot : NULL, "The others wait %s for %s: %s",
               snd_amount_time(row->caused_ns).text,
               snd_meta_rank(advisor->trace, row->process, place),
               snd_rank_cause_words[worst->cause]);
}

static void tell_unfinished(struct snd_advisor *advisor, const struct snd_collective_rows *rows)
{
    struct sonde_buffer absent = { 0 };
    struct snd_spot     spot;
    char                place[SND_SPOT_TEXT];

    if (rows->unfinished_count == 0)
        return;
    const struct snd_unfinished *first = &rows->unfinished[0];
    snd_ranks_text(&absent, first->ranks + first->came, first->absent);
    bool has_line = snd_spot_of_stack(advisor, first->process, first->stack, &spot);
    snd_advise(advisor, SND_ADVICE_UNFINISHED, 100, "table/collectives", has_line ? &spot : NULL,
               "The %s %" PRId64 " of group %.*s%s%s was never completed%s%s",
               snd_collective_word(first->kind), first->sequence,
               (int)rows->groups.groups[first->group].name.length,
               rows->groups.groups[first->group].name.bytes, has_line ? ", at " : "",
               has_line ? snd_spot_short(&spot, place) : "",
               first->absent > 0 ? "; never came: rank " : "", snd_buf_string(&absent));
    sonde_buffer_release(&absent);
}

enum sonde_status snd_advise_ranks(struct snd_advisor *advisor, struct sonde_error *err)
{
    struct snd_rank_times      *times = NULL;
    struct snd_collective_rows *rows = NULL;
    enum sonde_status           st = snd_rank_times_make(advisor->trace, false, &times, err);

    if (st == SONDE_OK)
        tell_straggler(advisor, times);
    if (st == SONDE_OK)
        st = snd_collective_rows_make(advisor->trace, &rows, err);
    if (st == SONDE_OK)
        tell_unfinished(advisor, rows);
    snd_rank_times_free(times);
    snd_collective_rows_free(rows);
    return st;
}
