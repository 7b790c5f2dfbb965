/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/ranks/rank_gpu.h - what the GPUs of each rank did with its time.
 *
 * HTA's breakdown: kernels that compute, that communicate, copies; each as a union over streams.
 *
 * Layer: model. Threads: one at a time.
 */
#ifndef SND_MODEL_RANKS_RANK_GPU_H
#define SND_MODEL_RANKS_RANK_GPU_H

#include "model/ranks/rank_times.h"

/*
 * Rows of ranks whose GPU worked get its times in place of the host's, from its first work to its last. Rows of steps, by
 * process and start, get what it did while they last. `row_of`: of each process, in times->rows; SONDE_NONE: none.
 * Errors: SONDE_E_NOMEM, and those of snd_trace_devices().
 */
SND_CHECKED enum sonde_status snd_rank_gpu_divide(struct sonde_trace    *trace,
                                                  struct snd_rank_times *times,
                                                  const uint32_t *row_of, struct sonde_error *err);

#endif
