/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/text/utf8.h - steps through bytes that may or may not be UTF-8; text for terminals.
 *
 * Layer: base. Threads: any.
 */
#ifndef SND_BASE_TEXT_UTF8_H
#define SND_BASE_TEXT_UTF8_H

#include <stddef.h>
#include <stdint.h>

#include "base/text/buf.h"

/*
 * The bytes of the first character of `text`, and its code point in *point; 0 if they are not
 * UTF-8 (overlong forms, surrogates and what lies past U+10FFFF are not): then one byte is to
 * be stepped over. `length` is at least 1.
 */
size_t snd_utf8_next(const char *text, size_t length, uint32_t *point);

/* How many characters there are; a byte that is not UTF-8 counts as one. */
size_t snd_utf8_count(const char *text, size_t length);

/* The bytes of the first `count` characters of `text`, at most `length`. */
size_t snd_utf8_prefix(const char *text, size_t length, size_t count);

/* How many bytes in front are UTF-8; most texts are as a whole. */
size_t snd_utf8_valid(const char *text, size_t length);

/* Appends `text`; each byte that is not UTF-8 becomes the replacement character U+FFFD. */
void snd_utf8_clean(struct sonde_buffer *out, const char *text, size_t length);

/*
 * Appends `bytes` as text that does nothing: what is not UTF-8, and what a program could take for a command, is
 * spelled out (\n, \x1b, \xff, \u202e).
 */
enum snd_plain {
    SND_PLAIN_CONTROLS, /* control characters and bytes that are not UTF-8 are spelled out */
    SND_PLAIN_TERMINAL, /* and format characters: marks of direction, characters without width */
};
void snd_plain_put(struct sonde_buffer *buf, enum snd_plain how, const char *bytes, size_t length);

#endif
