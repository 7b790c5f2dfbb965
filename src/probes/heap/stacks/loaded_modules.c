/* SPDX-License-Identifier: Apache-2.0 */
#include "probes/heap/stacks/loaded_modules.h"

#include <elf.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "pystack/unwind/cfi.h"
#include "sonde/record.h"

#define MODULES 512u
#define BUILD_ID_MAX 64u

static struct module {
    uint64_t start, end, base;
    uint32_t file, build_id, epoch;
} modules[MODULES];
static uint32_t count, latest;

/* Its build id as hexadecimal text. The header is read where the loader has mapped it. */
static uint32_t read_build_id(const struct snd_cfi_object *object)
{
    const char *start = (const char *)(uintptr_t)object->begin; /* NOLINT */
    const char *end = (const char *)(uintptr_t)object->end;     /* NOLINT */
    const ElfW(Ehdr) *header = (const void *)start;
    char text[BUILD_ID_MAX * 2 + 1];

    if (memcmp(start, ELFMAG, SELFMAG) != 0 || header->e_phentsize != sizeof(ElfW(Phdr)) ||
        header->e_phoff + header->e_phnum * sizeof(ElfW(Phdr)) > 4096)
        return 0;
    const ElfW(Phdr) *parts = (const void *)(start + header->e_phoff);
    for (int i = 0; i < header->e_phnum; i++) {
        const char *at =
            (const char *)(uintptr_t)(object->map->l_addr + parts[i].p_vaddr); /* NOLINT */
        if (parts[i].p_type != PT_NOTE || at < start || at > end ||
            parts[i].p_memsz > (size_t)(end - at))
            continue;
        for (const char *stop = at + parts[i].p_memsz; at + sizeof(ElfW(Nhdr)) <= stop;) {
            const ElfW(Nhdr) *note = (const void *)at;
            const unsigned char *value = (const unsigned char *)at + sizeof *note +
                                         ((note->n_namesz + 3) & ~3u);
            at = (const char *)value + ((note->n_descsz + 3) & ~3u);
            if (at > stop || note->n_type != NT_GNU_BUILD_ID || note->n_descsz > BUILD_ID_MAX ||
                note->n_namesz != 4)
                continue;
            for (uint32_t n = 0; n < note->n_descsz; n++)
                snprintf(text + n * 2, 3, "%02x", value[n]);
            return sonde_intern(text, note->n_descsz * 2);
        }
    }
    return 0;
}

static uint32_t read_path(const struct link_map *map)
{
    char    path[PATH_MAX];
    ssize_t length;

    if (map->l_name && map->l_name[0])
        return sonde_intern(map->l_name, strlen(map->l_name));
    length = readlink("/proc/self/exe", path, sizeof path);
    return length > 0 ? sonde_intern(path, (size_t)length) : 0;
}

static struct module *find(uint64_t pc)
{
    struct snd_cfi_object found;
    uint32_t              epoch = sonde_epoch();

    for (uint32_t i = 0; i < count; i++) { /* the latest first: callers are often in one library */
        struct module *m = &modules[(latest + i) % count];
        if (pc >= m->start && pc < m->end && m->epoch == epoch) {
            latest = (latest + i) % count;
            return m;
        }
    }
    if (!snd_cfi_object(pc, &found))
        return NULL;
    latest = count < MODULES ? count++ : (latest + 1) % MODULES;
    modules[latest] = (struct module){ .start = found.begin,
                                       .end = found.end,
                                       .base = found.map->l_addr,
                                       .file = read_path(found.map),
                                       .build_id = read_build_id(&found),
                                       .epoch = epoch };
    return &modules[latest];
}

void snd_heap_modules_forget(void)
{
    count = latest = 0;
}

uint32_t snd_heap_frame_of(uint64_t pc)
{
    const struct module *m = find(pc - 1);

    if (m)
        return sonde_intern_address(m->file, m->build_id, pc - 1 - m->base);
    static const char unknown[] = "[anon]";
    return sonde_intern_address(sonde_intern(unknown, sizeof unknown - 1), 0, pc - 1);
}
