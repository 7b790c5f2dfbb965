/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/json.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/text/buf.h"
#include "base/text/utf8.h"

void snd_json_init(struct snd_json *json, struct snd_out *out)
{
    memset(json, 0, sizeof *json);
    json->out = out;
}

void snd_json_break_at(struct snd_json *json, unsigned depth)
{
    json->lines = true;
    json->line_depth = depth;
    json->breaks = json->depth > 0 && json->depth <= depth;
}

/* Of eight bytes: whether all are printable ASCII and neither a quote nor a backslash. */
static bool is_plain(uint64_t bytes)
{
    const uint64_t ones = 0x0101010101010101u, tops = 0x80 * ones;
    uint64_t       quote = bytes ^ '"' * ones, slash = bytes ^ '\\' * ones;

    /* A difference borrows into the top bit of its byte; a wrong answer is never "plain". */
    return ((bytes | (bytes + ones) | (bytes - 0x20 * ones) | (quote - ones) | (slash - ones)) &
            tops) == 0;
}

/* How many bytes in front pass through as they are, and are ASCII. */
static size_t count_plain(const char *bytes, size_t length)
{
    size_t   at = 0;
    uint64_t word;

    for (; length - at >= sizeof word; at += sizeof word) {
        memcpy(&word, bytes + at, sizeof word);
        if (!is_plain(word))
            break;
    }
    while (at < length && bytes[at] >= 0x20 && bytes[at] < 0x7f && bytes[at] != '"' &&
           bytes[at] != '\\')
        at++;
    return at;
}

static void put_escaped(struct snd_out *out, const char *bytes, size_t length)
{
    static const char escapes[] = "\"\"\\\\\bb\ff\nn\rr\tt"; /* pairs: byte, letter */
    size_t            plain = 0;                             /* start of what passes through */

    for (size_t at = count_plain(bytes, length); at < length;
         at += count_plain(bytes + at, length - at)) {
        uint32_t point;
        uint8_t  byte = (uint8_t)bytes[at];
        size_t   step = snd_utf8_next(bytes + at, length - at, &point);

        if (step > 1) {
            at += step;
            continue;
        }
        snd_out_put(out, bytes + plain, at - plain);
        const char *pair = byte ? memchr(escapes, byte, sizeof escapes - 1) : NULL;
        /* Letters are in the list as well, but a letter never comes here. */
        if (step == 0)
            snd_out_format(out, "\\udc%02x", byte);
        else if (pair)
            snd_out_format(out, "\\%c", pair[1]);
        else
            snd_out_format(out, "\\u%04x", byte);
        plain = ++at;
    }
    snd_out_put(out, bytes + plain, length - plain);
}

void snd_json_put_string(struct snd_json *json, const char *bytes, size_t length)
{
    snd_out_put(json->out, "\"", 1);
    put_escaped(json->out, bytes, length);
    snd_out_put(json->out, "\"", 1);
}

void snd_json_put_key(struct snd_json *json, const char *key)
{
    json->out->at = snd_json_lead(json, 0);
    if (!key)
        return;
    snd_json_put_string(json, key, strlen(key));
    snd_out_put(json->out, ":", 1);
}

void snd_json_end(struct snd_json *json)
{
    assert(json->depth > 0);
    char *to = snd_out_room(json->out, 3);

    *to = '\n';
    to += json->breaks && json->filled;
    *to++ = json->closer[--json->depth];
    *to = '\n';
    to += json->depth == 0 && json->lines;
    json->out->at = to;
    json->filled = json->depth > 0;
    json->breaks = json->filled && json->depth <= json->line_depth;
}

void snd_json_real(struct snd_json *json, const char *key, double value)
{
    char text[SND_NUMBER_MAX];

    if (!isfinite(value)) {
        snd_json_null(json, key);
        return;
    }
    snd_json_key(json, key);
    snd_out_text(json->out, snd_number_shortest(text, value));
}

