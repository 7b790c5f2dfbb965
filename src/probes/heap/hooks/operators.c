/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/heap/hooks/operators.c - operator new and delete of C++, by their names in libraries.
 *
 * Those of libstdc++ and libc++ call malloc and free, which count: they are called as they are; or
 * not at all, where there is nothing to note: what they would do is call malloc, and free. An
 * allocator that brings its own (jemalloc, tcmalloc, mimalloc) does not, so that the call is noted
 * here; unless the allocator's operator has called malloc after all, which left the block in
 * `counted`, or took from the bytes left until the next sample.
 *
 * An exception of the real operator passes through these functions: they hold nothing.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "base/count_of.h"
#include "base/hints.h"
#include "probes/heap/hooks/heap_calls.h"
#include "probes/heap/counts/heap_notes.h"
#include "pystack/unwind/cfi.h"

/* Their further arguments: an alignment, std::nothrow. A call passes them on as they came. */
typedef void *taking(size_t size, uintptr_t second, uintptr_t third);
typedef void  giving(void *block, uintptr_t second, uintptr_t third, uintptr_t fourth);

struct operator
{
    const char *name;
    void       *next;
    bool        is_plain; /* it calls malloc or free */
};

/* libstdc++'s operators call each other and malloc: none of these is the program's own. */
static bool may_be_direct;

