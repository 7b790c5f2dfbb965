/* SPDX-License-Identifier: Apache-2.0 */
#include "base/files/elf_image.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/fd_io.h"

#define PART_MOST ((uint64_t)1 << 31)  /* bytes of one section */
#define NOTES_MOST ((uint64_t)1 << 20) /* bytes of notes that are searched for a build id */
#define SECTIONS_MOST ((uint32_t)1 << 20)

#if __BYTE_ORDER == __LITTLE_ENDIAN
#define OWN_ORDER ELFDATA2LSB
#else
#define OWN_ORDER ELFDATA2MSB
#endif

static bool read_at(const struct snd_image *image, uint64_t at, void *out, size_t size)
{
    if (at > image->size || size > image->size - at)
        return false;
    if (!image->memory)
        return snd_read_at(image->fd, at, out, size) == size;
    memcpy(out, image->memory + at, size);
    return true;
}

/* `extra` bytes after it are 0. */
static void *read_part(const struct snd_image *image, uint64_t at, uint64_t size, size_t extra)
{
    if (size == 0 || size > PART_MOST || at > image->size || size > image->size - at)
        return NULL;
    char *part = malloc((size_t)size + extra);
    if (!part)
        return NULL;
    memset(part + size, 0, extra);
    if (!read_at(image, at, part, (size_t)size)) {
        free(part);
        return NULL;
    }
    return part;
}

static bool is_known(const Elf64_Ehdr *head)
{
    return memcmp(head->e_ident, ELFMAG, SELFMAG) == 0 && head->e_ident[EI_CLASS] == ELFCLASS64 &&
           head->e_ident[EI_DATA] == OWN_ORDER;
}

/* Counts that do not fit the header are in the first section. */
static void read_sections(struct snd_image *image)
{
    const Elf64_Ehdr *head = &image->head;
    Elf64_Shdr        first;
    uint64_t          count = head->e_shnum;
    uint32_t          names = head->e_shstrndx;

    if (head->e_shentsize != sizeof first || !read_at(image, head->e_shoff, &first, sizeof first))
        return;
    if (count == 0)
        count = first.sh_size;
    if (names == SHN_XINDEX)
        names = first.sh_link;
    if (count > SECTIONS_MOST)
        return;
    image->sections = read_part(image, head->e_shoff, count * sizeof first, 0);
    if (!image->sections)
        return;
    image->section_count = (uint32_t)count;
    if (names < image->section_count) {
        const Elf64_Shdr *section = &image->sections[names];
        image->names = read_part(image, section->sh_offset, section->sh_size, 1);
        image->names_size = image->names ? section->sh_size : 0;
    }
}

static bool open_image(struct snd_image *image)
{
    if (!read_at(image, 0, &image->head, sizeof image->head) || !is_known(&image->head))
        return false;
    read_sections(image); /* a file without sections has no symbols, but may have a build id */
    return true;
}

bool snd_image_open(const char *path, struct snd_image *image)
{
    *image = (struct snd_image){ .fd = -1 };
    image->fd = snd_open_regular(path, &image->size);
    if (image->fd >= 0 && open_image(image))
        return true;
    snd_image_release(image);
    return false;
}

bool snd_image_open_memory(const void *bytes, size_t size, struct snd_image *image)
{
    *image = (struct snd_image){ .fd = -1, .memory = bytes, .size = size };
    if (open_image(image))
        return true;
    snd_image_release(image);
    return false;
}

void snd_image_release(struct snd_image *image)
{
    if (image->fd >= 0)
        close(image->fd);
    free(image->sections);
    free(image->names);
    *image = (struct snd_image){ .fd = -1 };
}

bool snd_image_segment(const struct snd_image *image, uint32_t i, Elf64_Phdr *segment)
{
    const Elf64_Ehdr *head = &image->head;

    return i < head->e_phnum && head->e_phentsize == sizeof *segment &&
           head->e_phoff <= image->size &&
           read_at(image, head->e_phoff + i * sizeof *segment, segment, sizeof *segment);
}

const char *snd_image_section_name(const struct snd_image *image, const Elf64_Shdr *section)
{
    return section->sh_name < image->names_size ? image->names + section->sh_name : "";
}

const Elf64_Shdr *snd_image_section(const struct snd_image *image, const char *name)
{
    for (uint32_t i = 0; i < image->section_count; i++)
        if (strcmp(snd_image_section_name(image, &image->sections[i]), name) == 0)
            return &image->sections[i];
    return NULL;
}

