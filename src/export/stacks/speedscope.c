/* SPDX-License-Identifier: Apache-2.0 */
/*
 * speedscope: a profile for each thread, for www.speedscope.app.
 *
 * Where the trace has samples, "sampled" profiles: stacks in the order in which they were found,
 * Python frames, open ranges and native frames (model/samples/mixed_stacks.h), each with the nanoseconds that it stands for. Otherwise "evented"
 * ones, of the ranges.
 *
 * The format wants all frames before the profiles, and a thread's stacks before their weights, so
 * samples are gathered first: sixteen bytes for each run of equal ones.
 */
#include "export/stacks/speedscope.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/buf.h"
#include "base/text/json.h"
#include "base/data/map.h"
#include "export/common/exporter.h"
#include "format/layout.h"
#include "model/samples/mixed_stacks.h"
#include "read/reader.h"
#include "snd_config.h"

struct sample {
    uint32_t stack, chain, weight_ns;
    uint32_t next; /* of the same thread, plus one; 0: none */
};

struct gathered {
    struct snd_speedscope common;
    struct sample        *samples;
    uint32_t              count, room;
    uint32_t             *first, *last; /* of each thread, plus one; 0: none */
    bool                  failed;
    struct snd_mixed      mixed;
};

/* ------------------------------------------------------------------- samples */

static bool on_sample(void *user, const struct sonde_event *event, uint32_t chain)
{
    struct gathered *g = user;

    if (!snd_grow(&g->samples, &g->room, g->count, sizeof *g->samples)) {
        g->failed = true;
        return false;
    }
    uint32_t at = g->count++;
    g->samples[at] = (struct sample){ event->sample.stack, chain,
                                      (uint32_t)event->sample.covered_ns, 0 };
    if (g->last[event->thread] != 0)
        g->samples[g->last[event->thread] - 1].next = at + 1;
    else
        g->first[event->thread] = at + 1;
    g->last[event->thread] = at + 1;
    return true;
}

/* The frames of a sample, innermost first. */
static size_t frames_of(const struct gathered *g, uint32_t thread, const struct sample *sample,
                        struct snd_mixed_frame *frames)
{
    size_t count = snd_mixed_frames(&g->mixed, g->common.trace->threads[thread].shown.process,
                                    sample->stack, sample->chain, frames, SND_MIXED_FRAMES_MAX);

    return count < SND_MIXED_FRAMES_MAX ? count : SND_MIXED_FRAMES_MAX;
}

static uint32_t number_of(struct gathered *g, const struct sonde_frame *frame)
{
    return snd_speedscope_frame(&g->common, frame->function, frame->file,
                                frame->first_line ? frame->first_line : frame->line);
}

/* Every frame that some sampled stack has; of each stack with its ranges once. */
static bool number_frames(struct gathered *g, struct snd_mixed_frame *frames)
{
    struct snd_map seen = { 0 };
    uint32_t       value;

    for (uint32_t thread = 0; thread < g->common.trace->thread_count; thread++)
        for (uint32_t i = g->first[thread]; i != 0; i = g->samples[i - 1].next) {
            const struct sample *sample = &g->samples[i - 1];
            struct snd_key key = { g->common.trace->threads[thread].shown.process, sample->stack,
                                   sample->chain };
            if (snd_map_get(&seen, key, &value))
                continue;
            g->common.failed |= !snd_map_put(&seen, key, 0);
            size_t count = frames_of(g, thread, sample, frames);
            for (size_t k = 0; k < count; k++)
                number_of(g, &frames[k].frame);
            if (g->common.failed)
                break;
        }
    snd_map_release(&seen);
    return !g->common.failed;
}

/* Outermost first. */
static void put_stack(struct gathered *g, struct snd_json *json, uint32_t thread,
                      const struct sample *sample, struct snd_mixed_frame *frames)
{
    size_t count = frames_of(g, thread, sample, frames);

    snd_json_array(json, NULL);
    while (count-- > 0)
        snd_json_uint(json, NULL, number_of(g, &frames[count].frame));
    snd_json_end(json);
}

static void put_thread(struct gathered *g, struct snd_json *json, uint32_t thread,
                       struct snd_mixed_frame *frames)
{
    int64_t total = 0;

    for (uint32_t i = g->first[thread]; i != 0; i = g->samples[i - 1].next)
        total += g->samples[i - 1].weight_ns;
    snd_speedscope_profile(&g->common, json, thread, "sampled", total);
    snd_json_array(json, "samples");
    for (uint32_t i = g->first[thread]; i != 0; i = g->samples[i - 1].next)
        put_stack(g, json, thread, &g->samples[i - 1], frames);
    snd_json_end(json);
    snd_json_array(json, "weights");
    for (uint32_t i = g->first[thread]; i != 0; i = g->samples[i - 1].next)
        snd_json_uint(json, NULL, g->samples[i - 1].weight_ns);
    snd_json_end(json);
    snd_json_end(json);
}

static enum sonde_status put_samples(struct gathered *g, struct snd_out *out,
                                     struct sonde_error *err)
{
    struct snd_json         json;
    struct snd_mixed_frame *frames = calloc(SND_MIXED_FRAMES_MAX, sizeof *frames);
    bool                    good = frames && number_frames(g, frames);

    if (good) {
        snd_json_init(&json, out);
        snd_json_break_at(&json, 2);
        snd_speedscope_begin(&g->common, &json);
        for (uint32_t i = 0; i < g->common.trace->thread_count; i++)
            if (g->first[i] != 0)
                put_thread(g, &json, i, frames);
        snd_json_end(&json);
        snd_json_end(&json);
    }
    free(frames);
    return good && !g->common.failed ? SONDE_OK
                                     : snd_fail(err, SONDE_E_NOMEM, "out of memory for the stacks");
}

SND_EXPORT_WRITE(snd_export_speedscope)
{
    struct gathered   g = { .common = { .trace = trace } };
    enum sonde_status st = SONDE_OK;

    (void)options;
    g.first = calloc((size_t)trace->thread_count + 1, sizeof *g.first);
    g.last = calloc((size_t)trace->thread_count + 1, sizeof *g.last);
    if (!g.first || !g.last)
        g.failed = true;
    else
        st = snd_mixed_walk(&g.mixed, trace, on_sample, &g, err);
    if (st == SONDE_OK && g.failed)
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for the samples");
    if (st == SONDE_OK && g.count > 0)
        st = put_samples(&g, out, err);
    else if (st == SONDE_OK)
        st = snd_speedscope_ranges(trace, out, err);
    snd_speedscope_release(&g.common);
    if (g.mixed.trace)
        snd_mixed_release(&g.mixed);
    free(g.samples);
    free(g.first);
    free(g.last);
    return st;
}
