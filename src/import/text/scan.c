/* SPDX-License-Identifier: Apache-2.0 */
#include "import/text/scan.h"

#include <stdlib.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "base/count_of.h"
#include "base/text/buf.h"

const char snd_scan_bad[1] = "";

/* ----------------------------------------------------------------- structure */

#ifdef __SSE2__
/* Bits of the 16 bytes that are a quote, a backslash or a control character. */
static inline unsigned find_special(const char *at)
{
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
    __m128i quote = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"'));
    __m128i slash = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'));
    __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1f)), bytes);

    return (unsigned)_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quote, slash), control));
}
#define STEP 16
#else
static inline unsigned find_special(const char *at)
{
    unsigned found = 0;

    for (unsigned i = 0; i < 8; i++)
        found |= (unsigned)(at[i] == '"' || at[i] == '\\' || (unsigned char)at[i] < 0x20) << i;
    return found;
}
#define STEP 8
#endif

const char *snd_scan_string(const char *at, const char *end, bool *odd)
{
    for (;;) {
        unsigned special = find_special(at);
        if (special == 0) {
            at += STEP;
            if (at >= end)
                return NULL;
            continue;
        }
        at += __builtin_ctz(special);
        if (at >= end)
            return NULL;
        if (*at == '"')
            return at;
        if (*at == '\\') {
            at += 2;
            if (at >= end)
                return NULL;
        } else {
            *odd = true; /* a control character as it is */
            at++;
        }
    }
}

/* What follows a number or a word. */
static const bool ends_scalar[256] = {
    [','] = true,  [']'] = true, ['}'] = true, [' '] = true, ['\n'] = true, ['\r'] = true,
    ['\t'] = true, [':'] = true, ['"'] = true, ['['] = true, ['{'] = true,
};

static inline bool is_digit(char c)
{
    return (unsigned char)(c - '0') < 10;
}

/* A plain number, as nearly all are: returns what follows it; NULL: it is to be looked at more closely. */
static inline const char *scan_plain_number(const char *at)
{
    at += *at == '-';
    if (!is_digit(*at) || (*at == '0' && is_digit(at[1])))
        return NULL;
    while (is_digit(*at))
        at++;
    if (*at == '.' && is_digit(at[1]))
        for (at++; is_digit(*at); at++)
            ;
    return ends_scalar[(unsigned char)*at] ? at : NULL;
}

static bool is_odd_word(const char *at, size_t length)
{
    static const char *const words[] = { "NaN",      "nan",       "-nan", "-NaN",
                                         "Infinity", "-Infinity", "inf",  "-inf" };

    for (size_t i = 0; i < SND_COUNT_OF(words); i++)
        if (strlen(words[i]) == length && memcmp(at, words[i], length) == 0)
            return true;
    return false;
}

static bool is_number(const char *at, const char *end)
{
    const char *digits;

    at += *at == '-';
    digits = at;
    while (at < end && *at >= '0' && *at <= '9')
        at++;
    if (at == digits || (*digits == '0' && at > digits + 1))
        return false;
    if (at < end && *at == '.') {
        digits = ++at;
        while (at < end && *at >= '0' && *at <= '9')
            at++;
        if (at == digits)
            return false;
    }
    if (at < end && (*at == 'e' || *at == 'E')) {
        at++;
        at += at < end && (*at == '+' || *at == '-');
        digits = at;
        while (at < end && *at >= '0' && *at <= '9')
            at++;
        if (at == digits)
            return false;
    }
    return at == end;
}

static const char *scan_scalar(const char *at, const char *end, bool *odd)
{
    const char *begin = at, *plain = scan_plain_number(at);

    if (plain && plain < end)
        return plain;
    while (at < end && !ends_scalar[(unsigned char)*at])
        at++;
    if (at == end)
        return NULL;
    size_t length = (size_t)(at - begin);
    if (length == 0)
        return SND_SCAN_BAD;
    if ((length == 4 && (memcmp(begin, "true", 4) == 0 || memcmp(begin, "null", 4) == 0)) ||
        (length == 5 && memcmp(begin, "false", 5) == 0) || is_number(begin, at))
        return at;
    if (!is_odd_word(begin, length))
        return SND_SCAN_BAD;
    *odd = true;
    return at;
}

/* Which of the lists and objects around a place are lists: a bit each. */
struct nesting {
    uint64_t is_list[SND_SCAN_DEPTH / 64];
    unsigned depth;
};

