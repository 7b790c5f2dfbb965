/* SPDX-License-Identifier: Apache-2.0 */
#include "base/data/crc32c.h"

#include <stdbool.h>
#include <string.h>

#define POLYNOMIAL 0x82f63b78u /* reflected */

/* Half a byte at a time from a constant table: no state to initialise, no race. */
static uint32_t crc_portable(uint32_t crc, const uint8_t *at, size_t length)
{
    static const uint32_t nibble[16] = {
        0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
        0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
        0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
    };

    for (; length > 0; length--, at++) {
        crc ^= *at;
        crc = (crc >> 4) ^ nibble[crc & 15];
        crc = (crc >> 4) ^ nibble[crc & 15];
    }
    return crc;
}

#if defined(__x86_64__)
#include <nmmintrin.h>
#include <wmmintrin.h>

/* An instruction's result takes three cycles, and one can begin in each: so three blocks of this size at once. */
enum { BLOCK = 1024 };
/* What a sum is multiplied by for so many bytes after it: x^(8 * bytes - 33), reflected. */
static const uint32_t beyond_one = 0x170076fa, beyond_two = 0xa51b6135;

__attribute__((target("sse4.2,pclmul"))) static uint64_t move_on(uint32_t crc, uint32_t factor)
{
    __m128i product = _mm_clmulepi64_si128(_mm_cvtsi32_si128((int)crc),
                                           _mm_cvtsi32_si128((int)factor), 0);
    return (uint64_t)_mm_cvtsi128_si64(product);
}

__attribute__((target("sse4.2,pclmul"))) static uint32_t crc_of_three(uint32_t       crc,
                                                                      const uint8_t *at)
{
    uint64_t sums[3] = { crc, 0, 0 };

    for (const uint8_t *end = at + BLOCK; at < end; at += 8) {
        uint64_t words[3];
        for (size_t i = 0; i < 3; i++) {
            memcpy(&words[i], at + i * BLOCK, 8);
            sums[i] = _mm_crc32_u64(sums[i], words[i]);
        }
    }
    uint64_t moved = move_on((uint32_t)sums[0], beyond_two) ^
                     move_on((uint32_t)sums[1], beyond_one);
    return (uint32_t)(_mm_crc32_u64(0, moved) ^ sums[2]);
}

__attribute__((target("sse4.2,pclmul"))) static uint32_t
crc_hardware(uint32_t crc, const uint8_t *at, size_t length)
{
    for (; length >= 3 * BLOCK; length -= 3 * BLOCK, at += 3 * BLOCK)
        crc = crc_of_three(crc, at);
    uint64_t wide = crc;

#pragma GCC unroll 8
    for (size_t words = length / 8; words > 0; words--, at += 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        wide = _mm_crc32_u64(wide, word);
    }
    length %= 8;
    crc = (uint32_t)wide;
    for (; length > 0; length--, at++)
        crc = _mm_crc32_u8(crc, *at);
    return crc;
}

static bool has_hardware(void)
{
    return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
}
#else
static uint32_t crc_hardware(uint32_t crc, const uint8_t *at, size_t length)
{
    return crc_portable(crc, at, length);
}

static bool has_hardware(void)
{
    return false;
}
#endif

uint32_t snd_crc32c(uint32_t crc, const void *data, size_t length)
{
    crc = ~crc;
    crc = has_hardware() ? crc_hardware(crc, data, length) : crc_portable(crc, data, length);
    return ~crc;
}
