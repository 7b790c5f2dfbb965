/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipe/plan/plan.h - which device runs which layers of a model, so that a pipeline runs fastest.
 *
 * A stage is a run of layers on one device; a device has one stage at most. In a full pipeline
 * the slowest stage or transfer sets the pace: that is the cost, and the plan found has the
 * least that there is (docs/PIPELINES.md). The units are PipeEdge's: MB of 2^20 bytes, Mbit/s of
 * 2^20 bits.
 *
 * Layer: pipe. Threads: any; nothing is shared.
 */
#ifndef SND_PIPE_PLAN_PLAN_H
#define SND_PIPE_PLAN_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/data/arena.h"
#include "base/error.h"
#include "sonde/sink.h"

/* Alike devices. */
struct snd_device_type {
    const char   *name;
    double        memory_mb, bandwidth_mbps;
    const double *time_s; /* of each layer */
    const char  **hosts;
    uint32_t      count;
};

struct snd_pipeline {
    uint32_t                layers;
    const double           *memory_mb;      /* of each layer */
    const double           *parameters_out; /* values that each layer passes on, of one item */
    double                  parameters_in;
    size_t                  value_bytes;
    int64_t                 batch_size, buffers_in, buffers_out;
    struct snd_device_type *types;
    uint32_t                type_count;
};

struct snd_stage {
    uint32_t type, host;  /* numbers in types, and in its hosts */
    uint32_t first, last; /* layers, from 1 */
    double   compute_s, memory_mb;
    double   send_s, send_bytes; /* to the next stage; 0 for the last */
};

struct snd_plan {
    struct snd_stage *stages; /* owned */
    uint32_t          count;
    double            period_s; /* of the slowest stage or transfer */
    uint32_t          slowest;  /* number of the stage */
    bool              is_send;  /* it is the transfer after that stage */
};

/*
 * Finds a plan of the least period; among those, one of the fewest stages.
 * Owns:   the caller ends *plan with snd_plan_release().
 * Errors: SONDE_E_STATE if no plan fits the memory there is (the message says what does not),
 *         SONDE_E_LIMIT if there are too many different devices, SONDE_E_NOMEM.
 */
SND_CHECKED enum sonde_status snd_plan_find(const struct snd_pipeline *pipeline,
                                            struct snd_plan *plan, struct sonde_error *err);
void                          snd_plan_release(struct snd_plan *plan);

/* MB that layers `first` to `last` (from 1) need, with the buffers of what goes in and out. */
double snd_stage_memory_mb(const struct snd_pipeline *pipeline, uint32_t first, uint32_t last);
/* Bytes that a batch is after a layer (0: what the model is given). */
double snd_layer_bytes(const struct snd_pipeline *pipeline, uint32_t layer);

/* ------------------------------------------------------------------ files */

struct snd_plan_options {
    const char *models_path, *types_path, *devices_path;
    const char *model_name, *dtype;
    int64_t     batch_size, buffers_in, buffers_out;
};

/*
 * Reads a pipeline from models.yml, device_types.yml and devices.yml; everything is in `arena`.
 * `notes` gets a line for each type of device that cannot be used.
 * Errors: SONDE_E_ARGUMENT for a dtype or number that cannot be; SONDE_E_STATE if the model or
 *         any device for it is missing; SONDE_E_FORMAT, SONDE_E_IO, E_NOMEM, E_UNSUPPORTED.
 */
SND_CHECKED enum sonde_status snd_pipeline_load(const struct snd_plan_options *options,
                                                struct snd_arena              *arena,
                                                struct snd_pipeline           *pipeline,
                                                struct sonde_buffer           *notes,
                                                struct sonde_error            *err);

/*
 * Appends the plan in the form of PipeEdge's scheduler, "- host: [first, last]" for each stage,
 * and what is slowest as a comment; `verbose` adds a comment for each stage.
 */
SND_CHECKED enum sonde_status snd_plan_write(const struct snd_pipeline *pipeline,
                                             const struct snd_plan *plan, bool verbose,
                                             struct sonde_buffer *text, struct sonde_error *err);

#endif
