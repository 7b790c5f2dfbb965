/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/text/ending.h - how a text ends: names of files go by it.
 *
 * Layer: base. Threads: any.
 */
#ifndef SND_BASE_TEXT_ENDING_H
#define SND_BASE_TEXT_ENDING_H

#include <stdbool.h>
#include <string.h>

/* Do the first `length` bytes of `text` end so? */
static inline bool snd_ends_with_at(const char *text, size_t length, const char *ending)
{
    size_t tail = strlen(ending);

    return length >= tail && memcmp(text + length - tail, ending, tail) == 0;
}

static inline bool snd_ends_with(const char *text, const char *ending)
{
    return snd_ends_with_at(text, strlen(text), ending);
}

#endif
