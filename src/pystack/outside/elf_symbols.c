/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pystack/outside/elf_symbols.c - symbols of an ELF file. Another process's file: nothing in it is believed, and
 * it is read, not mapped: mapped memory of a file that is truncated meanwhile is no memory any more.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pystack/outside/locate.h"

#define PART_MOST ((uint64_t)1 << 28) /* bytes of one table */
#define CHUNK 65536u
#define KEPT 16u /* of a chunk's end: the longest word that is looked for, and more */

struct image {
    int      fd;
    uint64_t size;
};

/* Non-blocking: the path may meanwhile name a pipe instead of a library. */
static bool open_file(const char *path, struct image *image)
{
    struct stat st;

    image->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (image->fd < 0)
        return false;
    if (fstat(image->fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(image->fd);
        return false;
    }
    image->size = (uint64_t)st.st_size;
    return true;
}

static bool read_at(const struct image *image, uint64_t at, void *out, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = pread(image->fd, (char *)out + done, size - done, (off_t)(at + done));
        if (n == 0 || (n < 0 && errno != EINTR))
            return false;
        done += n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* A part of the file, the caller's to free; NULL: it is empty, too large, or not there. */
static void *read_part(const struct image *image, uint64_t at, uint64_t size)
{
    if (size == 0 || size > PART_MOST || at > image->size || size > image->size - at)
        return NULL;
    void *part = malloc((size_t)size);
    if (part && !read_at(image, at, part, (size_t)size)) {
        free(part);
        return NULL;
    }
    return part;
}

/* Where the file's addresses begin: those of its first segment, as the loader rounds them. */
static bool find_bias(const struct image *image, const Elf64_Ehdr *head, uint64_t base,
                      uint64_t *bias)
{
    Elf64_Phdr *segments = read_part(image, head->e_phoff,
                                     (uint64_t)head->e_phnum * sizeof *segments);
    bool        found = false;

    for (unsigned i = 0; segments && !found && i < head->e_phnum; i++) {
        if (segments[i].p_type != PT_LOAD)
            continue;
        *bias = base - (segments[i].p_vaddr - segments[i].p_offset % 4096) / 4096 * 4096;
        found = true;
    }
    free(segments);
    return found;
}

static void search_table(const struct image *image, const Elf64_Shdr *table,
                         const Elf64_Shdr *names, uint64_t bias, struct snd_symbol *symbols,
                         size_t count)
{
    char      *text = read_part(image, names->sh_offset, names->sh_size);
    Elf64_Sym *list = read_part(image, table->sh_offset, table->sh_size);

    if (!text || !list || text[names->sh_size - 1] != '\0')
        goto done;
    for (uint64_t k = 0; k < table->sh_size / sizeof *list; k++) {
        if (list[k].st_shndx == SHN_UNDEF || list[k].st_name >= names->sh_size)
            continue;
        for (size_t i = 0; i < count; i++)
            if (symbols[i].address == 0 && strcmp(text + list[k].st_name, symbols[i].name) == 0)
                symbols[i].address = list[k].st_value + bias;
    }
done:
    free(text);
    free(list);
}

static bool is_known(const Elf64_Ehdr *head)
{
    return memcmp(head->e_ident, ELFMAG, SELFMAG) == 0 && head->e_ident[EI_CLASS] == ELFCLASS64 &&
           head->e_shentsize == sizeof(Elf64_Shdr) && head->e_phentsize == sizeof(Elf64_Phdr);
}

bool snd_elf_symbols(const char *file, uint64_t base, struct snd_symbol *symbols, size_t count)
{
    struct image image;
    Elf64_Ehdr   head;
    Elf64_Shdr  *tables = NULL;
    uint64_t     bias;

    if (!open_file(file, &image))
        return false;
    if (read_at(&image, 0, &head, sizeof head) && is_known(&head) &&
        find_bias(&image, &head, base, &bias))
        tables = read_part(&image, head.e_shoff, (uint64_t)head.e_shnum * sizeof *tables);
    for (unsigned i = 0; tables && i < head.e_shnum; i++)
        if ((tables[i].sh_type == SHT_SYMTAB || tables[i].sh_type == SHT_DYNSYM) &&
            tables[i].sh_link < head.e_shnum)
            search_table(&image, &tables[i], &tables[tables[i].sh_link], bias, symbols, count);
    bool done = tables != NULL;
    free(tables);
    close(image.fd);
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

static unsigned find_minor(const char *at, const char *end)
{
    static const char text[] = "python3.";
    unsigned          minor = 0;

    while (minor == 0 && (at = memmem(at, (size_t)(end - at), text, sizeof text - 1)) != NULL) {
        at += sizeof text - 1;
        minor = take_minor(at, end);
    }
    return minor;
}

unsigned snd_elf_python_minor(const char *file)
{
    char         bytes[KEPT + CHUNK];
    struct image image;
    size_t       kept = 0;
    unsigned     minor = 0;

    if (!open_file(file, &image))
        return 0;
    for (uint64_t at = 0; minor == 0 && at < image.size; at += CHUNK) {
        uint64_t left = image.size - at;
        size_t   size = left < CHUNK ? (size_t)left : CHUNK;
        if (!read_at(&image, at, bytes + kept, size))
            break;
        minor = find_minor(bytes, bytes + kept + size);
        size += kept;
        kept = size < KEPT ? size : KEPT;
        memmove(bytes, bytes + size - kept, kept);
    }
    close(image.fd);
    return minor;
}
