/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/heap/operators.c - operator new and delete of C++, by their names in libraries.
 *
 * Those of libstdc++ and libc++ call malloc and free, which count: they are called as they are. An
 * allocator that brings its own (jemalloc, tcmalloc, mimalloc) does not, so that the call is noted
 * here; unless the allocator's operator has called malloc after all, which left the block in `counted`.
 *
 * An exception of the real operator passes through these functions: they hold nothing.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "probes/heap/calls.h"
#include "probes/heap/notes.h"
#include "pystack/cfi.h"

/* Their further arguments: an alignment, std::nothrow. A call passes them on as they came. */
typedef void *taking(size_t size, uintptr_t second, uintptr_t third);
typedef void  giving(void *block, uintptr_t second, uintptr_t third, uintptr_t fourth);

struct operator
{
    const char *name;
    void       *next;
    bool        is_plain; /* it calls malloc or free */
};

/* A library that was loaded by dlopen() is not among the next ones. */
static void *find_in_loaded(const char *name)
{
    static const char *const libraries[] = { "libstdc++.so.6", "libc++.so.1" };
    void                    *found = NULL;

    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0] && !found; i++) {
        void *library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);
        if (library)
            found = dlsym(library, name); /* and it stays open: the address must stay valid */
    }
    return found;
}

static SND_NOINLINE void look_up(struct operator* one)
{
    struct snd_cfi_object where;
    void                 *found = dlsym(RTLD_NEXT, one->name);

    snd_heap_ready();
    if (!found)
        found = find_in_loaded(one->name);
    const char *file = found && snd_cfi_object((uint64_t)(uintptr_t)found, &where)
                           ? where.map->l_name
                           : "";
    one->is_plain = strstr(file, "libstdc++.so") || strstr(file, "libc++.so");
    __atomic_store_n(&one->next, found, __ATOMIC_RELEASE);
}

static void *take(const struct operator* one, size_t size, uintptr_t second, uintptr_t third,
                  const struct snd_heap_caller *caller)
{
    struct snd_heap_thread *self = &snd_heap_self;
    taking                 *next;

    self->counted = NULL;
    memcpy(&next, &one->next, sizeof next);
    void *block = next(size, second, third);
    if (block != self->counted)
        snd_heap_taken(block, size, caller);
    return block;
}

static void give(const struct operator* one, void *block, uintptr_t second, uintptr_t third,
                 uintptr_t fourth)
{
    struct snd_heap_thread *self = &snd_heap_self;
    giving                 *next;

    memcpy(&next, &one->next, sizeof next);
    snd_heap_freed(block);
    self->passing = block;
    next(block, second, third, fourth);
    self->passing = NULL;
}

#define TAKES(symbol)                                                          \
    SND_EXPORTED void *symbol(size_t size, uintptr_t second, uintptr_t third); \
    void              *symbol(size_t size, uintptr_t second, uintptr_t third)  \
    {                                                                          \
        static struct          operator one = { #symbol, NULL, false };        \
        struct snd_heap_caller caller = SND_HEAP_CALLER;                       \
        taking                *next;                                           \
                                                                               \
        if (SND_UNLIKELY(!__atomic_load_n(&one.next, __ATOMIC_ACQUIRE)))       \
            look_up(&one);                                                     \
        memcpy(&next, &one.next, sizeof next);                                 \
        if (SND_UNLIKELY(!next))                                               \
            return malloc(size);                                               \
        return one.is_plain ? next(size, second, third)                        \
                            : take(&one, size, second, third, &caller);        \
    }

#define GIVES(symbol)                                                                           \
    SND_EXPORTED void symbol(void *block, uintptr_t second, uintptr_t third, uintptr_t fourth); \
    void              symbol(void *block, uintptr_t second, uintptr_t third, uintptr_t fourth)  \
    {                                                                                           \
        static struct operator one = { #symbol, NULL, false };                                  \
        giving       *next;                                                                     \
                                                                                                \
        if (SND_UNLIKELY(!__atomic_load_n(&one.next, __ATOMIC_ACQUIRE)))                        \
            look_up(&one);                                                                      \
        memcpy(&next, &one.next, sizeof next);                                                  \
        if (SND_UNLIKELY(!next))                                                                \
            free(block);                                                                        \
        else if (one.is_plain)                                                                  \
            next(block, second, third, fourth);                                                 \
        else                                                                                    \
            give(&one, block, second, third, fourth);                                           \
    }

TAKES(_Znwm)
TAKES(_Znam)
TAKES(_ZnwmRKSt9nothrow_t)
TAKES(_ZnamRKSt9nothrow_t)
TAKES(_ZnwmSt11align_val_t)
TAKES(_ZnamSt11align_val_t)
TAKES(_ZnwmSt11align_val_tRKSt9nothrow_t)
TAKES(_ZnamSt11align_val_tRKSt9nothrow_t)
GIVES(_ZdlPv)
GIVES(_ZdaPv)
GIVES(_ZdlPvm)
GIVES(_ZdaPvm)
GIVES(_ZdlPvRKSt9nothrow_t)
GIVES(_ZdaPvRKSt9nothrow_t)
GIVES(_ZdlPvSt11align_val_t)
GIVES(_ZdaPvSt11align_val_t)
GIVES(_ZdlPvmSt11align_val_t)
GIVES(_ZdaPvmSt11align_val_t)
GIVES(_ZdlPvSt11align_val_tRKSt9nothrow_t)
GIVES(_ZdaPvSt11align_val_tRKSt9nothrow_t)
