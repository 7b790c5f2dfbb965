/* SPDX-License-Identifier: Apache-2.0 */
#include "read/metadata.h"

#include <string.h>

static bool is_each(enum snd_meta meta)
{
    static const bool each[] = {
#define SND_META(name, key, value, summary) false,
#define SND_META_EACH(name, prefix, value, summary) true,
#include "format/metadata.def"
#undef SND_META_EACH
#undef SND_META
    };

    return each[meta];
}

bool snd_meta_is(struct sonde_text key, enum snd_meta meta)
{
    const char *wanted = snd_meta_key(meta);
    size_t      length = strlen(wanted);

    return (is_each(meta) ? key.length > length : key.length == length) &&
           memcmp(key.bytes, wanted, length) == 0;
}

bool snd_meta_next(const struct sonde_trace *trace, uint32_t process, enum snd_meta meta,
                   uint32_t *at, struct sonde_text *rest, struct sonde_text *value)
{
    size_t            length = strlen(snd_meta_key(meta));
    struct sonde_text key;

    while (sonde_trace_metadata(trace, process, (*at)++, &key, value)) {
        if (!snd_meta_is(key, meta))
            continue;
        if (rest)
            *rest = (struct sonde_text){ key.bytes + length, key.length - length };
        return true;
    }
    return false;
}

bool snd_meta_find(const struct sonde_trace *trace, uint32_t process, enum snd_meta meta,
                   struct sonde_text *value)
{
    uint32_t at = 0;

    if (snd_meta_next(trace, process, meta, &at, NULL, value))
        return true;
    *value = (struct sonde_text){ "", 0 };
    return false;
}
