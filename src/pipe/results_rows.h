/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipe/results_rows.h - what a row of a results file must be; for results.c.
 *
 * `path` is for messages; `fault` is what a fault is: SONDE_E_FORMAT in a file, SONDE_E_ARGUMENT
 * in a row that is handed over.
 *
 * Layer: pipe. Threads: any.
 */
#ifndef SND_PIPE_RESULTS_ROWS_H
#define SND_PIPE_RESULTS_ROWS_H

#include "pipe/results.h"

/* A map with a layer and two lists of shapes. */
SND_CHECKED enum sonde_status snd_row_check(const char *path, const struct snd_node *row,
                                            enum sonde_status fault, struct sonde_error *err);
/* The value of `key`, or of memory and time, is a number >= 0. The row is a map. */
SND_CHECKED enum sonde_status snd_row_check_amount(const char *path, const struct snd_node *row,
                                                   const char *key, enum sonde_status fault,
                                                   struct sonde_error *err);
SND_CHECKED enum sonde_status snd_row_check_amounts(const char *path, const struct snd_node *row,
                                                    enum sonde_status   fault,
                                                    struct sonde_error *err);

#endif
