/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/text/plain_text.h - text of a trace as text that does nothing: what is not UTF-8, and what a program
 * could take for a command, is spelled out (\n, \x1b, \xff, \u202e).
 *
 * Layer: base. Threads: any.
 */
#ifndef SND_BASE_TEXT_PLAIN_TEXT_H
#define SND_BASE_TEXT_PLAIN_TEXT_H

#include "base/text/buf.h"

enum snd_plain {
    SND_PLAIN_CONTROLS, /* control characters and bytes that are not UTF-8 are spelled out */
    SND_PLAIN_TERMINAL, /* and format characters: marks of direction, characters without width */
};

void snd_plain_put(struct sonde_buffer *buf, enum snd_plain how, const char *bytes, size_t length);

#endif
