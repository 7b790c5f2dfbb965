/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipe/results.h - profiler_results.yml: what was measured of the layers of a model.
 *
 * The file is a map: batch_size, dtype, layers, model_name, profile_data. Each row of the last is
 * a map: layer (from 1), memory (MB of 10^6 bytes), shape_in and shape_out (lists of shapes
 * without the batch dimension), time (mean seconds). Further keys, of the file and of a row, are
 * kept as they are. Not all layers need be there: a file grows as they are measured.
 *
 * Layer: pipe. Threads: one at a time uses a results file.
 */
#ifndef SND_PIPE_RESULTS_H
#define SND_PIPE_RESULTS_H

#include "pipe/yaml/node.h"

struct snd_results; /* opaque */

struct snd_results_head {
    const char *model_name, *dtype;
    int64_t     batch_size, layers;
};

/*
 * Opens the results of the model `head` at `path`: those that are there, which must be of the
 * same model_name, dtype, batch_size and layers, or none yet (no file, or an empty one).
 * Owns:   the caller ends *out with snd_results_free(); the path is copied.
 * Errors: SONDE_E_STATE if the file is of something else, SONDE_E_FORMAT if it is damaged;
 *         SONDE_E_ARGUMENT for a head that cannot be; SONDE_E_IO, E_NOMEM, E_UNSUPPORTED.
 */
SND_CHECKED enum sonde_status snd_results_open(const char                    *path,
                                               const struct snd_results_head *head,
                                               struct snd_results **out, struct sonde_error *err);
/*
 * Opens the results at `path`, whatever they are of; they must be there. Times and sizes are not
 * looked at: snd_results_check_amounts does.
 */
SND_CHECKED enum sonde_status snd_results_load(const char *path, struct snd_results **out,
                                               struct sonde_error *err);
void                          snd_results_free(struct snd_results *results);

/* Texts are good until it is freed. */
struct snd_results_head snd_results_head(const struct snd_results *results);
const char             *snd_results_path(const struct snd_results *results);

/* The rows, in the order of the file (opened by snd_results_open: of the layers). */
uint32_t               snd_results_count(const struct snd_results *results);
const struct snd_node *snd_results_row(const struct snd_results *results, uint32_t index);
int64_t                snd_row_layer(const struct snd_node *row);

/* Where nodes for the calls below are made. */
struct snd_document *snd_results_doc(struct snd_results *results);

/*
 * Adds a row, a map with at least the five keys, made in snd_results_doc(), to results that
 * snd_results_open() opened. It replaces a row of the same layer.
 * Errors: SONDE_E_ARGUMENT for a row that a results file cannot have; SONDE_E_NOMEM.
 */
SND_CHECKED enum sonde_status snd_results_put(struct snd_results *results, struct snd_node *row,
                                              struct sonde_error *err);
/* Sets a further key of the file. Errors: SONDE_E_ARGUMENT for one of the five; SONDE_E_NOMEM. */
SND_CHECKED enum sonde_status snd_results_set(struct snd_results *results, const char *key,
                                              struct snd_node *value, struct sonde_error *err);

/* Writes the file: the old one or the new one is there, whole. Errors: as snd_yaml_save. */
SND_CHECKED enum sonde_status snd_results_save(struct snd_results *results,
                                               struct sonde_error *err);

/*
 * What a converter needs besides: every layer once, in order, each taking what the one before
 * gives. Errors: SONDE_E_STATE if layers are missing, SONDE_E_FORMAT.
 */
SND_CHECKED enum sonde_status snd_results_check_whole(const struct snd_results *results,
                                                      struct sonde_error       *err);

/* Whether `key` ("time", "memory") is a number >= 0 in every row. Errors: SONDE_E_FORMAT. */
SND_CHECKED enum sonde_status snd_results_check_amounts(const struct snd_results *results,
                                                        const char *key, struct sonde_error *err);

/* The elements of a list of shapes: the sum of their products; -1 if that is past an int64_t. */
int64_t snd_shapes_elements(const struct snd_node *shapes);

/* Layers of a model that PipeEdge knows by name; 0 for another. */
int64_t snd_known_layers(const char *model_name);

#endif
