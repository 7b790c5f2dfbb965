/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/utf8.h"

#include <inttypes.h>
#include <string.h>

#include "base/count_of.h"

size_t snd_utf8_next(const char *text, size_t length, uint32_t *point)
{
    static const struct {
        uint8_t  mask, lead;
        uint32_t least; /* smaller code points in this form are overlong */
    } forms[] = {
        { 0x80, 0x00, 0 }, { 0xe0, 0xc0, 0x80 }, { 0xf0, 0xe0, 0x800 }, { 0xf8, 0xf0, 0x10000 }
    };
    const uint8_t *at = (const uint8_t *)text;

    for (size_t extra = 0; extra < SND_COUNT_OF(forms); extra++) {
        if ((at[0] & forms[extra].mask) != forms[extra].lead)
            continue;
        if (extra >= length)
            return 0;
        uint32_t value = at[0] & (uint8_t)~forms[extra].mask;
        for (size_t i = 1; i <= extra; i++) {
            if ((at[i] & 0xc0) != 0x80)
                return 0;
            value = value << 6 | (at[i] & 0x3fu);
        }
        if (value < forms[extra].least || value > 0x10ffff || (value >= 0xd800 && value < 0xe000))
            return 0;
        *point = value;
        return extra + 1;
    }
    return 0;
}

size_t snd_utf8_count(const char *text, size_t length)
{
    size_t   count = 0;
    uint32_t point;

    for (size_t at = 0; at < length; count++) {
        size_t step = snd_utf8_next(text + at, length - at, &point);
        at += step ? step : 1;
    }
    return count;
}

size_t snd_utf8_prefix(const char *text, size_t length, size_t count)
{
    size_t   at = 0;
    uint32_t point;

    while (count-- > 0 && at < length) {
        size_t step = snd_utf8_next(text + at, length - at, &point);
        at += step ? step : 1;
    }
    return at;
}

/* ASCII eight bytes at a time. */
size_t snd_utf8_valid(const char *text, size_t length)
{
    uint64_t word;
    uint32_t point;
    size_t   at = 0;

    for (size_t step; at < length; at += step) {
        for (; length - at >= sizeof word; at += sizeof word) {
            memcpy(&word, text + at, sizeof word);
            if (word & 0x8080808080808080u)
                break;
        }
        if (at == length)
            break;
        step = (uint8_t)text[at] < 0x80 ? 1 : snd_utf8_next(text + at, length - at, &point);
        if (step == 0)
            break;
    }
    return at;
}

void snd_utf8_clean(struct sonde_buffer *out, const char *text, size_t length)
{
    for (size_t from = 0; from < length;) {
        size_t valid = snd_utf8_valid(text + from, length - from);
        snd_buf_put(out, text + from, valid);
        from += valid;
        if (from < length) {
            snd_buf_text(out, "\xef\xbf\xbd");
            from++;
        }
    }
}

/* ------------------------------------------------------- text for terminals */

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
