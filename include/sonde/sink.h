/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde/sink.h - where a report or an export goes: a function, and three ready ones.
 *
 *     struct sonde_sink out = sonde_sink_file(stdout);
 *     sonde_report(trace, NULL, &out, &err);
 *
 * Threads: a sink is used by one call at a time.
 */
#ifndef SONDE_SINK_H
#define SONDE_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "sonde/error.h"

SONDE_C_BEGIN_

/* `write` takes all `length` bytes, or returns false and leaves the reason in errno. */
struct sonde_sink {
    bool (*write)(void *user, const void *data, size_t length);
    void *user;
};

/* Bytes in memory, with a NUL after them. Zero it before use. */
struct sonde_buffer {
    char  *bytes;
    size_t length, capacity;
    bool   failed; /* out of memory: what came later is missing */
};

SONDE_API struct sonde_sink sonde_sink_file(FILE *file);
/* A thread of its own writes a long export there; it has ended when the call returns. */
SONDE_API struct sonde_sink sonde_sink_fd(int fd);
/* Keeps `buffer` until the last write. Owns: the caller frees it with sonde_buffer_release(). */
SONDE_API struct sonde_sink sonde_sink_buffer(struct sonde_buffer *buffer);
SONDE_API void              sonde_buffer_release(struct sonde_buffer *buffer);

SONDE_C_END_
#endif