static inline bool is_in_list(const struct nesting *n)
{
    return n->depth > 0 && (n->is_list[(n->depth - 1) / 64] >> ((n->depth - 1) % 64) & 1) != 0;
}

/* False: it is too deep. */
static inline bool enter(struct nesting *n, bool is_list)
{
    if (n->depth == SND_SCAN_DEPTH)
        return false;
    uint64_t bit = (uint64_t)1 << n->depth % 64, *word = &n->is_list[n->depth / 64];
    *word = is_list ? *word | bit : *word & ~bit;
    n->depth++;
    return true;
}

/* A key and its colon: returns where its value begins. */
static inline const char *scan_key(const char *at, const char *end, bool *odd)
{
    if (*at != '"')
        return SND_SCAN_BAD;
    at = snd_scan_string(at + 1, end, odd);
    if (!at)
        return NULL;
    at = snd_scan_space(at + 1);
    if (at >= end)
        return NULL;
    if (*at != ':')
        return SND_SCAN_BAD;
    at = snd_scan_space(at + 1);
    return at < end ? at : NULL;
}

/* A value with nothing inside; numbers first, of which there are most. */
static inline const char *scan_flat(const char *at, const char *end, bool *odd)
{
    if (is_digit(*at)) {
        const char *plain = scan_plain_number(at);
        if (plain && plain < end)
            return plain;
    }
    if (*at != '"')
        return scan_scalar(at, end, odd);
    at = snd_scan_string(at + 1, end, odd);
    return at ? at + 1 : NULL;
}

/* A list or an object, with all that is in it; no recursion, so that nesting costs nothing but a bit. */
static const char *scan_nested(const char *at, const char *end, bool *odd)
{
    struct nesting n = { .depth = 0 };
    bool           wants_value = true; /* a value or the end, not a comma */
    bool           after_comma = false;

    for (;;) {
        at = snd_scan_space(at);
        if (at >= end)
            return NULL;
        bool in_list = is_in_list(&n);
        if (*at == ']' || *at == '}') {
            if (n.depth == 0 || in_list != (*at == ']'))
                return SND_SCAN_BAD;
            *odd |= after_comma;
            after_comma = wants_value = false;
            at++;
            if (--n.depth == 0)
                return at;
            continue;
        }
        if (!wants_value) {
            if (*at != ',')
                return SND_SCAN_BAD;
            at++;
            wants_value = after_comma = true;
            continue;
        }
        if (n.depth > 0 && !in_list)
            at = scan_key(at, end, odd);
        if (!at || at == SND_SCAN_BAD)
            return at;
        after_comma = false;
        wants_value = *at == '[' || *at == '{';
        if (wants_value)
            at = enter(&n, *at == '[') ? at + 1 : SND_SCAN_BAD;
        else
            at = scan_flat(at, end, odd);
        if (!at || at == SND_SCAN_BAD)
            return at;
    }
}

const char *snd_scan_value(const char *at, const char *end, bool *odd)
{
    if (at >= end)
        return NULL;
    if (*at == '"') {
        at = snd_scan_string(at + 1, end, odd);
        return at ? at + 1 : NULL;
    }
    return *at == '[' || *at == '{' ? scan_nested(at, end, odd) : scan_scalar(at, end, odd);
}

const char *snd_scan_member(const char *at, const char *end, struct snd_span *key,
                            struct snd_span *value, bool *odd)
{
    key->length = 0;
    key->at = NULL;
    at = snd_scan_next(at, end, '}', odd);
    if (!at)
        return NULL;
    if (*at == '}')
        return at + 1;
    if (*at != '"')
        return SND_SCAN_BAD;
    const char *quote = snd_scan_string(at + 1, end, odd);
    if (!quote)
        return NULL;
    struct snd_span found = { at + 1, (size_t)(quote - at - 1) };
    at = quote + 1;
    if (*at != ':') {
        at = snd_scan_space(at);
        if (at >= end)
            return NULL;
        if (*at != ':')
            return SND_SCAN_BAD;
    }
    at = snd_scan_space(at + 1);
    value->at = at;
    at = snd_scan_value(at, end, odd);
    if (!at || at == SND_SCAN_BAD)
        return at;
    value->length = (size_t)(at - value->at);
    *key = found;
    return at;
}

