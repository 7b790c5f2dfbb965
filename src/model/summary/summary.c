/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/summary/summary.c - totals, threads, steps and the ledger.
 *
 * One walk, or none of its own: the summary waits at the trace for a model's, of which it is a consumer then. A
 * second one only if steps are wanted and there are some (steps.h): a thread's chunks may be read
 * before the step that they belong to.
 */
#include "model/summary/summary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/data/map.h"
#include "base/data/sort.h"
#include "base/system/crew.h"
#include "format/fields.h"
#include "model/ranges/assembly.h"
#include "model/summary/ledger.h"
#include "model/summary/summary_state.h"

#define LINKS_MAX (1u << 20) /* arrows whose other end is still awaited; more are not followed */
#define UNCOUNTED_NAMED 3    /* operators without FLOPs that the ledger names */

/* -------------------------------------------------------------- first walk */

/* "## Call CompiledFxGraph ID ##": inductor's code runs, of whatever modules it was made from. */
static bool is_compiled(const struct snd_text *name)
{
    static const char begin[] = "## Call CompiledFxGraph ";

    return name->length >= sizeof begin && name->bytes[0] == '#' &&
           memcmp(name->bytes, begin, sizeof begin - 1) == 0;
}

/* What a name stands for; 0: nobody has asked yet. */
enum meaning { MEANS_JUDGED = 1, MEANS_OPERATOR = 2, MEANS_COMPILED = 4 };

static __attribute__((noinline)) uint8_t judge_name(const struct snd_text *name)
{
    bool is_operator = snd_flops_is_operator((struct sonde_text){ name->bytes, name->length });

    return (uint8_t)(MEANS_JUDGED | (is_operator ? MEANS_OPERATOR : 0) |
                     (is_compiled(name) ? MEANS_COMPILED : 0));
}

static inline unsigned meaning_of(struct sonde_summary *s, uint32_t number)
{
    if (s->meanings[number] == 0)
        s->meanings[number] = judge_name(&s->trace->names.items[number]);
    return s->meanings[number];
}

/* An operator that computes, whose FLOPs are unknown. */
static inline bool is_uncounted(unsigned meaning, const struct snd_range *r)
{
    return (meaning & MEANS_OPERATOR) && r->formula != SND_FLOPS_FOUND &&
           r->formula != SND_FLOPS_NO_WORK && r->scope == SONDE_SCOPE_FUNCTION && !r->claimed &&
           r->child_flops <= 0;
}

/* Ranges that lie in no other may still overlap: what one has covered counts once. */
static void add_busy(struct sonde_summary *s, const struct snd_lane *lane, int64_t start,
                     int64_t end)
{
    int64_t *covered = &s->covered_ns[lane->thread];

    start = start > *covered ? start : *covered;
    if (end <= start)
        return;
    s->threads[lane->thread].busy_ns = snd_add(s->threads[lane->thread].busy_ns, end - start);
    *covered = end;
}

/* A run of compiled code in a module is undivided if nothing in it has a module from the compiler. */
static void note_compiled(struct sonde_summary *s, const struct snd_lane *lane, bool is_part,
                          bool is_run, bool has_module)
{
    uint64_t *divided = &s->divided[lane->thread];

    *divided += is_part;
    if (!is_run)
        return;
    s->compiled += has_module && *divided == 0;
    *divided = 0;
}

static void on_close(void *user, struct snd_lane *lane, struct snd_open_range *range,
                     struct snd_open_range *parent)
{
    struct sonde_summary    *s = user;
    const struct snd_range  *r = &range->range;
    struct sonde_thread_row *row = &s->threads[lane->thread];
    int64_t                  self_ns = snd_sub(r->total_ns, r->child_ns);
    unsigned                 meaning = meaning_of(s, r->name);

    row->ranges++;
    if (r->is_async)
        row->waiting_ns = snd_add(row->waiting_ns, r->total_ns);
    else if (!parent)
        add_busy(s, lane, r->start_ns, snd_add(r->start_ns, r->total_ns));
    s->self_ns = snd_add(s->self_ns, self_ns);
    s->has_shapes |= r->shapes != 0;
    if (is_uncounted(meaning, r))
        s->uncounted[r->name] = snd_add(s->uncounted[r->name], self_ns);
    if (r->compiled != 0 || (meaning & MEANS_COMPILED))
        note_compiled(s, lane, r->compiled != 0, meaning & MEANS_COMPILED, r->module != 0);
}

/* A kind of leaves is its name and what is asked of each: so many bits. */
enum { LEAF_UNCOUNTED = 1, LEAF_COMPILED = 2, LEAF_IS_RUN = 4, LEAF_HAS_MODULE = 8, LEAF_BITS = 4 };

