/* SPDX-License-Identifier: Apache-2.0 */
#include "model/summary/ledger.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/count_of.h"
#include "model/torch_stacks.h"
#include "read/said/trace_facts.h"
#include "read/said/trace_metadata.h"

/* What is counted in place, by samplers of stacks and by probes. */
static void fill_tallies(struct snd_ledger *l, const struct snd_process *p)
{
    static const struct {
        uint32_t            tally, word;
        enum snd_ledger_key count;
    } said[] = {
        { SND_TALLY_ARGUMENTS, SND_ARGUMENTS_DROPPED, SND_LEDGER_dropped_arguments },
        { SND_TALLY_SAMPLER, SND_SAMPLER_MISSED, SND_LEDGER_missed_samples },
        { SND_TALLY_SAMPLER, SND_SAMPLER_TORN, SND_LEDGER_torn_samples },
        { SND_TALLY_SAMPLER, SND_SAMPLER_UNREAD, SND_LEDGER_unread_samples },
        { SND_TALLY_SAMPLER, SND_SAMPLER_UNMATCHED, SND_LEDGER_native_unmatched },
        { SND_TALLY_SAMPLER_GAPS, SND_SAMPLER_GAPS_UNLISTED, SND_LEDGER_unlisted_rounds },
        { SND_TALLY_SAMPLER_GAPS, SND_SAMPLER_GAPS_NO_MEMORY, SND_LEDGER_no_memory_samples },
        { SND_TALLY_NATIVE, SND_NATIVE_LOST, SND_LEDGER_lost_samples },
        { SND_TALLY_NATIVE, SND_NATIVE_CUT, SND_LEDGER_cut_stacks },
        { SND_TALLY_NATIVE, SND_NATIVE_BROKEN, SND_LEDGER_broken_stacks },
        { SND_TALLY_NATIVE, SND_NATIVE_USER_ONLY, SND_LEDGER_user_only },
        { SND_TALLY_NATIVE, SND_NATIVE_OTHER_RIGHTS, SND_LEDGER_other_rights },
        { SND_TALLY_NATIVE_RESTS, SND_NATIVE_RESTS_UNSEEN, SND_LEDGER_unseen_threads },
        { SND_TALLY_NATIVE_WAITS, SND_NATIVE_WAITS_ABSENT, SND_LEDGER_no_off_cpu },
        { SND_TALLY_GPU, SND_GPU_DROPPED, SND_LEDGER_dropped_gpu_records },
        { SND_TALLY_GPU, SND_GPU_UNKNOWN, SND_LEDGER_unknown_gpu_records },
        { SND_TALLY_GPU, SND_GPU_EARLY, SND_LEDGER_early_gpu_work },
        { SND_TALLY_GPU, SND_GPU_UNASKED, SND_LEDGER_unasked_gpu_work },
        { SND_TALLY_COUNTERS_READ, SND_COUNTERS_READ_ABSENT, SND_LEDGER_absent_counters },
        { SND_TALLY_COUNTERS_READ, SND_COUNTERS_READ_SCALED, SND_LEDGER_scaled_counters },
        { SND_TALLY_IMPORT, SND_IMPORT_LOST, SND_LEDGER_unread_events },
        { SND_TALLY_IMPORT, SND_IMPORT_REPAIRED, SND_LEDGER_repaired_events },
        { SND_TALLY_IMPORT, SND_IMPORT_UNMAPPED, SND_LEDGER_unmapped_events },
        { SND_TALLY_IMPORT, SND_IMPORT_DERIVED, SND_LEDGER_derived_events },
        { SND_TALLY_IMPORT, SND_IMPORT_ROUNDED, SND_LEDGER_rounded_times },
        { SND_TALLY_IMPORT, SND_IMPORT_DROPPED, SND_LEDGER_unkept_arguments },
        { SND_TALLY_IMPORT, SND_IMPORT_CUT, SND_LEDGER_cut_text },
        { SND_TALLY_HEAP_PROCESS, SND_HEAP_PROCESS_UNSEEN, SND_LEDGER_unseen_heap_calls },
        { SND_TALLY_HEAP_PROCESS, SND_HEAP_PROCESS_UNKNOWN, SND_LEDGER_unknown_frees },
    };

    for (uint32_t i = 1; i < p->tables.tally_count; i++) {
        const struct snd_tally *t = &p->tables.tallies[i];
        for (size_t k = 0; k < SND_COUNT_OF(said); k++)
            if (t->head.kind == said[k].tally)
                l->counts[said[k].count] += t->words[said[k].word];
        if (t->head.kind == SND_TALLY_SAMPLER)
            l->rounds += t->words[SND_SAMPLER_ROUNDS];
        if (t->head.kind == SND_TALLY_NATIVE)
            l->native_samples += t->words[SND_NATIVE_SAMPLES];
        if (t->head.kind == SND_TALLY_GPU && t->words[SND_GPU_EARLY_NS] > l->early_ns)
            l->early_ns = t->words[SND_GPU_EARLY_NS];
    }
}

