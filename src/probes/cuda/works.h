/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/cuda/works.h - CUPTI's activity buffers: handed out, and read into the recording.
 *
 * A record of a kernel, copy, fill or of CUPTI's own overhead becomes one event of 32 bytes; what
 * is the same each time (name, grid, bytes, ..) is interned once. Buffers come from a pool: once it
 * has grown to what CUPTI keeps in use, nothing is allocated.
 *
 * Layer:   probes.
 * Threads: CUPTI calls requested and completed from any; the others one at a time (cuda_session.c's lock).
 */
#ifndef SND_PROBES_CUDA_WORKS_H
#define SND_PROBES_CUDA_WORKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probes/cuda/cupti.h"

void snd_works_requested(uint8_t **buffer, size_t *size, size_t *most_records);
void snd_works_completed(void *context, uint32_t stream, uint8_t *buffer, size_t size,
                         size_t valid);

/* CUPTI's buffers come to us from here on: takes the first pair of clocks. */
void snd_works_begin(void);

/* Buffers with records that CUPTI has handed over, ever. */
uint64_t snd_works_buffers(void);

/* A flush begins or ends: CUPTI's overhead meanwhile is not the program's. */
void snd_works_flushing(bool is_flushing);

/* After fork(), in the child: releases all locks and expects no more work. */
void snd_works_in_child(void);

#endif