const char *snd_scan_element(const char *at, const char *end, struct snd_span *value, bool *odd)
{
    value->length = 0;
    at = snd_scan_next(at, end, ']', odd);
    if (!at)
        return NULL;
    if (*at == ']')
        return at + 1;
    value->at = at;
    at = snd_scan_value(at, end, odd);
    if (at && at != SND_SCAN_BAD)
        value->length = (size_t)(at - value->at);
    return at;
}

/* --------------------------------------------------------------------- texts */

bool snd_scan_plain(struct snd_span value, struct snd_span *inside)
{
    if (value.length < 2 || value.at[0] != '"')
        return false;
    *inside = (struct snd_span){ value.at + 1, value.length - 2 };
    return !memchr(inside->at, '\\', inside->length);
}

/* Four hexadecimal digits; false if they are not. */
static bool read_hex(const char *at, const char *end, uint32_t *code)
{
    *code = 0;
    if (end - at < 4)
        return false;
    for (int i = 0; i < 4; i++) {
        char c = at[i];
        int  digit = c >= '0' && c <= '9'   ? c - '0'
                     : c >= 'a' && c <= 'f' ? c - 'a' + 10
                     : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                            : -1;
        if (digit < 0)
            return false;
        *code = *code << 4 | (uint32_t)digit;
    }
    return true;
}

static void put_code(struct sonde_buffer *out, uint32_t code)
{
    char   bytes[4];
    size_t n;

    if (code >= 0xdc80 &&
        code <= 0xdcff) { /* a byte that was no UTF-8: base/text/json.h writes it so */
        bytes[0] = (char)(code & 0xff);
        n = 1;
    } else if (code < 0x80) {
        bytes[0] = (char)code;
        n = 1;
    } else if (code < 0x800) {
        bytes[0] = (char)(0xc0 | code >> 6);
        bytes[1] = (char)(0x80 | (code & 0x3f));
        n = 2;
    } else if (code < 0x10000) {
        bytes[0] = (char)(0xe0 | code >> 12);
        bytes[1] = (char)(0x80 | (code >> 6 & 0x3f));
        bytes[2] = (char)(0x80 | (code & 0x3f));
        n = 3;
    } else {
        bytes[0] = (char)(0xf0 | code >> 18);
        bytes[1] = (char)(0x80 | (code >> 12 & 0x3f));
        bytes[2] = (char)(0x80 | (code >> 6 & 0x3f));
        bytes[3] = (char)(0x80 | (code & 0x3f));
        n = 4;
    }
    snd_buf_put(out, bytes, n);
}

/* `at` is behind a backslash; returns what follows the escape. */
static const char *put_escape(struct sonde_buffer *out, const char *at, const char *end)
{
    static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
    uint32_t          code, second;
    const char       *known = *at ? strchr(from, *at) : NULL;

    if (known) {
        snd_buf_put(out, &to[known - from], 1);
        return at + 1;
    }
    if (*at != 'u' || !read_hex(at + 1, end, &code)) {
        snd_buf_put(out, at, 1);
        return at + 1;
    }
    at += 5;
    if (code >= 0xd800 && code < 0xdc00 && end - at >= 6 && at[0] == '\\' && at[1] == 'u' &&
        read_hex(at + 2, end, &second) && second >= 0xdc00 && second < 0xe000) {
        put_code(out, 0x10000 + ((code - 0xd800) << 10) + (second - 0xdc00));
        return at + 6;
    }
    put_code(out, code);
    return at;
}

void snd_scan_text(struct snd_span value, struct sonde_buffer *out)
{
    const char *at = value.at, *end = value.at + value.length;

    if (value.length < 2 || *at != '"') {
        snd_buf_put(out, value.at, value.length);
        return;
    }
    for (at++, end--; at < end;) {
        const char *slash = memchr(at, '\\', (size_t)(end - at));
        if (!slash || slash + 1 >= end) {
            snd_buf_put(out, at, (size_t)(end - at));
            return;
        }
        snd_buf_put(out, at, (size_t)(slash - at));
        at = put_escape(out, slash + 1, end);
    }
}

/* ------------------------------------------------------------------- numbers */

/* Without the quotes that some writers put around numbers. */
static struct snd_span unquote(struct snd_span value)
{
    if (value.length >= 2 && value.at[0] == '"')
        return (struct snd_span){ value.at + 1, value.length - 2 };
    return value;
}

