/* SPDX-License-Identifier: Apache-2.0 */
#include "probes/heap/counts/live_blocks.h"

#include "base/hints.h"
#include "probes/heap/heap_pages.h"

#define SIZE_BITS 40
#define SIZE_MAX_HERE (((uint64_t)1 << SIZE_BITS) - 1)
#define LEAF_ENTRIES ((size_t)1 << 16)

/* An entry: stack << 40 | size. A size of all ones: it is in the next entry, which the block covers. */
typedef uint64_t entry;

static entry **roots[2][1 << 11]; /* [is between][address >> 36] */

/* The table below a slot, made when it is first needed. */
static void *descend(void **slot, size_t size, bool make)
{
    void *found = __atomic_load_n(slot, __ATOMIC_ACQUIRE), *none = NULL;

    if (SND_LIKELY(found) || !make)
        return found;
    void *fresh = snd_heap_pages(size);
    if (!fresh ||
        __atomic_compare_exchange_n(slot, &none, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return fresh;
    snd_heap_pages_free(fresh, size); /* another thread was faster */
    return none;
}

static inline entry *find(const void *address, bool make)
{
    uint64_t at = (uint64_t)(uintptr_t)address;

    if (SND_UNLIKELY(at >> 47 != 0))
        return NULL;
    void   *root = &roots[at >> 3 & 1][at >> 36];
    entry **middle = descend(root, LEAF_ENTRIES * sizeof(entry *), make);
    if (SND_UNLIKELY(!middle))
        return NULL;
    void  *branch = &middle[at >> 20 & (LEAF_ENTRIES - 1)];
    entry *leaf = descend(branch, LEAF_ENTRIES * sizeof(entry), make);
    return SND_LIKELY(leaf != NULL) ? &leaf[at >> 4 & (LEAF_ENTRIES - 1)] : NULL;
}

bool snd_heap_block_put(const void *address, struct snd_heap_block block)
{
    entry   *at = find(address, true);
    uint64_t size = block.size;

    if (SND_UNLIKELY(!at))
        return false;
    if (SND_UNLIKELY(size >= SIZE_MAX_HERE)) {
        entry *next = find((const char *)address + 16, true);
        if (!next)
            return false;
        __atomic_store_n(next, size, __ATOMIC_RELAXED);
        size = SIZE_MAX_HERE;
    }
    __atomic_store_n(at, (entry)block.stack << SIZE_BITS | size, __ATOMIC_RELAXED);
    return true;
}

struct snd_heap_block snd_heap_block_take(const void *address)
{
    struct snd_heap_block block = { 0, 0 };
    entry                *at = find(address, false);

    if (SND_UNLIKELY(!at))
        return block;
    entry value = __atomic_load_n(at, __ATOMIC_RELAXED);
    if (value == 0)
        return block;
    __atomic_store_n(at, 0, __ATOMIC_RELAXED);
    block = (struct snd_heap_block){ (uint32_t)(value >> SIZE_BITS), value & SIZE_MAX_HERE };
    if (SND_UNLIKELY(block.size == SIZE_MAX_HERE)) {
        entry *next = find((const char *)address + 16, false);
        block.size = next ? __atomic_load_n(next, __ATOMIC_RELAXED) : 0;
        if (next)
            __atomic_store_n(next, 0, __ATOMIC_RELAXED);
    }
    return block;
}