bool snd_json_is_int_lists(const char *text, size_t length)
{
    size_t depth = 0;
    char   before = '[';

    if (length < 2 || text[0] != '[')
        return false;
    for (size_t at = 0; at < length; at++) {
        char c = text[at];
        bool starts = before == '[' || before == ',';

        if (c == ' ' && before == ',')
            continue;
        if (c == '[' && starts && (at == 0 || depth > 0) && depth < 8)
            depth++;
        else if (c == ']' && before != ',' && before != '-' && depth > 0)
            depth--;
        else if (c == ',' && before != ',' && before != '[' && before != '-' && depth > 0)
            ;
        else if (c == '-' && starts && depth > 0)
            ;
        else if (!(c >= '0' && c <= '9' && before != ']' && depth > 0))
            return false;
        before = c;
    }
    return depth == 0;
}

/* --------------------------------------------------------------- is it JSON? */

struct reader {
    const char *at, *end;
};

static void skip_blanks(struct reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'))
        r->at++;
}

static bool skip_byte(struct reader *r, char byte)
{
    skip_blanks(r);
    if (r->at == r->end || *r->at != byte)
        return false;
    r->at++;
    return true;
}

static bool skip_hex(struct reader *r)
{
    for (int i = 0; i < 4; i++, r->at++)
        if (r->at == r->end || !*r->at || !strchr("0123456789abcdefABCDEF", *r->at))
            return false;
    return true;
}

static bool skip_string(struct reader *r)
{
    if (!skip_byte(r, '"'))
        return false;
    while (r->at < r->end && *r->at != '"') {
        if ((unsigned char)*r->at < 0x20)
            return false;
        if (*r->at++ != '\\')
            continue;
        if (r->at == r->end || !*r->at || !strchr("\"\\/bfnrtu", *r->at))
            return false;
        if (*r->at++ == 'u' && !skip_hex(r))
            return false;
    }
    return skip_byte(r, '"');
}

static bool skip_digits(struct reader *r)
{
    const char *start = r->at;

    while (r->at < r->end && *r->at >= '0' && *r->at <= '9')
        r->at++;
    return r->at > start;
}

static bool skip_number(struct reader *r)
{
    if (r->at < r->end && *r->at == '-')
        r->at++;
    if (r->at < r->end && *r->at == '0')
        r->at++;
    else if (!skip_digits(r))
        return false;
    if (r->at < r->end && *r->at == '.') {
        r->at++;
        if (!skip_digits(r))
            return false;
    }
    if (r->at < r->end && (*r->at == 'e' || *r->at == 'E')) {
        r->at++;
        if (r->at < r->end && (*r->at == '+' || *r->at == '-'))
            r->at++;
        return skip_digits(r);
    }
    return true;
}

static bool skip_word(struct reader *r, const char *word)
{
    size_t length = strlen(word);

    if ((size_t)(r->end - r->at) < length || memcmp(r->at, word, length) != 0)
        return false;
    r->at += length;
    return true;
}

static bool skip_value(struct reader *r, int depth)
{
    skip_blanks(r);
    if (r->at == r->end || depth > 64)
        return false;
    char opener = *r->at;
    if (opener == '[' || opener == '{') {
        char closer = opener == '[' ? ']' : '}';
        r->at++;
        if (skip_byte(r, closer))
            return true;
        do {
            if (opener == '{' && !(skip_string(r) && skip_byte(r, ':')))
                return false;
            if (!skip_value(r, depth + 1))
                return false;
        } while (skip_byte(r, ','));
        return skip_byte(r, closer);
    }
    if (opener == '"')
        return skip_string(r);
    if (opener == 't' || opener == 'f' || opener == 'n')
        return skip_word(r, opener == 't' ? "true" : opener == 'f' ? "false" : "null");
    return skip_number(r);
}

bool snd_json_is_value(const char *text, size_t length)
{
    struct reader r = { text, text + length };

    if (!skip_value(&r, 0))
        return false;
    skip_blanks(&r);
    return r.at == r.end;
}
