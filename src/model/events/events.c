/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/events/events.c - every range of a trace, as torch.profiler's events() lists them: the parts are
 * named in event_rows.h.
 */
#include <stdlib.h>
#include <string.h>

#include "model/events/event_rows.h"
#include "base/struct_size.h"
#include "read/said/trace_facts.h"

static enum sonde_status build(struct sonde_events *e, struct sonde_error *err)
{
    enum sonde_status status = snd_events_walk(e, err);

    if (status == SONDE_OK && !(snd_events_fold(e) && snd_events_link_functions(e) &&
                                snd_events_sort(e) && snd_events_claim_memory(e)))
        status = snd_fail(err, SONDE_E_NOMEM, "out of memory for %u events", e->rows.count);
    free(e->recent);
    e->recent = NULL;
    e->shown.count = e->rows.count;
    e->shown.uses_gpu = snd_gpus_are_recorded(e->trace);
    if (status == SONDE_OK && !e->options.on_demand)
        status = snd_events_fill(e, NULL, err);
    return status;
}

enum sonde_status sonde_events_new(struct sonde_trace                *trace,
                                   const struct sonde_events_options *options,
                                   struct sonde_events **out, struct sonde_error *err)
{
    struct sonde_events_options used = SONDE_EVENTS_OPTIONS_INIT;

    *out = NULL;
    enum sonde_status status = snd_struct_take(options, &used, sizeof used,
                                               "SONDE_EVENTS_OPTIONS_INIT", err);
    if (status != SONDE_OK)
        return status;
    struct sonde_events *e = calloc(1, sizeof *e);
    if (!e)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the events");
    e->trace = trace;
    e->options = used;
    snd_events_number_texts(e);
    status = build(e, err);
    if (status == SONDE_OK)
        *out = e;
    else
        sonde_events_free(e);
    return status;
}

void sonde_events_free(struct sonde_events *e)
{
    if (!e)
        return;
    snd_events_release_columns(e);
    snd_rows_release(&e->rows);
    snd_texts_release(&e->functions);
    free(e->torch_threads);
    free(e->kinds);
    free(e->extras);
    free(e->calls);
    free(e->gpus);
    free(e);
}

enum sonde_status sonde_events_fill(struct sonde_events *events, const char *column,
                                    struct sonde_error *err)
{
    return snd_events_fill(events, column, err);
}

const struct sonde_events_columns *sonde_events_columns(const struct sonde_events *events)
{
    return &events->shown;
}

size_t sonde_events_text_count(const struct sonde_events *e)
{
    return (size_t)e->trace->names.count + SND_OWN_COUNT + e->functions.count + 1;
}

struct sonde_text sonde_events_text(const struct sonde_events *e, uint32_t text)
{
    if (text == 0 || text >= sonde_events_text_count(e))
        return (struct sonde_text){ "", 0 };
    return snd_events_name(e, text - 1);
}
