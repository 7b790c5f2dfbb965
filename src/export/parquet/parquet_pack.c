/* SPDX-License-Identifier: Apache-2.0 */
#include "export/parquet/parquet_pack.h"

#include <string.h>

#include "export/encode/thrift.h"

#define GROUP 8u      /* values that bits are packed by */
#define BLOCK 128u    /* of differences, which share their least one */
#define MINIBLOCKS 4u /* of a block, each with a width of its own */
#define MINIBLOCK (BLOCK / MINIBLOCKS)

unsigned snd_bit_width(uint64_t value)
{
    return value ? 64u - (unsigned)__builtin_clzll(value) : 0;
}

/* ------------------------------------------------------------------------- runs */

/* Bits of `count` values, lowest first, padded with zeros to a multiple of 8 values. */
static void put_bits(struct sonde_buffer *out, const uint32_t *values, size_t count, unsigned width)
{
    size_t   groups = (count + GROUP - 1) / GROUP;
    uint64_t bits = 0;
    unsigned held = 0; /* below 32 before each value, which has at most 32 */
    char     bytes[256];
    size_t   n = 0;

    snd_put_varint(out, groups << 1 | 1);
    for (size_t i = 0; i < groups * GROUP; i++) {
        bits |= (uint64_t)(i < count ? values[i] : 0) << held;
        held += width;
        if (held < 32)
            continue;
        memcpy(bytes + n, &bits, 4);
        bits >>= 32;
        held -= 32;
        n += 4;
        if (n > sizeof bytes - 8) {
            snd_buf_put(out, bytes, n);
            n = 0;
        }
    }
    memcpy(bytes + n, &bits, 4);
    snd_buf_put(out, bytes, n + held / 8); /* 8 values are whole bytes */
}

void snd_parquet_run(struct sonde_buffer *out, uint32_t value, size_t count, unsigned width)
{
    char     bytes[4];
    unsigned n = 0;

    snd_put_varint(out, (uint64_t)count << 1);
    for (; n < (width + 7) / 8; n++, value >>= 8)
        bytes[n] = (char)value;
    snd_buf_put(out, bytes, n);
}

static size_t run_length(const uint32_t *values, size_t count)
{
    size_t n = 1;

    while (n < count && values[n] == values[0])
        n++;
    return n;
}

/* The last of the next values that differs from the one before it, if a run of 8 cannot begin before it; else 0. */
static size_t find_other(const uint32_t *values, size_t count)
{
    size_t n = count >= GROUP ? GROUP - 1 : 0;

    while (n > 0 && values[n] == values[n - 1])
        n--;
    return n;
}

void snd_parquet_runs(struct sonde_buffer *out, const uint32_t *values, size_t count,
                      unsigned width)
{
    size_t begun =
        0; /* values from here on go as bits, a multiple of 8 of them unless at the end */

    for (size_t at = 0; at < count;) {
        size_t other = find_other(values + at, count - at);
        if (other > 0) {
            at += other;
            continue;
        }
        size_t run = run_length(values + at, count - at);
        size_t missing = (GROUP - (at - begun) % GROUP) % GROUP;
        if (run < missing + GROUP) {
            at += run;
            continue;
        }
        at += missing;
        if (at > begun)
            put_bits(out, values + begun, at - begun, width);
        snd_parquet_run(out, values[at], run - missing, width);
        at += run - missing;
        begun = at;
    }
    if (begun < count)
        put_bits(out, values + begun, count - begun, width);
}

/* ------------------------------------------------------------------ differences */

__extension__ typedef unsigned __int128 wide;

/* 32 values, whose bits are whole bytes at any width. */
static void put_miniblock(struct sonde_buffer *out, const uint64_t values[MINIBLOCK],
                          unsigned width)
{
    char     bytes[MINIBLOCK * 8 + 8];
    size_t   n = 0;
    unsigned held = 0; /* below 64 before each value */
    wide     bits = 0;

    if (width == 0)
        return;
    for (size_t i = 0; i < MINIBLOCK; i++) {
        bits |= (wide)values[i] << held;
        held += width;
        if (held < 64)
            continue;
        memcpy(bytes + n, &bits, 8);
        bits >>= 64;
        held -= 64;
        n += 8;
    }
    memcpy(bytes + n, &bits, 8);
    snd_buf_put(out, bytes, n + held / 8);
}

static void put_block(struct sonde_buffer *out, const uint64_t *deltas, size_t count)
{
    int64_t  least = INT64_MAX;
    uint64_t above[BLOCK] = { 0 };
    uint8_t  widths[MINIBLOCKS] = { 0 };

    for (size_t i = 0; i < count; i++)
        least = (int64_t)deltas[i] < least ? (int64_t)deltas[i] : least;
    for (size_t i = 0; i < count; i++) {
        above[i] = deltas[i] - (uint64_t)least;
        unsigned width = snd_bit_width(above[i]);
        if (width > widths[i / MINIBLOCK])
            widths[i / MINIBLOCK] = (uint8_t)width;
    }
    snd_put_zigzag(out, least);
    snd_buf_put(out, widths, sizeof widths);
    for (size_t i = 0; i < count; i += MINIBLOCK)
        put_miniblock(out, above + i, widths[i / MINIBLOCK]);
}

/* Differences wrap around: they are right for values that lie 2^63 and more apart, too. */
void snd_parquet_deltas(struct sonde_buffer *out, const int64_t *values, size_t count)
{
    uint64_t deltas[BLOCK];

    snd_put_varint(out, BLOCK);
    snd_put_varint(out, MINIBLOCKS);
    snd_put_varint(out, count);
    snd_put_zigzag(out, count ? values[0] : 0);
    for (size_t at = 1; at < count; at += BLOCK) {
        size_t n = count - at < BLOCK ? count - at : BLOCK;
        for (size_t i = 0; i < n; i++)
            deltas[i] = (uint64_t)values[at + i] - (uint64_t)values[at + i - 1];
        put_block(out, deltas, n);
    }
}
