/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipe/yaml/scalar.c - the implicit types of YAML 1.1, in the order and by the rules of PyYAML.
 *
 * Each rule steps over what it knows and says whether the end was reached.
 */
#include "pipe/yaml/scalar.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/count_of.h"

/* ------------------------------------------------------------------ words */

static const struct {
    const char        *text;
    enum snd_node_kind kind;
    int                value;
} words[] = {
    { "yes", SND_NODE_BOOL, 1 },   { "Yes", SND_NODE_BOOL, 1 },   { "YES", SND_NODE_BOOL, 1 },
    { "no", SND_NODE_BOOL, 0 },    { "No", SND_NODE_BOOL, 0 },    { "NO", SND_NODE_BOOL, 0 },
    { "true", SND_NODE_BOOL, 1 },  { "True", SND_NODE_BOOL, 1 },  { "TRUE", SND_NODE_BOOL, 1 },
    { "false", SND_NODE_BOOL, 0 }, { "False", SND_NODE_BOOL, 0 }, { "FALSE", SND_NODE_BOOL, 0 },
    { "on", SND_NODE_BOOL, 1 },    { "On", SND_NODE_BOOL, 1 },    { "ON", SND_NODE_BOOL, 1 },
    { "off", SND_NODE_BOOL, 0 },   { "Off", SND_NODE_BOOL, 0 },   { "OFF", SND_NODE_BOOL, 0 },
    { "null", SND_NODE_NULL, 0 },  { "Null", SND_NODE_NULL, 0 },  { "NULL", SND_NODE_NULL, 0 },
    { "~", SND_NODE_NULL, 0 },     { "", SND_NODE_NULL, 0 },
};

static bool resolve_word(struct snd_node *node)
{
    for (size_t i = 0; i < SND_COUNT_OF(words); i++) {
        if (strlen(words[i].text) == node->length &&
            memcmp(words[i].text, node->text, node->length) == 0) {
            node->kind = words[i].kind;
            node->integer = words[i].value;
            return true;
        }
    }
    return false;
}

/* ---------------------------------------------------------------- numbers */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Digits of `set` and underscores. */
static const char *skip_set(const char *at, const char *set)
{
    while (*at && (*at == '_' || strchr(set, *at)))
        at++;
    return at;
}

static const char *skip_decimals(const char *at)
{
    return skip_set(at, "0123456789");
}

/* (:[0-5]?[0-9])+ ; NULL if there is not even one. */
static const char *skip_sixties(const char *at)
{
    const char *start = at;

    while (*at == ':') {
        if (at[1] >= '0' && at[1] <= '5' && is_digit(at[2]))
            at += 3;
        else if (is_digit(at[1]))
            at += 2;
        else
            return NULL;
    }
    return at > start ? at : NULL;
}

enum int_form { NO_INT, BINARY, OCTAL, DECIMAL, HEX, SIXTIES };

static enum int_form int_form(const char *at)
{
    if (at[0] == '0' && at[1] == 'b' && at[2])
        return *skip_set(at + 2, "01") ? NO_INT : BINARY;
    if (at[0] == '0' && at[1] == 'x' && at[2])
        return *skip_set(at + 2, "0123456789abcdefABCDEF") ? NO_INT : HEX;
    if (at[0] == '0' && at[1] == '\0')
        return DECIMAL;
    if (at[0] == '0')
        return *skip_set(at + 1, "01234567") ? NO_INT : OCTAL;
    if (!is_digit(at[0]))
        return NO_INT;
    at = skip_decimals(at);
    if (*at == '\0')
        return DECIMAL;
    at = skip_sixties(at);
    return at && *at == '\0' ? SIXTIES : NO_INT;
}

static void set_integer(struct snd_node *node, uint64_t value, bool fits, bool negative)
{
    node->in_range = fits && value <= (uint64_t)INT64_MAX + negative;
    node->integer = !node->in_range ? 0 : negative ? (int64_t)(0 - value) : (int64_t)value;
}

/* Digits of a base, underscores left out; what does not fit is kept as a real at least. */
static void read_digits(struct snd_node *node, const char *at, unsigned base, bool negative)
{
    uint64_t value = 0;
    bool     fits = true;
    double   real = 0;

    for (; *at; at++) {
        if (*at == '_')
            continue;
        unsigned digit = (unsigned)(*at > '9' ? (*at | 0x20) - 'a' + 10 : *at - '0');
        fits = fits && value <= (UINT64_MAX - digit) / base;
        value = value * base + digit;
        real = real * base + digit;
    }
    set_integer(node, value, fits, negative);
    node->real = negative ? -real : real;
}

