/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/memory/memory_peaks.h - peaks of memory and who held them, without the points of their course: of a walk
 * that somebody makes.
 *
 * Layer: model. Threads: one at a time.
 */
#ifndef SND_MODEL_MEMORY_MEMORY_PEAKS_H
#define SND_MODEL_MEMORY_MEMORY_PEAKS_H

#include "base/error.h"
#include "sonde/model.h"

/*
 * In two parts: they wait at the trace for the next walk (snd_wait()); and are there, which takes a walk if nobody
 * has made one. An error of the second frees them. `groups`: SONDE_GROUP_MODULE or 0. Owns: the caller frees *out
 * with sonde_memory_free(); a page of many views has them lent (model/kept.h).
 */
SND_CHECKED enum sonde_status snd_memory_wait(struct sonde_trace *trace, unsigned groups,
                                              struct sonde_memory **out, struct sonde_error *err);
SND_CHECKED enum sonde_status snd_memory_finish(struct sonde_memory **memory,
                                                struct sonde_error   *err);

#endif
