/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/encode/little_endian.h - integers as bytes, the lowest first, whatever the machine's order.
 *
 * Layer: export. Threads: any.
 */
#ifndef SND_EXPORT_ENCODE_LITTLE_ENDIAN_H
#define SND_EXPORT_ENCODE_LITTLE_ENDIAN_H

#include "base/files/sink.h"
#include "base/text/buf.h"

/* `count` bytes of it, at most 8; returns where they end. */
static inline char *snd_put_le(char *to, uint64_t value, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        *to++ = (char)(value >> 8 * i);
    return to;
}

static inline void snd_out_le(struct snd_out *out, uint64_t value, unsigned count)
{
    out->at = snd_put_le(snd_out_room(out, 8), value, count);
}

static inline void snd_buf_le(struct sonde_buffer *buf, uint64_t value, unsigned count)
{
    char *to = snd_buf_room(buf, 8);

    if (to)
        snd_buf_end(buf, snd_put_le(to, value, count));
}

#endif
