/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipe/convert.h - results files to the models and device types that a scheduler reads.
 *
 * What PipeEdge's profiler_results_to_models.py and profiler_results_to_device_types.py do, with
 * their checks and more (snd_results_check_whole). The output file keeps its other entries; it is
 * written whole or left as it was.
 *
 * Layer: pipe. Threads: any, for different files.
 */
#ifndef SND_PIPE_CONVERT_H
#define SND_PIPE_CONVERT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "sonde/sink.h"

struct snd_convert_options {
    const char *results_path, *output_path;
    bool        overwrite; /* an entry that is there already; without: SONDE_E_STATE */
    /* Device types: its name; of a new type, memory in MB and bandwidth in Mbit/s, else -1. */
    const char *device_type;
    int64_t     memory_mb, bandwidth_mbps;
};

/*
 * Adds the model of the results to a models file. `notes` gets one line for each thing that is
 * worth saying though it is no error, and may be NULL.
 * Errors: SONDE_E_STATE, SONDE_E_FORMAT for what cannot be converted; SONDE_E_IO, E_NOMEM,
 *         E_UNSUPPORTED. Then the output file is as it was.
 */
SND_CHECKED enum sonde_status snd_convert_models(const struct snd_convert_options *options,
                                                 struct sonde_buffer              *notes,
                                                 struct sonde_error               *err);
/* Adds the times of the results to a device type of a device types file. Errors: likewise. */
SND_CHECKED enum sonde_status snd_convert_device_types(const struct snd_convert_options *options,
                                                       struct sonde_buffer              *notes,
                                                       struct sonde_error               *err);

#endif
