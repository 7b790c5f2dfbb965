/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols/names/rust_names.h - Rust's newer mangling ("_R..", RFC 2603), for demangle.h.
 *
 * Layer: symbols (sees base/).
 */
#ifndef SND_SYMBOLS_NAMES_RUST_NAMES_H
#define SND_SYMBOLS_NAMES_RUST_NAMES_H

#include "base/text/buf.h"

/* `name` is what follows "_R", without a suffix. False: malformed; `out` may then hold a part. */
bool snd_rust_v0(const char *name, size_t length, struct sonde_buffer *out);

#endif
