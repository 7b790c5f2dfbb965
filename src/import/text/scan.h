/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import/text/scan.h - reads JSON where it lies, a value at a time, keeping nothing.
 *
 * Text ends at `end`, and SND_SCAN_PAD bytes behind it may be read: zeroes. A function that comes to the end before its
 * value does returns NULL, and can be called again once there is more text. What is not JSON returns SND_SCAN_BAD.
 * More is taken than JSON allows, as programs write it: control characters in strings, NaN and Infinity,
 * commas at the end of a list; `odd` says that there was any.
 *
 * Layer: import (sees base/, format/). Threads: no state.
 */
#ifndef SND_IMPORT_TEXT_SCAN_H
#define SND_IMPORT_TEXT_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "sonde/sink.h"

#define SND_SCAN_PAD 64
#define SND_SCAN_DEPTH 512 /* of lists in lists: more is refused */

extern const char snd_scan_bad[1];
#define SND_SCAN_BAD (snd_scan_bad)

/* A value as it is written: a string with its quotes. No bytes: there is none. */
struct snd_span {
    const char *at;
    size_t      length;
};

static inline bool snd_span_is(struct snd_span span, const char *text, size_t length)
{
    return span.length == length && memcmp(span.at, text, length) == 0;
}

static inline const char *snd_scan_space(const char *at)
{
    while (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t')
        at++;
    return at;
}

/* Before a member or an element: a comma. Returns where it begins, or where `closer` is. */
static inline const char *snd_scan_next(const char *at, const char *end, char closer, bool *odd)
{
    bool comma = false;

    at = snd_scan_space(at);
    if (*at == ',') {
        comma = true;
        at = snd_scan_space(at + 1);
    }
    if (at >= end)
        return NULL;
    *odd |= comma && *at == closer;
    return at;
}

/* `at` is behind the opening quote; returns where the closing one is. */
const char *snd_scan_string(const char *at, const char *end, bool *odd);
/* Returns what follows the value at `at`. */
const char *snd_scan_value(const char *at, const char *end, bool *odd);

/*
 * The next member of an object, `at` being behind its brace or behind the last member: returns what follows
 * the member; where there is none, `*key` has no bytes and the object's end was passed. The key is without its quotes.
 */
const char *snd_scan_member(const char *at, const char *end, struct snd_span *key,
                            struct snd_span *value, bool *odd);
/* The next element of a list, likewise. */
const char *snd_scan_element(const char *at, const char *end, struct snd_span *value, bool *odd);

/* Appends the characters of a string, quotes included; of another value its text. */
void snd_scan_text(struct snd_span value, struct sonde_buffer *out);
/* What is between the quotes, if it has no escapes: then it need not be copied. */
bool snd_scan_plain(struct snd_span value, struct snd_span *inside);

/* A number, written as one or as a string of one. False: it is none, or does not fit. */
bool snd_scan_int(struct snd_span value, int64_t *number);
bool snd_scan_uint(struct snd_span value, uint64_t *number);
bool snd_scan_real(struct snd_span value, double *number);
/* Decimal microseconds as nanoseconds, by their digits; `inexact`: there were digits below, which are cut off. */
bool snd_scan_us(struct snd_span value, int64_t *ns, bool *inexact);

#endif
