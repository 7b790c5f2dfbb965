/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols/names/rust_v0.c - Rust's newer mangling, RFC 2603: a grammar of paths, types and constants, with
 * references back to earlier parts of the name.
 */
#include <stdint.h>
#include <string.h>

#include "symbols/names/rust_names.h"
#include "symbols/names/rust_reader.h"

static void read_path(struct snd_rust_reader *r, bool in_value);
static void read_type(struct snd_rust_reader *r);
static void read_const(struct snd_rust_reader *r);

/* ------------------------------------------------------------------- lifetimes */

static void say_lifetime(struct snd_rust_reader *r, uint64_t index)
{
    snd_rust_say(r, "'");
    if (index == 0) {
        snd_rust_say(r, "_");
        return;
    }
    if (index > r->bound) {
        r->failed = true;
        return;
    }
    uint64_t depth = r->bound - index;
    char     letter = (char)('a' + depth % 26);
    if (depth < 26) {
        snd_rust_put(r, &letter, 1);
    } else {
        snd_rust_say(r, "_");
        snd_rust_say_number(r, depth);
    }
}

static void read_binder(struct snd_rust_reader *r)
{
    uint64_t count = snd_rust_read_optional(r, 'G');

    if (count > SND_RUST_STEPS_MOST) {
        r->failed = true;
        return;
    }
    if (count == 0)
        return;
    snd_rust_say(r, "for<");
    for (uint64_t i = 0; i < count && !r->failed; i++) {
        if (i > 0)
            snd_rust_say(r, ", ");
        r->bound++;
        say_lifetime(r, 1);
    }
    snd_rust_say(r, "> ");
}

/* --------------------------------------------------------- references and lists */

/* After a 'B': reads the part of the name at an earlier offset, by `read`. */
static void follow(struct snd_rust_reader *r, void (*read)(struct snd_rust_reader *))
{
    size_t   from = r->at - 1;
    uint64_t to = snd_rust_read_base62(r);
    size_t   after = r->at;

    if (to >= from)
        r->failed = true;
    if (r->failed || r->silent)
        return;
    r->at = (size_t)to;
    read(r);
    r->at = after;
}

static void read_argument(struct snd_rust_reader *r)
{
    if (snd_rust_eat(r, 'L'))
        say_lifetime(r, snd_rust_read_base62(r));
    else if (snd_rust_eat(r, 'K'))
        read_const(r);
    else
        read_type(r);
}

/* Reads items up to 'E'; returns their number. */
static uint64_t read_list(struct snd_rust_reader *r, void (*read)(struct snd_rust_reader *),
                          const char             *between)
{
    uint64_t count = 0;

    for (; !r->failed && !snd_rust_eat(r, 'E'); count++) {
        if (count > 0)
            snd_rust_say(r, between);
        read(r);
    }
    return count;
}

/* ----------------------------------------------------------------------- paths */

static void read_nested(struct snd_rust_reader *r, bool in_value)
{
    char space = snd_rust_next(r);

    read_path(r, in_value);
    uint64_t              number = snd_rust_read_optional(r, 's');
    struct snd_rust_ident ident = snd_rust_read_ident(r);
    bool                  is_named = ident.ascii_length > 0 || ident.puny_length > 0;
    if (space >= 'A' && space <= 'Z') {
        snd_rust_say(r, "::{");
        if (space == 'C')
            snd_rust_say(r, "closure");
        else if (space == 'S')
            snd_rust_say(r, "shim");
        else
            snd_rust_put(r, &space, 1);
        if (is_named) {
            snd_rust_say(r, ":");
            snd_rust_say_ident(r, &ident);
        }
        snd_rust_say(r, "#");
        snd_rust_say_number(r, number);
        snd_rust_say(r, "}");
    } else if (space >= 'a' && space <= 'z') {
        if (is_named) {
            snd_rust_say(r, "::");
            snd_rust_say_ident(r, &ident);
        }
    } else {
        r->failed = true;
    }
}

/* The path to the impl block itself is not shown. */
static void skip_impl(struct snd_rust_reader *r)
{
    bool was_silent = r->silent;

    snd_rust_read_optional(r, 's');
    r->silent = true;
    read_path(r, false);
    r->silent = was_silent;
}

static void read_value_path(struct snd_rust_reader *r)
{
    read_path(r, true);
}

static void read_type_path(struct snd_rust_reader *r)
{
    read_path(r, false);
}