/* A process that was to record its GPUs and could not, or was to record less of them. */
static void fill_gpu(struct snd_ledger *l, const struct sonde_trace *trace, uint32_t process)
{
    const struct snd_fact *fact;

    l->counts[SND_LEDGER_unasked_gpu_calls] += snd_gpu_is_light(trace, process);
    for (uint32_t at = 0; (fact = snd_fact_next(trace, process, SND_FACT_OF_CUDA, &at));) {
        struct sonde_text why = snd_fact_text(fact, SND_FIELD_CUDA_ABSENT);
        if (why.length == 0)
            continue;
        l->counts[SND_LEDGER_no_gpu_work]++;
        snprintf(l->absent, sizeof l->absent, "%s", why.bytes);
    }
}

/* What probes say of themselves. */
static void fill_calls(struct snd_ledger *l, const struct sonde_trace *trace, uint32_t process)
{
    static const struct {
        enum snd_meta       meta;
        enum snd_ledger_key count;
    } said[] = {
        { SND_META_PYTHON_FUNCTIONS_UNBALANCED, SND_LEDGER_unseen_returns },
        { SND_META_PYTHON_FUNCTIONS_LOST, SND_LEDGER_lost_calls },
        { SND_META_TORCH_NAMES_ONLY, SND_LEDGER_names_only },
    };
    struct sonde_text value;

    if (snd_meta_find(trace, process, SND_META_PYTHON_FUNCTIONS_SWITCHED, &value)) {
        l->counts[SND_LEDGER_switched_calls]++;
        snprintf(l->switched, sizeof l->switched, "%s", value.bytes);
    }
    if (snd_meta_find(trace, process, SND_META_IMPORT_UNMAPPED, &value))
        snprintf(l->unmapped, sizeof l->unmapped, "%s", value.bytes);
    for (size_t i = 0; i < SND_COUNT_OF(said); i++)
        if (snd_meta_find(trace, process, said[i].meta, &value))
            l->counts[said[i].count] += strtoull(value.bytes, NULL, 10);
}

static_assert(SND_PYTHON_FRAMES_MAX == 1024, "what the ledger says of deep_stacks");

/* Whether a stack has this frame alone: one whose outer frames were left out begins with it. */
static bool is_left_out(const struct snd_process *p, const struct sonde_trace *trace, uint32_t i)
{
    static const char  text[] = SND_FRAMES_LEFT_OUT;
    struct sonde_frame frame;

    return p->tables.stacks[i].parent == 0 &&
           sonde_trace_frame(trace, (uint32_t)(p - trace->processes), p->tables.stacks[i].frame,
                             &frame) &&
           frame.function.length == sizeof text - 1 &&
           memcmp(frame.function.bytes, text, sizeof text - 1) == 0;
}

/* Of functions in C there may be more than frames. */
static bool is_c(const struct snd_process *p, const struct sonde_trace *trace, uint32_t i)
{
    struct sonde_frame frame;

    return sonde_trace_frame(trace, (uint32_t)(p - trace->processes), p->tables.stacks[i].frame,
                             &frame) &&
           snd_frame_is_c(&frame);
}

/* Whether a stack has all Python frames that are recorded of one, below SND_FRAMES_LEFT_OUT. */
static bool is_deep(const struct sonde_trace *trace, const struct snd_process *p, uint32_t i)
{
    uint32_t depth = 0;

    if (is_c(p, trace, i)) /* the stack without it is one */
        return false;
    for (; p->tables.stacks[i].parent != 0 && depth <= SND_PYTHON_FRAMES_MAX;
         i = p->tables.stacks[i].parent)
        depth += !is_c(p, trace, i);
    return depth == SND_PYTHON_FRAMES_MAX && is_left_out(p, trace, i);
}

