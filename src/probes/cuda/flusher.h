/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/cuda/flusher.h - a thread that flushes CUPTI's buffers at intervals.
 *
 * Only under `sonde run`, so that the work of a program that is killed is recorded: CUPTI by itself
 * hands over full buffers only.
 *
 * Layer:   probes.
 * Threads: start and stop one at a time (cuda_session.c's lock).
 */
#ifndef SND_PROBES_CUDA_FLUSHER_H
#define SND_PROBES_CUDA_FLUSHER_H

void snd_flusher_start(void);
void snd_flusher_stop(void);

/* After fork(), in the child, which has no such thread. */
void snd_flusher_in_child(void);

#endif
