/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde/layers.h - what each layer of a model cost, as `sonde layers` recorded it.
 *
 * A profile of layers is a trace with facts about the model and its layers and one range for
 * each run of a layer; docs/PIPELINES.md names them. Means, medians and sums are computed here,
 * from the samples in the trace.
 *
 * Threads: as a trace.
 */
#ifndef SONDE_LAYERS_H
#define SONDE_LAYERS_H

#include "sonde/trace.h"

SONDE_C_BEGIN_

/* A tensor that enters or leaves a layer. */
struct sonde_layer_tensor {
    struct sonde_text dtype; /* "torch.float32" */
    uint32_t          ndim;
    const int64_t    *dims;       /* without the batch dimension, where the tensor has one */
    int64_t           size_bytes; /* of the whole batch */
};

/* All 0 without samples. The deviation is the sample's (n - 1); percentiles are nearest ranks. */
/* With fewer samples the percentile is near the maximum: views do not show it. */
#define SONDE_P90_LEAST 10
#define SONDE_P99_LEAST 100

struct sonde_spread {
    uint64_t count;
    double   mean_ns, std_ns, median_ns;
    int64_t  min_ns, max_ns, p90_ns, p99_ns;
};

enum sonde_layer_time {
    SONDE_LAYER_FORWARD,  /* on a GPU: between two events on its stream */
    SONDE_LAYER_BACKWARD, /* likewise */
    SONDE_LAYER_COPY,     /* its inputs to the device and its outputs back */
    SONDE_LAYER_HOST,     /* on a GPU: until the layer's kernels were launched */
    SONDE_LAYER_TIMES
};

struct sonde_layer {
    uint32_t                         number;  /* from 1 */
    uint32_t                         same_as; /* the layer whose samples these are; 0: its own */
    struct sonde_text                name;
    const struct sonde_layer_tensor *in, *out;
    uint32_t                         in_count, out_count;
    int64_t parameter_count, parameter_bytes, buffer_bytes; /* shared: in the first user */
    int64_t rss_bytes;                                      /* -1: not measured */
    int64_t in_bytes, out_bytes;                            /* of the tensors that cross */
    struct sonde_spread time[SONDE_LAYER_TIMES];
};

struct sonde_layers_head {
    struct sonde_text   model_name, dtype, device;
    int64_t             batch_size;
    uint32_t            layers;        /* of the whole model; fewer may have been measured */
    bool                memory_is_rss; /* the user asked for RSS instead of weights */
    bool                paired;
    struct sonde_spread pass;  /* all layers in sequence, with the time between them */
    struct sonde_spread model; /* the whole model, where it was run for comparison */
};

struct sonde_layers; /* opaque */

/*
 * Owns:   the caller ends *out with sonde_layers_free(), before the trace is closed.
 * Errors: SONDE_E_NOMEM; SONDE_E_FORMAT when the description of the layers is invalid. A trace
 *         without a profile of layers gives one without layers.
 */
SONDE_API SONDE_CHECKED enum sonde_status
sonde_layers_new(struct sonde_trace *trace, struct sonde_layers **out, struct sonde_error *err);
SONDE_API void sonde_layers_free(struct sonde_layers *layers);

SONDE_API const struct sonde_layers_head *sonde_layers_head(const struct sonde_layers *layers);
/* Layers that the trace describes, by number; measured or not (time[..].count). */
SONDE_API size_t                    sonde_layers_count(const struct sonde_layers *layers);
SONDE_API const struct sonde_layer *sonde_layers_row(const struct sonde_layers *layers,
                                                     size_t                     index);

/* Other metadata of the run: versions, threads, processor; false past the last. */
SONDE_API bool sonde_layers_environment(const struct sonde_layers *layers, size_t index,
                                        struct sonde_text *key, struct sonde_text *value);

/*
 * Adds every measured layer to the profiler_results.yml at `path`, which is created if missing;
 * other layers in it stay. Replaced atomically by rename. `saved`, if not NULL: how many.
 * Errors: SONDE_E_STATE when the file is another model's, or its rows were measured on another
 *         device, with another memory or other boundaries; SONDE_E_FORMAT, SONDE_E_IO,
 *         SONDE_E_UNSUPPORTED when built without libyaml.
 */
SONDE_API SONDE_CHECKED enum sonde_status sonde_layers_save(const struct sonde_layers *layers,
                                                            const char *path, size_t *saved,
                                                            struct sonde_error *err);

/* What a results file describes. */
struct sonde_results_head {
    size_t      struct_size; /* sizeof(struct sonde_results_head), as in the INIT macro */
    const char *model_name, *dtype;
    int64_t     batch_size, layers;
};
#define SONDE_RESULTS_HEAD_INIT                                           \
    {                                                                     \
        sizeof(struct sonde_results_head), SONDE_NULL_, SONDE_NULL_, 0, 0 \
    }
struct sonde_results_row {
    int64_t layer;
    int64_t runs; /* that were measured; 0: unknown */
};

/*
 * Which layers the results file at `path` has; at most `size` are stored, *count is how many there
 * are. No file, or an empty one: none.
 * Errors: SONDE_E_STATE when it describes something other than `head`; as sonde_layers_save.
 */
SONDE_API SONDE_CHECKED enum sonde_status
sonde_results_layers(const char *path, const struct sonde_results_head *head,
                     struct sonde_results_row *rows, size_t size, size_t *count,
                     struct sonde_error *err);

SONDE_C_END_
#endif
