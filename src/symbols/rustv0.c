/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols/rustv0.c - Rust's newer mangling, RFC 2603: a grammar of paths, types and constants, with
 * references back to what was written before. Depth, steps and length of the text are bounded, so
 * that a hostile name ends.
 */
#include <stdint.h>
#include <string.h>

#include "symbols/rustnames.h"

#define DEPTH_MOST 200u
#define STEPS_MOST 50000u
#define TEXT_MOST 60000u
#define LETTERS_MOST 512u /* characters of an identifier that is not ASCII */

struct reader {
    const char          *name;
    size_t               length, at;
    struct sonde_buffer *out;
    uint64_t             bound; /* lifetimes that enclosing binders bind */
    unsigned             depth, steps;
    bool                 failed, silent;
};

struct ident {
    const char *ascii, *puny;
    size_t      ascii_length, puny_length;
};

static void read_path(struct reader *r, bool in_value);
static void read_type(struct reader *r);
static void read_const(struct reader *r);

/* ------------------------------------------------------------------ characters */

static char peek(const struct reader *r)
{
    return r->at < r->length ? r->name[r->at] : '\0';
}

static char next(struct reader *r)
{
    char c = peek(r);

    r->failed |= c == '\0';
    r->at += c != '\0';
    return c;
}

static bool eat(struct reader *r, char c)
{
    if (r->failed || peek(r) != c)
        return false;
    r->at++;
    return true;
}

static void put(struct reader *r, const char *text, size_t length)
{
    if (r->failed || r->silent)
        return;
    if (r->out->length + length > TEXT_MOST)
        r->failed = true;
    else
        snd_buf_put(r->out, text, length);
}

static void say(struct reader *r, const char *text)
{
    put(r, text, strlen(text));
}

static void say_number(struct reader *r, uint64_t number)
{
    char text[24];
    int  at = sizeof text;

    do
        text[--at] = (char)('0' + number % 10);
    while ((number /= 10) != 0);
    put(r, text + at, sizeof text - (size_t)at);
}

/* Every production passes here: no input makes it endless. */
static bool enter(struct reader *r)
{
    r->failed |= ++r->depth > DEPTH_MOST || ++r->steps > STEPS_MOST;
    return !r->failed;
}

static void leave(struct reader *r)
{
    r->depth--;
}

/* --------------------------------------------------------------------- numbers */

static uint64_t read_base62(struct reader *r)
{
    uint64_t number = 0;

    if (eat(r, '_'))
        return 0;
    while (!r->failed && !eat(r, '_')) {
        char     c = next(r);
        uint64_t digit = 0;
        if (c >= '0' && c <= '9')
            digit = (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'z')
            digit = (uint64_t)(c - 'a') + 10;
        else if (c >= 'A' && c <= 'Z')
            digit = (uint64_t)(c - 'A') + 36;
        else
            r->failed = true;
        if (number > (UINT64_MAX - digit) / 62 - 1)
            r->failed = true;
        number = number * 62 + digit;
    }
    return number + 1;
}

static uint64_t read_optional(struct reader *r, char tag)
{
    return eat(r, tag) ? read_base62(r) + 1 : 0;
}

/* ----------------------------------------------------------------- identifiers */

static struct ident read_ident(struct reader *r)
{
    struct ident ident = { 0 };
    bool         is_puny = eat(r, 'u');
    size_t       length = 0;
    char         c = next(r);

    if (c < '0' || c > '9')
        r->failed = true;
    length = (size_t)(c - '0');
    if (length != 0)
        while (!r->failed && peek(r) >= '0' && peek(r) <= '9' && length < 100000)
            length = length * 10 + (size_t)(next(r) - '0');
    eat(r, '_');
    if (r->failed || length > r->length - r->at) {
        r->failed = true;
        return ident;
    }
    ident.ascii = r->name + r->at;
    ident.ascii_length = length;
    r->at += length;
    if (!is_puny)
        return ident;
    const char *bar = length > 0 ? memrchr(ident.ascii, '_', length) : NULL;
    ident.puny = bar ? bar + 1 : ident.ascii;
    ident.puny_length = (size_t)(ident.ascii + length - ident.puny);
    ident.ascii_length = bar ? (size_t)(bar - ident.ascii) : 0;
    r->failed |= ident.puny_length == 0;
    return ident;
}

