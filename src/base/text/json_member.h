/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/text/json_member.h - reads members of a JSON object where it lies, keeping nothing.
 *
 *     snd_member_find(json, length, "cpu", &cpu);            the text of a member's value
 *     snd_member_number(cpu.bytes, cpu.length, "cores", 0);  a number, or what to take instead
 *
 * What is not JSON has no members: metadata of a trace is untrusted.
 *
 * Layer: base. Threads: no state.
 */
#ifndef SND_BASE_TEXT_JSON_MEMBER_H
#define SND_BASE_TEXT_JSON_MEMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sonde/sink.h"

struct snd_value {
    const char *bytes; /* of the text that was searched */
    size_t      length;
};

/* The value of the first member `key`; false if there is none. */
bool snd_member_find(const char *json, size_t length, const char *key, struct snd_value *value);

double  snd_member_real(const char *json, size_t length, const char *key, double otherwise);
int64_t snd_member_number(const char *json, size_t length, const char *key, int64_t otherwise);

/* Appends the characters of a JSON string, quotes included; false if it is not one. */
bool snd_value_text(struct snd_value value, struct sonde_buffer *out);

/*
 * The elements of an array, or the members of an object, in order: *at begins at 0. `key` may be
 * NULL for an array. False after the last, or where it is not JSON.
 */
bool snd_value_next(struct snd_value whole, size_t *at, struct snd_value *key,
                    struct snd_value *value);

#endif
