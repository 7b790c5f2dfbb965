/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/files/elf_image.h - an ELF file (64 bits, this machine's byte order): segments, sections, build id, debug link.
 *
 * Nothing in it is believed: every offset and length is checked against the file's size. It is
 * read, not mapped: pages of a file that is truncated meanwhile would raise SIGBUS.
 *
 * Layer: base. Threads: one at a time uses an image.
 */
#ifndef SND_BASE_FILES_ELF_IMAGE_H
#define SND_BASE_FILES_ELF_IMAGE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SND_BUILD_ID_MAX 64 /* bytes of a build id that are looked at; GNU's have 20 */
#define SND_BUILD_ID_TEXT (2 * SND_BUILD_ID_MAX + 1)

struct snd_image {
    int            fd;     /* or -1: */
    const uint8_t *memory; /* borrowed */
    uint64_t       size;
    Elf64_Ehdr     head;
    Elf64_Shdr    *sections;
    uint32_t       section_count;
    char          *names; /* of sections; ends with NUL */
    uint64_t       names_size;
};

/*
 * Opens a file, or bytes in memory, which must stay. False: not a regular file, not an ELF file
 * of this machine's kind, or memory is out; then there is nothing to release.
 */
bool snd_image_open(const char *path, struct snd_image *image);
bool snd_image_open_memory(const void *bytes, size_t size, struct snd_image *image);
void snd_image_release(struct snd_image *image);

/* Reads program header `i`. False: there is none, or it cannot be read. */
bool snd_image_segment(const struct snd_image *image, uint32_t i, Elf64_Phdr *segment);

/* The section of that name, or NULL. */
const Elf64_Shdr *snd_image_section(const struct snd_image *image, const char *name);
/* The name of a section; "" if it has none. */
const char *snd_image_section_name(const struct snd_image *image, const Elf64_Shdr *section);

/* The section's bytes, the caller's to free; NULL: it has none, is not all there, or is too large. */
void *snd_image_bytes(const struct snd_image *image, const Elf64_Shdr *section, uint64_t *size);

/* The build id in hexadecimal; "" if the file has none. */
void snd_image_build_id(const struct snd_image *image, char text[SND_BUILD_ID_TEXT]);

/* The name of the debug file and its checksum (.gnu_debuglink); NULL if there is none. To be freed. */
char *snd_image_debug_link(const struct snd_image *image, uint32_t *crc);

/* Whether the file has DWARF: which functions are at which addresses. */
bool snd_image_has_dwarf(const struct snd_image *image);

/* The checksum that a debug link has of the whole file. False: it cannot be read. */
bool snd_image_crc(const struct snd_image *image, uint32_t *crc);

#endif
