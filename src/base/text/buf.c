/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/buf.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

bool snd_buf_grow(struct sonde_buffer *buf, size_t length)
{
    if (buf->failed || length > SIZE_MAX / 4 - buf->length) {
        buf->failed = true;
        return false;
    }
    size_t need = buf->length + length + 1;
    if (need <= buf->capacity)
        return true;

    size_t capacity = buf->capacity ? buf->capacity : 64;
    while (capacity < need)
        capacity *= 2;
    char *bytes = realloc(buf->bytes, capacity);
    if (!bytes) {
        buf->failed = true;
        return false;
    }
    buf->bytes = bytes;
    buf->capacity = capacity;
    return true;
}

void snd_buf_put(struct sonde_buffer *buf, const void *data, size_t length)
{
    char *to = snd_buf_room(buf, length);

    if (!to)
        return;
    if (length > 0)
        memcpy(to, data, length);
    snd_buf_end(buf, to + length);
}

void snd_buf_text(struct sonde_buffer *buf, const char *text)
{
    snd_buf_put(buf, text, strlen(text));
}

void snd_buf_format(struct sonde_buffer *buf, const char *format, ...)
{
    va_list args, again;

    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length >= 0 && snd_buf_grow(buf, (size_t)length)) {
        vsnprintf(buf->bytes + buf->length, (size_t)length + 1, format, again);
        buf->length += (size_t)length;
    } else {
        buf->failed = true;
    }
    va_end(again);
}

void snd_buf_clear(struct sonde_buffer *buf)
{
    buf->length = 0;
    if (buf->bytes)
        buf->bytes[0] = '\0';
}

const char *snd_buf_string(const struct sonde_buffer *buf)
{
    return buf->bytes ? buf->bytes : "";
}

void sonde_buffer_release(struct sonde_buffer *buffer)
{
    free(buffer->bytes);
    memset(buffer, 0, sizeof *buffer);
}

/* Whatever the locale put between the digits (it may be several bytes) becomes one full stop. */
static const char *make_neutral(char *text)
{
    char *to = text;
    bool  in_mark = false;

    for (const char *at = text; *at; at++) {
        bool plain = (*at >= '0' && *at <= '9') || (*at >= 'a' && *at <= 'z') || *at == '-' ||
                     *at == '+';
        if (plain)
            *to++ = *at;
        else if (!in_mark)
            *to++ = '.';
        in_mark = !plain;
    }
    *to = '\0';
    return text;
}

const char *snd_number_fixed(char text[SND_NUMBER_MAX], int decimals, double value)
{
    snprintf(text, SND_NUMBER_MAX, "%.*f", decimals, value);
    return make_neutral(text);
}

const char *snd_time_text(char text[SND_NUMBER_MAX], double us, const char *gap)
{
    bool is_s = us >= 1e6, is_ms = us >= 1e3;

    snd_number_fixed(text, 3, us / (is_s ? 1e6 : is_ms ? 1e3 : 1));
    size_t length = strlen(text);
    snprintf(text + length, SND_NUMBER_MAX - length, "%s%s", gap, is_s ? "s" : is_ms ? "ms" : "us");
    return text;
}

const char *snd_number_general(char text[SND_NUMBER_MAX], int digits, double value)
{
    snprintf(text, SND_NUMBER_MAX, "%.*g", digits, value);
    return make_neutral(text);
}

const char *snd_number_shortest(char text[SND_NUMBER_MAX], double value)
{
    if (fabs(value) < 9007199254740992.0 && floor(value) == value) {
        snprintf(text, SND_NUMBER_MAX, "%.0f", value);
        return text;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, SND_NUMBER_MAX, "%.*g", digits, value);
        /* Read back before the mark is made neutral: strtod expects the locale's. */
        if (strtod(text, NULL) == value)
            break;
    }
    return make_neutral(text);
}
