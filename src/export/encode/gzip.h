/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/encode/gzip.h - a sink that compresses into another sink.
 *
 * Layer: export. Threads: belongs to one thread.
 */
#ifndef SND_EXPORT_ENCODE_GZIP_H
#define SND_EXPORT_ENCODE_GZIP_H

#include "base/error.h"
#include "sonde/sink.h"

struct snd_gzip; /* opaque */

/* Levels of zlib. Numbers that are coded already, as a page's, come out hardly larger by the fast one. */
enum snd_gzip_level { SND_GZIP_FAST = 1, SND_GZIP_TEXT = 6 };

/*
 * Keeps: `sink`, until it is freed. Owns: the caller, until snd_gzip_free().
 * Errors: SONDE_E_UNSUPPORTED when built without zlib; SONDE_E_NOMEM.
 */
SND_CHECKED enum sonde_status snd_gzip_new(const struct sonde_sink *sink, enum snd_gzip_level level,
                                           struct snd_gzip **out, struct sonde_error *err);
struct sonde_sink             snd_gzip_sink(struct snd_gzip *gzip);
/* Writes the rest. Errors: SONDE_E_IO. */
SND_CHECKED enum sonde_status snd_gzip_finish(struct snd_gzip *gzip, struct sonde_error *err);
void                          snd_gzip_free(struct snd_gzip *gzip);

#endif
