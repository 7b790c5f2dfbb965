/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/python/counted_functions.c - one table of functions with their callers.
 *
 * A process counts its calls in place (a CALLS tally for each pair of caller and callee) or leaves
 * a range for each call (timed_functions.c). A tally has the pair's numbers, and those by which the callee's
 * own follow: how many of the calls, and how much of their time, was in no other call of it.
 */
#include "model/python/counted_functions.h"

#include <stdlib.h>
#include <string.h>

#include "base/data/sort.h"
#include "model/kept.h"
#include "read/said/trace_metadata.h"

/* ----------------------------------------------------------------- counters */

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

/* False: no memory. */
static bool add_counters(struct sonde_functions *f)
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

/* ---------------------------------------------------------------- the table */

/* ------------------------------------------------------------------ tallies */

static bool add_tally(struct sonde_functions *f, uint32_t process,
                      const struct sonde_tally_row *tally)
{
    const struct snd_scale *scale = &f->trace->processes[process].scale;
    const uint64_t         *words = tally->words;
    uint32_t                callee = snd_function_of(f, process, tally->key);
    uint32_t caller = tally->other ? snd_function_of(f, process, tally->other) : SONDE_NONE;

    if (callee == UINT32_MAX || (tally->other && caller == UINT32_MAX))
        return false;
    uint32_t at = snd_call_of(f, caller, callee);
    if (at == UINT32_MAX || !f->calls)
        return false;
    struct sonde_call     *call = &f->calls[at];
    struct sonde_function *row = &f->rows[callee];
    int64_t                total = snd_scale_ticks(scale, words[SND_CALLS_TOTAL_TICKS]);
    int64_t                self = snd_scale_ticks(scale, words[SND_CALLS_SELF_TICKS]);

    call->calls += words[SND_CALLS_CALLS];
    call->primitive_calls += words[SND_CALLS_PRIMITIVE];
    call->total_ns = snd_add(call->total_ns, total);
    call->self_ns = snd_add(call->self_ns, self);
    row->calls += words[SND_CALLS_CALLS];
    row->self_ns = snd_add(row->self_ns, self);
    row->resumptions += words[SND_CALLS_RESUMPTIONS];
    row->awaiting_ns = snd_add(row->awaiting_ns,
                               snd_scale_ticks(scale, words[SND_CALLS_AWAITING_TICKS]));
    if (tally->count >= SND_CALLS_WORDS) {
        row->primitive_calls += words[SND_CALLS_OUTERMOST];
        row->total_ns = snd_add(row->total_ns,
                                snd_scale_ticks(scale, words[SND_CALLS_OUTERMOST_TICKS]));
    } else if (caller != callee) { /* as near as pairs alone allow */
        row->primitive_calls += words[SND_CALLS_PRIMITIVE];
        row->total_ns = snd_add(row->total_ns, total);
    }
    return true;
}

static enum sonde_status add_tallies(struct sonde_functions *f, bool *counted,
                                     struct sonde_error *err)
{
    struct sonde_tally_row row;

    for (uint32_t p = 0; p < f->trace->process_count; p++) {
        for (uint32_t n = 0; sonde_trace_tally(f->trace, p, n, &row); n++) {
            if (row.kind != SND_TALLY_CALLS)
                continue;
            counted[p] = true;
            if (!add_tally(f, p, &row))
                return snd_fail(err, SONDE_E_NOMEM, "out of memory for the functions");
        }
    }
    return SONDE_OK;
}

/* -------------------------------------------------------------------- order */

static int compare_callee(const void *left, const void *right)
{
    const struct sonde_call *x = left, *y = right;

    return SND_ORDER(SND_RISING(x->callee, y->callee), SND_RISING(x->caller, y->caller));
}

static int compare_caller(const void *left, const void *right)
{
    const struct sonde_call *x = left, *y = right;

    return SND_ORDER(SND_RISING(x->caller, y->caller), SND_RISING(x->callee, y->callee));
}

/* Calls from outside sort last, by their caller's number: they are no function's callees. */
static bool index_calls(struct sonde_functions *f)
{
    if (f->call_count == 0)
        return true;
    f->callees = malloc(f->call_count * sizeof *f->callees);
    if (!f->callees)
        return false;
    memcpy(f->callees, f->calls, f->call_count * sizeof *f->callees);
    snd_sort(f->calls, f->call_count, sizeof *f->calls, compare_callee);
    snd_sort(f->callees, f->call_count, sizeof *f->callees, compare_caller);
    f->callee_count = f->call_count;
    for (uint32_t i = f->call_count; i-- > 0;) {
        struct sonde_function *callee = &f->rows[f->calls[i].callee];
        callee->first_caller = i;
        callee->caller_count++;
        if (f->callees[i].caller == SONDE_NONE)
            continue;
        struct sonde_function *caller = &f->rows[f->callees[i].caller];
        caller->first_callee = i;
        caller->callee_count++;
    }
    return true;
}

/* ---------------------------------------------------------------- the whole */

static enum sonde_status fill(struct sonde_functions *f, struct sonde_error *err)
{
    bool *counted = calloc((size_t)f->trace->process_count + 1, sizeof *counted);

    if (!counted)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the functions");
    enum sonde_status st = add_tallies(f, counted, err);
    if (st == SONDE_OK)
        st = snd_functions_from_ranges(f, counted, err);
    free(counted);
    if (st == SONDE_OK && (!add_counters(f) || !index_calls(f)))
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for the functions");
    return st;
}

static void free_functions(void *functions)
{
    sonde_functions_free(functions);
}

enum sonde_status sonde_functions_new(struct sonde_trace *trace, struct sonde_functions **out,
                                      struct sonde_error *err)
{
    *out = snd_kept_lend(trace, free_functions, 0);
    if (*out)
        return SONDE_OK;
    struct sonde_functions *f = calloc(1, sizeof *f);
    if (!f)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the functions");
    f->trace = trace;
    enum sonde_status st = fill(f, err);
    snd_map_release(&f->by_place);
    snd_map_release(&f->by_frame);
    snd_map_release(&f->by_pair);
    if (st == SONDE_OK) {
        snd_kept_add(trace, free_functions, 0, f);
        *out = f;
    } else {
        sonde_functions_free(f);
    }
    return st;
}

void sonde_functions_free(struct sonde_functions *f)
{
    if (!f || snd_kept_return(f->trace, f))
        return;
    free(f->rows);
    free(f->calls);
    free(f->callees);
    free(f->counts);
    free(f);
}

size_t sonde_functions_count(const struct sonde_functions *functions)
{
    return functions->count;
}

const struct sonde_function *sonde_functions_row(const struct sonde_functions *functions,
                                                 size_t                        index)
{
    return index < functions->count ? &functions->rows[index] : NULL;
}

const struct sonde_call *sonde_functions_caller(const struct sonde_functions *functions,
                                                size_t                        index)
{
    return index < functions->call_count ? &functions->calls[index] : NULL;
}

const struct sonde_call *sonde_functions_callee(const struct sonde_functions *functions,
                                                size_t                        index)
{
    return index < functions->callee_count ? &functions->callees[index] : NULL;
}