/* RFC 3492, with its constants. */
static bool decode_puny(const struct ident *ident, uint32_t *letters, size_t *count)
{
    size_t   bias = 72, base = 36, low = 1, high = 26, damp = 700, i = 0;
    uint64_t code = 128;

    *count = 0;
    for (; *count < ident->ascii_length; (*count)++)
        letters[*count] = (unsigned char)ident->ascii[*count];
    for (size_t at = 0; at < ident->puny_length;) {
        size_t delta = 0, weight = 1;
        for (size_t k = base;; k += base) {
            size_t t = k <= bias ? low : k - bias > high ? high : k - bias;
            if (at == ident->puny_length || *count >= LETTERS_MOST)
                return false;
            char c = ident->puny[at++];
            if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')))
                return false;
            size_t digit = c >= 'a' ? (size_t)(c - 'a') : (size_t)(c - '0') + 26;
            if (weight > UINT32_MAX)
                return false;
            delta += digit * weight;
            if (digit < t)
                break;
            weight *= base - t;
        }
        i += delta;
        code += i / (*count + 1);
        i %= *count + 1;
        if (code > 0x10ffff)
            return false;
        memmove(letters + i + 1, letters + i, (*count - i) * sizeof *letters);
        letters[i++] = (uint32_t)code;
        (*count)++;
        delta /= damp;
        damp = 2;
        delta += delta / *count;
        size_t k = 0;
        for (; delta > (base - low) * high / 2; k += base)
            delta /= base - low;
        bias = k + (base - low + 1) * delta / (delta + 38);
    }
    return true;
}

static void say_ident(struct reader *r, const struct ident *ident)
{
    uint32_t letters[LETTERS_MOST + 1];
    size_t   count;

    if (r->failed || r->silent)
        return;
    if (ident->puny_length == 0) {
        put(r, ident->ascii, ident->ascii_length);
    } else if (ident->ascii_length < LETTERS_MOST && decode_puny(ident, letters, &count)) {
        for (size_t i = 0; i < count && !r->failed; i++) {
            snd_rust_character(r->out, letters[i]);
            r->failed |= r->out->length > TEXT_MOST;
        }
    } else {
        say(r, "punycode{");
        if (ident->ascii_length > 0) {
            put(r, ident->ascii, ident->ascii_length);
            say(r, "-");
        }
        put(r, ident->puny, ident->puny_length);
        say(r, "}");
    }
}

/* ------------------------------------------------------------------- lifetimes */

static void say_lifetime(struct reader *r, uint64_t index)
{
    say(r, "'");
    if (index == 0) {
        say(r, "_");
        return;
    }
    if (index > r->bound) {
        r->failed = true;
        return;
    }
    uint64_t depth = r->bound - index;
    char     letter = (char)('a' + depth % 26);
    if (depth < 26) {
        put(r, &letter, 1);
    } else {
        say(r, "_");
        say_number(r, depth);
    }
}

static void read_binder(struct reader *r)
{
    uint64_t count = read_optional(r, 'G');

    if (count > STEPS_MOST) {
        r->failed = true;
        return;
    }
    if (count == 0)
        return;
    say(r, "for<");
    for (uint64_t i = 0; i < count && !r->failed; i++) {
        if (i > 0)
            say(r, ", ");
        r->bound++;
        say_lifetime(r, 1);
    }
    say(r, "> ");
}

/* --------------------------------------------------------- references and lists */

/* After a 'B': reads what stands at the earlier place by `read`. */
static void follow(struct reader *r, void (*read)(struct reader *))
{
    size_t   from = r->at - 1;
    uint64_t to = read_base62(r);
    size_t   after = r->at;

    if (to >= from)
        r->failed = true;
    if (r->failed || r->silent)
        return;
    r->at = (size_t)to;
    read(r);
    r->at = after;
}

