/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native/resolve.h - the functions at the addresses of a recording, found once, at its end.
 *
 * Layer: native. Threads: one.
 */
#ifndef SND_NATIVE_RESOLVE_H
#define SND_NATIVE_RESOLVE_H

#include <stddef.h>
#include <stdint.h>

#include "sonde/record.h"

struct snd_resolver {
    uint32_t (*intern)(const char *text, size_t length);
    void (*symbol)(uint32_t frame, const struct sonde_symbol *symbols, size_t count);
};

struct snd_resolve_item {
    uint32_t    frame;
    const char *file, *opened, *build_id; /* as symbols/symbols.h has them */
    uint64_t    address;
};

/* Passes every function that is found to the recorder. */
void snd_resolve(const struct snd_resolver *resolver, const struct snd_resolve_item *items,
                 size_t count);

#endif
