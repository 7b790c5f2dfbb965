/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols/names/rust_names.c - Rust's older mangling, which looks like C++'s: _ZN, each part of the path
 * with its length, the last one a hash ("17h" and 16 hexadecimal digits), E.
 */
#include <stdint.h>
#include <string.h>

#include "base/count_of.h"
#include "symbols/names/demangle.h"
#include "symbols/names/rust_names.h"
#include "symbols/names/rust_reader.h"

#define HASH 17u /* characters of the part "h0123456789abcdef" */

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static bool is_hash(const char *part, size_t length)
{
    unsigned seen = 0, different = 0;

    if (length != HASH || part[0] != 'h')
        return false;
    for (size_t i = 1; i < length; i++) {
        if (!is_hex(part[i]))
            return false;
        unsigned bit = 1u << (part[i] <= '9' ? part[i] - '0' : part[i] - 'a' + 10);
        different += (seen & bit) == 0;
        seen |= bit;
    }
    return different >=
           5; /* a hash looks random: a C++ name that ends alike is not taken for one */
}

/* The next part: its length in decimal, then so many characters. */
static const char *take_part(const char **at, const char *end, size_t *length)
{
    size_t count = 0;

    if (*at == end || **at < '1' || **at > '9')
        return NULL;
    while (*at < end && **at >= '0' && **at <= '9' && count < 100000)
        count = count * 10 + (size_t)(*(*at)++ - '0');
    if (count > (size_t)(end - *at))
        return NULL;
    const char *part = *at;
    *at += count;
    *length = count;
    return part;
}

static bool take_hex(const char *at, size_t length, uint32_t *code)
{
    *code = 0;
    for (size_t i = 0; i < length; i++) {
        if (!is_hex(at[i]) || *code > 0x10ffff)
            return false;
        *code = *code * 16 + (uint32_t)(at[i] <= '9' ? at[i] - '0' : at[i] - 'a' + 10);
    }
    return length > 0;
}

/* "$LT$" and its like, at `at`; how many characters it takes, 0: it is none. */
static size_t put_escape(struct sonde_buffer *out, const char *at, size_t left)
{
    static const struct {
        const char *code, *text;
    } escapes[] = { { "C", "," },  { "SP", "@" }, { "BP", "*" }, { "RF", "&" },
                    { "LT", "<" }, { "GT", ">" }, { "LP", "(" }, { "RP", ")" } };
    const char *end = left > 1 ? memchr(at + 1, '$', left - 1) : NULL;
    uint32_t    code;

    if (!end)
        return 0;
    size_t length = (size_t)(end - at) - 1;
    for (size_t i = 0; i < SND_COUNT_OF(escapes); i++)
        if (strlen(escapes[i].code) == length && memcmp(at + 1, escapes[i].code, length) == 0) {
            snd_buf_text(out, escapes[i].text);
            return length + 2;
        }
    if (length < 2 || at[1] != 'u' || !take_hex(at + 2, length - 1, &code))
        return 0;
    snd_rust_character(out, code);
    return length + 2;
}

static void put_part(struct sonde_buffer *out, const char *part, size_t length)
{
    size_t at = length > 1 && part[0] == '_' && part[1] == '$';

    while (at < length) {
        size_t taken = part[at] == '$' ? put_escape(out, part + at, length - at) : 0;
        if (taken == 0 && part[at] == '.' && at + 1 < length && part[at + 1] == '.') {
            snd_buf_text(out, "::");
            taken = 2;
        }
        if (taken == 0) {
            snd_buf_put(out, part + at, 1);
            taken = 1;
        }
        at += taken;
    }
}

static bool demangle_legacy(const char *name, size_t length, struct sonde_buffer *out)
{
    const char *at = name, *end = name + length, *part;
    size_t      count = 0, part_length = 0, last = 0;

    if (length == 0 || end[-1] != 'E')
        return false;
    end--;
    for (const char *look = at; look < end; count++) {
        part = take_part(&look, end, &last);
        if (!part || (look == end && !is_hash(part, last)))
            return false;
    }
    for (size_t i = 0; i + 1 < count; i++) {
        part = take_part(&at, end, &part_length);
        if (i > 0)
            snd_buf_text(out, "::");
        put_part(out, part, part_length);
    }
    return count > 1;
}

/* LLVM's own suffix says nothing to a reader; others (".cold") do. */
static void put_suffix(struct sonde_buffer *out, const char *suffix)
{
    if (suffix[0] != '\0' && strncmp(suffix, ".llvm.", 6) != 0)
        snd_buf_format(out, " [clone %s]", suffix);
}

bool snd_rust_demangle(const char *name, struct sonde_buffer *out)
{
    size_t      length = strcspn(name, ".");
    const char *dot = name + length;
    bool        ok = false;

    snd_buf_clear(out);
    if (strncmp(name, "_R", 2) == 0) {
        ok = snd_rust_v0(name + 2, length - 2, out);
    } else if (strncmp(name, "_ZN", 3) == 0) {
        /* A part of the path may have ".." in it: the name ends after its last E. */
        const char *end = strrchr(name, 'E');
        const char *llvm = strstr(name, ".llvm.");
        if (llvm) {
            for (end = llvm; end > name && end[-1] != 'E'; end--)
                ;
            end = end > name ? end - 1 : NULL;
        }
        if (!end || (end[1] != '\0' && end[1] != '.'))
            return false;
        dot = end + 1;
        ok = demangle_legacy(name + 3, (size_t)(dot - name) - 3, out);
    }
    if (ok)
        put_suffix(out, dot);
    return ok && !out->failed;
}