/* 1:30 is 90: groups of base 60, of which only the first may be large. */
static void read_sixties(struct snd_node *node, const char *at, bool negative)
{
    uint64_t value = 0, group = 0;
    bool     fits = true;
    double   real = 0, part = 0;

    for (;; at++) {
        if (*at != ':' && *at != '\0') {
            if (*at != '_') {
                fits = fits && group <= (UINT64_MAX - 9) / 10;
                group = group * 10 + (uint64_t)(*at - '0');
                part = part * 10 + (*at - '0');
            }
            continue;
        }
        fits = fits && value <= (UINT64_MAX - group) / 60;
        value = value * 60 + group;
        real = real * 60 + part;
        group = 0;
        part = 0;
        if (*at == '\0')
            break;
    }
    set_integer(node, value, fits, negative);
    node->real = negative ? -real : real;
}

static bool resolve_int(struct snd_node *node)
{
    const char   *at = node->text;
    bool          negative = *at == '-';
    enum int_form form;

    at += *at == '-' || *at == '+';
    form = int_form(at);
    if (form == NO_INT)
        return false;
    node->kind = SND_NODE_INT;
    if (form == SIXTIES)
        read_sixties(node, at, negative);
    else
        read_digits(node, form == BINARY || form == HEX ? at + 2 : at,
                    form == BINARY  ? 2
                    : form == OCTAL ? 8
                    : form == HEX   ? 16
                                    : 10,
                    negative);
    return true;
}

/* strtod for the full stop, whatever the locale. */
static double read_real(const char *text)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    double   value = plain ? strtod_l(text, NULL, plain) : strtod(text, NULL);

    if (plain)
        freelocale(plain);
    return value;
}

/* ([eE][-+][0-9]+)? and then the end */
static bool ends_after_exponent(const char *at)
{
    if (*at == '\0')
        return true;
    if ((*at | 0x20) != 'e' || (at[1] != '-' && at[1] != '+') || !is_digit(at[2]))
        return false;
    for (at += 2; is_digit(*at); at++)
        ;
    return *at == '\0';
}

/*
 * The digits of `text` without underscores, read as a real; base 60 where colons say so. False
 * if there are more of them than fit: truncated, it would be another number.
 */
static bool read_spaced_real(const char *text, double *real)
{
    double value = 0, sign = *text == '-' ? -1 : 1;
    char   digits[512];
    size_t length = 0;

    text += *text == '-' || *text == '+';
    for (;; text++) {
        if (*text == '_')
            continue;
        if (*text != '\0' && *text != ':') {
            if (length == sizeof digits - 1)
                return false;
            digits[length++] = *text;
            continue;
        }
        digits[length] = '\0';
        value = value * 60 + read_real(digits);
        length = 0;
        if (*text == '\0')
            break;
    }
    *real = sign * value;
    return true;
}

static bool is_one_of(const char *text, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(text, *list) == 0)
            return true;
    return false;
}

static bool is_decimal_real(const char *text)
{
    const char *at = text + (*text == '-' || *text == '+');

    if (*text == '.')
        return is_digit(text[1]) && ends_after_exponent(skip_decimals(text + 1));
    if (!is_digit(*at))
        return false;
    at = skip_decimals(at);
    if (*at == '.')
        return ends_after_exponent(skip_decimals(at + 1));
    at = skip_sixties(at);
    return at && *at == '.' && *skip_decimals(at + 1) == '\0';
}

static bool resolve_real(struct snd_node *node)
{
    static const char *const infinite[] = { ".inf", ".Inf", ".INF", NULL };
    static const char *const none[] = { ".nan", ".NaN", ".NAN", NULL };
    const char              *text = node->text;
    bool                     is_signed = *text == '-' || *text == '+';

    if (is_one_of(text + is_signed, infinite))
        node->real = *text == '-' ? -INFINITY : INFINITY;
    else if (is_one_of(text, none))
        node->real = NAN;
    else if (!is_decimal_real(text))
        return false;
    else if (!text[strcspn(text, "_:")])
        node->real = read_real(text);
    else if (!read_spaced_real(text, &node->real))
        return false;
    node->kind = SND_NODE_REAL;
    return true;
}

/* ------------------------------------------------------------------ dates */

/* From `least` to `most` digits; NULL if they are not there. */
static const char *skip_count(const char *at, int least, int most)
{
    int count = 0;

    while (at && count < most && is_digit(at[count]))
        count++;
    return at && count >= least ? at + count : NULL;
}

static const char *skip_char(const char *at, char c)
{
    return at && *at == c ? at + 1 : NULL;
}

static const char *skip_blanks(const char *at)
{
    return at + strspn(at, " \t");
}

/* (Z|[-+]hh?(:mm)?)? and then the end */
static bool ends_after_zone(const char *at)
{
    at = skip_blanks(at);
    if (*at == 'Z')
        return at[1] == '\0';
    if (*at != '-' && *at != '+')
        return *at == '\0';
    at = skip_count(at + 1, 1, 2);
    if (at && *at == ':')
        at = skip_count(at + 1, 2, 2);
    return at && *at == '\0';
}

