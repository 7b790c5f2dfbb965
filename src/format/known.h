/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format/known.h - names of ranges and counters that both sides know: format/known.def.
 *
 * Layer: format (no I/O, no state).
 */
#ifndef SND_FORMAT_KNOWN_H
#define SND_FORMAT_KNOWN_H

enum snd_known {
#define SND_KNOWN(name, text, follows, summary) SND_KNOWN_##name,
#include "format/known.def"
#undef SND_KNOWN
    SND_KNOWN_COUNT
};

static inline const char *snd_known_name(enum snd_known known)
{
    static const char *const names[] = {
#define SND_KNOWN(name, text, follows, summary) text,
#include "format/known.def"
#undef SND_KNOWN
    };

    return names[known];
}

#endif
