/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read/file/cursor.h - the words (or bytes) of one chunk, a window at a time.
 *
 *     struct snd_cursor c = { 0 };
 *     if (snd_cursor_open(&c, process, chunk, window, codec, err) == SONDE_OK)
 *         do {
 *             use c.words[c.at .. c.count), move c.at
 *         } while (snd_cursor_fill(&c));
 *
 * A window keeps memory small however large a chunk claims to be. A packed chunk is unpacked
 * whole; codec.h bounds it. The first SND_KEPT_WORDS words of a trace's packed events stay unpacked with it:
 * a trace is walked several times, and unpacking takes longer than walking.
 *
 * Layer: read. Threads: one at a time, but for cursors of different chunks.
 */
#ifndef SND_READ_FILE_CURSOR_H
#define SND_READ_FILE_CURSOR_H

#include "format/codec.h"
#include "read/reader.h"

#define SND_WINDOW_WALK ((size_t)1 << 18) /* fits the second-level cache */
#define SND_WINDOW_MERGE ((size_t)1 << 16)
#define SND_KEPT_WORDS ((size_t)1 << 19) /* 4 MiB */

struct snd_cursor {
    const struct snd_process *process;
    struct snd_chunk_ref     *chunk;
    uint64_t                 *words; /* owned */
    size_t                    room, at, count;
    uint64_t                  next, end; /* bytes of the chunk: read so far, readable at most */
    uint32_t                  crc;
    bool                      has_used; /* its end is known from the header */
    bool                      damaged;  /* truncated, or its checksum does not match */
};

/*
 * Points the cursor at a chunk and reads its first window of at most `window` bytes.
 * `codec` is made on first need and shared by cursors; the caller frees it.
 * Errors: SONDE_E_NOMEM, SONDE_E_UNSUPPORTED. Damage is not an error: the cursor is then empty.
 */
SND_CHECKED enum sonde_status snd_cursor_open(struct snd_cursor        *cursor,
                                              const struct snd_process *process,
                                              struct snd_chunk_ref *chunk, size_t window,
                                              struct snd_codec **codec, struct sonde_error *err);

/* Moves what is unread to the front and reads on; false at the end of the chunk. */
bool snd_cursor_fill(struct snd_cursor *cursor);

/*
 * The next whole event of a lane chunk, past which the cursor moves; valid until the next call. NULL
 * at its end, which is where it is truncated too.
 */
const uint64_t *snd_cursor_event(struct snd_cursor *cursor);

/* Frees the buffer. */
void snd_cursor_release(struct snd_cursor *cursor);

#endif