static bool is_stamp(const char *text)
{
    const char *at = skip_char(skip_count(text, 4, 4), '-');
    const char *short_form = skip_count(skip_char(skip_count(at, 2, 2), '-'), 2, 2);

    if (short_form && *short_form == '\0')
        return true;
    at = skip_count(skip_char(skip_count(at, 1, 2), '-'), 1, 2);
    if (!at)
        return false;
    const char *hour = (*at | 0x20) == 't' ? at + 1 : skip_blanks(at);
    if (hour == at)
        return false;
    at = skip_char(skip_count(hour, 1, 2), ':');
    at = skip_count(skip_char(skip_count(at, 2, 2), ':'), 2, 2);
    if (!at)
        return false;
    if (*at == '.')
        for (at++; is_digit(*at); at++)
            ;
    /* A blank that no zone follows is no stamp; a plain scalar never ends with one. */
    return ends_after_zone(at);
}

void snd_scalar_resolve(struct snd_node *node)
{
    node->kind = SND_NODE_TEXT;
    if (strlen(node->text) != node->length || resolve_word(node) || resolve_int(node) ||
        resolve_real(node))
        return;
    if (is_stamp(node->text))
        node->kind = SND_NODE_STAMP;
}

bool snd_scalar_is_special(const char *text, size_t length)
{
    struct snd_node node = { .text = text, .length = length };

    snd_scalar_resolve(&node);
    /* << (merge) and = (value) have meanings of their own as well. */
    return node.kind != SND_NODE_TEXT || (length == 2 && memcmp(text, "<<", 2) == 0) ||
           (length == 1 && *text == '=');
}

bool snd_scalar_is_near_number(const char *text, size_t length)
{
    char *end;

    if (length == 0 || strlen(text) != length || !(is_digit(*text) || strchr("+-.", *text)))
        return false;
    (void)strtod(text, &end);
    return *end == '\0' && end > text;
}

/* ----------------------------------------------------------------- writing */

/* One more in the last of the digits; false when that makes another digit. */
static bool step_digits(char *digits, int count)
{
    for (int i = count - 1; i >= 0; i--) {
        if (digits[i] != '9') {
            digits[i]++;
            return true;
        }
        digits[i] = '0';
    }
    return false;
}

static bool reads_back(const char *digits, int exponent, double value)
{
    char text[SND_REAL_MAX];

    snprintf(text, sizeof text, "%c.%se%d", digits[0], digits + 1, exponent);
    return read_real(text) == value;
}

/*
 * The fewest digits that read back as `value`, which is positive, and the exponent of the first.
 * The nearest text of a length may fail where the one above it does not: next to a power of two
 * the double below is nearer.
 */
static int shortest_digits(double value, char digits[20], int *exponent)
{
    for (int count = 1; count <= 17; count++) {
        char text[SND_REAL_MAX], *to = digits;
        snprintf(text, sizeof text, "%.*e", count - 1, value);
        char *mark = strchr(text, 'e');
        for (const char *at = text; at < mark; at++)
            if (is_digit(*at)) /* not the locale's decimal mark */
                *to++ = *at;
        *to = '\0';
        *exponent = (int)strtol(mark + 1, NULL, 10);
        if (reads_back(digits, *exponent, value))
            break;
        char next[20];
        memcpy(next, digits, sizeof next);
        if (count >= 15 && count < 17 && step_digits(next, count) &&
            reads_back(next, *exponent, value)) {
            memcpy(digits, next, sizeof next);
            break;
        }
    }
    int length = (int)strlen(digits);
    while (length > 1 && digits[length - 1] == '0')
        digits[--length] = '\0';
    return length;
}

void snd_real_text(char text[SND_REAL_MAX], double value)
{
    char        digits[20];
    int         exponent, length;
    const char *sign = signbit(value) ? "-" : "";

    if (!isfinite(value)) {
        snprintf(text, SND_REAL_MAX, "%s", isnan(value) ? ".nan" : value < 0 ? "-.inf" : ".inf");
        return;
    }
    if (value == 0) {
        snprintf(text, SND_REAL_MAX, "%s0.0", sign);
        return;
    }
    length = shortest_digits(fabs(value), digits, &exponent);
    if (exponent < -4 || exponent >= 16)
        snprintf(text, SND_REAL_MAX, "%s%c.%se%c%02d", sign, digits[0],
                 length > 1 ? digits + 1 : "0", exponent < 0 ? '-' : '+', abs(exponent));
    else if (exponent < 0)
        snprintf(text, SND_REAL_MAX, "%s0.%.*s%s", sign, -exponent - 1, "0000", digits);
    else if (length <= exponent + 1)
        snprintf(text, SND_REAL_MAX, "%s%s%.*s.0", sign, digits, exponent + 1 - length,
                 "0000000000000000");
    else
        snprintf(text, SND_REAL_MAX, "%s%.*s.%s", sign, exponent + 1, digits,
                 digits + exponent + 1);
}
