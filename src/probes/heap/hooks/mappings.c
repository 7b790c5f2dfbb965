/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/heap/hooks/mappings.c - anonymous memory that the program maps itself: counted apart from
 * malloc's, in full in either mode, since each call is a system call anyway.
 *
 * What the C library maps for its own malloc does not come by here. Parts may be unmapped, or
 * mapped over: the list of mappings is kept in order of address, without overlaps.
 */
#undef _FILE_OFFSET_BITS /* it would make mmap another name of mmap64; both are defined here */
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>

#include "probes/heap/hooks/heap_calls.h"
#include "probes/heap/locks.h"
#include "probes/heap/hooks/mappings.h"
#include "probes/heap/counts/heap_notes.h"
#include "probes/heap/heap_pages.h"
#include "probes/heap/stacks/heap_python.h"

struct mapping {
    uint64_t from, to;
    uint32_t stack;
};

static struct snd_heap_lock lock;
static struct mapping      *list;
static size_t               count, room;

static bool grow(void)
{
    size_t          more = room ? room * 2 : 4096 / sizeof *list;
    struct mapping *fresh = snd_heap_pages(more * sizeof *list);

    if (!fresh)
        return false;
    if (list) {
        memcpy(fresh, list, count * sizeof *list);
        snd_heap_pages_free(list, room * sizeof *list);
    }
    list = fresh;
    room = more;
    return true;
}

/* Index of the first mapping that ends after this address. */
static size_t find(uint64_t address)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (list[middle].to <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void insert(size_t at, struct mapping mapping)
{
    if (count == room && !grow())
        return;
    memmove(&list[at + 1], &list[at], (count - at) * sizeof *list);
    list[at] = mapping;
    count++;
}

/* `whole`: the mapping is gone; else a part of its bytes. */
static void count_part(uint32_t stack, uint64_t bytes, bool whole)
{
    struct snd_heap_change change = { .freed = stack, .freed_weight = { whole, bytes, 0 } };

    snd_heap_count(&change);
}

static void cut(uint64_t from, uint64_t to)
{
    size_t at = find(from);

    while (at < count && list[at].from < to) {
        struct mapping *m = &list[at];
        uint64_t        low = m->from > from ? m->from : from, high = m->to < to ? m->to : to;
        bool            whole = low == m->from && high == m->to;
        count_part(m->stack, high - low, whole);
        if (whole) {
            memmove(m, m + 1, (count - at - 1) * sizeof *list);
            count--;
        } else if (low > m->from && high < m->to) {
            struct mapping         rest = { high, m->to, m->stack };
            struct snd_heap_change one_more = { .taken = m->stack, .taken_weight = { 1, 0, 0 } };
            m->to = low;
            insert(at + 1, rest);
            snd_heap_count(&one_more); /* the mapping was split in two: both will be unmapped */
            return;
        } else if (low > m->from) {
            m->to = low;
            at++;
        } else {
            m->from = high;
            at++;
        }
    }
}

static bool is_counted(void)
{
    return snd_heap_mode > SND_HEAP_OFF && snd_heap_self.inside == SND_OUTSIDE;
}

static uint64_t pages_of(size_t size)
{
    return (size + 4095) & ~(uint64_t)4095;
}

static void enter(void)
{
    snd_heap_self.inside = SND_COUNTING;
    snd_heap_lock(&lock);
}

static void leave(void)
{
    snd_heap_unlock(&lock);
    snd_heap_self.inside = SND_OUTSIDE;
}

static void note_cut(const void *at, size_t size)
{
    if (!is_counted() || __atomic_load_n(&count, __ATOMIC_RELAXED) == 0)
        return;
    enter();
    cut((uint64_t)(uintptr_t)at, (uint64_t)(uintptr_t)at + pages_of(size));
    leave();
}

static void note_mapped(const void *at, size_t size, const struct snd_heap_caller *caller)
{
    struct snd_heap_stack stack;
    uint64_t              from = (uint64_t)(uintptr_t)at;

    if (!is_counted())
        return;
    snd_heap_self.inside = SND_PREPARING;
    if (!snd_heap_python_maps(caller, size, &stack))
        snd_heap_walk(caller, &stack);
    uint32_t number = snd_heap_stack_of(SND_HEAP_MAPPED, &stack);
    snd_heap_self.inside = SND_OUTSIDE;
    if (number <= SND_HEAP_OWN)
        return;
    struct snd_heap_change change = { .taken = number, .taken_weight = { 1, pages_of(size), 0 } };
    enter();
    insert(find(from), (struct mapping){ from, from + pages_of(size), number });
    snd_heap_count(&change);
    leave();
}

static void *map(void *at, size_t size, int protection, int flags, int file, off_t offset,
                 const struct snd_heap_caller *caller)
{
    if (!snd_heap_ready())
        return (void *)syscall(SYS_mmap, at, size, protection, flags, file, offset); /* NOLINT */
    if (flags & MAP_FIXED)
        note_cut(at, size);
    void *got = snd_heap_next.mmap(at, size, protection, flags, file, offset);
    if (got != MAP_FAILED && flags & MAP_ANONYMOUS)
        note_mapped(got, size, caller);
    return got;
}

SND_EXPORTED void *mmap(void *at, size_t size, int protection, int flags, int file, off_t offset)
{
    struct snd_heap_caller caller = SND_HEAP_CALLER;

    return map(at, size, protection, flags, file, offset, &caller);
}

SND_EXPORTED void *mmap64(void *at, size_t size, int protection, int flags, int file, off_t offset)
{
    struct snd_heap_caller caller = SND_HEAP_CALLER;

    return map(at, size, protection, flags, file, offset, &caller);
}

SND_EXPORTED int munmap(void *at, size_t size)
{
    if (!snd_heap_ready())
        return (int)syscall(SYS_munmap, at, size);
    note_cut(at, size);
    return snd_heap_next.munmap(at, size);
}

/* A mapping whose size or place changes: the old one goes, a new one comes. */
SND_EXPORTED void *mremap(void *at, size_t size, size_t to, int flags, ...)
{
    struct snd_heap_caller caller = SND_HEAP_CALLER;
    va_list                list_of;
    void                  *fixed;

    va_start(list_of, flags);
    fixed = flags & MREMAP_FIXED ? va_arg(list_of, void *) : NULL;
    va_end(list_of);
    if (!snd_heap_ready())
        return (void *)syscall(SYS_mremap, at, size, to, flags, fixed); /* NOLINT */
    uint64_t from = (uint64_t)(uintptr_t)at;
    size_t   found = is_counted() && count ? find(from) : count;
    bool     is_known = found < count && list[found].from <= from;
    void    *got = snd_heap_next.mremap(at, size, to, flags, fixed);
    if (got != MAP_FAILED && is_known) {
        note_cut(at, size);
        note_mapped(got, to, &caller);
    }
    return got;
}

void snd_heap_mappings_lock(void)
{
    snd_heap_lock(&lock);
}

void snd_heap_mappings_unlock(void)
{
    snd_heap_unlock(&lock);
}
