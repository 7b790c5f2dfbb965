/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pystack/elf.c - symbols of an ELF file. Another process's file: nothing in it is believed.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pystack/locate.h"

struct image {
    const char *bytes;
    size_t      size;
};

static bool map_file(const char *path, struct image *image)
{
    struct stat st;
    int         fd = open(path, O_RDONLY | O_CLOEXEC);
    void       *map = MAP_FAILED;

    if (fd < 0)
        return false;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > (off_t)sizeof(Elf64_Ehdr))
        map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (map == MAP_FAILED)
        return false;
    *image = (struct image){ map, (size_t)st.st_size };
    return true;
}

static bool is_inside(const struct image *image, uint64_t at, uint64_t size)
{
    return at <= image->size && size <= image->size - at;
}

/* Where the file's addresses begin: those of its first segment, as the loader rounds them. */
static bool find_bias(const struct image *image, const Elf64_Ehdr *head, uint64_t base,
                      uint64_t *bias)
{
    if (!is_inside(image, head->e_phoff, (uint64_t)head->e_phnum * sizeof(Elf64_Phdr)))
        return false;
    for (unsigned i = 0; i < head->e_phnum; i++) {
        Elf64_Phdr segment;
        memcpy(&segment, image->bytes + head->e_phoff + i * sizeof segment, sizeof segment);
        if (segment.p_type != PT_LOAD)
            continue;
        *bias = base - (segment.p_vaddr - segment.p_offset % 4096) / 4096 * 4096;
        return true;
    }
    return false;
}

static void search_table(const struct image *image, const Elf64_Shdr *table,
                         const Elf64_Shdr *names, uint64_t bias, struct snd_symbol *symbols,
                         size_t count)
{
    if (!is_inside(image, table->sh_offset, table->sh_size) ||
        !is_inside(image, names->sh_offset, names->sh_size) || names->sh_size == 0)
        return;
    const char *text = image->bytes + names->sh_offset;
    if (text[names->sh_size - 1] != '\0')
        return;
    for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= table->sh_size; at += sizeof(Elf64_Sym)) {
        Elf64_Sym symbol;
        memcpy(&symbol, image->bytes + table->sh_offset + at, sizeof symbol);
        if (symbol.st_shndx == SHN_UNDEF || symbol.st_name >= names->sh_size)
            continue;
        for (size_t i = 0; i < count; i++)
            if (symbols[i].address == 0 && strcmp(text + symbol.st_name, symbols[i].name) == 0)
                symbols[i].address = symbol.st_value + bias;
    }
}

bool snd_elf_symbols(const char *file, uint64_t base, struct snd_symbol *symbols, size_t count)
{
    struct image image;
    Elf64_Ehdr   head;
    uint64_t     bias;
    bool         done = false;

    if (!map_file(file, &image))
        return false;
    memcpy(&head, image.bytes, sizeof head);
    if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 ||
        head.e_shentsize != sizeof(Elf64_Shdr) || head.e_phentsize != sizeof(Elf64_Phdr) ||
        !is_inside(&image, head.e_shoff, (uint64_t)head.e_shnum * sizeof(Elf64_Shdr)) ||
        !find_bias(&image, &head, base, &bias))
        goto done;
    for (unsigned i = 0; i < head.e_shnum; i++) {
        Elf64_Shdr table, names;
        memcpy(&table, image.bytes + head.e_shoff + i * sizeof table, sizeof table);
        if ((table.sh_type != SHT_SYMTAB && table.sh_type != SHT_DYNSYM) ||
            table.sh_link >= head.e_shnum)
            continue;
        memcpy(&names, image.bytes + head.e_shoff + table.sh_link * sizeof names, sizeof names);
        search_table(&image, &table, &names, bias, symbols, count);
    }
    done = true;
done:
    munmap((void *)(uintptr_t)image.bytes, image.size);
    return done;
}

/* "python3.9" as a whole word at the end of a string: the name of the folder of its library. */
static unsigned take_minor(const char *at, const char *end)
{
    unsigned minor = 0;

    while (at < end && *at >= '0' && *at <= '9' && minor < 100)
        minor = minor * 10 + (unsigned)(*at++ - '0');
    return at < end && *at == '\0' ? minor : 0;
}

unsigned snd_elf_python_minor(const char *file)
{
    static const char text[] = "python3.";
    struct image      image;
    unsigned          minor = 0;

    if (!map_file(file, &image))
        return 0;
    const char *at = image.bytes, *end = at + image.size;
    while (minor == 0 && (at = memmem(at, (size_t)(end - at), text, sizeof text - 1)) != NULL) {
        at += sizeof text - 1;
        minor = take_minor(at, end);
    }
    munmap((void *)(uintptr_t)image.bytes, image.size);
    return minor;
}
