/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/text/nearest.h - "did you mean": the known name that is nearest to a mistyped one.
 *
 *     struct snd_nearest nearest = { .word = typed, .length = strlen(typed) };
 *     char               hint[SND_HINT_MAX];
 *     for (...)
 *         snd_nearest_try(&nearest, known[i]);
 *     fail("unknown view '%s'%s", typed, snd_nearest_hint(&nearest, hint));
 *
 * Layer: base. Threads: any.
 */
#ifndef SND_BASE_TEXT_NEAREST_H
#define SND_BASE_TEXT_NEAREST_H

#include <stddef.h>

struct snd_nearest {
    const char *word; /* as typed; it need not end in a zero */
    size_t      length;
    const char *best; /* borrowed: the nearest candidate so far; NULL: none is near enough */
    size_t      distance;
};

/* Compares one candidate. Of candidates that are equally near, the first stays. */
void snd_nearest_try(struct snd_nearest *nearest, const char *candidate);

#define SND_HINT_MAX 96
/* " (did you mean 'ops'?)", or "" where nothing is near; returns `hint`. */
const char *snd_nearest_hint(const struct snd_nearest *nearest, char hint[SND_HINT_MAX]);

#endif
