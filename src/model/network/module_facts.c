/* SPDX-License-Identifier: Apache-2.0 */
/* model/network/module_facts.c - what the trace says of modules in facts: parameters, shapes, times. */
#include <string.h>

#include "model/network/module_parts.h"
#include "read/said/trace_facts.h"

static void set_text(struct sonde_modules *m, const struct snd_fact *fact, unsigned field,
                     struct sonde_text *out)
{
    struct sonde_text text = snd_fact_text(fact, field);
    uint32_t          number;

    if (text.length == 0)
        return;
    if (snd_texts_add(&m->texts, text.bytes, text.length, &number))
        *out = (struct sonde_text){ m->texts.items[number].bytes, text.length };
    else
        m->assembly.out_of_memory = true;
}

/* Its own parameters, by the probe or by a benchmark. */
static void read_module(struct sonde_modules *m, uint32_t at, const struct snd_fact *fact)
{
    static_assert((int)SND_FIELD_MODULE_CLASS == (int)SND_FIELD_IO_CLASS &&
                      (int)SND_FIELD_MODULE_PARAMETERS == (int)SND_FIELD_IO_PARAMETERS &&
                      (int)SND_FIELD_MODULE_PARAMETER_BYTES == (int)SND_FIELD_IO_PARAMETER_BYTES,
                  "read alike");
    struct sonde_module *node = &m->nodes[at];
    int64_t              parameters = snd_fact_number(fact, SND_FIELD_MODULE_PARAMETERS, -1);
    int64_t              bytes = snd_fact_number(fact, SND_FIELD_MODULE_PARAMETER_BYTES, -1);

    if (node->kind.length == 0)
        set_text(m, fact, SND_FIELD_MODULE_CLASS, &node->kind);
    if (parameters >= 0)
        node->parameters = parameters; /* of a rank: the same in each process */
    if (bytes >= 0)
        node->parameter_bytes = bytes;
}

/* The mean of a field's times; -1 if there are none. */
static int64_t mean_of(const struct snd_fact *fact, unsigned field)
{
    double   sum = 0;
    uint32_t count = 0;

    for (uint32_t i = 0; i < fact->count; i++)
        if (fact->values[i].field == field) {
            sum += fact->values[i].real;
            count++;
        }
    return count > 0 && sum >= 0 && sum < 1e18 ? (int64_t)(sum / (double)count) : -1;
}

/* Of its first call; times on a GPU of each pass. */
static void read_shapes(struct sonde_modules *m, uint32_t at, const struct snd_fact *fact)
{
    struct sonde_module *node = &m->nodes[at];

    read_module(m, at, fact);
    set_text(m, fact, SND_FIELD_IO_IN, &node->input_shapes);
    set_text(m, fact, SND_FIELD_IO_OUT, &node->output_shapes);
    node->output_bytes = snd_fact_number(fact, SND_FIELD_IO_OUT_BYTES, -1);
    node->device_forward_ns = mean_of(fact, SND_FIELD_IO_DEVICE_NS);
}

/* All that the trace says of modules in facts of this kind, by their paths. */
static void read_notes(struct sonde_modules *m, uint32_t kind,
                       void (*read)(struct sonde_modules *m, uint32_t at,
                                    const struct snd_fact *fact))
{
    const struct snd_fact *fact;

    for (uint32_t p = 0; p < m->trace->process_count; p++)
        for (uint32_t n = 0; (fact = snd_fact_next(m->trace, p, kind, &n));) {
            uint32_t at = snd_module_find(m, fact->subject);
            if (at != SND_NO_MODULE)
                read(m, at, fact);
        }
}

static void note_device(struct sonde_modules *m, const struct snd_fact *model)
{
    struct sonde_text device = snd_fact_text(model, SND_FIELD_MODEL_DEVICE);
    bool              on_gpu = device.length >= 4 && memcmp(device.bytes, "cuda", 4) == 0;

    for (uint32_t i = 0; i < m->count && on_gpu; i++)
        m->nodes[i].on_device = true;
}

/* What a benchmark says of a module holds against what the probe found. */
void snd_modules_read_facts(struct sonde_modules *m)
{
    const struct snd_fact *fact;

    read_notes(m, SND_FACT_OF_MODULE, read_module);
    read_notes(m, SND_FACT_OF_IO, read_shapes);
    for (uint32_t p = 0; p < m->trace->process_count; p++)
        for (uint32_t at = 0; (fact = snd_fact_next(m->trace, p, SND_FACT_OF_MODEL, &at));)
            note_device(m, fact);
}
