/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record/given.h - the structs that probes pass (sonde/probe.h): each begins with its size.
 *
 *     struct sonde_sample room;
 *     sample = SND_GIVEN(sample, &room);    as this library has it, or NULL: refused
 *
 * Layer: record. Threads: any.
 */
#ifndef SND_RECORD_GIVEN_H
#define SND_RECORD_GIVEN_H

#include <string.h>

#include "base/hints.h"

/*
 * A struct of another size: a copy in `room`, with missing members 0; NULL, and once a line on
 * stderr, if no struct has that size.
 */
const void *snd_given_other(const void *given, void *room, size_t size, const char *function);

static inline const void *snd_given(const void *given, void *room, size_t size,
                                    const char *function)
{
    size_t stated;

    memcpy(&stated, given, sizeof stated);
    return SND_LIKELY(stated == size) ? given : snd_given_other(given, room, size, function);
}
#define SND_GIVEN(given, room) snd_given((given), (room), sizeof *(room), __func__)

#endif