static uint32_t on_kind(void *user, const struct snd_lane *lane, const struct snd_range *shared)
{
    struct sonde_summary *s = user;
    unsigned              meaning = meaning_of(s, shared->name);

    (void)lane;
    s->has_shapes |= shared->shapes != 0;
    return shared->name << LEAF_BITS | (is_uncounted(meaning, shared) ? LEAF_UNCOUNTED : 0) |
           (shared->compiled != 0 ? LEAF_COMPILED : 0) |
           (meaning & MEANS_COMPILED ? LEAF_IS_RUN : 0) |
           (shared->module != 0 ? LEAF_HAS_MODULE : 0);
}

static void on_leaf(void *user, const struct snd_lane *lane, const struct snd_leaf *leaf,
                    const struct snd_known_leaf *known, uint32_t kind,
                    const struct snd_open_range *above, struct snd_open_range *parent)
{
    struct sonde_summary *s = user;
    int64_t               ns = snd_sub(leaf->end_ns, leaf->start_ns);

    (void)known, (void)above;
    s->threads[lane->thread].ranges++;
    if (!parent)
        add_busy(s, lane, leaf->start_ns, leaf->end_ns);
    s->self_ns = snd_add(s->self_ns, ns);
    if (kind & LEAF_UNCOUNTED)
        s->uncounted[kind >> LEAF_BITS] = snd_add(s->uncounted[kind >> LEAF_BITS], ns);
    if (kind & (LEAF_COMPILED | LEAF_IS_RUN))
        note_compiled(s, lane, kind & LEAF_COMPILED, kind & LEAF_IS_RUN, kind & LEAF_HAS_MODULE);
}

static void on_memory(void *user, struct snd_lane *lane, int64_t ns, const uint64_t *words,
                      struct snd_open_range *innermost)
{
    struct sonde_summary *s = user;
    struct snd_key        key = { SND_PAIR(SND_LOW(words[1]), lane->process), words[2], 0 };

    (void)ns, (void)innermost;
    if (SND_EVENT_KIND(words[0]) == SND_EV_ALLOC) {
        s->totals.allocs++;
        s->out_of_memory |= !snd_map_put(&s->held, key, 0);
    } else {
        s->totals.frees++;
        s->unmatched += !snd_map_remove(&s->held, key);
    }
}

/* An id may be used again after both of its ends were seen. */
static void match_link(struct sonde_summary *s, struct snd_key here)
{
    struct snd_key there = { here.a, here.b, !here.c };

    if (snd_map_remove(&s->links, there))
        return;
    if (s->links.count < LINKS_MAX)
        s->out_of_memory |= !snd_map_put(&s->links, here, 0);
}

static void add_link(struct sonde_summary *s, const struct snd_lane *lane, int64_t ns,
                     const uint64_t *words)
{
    /* Arrows of the user may cross processes; those of probes are numbered in each. */
    bool           crosses = SND_LOW(words[1]) == SND_LINK_FLOW;
    struct snd_key here = { SND_PAIR(SND_LOW(words[1]), crosses ? SONDE_NONE : lane->process),
                            words[2], SND_HIGH(words[1]) & 1 };

    s->totals.links++;
    if (!crosses || !s->assembly->by_process) {
        match_link(s, here);
    } else if (snd_grow(&s->flows, &s->flow_room, s->flow_count, sizeof *s->flows)) {
        s->flows[s->flow_count] = (struct flow){ ns, s->flow_count, here };
        s->flow_count++;
    } else {
        s->out_of_memory = true;
    }
}

static int compare_flows(const void *a, const void *b)
{
    const struct flow *x = a, *y = b;

    return SND_ORDER(SND_RISING(x->ns, y->ns), SND_RISING(x->order, y->order));
}

/* Where processes take turns, their arrows are put in order. */
static void on_settled(void *user, int64_t ns)
{
    struct sonde_summary *s = user;

    (void)ns;
    snd_sort(s->flows, s->flow_count, sizeof *s->flows, compare_flows);
    for (uint32_t i = 0; i < s->flow_count; i++)
        match_link(s, s->flows[i].key);
    s->flow_count = 0;
}

static void on_begin(void *user, struct snd_assembly *assembly)
{
    struct sonde_summary *s = user;

    s->assembly = assembly;
}

static void add_sample(struct sonde_summary *s, const struct snd_lane *lane, int64_t ns,
                       const uint64_t *words)
{
    uint32_t                 thread = snd_subject_thread(s->trace, lane->thread, words);
    struct sonde_thread_row *row = &s->threads[thread];
    struct sampled          *seen = &s->sampled[thread];
    struct snd_sample_times  times = snd_sample_times(s->trace, lane->thread, ns, words);

    s->totals.samples++;
    if (row->samples == 0 || times.begin_ns < seen->first_ns)
        seen->first_ns = times.begin_ns;
    if (row->samples == 0 || times.end_ns > seen->last_ns)
        seen->last_ns = times.end_ns;
    row->samples += snd_sample_count(words);
}

