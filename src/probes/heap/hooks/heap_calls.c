/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/heap/hooks/heap_calls.c - malloc and related functions, as the program finds them: each calls the next one of
 * its name (the C library's, or that of jemalloc, tcmalloc, mimalloc), and notes the call.
 *
 * malloc, calloc, realloc and free are split. What the program calls passes a call on by a jump
 * where heap_notes.h has nothing to note, which is most of them in sampled mode; else it jumps to
 * *_noted, which finds the program's registers as they were.
 *
 * malloc_usable_size and what else tells of blocks is left alone: blocks are the allocator's own.
 */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probes/heap/hooks/heap_calls.h"
#include "base/hints.h"
#include "probes/heap/counts/heap_notes.h"
#include "sonde/record.h"

#define EARLY_BYTES ((size_t)64 << 10)

static SND_NOINLINE void free_noted(void *block);

/* A free may be the first call of all; no allocation passes before the functions are known. */
struct snd_heap_next snd_heap_next = { .free = free_noted };

/* While the next functions are looked up, dlsym() may ask for memory: this is it. Never freed. */
static char   early[EARLY_BYTES] __attribute__((aligned(16)));
static size_t early_used;

static void *take_early(size_t size)
{
    if (size > EARLY_BYTES)
        return NULL;
    size_t at = __atomic_fetch_add(&early_used, (size + 31) & ~(size_t)15, __ATOMIC_RELAXED);
    if (at + size + 16 > EARLY_BYTES)
        return NULL;
    memcpy(early + at, &size, sizeof size);
    *snd_heap_near_at(early + at + 16) = SND_HEAP_ALWAYS; /* its free is looked at */
    return early + at + 16;
}

static bool is_early(const void *block)
{
    return (const char *)block >= early && (const char *)block < early + EARLY_BYTES;
}

static size_t early_size(const void *block)
{
    size_t size;

    memcpy(&size, (const char *)block - 16, sizeof size);
    return size;
}

/* False: it is under way, on this thread or another. */
bool snd_heap_ready(void)
{
    static uint32_t begun, done;

    if (__atomic_exchange_n(&begun, 1, __ATOMIC_ACQ_REL))
        return __atomic_load_n(&done, __ATOMIC_ACQUIRE) != 0;
#define SND_HEAP_CALL(name)                                \
    {                                                      \
        void *found = dlsym(RTLD_NEXT, #name);             \
        memcpy(&snd_heap_next.name, &found, sizeof found); \
    }
#include "probes/heap/hooks/heap_calls.def"
#undef SND_HEAP_CALL
    __atomic_store_n(&done, 1, __ATOMIC_RELEASE);
    snd_heap_notes_init();
    return true;
}

static inline bool is_ready(void)
{
    return SND_LIKELY(snd_heap_mode != SND_HEAP_UNSET) || snd_heap_ready();
}

/* ----------------------------------------------------------------- the calls */

static SND_NOINLINE void *malloc_noted(size_t size)
{
    struct snd_heap_caller caller = SND_HEAP_CALLER;

    if (SND_UNLIKELY(!is_ready()))
        return take_early(size);
    void *block = snd_heap_next.malloc(size);
    snd_heap_taken(block, size, &caller);
    return block;
}

SND_EXPORTED void *malloc(size_t size)
{
    if (SND_LIKELY(snd_heap_passes(size)))
        return snd_heap_next.malloc(size);
    return malloc_noted(size);
}

static SND_NOINLINE void *calloc_noted(size_t count, size_t size)
{
    struct snd_heap_caller caller = SND_HEAP_CALLER;

    if (SND_UNLIKELY(!is_ready()))
        return size && count > SIZE_MAX / size ? NULL : take_early(count * size);
    void *block = snd_heap_next.calloc(count, size);
    snd_heap_taken(block, count * size, &caller);
    return block;
}

SND_EXPORTED void *calloc(size_t count, size_t size)
{
    if (SND_LIKELY(snd_heap_passes(count * size)))
        return snd_heap_next.calloc(count, size);
    return calloc_noted(count, size);
}

static void free_noted(void *block)
{
    if (SND_UNLIKELY(is_early(block)) || SND_UNLIKELY(!is_ready()))
        return;
    snd_heap_freed(block);
    snd_heap_next.free(block);
}

SND_EXPORTED void free(void *block)
{
    if (SND_LIKELY(!snd_heap_may_know(block)))
        snd_heap_next.free(block);
    else
        free_noted(block);
}

static void *move_early(const void *block, size_t size)
{
    size_t before = early_size(block);
    void  *to = malloc(size);

    if (to)
        memcpy(to, block, before < size ? before : size);
    return to;
}

static SND_NOINLINE void *realloc_noted(void *block, size_t size)
{
    struct snd_heap_caller caller = SND_HEAP_CALLER;

    if (SND_UNLIKELY(!is_ready()) || SND_UNLIKELY(is_early(block)))
        return block ? move_early(block, size) : take_early(size);
    struct snd_heap_moved moved = snd_heap_moving(block);
    void                 *to = snd_heap_next.realloc(block, size);
    if (block)
        snd_heap_moved(block, &moved, to, size, size == 0, &caller);
    else
        snd_heap_taken(to, size, &caller);
    return to;
}

SND_EXPORTED void *realloc(void *block, size_t size)
{
    if (SND_LIKELY(!snd_heap_may_know(block)) && SND_LIKELY(snd_heap_passes(size)))
        return snd_heap_next.realloc(block, size);
    return realloc_noted(block, size);
}

SND_EXPORTED void *reallocarray(void *block, size_t count, size_t size)
{
    struct snd_heap_caller caller = SND_HEAP_CALLER;
    size_t                 all;

    if (__builtin_mul_overflow(count, size, &all)) {
        errno = ENOMEM;
        return NULL;
    }
    if (SND_UNLIKELY(!is_ready()) || SND_UNLIKELY(is_early(block)))
        return block ? move_early(block, all) : take_early(all);
    struct snd_heap_moved moved = snd_heap_moving(block);
    void                 *to = snd_heap_next.realloc(block, all);
    if (block)
        snd_heap_moved(block, &moved, to, all, all == 0, &caller);
    else
        snd_heap_taken(to, all, &caller);
    return to;
}

SND_EXPORTED int posix_memalign(void **block, size_t alignment, size_t size)
{
    struct snd_heap_caller caller = SND_HEAP_CALLER;

    if (SND_UNLIKELY(!is_ready()) || !snd_heap_next.posix_memalign)
        return ENOMEM;
    int status = snd_heap_next.posix_memalign(block, alignment, size);
    if (status == 0)
        snd_heap_taken(*block, size, &caller);
    return status;
}

#define ALIGNED(name)                                         \
    SND_EXPORTED void *name(size_t alignment, size_t size)    \
    {                                                         \
        struct snd_heap_caller caller = SND_HEAP_CALLER;      \
                                                              \
        if (SND_UNLIKELY(!is_ready()) || !snd_heap_next.name) \
            return NULL;                                      \
        void *block = snd_heap_next.name(alignment, size);    \
        snd_heap_taken(block, size, &caller);                 \
        return block;                                         \
    }
ALIGNED(aligned_alloc)
ALIGNED(memalign)

#define PAGED(name)                                           \
    SND_EXPORTED void *name(size_t size)                      \
    {                                                         \
        struct snd_heap_caller caller = SND_HEAP_CALLER;      \
                                                              \
        if (SND_UNLIKELY(!is_ready()) || !snd_heap_next.name) \
            return NULL;                                      \
        void *block = snd_heap_next.name(size);               \
        snd_heap_taken(block, size, &caller);                 \
        return block;                                         \
    }
PAGED(valloc)
PAGED(pvalloc)

/* ------------------------------------------------------- loading and unloading */

SND_EXPORTED int dlclose(void *library)
{
    is_ready();
    int status = snd_heap_next.dlclose(library);
    if (snd_heap_mode > SND_HEAP_OFF)
        snd_heap_forget_code();
    return status;
}

/* Writes a child's counts that are not in a file yet: this is the last chance. */
SND_EXPORTED void _exit(int status)
{
    if (is_ready() && snd_heap_mode > SND_HEAP_OFF)
        snd_heap_flush();
    snd_heap_next._exit(status);
    __builtin_unreachable();
}

SND_EXPORTED void _Exit(int status)
{
    if (is_ready() && snd_heap_mode > SND_HEAP_OFF)
        snd_heap_flush();
    snd_heap_next._exit(status);
    __builtin_unreachable();
}

/* A child that becomes another user has its file before: it may not be able to make one after. */
#define OTHER_USER(name, parameters, arguments)         \
    SND_EXPORTED int name parameters                    \
    {                                                   \
        if (is_ready() && snd_heap_mode > SND_HEAP_OFF) \
            snd_heap_open_file();                       \
        return snd_heap_next.name arguments;            \
    }
OTHER_USER(setuid, (uid_t user), (user))
OTHER_USER(seteuid, (uid_t user), (user))
OTHER_USER(setreuid, (uid_t real, uid_t effective), (real, effective))
OTHER_USER(setresuid, (uid_t real, uid_t effective, uid_t saved), (real, effective, saved))
