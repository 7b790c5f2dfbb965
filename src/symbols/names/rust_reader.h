/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols/names/rust_reader.h - characters, numbers and identifiers of Rust's v0 names, for rust_v0.c.
 *
 * `failed` sticks: after it nothing is written, and `next` stays where it is. Depth, steps and
 * length of the text are bounded, so that a hostile name ends.
 *
 * Layer: symbols. Threads: any, each with its own reader.
 */
#ifndef SND_SYMBOLS_NAMES_RUST_READER_H
#define SND_SYMBOLS_NAMES_RUST_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text/buf.h"

#define SND_RUST_STEPS_MOST 50000u

struct snd_rust_reader {
    const char          *name;
    size_t               length, at;
    struct sonde_buffer *out;
    uint64_t             bound; /* lifetimes that enclosing binders bind */
    unsigned             depth, steps;
    bool                 failed, silent;
};

struct snd_rust_ident {
    const char *ascii, *puny;
    size_t      ascii_length, puny_length;
};

/* The next character, which it steps over; fails at the end. */
char snd_rust_next(struct snd_rust_reader *r);
/* Steps over `c` if it is next. */
bool snd_rust_eat(struct snd_rust_reader *r, char c);

/* Writes to `out`, unless the reader is silent or has failed. */
void snd_rust_put(struct snd_rust_reader *r, const char *text, size_t length);
void snd_rust_say(struct snd_rust_reader *r, const char *text);
void snd_rust_say_number(struct snd_rust_reader *r, uint64_t number);

/* Around each production of the grammar: false where the name is too deep or too long. */
bool snd_rust_enter(struct snd_rust_reader *r);
void snd_rust_leave(struct snd_rust_reader *r);

/* "_" is 0, "0_" is 1; after `tag`, one more, and 0 without it. */
uint64_t snd_rust_read_base62(struct snd_rust_reader *r);
uint64_t snd_rust_read_optional(struct snd_rust_reader *r, char tag);

struct snd_rust_ident snd_rust_read_ident(struct snd_rust_reader *r);
void snd_rust_say_ident(struct snd_rust_reader *r, const struct snd_rust_ident *ident);

/* The character as UTF-8. */
void snd_rust_character(struct sonde_buffer *out, uint32_t code);

#endif
