/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format/metadata.h - keys of metadata by name: format/metadata.def is the list.
 *
 *     sonde_metadata(snd_meta_key(SND_META_PYTHON_LINES), "trace function");
 *
 * Writers and readers name a key in no other way (tools/check_schema sees to it).
 *
 * Layer: format (no I/O, no state). In C++ too.
 */
#ifndef SND_FORMAT_METADATA_H
#define SND_FORMAT_METADATA_H

#include <stddef.h>

enum snd_meta {
#define SND_META(name, key, value, summary) SND_META_##name,
#define SND_META_EACH SND_META
#include "format/metadata.def"
#undef SND_META_EACH
#undef SND_META
    SND_META_COUNT
};

/* The key, or what the keys of each begin with. */
static inline const char *snd_meta_key(enum snd_meta meta)
{
    static const char *const keys[] = {
#define SND_META(name, key, value, summary) key,
#define SND_META_EACH SND_META
#include "format/metadata.def"
#undef SND_META_EACH
#undef SND_META
    };

    return keys[meta];
}

#endif
