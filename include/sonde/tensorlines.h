/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde/tensorlines.h - tensor memory by source line of selected functions.
 *
 * The trace has operators with memory and stacks, and the functions' source as facts (LINES,
 * docs/FORMAT.md).
 * What an operator allocates is charged to the innermost selected line in its stack until it is
 * freed, wherever that happens.
 *
 * Threads: as a trace.
 */
#ifndef SONDE_TENSORLINES_H
#define SONDE_TENSORLINES_H

#include "sonde/trace.h"

SONDE_C_BEGIN_

struct sonde_tensor_line {
    struct sonde_text function, file, source;
    uint32_t          line;
    uint64_t          allocs;
    int64_t           taken_bytes;  /* in all */
    int64_t           peak_bytes;   /* peak of what it allocated */
    int64_t           end_bytes;    /* held at the end */
    int64_t           active_bytes; /* peak of all lines while it allocated; 0: never */
};

struct sonde_tensor_lines; /* opaque */
/* Owns: the caller, until sonde_tensor_lines_free(). */
SONDE_API SONDE_CHECKED enum sonde_status sonde_tensor_lines_new(struct sonde_trace         *trace,
                                                                 struct sonde_tensor_lines **out,
                                                                 struct sonde_error         *err);
SONDE_API void                            sonde_tensor_lines_free(struct sonde_tensor_lines *lines);
/* Every line of every selected function, in order. */
SONDE_API size_t sonde_tensor_lines_count(const struct sonde_tensor_lines *lines);
SONDE_API const struct sonde_tensor_line *
sonde_tensor_lines_row(const struct sonde_tensor_lines *lines, size_t index);

SONDE_C_END_
#endif