static void read_qualified(struct snd_rust_reader *r, char tag)
{
    if (tag != 'Y')
        skip_impl(r);
    snd_rust_say(r, "<");
    read_type(r);
    if (tag != 'M') {
        snd_rust_say(r, " as ");
        read_path(r, false);
    }
    snd_rust_say(r, ">");
}

static void read_path(struct snd_rust_reader *r, bool in_value)
{
    if (!snd_rust_enter(r))
        return;
    char                  tag = snd_rust_next(r);
    struct snd_rust_ident ident;
    switch (tag) {
    case 'C':
        snd_rust_read_optional(r, 's');
        ident = snd_rust_read_ident(r);
        snd_rust_say_ident(r, &ident);
        break;
    case 'N':
        read_nested(r, in_value);
        break;
    case 'M':
    case 'X':
    case 'Y':
        read_qualified(r, tag);
        break;
    case 'I':
        read_path(r, in_value);
        snd_rust_say(r, in_value ? "::<" : "<");
        read_list(r, read_argument, ", ");
        snd_rust_say(r, ">");
        break;
    case 'B':
        follow(r, in_value ? read_value_path : read_type_path);
        break;
    default:
        r->failed = true;
    }
    snd_rust_leave(r);
}

/* ----------------------------------------------------------------------- types */

static const char *basic_type(char tag)
{
    static const char *const names[26] = {
        "i8",    "bool", "char", "f64", "str",  "f32",  NULL,  "u8", "isize",
        "usize", NULL,   "i32",  "u32", "i128", "u128", "_",   NULL, NULL,
        "i16",   "u16",  "()",   "...", NULL,   "i64",  "u64", "!",
    };

    return tag >= 'a' && tag <= 'z' ? names[tag - 'a'] : NULL;
}

static void read_function(struct snd_rust_reader *r)
{
    uint64_t bound = r->bound;

    read_binder(r);
    if (snd_rust_eat(r, 'U'))
        snd_rust_say(r, "unsafe ");
    if (snd_rust_eat(r, 'K')) {
        struct snd_rust_ident abi = { "C", NULL, 1, 0 };
        if (!snd_rust_eat(r, 'C'))
            abi = snd_rust_read_ident(r);
        r->failed |= abi.puny_length > 0;
        snd_rust_say(r, "extern \"");
        for (size_t i = 0; i < abi.ascii_length && !r->failed; i++)
            snd_rust_put(r, abi.ascii[i] == '_' ? "-" : abi.ascii + i, 1);
        snd_rust_say(r, "\" ");
    }
    snd_rust_say(r, "fn(");
    read_list(r, read_type, ", ");
    snd_rust_say(r, ")");
    if (!snd_rust_eat(r, 'u')) { /* it returns () */
        snd_rust_say(r, " -> ");
        read_type(r);
    }
    r->bound = bound;
}

/* A trait's own arguments and its associated types share one pair of brackets. */
static bool read_open_path(struct snd_rust_reader *r)
{
    bool is_open = false;

    if (!snd_rust_enter(r))
        return false;
    if (snd_rust_eat(r, 'B')) {
        size_t   from = r->at - 1;
        uint64_t to = snd_rust_read_base62(r);
        size_t   after = r->at;
        r->failed |= to >= from;
        if (!r->failed && !r->silent) {
            r->at = (size_t)to;
            is_open = read_open_path(r);
            r->at = after;
        }
    } else if (snd_rust_eat(r, 'I')) {
        read_path(r, false);
        snd_rust_say(r, "<");
        read_list(r, read_argument, ", ");
        is_open = true;
    } else {
        read_path(r, false);
    }
    snd_rust_leave(r);
    return is_open;
}

static void read_trait(struct snd_rust_reader *r)
{
    bool is_open = read_open_path(r);

    while (snd_rust_eat(r, 'p')) {
        snd_rust_say(r, is_open ? ", " : "<");
        is_open = true;
        struct snd_rust_ident name = snd_rust_read_ident(r);
        snd_rust_say_ident(r, &name);
        snd_rust_say(r, " = ");
        read_type(r);
    }
    if (is_open)
        snd_rust_say(r, ">");
}

static void read_dyn(struct snd_rust_reader *r)
{
    uint64_t bound = r->bound;

    snd_rust_say(r, "dyn ");
    read_binder(r);
    read_list(r, read_trait, " + ");
    r->bound = bound;
    if (!snd_rust_eat(r, 'L')) {
        r->failed = true;
        return;
    }
    uint64_t lifetime = snd_rust_read_base62(r);
    if (lifetime != 0) {
        snd_rust_say(r, " + ");
        say_lifetime(r, lifetime);
    }
}

