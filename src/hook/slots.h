/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hook/slots.h - replaces the addresses by which one shared library calls another.
 *
 * A call between libraries goes through a slot of the calling library's global offset table, which
 * holds the callee's address. Storing another address there redirects the calls of that library
 * and of no other. A call inside one library may have no slot: then none is found, and the caller
 * of these functions takes another way.
 *
 * The loader makes a part of a library read-only once it is relocated (RELRO): whole pages, so the
 * end of the part is rounded down. A slot in those pages is made writable for the moment of the
 * store; one behind them lies among data that the library goes on writing, and its page is left
 * as it is.
 *
 * A header, in the common subset of C and C++: the torch probe compiles it on the user's machine.
 *
 * Layer:   hook (libc only).
 * Threads: one at a time calls these; other threads may be calling through the slots.
 */
#ifndef SND_HOOK_SLOTS_H
#define SND_HOOK_SLOTS_H

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---------------------------------------------------------------- the slots of a library */

/* A loaded library: its load address, and its relocation tables. Borrows all of it. */
struct snd_library {
    uintptr_t base; /* what is added to the addresses in its file */
    uintptr_t low, high, relro_low, relro_high;
    const ElfW(Sym) * symbols;
    const char *strings;
    const ElfW(Rela) * tables[2]; /* of functions bound at their first call; of everything else */
    size_t counts[2];
};

struct snd_slot {
    const char *symbol;
    void      **at;
    bool        defined; /* by the library itself */
};

/* What the loader made read-only, of a part that ends anywhere: its whole pages. */
static inline void snd_library_relro(struct snd_library *library, uintptr_t start, uintptr_t end)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

    library->relro_low = start & ~(page - 1);
    library->relro_high = end & ~(page - 1);
}

static inline void snd_library_dynamic(struct snd_library *library, const ElfW(Dyn) * entry)
{
    for (; entry->d_tag != DT_NULL; entry++) {
        const void *address = (const void *)entry->d_un.d_ptr;
        switch (entry->d_tag) {
        case DT_SYMTAB:
            library->symbols = (const ElfW(Sym) *)address;
            break;
        case DT_STRTAB:
            library->strings = (const char *)address;
            break;
        case DT_JMPREL:
            library->tables[0] = (const ElfW(Rela) *)address;
            break;
        case DT_RELA:
            library->tables[1] = (const ElfW(Rela) *)address;
            break;
        case DT_PLTRELSZ:
            library->counts[0] = entry->d_un.d_val / sizeof(ElfW(Rela));
            break;
        case DT_RELASZ:
            library->counts[1] = entry->d_un.d_val / sizeof(ElfW(Rela));
            break;
        default:
            break;
        }
    }
}

/*
 * False for one without slots that can be read: in the loader itself and the kernel's library the
 * addresses are still those of the file.
 */
static inline bool snd_library_read(struct snd_library *library, const struct dl_phdr_info *info)
{
    const ElfW(Dyn) *dynamic = NULL;

    memset(library, 0, sizeof *library);
    library->base = info->dlpi_addr;
    library->low = UINTPTR_MAX;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t start = library->base + part->p_vaddr, end = start + part->p_memsz;
        if (part->p_type == PT_DYNAMIC)
            dynamic = (const ElfW(Dyn) *)start;
        if (part->p_type == PT_LOAD && start < library->low)
            library->low = start;
        if (part->p_type == PT_LOAD && end > library->high)
            library->high = end;
        if (part->p_type == PT_GNU_RELRO)
            snd_library_relro(library, start, end);
    }
    if (dynamic)
        snd_library_dynamic(library, dynamic);
    return library->symbols && library->strings && (uintptr_t)library->strings >= library->low;
}

static inline bool snd_library_holds(const struct snd_library *library, const void *address)
{
    return (uintptr_t)address >= library->low && (uintptr_t)address < library->high;
}

static inline bool snd_slot_is(uint64_t info)
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

/* Calls `visit` for every slot of the library that belongs to a symbol. */
static inline void snd_library_slots(const struct snd_library *library,
                                     void (*visit)(const struct snd_library *,
                                                   const struct snd_slot *, void *),
                                     void *argument)
{
    for (int t = 0; t < 2; t++) {
        for (size_t i = 0; library->tables[t] && i < library->counts[t]; i++) {
            const ElfW(Rela) *entry = &library->tables[t][i];
            if (!snd_slot_is(entry->r_info) || ELF64_R_SYM(entry->r_info) == 0)
                continue;
            const ElfW(Sym) *symbol = &library->symbols[ELF64_R_SYM(entry->r_info)];
            struct snd_slot slot;
            slot.symbol = library->strings + symbol->st_name;
            slot.at = (void **)(library->base + entry->r_offset);
            slot.defined = symbol->st_shndx != SHN_UNDEF;
            visit(library, &slot, argument);
        }
    }
}

