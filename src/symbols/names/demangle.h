/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols/names/demangle.h - names of functions as programmers wrote them.
 *
 * C++ by libstdc++'s own demangler, opened when first needed; Rust (both manglings) by our own.
 * A name that is neither, or is malformed, stays as it is.
 *
 * Layer: symbols (sees base/). Threads: one at a time uses a demangler.
 */
#ifndef SND_SYMBOLS_NAMES_DEMANGLE_H
#define SND_SYMBOLS_NAMES_DEMANGLE_H

#include "base/text/buf.h"

/* All zero: nothing opened yet. */
struct snd_demangler {
    char *(*cxx)(const char *, char *, size_t *, int *); /* __cxa_demangle, or NULL */
    bool                looked;
    struct sonde_buffer text;
};

/* The name to show: `name` itself, or text that stays until the next call. */
const char *snd_demangle(struct snd_demangler *demangler, const char *name);
void        snd_demangler_release(struct snd_demangler *demangler);

/* Writes the demangled name into `out`, which is emptied first. False: not a name of Rust's. */
bool snd_rust_demangle(const char *name, struct sonde_buffer *out);

#endif