static uint64_t count_deep(const struct sonde_trace *trace, const struct snd_process *p)
{
    uint64_t deep = 0;
    bool     has_any = false;

    for (uint32_t i = 1; i < p->tables.stack_count && !has_any; i++)
        has_any = is_left_out(p, trace, i);
    for (uint32_t i = 1; i < p->tables.stack_count && has_any; i++)
        deep += is_deep(trace, p, i);
    return deep;
}

/* Whether another process of the trace started it. */
static bool is_child(const struct sonde_trace *trace, const struct snd_process *p)
{
    for (uint32_t i = 0; i < trace->process_count; i++)
        if (trace->processes[i].shown.pid == p->header.parent_pid && &trace->processes[i] != p)
            return true;
    return false;
}

static void fill_process(struct snd_ledger *l, const struct snd_process *p)
{
    const struct snd_file_header *h = &p->header;

    l->counts[SND_LEDGER_lost_events] += h->lost_events;
    l->counts[SND_LEDGER_refused_events] += h->refused_events;
    l->counts[SND_LEDGER_lost_calls] += h->lost_calls[SND_CALLS_CALLS];
    l->counts[SND_LEDGER_lost_children] += h->lost_children;
    if (h->lost_children > 0)
        l->child_error = (int)(h->lost_children_why & 0xffff);
    l->counts[SND_LEDGER_cut_files] += h->cut_files != 0;
    l->counts[SND_LEDGER_lost_names] += h->lost_names;
    l->counts[SND_LEDGER_cut_names] += h->cut_names;
    l->counts[SND_LEDGER_recycled_chunks] += h->recycled_chunks;
    l->counts[SND_LEDGER_recycled_events] += h->recycled_events;
    l->counts[SND_LEDGER_failed_reserves] += h->failed_reserves;
    if (h->failed_reserves > 0)
        l->os_error = (int)(h->last_os_error & 0xffff);
    /* In keep-last mode the limit is expected; the count of recycled chunks reports it. */
    l->counts[SND_LEDGER_limit_reached] += (h->flags & SND_FILE_LIMIT) &&
                                           !(h->flags & SND_FILE_KEEP_LAST);
    l->counts[SND_LEDGER_not_closed] += !p->shown.closed;
    l->counts[SND_LEDGER_missing_bytes] += p->damage.missing_bytes;
    l->counts[SND_LEDGER_damaged_header] += p->damage.header;
    l->counts[SND_LEDGER_unknown_clock] += p->damage.clock;
    l->counts[SND_LEDGER_damaged_chunks] += p->damage.chunks;
    l->counts[SND_LEDGER_skipped_bytes] += p->damage.skipped_bytes;
    l->counts[SND_LEDGER_unknown_chunks] += p->damage.unknown_chunks;
    l->counts[SND_LEDGER_missing_ids] += p->damage.bad_ids;
    fill_tallies(l, p);
}

void snd_ledger_fill(struct snd_ledger *l, const struct sonde_trace *trace,
                     const struct snd_assembly_stats *stats)
{
    for (uint32_t i = 0; i < trace->process_count; i++) {
        fill_process(l, &trace->processes[i]);
        fill_calls(l, trace, i);
        fill_gpu(l, trace, i);
        l->counts[SND_LEDGER_deep_stacks] += count_deep(trace, &trace->processes[i]);
        l->unclosed_roots += !trace->processes[i].shown.closed &&
                             !is_child(trace, &trace->processes[i]);
    }
    for (uint32_t i = 0; i < trace->thread_count; i++)
        l->counts[SND_LEDGER_lost_events] += trace->threads[i].shown.lost_events;
    l->counts[SND_LEDGER_refused_files] += trace->refused;
    l->counts[SND_LEDGER_unfinished_ranges] += stats->unfinished;
    l->counts[SND_LEDGER_ends_without_begin] += stats->ends_without_begin;
    l->counts[SND_LEDGER_too_deep] += stats->too_deep;
    l->counts[SND_LEDGER_missing_ids] += stats->missing_names + stats->walk.lost_threads;
    l->counts[SND_LEDGER_missing_events] += stats->walk.missing_events;
    l->counts[SND_LEDGER_warmup_events] += stats->walk.warmup_events;
    l->counts[SND_LEDGER_unknown_events] += stats->walk.unknown_events;
    l->counts[SND_LEDGER_damaged_chunks] += stats->walk.damaged_chunks;
    l->counts[SND_LEDGER_clock_backwards] += stats->walk.clock_backwards;
}

