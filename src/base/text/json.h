/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/text/json.h - writes JSON as it comes, keeping nothing.
 *
 *     snd_json_object(&json, NULL);              {
 *     snd_json_string(&json, "name", bytes, n);  "name":"...",
 *     snd_json_array(&json, "rows");             "rows":[
 *     snd_json_int(&json, NULL, 3);              3
 *     snd_json_end(&json);                       ]
 *     snd_json_end(&json);                       }
 *
 * Each value takes its key, or NULL inside an array. Text that is UTF-8 passes through;
 * a byte 0xNN that is not becomes the lone surrogate \udcNN (Python's surrogateescape), so
 * that the result is valid and the byte can be had back.
 *
 * Layer: base. Threads: a writer belongs to one thread.
 */
#ifndef SND_BASE_TEXT_JSON_H
#define SND_BASE_TEXT_JSON_H

#include <assert.h>
#include <stdint.h>

#include "base/files/sink.h"

#define SND_JSON_DEPTH 16

struct snd_json {
    struct snd_out *out;
    unsigned        depth, line_depth; /* values up to line_depth begin on a new line */
    bool            lines;             /* there are any, and the whole is one */
    bool            filled;            /* something was written at this depth */
    bool            breaks;            /* this depth is one whose values begin on a new line */
    char            closer[SND_JSON_DEPTH];
};

void snd_json_init(struct snd_json *json, struct snd_out *out);
/* Values at this depth (1: members of the outermost) are on lines of their own. */
void snd_json_break_at(struct snd_json *json, unsigned depth);

/* ---- parts of what follows */

void snd_json_put_string(struct snd_json *json, const char *bytes, size_t length);
/* What goes before a value, with a key that may need escaping. */
void snd_json_put_key(struct snd_json *json, const char *key);

/* Comma and line before a value, at the begin of room for `more` further bytes; returns where they are. */
static inline char *snd_json_lead(struct snd_json *json, size_t more)
{
    char *to = snd_out_room(json->out, more + 2);

    *to = ',';
    to += json->filled;
    json->filled = json->depth > 0;
    *to = '\n';
    return to + json->breaks;
}

/*
 * What goes before a value: comma, line, key. Inline, since most keys are literals, whose length the
 * compiler knows: those are words of ours, which need no escaping.
 */
static inline void snd_json_key(struct snd_json *json, const char *key)
{
    size_t length = key ? strlen(key) : 0;

    if (!__builtin_constant_p(length)) {
        snd_json_put_key(json, key);
        return;
    }
    char *to = snd_json_lead(json, length + 3);
    if (key) {
        *to++ = '"';
        memcpy(to, key, length + 1); /* where its zero is, the quote goes */
        to += length;
        *to++ = '"';
        *to++ = ':';
    }
    json->out->at = to;
}

static inline void snd_json_descend(struct snd_json *json, char opener, char closer)
{
    assert(json->depth < SND_JSON_DEPTH);
    snd_out_put(json->out, &opener, 1);
    json->closer[json->depth++] = closer;
    json->filled = false;
    json->breaks = json->depth <= json->line_depth;
}

/* ---- values */

static inline void snd_json_object(struct snd_json *json, const char *key)
{
    snd_json_key(json, key);
    snd_json_descend(json, '{', '}');
}

static inline void snd_json_array(struct snd_json *json, const char *key)
{
    snd_json_key(json, key);
    snd_json_descend(json, '[', ']');
}

void snd_json_end(struct snd_json *json);

static inline void snd_json_string(struct snd_json *json, const char *key, const char *bytes,
                                   size_t length)
{
    snd_json_key(json, key);
    snd_json_put_string(json, bytes, length);
}

static inline void snd_json_text(struct snd_json *json, const char *key, const char *text)
{
    snd_json_string(json, key, text, strlen(text));
}

static inline void snd_json_int(struct snd_json *json, const char *key, int64_t value)
{
    snd_json_key(json, key);
    snd_out_int(json->out, value);
}

static inline void snd_json_uint(struct snd_json *json, const char *key, uint64_t value)
{
    snd_json_key(json, key);
    snd_out_uint(json->out, value);
}

/* Nanoseconds as microseconds with three decimals: exact. */
static inline void snd_json_us(struct snd_json *json, const char *key, int64_t ns)
{
    snd_json_key(json, key);
    snd_out_us(json->out, ns);
}

/* Text that is JSON already. */
static inline void snd_json_raw(struct snd_json *json, const char *key, const char *text,
                                size_t length)
{
    snd_json_key(json, key);
    snd_out_put(json->out, text, length);
}

static inline void snd_json_bool(struct snd_json *json, const char *key, bool value)
{
    snd_json_raw(json, key, value ? "true" : "false", value ? 4 : 5);
}

static inline void snd_json_null(struct snd_json *json, const char *key)
{
    snd_json_raw(json, key, "null", 4);
}

/* Not a number and infinities become null. */
void snd_json_real(struct snd_json *json, const char *key, double value);

/* Whether `text` is one JSON value, not nested deeper than is sensible. */
bool snd_json_is_value(const char *text, size_t length);

/* Whether `text` is lists of integers, "[[5, 3], []]", and so may be written raw. */
bool snd_json_is_int_lists(const char *text, size_t length);

#endif