static void read_argument(struct reader *r)
{
    if (eat(r, 'L'))
        say_lifetime(r, read_base62(r));
    else if (eat(r, 'K'))
        read_const(r);
    else
        read_type(r);
}

/* Items up to 'E'; how many there were. */
static uint64_t read_list(struct reader *r, void (*read)(struct reader *), const char *between)
{
    uint64_t count = 0;

    for (; !r->failed && !eat(r, 'E'); count++) {
        if (count > 0)
            say(r, between);
        read(r);
    }
    return count;
}

/* ----------------------------------------------------------------------- paths */

static void read_nested(struct reader *r, bool in_value)
{
    char space = next(r);

    read_path(r, in_value);
    uint64_t     number = read_optional(r, 's');
    struct ident ident = read_ident(r);
    bool         is_named = ident.ascii_length > 0 || ident.puny_length > 0;
    if (space >= 'A' && space <= 'Z') {
        say(r, "::{");
        if (space == 'C')
            say(r, "closure");
        else if (space == 'S')
            say(r, "shim");
        else
            put(r, &space, 1);
        if (is_named) {
            say(r, ":");
            say_ident(r, &ident);
        }
        say(r, "#");
        say_number(r, number);
        say(r, "}");
    } else if (space >= 'a' && space <= 'z') {
        if (is_named) {
            say(r, "::");
            say_ident(r, &ident);
        }
    } else {
        r->failed = true;
    }
}

/* The path to the impl block itself is not shown. */
static void skip_impl(struct reader *r)
{
    bool was_silent = r->silent;

    read_optional(r, 's');
    r->silent = true;
    read_path(r, false);
    r->silent = was_silent;
}

static void read_value_path(struct reader *r)
{
    read_path(r, true);
}

static void read_type_path(struct reader *r)
{
    read_path(r, false);
}

static void read_qualified(struct reader *r, char tag)
{
    if (tag != 'Y')
        skip_impl(r);
    say(r, "<");
    read_type(r);
    if (tag != 'M') {
        say(r, " as ");
        read_path(r, false);
    }
    say(r, ">");
}

