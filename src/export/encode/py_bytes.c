/* SPDX-License-Identifier: Apache-2.0 */
#include "export/encode/py_bytes.h"

#include <string.h>

#include "base/text/utf8.h"
#include "export/encode/little_endian.h"

/*
 * Text as UTF-8 that Python reads with surrogatepass: a byte 0xNN that is not UTF-8 becomes the
 * lone surrogate U+DCNN, as os.fsdecode gives it. Borrowed until `buf` is used again.
 */
static struct sonde_text make_utf8(struct sonde_buffer *buf, struct sonde_text text)
{
    const char *at = text.bytes, *end = text.bytes + text.length;

    snd_buf_clear(buf);
    while (at < end) {
        uint32_t point;
        size_t   length = snd_utf8_next(at, (size_t)(end - at), &point);
        if (length > 0) {
            snd_buf_put(buf, at, length);
            at += length;
        } else {
            unsigned      code = 0xdc00u + (unsigned char)*at++;
            unsigned char three[3] = { (unsigned char)(0xe0 | code >> 12),
                                       (unsigned char)(0x80 | (code >> 6 & 0x3f)),
                                       (unsigned char)(0x80 | (code & 0x3f)) };
            snd_buf_put(buf, three, sizeof three);
        }
    }
    return (struct sonde_text){ snd_buf_string(buf), buf->length };
}

static uint64_t bits_of(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* ------------------------------------------------------------------ marshal */

void snd_marshal_text(struct snd_out *out, struct sonde_text text, struct sonde_buffer *buf)
{
    struct sonde_text shown = make_utf8(buf, text);

    snd_out_text(out, "u");
    snd_out_le(out, shown.length, 4);
    snd_out_put(out, shown.bytes, shown.length);
}

/* A long integer is digits of 15 bits, lowest first. */
void snd_marshal_int(struct snd_out *out, uint64_t value)
{
    unsigned digits = 0;

    if (value <= INT32_MAX) {
        snd_out_text(out, "i");
        snd_out_le(out, value, 4);
        return;
    }
    for (uint64_t rest = value; rest != 0; rest >>= 15)
        digits++;
    snd_out_text(out, "l");
    snd_out_le(out, digits, 4);
    for (; value != 0; value >>= 15)
        snd_out_le(out, value & 0x7fff, 2);
}

void snd_marshal_real(struct snd_out *out, double value)
{
    snd_out_text(out, "g");
    snd_out_le(out, bits_of(value), 8);
}

void snd_marshal_tuple(struct snd_out *out, uint32_t count)
{
    snd_out_text(out, "(");
    snd_out_le(out, count, 4);
}

/* ------------------------------------------------------------------- pickle */

void snd_pickle_text(struct snd_out *out, struct sonde_text text, struct sonde_buffer *buf)
{
    struct sonde_text shown = make_utf8(buf, text);

    snd_out_text(out, "X");
    snd_out_le(out, shown.length, 4);
    snd_out_put(out, shown.bytes, shown.length);
}

void snd_pickle_int(struct snd_out *out, uint64_t value)
{
    if (value <= INT32_MAX) {
        snd_out_text(out, "J");
        snd_out_le(out, value, 4);
        return;
    }
    snd_out_text(out, "\x8a\x09"); /* LONG1, of nine bytes: the last keeps it positive */
    snd_out_le(out, value, 8);
    snd_out_le(out, 0, 1);
}

void snd_pickle_real(struct snd_out *out, double value)
{
    uint64_t bits = bits_of(value);

    snd_out_text(out, "G"); /* highest byte first */
    for (unsigned i = 8; i-- > 0;)
        snd_out_le(out, bits >> 8 * i & 0xff, 1);
}
