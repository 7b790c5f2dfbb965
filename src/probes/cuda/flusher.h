/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/cuda/flusher.h - a thread that has CUPTI hand over what is done, now and then.
 *
 * Only under `sonde run`, of which one expects what a program did before it was killed: CUPTI by itself
 * hands over buffers that are full.
 *
 * Layer:   probes.
 * Threads: start and stop one at a time (session.c's lock).
 */
#ifndef SND_PROBES_CUDA_FLUSHER_H
#define SND_PROBES_CUDA_FLUSHER_H

void snd_flusher_start(void);
void snd_flusher_stop(void);

/* After fork(), in the child, which has no such thread. */
void snd_flusher_in_child(void);

#endif
