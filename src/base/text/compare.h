/* SPDX-License-Identifier: Apache-2.0 */
/* base/text/compare.h - bytes of a known length beside a word: equal, how they begin, how they end; and their order. */
#ifndef SND_BASE_TEXT_COMPARE_H
#define SND_BASE_TEXT_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/data/sort.h"

static inline bool snd_equals_at(const char *text, size_t length, const char *word)
{
    return length == strlen(word) && memcmp(text, word, length) == 0;
}

static inline bool snd_begins_with_at(const char *text, size_t length, const char *beginning)
{
    size_t head = strlen(beginning);

    return length >= head && memcmp(text, beginning, head) == 0;
}

static inline bool snd_ends_with_at(const char *text, size_t length, const char *ending)
{
    size_t tail = strlen(ending);

    return length >= tail && memcmp(text + length - tail, ending, tail) == 0;
}

/* Below, equal to or above 0: by bytes; what the other begins with comes first. */
static inline int snd_order_at(const char *x, size_t x_length, const char *y, size_t y_length)
{
    size_t least = x_length < y_length ? x_length : y_length;
    int    order = least ? memcmp(x, y, least) : 0; /* of nothing there may be no bytes */

    return order ? order : SND_RISING(x_length, y_length);
}

static inline bool snd_ends_with(const char *text, const char *ending)
{
    return snd_ends_with_at(text, strlen(text), ending);
}

#endif
