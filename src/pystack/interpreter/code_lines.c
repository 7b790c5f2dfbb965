/* SPDX-License-Identifier: Apache-2.0 */
#include "pystack/interpreter/code_lines.h"

#define NO_LINE (-128) /* 3.10: the range belongs to no line */

/* Pairs: how far the address moves on, how far the line does (signed). */
static int64_t find_lnotab(const uint8_t *table, size_t size, int64_t line, int64_t offset)
{
    int64_t address = 0;

    for (size_t i = 0; i + 1 < size; i += 2) {
        address += table[i];
        if (address > offset)
            break;
        line += (int8_t)table[i + 1];
    }
    return line;
}

/* Pairs: how long the range is, how far its line is from the one before (signed). */
static int64_t find_linetable(const uint8_t *table, size_t size, int64_t line, int64_t offset)
{
    int64_t end = 0;

    for (size_t i = 0; i + 1 < size; i += 2) {
        int8_t delta = (int8_t)table[i + 1];
        end += table[i];
        if (delta != NO_LINE)
            line += delta;
        if (offset < end)
            return delta == NO_LINE ? -1 : line;
    }
    return -1;
}

/* ------------------------------------------------------------- location tables */

struct bytes {
    const uint8_t *at, *end;
};

/* Six bits a byte, lowest first; bit 6: more follow. */
static uint64_t take_varint(struct bytes *b)
{
    uint64_t value = 0;

    for (unsigned shift = 0; b->at < b->end && shift < 60; shift += 6) {
        uint8_t byte = *b->at++;
        value |= (uint64_t)(byte & 63) << shift;
        if (!(byte & 64))
            break;
    }
    return value;
}

static int64_t take_signed(struct bytes *b)
{
    uint64_t value = take_varint(b);

    return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

/*
 * Entries: 1 | code (4 bits) | length - 1 (3 bits, in units of two bytes), then what the code
 * says. 0 to 9: the same line; 10 to 12: that many lines on, less ten; 13: a signed number, no
 * columns; 14: the same, with columns; 15: no line.
 */
static int64_t find_location(const uint8_t *table, size_t size, int64_t line, int64_t offset)
{
    struct bytes b = { table, table + size };
    int64_t      end = 0;

    while (b.at < b.end) {
        uint8_t  head = *b.at++;
        unsigned code = (head >> 3) & 15;
        if (code >= 13 && code <= 14)
            line += take_signed(&b);
        else if (code >= 10 && code <= 12)
            line += code - 10;
        end += ((head & 7) + 1) * 2;
        if (offset < end)
            return code == 15 ? -1 : line;
        while (b.at < b.end && !(*b.at & 128)) /* columns */
            b.at++;
    }
    return -1;
}

uint32_t snd_py_line(enum snd_py_lines kind, const uint8_t *table, size_t size, uint32_t first_line,
                     int64_t offset)
{
    static int64_t (*const find[])(const uint8_t *, size_t, int64_t, int64_t) = {
        [SND_PY_LNOTAB] = find_lnotab,
        [SND_PY_LINETABLE] = find_linetable,
        [SND_PY_LOCATIONS] = find_location,
    };
    int64_t line = offset < 0 ? -1 : find[kind](table, size, first_line, offset);

    return line > 0 && line <= INT32_MAX ? (uint32_t)line : first_line;
}
