/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/files/behind_sink.h - a sink that a thread of its own writes to, while the next bytes are made.
 *
 *     char *block = snd_behind_block(b);             at most SND_BEHIND_BYTES go there
 *     block = snd_behind_next(b, length);            written meanwhile; the next block
 *     if (!snd_behind_end(b))                        all is written, or errno says why not
 *
 * Layer: base. Threads: one fills the blocks.
 */
#ifndef SND_BASE_FILES_BEHIND_SINK_H
#define SND_BASE_FILES_BEHIND_SINK_H

#include <stdbool.h>
#include <stddef.h>

#include "sonde/sink.h"

/* Of a block: large, as waking a thread takes a few microseconds. */
#define SND_BEHIND_BYTES ((size_t)256 << 10)

struct snd_behind;

/*
 * Up to `ahead` bytes wait to be written, and take memory only while they do. NULL: there is no memory, or no thread
 * to be had. `sink` is used until the end.
 */
struct snd_behind *snd_behind_new(const struct sonde_sink *sink, size_t ahead);
char              *snd_behind_block(const struct snd_behind *behind);
/* Hands on the block with so many bytes; returns the next. NULL, with errno: a write has failed. */
char *snd_behind_next(struct snd_behind *behind, size_t length);
/* Waits until all that was handed on is written, and frees. False, with errno: a write has failed. */
bool snd_behind_end(struct snd_behind *behind);

#endif
