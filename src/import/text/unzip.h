/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import/text/unzip.h - gzip's streams, one after another: by ISA-L where the build has it, else by zlib.
 *
 * Layer: import. Threads: one at a time.
 */
#ifndef SND_IMPORT_TEXT_UNZIP_H
#define SND_IMPORT_TEXT_UNZIP_H

#include <stddef.h>

#include "base/error.h"

enum snd_unzip_state {
    SND_UNZIP_WITHIN,  /* a stream goes on */
    SND_UNZIP_BETWEEN, /* one has ended, and its checksum was right */
    SND_UNZIP_BAD,
};

struct snd_unzip;

/* Owns: the caller. Errors: SONDE_E_NOMEM, SONDE_E_UNSUPPORTED. */
SND_CHECKED enum sonde_status snd_unzip_new(struct snd_unzip **out, struct sonde_error *err);
void                          snd_unzip_free(struct snd_unzip *unzip);

/* Takes bytes from `*at` on, which moves; `*got` are written. */
enum snd_unzip_state snd_unzip_run(struct snd_unzip *unzip, const unsigned char *bytes,
                                   size_t length, size_t *at, char *to, size_t room, size_t *got);

#endif