void *snd_image_bytes(const struct snd_image *image, const Elf64_Shdr *section, uint64_t *size)
{
    if (section->sh_type == SHT_NOBITS || (section->sh_flags & SHF_COMPRESSED) != 0)
        return NULL;
    *size = section->sh_size;
    return read_part(image, section->sh_offset, section->sh_size, 1);
}

/* ---------------------------------------------------------------- build id */

/* Notes: a head of three words, a name and a description, each padded to 4 bytes. */
static bool find_build_id(const uint8_t *notes, uint64_t size, char text[SND_BUILD_ID_TEXT])
{
    static const char owner[] = "GNU";
    uint64_t          at = 0;
    Elf64_Nhdr        head;

    while (size - at >= sizeof head) {
        memcpy(&head, notes + at, sizeof head);
        at += sizeof head;
        uint64_t name = ((uint64_t)head.n_namesz + 3) & ~(uint64_t)3;
        uint64_t data = ((uint64_t)head.n_descsz + 3) & ~(uint64_t)3;
        if (name > size - at || data > size - at - name)
            return false;
        if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == sizeof owner &&
            memcmp(notes + at, owner, sizeof owner) == 0 && head.n_descsz > 0 &&
            head.n_descsz <= SND_BUILD_ID_MAX) {
            static const char digits[] = "0123456789abcdef";
            for (uint32_t i = 0; i < head.n_descsz; i++) {
                text[2 * i] = digits[notes[at + name + i] >> 4];
                text[2 * i + 1] = digits[notes[at + name + i] & 15];
            }
            text[2 * head.n_descsz] = '\0';
            return true;
        }
        at += name + data;
    }
    return false;
}

static bool search_notes(const struct snd_image *image, uint64_t at, uint64_t size,
                         char text[SND_BUILD_ID_TEXT])
{
    uint8_t *notes = size <= NOTES_MOST ? read_part(image, at, size, 0) : NULL;
    bool     found = notes && find_build_id(notes, size, text);

    free(notes);
    return found;
}

void snd_image_build_id(const struct snd_image *image, char text[SND_BUILD_ID_TEXT])
{
    text[0] = '\0';
    for (uint32_t i = 0; i < image->section_count; i++)
        if (image->sections[i].sh_type == SHT_NOTE &&
            search_notes(image, image->sections[i].sh_offset, image->sections[i].sh_size, text))
            return;
    Elf64_Phdr segment;
    if (image->section_count > 0)
        return;
    for (uint32_t i = 0; snd_image_segment(image, i, &segment); i++)
        if (segment.p_type == PT_NOTE &&
            search_notes(image, segment.p_offset, segment.p_filesz, text))
            return;
}

/* -------------------------------------------------------------- debug files */

char *snd_image_debug_link(const struct snd_image *image, uint32_t *crc)
{
    const Elf64_Shdr *section = snd_image_section(image, ".gnu_debuglink");
    uint64_t          size;
    char             *link = section ? snd_image_bytes(image, section, &size) : NULL;

    if (!link)
        return NULL;
    uint64_t at = ((uint64_t)strlen(link) + 1 + 3) & ~(uint64_t)3;
    if (link[0] == '\0' || strchr(link, '/') || at > size || size - at < sizeof *crc) {
        free(link);
        return NULL;
    }
    memcpy(crc, link + at, sizeof *crc);
    return link;
}

bool snd_image_has_dwarf(const struct snd_image *image)
{
    const Elf64_Shdr *section = snd_image_section(image, ".debug_info");

    if (!section)
        section = snd_image_section(image, ".zdebug_info");
    return section && section->sh_type != SHT_NOBITS && section->sh_size > 0;
}

/* CRC-32 as zlib has it. */
bool snd_image_crc(const struct snd_image *image, uint32_t *crc)
{
    uint32_t table[256];
    uint8_t *bytes = malloc(65536);
    uint64_t at = 0;

    for (uint32_t i = 0; i < 256; i++) {
        table[i] = i;
        for (int bit = 0; bit < 8; bit++)
            table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xedb88320u : 0);
    }
    *crc = 0xffffffffu;
    while (bytes && at < image->size) {
        size_t size = image->size - at < 65536 ? (size_t)(image->size - at) : 65536;
        if (!read_at(image, at, bytes, size))
            break;
        for (size_t i = 0; i < size; i++)
            *crc = *crc >> 8 ^ table[(*crc ^ bytes[i]) & 255];
        at += size;
    }
    *crc ^= 0xffffffffu;
    free(bytes);
    return bytes && at == image->size;
}
