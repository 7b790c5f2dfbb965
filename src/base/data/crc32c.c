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

__attribute__((target("sse4.2"))) static uint32_t crc_hardware(uint32_t crc, const uint8_t *at,
                                                               size_t length)
{
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
    return __builtin_cpu_supports("sse4.2");
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