static void on_other(void *user, struct snd_lane *lane, int64_t ns, const uint64_t *words)
{
    struct sonde_summary *s = user;

    switch (SND_EVENT_KIND(words[0])) {
    case SND_EV_MARK:
        s->totals.marks++;
        break;
    case SND_EV_COUNTER:
        s->totals.counters++;
        break;
    case SND_EV_SAMPLE:
    case SND_EV_SAMPLE_RUN:
        add_sample(s, lane, ns, words);
        break;
    case SND_EV_STEP:
        s->totals.steps++;
        s->out_of_memory |= !snd_steps_add(&s->steps, lane->process, words[1], ns);
        if (s->is_part && s->steps.count > SND_STEPS_MAX / SND_CREW_MAX)
            snd_assembly_undivide(s->assembly); /* not all are kept: the first that are met */
        break;
    case SND_EV_LINK:
        add_link(s, lane, ns, words);
        break;
    default:
        break; /* gaps are in the ledger */
    }
}

/*
 * Of a trace without events that lie apart, whose functions or allocations were counted in place: how long its longest recording took, from
 * the beginning of its file to its end.
 */
static int64_t find_longest_recording(const struct sonde_trace *trace)
{
    int64_t longest = 0;

    for (uint32_t i = 0; i < trace->process_count; i++) {
        const struct snd_process     *p = &trace->processes[i];
        const struct snd_file_header *h = &p->header;
        int64_t                       took = h->stopped_at > h->start.raw
                                                 ? snd_sub(snd_scale_ns(&p->scale, h->stopped_at),
                                                           snd_scale_ns(&p->scale, h->start.raw))
                                                 : 0;
        longest = took > longest ? took : longest;
    }
    return longest;
}

static void fill_threads(struct sonde_summary *s, const struct snd_assembly *assembly)
{
    int64_t first = INT64_MAX, last = INT64_MIN;

    for (uint32_t i = 0; i < s->trace->thread_count; i++) {
        const struct snd_lane   *lane = &assembly->lanes[i];
        struct sonde_thread_row *row = &s->threads[i];
        row->thread = i;
        row->events = lane->events;
        row->lost_events = s->trace->threads[i].shown.lost_events;
        if (lane->events == 0 && row->samples == 0)
            continue;
        struct sampled span = { lane->first_ns, lane->last_ns };
        if (lane->events == 0 || (row->samples > 0 && s->sampled[i].first_ns < span.first_ns))
            span.first_ns = s->sampled[i].first_ns;
        if (lane->events == 0 || (row->samples > 0 && s->sampled[i].last_ns > span.last_ns))
            span.last_ns = s->sampled[i].last_ns;
        row->span_ns = snd_sub(span.last_ns, span.first_ns);
        first = span.first_ns < first ? span.first_ns : first;
        last = span.last_ns > last ? span.last_ns : last;
    }
    s->totals.span_ns = last > first ? snd_sub(last, first) : find_longest_recording(s->trace);
}

static void on_end(void *user, const struct snd_assembly *assembly)
{
    struct sonde_summary *s = user;

    s->is_done = true;
    fill_threads(s, assembly);
    s->stats = assembly->stats;
    s->totals.events = s->stats.walk.events - s->stats.gaps;
    s->totals.ranges = s->stats.ranges;
    for (uint32_t i = 0; i < s->trace->process_count; i++)
        s->totals.size_bytes += s->trace->processes[i].source.size;
    snd_map_release(&s->held);
}

/* ------------------------------------------------------------------ ledger */

/* Names the operators without FLOPs that took longest, with their shares of all self time. */
static void list_uncounted(const struct sonde_summary *s, struct snd_ledger *ledger)
{
    uint32_t longest[UNCOUNTED_NAMED] = { 0 };
    size_t   used = 0;
    uint64_t count = 0;

    for (uint32_t i = 0; i < s->trace->names.count; i++) {
        if (s->uncounted[i] <= 0)
            continue;
        uint32_t name = i;
        for (size_t k = 0; k < UNCOUNTED_NAMED; k++) {
            bool free_place = k >= count;
            if (!free_place && s->uncounted[longest[k]] >= s->uncounted[name])
                continue;
            uint32_t pushed = longest[k];
            longest[k] = name;
            if (free_place)
                break;
            name = pushed;
        }
        count++;
    }
    ledger->counts[SND_LEDGER_uncounted_operators] = count;
    for (size_t k = 0; k < count && k < UNCOUNTED_NAMED && used < sizeof ledger->uncounted; k++) {
        const struct snd_text *name = &s->trace->names.items[longest[k]];
        double share = 100.0 * (double)s->uncounted[longest[k]] / (double)s->self_ns;
        int    length = snprintf(ledger->uncounted + used, sizeof ledger->uncounted - used,
                                 "%s%.48s (%.1f %% of self time)", k ? ", " : "", name->bytes, share);
        used += length > 0 ? (size_t)length : 0;
    }
}

