/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/torch/got.h - redirects what one shared library calls in another, and puts it back.
 *
 * A call between libraries goes through a slot that holds the callee's address (the global
 * offset table). Storing another address there diverts that library's calls, and no one
 * else's. A call inside one library may not have a slot: then nothing is found, and the
 * caller takes another way. Where the slots are is looked up once: torch's largest library has a
 * million relocations, which takes milliseconds.
 *
 * Layer:   probes.
 * Threads: one at a time calls these; other threads may be going through the slots.
 */
#ifndef SND_PROBES_TORCH_GOT_H
#define SND_PROBES_TORCH_GOT_H

#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SND_GOT_MAX 32

struct snd_got_slot {
    const char *library, *symbol; /* whose calls, of what: literals */
    void      **at, *before;
    int         read_only;   /* the loader had made it so (RELRO) */
    int         is_diverted; /* `before` is what is to be put back */
};

struct snd_got {
    struct snd_got_slot slots[SND_GOT_MAX]; /* those without `at` are of calls that have none */
    int                 count;
};

struct snd_got_search {
    const char     *library, *symbol;
    struct snd_got *got;
};

static void snd_got_store(struct snd_got_slot *slot, void *value)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    void     *start = (void *)((uintptr_t)slot->at & ~(page - 1));

    if (slot->read_only && mprotect(start, page, PROT_READ | PROT_WRITE) != 0)
        return;
    __atomic_store_n(slot->at, value, __ATOMIC_RELEASE);
    if (slot->read_only)
        mprotect(start, page, PROT_READ);
}

static int snd_got_is_jump(uint32_t type)
{
#if defined(__x86_64__)
    return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT;
#elif defined(__aarch64__)
    return type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT;
#else
    (void)type;
    return 0;
#endif
}

static int snd_got_is_read_only(const struct dl_phdr_info *info, const void *at)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_GNU_RELRO && (uintptr_t)at >= start &&
            (uintptr_t)at < start + part->p_memsz)
            return 1;
    }
    return 0;
}

static int snd_got_in_library(struct dl_phdr_info *info, size_t size, void *argument)
{
    struct snd_got_search *search = (struct snd_got_search *)argument;
    const ElfW(Dyn) *dynamic = NULL;
    const ElfW(Sym) *symbols = NULL;
    const char *strings = NULL;
    const ElfW(Rela) * tables[2] = { NULL, NULL };
    size_t sizes[2] = { 0, 0 };

    (void)size;
    const char *name = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
    if (!name || strcmp(name + 1, search->library) != 0)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            dynamic = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++) {
        const void *address = (const void *)dynamic->d_un.d_ptr;
        switch (dynamic->d_tag) {
        case DT_SYMTAB:
            symbols = (const ElfW(Sym) *)address;
            break;
        case DT_STRTAB:
            strings = (const char *)address;
            break;
        case DT_JMPREL:
            tables[0] = (const ElfW(Rela) *)address;
            break;
        case DT_RELA:
            tables[1] = (const ElfW(Rela) *)address;
            break;
        case DT_PLTRELSZ:
            sizes[0] = dynamic->d_un.d_val;
            break;
        case DT_RELASZ:
            sizes[1] = dynamic->d_un.d_val;
            break;
        default:
            break;
        }
    }
    if (!symbols || !strings)
        return 0;
    for (int t = 0; t < 2; t++) {
        for (size_t i = 0; tables[t] && i < sizes[t] / sizeof(ElfW(Rela)); i++) {
            const ElfW(Rela) *entry = &tables[t][i];
            uint32_t symbol = (uint32_t)ELF64_R_SYM(entry->r_info);
            if (symbol == 0 || !snd_got_is_jump((uint32_t)ELF64_R_TYPE(entry->r_info)) ||
                strcmp(strings + symbols[symbol].st_name, search->symbol) != 0 ||
                search->got->count == SND_GOT_MAX)
                continue;
            struct snd_got_slot *slot = &search->got->slots[search->got->count++];
            slot->library = search->library;
            slot->symbol = search->symbol;
            slot->at = (void **)(info->dlpi_addr + entry->r_offset);
            slot->read_only = snd_got_is_read_only(info, slot->at);
        }
    }
    return 0;
}

/* How many slots are known and diverted now; -1: it is known that there are none. */
static int snd_got_divert_known(struct snd_got *got, const char *library, const char *symbol,
                                void *to)
{
    int found = 0;

    for (int i = 0; i < got->count; i++) {
        struct snd_got_slot *slot = &got->slots[i];
        if (strcmp(slot->symbol, symbol) != 0 || strcmp(slot->library, library) != 0)
            continue;
        if (!slot->at)
            return -1;
        found++;
        if (slot->is_diverted)
            continue;
        slot->before = *slot->at;
        slot->is_diverted = 1;
        snd_got_store(slot, to);
    }
    return found;
}

/*
 * Diverts `library`'s calls of `symbol` to `to`; returns how many slots there were.
 * Keeps: both names.
 */
static int snd_got_divert(struct snd_got *got, const char *library, const char *symbol, void *to)
{
    struct snd_got_search search = { library, symbol, got };
    int                   found = snd_got_divert_known(got, library, symbol, to);

    if (found == 0) {
        int before = got->count;
        dl_iterate_phdr(snd_got_in_library, &search);
        if (got->count == before && got->count < SND_GOT_MAX)
            got->slots[got->count++] = { library, symbol, NULL, NULL, 0, 0 };
        found = snd_got_divert_known(got, library, symbol, to);
    }
    return found > 0 ? found : 0;
}

static void snd_got_restore(struct snd_got *got)
{
    for (int i = 0; i < got->count; i++) {
        if (got->slots[i].is_diverted)
            snd_got_store(&got->slots[i], got->slots[i].before);
        got->slots[i].is_diverted = 0;
    }
}

#endif