/*
 * What a healthy run has, too: workers that multiprocessing ends, stacks of threads that begin and
 * end, a few rounds that a busy machine took; and what was asked for.
 */
static bool is_note(const struct snd_ledger *l, size_t key)
{
    switch (key) {
    case SND_LEDGER_not_closed:
        return l->unclosed_roots == 0 && l->counts[SND_LEDGER_unfinished_ranges] == 0;
    case SND_LEDGER_missed_samples:
        return l->counts[key] <= l->rounds / 10;
    case SND_LEDGER_torn_samples:
    case SND_LEDGER_unread_samples:
    case SND_LEDGER_unlisted_rounds:
        return l->counts[key] <= l->rounds / 20;
    case SND_LEDGER_cut_stacks:
    case SND_LEDGER_broken_stacks:
        return l->counts[key] <= l->native_samples / 20;
    case SND_LEDGER_scaled_counters:
    case SND_LEDGER_user_only:
    case SND_LEDGER_warmup_events:
    case SND_LEDGER_unmatched_frees:
    case SND_LEDGER_unasked_gpu_work:
    case SND_LEDGER_unasked_gpu_calls:
    case SND_LEDGER_derived_events:
    case SND_LEDGER_unkept_arguments:
        return true;
    default:
        return false;
    }
}

#define WHY_MAX 192

/* Children that end so are multiprocessing's workers, or a server's. */
static const char unclosed_children[] =
    "the process ended by os._exit, exec or a signal, as workers of multiprocessing do, or still "
    "runs; all "
    "that was recorded is here, but for the last tenth of a second of samples";

/* What to say after the count: `advice`, or what this trace knows better. */
static const char *choose_advice(const struct snd_ledger *l, size_t key, const char *advice,
                                 char why[WHY_MAX])
{
    switch (key) {
    case SND_LEDGER_failed_reserves:
        snprintf(why, WHY_MAX, "%.64s; free disk space or quota, or record elsewhere",
                 strerror(l->os_error));
        return why;
    case SND_LEDGER_lost_children:
        snprintf(why, WHY_MAX,
                 "%.64s; nothing of them is here; record to a folder that they can write to",
                 strerror(l->child_error));
        return why;
    case SND_LEDGER_early_gpu_work:
        snprintf(why, WHY_MAX,
                 "the clocks of GPU and host differ by %" PRIu64 " ns at most; delays and gaps are "
                 "uncertain by that",
                 l->early_ns);
        return why;
    case SND_LEDGER_uncounted_operators:
        return l->uncounted;
    case SND_LEDGER_switched_calls:
        return l->switched;
    case SND_LEDGER_unmapped_events:
        return l->unmapped;
    case SND_LEDGER_no_gpu_work:
        return l->absent;
    case SND_LEDGER_not_closed:
        return l->unclosed_roots == 0 ? unclosed_children : advice;
    default:
        return advice;
    }
}

#define SND_LEDGER(key, one, many, advice)                                           \
    static_assert(sizeof "18446744073709551615 " many                                \
                         ": " advice <= sizeof((struct sonde_ledger_item *)0)->text, \
                  #key ": too long for a ledger's text");
#include "model/summary/ledger.def"
#undef SND_LEDGER

size_t snd_ledger_list(const struct snd_ledger *l, struct sonde_ledger_item items[SND_LEDGER_COUNT])
{
    static const struct {
        const char *key, *one, *many, *advice;
    } texts[SND_LEDGER_COUNT] = {
#define SND_LEDGER(key, one, many, advice) { #key, one, many, advice },
#include "model/summary/ledger.def"
#undef SND_LEDGER
    };
    size_t n = 0;

    for (size_t i = 0; i < SND_LEDGER_COUNT; i++) {
        struct sonde_ledger_item *item = &items[n];
        char                      why[WHY_MAX];
        if (l->counts[i] == 0)
            continue;
        item->is_note = is_note(l, i);
        item->key = texts[i].key;
        item->count = l->counts[i];
        snprintf(item->text, sizeof item->text, "%" PRIu64 " %s: %s", l->counts[i],
                 l->counts[i] == 1 ? texts[i].one : texts[i].many,
                 choose_advice(l, i, texts[i].advice, why));
        n++;
    }
    return n;
}