static void read_reference(struct snd_rust_reader *r, char tag)
{
    snd_rust_say(r, "&");
    if (snd_rust_eat(r, 'L')) {
        uint64_t lifetime = snd_rust_read_base62(r);
        if (lifetime != 0) {
            say_lifetime(r, lifetime);
            snd_rust_say(r, " ");
        }
    }
    if (tag == 'Q')
        snd_rust_say(r, "mut ");
    read_type(r);
}

static void read_array(struct snd_rust_reader *r, char tag)
{
    snd_rust_say(r, "[");
    read_type(r);
    if (tag == 'A') {
        snd_rust_say(r, "; ");
        read_const(r);
    }
    snd_rust_say(r, "]");
}

static void read_tuple(struct snd_rust_reader *r)
{
    snd_rust_say(r, "(");
    if (read_list(r, read_type, ", ") == 1)
        snd_rust_say(r, ",");
    snd_rust_say(r, ")");
}

static void read_type(struct snd_rust_reader *r)
{
    if (!snd_rust_enter(r))
        return;
    char        tag = snd_rust_next(r);
    const char *basic = basic_type(tag);
    if (basic) {
        snd_rust_say(r, basic);
    } else if (tag == 'R' || tag == 'Q') {
        read_reference(r, tag);
    } else if (tag == 'P' || tag == 'O') {
        snd_rust_say(r, tag == 'P' ? "*const " : "*mut ");
        read_type(r);
    } else if (tag == 'A' || tag == 'S') {
        read_array(r, tag);
    } else if (tag == 'T') {
        read_tuple(r);
    } else if (tag == 'F') {
        read_function(r);
    } else if (tag == 'D') {
        read_dyn(r);
    } else if (tag == 'B') {
        follow(r, read_type);
    } else if (!r->failed) {
        r->at--;
        read_path(r, false);
    }
    snd_rust_leave(r);
}

/* ------------------------------------------------------------------- constants */

/* Hexadecimal digits up to "_"; false where they do not fit 64 bits: they are shown as they are. */
static bool read_hex(struct snd_rust_reader *r, uint64_t *number, const char **digits,
                     size_t *count)
{
    *number = 0;
    *digits = r->name + r->at;
    for (*count = 0; !r->failed && !snd_rust_eat(r, '_'); (*count)++) {
        char c = snd_rust_next(r);
        if (c >= '0' && c <= '9')
            *number = *number << 4 | (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            *number = *number << 4 | (uint64_t)(c - 'a' + 10);
        else
            r->failed = true;
    }
    r->failed |= *count == 0;
    return *count <= 16;
}

static void read_const(struct snd_rust_reader *r)
{
    const char *digits;
    size_t      count;
    uint64_t    number;

    if (!snd_rust_enter(r))
        return;
    char tag = snd_rust_next(r);
    if (tag == 'B') {
        follow(r, read_const);
    } else if (tag == 'p') {
        snd_rust_say(r, "_");
    } else if (tag != '\0' && strchr("htmyojaslxnibc", tag)) {
        bool is_signed = strchr("aslxni", tag) != NULL;
        if (is_signed && snd_rust_eat(r, 'n'))
            snd_rust_say(r, "-");
        bool fits = read_hex(r, &number, &digits, &count);
        if (tag == 'b') {
            r->failed |= number > 1;
            snd_rust_say(r, number ? "true" : "false");
        } else if (tag == 'c' && !r->silent && !r->failed) {
            snd_rust_say(r, "'");
            r->failed |= !fits || number > 0x10ffff;
            if (!r->failed)
                snd_rust_character(r->out, (uint32_t)number);
            snd_rust_say(r, "'");
        } else if (tag != 'c' && fits) {
            snd_rust_say_number(r, number);
        } else if (tag != 'c') {
            snd_rust_say(r, "0x");
            snd_rust_put(r, digits, count);
        }
    } else {
        r->failed = true;
    }
    snd_rust_leave(r);
}

bool snd_rust_v0(const char *name, size_t length, struct sonde_buffer *out)
{
    struct snd_rust_reader r = { .name = name, .length = length, .out = out };

    if (length == 0 || name[0] < 'A' || name[0] > 'Z') /* a digit: a later version's */
        return false;
    read_path(&r, true);
    if (!r.failed && r.at < r.length) { /* the crate that made this copy of a generic function */
        r.silent = true;
        read_path(&r, false);
    }
    return !r.failed && r.at == r.length && out->length > 0;
}