/* A library that was loaded by dlopen() is not among the next ones. */
static void *find_in_loaded(const char *name)
{
    static const char *const libraries[] = { "libstdc++.so.6", "libc++.so.1" };
    void                    *found = NULL;

    for (size_t i = 0; i < SND_COUNT_OF(libraries) && !found; i++) {
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

/* The next one; it is looked up at the first call, since the library may be loaded late. */
static void *next_of(struct operator* one)
{
    if (SND_UNLIKELY(!__atomic_load_n(&one->next, __ATOMIC_ACQUIRE)))
        look_up(one);
    return one->next;
}

static inline bool is_direct(const struct operator* one)
{
    return one->is_plain && may_be_direct;
}

static void *take(const struct operator* one, size_t size, uintptr_t second, uintptr_t third,
                  const struct snd_heap_caller *caller)
{
    struct snd_heap_thread *self = &snd_heap_self;
    taking                 *next;

    uint64_t left = self->left;

    self->counted = NULL;
    memcpy(&next, &one->next, sizeof next);
    void *block = next(size, second, third);
    if (block != self->counted && left == self->left)
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

/* Stands for std::nothrow, an object without contents. */
static const char nothrow;

/* Called in place of malloc where that would fail; undoes the count of the call. */
static void *refuse(size_t size)
{
    snd_heap_self.left += snd_heap_length(size);
    return NULL;
}

/*
 * What the program calls has no test of whether it is direct: it calls NAME_direct, which is malloc
 * or free once that is known, and leads to NAME_noted until then.
 *
 * The operators that take a size alone, and call malloc: without memory, what is to happen then is
 * the next operator's to do (new_handler, an exception).
 */
#define TAKES_SIZE(symbol)                                                     \
    static void *(*symbol##_direct)(size_t size) = refuse;                     \
    TAKES_AS(symbol, symbol##_direct = snd_heap_next.malloc)                   \
    SND_EXPORTED void *symbol(size_t size, uintptr_t second, uintptr_t third); \
    void              *symbol(size_t size, uintptr_t second, uintptr_t third)  \
    {                                                                          \
        if (SND_UNLIKELY(!snd_heap_passes(size)))                              \
            return symbol##_noted(size, second, third);                        \
        void *block = symbol##_direct(size);                                   \
        if (SND_LIKELY(block != NULL))                                         \
            return block;                                                      \
        return symbol##_noted(size, (uintptr_t)&nothrow, 0);                   \
    }

#define TAKES(symbol)                                                          \
    TAKES_AS(symbol, (void)0)                                                  \
    SND_EXPORTED void *symbol(size_t size, uintptr_t second, uintptr_t third); \
    void              *symbol(size_t size, uintptr_t second, uintptr_t third)  \
    {                                                                          \
        return symbol##_noted(size, second, third);                            \
    }

#define TAKES_AS(symbol, make_direct)                                                        \
    static struct             operator symbol##_next = { #symbol, NULL, false };             \
    static SND_NOINLINE void *symbol##_noted(size_t size, uintptr_t second, uintptr_t third) \
    {                                                                                        \
        struct snd_heap_caller caller = SND_HEAP_CALLER;                                     \
        void                  *found = next_of(&symbol##_next);                              \
        taking                *next;                                                         \
                                                                                             \
        memcpy(&next, &found, sizeof next);                                                  \
        if (SND_UNLIKELY(!next))                                                             \
            return malloc(size);                                                             \
        if (is_direct(&symbol##_next))                                                       \
            make_direct;                                                                     \
        return symbol##_next.is_plain ? next(size, second, third)                            \
                                      : take(&symbol##_next, size, second, third, &caller);  \
    }

#define GIVES(symbol)                                                                           \
    static struct            operator symbol##_next = { #symbol, NULL, false };                 \
    static giving            symbol##_noted;                                                    \
    static giving           *symbol##_direct = symbol##_noted;                                  \
    static SND_NOINLINE void symbol##_noted(void *block, uintptr_t second, uintptr_t third,     \
                                            uintptr_t fourth)                                   \
    {                                                                                           \
        void   *found = next_of(&symbol##_next);                                                \
        giving *next;                                                                           \
                                                                                                \
        memcpy(&next, &found, sizeof next);                                                     \
        if (is_direct(&symbol##_next))                                                          \
            memcpy(&symbol##_direct, &snd_heap_next.free, sizeof next);                         \
        if (SND_UNLIKELY(!next))                                                                \
            free(block);                                                                        \
        else if (symbol##_next.is_plain)                                                        \
            next(block, second, third, fourth);                                                 \
        else                                                                                    \
            give(&symbol##_next, block, second, third, fourth);                                 \
    }                                                                                           \
    SND_EXPORTED void symbol(void *block, uintptr_t second, uintptr_t third, uintptr_t fourth); \
    void              symbol(void *block, uintptr_t second, uintptr_t third, uintptr_t fourth)  \
    {                                                                                           \
        if (SND_LIKELY(!snd_heap_may_know(block)))                                              \
            symbol##_direct(block, second, third, fourth);                                      \
        else                                                                                    \
            symbol##_noted(block, second, third, fourth);                                       \
    }

/* Some call one another: a program that replaces one of them must see it called. */
/* clang-format off */
#define OPERATORS(size, takes, gives) \
    size(_Znwm)                                 \
    size(_Znam)                                 \
    size(_ZnwmRKSt9nothrow_t)                   \
    size(_ZnamRKSt9nothrow_t)                   \
    takes(_ZnwmSt11align_val_t)                 \
    takes(_ZnamSt11align_val_t)                 \
    takes(_ZnwmSt11align_val_tRKSt9nothrow_t)   \
    takes(_ZnamSt11align_val_tRKSt9nothrow_t)   \
    gives(_ZdlPv)                               \
    gives(_ZdaPv)                               \
    gives(_ZdlPvm)                              \
    gives(_ZdaPvm)                              \
    gives(_ZdlPvRKSt9nothrow_t)                 \
    gives(_ZdaPvRKSt9nothrow_t)                 \
    gives(_ZdlPvSt11align_val_t)                \
    gives(_ZdaPvSt11align_val_t)                \
    gives(_ZdlPvmSt11align_val_t)               \
    gives(_ZdaPvmSt11align_val_t)               \
    gives(_ZdlPvSt11align_val_tRKSt9nothrow_t)  \
    gives(_ZdaPvSt11align_val_tRKSt9nothrow_t)
/* clang-format on */

OPERATORS(TAKES_SIZE, TAKES, GIVES)

/* Whether the program's calls of it come here. */
static bool is_ours(const char *name)
{
    struct snd_cfi_object found, here;

    return snd_cfi_object((uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, name), &found) &&
           snd_cfi_object((uint64_t)(uintptr_t)is_ours, &here) && found.map == here.map;
}

#define AND_IS_OURS(symbol) &&is_ours(#symbol)

void snd_heap_operators_init(void)
{
    may_be_direct = is_ours("malloc") && is_ours("free")
                                             OPERATORS(AND_IS_OURS, AND_IS_OURS, AND_IS_OURS);
}
