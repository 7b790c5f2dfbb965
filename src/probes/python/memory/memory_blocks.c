/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/python/memory/memory_blocks.c - open addressing, in pages of its own: it is used where malloc
 * cannot be.
 */
#include "probes/python/memory/memory_blocks.h"

#include <stdint.h>
#include <sys/mman.h>

#define PARTS 64u
#define SLOTS_AT_FIRST 1024u

struct block {
    uintptr_t address; /* 0: free slot */
    size_t    size;
};

static struct part {
    uint32_t      locked;
    uint32_t      slots, used; /* slots: a power of two */
    struct block *blocks;
} parts[PARTS] __attribute__((aligned(64)));

static uint64_t mix(uintptr_t address)
{
    return (uint64_t)(address >> 4) * UINT64_C(0x9E3779B97F4A7C15);
}

static struct part *lock_part(uint64_t hash)
{
    struct part *part = &parts[hash >> 58];

    while (__atomic_exchange_n(&part->locked, 1, __ATOMIC_ACQUIRE))
        while (__atomic_load_n(&part->locked, __ATOMIC_RELAXED))
            ;
    return part;
}

static void unlock_part(struct part *part)
{
    __atomic_store_n(&part->locked, 0, __ATOMIC_RELEASE);
}

static uint32_t home_of(const struct part *part, uint64_t hash)
{
    return (uint32_t)(hash >> 24) & (part->slots - 1);
}

/* The slot of `address`, or the free one where it would be. */
static struct block *find(const struct part *part, uintptr_t address, uint64_t hash)
{
    uint32_t at = home_of(part, hash);

    while (part->blocks[at].address && part->blocks[at].address != address)
        at = (at + 1) & (part->slots - 1);
    return &part->blocks[at];
}

static bool grow(struct part *part)
{
    struct part   bigger = { .slots = part->slots ? 2 * part->slots : SLOTS_AT_FIRST };
    size_t        bytes = bigger.slots * sizeof(struct block);
    struct block *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                               0);

    if (pages == MAP_FAILED)
        return false;
    bigger.blocks = pages;
    for (uint32_t i = 0; i < part->slots; i++) {
        uintptr_t address = part->blocks[i].address;
        if (address)
            *find(&bigger, address, mix(address)) = part->blocks[i];
    }
    if (part->blocks)
        munmap(part->blocks, part->slots * sizeof(struct block));
    part->blocks = bigger.blocks;
    part->slots = bigger.slots;
    return true;
}

bool snd_blocks_put(const void *block, size_t size)
{
    uintptr_t    address = (uintptr_t)block;
    uint64_t     hash = mix(address);
    struct part *part = lock_part(hash);
    bool         done = part->used < part->slots / 2 || grow(part);

    if (done) {
        struct block *slot = find(part, address, hash);
        part->used += !slot->address;
        *slot = (struct block){ address, size };
    }
    unlock_part(part);
    return done;
}

/* Closes the gap at `slot`: later entries that belong at or before it move up. */
static void remove_block(struct part *part, struct block *slot)
{
    uint32_t gap = (uint32_t)(slot - part->blocks), mask = part->slots - 1;

    for (uint32_t at = (gap + 1) & mask; part->blocks[at].address; at = (at + 1) & mask) {
        uint32_t home = home_of(part, mix(part->blocks[at].address));
        if (((at - home) & mask) < ((at - gap) & mask))
            continue;
        part->blocks[gap] = part->blocks[at];
        gap = at;
    }
    part->blocks[gap].address = 0;
    part->used--;
}

bool snd_blocks_take(const void *block, size_t *size)
{
    uintptr_t     address = (uintptr_t)block;
    uint64_t      hash = mix(address);
    struct part  *part = lock_part(hash);
    struct block *slot = part->slots ? find(part, address, hash) : NULL;
    bool          found = slot && slot->address;

    if (found) {
        *size = slot->size;
        remove_block(part, slot);
    }
    unlock_part(part);
    return found;
}

size_t snd_blocks_size(const void *block)
{
    uintptr_t     address = (uintptr_t)block;
    uint64_t      hash = mix(address);
    struct part  *part = lock_part(hash);
    struct block *slot = part->slots ? find(part, address, hash) : NULL;
    size_t        size = slot && slot->address ? slot->size : 0;

    unlock_part(part);
    return size;
}

void snd_blocks_forget(void)
{
    for (uint32_t i = 0; i < PARTS; i++) {
        struct part *part = lock_part((uint64_t)i << 58);
        if (part->blocks)
            munmap(part->blocks, part->slots * sizeof(struct block));
        part->blocks = NULL;
        part->slots = part->used = 0;
        unlock_part(part);
    }
}

void snd_blocks_unlock(void)
{
    for (uint32_t i = 0; i < PARTS; i++)
        unlock_part(&parts[i]);
}