static inline bool snd_slot_is_read_only(const struct snd_library *library, void *const *at)
{
    return (uintptr_t)at >= library->relro_low && (uintptr_t)at < library->relro_high;
}

/* Does nothing if a read-only page cannot be made writable. */
static inline void snd_slot_store(void **at, void *value, bool read_only)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    void     *start = (void *)((uintptr_t)at & ~(page - 1));

    if (read_only && mprotect(start, page, PROT_READ | PROT_WRITE) != 0)
        return;
    __atomic_store_n(at, value, __ATOMIC_RELEASE);
    if (read_only)
        mprotect(start, page, PROT_READ);
}

/* -------------------------------------------------- calls of one symbol by one library */

#define SND_REDIRECTS_MAX 32

struct snd_redirect {
    const char *library, *symbol; /* whose calls, of what: literals */
    void      **at, *before;
    bool        read_only;
    bool        is_on; /* `before` is what is to be put back */
};

/*
 * Where the slots are is looked up once: torch's largest library has a million relocations, which
 * takes milliseconds. Libraries that may be closed are not for this.
 */
struct snd_redirects {
    struct snd_redirect slots[SND_REDIRECTS_MAX]; /* without `at`: those calls have no slot */
    int                 count;
};

struct snd_redirect_search {
    const char           *library, *symbol;
    struct snd_redirects *redirects;
};

static inline void snd_redirect_add(struct snd_redirects *redirects, const char *library,
                                    const char *symbol, void **at, bool read_only)
{
    if (redirects->count == SND_REDIRECTS_MAX)
        return;
    struct snd_redirect *slot = &redirects->slots[redirects->count++];
    memset(slot, 0, sizeof *slot);
    slot->library = library;
    slot->symbol = symbol;
    slot->at = at;
    slot->read_only = read_only;
}

static inline void snd_redirect_visit(const struct snd_library *library,
                                      const struct snd_slot *slot, void *argument)
{
    struct snd_redirect_search *search = (struct snd_redirect_search *)argument;

    if (strcmp(slot->symbol, search->symbol) == 0)
        snd_redirect_add(search->redirects, search->library, search->symbol, slot->at,
                         snd_slot_is_read_only(library, slot->at));
}

static inline int snd_redirect_look(struct dl_phdr_info *info, size_t size, void *argument)
{
    struct snd_redirect_search *search = (struct snd_redirect_search *)argument;
    const char                 *name = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
    struct snd_library          library;

    (void)size;
    if (name && strcmp(name + 1, search->library) == 0 && snd_library_read(&library, info))
        snd_library_slots(&library, snd_redirect_visit, argument);
    return 0;
}

/* How many slots are known and redirected now; -1: it is known that there are none. */
static inline int snd_redirect_known(struct snd_redirects *redirects, const char *library,
                                     const char *symbol, void *to)
{
    int found = 0;

    for (int i = 0; i < redirects->count; i++) {
        struct snd_redirect *slot = &redirects->slots[i];
        if (strcmp(slot->symbol, symbol) != 0 || strcmp(slot->library, library) != 0)
            continue;
        if (!slot->at)
            return -1;
        found++;
        if (slot->is_on)
            continue;
        slot->before = *slot->at;
        slot->is_on = true;
        snd_slot_store(slot->at, to, slot->read_only);
    }
    return found;
}

/*
 * Redirects `library`'s calls of `symbol` to `to`; returns how many slots there were.
 * Keeps: both names.
 */
static inline int snd_redirect(struct snd_redirects *redirects, const char *library,
                               const char *symbol, void *to)
{
    struct snd_redirect_search search = { library, symbol, redirects };
    int                        found = snd_redirect_known(redirects, library, symbol, to);

    if (found == 0) {
        int before = redirects->count;
        dl_iterate_phdr(snd_redirect_look, &search);
        if (redirects->count == before)
            snd_redirect_add(redirects, library, symbol, NULL, false);
        found = snd_redirect_known(redirects, library, symbol, to);
    }
    return found > 0 ? found : 0;
}

static inline void snd_redirects_undo(struct snd_redirects *redirects)
{
    for (int i = 0; i < redirects->count; i++) {
        struct snd_redirect *slot = &redirects->slots[i];
        if (slot->is_on)
            snd_slot_store(slot->at, slot->before, slot->read_only);
        slot->is_on = false;
    }
}

#endif