bool snd_scan_uint(struct snd_span value, uint64_t *number)
{
    value = unquote(value);
    *number = 0;
    if (value.length == 0)
        return false;
    bool hex = value.length > 2 && value.at[0] == '0' && (value.at[1] == 'x' || value.at[1] == 'X');
    for (size_t i = hex ? 2 : 0; i < value.length; i++) {
        char     c = value.at[i];
        unsigned digit = c >= '0' && c <= '9'          ? (unsigned)(c - '0')
                         : hex && c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
                         : hex && c >= 'A' && c <= 'F' ? (unsigned)(c - 'A' + 10)
                                                       : 99;
        if (digit == 99 || __builtin_mul_overflow(*number, hex ? 16u : 10u, number) ||
            __builtin_add_overflow(*number, digit, number))
            return false;
    }
    return true;
}

bool snd_scan_int(struct snd_span value, int64_t *number)
{
    uint64_t size;
    bool     minus;

    value = unquote(value);
    minus = value.length > 1 && value.at[0] == '-';
    if (!snd_scan_uint((struct snd_span){ value.at + minus, value.length - minus }, &size) ||
        size > (uint64_t)INT64_MAX)
        return false;
    *number = minus ? -(int64_t)size : (int64_t)size;
    return true;
}

bool snd_scan_real(struct snd_span value, double *number)
{
    char  text[64];
    char *end;

    value = unquote(value);
    if (value.length == 0 || value.length >= sizeof text)
        return false;
    memcpy(text, value.at, value.length);
    text[value.length] = '\0';
    *number = strtod(text, &end);
    return end == text + value.length;
}

/* Digits with an exponent: few writers have them, so the point is moved by hand. */
static bool read_scaled(struct snd_span value, int64_t *ns, bool *inexact)
{
    char   plain[128];
    size_t n = 0, point = SIZE_MAX, at = 0;
    long   exponent;
    bool   minus = value.at[0] == '-';

    for (at = minus; at < value.length && value.at[at] != 'e' && value.at[at] != 'E'; at++) {
        if (value.at[at] == '.')
            point = n;
        else if (value.at[at] < '0' || value.at[at] > '9' || n >= 64)
            return false;
        else
            plain[n++] = value.at[at];
    }
    int64_t         power;
    struct snd_span digits = { value.at + at + 1, at < value.length ? value.length - at - 1 : 0 };
    if (digits.length > 1 && digits.at[0] == '+')
        digits = (struct snd_span){ digits.at + 1, digits.length - 1 };
    if (!snd_scan_int(digits, &power) || power > 60 || power < -60)
        return false;
    exponent = (long)power + (long)(point == SIZE_MAX ? n : point) +
               3; /* places before the point, in ns */
    uint64_t whole = 0;
    for (long i = 0; i < exponent; i++)
        if (__builtin_mul_overflow(whole, 10u, &whole) ||
            __builtin_add_overflow(whole, i < (long)n ? (uint64_t)(plain[i] - '0') : 0u, &whole))
            return false;
    for (long i = exponent > 0 ? exponent : 0; i < (long)n; i++)
        *inexact |= plain[i] != '0';
    if (whole > (uint64_t)INT64_MAX)
        return false;
    *ns = minus ? -(int64_t)whole : (int64_t)whole;
    return true;
}

bool snd_scan_us(struct snd_span value, int64_t *ns, bool *inexact)
{
    value = unquote(value);
    bool     minus = value.length > 0 && value.at[0] == '-';
    size_t   at = minus;
    uint64_t whole = 0;
    unsigned places = 0;

    if (at >= value.length)
        return false;
    for (; at < value.length && value.at[at] >= '0' && value.at[at] <= '9'; at++)
        if (__builtin_mul_overflow(whole, 10u, &whole) ||
            __builtin_add_overflow(whole, (unsigned)(value.at[at] - '0'), &whole))
            return false;
    if (at < value.length && value.at[at] == '.')
        for (at++; at < value.length && value.at[at] >= '0' && value.at[at] <= '9'; at++) {
            if (places < 3) {
                if (__builtin_mul_overflow(whole, 10u, &whole) ||
                    __builtin_add_overflow(whole, (unsigned)(value.at[at] - '0'), &whole))
                    return false;
                places++;
            } else {
                *inexact |= value.at[at] != '0';
            }
        }
    if (at < value.length)
        return read_scaled(value, ns, inexact);
    for (; places < 3; places++)
        if (__builtin_mul_overflow(whole, 10u, &whole))
            return false;
    if (whole > (uint64_t)INT64_MAX)
        return false;
    *ns = minus ? -(int64_t)whole : (int64_t)whole;
    return true;
}
