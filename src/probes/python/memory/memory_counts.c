/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/python/memory/memory_counts.c - hooks of Python's allocators, on and off.
 *
 * If another tool (tracemalloc) has installed its hooks over ours, ours cannot be removed: they
 * stay and only pass calls on. Whether they are still called is found by allocating a byte.
 */
#include "probes/python/memory/memory_counts.h"

#include <link.h>
#include <pthread.h>
#include <unistd.h>

#include "base/count_of.h"
#include "base/hints.h"

static struct {
    uint64_t           base_bytes; /* resident when nothing had been counted */
    unsigned long long libraries;  /* loaded so far, when last looked */
} memory;

uint64_t snd_memory_in_use(void)
{
    int64_t bytes = (int64_t)memory.base_bytes + snd_memory_net();

    return bytes > 0 ? (uint64_t)bytes : 0;
}

/* -------------------------------------------------------------- Python's allocators */

static struct domain {
    PyMemAllocatorDomain id;
    char                 letter; /* that the debug hooks write before its blocks */
    PyMemAllocatorEx     before;
    size_t (*size_of)(const void *block); /* of one that was there before */
} domains[] = { { PYMEM_DOMAIN_RAW, 'r', { 0 }, NULL },
                { PYMEM_DOMAIN_MEM, 'm', { 0 }, NULL },
                { PYMEM_DOMAIN_OBJ, 'o', { 0 }, NULL } };
#define DOMAINS SND_COUNT_OF(domains)

static void note_taken(void *block, size_t size)
{
    if (block && snd_blocks_put(block, size))
        snd_memory_count((int64_t)size, 0);
}

static void *take(void *context, size_t size)
{
    struct domain            *domain = context;
    struct snd_memory_thread *mine = &snd_memory_mine_;

    if (!snd_memory_counts())
        return domain->before.malloc(domain->before.ctx, size);
    mine->inside = 1;
    void *block = domain->before.malloc(domain->before.ctx, size);
    mine->inside = 0;
    note_taken(block, size);
    return block;
}

static void *take_zeroed(void *context, size_t count, size_t size)
{
    struct domain            *domain = context;
    struct snd_memory_thread *mine = &snd_memory_mine_;

    if (!snd_memory_counts())
        return domain->before.calloc(domain->before.ctx, count, size);
    mine->inside = 1;
    void *block = domain->before.calloc(domain->before.ctx, count, size);
    mine->inside = 0;
    note_taken(block, count * size);
    return block;
}

/* ---- blocks that were there before */

/*
 * A block that Python's allocator for small ones does not know as its own is passed on, as a raw
 * one; `inside` is set then, and its size noted on the way.
 */
static void note_passed(const struct domain *domain, const void *block)
{
    struct snd_memory_thread *mine = &snd_memory_mine_;

    if (mine->inside && domain->id == PYMEM_DOMAIN_RAW && snd_memory_on)
        mine->passed_bytes = domain->size_of(block);
}

static size_t size_after(const struct domain *domain, size_t size)
{
    size_t passed = snd_memory_mine_.passed_bytes;

    return passed && domain->size_of == snd_size_by_pool ? passed : size;
}

static size_t give_unknown(struct domain *domain, void *block)
{
    struct snd_memory_thread *mine = &snd_memory_mine_;
    size_t                    size = domain->size_of(block);

    mine->passed_bytes = 0;
    mine->inside = 1;
    domain->before.free(domain->before.ctx, block);
    mine->inside = 0;
    return size_after(domain, size);
}

static void give(void *context, void *block)
{
    struct domain            *domain = context;
    struct snd_memory_thread *mine = &snd_memory_mine_;
    size_t                    size = 0;

    if (!block || !snd_memory_counts()) {
        if (block)
            note_passed(domain, block);
        domain->before.free(domain->before.ctx, block);
        return;
    }
    if (snd_blocks_take(block, &size)) {
        mine->inside = 1;
        domain->before.free(domain->before.ctx, block);
        mine->inside = 0;
    } else {
        size = give_unknown(domain, block);
    }
    if (!(size & SND_BLOCK_KEPT)) /* else it was counted when it was dropped */
        snd_memory_count(0, (int64_t)size);
}

