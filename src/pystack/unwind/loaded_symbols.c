/* SPDX-License-Identifier: Apache-2.0 */
#include "pystack/unwind/loaded_symbols.h"

#include <string.h>

/* DT_GNU_HASH: these, then the words of a Bloom filter, the buckets, and a hash for each symbol from `first`. */
struct head {
    uint32_t buckets, first, filter_words, filter_shift;
};

static const uint64_t *filter_of(const struct snd_loaded *l)
{
    return (const uint64_t *)(const void *)(l->hash + sizeof(struct head) / sizeof *l->hash);
}

static struct head head_of(const struct snd_loaded *l)
{
    struct head head;

    memcpy(&head, l->hash, sizeof head);
    return head;
}

static const uint32_t *buckets_of(const struct snd_loaded *l)
{
    return (const uint32_t *)(filter_of(l) + head_of(l).filter_words);
}

bool snd_loaded_open(struct snd_loaded *l, const struct link_map *map)
{
    *l = (struct snd_loaded){ .base = map->l_addr };
    for (const ElfW(Dyn) *d = map->l_ld; d && d->d_tag != DT_NULL; d++) {
        /* The loader has made addresses of them, but in the kernel's own file. */
        uint64_t    at = d->d_un.d_ptr < map->l_addr ? d->d_un.d_ptr + map->l_addr : d->d_un.d_ptr;
        const void *table = (const void *)(uintptr_t)at; /* NOLINT(performance-no-int-to-ptr) */
        if (d->d_tag == DT_SYMTAB)
            l->symbols = table;
        else if (d->d_tag == DT_STRTAB)
            l->names = table;
        else if (d->d_tag == DT_GNU_HASH)
            l->hash = table;
    }
    return l->symbols && l->names && l->hash && head_of(l).buckets > 0;
}

static uint32_t hash_name(const char *name)
{
    uint32_t hash = 5381;

    while (*name)
        hash = hash * 33 + (unsigned char)*name++;
    return hash;
}

uint64_t snd_loaded_find(const struct snd_loaded *l, const char *name, uint64_t *size)
{
    struct head     head = head_of(l);
    uint32_t        hash = hash_name(name);
    uint64_t        word = filter_of(l)[hash / 64 & (head.filter_words - 1)];
    const uint32_t *buckets = buckets_of(l), *chain = buckets + head.buckets;

    if (!(word >> hash % 64 & word >> (hash >> head.filter_shift) % 64 & 1))
        return 0;
    uint32_t n = buckets[hash % head.buckets];
    for (bool more = n >= head.first; more; n++) {
        const ElfW(Sym) *symbol = &l->symbols[n];
        uint32_t found = chain[n - head.first];
        more = !(found & 1);
        if ((found | 1) != (hash | 1) || symbol->st_shndx == SHN_UNDEF ||
            strcmp(l->names + symbol->st_name, name) != 0)
            continue;
        if (size)
            *size = symbol->st_size;
        return l->base + symbol->st_value;
    }
    return 0;
}

void snd_loaded_functions(const struct snd_loaded *l, snd_loaded_visit *visit, void *user)
{
    struct head     head = head_of(l);
    const uint32_t *buckets = buckets_of(l), *chain = buckets + head.buckets;

    for (uint32_t bucket = 0; bucket < head.buckets; bucket++) {
        uint32_t n = buckets[bucket];
        for (bool more = n >= head.first; more; n++) {
            const ElfW(Sym) *symbol = &l->symbols[n];
            more = !(chain[n - head.first] & 1);
            if (ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && symbol->st_shndx != SHN_UNDEF)
                visit(user, l->names + symbol->st_name, l->base + symbol->st_value,
                      symbol->st_size);
        }
    }
}
