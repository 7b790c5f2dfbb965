/* SPDX-License-Identifier: Apache-2.0 */
/* pystack/outside/elf_symbols.c - symbols of the interpreter's file. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/elf_image.h"
#include "base/files/fd_io.h"
#include "pystack/outside/locate.h"

#define CHUNK 65536u
#define KEPT 16u /* of a chunk's end: the longest word that is looked for, and more */

/* Where the file's addresses begin: those of its first segment, as the loader rounds them. */
static bool find_bias(const struct snd_image *image, uint64_t base, uint64_t *bias)
{
    Elf64_Phdr segment;

    for (uint32_t i = 0; snd_image_segment(image, i, &segment); i++)
        if (segment.p_type == PT_LOAD) {
            *bias = base - (segment.p_vaddr - segment.p_offset % 4096) / 4096 * 4096;
            return true;
        }
    return false;
}

static void search_table(const struct snd_image *image, const Elf64_Shdr *table, uint64_t bias,
                         struct snd_symbol *symbols, size_t count)
{
    uint64_t   text_size = 0, size = 0;
    char      *text = snd_image_bytes(image, &image->sections[table->sh_link], &text_size);
    Elf64_Sym *list = snd_image_bytes(image, table, &size);

    for (uint64_t k = 0; text && list && k < size / sizeof *list; k++) {
        if (list[k].st_shndx == SHN_UNDEF || list[k].st_name >= text_size)
            continue;
        for (size_t i = 0; i < count; i++)
            if (symbols[i].address == 0 && strcmp(text + list[k].st_name, symbols[i].name) == 0)
                symbols[i].address = list[k].st_value + bias;
    }
    free(text);
    free(list);
}

bool snd_elf_symbols(const char *file, uint64_t base, struct snd_symbol *symbols, size_t count)
{
    struct snd_image image;
    uint64_t         bias;

    if (!snd_image_open(file, &image))
        return false;
    bool done = image.section_count > 0 && find_bias(&image, base, &bias);
    for (uint32_t i = 0; done && i < image.section_count; i++) {
        const Elf64_Shdr *table = &image.sections[i];
        if ((table->sh_type == SHT_SYMTAB || table->sh_type == SHT_DYNSYM) &&
            table->sh_link < image.section_count)
            search_table(&image, table, bias, symbols, count);
    }
    snd_image_release(&image);
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
    char     bytes[KEPT + CHUNK];
    uint64_t whole;
    size_t   kept = 0;
    unsigned minor = 0;
    int      fd = snd_open_regular(file, &whole);

    if (fd < 0)
        return 0;
    for (uint64_t at = 0; minor == 0 && at < whole; at += CHUNK) {
        uint64_t left = whole - at;
        size_t   size = left < CHUNK ? (size_t)left : CHUNK;
        if (snd_read_at(fd, at, bytes + kept, size) != size)
            break;
        minor = find_minor(bytes, bytes + kept + size);
        size += kept;
        kept = size < KEPT ? size : KEPT;
        memmove(bytes, bytes + size - kept, kept);
    }
    close(fd);
    return minor;
}
