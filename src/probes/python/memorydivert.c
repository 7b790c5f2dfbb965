/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/python/memorydivert.c - calls of malloc and its kin between libraries, counted.
 *
 * Each loaded library has slots with the addresses of the functions it calls in others. Those of
 * malloc's family are stored over, in every library but ours, so that nothing has to be loaded
 * before the program. Putting back goes through the libraries that are loaded then: a slot of one
 * that was closed is not touched. A library that brings its own malloc is left alone.
 */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "probes/python/memorycounts.h"

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
#define DIVERTED (sizeof diverted / sizeof diverted[0])

/*
 * A program that is not position independent may lend a function's address: that of its own stub,
 * which goes through its slot. What goes into a slot is the function itself.
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

struct library {
    const struct dl_phdr_info *info;
    const ElfW(Sym) * symbols;
    const char *strings;
    const ElfW(Rela) * tables[2];
    size_t    sizes[2];
    uintptr_t low, high, relro_low, relro_high;
};

struct search {
    bool undo;
    int  changed;
};

static bool is_slot(uint64_t info)
{
#if defined(__x86_64__)
    return ELF64_R_TYPE(info) == R_X86_64_JUMP_SLOT || ELF64_R_TYPE(info) == R_X86_64_GLOB_DAT;
#elif defined(__aarch64__)
    return ELF64_R_TYPE(info) == R_AARCH64_JUMP_SLOT || ELF64_R_TYPE(info) == R_AARCH64_GLOB_DAT;
#else
    (void)info;
    return false;
#endif
}

static void store(const struct library *library, void **slot, void *value)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)slot;
    void     *start = (void *)(at & ~(page - 1));
    bool      read_only = at >= library->relro_low && at < library->relro_high;

    if (read_only && mprotect(start, page, PROT_READ | PROT_WRITE) != 0)
        return;
    __atomic_store_n(slot, value, __ATOMIC_RELEASE);
    if (read_only)
        mprotect(start, page, PROT_READ);
}

static void read_dynamic(struct library *library, const ElfW(Dyn) * entry)
{
    for (; entry->d_tag != DT_NULL; entry++) {
        const void *address = (const void *)entry->d_un.d_ptr;
        switch (entry->d_tag) {
        case DT_SYMTAB:
            library->symbols = address;
            break;
        case DT_STRTAB:
            library->strings = address;
            break;
        case DT_JMPREL:
            library->tables[0] = address;
            break;
        case DT_RELA:
            library->tables[1] = address;
            break;
        case DT_PLTRELSZ:
            library->sizes[0] = entry->d_un.d_val / sizeof(ElfW(Rela));
            break;
        case DT_RELASZ:
            library->sizes[1] = entry->d_un.d_val / sizeof(ElfW(Rela));
            break;
        default:
            break;
        }
    }
}

static bool read_library(struct library *library, const struct dl_phdr_info *info)
{
    const ElfW(Dyn) *dynamic = NULL;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

    *library = (struct library){ .info = info, .low = UINTPTR_MAX };
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + part->p_vaddr, end = start + part->p_memsz;
        if (part->p_type == PT_DYNAMIC)
            dynamic = (const ElfW(Dyn) *)start;
        if (part->p_type == PT_LOAD && start < library->low)
            library->low = start;
        if (part->p_type == PT_LOAD && end > library->high)
            library->high = end;
        if (part->p_type == PT_GNU_RELRO) {
            /* As the loader rounds it: the rest of its last page stays writable. */
            library->relro_low = start & ~(page - 1);
            library->relro_high = end & ~(page - 1);
        }
    }
    if (dynamic)
        read_dynamic(library, dynamic);
    /* Addresses that the loader left as they are in the file: its own, and the kernel's library. */
    return library->symbols && library->strings && (uintptr_t)library->strings >= library->low;
}

/* Ours are left out: this one, whose calls are the real ones, and the recorder. */
static bool is_ours(const struct library *library)
{
    const void *own[] = { (const void *)&snd_memory_on, (const void *)&sonde_epoch_ };

    for (size_t i = 0; i < 2; i++) {
        uintptr_t at = (uintptr_t)own[i];
        if (at >= library->low && at < library->high)
            return true;
    }
    return false;
}

static void change_slot(const struct library *library, const ElfW(Rela) * entry, struct search *s)
{
    const ElfW(Sym) *symbol = &library->symbols[ELF64_R_SYM(entry->r_info)];
    const char *name = library->strings + symbol->st_name;
    void      **slot = (void **)(library->info->dlpi_addr + entry->r_offset);

    for (size_t i = 0; i < DIVERTED; i++) {
        if (strcmp(name, diverted[i].name) != 0)
            continue;
        uintptr_t value = (uintptr_t)*slot;
        /* Not yet bound: it points to the library's own stub. */
        bool lazy = symbol->st_shndx == SHN_UNDEF && value >= library->low && value < library->high;
        if (s->undo ? *slot == diverted[i].counting : *slot == diverted[i].real || lazy) {
            store(library, slot, s->undo ? diverted[i].real : diverted[i].counting);
            s->changed++;
        }
        return;
    }
}

static int change_library(struct dl_phdr_info *info, size_t size, void *argument)
{
    struct library library;

    (void)size;
    if (!read_library(&library, info) || is_ours(&library))
        return 0;
    for (int t = 0; t < 2; t++) {
        for (size_t i = 0; library.tables[t] && i < library.sizes[t]; i++) {
            const ElfW(Rela) *entry = &library.tables[t][i];
            if (is_slot(entry->r_info) && ELF64_R_SYM(entry->r_info) != 0)
                change_slot(&library, entry, argument);
        }
    }
    return 0;
}

int snd_divert_malloc(void)
{
    struct search search = { false, 0 };

    find_real();
    dl_iterate_phdr(change_library, &search);
    return search.changed;
}

int snd_divert_undo(void)
{
    struct search search = { true, 0 };

    dl_iterate_phdr(change_library, &search);
    return search.changed;
}
