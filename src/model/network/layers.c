/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/network/layers.c - what each layer of a model cost.
 *
 * The trace has the facts LAYERS and LAYER, and a range for each run
 * of a layer: "layer N" and a word for what it is. Where CUDA events were the clock, a counter
 * "layer N device_ns" tells the time, and the range only how long the host took.
 */
#include "model/network/layers.h"

#include <stdlib.h>
#include <string.h>

#include "base/count_of.h"
#include "format/fields.h"
#include "format/known.h"

#define SAMPLES_MAX (1u << 24) /* of one kind; later ones do not count */

static enum sonde_status no_memory(struct sonde_error *err)
{
    return snd_fail(err, SONDE_E_NOMEM, "out of memory for the layers");
}

/* ------------------------------------------------------------------- samples */

/* "layer 12" and what follows it; 0: it is no layer's name. */
static uint32_t layer_number(struct sonde_text name, struct sonde_text *rest)
{
    const char *prefix = snd_known_name(SND_KNOWN_LAYER);
    size_t      length = strlen(prefix);
    char       *end;

    if (name.length <= length || memcmp(name.bytes, prefix, length) != 0 ||
        name.bytes[length] < '0' || name.bytes[length] > '9')
        return 0;
    unsigned long long number = strtoull(name.bytes + length, &end, 10);
    if (number < 1 || number > SND_LAYERS_MOST || (*end != '\0' && *end != ' '))
        return 0;
    *rest = (struct sonde_text){ end, (size_t)(name.bytes + name.length - end) };
    return (uint32_t)number;
}

static struct snd_layer_meaning judge(const struct sonde_layers *l, struct sonde_text name)
{
    static const enum snd_known words[SND_SERIES] = {
        [SND_SERIES_BACKWARD] = SND_KNOWN_LAYER_BACKWARD,
        [SND_SERIES_COPY] = SND_KNOWN_LAYER_COPY,
        [SND_SERIES_DEVICE] = SND_KNOWN_LAYER_DEVICE,
        [SND_SERIES_DEVICE_BACKWARD] = SND_KNOWN_LAYER_DEVICE_BACKWARD,
        [SND_SERIES_DEVICE_COPY] = SND_KNOWN_LAYER_DEVICE_COPY,
    };
    struct snd_layer_meaning m = { SND_LAYERS_NONE, SND_SERIES,
                                   snd_text_is(name, snd_known_name(SND_KNOWN_LAYERS_PASS)),
                                   snd_text_is(name, snd_known_name(SND_KNOWN_LAYERS_MODEL)) };
    struct sonde_text        rest;
    uint32_t                 number = layer_number(name, &rest);

    for (uint8_t i = 0; number != 0 && i < SND_SERIES; i++) {
        if (snd_text_is(rest, i == SND_SERIES_FORWARD ? "" : snd_known_name(words[i]))) {
            m.layer = snd_layers_find(l, number);
            m.series = i;
        }
    }
    return m;
}

static void add_sample(struct sonde_layers *l, struct snd_samples *to, int64_t ns)
{
    if (to->count >= SAMPLES_MAX)
        return;
    if (!snd_grow(&to->ns, &to->room, to->count, sizeof *to->ns)) {
        snd_assembly_stop(&l->assembly);
        return;
    }
    to->ns[to->count++] = ns;
}

static void on_close(void *user, struct snd_lane *lane, struct snd_open_range *range,
                     struct snd_open_range *parent)
{
    struct sonde_layers            *l = user;
    const struct snd_range         *r = &range->range;
    const struct snd_layer_meaning *m = &l->meanings[r->name];

    (void)parent;
    if (lane->process != l->process || r->unfinished)
        return;
    if (m->is_pass)
        add_sample(l, &l->passes, r->total_ns);
    else if (m->is_model)
        add_sample(l, &l->models, r->total_ns);
    else if (m->layer != SND_LAYERS_NONE && m->series < SND_SERIES_DEVICE)
        add_sample(l, &l->owns[m->layer].series[m->series], r->total_ns);
}

static void on_other(void *user, struct snd_lane *lane, int64_t ns, const uint64_t *words)
{
    struct sonde_layers *l = user;
    double               value;

    (void)ns;
    if (SND_EVENT_KIND(words[0]) != SND_EV_COUNTER || lane->process != l->process)
        return;
    uint32_t name = snd_name_of(lane->from, SND_LOW(words[1]));
    if (name == UINT32_MAX)
        return;
    const struct snd_layer_meaning *m = &l->meanings[name];
    memcpy(&value, &words[2], sizeof value);
    if (m->layer != SND_LAYERS_NONE && m->series >= SND_SERIES_DEVICE && value >= 0 && value < 1e18)
        add_sample(l, &l->owns[m->layer].series[m->series], (int64_t)value);
}

/* ------------------------------------------------------------------- the whole */

