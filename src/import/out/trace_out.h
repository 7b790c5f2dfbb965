/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import/out/trace_out.h - writes a packed trace: records as they become known, events lane by lane.
 *
 * Failure sticks: after one, calls do nothing, and snd_trace_out_end() says what it was.
 *
 * Layer: import (sees base/, format/). Threads: one at a time.
 */
#ifndef SND_IMPORT_OUT_TRACE_OUT_H
#define SND_IMPORT_OUT_TRACE_OUT_H

#include <stdbool.h>

#include "base/data/map.h"
#include "base/error.h"
#include "format/codec.h"
#include "format/layout.h"

#define SND_TRACE_OUT_STORED (-1) /* a level: nothing is compressed */

struct snd_trace_block {
    uint64_t *words; /* owned */
    size_t    count;
};

struct snd_trace_out {
    int                    fd; /* borrowed */
    int                    level;
    struct snd_codec      *codec; /* NULL: chunks are stored as they are */
    struct snd_trace_block tables, events;
    uint32_t               thread;    /* whose events are in the block */
    uint64_t               size, seq; /* bytes, chunks written */
    uint32_t               ids[SND_REC_TYPES];
    struct snd_map         known; /* (type and hash) of a record to its id */
    uint64_t               event_count;
    enum sonde_status      status;
    struct sonde_error     why;
};

/* `fd`: an empty file. Owns: the caller, until snd_trace_out_release(). */
SND_CHECKED enum sonde_status snd_trace_out_begin(struct snd_trace_out *out, int fd, int level,
                                                  struct sonde_error *err);
void                          snd_trace_out_release(struct snd_trace_out *out);

/* A record; its id. snd_trace_intern: each different one once. 0: it failed. */
uint32_t snd_trace_record(struct snd_trace_out *out, enum snd_record_type type, const void *payload,
                          size_t size);
uint32_t snd_trace_intern(struct snd_trace_out *out, enum snd_record_type type, const void *payload,
                          size_t size);
/* A string, truncated to what a trace may have; 0 if it is empty. */
uint32_t snd_trace_string(struct snd_trace_out *out, const char *bytes, size_t length);
void snd_trace_meta(struct snd_trace_out *out, const char *key, const char *value, size_t length);

/* What follows are events of `thread`, a record. */
void snd_trace_lane(struct snd_trace_out *out, uint32_t thread);
/* Room for an event and what must be in one chunk with it; true: a new chunk began. */
bool snd_trace_room(struct snd_trace_out *out, size_t words);
void snd_trace_event(struct snd_trace_out *out, const uint64_t *words, size_t count);

/* Writes the rest, and the header, whose flags and sizes are filled in. */
SND_CHECKED enum sonde_status snd_trace_out_end(struct snd_trace_out   *out,
                                                struct snd_file_header *header,
                                                struct sonde_error     *err);

#endif
