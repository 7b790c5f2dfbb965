/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read/said/trace_metadata.h - what a process says of itself, by the names of format/metadata.def.
 *
 *     uint32_t at = 0;
 *     while (snd_meta_next(trace, process, SND_META_MODULE, &at, &path, &value)) ..
 *
 * Layer: read. Threads: as a trace.
 */
#ifndef SND_READ_SAID_TRACE_METADATA_H
#define SND_READ_SAID_TRACE_METADATA_H

#include <stdbool.h>

#include "format/metadata.h"
#include "sonde/trace.h"

/*
 * The next one from `*at` on, which then lies after it. `rest` is what its key has after the prefix
 * (of a key that there is one of: nothing) and may be NULL. Both have a NUL after them.
 */
bool snd_meta_next(const struct sonde_trace *trace, uint32_t process, enum snd_meta meta,
                   uint32_t *at, struct sonde_text *rest, struct sonde_text *value);

/* The value of a key; empty, and false, where the process does not have it. */
bool snd_meta_find(const struct sonde_trace *trace, uint32_t process, enum snd_meta meta,
                   struct sonde_text *value);

/* The same for a key that sonde does not define: a member of an imported file. */
bool snd_meta_other(const struct sonde_trace *trace, uint32_t process, const char *key,
                    struct sonde_text *value);

/*
 * The process of the run that this one descends from, as far as the trace tells, and that is the
 * recording's own: whose command line was given.
 */
uint32_t snd_meta_root(const struct sonde_trace *trace, uint32_t process);

/* The command line of a process; where it has none, the path of its program. */
struct sonde_text snd_meta_command(const struct sonde_trace *trace, uint32_t process);

/*
 * What a person calls a process: the last part of its program's path, or, of an interpreter of Python, that of the script
 * or the module that it runs; "sonde NAME" of our own commands that are Python.
 */
struct sonde_text snd_meta_title(const struct sonde_trace *trace, uint32_t process);

/* "rank 3 on HOST" of a process of a job, "" of another; in `text`. */
#define SND_RANK_TEXT 88
const char *snd_meta_rank(const struct sonde_trace *trace, uint32_t process,
                          char text[SND_RANK_TEXT]);

/* Whether a key is this one, or one of these. */
bool snd_meta_is(struct sonde_text key, enum snd_meta meta);

#endif
