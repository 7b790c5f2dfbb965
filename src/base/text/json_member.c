/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/json_member.h"

#include <stdlib.h>
#include <string.h>

#include "base/text/buf.h"
#include "base/text/json.h"

static size_t skip_blanks(const char *text, size_t length, size_t at)
{
    while (at < length && (text[at] == ' ' || text[at] == '\t' || text[at] == '\n'))
        at++;
    return at;
}

/* Past the string that begins at `at`; `length` if it does not end. */
static size_t skip_string(const char *text, size_t length, size_t at)
{
    for (at++; at < length && text[at] != '"'; at++)
        at += text[at] == '\\';
    return at < length ? at + 1 : length;
}

/* Past one value of any kind. Depth is counted, not followed: no input makes it recurse. */
static size_t skip_value(const char *text, size_t length, size_t at)
{
    size_t depth = 0;

    for (; at < length; at++) {
        char c = text[at];
        if (c == '"') {
            at = skip_string(text, length, at) - 1;
        } else if (c == '{' || c == '[') {
            depth++;
        } else if (c == '}' || c == ']') {
            if (depth == 0)
                return at;
            depth--;
        } else if (c == ',' && depth == 0) {
            return at;
        }
    }
    return at;
}

static struct snd_value trim(const char *text, size_t start, size_t end)
{
    while (end > start && (text[end - 1] == ' ' || text[end - 1] == '\n'))
        end--;
    return (struct snd_value){ text + start, end - start };
}

bool snd_value_next(struct snd_value whole, size_t *at, struct snd_value *key,
                    struct snd_value *value)
{
    const char *text = whole.bytes;
    size_t      length = whole.length, here = *at;
    bool        is_object = length > 0 && text[0] == '{';

    if (length < 2 || (!is_object && text[0] != '['))
        return false;
    here = skip_blanks(text, length, here == 0 ? 1 : here);
    if (here >= length || text[here] == '}' || text[here] == ']')
        return false;
    if (is_object) {
        if (text[here] != '"')
            return false;
        size_t end = skip_string(text, length, here);
        if (key)
            *key = (struct snd_value){ text + here, end - here };
        here = skip_blanks(text, length, end);
        if (here >= length || text[here] != ':')
            return false;
        here = skip_blanks(text, length, here + 1);
    }
    size_t end = skip_value(text, length, here);
    *value = trim(text, here, end);
    *at = end < length && text[end] == ',' ? end + 1 : end;
    return value->length > 0;
}

bool snd_member_find(const char *json, size_t length, const char *key, struct snd_value *value)
{
    struct snd_value name, found;
    size_t           at = 0, wanted = strlen(key);

    if (length == 0 || json[0] != '{' || !snd_json_is_value(json, length))
        return false;
    while (snd_value_next((struct snd_value){ json, length }, &at, &name, &found)) {
        if (name.length == wanted + 2 && memcmp(name.bytes + 1, key, wanted) == 0) {
            *value = found;
            return true;
        }
    }
    return false;
}

/* The value of a key as text; false: there is none of that size. */
static bool copy_value(const char *json, size_t length, const char *key, char *text, size_t size)
{
    struct snd_value value;

    if (!snd_member_find(json, length, key, &value) || value.length >= size)
        return false;
    memcpy(text, value.bytes, value.length);
    text[value.length] = '\0';
    return true;
}

double snd_member_real(const char *json, size_t length, const char *key, double otherwise)
{
    char   text[64], *end = text;
    double number = copy_value(json, length, key, text, sizeof text) ? strtod(text, &end) : 0;

    return end != text && *end == '\0' ? number : otherwise;
}

int64_t snd_member_number(const char *json, size_t length, const char *key, int64_t otherwise)
{
    char      text[32], *end = text;
    long long number = copy_value(json, length, key, text, sizeof text) ? strtoll(text, &end, 10)
                                                                        : 0;

    return end != text && *end == '\0' ? number : otherwise;
}

/* ------------------------------------------------------------------ strings */

static void put_utf8(struct sonde_buffer *out, uint32_t point)
{
    char bytes[3] = { (char)(0xE0 | point >> 12), (char)(0x80 | (point >> 6 & 0x3F)),
                      (char)(0x80 | (point & 0x3F)) };

    if (point < 0x80) {
        char byte = (char)point;
        snd_buf_put(out, &byte, 1);
    } else if (point < 0x800) {
        bytes[1] = (char)(0xC0 | point >> 6);
        snd_buf_put(out, bytes + 1, 2);
    } else {
        snd_buf_put(out, bytes, 3);
    }
}

/* One escape, at its backslash; returns past it. A pair of surrogates stays two characters. */
static size_t put_escape(struct sonde_buffer *out, const char *text, size_t length, size_t at)
{
    static const char names[] = "bfnrt", bytes[] = "\b\f\n\r\t";
    char              c = at + 1 < length ? text[at + 1] : '\\', hex[5] = "";

    if (c == 'u' && at + 5 < length) {
        memcpy(hex, text + at + 2, 4);
        put_utf8(out, (uint32_t)strtoul(hex, NULL, 16));
        return at + 6;
    }
    const char *found = c ? strchr(names, c) : NULL;
    snd_buf_put(out, found ? &bytes[found - names] : &c, 1);
    return at + 2;
}

bool snd_value_text(struct snd_value value, struct sonde_buffer *out)
{
    if (value.length < 2 || value.bytes[0] != '"')
        return false;
    for (size_t at = 1; at + 1 < value.length;) {
        if (value.bytes[at] == '\\') {
            at = put_escape(out, value.bytes, value.length - 1, at);
        } else {
            snd_buf_put(out, value.bytes + at, 1);
            at++;
        }
    }
    return !out->failed;
}
