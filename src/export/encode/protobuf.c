/* SPDX-License-Identifier: Apache-2.0 */
#include "export/encode/protobuf.h"

#include <string.h>

#include "base/text/utf8.h"

void snd_pb_varint(struct sonde_buffer *buf, uint64_t value)
{
    char *to = snd_buf_room(buf, SND_PB_VARINT_MAX);

    if (to)
        snd_buf_end(buf, snd_pb_put_varint(to, value));
}

void snd_pb_double(struct sonde_buffer *buf, unsigned field, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    snd_pb_fixed64(buf, field, bits);
}

void snd_pb_text(struct sonde_buffer *buf, unsigned field, struct sonde_text text)
{
    if (snd_utf8_valid(text.bytes, text.length) < text.length) {
        size_t at = snd_pb_open(buf, field);
        snd_utf8_clean(buf, text.bytes, text.length);
        snd_pb_close(buf, at);
        return;
    }
    char *to = snd_buf_room(buf, 2 * SND_PB_VARINT_MAX + text.length);
    if (!to)
        return;
    to = snd_pb_put_varint(snd_pb_put_tag(to, field, SND_PB_BYTES), text.length);
    if (text.length > 0)
        memcpy(to, text.bytes, text.length);
    snd_buf_end(buf, to + text.length);
}

void snd_pb_string(struct sonde_buffer *buf, unsigned field, const char *text)
{
    snd_pb_text(buf, field, (struct sonde_text){ text, strlen(text) });
}
