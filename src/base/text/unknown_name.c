/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/unknown_name.h"

#include "base/text/buf.h"
#include "base/text/nearest.h"

#define SHOWN_MAX 60 /* bytes of the name */

const char *snd_unknown_text(struct sonde_buffer *out, const char *kind, const char *name,
                             size_t length, snd_name_at *name_at)
{
    struct snd_nearest nearest = { .word = name, .length = length };
    char               hint[SND_HINT_MAX];
    const char        *known;

    for (size_t i = 0; (known = name_at(i)) != NULL; i++)
        snd_nearest_try(&nearest, known);
    snd_buf_format(out, "unknown %s '%.*s'%s; %ss:", kind,
                   (int)(length < SHOWN_MAX ? length : SHOWN_MAX), name,
                   snd_nearest_hint(&nearest, hint), kind);
    for (size_t i = 0; (known = name_at(i)) != NULL; i++)
        snd_buf_format(out, "%s %s", i ? "," : "", known);
    return snd_buf_string(out);
}
