/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/plain_text.h"

#include <inttypes.h>

#include "base/count_of.h"
#include "base/text/utf8.h"

/* Unicode's category Cf, and the separators of lines and paragraphs. */
static bool is_format(uint32_t point)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {
        { 0xad, 0xad },       { 0x600, 0x605 },     { 0x61c, 0x61c },     { 0x6dd, 0x6dd },
        { 0x70f, 0x70f },     { 0x890, 0x891 },     { 0x8e2, 0x8e2 },     { 0x180e, 0x180e },
        { 0x200b, 0x200f },   { 0x2028, 0x202e },   { 0x2060, 0x206f },   { 0xfeff, 0xfeff },
        { 0xfff9, 0xfffb },   { 0x110bd, 0x110bd }, { 0x110cd, 0x110cd }, { 0x13430, 0x1343f },
        { 0x1bca0, 0x1bca3 }, { 0x1d173, 0x1d17a }, { 0xe0001, 0xe007f },
    };

    if (point < ranges[0].first)
        return false;
    for (size_t i = 0; i < SND_COUNT_OF(ranges); i++)
        if (point >= ranges[i].first && point <= ranges[i].last)
            return true;
    return false;
}

static void spell(struct sonde_buffer *buf, uint32_t point)
{
    if (point == '\n' || point == '\t' || point == '\r')
        snd_buf_text(buf, point == '\n' ? "\\n" : point == '\t' ? "\\t" : "\\r");
    else if (point < 0xa0)
        snd_buf_format(buf, "\\x%02" PRIx32, point);
    else
        snd_buf_format(buf, point > 0xffff ? "\\U%08" PRIx32 : "\\u%04" PRIx32, point);
}

void snd_plain_put(struct sonde_buffer *buf, enum snd_plain how, const char *bytes, size_t length)
{
    for (size_t at = 0; at < length;) {
        uint32_t point = 0;
        size_t   step = snd_utf8_next(bytes + at, length - at, &point);

        if (step == 0)
            snd_buf_format(buf, "\\x%02x", (unsigned)(uint8_t)bytes[at]);
        else if (point < 0x20 || (point >= 0x7f && point < 0xa0) ||
                 (how == SND_PLAIN_TERMINAL && is_format(point)))
            spell(buf, point);
        else
            snd_buf_put(buf, bytes + at, step);
        at += step ? step : 1;
    }
}