static void read_path(struct reader *r, bool in_value)
{
    if (!enter(r))
        return;
    char         tag = next(r);
    struct ident ident;
    switch (tag) {
    case 'C':
        read_optional(r, 's');
        ident = read_ident(r);
        say_ident(r, &ident);
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
        say(r, in_value ? "::<" : "<");
        read_list(r, read_argument, ", ");
        say(r, ">");
        break;
    case 'B':
        follow(r, in_value ? read_value_path : read_type_path);
        break;
    default:
        r->failed = true;
    }
    leave(r);
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

static void read_function(struct reader *r)
{
    uint64_t bound = r->bound;

    read_binder(r);
    if (eat(r, 'U'))
        say(r, "unsafe ");
    if (eat(r, 'K')) {
        struct ident abi = { "C", NULL, 1, 0 };
        if (!eat(r, 'C'))
            abi = read_ident(r);
        r->failed |= abi.puny_length > 0;
        say(r, "extern \"");
        for (size_t i = 0; i < abi.ascii_length && !r->failed; i++)
            put(r, abi.ascii[i] == '_' ? "-" : abi.ascii + i, 1);
        say(r, "\" ");
    }
    say(r, "fn(");
    read_list(r, read_type, ", ");
    say(r, ")");
    if (!eat(r, 'u')) { /* nothing is returned */
        say(r, " -> ");
        read_type(r);
    }
    r->bound = bound;
}

/* A trait's own arguments and its associated types share one pair of brackets. */
static bool read_open_path(struct reader *r)
{
    bool is_open = false;

    if (!enter(r))
        return false;
    if (eat(r, 'B')) {
        size_t   from = r->at - 1;
        uint64_t to = read_base62(r);
        size_t   after = r->at;
        r->failed |= to >= from;
        if (!r->failed && !r->silent) {
            r->at = (size_t)to;
            is_open = read_open_path(r);
            r->at = after;
        }
    } else if (eat(r, 'I')) {
        read_path(r, false);
        say(r, "<");
        read_list(r, read_argument, ", ");
        is_open = true;
    } else {
        read_path(r, false);
    }
    leave(r);
    return is_open;
}

static void read_trait(struct reader *r)
{
    bool is_open = read_open_path(r);

    while (eat(r, 'p')) {
        say(r, is_open ? ", " : "<");
        is_open = true;
        struct ident name = read_ident(r);
        say_ident(r, &name);
        say(r, " = ");
        read_type(r);
    }
    if (is_open)
        say(r, ">");
}

static void read_dyn(struct reader *r)
{
    uint64_t bound = r->bound;

    say(r, "dyn ");
    read_binder(r);
    read_list(r, read_trait, " + ");
    r->bound = bound;
    if (!eat(r, 'L')) {
        r->failed = true;
        return;
    }
    uint64_t lifetime = read_base62(r);
    if (lifetime != 0) {
        say(r, " + ");
        say_lifetime(r, lifetime);
    }
}

static void read_reference(struct reader *r, char tag)
{
    say(r, "&");
    if (eat(r, 'L')) {
        uint64_t lifetime = read_base62(r);
        if (lifetime != 0) {
            say_lifetime(r, lifetime);
            say(r, " ");
        }
    }
    if (tag == 'Q')
        say(r, "mut ");
    read_type(r);
}

static void read_array(struct reader *r, char tag)
{
    say(r, "[");
    read_type(r);
    if (tag == 'A') {
        say(r, "; ");
        read_const(r);
    }
    say(r, "]");
}

static void read_tuple(struct reader *r)
{
    say(r, "(");
    if (read_list(r, read_type, ", ") == 1)
        say(r, ",");
    say(r, ")");
}

static void read_type(struct reader *r)
{
    if (!enter(r))
        return;
    char        tag = next(r);
    const char *basic = basic_type(tag);
    if (basic) {
        say(r, basic);
    } else if (tag == 'R' || tag == 'Q') {
        read_reference(r, tag);
    } else if (tag == 'P' || tag == 'O') {
        say(r, tag == 'P' ? "*const " : "*mut ");
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
    leave(r);
}

/* ------------------------------------------------------------------- constants */

/* Hexadecimal digits up to "_"; false where they do not fit 64 bits: they are shown as they are. */
static bool read_hex(struct reader *r, uint64_t *number, const char **digits, size_t *count)
{
    *number = 0;
    *digits = r->name + r->at;
    for (*count = 0; !r->failed && !eat(r, '_'); (*count)++) {
        char c = next(r);
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

static void read_const(struct reader *r)
{
    const char *digits;
    size_t      count;
    uint64_t    number;

    if (!enter(r))
        return;
    char tag = next(r);
    if (tag == 'B') {
        follow(r, read_const);
    } else if (tag == 'p') {
        say(r, "_");
    } else if (tag != '\0' && strchr("htmyojaslxnibc", tag)) {
        bool is_signed = strchr("aslxni", tag) != NULL;
        if (is_signed && eat(r, 'n'))
            say(r, "-");
        bool fits = read_hex(r, &number, &digits, &count);
        if (tag == 'b') {
            r->failed |= number > 1;
            say(r, number ? "true" : "false");
        } else if (tag == 'c' && !r->silent && !r->failed) {
            say(r, "'");
            r->failed |= !fits || number > 0x10ffff;
            if (!r->failed)
                snd_rust_character(r->out, (uint32_t)number);
            say(r, "'");
        } else if (tag != 'c' && fits) {
            say_number(r, number);
        } else if (tag != 'c') {
            say(r, "0x");
            put(r, digits, count);
        }
    } else {
        r->failed = true;
    }
    leave(r);
}

bool snd_rust_v0(const char *name, size_t length, struct sonde_buffer *out)
{
    struct reader r = { .name = name, .length = length, .out = out };

    if (length == 0 || name[0] < 'A' || name[0] > 'Z') /* a digit: a later version's */
        return false;
    read_path(&r, true);
    if (!r.failed && r.at < r.length) { /* the crate that made this copy of a generic function */
        r.silent = true;
        read_path(&r, false);
    }
    return !r.failed && r.at == r.length && out->length > 0;
}
