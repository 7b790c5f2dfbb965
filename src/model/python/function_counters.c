/* SPDX-License-Identifier: Apache-2.0 */
/* model/python/function_counters.c - counters of threads for functions: `sonde run --per-function`. */
#include <stdlib.h>
#include <string.h>

#include "model/python/counted_functions.h"
#include "read/said/trace_metadata.h"

/* Room for the counters of every function there is. */
static bool make_room(struct sonde_functions *f)
{
    if (f->counts_room >= f->count)
        return true;
    struct snd_function_counts *counts = realloc(f->counts, f->room * sizeof *counts);
    if (!counts)
        return false;
    memset(counts + f->counts_room, 0, (f->room - f->counts_room) * sizeof *counts);
    f->counts = counts;
    f->counts_room = f->room;
    return true;
}

static bool add_process(struct sonde_functions *f, uint32_t process, struct sonde_text names)
{
    uint8_t                place[SND_THREAD_COUNTERS_MOST] = { 0 };
    struct sonde_tally_row row;

    snd_counter_names_add(&f->counters, names, place);
    for (uint32_t n = 0; sonde_trace_tally(f->trace, process, n, &row); n++) {
        uint32_t at = row.kind == SND_TALLY_FUNCTION_COUNTERS &&
                              row.other < SND_THREAD_COUNTERS_MOST
                          ? place[row.other]
                          : 0;
        if (at == 0)
            continue;
        uint32_t function = snd_function_of(f, process, row.key);
        if (function == UINT32_MAX || !make_room(f))
            return false;
        f->counts[function].self[at - 1] += row.words[SND_FUNCTION_COUNTERS_SELF];
        f->counts[function].total[at - 1] += row.words[SND_FUNCTION_COUNTERS_TOTAL];
    }
    return true;
}

bool snd_functions_add_counters(struct sonde_functions *f)
{
    struct sonde_text names;
    bool              there = false;

    for (uint32_t p = 0; p < f->trace->process_count; p++)
        if (snd_meta_find(f->trace, p, SND_META_COUNTERS_FUNCTIONS, &names)) {
            there = true;
            if (!add_process(f, p, names))
                return false;
        }
    return !there || make_room(f);
}
