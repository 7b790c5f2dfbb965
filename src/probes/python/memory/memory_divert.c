/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/python/memory/memory_divert.c - calls of malloc and related functions between libraries, counted.
 *
 * The slots (hook/slots.h) of malloc's family are replaced in every library but ours, so that
 * nothing has to be loaded before the program. Undoing it goes through the libraries that are
 * loaded then: a slot of one that was closed is not touched. A library that brings its own malloc
 * is left alone.
 */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/count_of.h"
#include "hook/slots.h"
#include "probes/python/memory/memory_counts.h"

/* ------------------------------------------------------- what is called instead */

static bool counts(void)
{
    return __atomic_load_n(&snd_memory_on, __ATOMIC_RELAXED) && !snd_memory_mine_.inside;
}

static void *taken(void *block)
{
    int before = errno;

    if (block && counts())
        snd_memory_count((int64_t)malloc_usable_size(block), 0);
    errno = before;
    return block;
}

static void *count_malloc(size_t size)
{
    return taken(malloc(size));
}

static void *count_calloc(size_t count, size_t size)
{
    return taken(calloc(count, size));
}

static void count_free(void *block)
{
    if (block && counts())
        snd_memory_count(0, (int64_t)malloc_usable_size(block));
    free(block);
}

/* Growing takes the difference, shrinking gives it back. */
static void *resized(void *block, size_t before)
{
    size_t after = block ? malloc_usable_size(block) : before;

    if (counts())
        snd_memory_count(after > before ? (int64_t)(after - before) : 0,
                         before > after ? (int64_t)(before - after) : 0);
    return block;
}

static void *count_realloc(void *block, size_t size)
{
    size_t before = block ? malloc_usable_size(block) : 0;

    if (block && size == 0) {
        count_free(block);
        return NULL;
    }
    return resized(realloc(block, size), before);
}

static void *count_reallocarray(void *block, size_t count, size_t size)
{
    size_t total = 0;

    if (__builtin_mul_overflow(count, size, &total)) {
        errno = ENOMEM;
        return NULL;
    }
    return count_realloc(block, total);
}

static int count_posix_memalign(void **block, size_t alignment, size_t size)
{
    int result = posix_memalign(block, alignment, size);

    if (result == 0)
        taken(*block);
    return result;
}

static void *count_aligned_alloc(size_t alignment, size_t size)
{
    return taken(aligned_alloc(alignment, size));
}

static void *count_memalign(size_t alignment, size_t size)
{
    return taken(memalign(alignment, size));
}

/* clang-format off */
#define DIVERT(name) { #name, (void *)(uintptr_t)(name), (void *)(uintptr_t)(count_##name) }
static struct {
    const char *name;
    void       *real, *counting;
} diverted[] = {
    DIVERT(malloc), DIVERT(calloc), DIVERT(free), DIVERT(realloc), DIVERT(reallocarray),
    DIVERT(posix_memalign), DIVERT(aligned_alloc), DIVERT(memalign),
};
/* clang-format on */
#define DIVERTED SND_COUNT_OF(diverted)

/*
 * In a program that is not position independent, a function's address may be that of the program's
 * own stub, which jumps through its slot. A slot gets the address of the function itself.
 */
static void find_real(void)
{
    static bool done;
    void       *libc = done ? NULL : dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);

    for (size_t i = 0; libc && i < DIVERTED; i++) {
        Dl_info lent, main_program;
        void   *in_libc = dlsym(libc, diverted[i].name);
        void   *start = (void *)getauxval(AT_ENTRY);
        if (in_libc && dladdr(diverted[i].real, &lent) && dladdr(start, &main_program) &&
            lent.dli_fbase == main_program.dli_fbase)
            diverted[i].real = in_libc;
    }
    done = true;
}

/* ------------------------------------------------------------------------- slots */

struct change {
    bool undo;
    int  changed;
};

static void change_slot(const struct snd_library *library, const struct snd_slot *slot,
                        void *argument)
{
    struct change *change = argument;

    for (size_t i = 0; i < DIVERTED; i++) {
        if (strcmp(slot->symbol, diverted[i].name) != 0)
            continue;
        void *now = *slot->at;
        /* Not yet bound: it points to the library's own stub. */
        bool lazy = !slot->defined && snd_library_holds(library, now);
        if (change->undo ? now == diverted[i].counting : now == diverted[i].real || lazy) {
            snd_slot_store(slot->at, change->undo ? diverted[i].real : diverted[i].counting,
                           snd_slot_is_read_only(library, slot->at));
            change->changed++;
        }
        return;
    }
}

/* Ours are left out: this one, whose calls are the real ones, and the recorder. */
static int change_library(struct dl_phdr_info *info, size_t size, void *argument)
{
    struct snd_library library;

    (void)size;
    if (snd_library_read(&library, info) && !snd_library_holds(&library, &snd_memory_on) &&
        !snd_library_holds(&library, sonde_lane_epoch_page()))
        snd_library_slots(&library, change_slot, argument);
    return 0;
}

int snd_divert_malloc(void)
{
    struct change change = { false, 0 };

    find_real();
    dl_iterate_phdr(change_library, &change);
    return change.changed;
}

int snd_divert_undo(void)
{
    struct change change = { true, 0 };

    dl_iterate_phdr(change_library, &change);
    return change.changed;
}