/* Growing takes the difference, shrinking gives it back. */
static void *resize(void *context, void *block, size_t size)
{
    struct domain            *domain = context;
    struct snd_memory_thread *mine = &snd_memory_mine_;
    size_t                    before = 0;

    if (!block)
        return take(context, size);
    if (!snd_memory_counts()) {
        note_passed(domain, block);
        return domain->before.realloc(domain->before.ctx, block, size);
    }
    bool known = snd_blocks_take(block, &before);
    if (!known)
        before = domain->size_of(block);
    mine->passed_bytes = 0;
    mine->inside = 1;
    void *moved = domain->before.realloc(domain->before.ctx, block, size);
    mine->inside = 0;
    if (!known)
        before = size_after(domain, before);
    if (!moved) { /* realloc failed: the block is unchanged */
        if (known)
            snd_blocks_put(block, before);
        return NULL;
    }
    if (before & SND_BLOCK_KEPT)
        before = 0;
    snd_blocks_put(moved, size);
    snd_memory_count(size > before ? (int64_t)(size - before) : 0,
                     before > size ? (int64_t)(before - size) : 0);
    return moved;
}

/* ----------------------------------------------------------------------- on and off */

/* Whether allocations of the domain go through our hook. */
static bool is_there(const struct domain *domain)
{
    static void *(*const take_one[])(size_t) = { PyMem_RawMalloc, PyMem_Malloc, PyObject_Malloc };
    static void (*const give_one[])(void *) = { PyMem_RawFree, PyMem_Free, PyObject_Free };
    void *byte = take_one[domain->id](1);
    bool  there = byte && snd_blocks_size(byte) != 0;

    give_one[domain->id](byte);
    return there;
}

#define PROBE_BYTES 4099u /* too large for Python's allocator of small blocks */

/* Finds how to get the size of its blocks, by allocating one: another tool's hook may add a header. */
static void see_sizes(struct domain *domain)
{
    struct snd_memory_thread *mine = &snd_memory_mine_;
    uint32_t                  inside = mine->inside;

    mine->inside = 1;
    mine->passed_bytes = 0;
    void *block = domain->before.malloc(domain->before.ctx, PROBE_BYTES);
    bool  headed = snd_size_has_header(block, PROBE_BYTES, domain->letter);
    domain->before.free(domain->before.ctx, block);
    mine->inside = inside;
    bool pooled = domain->id != PYMEM_DOMAIN_RAW && mine->passed_bytes;
    domain->size_of = headed ? snd_size_by_header : pooled ? snd_size_by_pool : snd_size_by_malloc;
}

static void stand_before(struct domain *domain)
{
    PyMemAllocatorEx ours = { domain, take, take_zeroed, resize, give };

    if (is_there(domain))
        return;
    PyMem_GetAllocator(domain->id, &domain->before);
    see_sizes(domain);
    PyMem_SetAllocator(domain->id, &ours);
}

static void step_aside(struct domain *domain)
{
    PyMemAllocatorEx now;

    PyMem_GetAllocator(domain->id, &now);
    if (now.ctx == domain && now.malloc == take)
        PyMem_SetAllocator(domain->id, &domain->before);
}

static int see_number(struct dl_phdr_info *info, size_t size, void *number)
{
    (void)size;
    *(unsigned long long *)number = info->dlpi_adds;
    return 1;
}

void snd_memory_look_again(void)
{
    unsigned long long number = 0;

    snd_rss_start();
    dl_iterate_phdr(see_number, &number);
    if (SND_LIKELY(number == memory.libraries))
        return;
    memory.libraries = number;
    snd_divert_malloc();
}

/* Locks may have been held by threads that the child does not have. */
static void renew_in_child(void)
{
    snd_blocks_unlock();
    snd_rss_forget(); /* most children exec another program: the thread is started with the first line */
}

static void prepare(void)
{
    static bool done;

    if (!done)
        pthread_atfork(NULL, NULL, renew_in_child);
    done = true;
}

void snd_memory_start(void)
{
    prepare();
    if (snd_memory_on > 0) {
        snd_memory_on++;
        return;
    }
    uint64_t resident = snd_rss_bytes();
    int64_t  before = snd_memory_net();
    memory.base_bytes = resident - (uint64_t)before;
    __atomic_store_n(&snd_memory_on, 1, __ATOMIC_RELAXED);
    for (size_t i = 0; i < DOMAINS; i++)
        stand_before(&domains[i]);
    snd_reuse_start();
    memory.libraries = 0;
    snd_memory_look_again();
}

void snd_memory_stop(void)
{
    if (snd_memory_on == 0)
        return;
    if (snd_memory_on > 1) {
        snd_memory_on--;
        return;
    }
    __atomic_store_n(&snd_memory_on, 0, __ATOMIC_RELAXED);
    snd_reuse_stop();
    for (size_t i = 0; i < DOMAINS; i++)
        step_aside(&domains[i]);
    snd_divert_undo();
    snd_blocks_forget();
    snd_rss_stop();
}
