/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import/text/window.h - a file's text, plain or gzip's, as a window that moves over it.
 *
 * Layer: import. Threads: one at a time.
 */
#ifndef SND_IMPORT_TEXT_WINDOW_H
#define SND_IMPORT_TEXT_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct snd_unzip;

struct snd_window {
    int               fd;   /* borrowed; -1: text in memory */
    char             *text; /* owned; SND_SCAN_PAD zeroes follow `length` */
    size_t            length, room;
    uint64_t          offset; /* of text[0] in the whole text */
    unsigned char    *raw;    /* owned: bytes of the file */
    size_t            raw_at, raw_length;
    const char       *memory; /* borrowed */
    size_t            memory_left;
    struct snd_unzip *unzip;  /* NULL: plain text */
    bool              ended;  /* there is no more */
    bool              broken; /* gzip's stream is damaged, or breaks off */
};

/* Whether a file's first bytes may be those of a trace of another tool's: JSON, or gzip's. */
bool snd_window_may_be(const void *bytes, size_t length);

/* Owns: the caller, until snd_window_close(). Errors: SONDE_E_NOMEM, SONDE_E_UNSUPPORTED (gzip, built without zlib). */
SND_CHECKED enum sonde_status snd_window_open(struct snd_window *window, int fd,
                                              struct sonde_error *err);
/* The same of text in memory, which must stay. */
SND_CHECKED enum sonde_status snd_window_over(struct snd_window *window, const void *text,
                                              size_t length, struct sonde_error *err);
void                          snd_window_close(struct snd_window *window);

/* What is before `from` goes, more comes at the end. False: there is no more, or no room for it. */
bool snd_window_move(struct snd_window *window, size_t from);
/* Room for longer values. False: it is as large as it may be, or memory is out. */
bool snd_window_grow(struct snd_window *window);

#endif
