/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read/said/trace_facts.h - what a process says of a model, its layers and modules: format/facts.def.
 *
 *     uint32_t at = 0;
 *     const struct snd_fact *batch;
 *     while ((batch = snd_fact_next(trace, process, SND_FACT_OF_BATCH, &at)))
 *         size = snd_fact_number(batch, SND_FIELD_BATCH_SIZE, 0);
 *
 * What older traces say as JSON in their metadata is read here as the same facts, so that nobody
 * else knows of it. Layers were lines of text: model/network/layers_text.c.
 *
 * Layer: read. Threads: as a trace.
 */
#ifndef SND_READ_SAID_TRACE_FACTS_H
#define SND_READ_SAID_TRACE_FACTS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/text/compare.h"
#include "format/layout.h"
#include "sonde/trace.h"

struct snd_fact_value {
    uint16_t          field, type; /* enum snd_fact_type */
    uint32_t          shape;       /* TENSOR: id of a tensor list; 0 none */
    int64_t           number;      /* NUMBER; TENSOR: bytes */
    double            real;        /* REAL */
    struct sonde_text text;        /* TEXT; a NUL is after it */
};

struct snd_fact {
    uint32_t               kind; /* enum snd_fact_kind */
    uint32_t               number;
    struct sonde_text      subject;
    bool                   is_from_text;
    struct snd_fact_value *values; /* owned by the trace */
    uint32_t               count, room;
};

/* The next fact of a kind (0: of any) from `*at` on; *at is then after it. NULL past the last. */
const struct snd_fact *snd_fact_next(const struct sonde_trace *trace, uint32_t process,
                                     uint32_t kind, uint32_t *at);

/* Whether what a GPU does was recorded in any process, even if it did nothing: torch's use_device is "cuda" then. */
bool snd_gpus_are_recorded(const struct sonde_trace *trace);

/* Whether this process, or any, recorded its GPUs without CUDA's calls, as it was asked to (--gpu=light). */
bool snd_gpu_is_light(const struct sonde_trace *trace, uint32_t process);
bool snd_gpus_are_light(const struct sonde_trace *trace);

/* The last value of a field; `otherwise`, or an empty text, if the fact does not have it. */
int64_t           snd_fact_number(const struct snd_fact *fact, unsigned field, int64_t otherwise);
double            snd_fact_real(const struct snd_fact *fact, unsigned field, double otherwise);
struct sonde_text snd_fact_text(const struct snd_fact *fact, unsigned field);

static inline bool snd_text_is(struct sonde_text text, const char *word)
{
    return snd_equals_at(text.bytes, text.length, word);
}

/* What the list says of a kind and a field; NULL: it is of a later version. */
const char *snd_fact_word(uint32_t kind);
const char *snd_fact_field_word(uint32_t kind, unsigned field);

/* ---- while a trace is opened. False: memory is out. */

struct snd_process;
struct snd_tables;

void snd_facts_release(struct snd_tables *tables);

/* Facts of records, once all strings are known; then those of metadata. */
bool snd_facts_read(const struct sonde_trace *trace, struct snd_process *process);
bool snd_facts_read_text(struct sonde_trace *trace, uint32_t process);

#endif
