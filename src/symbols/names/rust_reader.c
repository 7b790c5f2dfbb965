/* SPDX-License-Identifier: Apache-2.0 */
#include "symbols/names/rust_reader.h"

#include <string.h>

#define DEPTH_MOST 200u
#define TEXT_MOST 60000u
#define LETTERS_MOST 512u /* characters of an identifier that is not ASCII */

/* ------------------------------------------------------------------ characters */

static char peek(const struct snd_rust_reader *r)
{
    return r->at < r->length ? r->name[r->at] : '\0';
}

char snd_rust_next(struct snd_rust_reader *r)
{
    char c = peek(r);

    r->failed |= c == '\0';
    r->at += c != '\0';
    return c;
}

bool snd_rust_eat(struct snd_rust_reader *r, char c)
{
    if (r->failed || peek(r) != c)
        return false;
    r->at++;
    return true;
}

void snd_rust_put(struct snd_rust_reader *r, const char *text, size_t length)
{
    if (r->failed || r->silent)
        return;
    if (r->out->length + length > TEXT_MOST)
        r->failed = true;
    else
        snd_buf_put(r->out, text, length);
}

void snd_rust_say(struct snd_rust_reader *r, const char *text)
{
    snd_rust_put(r, text, strlen(text));
}

void snd_rust_say_number(struct snd_rust_reader *r, uint64_t number)
{
    char text[24];
    int  at = sizeof text;

    do
        text[--at] = (char)('0' + number % 10);
    while ((number /= 10) != 0);
    snd_rust_put(r, text + at, sizeof text - (size_t)at);
}

bool snd_rust_enter(struct snd_rust_reader *r)
{
    r->failed |= ++r->depth > DEPTH_MOST || ++r->steps > SND_RUST_STEPS_MOST;
    return !r->failed;
}

void snd_rust_leave(struct snd_rust_reader *r)
{
    r->depth--;
}

/* --------------------------------------------------------------------- numbers */

uint64_t snd_rust_read_base62(struct snd_rust_reader *r)
{
    uint64_t number = 0;

    if (snd_rust_eat(r, '_'))
        return 0;
    while (!r->failed && !snd_rust_eat(r, '_')) {
        char     c = snd_rust_next(r);
        uint64_t digit = 0;
        if (c >= '0' && c <= '9')
            digit = (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'z')
            digit = (uint64_t)(c - 'a') + 10;
        else if (c >= 'A' && c <= 'Z')
            digit = (uint64_t)(c - 'A') + 36;
        else
            r->failed = true;
        if (number > (UINT64_MAX - digit) / 62 - 1)
            r->failed = true;
        number = number * 62 + digit;
    }
    return number + 1;
}

uint64_t snd_rust_read_optional(struct snd_rust_reader *r, char tag)
{
    return snd_rust_eat(r, tag) ? snd_rust_read_base62(r) + 1 : 0;
}

/* ----------------------------------------------------------------- identifiers */

struct snd_rust_ident snd_rust_read_ident(struct snd_rust_reader *r)
{
    struct snd_rust_ident ident = { 0 };
    bool                  is_puny = snd_rust_eat(r, 'u');
    size_t                length = 0;
    char                  c = snd_rust_next(r);

    if (c < '0' || c > '9')
        r->failed = true;
    length = (size_t)(c - '0');
    if (length != 0)
        while (!r->failed && peek(r) >= '0' && peek(r) <= '9' && length < 100000)
            length = length * 10 + (size_t)(snd_rust_next(r) - '0');
    snd_rust_eat(r, '_');
    if (r->failed || length > r->length - r->at) {
        r->failed = true;
        return ident;
    }
    ident.ascii = r->name + r->at;
    ident.ascii_length = length;
    r->at += length;
    if (!is_puny)
        return ident;
    const char *bar = length > 0 ? memrchr(ident.ascii, '_', length) : NULL;
    ident.puny = bar ? bar + 1 : ident.ascii;
    ident.puny_length = (size_t)(ident.ascii + length - ident.puny);
    ident.ascii_length = bar ? (size_t)(bar - ident.ascii) : 0;
    r->failed |= ident.puny_length == 0;
    return ident;
}

/* Punycode (RFC 3492), with its constants. */
static bool decode_puny(const struct snd_rust_ident *ident, uint32_t *letters, size_t *count)
{
    size_t   bias = 72, base = 36, low = 1, high = 26, damp = 700, i = 0;
    uint64_t code = 128;

    *count = 0;
    for (; *count < ident->ascii_length; (*count)++)
        letters[*count] = (unsigned char)ident->ascii[*count];
    for (size_t at = 0; at < ident->puny_length;) {
        size_t delta = 0, weight = 1;
        for (size_t k = base;; k += base) {
            size_t t = k <= bias ? low : k - bias > high ? high : k - bias;
            if (at == ident->puny_length || *count >= LETTERS_MOST)
                return false;
            char c = ident->puny[at++];
            if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')))
                return false;
            size_t digit = c >= 'a' ? (size_t)(c - 'a') : (size_t)(c - '0') + 26;
            if (weight > UINT32_MAX)
                return false;
            delta += digit * weight;
            if (digit < t)
                break;
            weight *= base - t;
        }
        i += delta;
        code += i / (*count + 1);
        i %= *count + 1;
        if (code > 0x10ffff)
            return false;
        memmove(letters + i + 1, letters + i, (*count - i) * sizeof *letters);
        letters[i++] = (uint32_t)code;
        (*count)++;
        delta /= damp;
        damp = 2;
        delta += delta / *count;
        size_t k = 0;
        for (; delta > (base - low) * high / 2; k += base)
            delta /= base - low;
        bias = k + (base - low + 1) * delta / (delta + 38);
    }
    return true;
}

void snd_rust_say_ident(struct snd_rust_reader *r, const struct snd_rust_ident *ident)
{
    uint32_t letters[LETTERS_MOST + 1];
    size_t   count;

    if (r->failed || r->silent)
        return;
    if (ident->puny_length == 0) {
        snd_rust_put(r, ident->ascii, ident->ascii_length);
    } else if (ident->ascii_length < LETTERS_MOST && decode_puny(ident, letters, &count)) {
        for (size_t i = 0; i < count && !r->failed; i++) {
            snd_rust_character(r->out, letters[i]);
            r->failed |= r->out->length > TEXT_MOST;
        }
    } else {
        snd_rust_say(r, "punycode{");
        if (ident->ascii_length > 0) {
            snd_rust_put(r, ident->ascii, ident->ascii_length);
            snd_rust_say(r, "-");
        }
        snd_rust_put(r, ident->puny, ident->puny_length);
        snd_rust_say(r, "}");
    }
}

void snd_rust_character(struct sonde_buffer *out, uint32_t code)
{
    char bytes[4];
    int  count = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

    if (code < 0x20 || code == 0x7f || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
        snd_buf_format(out, "\\u{%x}", (unsigned)code);
        return;
    }
    for (int i = count - 1; i > 0; i--, code >>= 6)
        bytes[i] = (char)(0x80 | (code & 0x3f));
    bytes[0] = (char)(count == 1 ? code : (0xf00u >> count & 0xf0u) | code);
    snd_buf_put(out, bytes, (size_t)count);
}
