/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/text/buf.h - a buffer that grows, and numbers written alike in every locale.
 *
 * Failure sticks: after memory ran out, puts do nothing and `failed` stays set, so that a
 * writer asks once, at the end.
 *
 * Layer: base. Threads: a buffer belongs to one thread.
 */
#ifndef SND_BASE_TEXT_BUF_H
#define SND_BASE_TEXT_BUF_H

#include "sonde/sink.h"

/* Room for the longest of the numbers below. */
#define SND_NUMBER_MAX 400

void snd_buf_put(struct sonde_buffer *buf, const void *data, size_t length);
/* Whether there is room for `length` bytes, and a NUL after them: snd_buf_room's slow path. */
bool snd_buf_grow(struct sonde_buffer *buf, size_t length);

/* Room for `length` bytes, to be written in place; NULL when it has failed. */
static inline char *snd_buf_room(struct sonde_buffer *buf, size_t length)
{
    if (length < buf->capacity - buf->length && !buf->failed)
        return buf->bytes + buf->length;
    return snd_buf_grow(buf, length) ? buf->bytes + buf->length : NULL;
}

/* Ends what was written there. */
static inline void snd_buf_end(struct sonde_buffer *buf, char *end)
{
    *end = '\0';
    buf->length = (size_t)(end - buf->bytes);
}

void snd_buf_text(struct sonde_buffer *buf, const char *text);
void snd_buf_format(struct sonde_buffer *buf, const char *format, ...) SONDE_PRINTF(2, 3);

/* Empties it but keeps its memory. The text of an empty one is "". */
void        snd_buf_clear(struct sonde_buffer *buf);
const char *snd_buf_string(const struct sonde_buffer *buf);

/* `value` with `decimals` decimals and a full stop, whatever the locale. */
const char *snd_number_fixed(char text[SND_NUMBER_MAX], int decimals, double value);
/* `value` with `digits` significant digits at most, as printf's %g writes it, likewise. */
const char *snd_number_general(char text[SND_NUMBER_MAX], int digits, double value);
/* "12.345us", as torch.profiler writes it: in the largest unit (s, ms, us) that leaves at least 1; `gap` is before the unit. */
const char *snd_time_text(char text[SND_NUMBER_MAX], double us, const char *gap);
/* The shortest text that reads back as the same double; it must be finite. */
const char *snd_number_shortest(char text[SND_NUMBER_MAX], double value);

#endif