/* The device's own times if recorded, otherwise the host's. */
static struct snd_samples *choose(struct snd_layer_own *own, enum snd_layer_series device,
                                  enum snd_layer_series host)
{
    return &own->series[own->series[device].count > 0 ? device : host];
}

static void spread_times(struct sonde_layers *l)
{
    for (uint32_t i = 0; i < l->count; i++) {
        struct sonde_spread  *time = l->rows[i].time;
        struct snd_layer_own *own = &l->owns[i];
        bool                  device = own->series[SND_SERIES_DEVICE].count > 0;
        const struct {
            enum sonde_layer_time time;
            struct snd_samples   *from;
        } table[] = {
            { SONDE_LAYER_FORWARD, choose(own, SND_SERIES_DEVICE, SND_SERIES_FORWARD) },
            { SONDE_LAYER_BACKWARD, choose(own, SND_SERIES_DEVICE_BACKWARD, SND_SERIES_BACKWARD) },
            { SONDE_LAYER_COPY, choose(own, SND_SERIES_DEVICE_COPY, SND_SERIES_COPY) },
            { SONDE_LAYER_HOST, device ? &own->series[SND_SERIES_FORWARD] : NULL },
        };
        for (size_t k = 0; k < SND_COUNT_OF(table); k++)
            if (table[k].from)
                snd_spread(table[k].from->ns, table[k].from->count, &time[table[k].time]);
    }
    snd_spread(l->passes.ns, l->passes.count, &l->head.pass);
    snd_spread(l->models.ns, l->models.count, &l->head.model);
    /* A layer that was not run has the times of the earlier one that is like it. */
    for (uint32_t i = 0; i < l->count; i++) {
        uint32_t like = l->rows[i].same_as ? snd_layers_find(l, l->rows[i].same_as)
                                           : SND_LAYERS_NONE;
        if (like == SND_LAYERS_NONE || l->rows[i].time[SONDE_LAYER_FORWARD].count > 0)
            l->rows[i].same_as = 0;
        else
            memcpy(l->rows[i].time, l->rows[like].time, sizeof l->rows[i].time);
    }
}

static enum sonde_status build(struct sonde_layers *l, struct sonde_error *err)
{
    const struct snd_consumer consumer = { .user = l,
                                           .flops = SONDE_FLOPS_NONE,
                                           .any_flops = true,
                                           .close = on_close,
                                           .other = on_other };
    enum sonde_status         status = snd_layers_read_facts(l, err);

    if (status == SONDE_OK && l->process == SND_LAYERS_NONE)
        status = snd_layers_read_text(l, err);
    snd_layers_sort(l);
    if (status != SONDE_OK || l->count == 0)
        return status;
    l->meanings = calloc((size_t)l->trace->names.count + 1, sizeof *l->meanings);
    if (!l->meanings)
        return no_memory(err);
    for (uint32_t i = 0; i < l->trace->names.count; i++)
        l->meanings[i] = judge(l, (struct sonde_text){ l->trace->names.items[i].bytes,
                                                       l->trace->names.items[i].length });
    status = snd_assemble(&l->assembly, l->trace, SONDE_BY_TIME, &consumer, 1, err);
    bool failed = l->assembly.out_of_memory;
    snd_assembly_release(&l->assembly);
    if (status != SONDE_OK)
        return status;
    if (failed)
        return no_memory(err);
    spread_times(l);
    return SONDE_OK;
}

enum sonde_status sonde_layers_new(struct sonde_trace *trace, struct sonde_layers **out,
                                   struct sonde_error *err)
{
    *out = NULL;
    struct sonde_layers *l = calloc(1, sizeof *l);
    if (!l)
        return no_memory(err);
    l->trace = trace;
    l->head.model_name = l->head.dtype = l->head.device = (struct sonde_text){ "", 0 };
    enum sonde_status status = build(l, err);
    if (status == SONDE_OK)
        *out = l;
    else
        sonde_layers_free(l);
    return status;
}

void sonde_layers_free(struct sonde_layers *l)
{
    if (!l)
        return;
    for (uint32_t i = 0; i < l->count; i++)
        for (size_t k = 0; k < SND_SERIES; k++)
            free(l->owns[i].series[k].ns);
    free(l->passes.ns);
    free(l->models.ns);
    free(l->rows);
    free(l->owns);
    free(l->environment);
    free(l->meanings);
    snd_arena_release(&l->arena);
    free(l);
}

const struct sonde_layers_head *sonde_layers_head(const struct sonde_layers *l)
{
    return &l->head;
}

size_t sonde_layers_count(const struct sonde_layers *l)
{
    return l->count;
}

const struct sonde_layer *sonde_layers_row(const struct sonde_layers *l, size_t i)
{
    return i < l->count ? &l->rows[i] : NULL;
}

bool sonde_layers_environment(const struct sonde_layers *l, size_t n, struct sonde_text *key,
                              struct sonde_text *value)
{
    if (n >= l->environment_count)
        return false;
    *key = l->environment[n].key;
    *value = l->environment[n].value;
    return true;
}