static void fill_ledger(struct sonde_summary *s)
{
    struct snd_ledger ledger = { .os_error = 0 };

    snd_ledger_fill(&ledger, s->trace, &s->stats);
    ledger.counts[SND_LEDGER_half_links] = s->links.count;
    ledger.counts[SND_LEDGER_unmatched_frees] = s->unmatched;
    ledger.counts[SND_LEDGER_compiled_modules] = s->compiled;
    if (s->has_shapes && s->self_ns > 0)
        list_uncounted(s, &ledger);
    s->ledger_count = snd_ledger_list(&ledger, s->ledger);
}

/* ---------------------------------------------------------------- the whole */

enum sonde_status snd_summary_begin(struct sonde_trace *trace, struct sonde_summary **out,
                                    struct sonde_error *err)
{
    *out = trace->summary;
    if (trace->summary) {
        trace->summary->loans++;
        return SONDE_OK;
    }
    struct sonde_summary *s = calloc(1, sizeof *s);
    if (!s)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the summary");
    s->trace = trace;
    s->consumer = (struct snd_consumer){ .user = s,
                                         .flops = SONDE_FLOPS_FULL,
                                         .begin = on_begin,
                                         .settled = on_settled,
                                         .close = on_close,
                                         .memory = on_memory,
                                         .other = on_other,
                                         .kind = on_kind,
                                         .leaf = on_leaf,
                                         .end = on_end,
                                         .division = &snd_summary_division };
    if (!snd_summary_begin_walk(s)) {
        sonde_summary_free(s);
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the summary");
    }
    snd_wait(trace, &s->consumer);
    *out = s;
    return SONDE_OK;
}

enum sonde_status snd_summary_count_steps(struct sonde_summary *s, struct sonde_error *err)
{
    enum sonde_status status = s->has_counted ? SONDE_OK
                                              : snd_steps_count(&s->steps, s->trace, err);

    s->has_counted = status == SONDE_OK;
    return status;
}

enum sonde_status snd_summary_finish(struct sonde_summary *s, bool steps, struct sonde_error *err)
{
    if (s == s->trace->summary)
        return SONDE_OK;
    enum sonde_status status = snd_wait_walk(s->trace, s->is_done, err);

    if (status == SONDE_OK && (s->out_of_memory || !snd_steps_measure(&s->steps, s->trace)))
        status = snd_fail(err, SONDE_E_NOMEM, "out of memory for the summary");
    if (status == SONDE_OK && steps)
        status = snd_summary_count_steps(s, err);
    if (status == SONDE_OK)
        fill_ledger(s);
    return status;
}

enum sonde_status sonde_summary_new(struct sonde_trace *trace, struct sonde_summary **out,
                                    struct sonde_error *err)
{
    enum sonde_status status = snd_summary_begin(trace, out, err);

    if (status == SONDE_OK)
        status = snd_summary_finish(*out, true, err);
    if (status != SONDE_OK) {
        sonde_summary_free(*out);
        *out = NULL;
    }
    return status;
}

void snd_summary_share(struct sonde_summary *summary)
{
    summary->trace->summary = summary;
}

void sonde_summary_free(struct sonde_summary *s)
{
    if (!s)
        return;
    if (s->loans > 0) {
        s->loans--;
        return;
    }
    if (s->trace->summary == s)
        s->trace->summary = NULL;
    snd_wait_end(s->trace, &s->consumer);
    snd_summary_end_walk(s);
    free(s);
}

const struct sonde_summary_totals *sonde_summary_totals(const struct sonde_summary *summary)
{
    return &summary->totals;
}

size_t sonde_summary_thread_count(const struct sonde_summary *summary)
{
    return summary->trace->thread_count;
}

const struct sonde_thread_row *sonde_summary_thread(const struct sonde_summary *summary, size_t i)
{
    return i < summary->trace->thread_count ? &summary->threads[i] : NULL;
}

struct snd_steps *snd_summary_steps(struct sonde_summary *summary)
{
    return &summary->steps;
}

size_t sonde_summary_step_count(const struct sonde_summary *summary)
{
    return summary->steps.count;
}

const struct sonde_step_row *sonde_summary_step(const struct sonde_summary *summary, size_t i)
{
    return i < summary->steps.count ? &summary->steps.rows[i] : NULL;
}

size_t sonde_summary_ledger_count(const struct sonde_summary *summary)
{
    return summary->ledger_count;
}

const struct sonde_ledger_item *sonde_summary_ledger(const struct sonde_summary *summary, size_t i)
{
    return i < summary->ledger_count ? &summary->ledger[i] : NULL;
}
