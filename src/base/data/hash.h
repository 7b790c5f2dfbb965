/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/data/hash.h - a 128-bit hash of short keys, for tables that never see hostile keys.
 *
 * Two 64-bit lanes, each word folded in by a 64 x 64 -> 128 bit multiplication whose halves
 * are xor-ed: a few cycles a word. Not cryptographic. Equal hashes may be taken for equal
 * keys where a wrong answer once in 2^64 lookups is acceptable.
 *
 * Layer: base. Threads: any.
 */
#ifndef SND_BASE_DATA_HASH_H
#define SND_BASE_DATA_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct snd_hash {
    uint64_t low, high;
};

static inline uint64_t snd_hash_mix(uint64_t a, uint64_t b)
{
    __extension__ unsigned __int128 product = (unsigned __int128)a * b;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline struct snd_hash snd_hash_bytes(const void *data, size_t length, uint64_t seed)
{
    const unsigned char *at = data;
    uint64_t low = seed ^ 0x9e3779b97f4a7c15u, high = (uint64_t)length ^ 0xd6e8feb86659fd93u;

    for (; length >= 8; length -= 8, at += 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        low = snd_hash_mix(low ^ word, 0xa0761d6478bd642fu);
        high = snd_hash_mix(high + word, 0xe7037ed1a0b428dbu);
    }
    uint64_t tail = 0;
    memcpy(&tail, at, length);
    low = snd_hash_mix(low ^ tail, 0x8ebc6af09c88c6e3u);
    high = snd_hash_mix(high + tail, 0x589965cc75374cc3u);
    return (struct snd_hash){ snd_hash_mix(low ^ high, 0x1d8e4e27c47d124fu), high ^ (low << 1) };
}

#endif
