/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/files/sink.h - a buffered writer over a struct sonde_sink.
 *
 * Failure sticks: after a write failed, puts do nothing, and snd_out_finish reports it.
 *
 * Layer: base. Threads: a writer belongs to one thread.
 */
#ifndef SND_BASE_FILES_SINK_H
#define SND_BASE_FILES_SINK_H

#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "sonde/sink.h"

#define SND_OUT_BYTES 32768

/*
 * The descriptor of a sink of sonde_sink_fd() that is an empty regular file, of which any part may be written at any time;
 * -1: it is none.
 */
int snd_sink_empty_file(const struct sonde_sink *sink);
/* Is it one of sonde_sink_fd()? Any thread may write to that. */
bool snd_sink_is_fd(const struct sonde_sink *sink);

struct snd_out {
    const struct sonde_sink *sink;  /* borrowed until finish */
    char                    *bytes; /* `own`, or a block of what writes behind */
    char                    *at;    /* the free part of `bytes`, up to `end` */
    char                    *end;
    bool                     failed;
    int                      os_error; /* why */
    uint64_t                 flushes;  /* how often `bytes` was handed on */
    size_t                   ahead;    /* see snd_out_apart() */
    struct snd_behind       *behind;   /* owned; NULL: none, or not yet */
    char                     own[SND_OUT_BYTES];
};

void snd_out_init(struct snd_out *out, const struct sonde_sink *sink);
/*
 * If `ahead` is not 0, another thread writes to the sink once there is much, while this one goes on: until so many bytes
 * wait. For sinks that do not mind: snd_sink_is_fd(). Then snd_out_finish() or snd_out_end() must follow.
 */
void snd_out_apart(struct snd_out *out, size_t ahead);
#define SND_AHEAD_FEW ((size_t)1 << 20) /* for who makes its bytes as fast all the time */
/* Where the buffer is full: snd_out_put's slow path. */
void snd_out_overflow(struct snd_out *out, const void *data, size_t length);

/* Inline: an export puts some forty texts an event, most of them of a known length. */
static inline void snd_out_put(struct snd_out *out, const void *data, size_t length)
{
    if (__builtin_expect(length > (size_t)(out->end - out->at), 0)) {
        snd_out_overflow(out, data, length);
        return;
    }
    if (length > 0)
        memcpy(out->at, data, length);
    out->at += length;
}

static inline void snd_out_text(struct snd_out *out, const char *text)
{
    snd_out_put(out, text, strlen(text));
}

/*
 * Room for `length` bytes (at most SND_OUT_BYTES), to be written in place: the writer then moves
 * out->at behind what it wrote.
 */
static inline char *snd_out_room(struct snd_out *out, size_t length)
{
    if (__builtin_expect(length > (size_t)(out->end - out->at), 0))
        snd_out_overflow(out, NULL, 0);
    return out->at;
}

/* Where the writer is, and what was put since: none (length 0) if part of it has left the buffer. */
struct snd_out_mark {
    const char *at;
    uint64_t    flushes;
};

static inline struct snd_out_mark snd_out_mark(const struct snd_out *out)
{
    return (struct snd_out_mark){ out->at, out->flushes };
}

static inline size_t snd_out_since(const struct snd_out *out, struct snd_out_mark mark)
{
    return out->flushes == mark.flushes ? (size_t)(out->at - mark.at) : 0;
}

/* Numbers written in place, which take at most so many bytes; returns where they end. */
#define SND_INT_BYTES 21
char *snd_put_int(char *to, int64_t value);

void snd_out_repeat(struct snd_out *out, char byte, size_t count);
void snd_out_uint(struct snd_out *out, uint64_t value);
void snd_out_int(struct snd_out *out, int64_t value);
/* Nanoseconds as microseconds with three decimals: exact. */
void snd_out_us(struct snd_out *out, int64_t ns);
void snd_out_format(struct snd_out *out, const char *format, ...) SONDE_PRINTF(2, 3);
/*
 * Text as a field of CSV (RFC 4180): UTF-8 always, control characters and other bytes spelled out
 * (base/text/utf8.h), a text that a spreadsheet would take for a formula after an apostrophe.
 */
void snd_out_csv(struct snd_out *out, const char *bytes, size_t length);
/* The same for text of several lines, which stay. */
void snd_out_csv_lines(struct snd_out *out, const char *bytes, size_t length);

/* The content could not be made: `os_error` is the reason (ENOMEM). */
void snd_out_fail(struct snd_out *out, int os_error);

/* Writes what is left. Errors: SONDE_E_IO, now or earlier. */
enum sonde_status snd_out_finish(struct snd_out *out, struct sonde_error *err);
/* The same if `status` is SONDE_OK; else what was put is of no use, and it returns `status`. */
enum sonde_status snd_out_end(struct snd_out *out, enum sonde_status status,
                              struct sonde_error *err);

#endif
