/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/network/layers.h - a profile of layers while it is built: what was said of them
 * (layers_facts.c; in older traces layers_text.c), and their samples (layers.c).
 *
 * Layer: model. Threads: as a trace.
 */
#ifndef SND_MODEL_NETWORK_LAYERS_H
#define SND_MODEL_NETWORK_LAYERS_H

#include "model/ranges/assembly.h"
#include "model/spread.h"
#include "read/said/trace_facts.h"
#include "sonde/layers.h"

#define SND_LAYERS_NONE UINT32_MAX
#define SND_LAYERS_MOST (1 << 20) /* the greatest number of a layer */

enum snd_layer_series {
    SND_SERIES_FORWARD,
    SND_SERIES_BACKWARD,
    SND_SERIES_COPY,
    SND_SERIES_DEVICE,
    SND_SERIES_DEVICE_BACKWARD,
    SND_SERIES_DEVICE_COPY,
    SND_SERIES
};

struct snd_samples {
    int64_t *ns;
    uint32_t count, room;
};

/* What a name of the trace stands for. */
struct snd_layer_meaning {
    uint32_t layer;  /* place; SND_LAYERS_NONE: not a layer's */
    uint8_t  series; /* enum snd_layer_series */
    bool     is_pass, is_model;
};

struct snd_layer_own {
    struct snd_samples series[SND_SERIES];
};

struct snd_layer_pair {
    struct sonde_text key, value;
};

struct sonde_layers {
    struct sonde_trace       *trace;
    uint32_t                  process; /* the one that was profiled, or SND_LAYERS_NONE */
    struct sonde_layers_head  head;
    struct sonde_layer       *rows; /* by number */
    struct snd_layer_own     *owns; /* beside them */
    uint32_t                  count, row_room, own_room;
    struct snd_layer_pair    *environment;
    uint32_t                  environment_count, environment_room;
    struct snd_layer_meaning *meanings; /* by number in trace->names */
    struct snd_samples        passes, models;
    struct snd_arena          arena; /* texts and shapes */
    struct snd_assembly       assembly;
};

/*
 * Read the facts of the first process that has any into head and rows, and set `process` to it.
 * Errors: SONDE_E_NOMEM, SONDE_E_FORMAT.
 */
SND_CHECKED enum sonde_status snd_layers_read_facts(struct sonde_layers *layers,
                                                    struct sonde_error  *err);
SND_CHECKED enum sonde_status snd_layers_read_text(struct sonde_layers *layers,
                                                   struct sonde_error  *err);

/* A new row at the end, borrowed until the next one; NULL: memory is out. */
struct sonde_layer *snd_layers_add(struct sonde_layers *layers, uint32_t number);
/* When all are there: by number, and sums. */
void snd_layers_sort(struct sonde_layers *layers);
/* How many layers the model has, once the batch size is known. Errors: SONDE_E_FORMAT. */
SND_CHECKED enum sonde_status snd_layers_set_count(struct sonde_layers *layers, int64_t count,
                                                   struct sonde_error *err);

/* Place of the layer of that number, or SND_LAYERS_NONE. */
uint32_t snd_layers_find(const struct sonde_layers *layers, uint32_t number);

#endif
