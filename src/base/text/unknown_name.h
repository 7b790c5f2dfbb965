/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/text/unknown_name.h - the message for a name that is not in a table: the nearest one, and all there are.
 *
 * Layer: base. Threads: any.
 */
#ifndef SND_BASE_TEXT_UNKNOWN_NAME_H
#define SND_BASE_TEXT_UNKNOWN_NAME_H

#include <stddef.h>

struct sonde_buffer;

/* A name of the table by index; NULL past the last. */
typedef const char *snd_name_at(size_t index);

/*
 * "unknown view 'opps' (did you mean 'ops'?); views: summary, ops, ...". `kind` is "view"; `name` need
 * not end in a zero. Borrowed until `out` is released; a text in any case.
 */
const char *snd_unknown_text(struct sonde_buffer *out, const char *kind, const char *name,
                             size_t length, snd_name_at *name_at);

#endif
