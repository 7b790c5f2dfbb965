/* SPDX-License-Identifier: Apache-2.0 */
#include "read/walk/trace_walk.h"

#include <stdlib.h>

#include "format/fields.h"
#include "read/walk/deliver.h"

/* --------------------------------------------------------------- by thread */

/* The events in the cursor's window; false when the chunk is at its end or damaged. */
static bool walk_window(struct snd_walker *w, struct snd_place *place, struct snd_cursor *c)
{
    while (c->at < c->count) {
        const uint64_t *words = c->words + c->at;
        if (words[0] == 0) {
            c->damaged |= c->has_used;
            c->at = c->count; /* nothing was cut off */
            return false;
        }
        if (place->leaf_limit != 0 && snd_is_leaf(words, c->count - c->at)) {
            size_t taken = snd_deliver_leaves(w, place, words, c->count - c->at, UINT64_MAX,
                                              UINT64_MAX);
            c->at += taken;
            if (w->visitor->stop)
                return false;
            if (taken > 0)
                continue;
        }
        unsigned length = SND_KIND_WORDS(SND_EVENT_KIND(words[0]));
        if (length > c->count - c->at)
            return true;
        if (!snd_deliver(w, place, words)) {
            c->damaged = true;
            return false;
        }
        c->at += length;
        if (w->visitor->stop)
            return false;
    }
    return true;
}

static void walk_chunk(struct snd_walker *w, struct snd_place *place, struct snd_cursor *c)
{
    while (walk_window(w, place, c)) {
        if (snd_cursor_fill(c))
            continue;
        c->damaged |= c->at < c->count; /* the last event is cut off */
        break;
    }
    if (c->damaged && !w->visitor->stop) {
        w->stats.damaged_chunks++;
        snd_deliver_break(w, place);
    }
}

static enum sonde_status walk_by_thread(struct snd_walker *w, struct sonde_error *err)
{
    struct snd_cursor cursor = { 0 };
    struct snd_place  place;
    enum sonde_status status = SONDE_OK;

    for (uint32_t i = 0; i < w->trace->process_count; i++) {
        const struct snd_process *p = &w->trace->processes[i];
        for (uint32_t k = 0; k < p->lane_count && !w->visitor->stop; k++) {
            status = snd_cursor_open(&cursor, p, &p->lanes[k], SND_WINDOW_WALK, &w->codec, err);
            if (status != SONDE_OK)
                goto done;
            snd_place_start(w, &place, p, &p->lanes[k]);
            walk_chunk(w, &place, &cursor);
        }
    }
done:
    snd_cursor_release(&cursor);
    return status;
}

/* Of files that say how many events they were closed with. */
static void count_missing(struct snd_walker *w)
{
    for (uint32_t i = 0; i < w->trace->process_count; i++) {
        const struct snd_process *p = &w->trace->processes[i];
        if (p->shown.closed && !p->damage.header && p->header.closed_events > w->seen[i])
            w->stats.missing_events += p->header.closed_events - w->seen[i];
    }
}

enum sonde_status snd_walk(struct sonde_trace *trace, enum sonde_order order,
                           struct snd_visitor *visitor, struct snd_walk_stats *stats,
                           struct sonde_error *err)
{
    struct snd_walker w = { .trace = trace, .visitor = visitor };

    w.threads = calloc((size_t)trace->thread_count + 1, sizeof *w.threads);
    w.seen = calloc((size_t)trace->process_count + 1, sizeof *w.seen);
    if (!w.threads || !w.seen) {
        free(w.threads);
        free(w.seen);
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the threads of the trace");
    }
    enum sonde_status status = order == SONDE_BY_TIME ? snd_walk_merged(&w, err)
                                                      : walk_by_thread(&w, err);
    if (status == SONDE_OK && !visitor->stop) {
        count_missing(&w);
        trace->walks++;
    }
    if (stats)
        *stats = w.stats;
    snd_codec_free(w.codec);
    free(w.threads);
    free(w.seen);
    return status;
}

uint32_t snd_subject_thread(const struct sonde_trace *trace, uint32_t lane, const uint64_t *words)
{
    const struct snd_process *p = &trace->processes[trace->threads[lane].shown.process];
    uint8_t                   kind = SND_EVENT_KIND(words[0]);
    uint32_t                  id = snd_is_sample(kind)       ? SND_LOW(words[2])
                                   : kind == SND_EV_FUNCTION ? SND_HIGH(words[1])
                                                             : 0;

    return id == 0 || id >= p->tables.thread_count ? lane : p->first_thread + id - 1;
}

struct snd_sample_times snd_sample_times(const struct sonde_trace *trace, uint32_t lane, int64_t ns,
                                         const uint64_t *words)
{
    const struct snd_process *p = &trace->processes[trace->threads[lane].shown.process];

    if (SND_EVENT_KIND(words[0]) == SND_EV_SAMPLE)
        return (struct snd_sample_times){ snd_sub(ns, SND_HIGH(words[2])), ns, ns };
    uint64_t written = snd_time_extend(SND_EVENT_TIME56(words[0]), p->header.start.raw);
    uint64_t end = written - (words[3] & SND_TIME_MASK);
    return (struct snd_sample_times){
        .begin_ns = snd_time_clamp(snd_scale_ns(&p->scale, end - SND_HIGH(words[2]))),
        .end_ns = snd_time_clamp(snd_scale_ns(&p->scale, end)),
        .read_ns = snd_time_clamp(snd_scale_ns(&p->scale, written - (words[4] & SND_TIME_MASK))),
    };
}
