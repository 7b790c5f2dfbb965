/* SPDX-License-Identifier: Apache-2.0 */
#include "native/stacks/mapped.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "snd_config.h"
#include "base/files/elf_image.h"

#if SND_HAVE_ZLIB
#include <zlib.h>
#endif

#define FILES_KEPT_OPEN 1024u
#define VDSO_MAX ((size_t)65536)
#define HEADERS_MAX 64u
#define UNPACKED_MOST ((uint64_t)256 << 20) /* of a compressed section */

/* ---------------------------------------------------------------------- files */

static bool is_vdso(const char *path)
{
    return strcmp(path, "[vdso]") == 0;
}

/* The image of a file; of the vDSO, that of this process: the kernel has one for all. */
static bool open_image(const struct snd_mapped_file *file, struct snd_image *image)
{
    char path[32];

    if (is_vdso(file->path)) {
        const void *here = (const void *)getauxval(AT_SYSINFO_EHDR);
        if (!here)
            return false;
        /* Its size is in no header: the section headers are at its end. */
        const Elf64_Ehdr *head = here;
        size_t            size = (size_t)head->e_shoff + (size_t)head->e_shnum * head->e_shentsize;
        return size <= VDSO_MAX && snd_image_open_memory(here, size, image);
    }
    if (file->fd < 0)
        return false;
    snprintf(path, sizeof path, "/proc/self/fd/%d", file->fd);
    return snd_image_open(path, image);
}

static void read_segments(struct snd_mapped_file *file, const struct snd_image *image)
{
    Elf64_Phdr header;

    for (uint32_t i = 0; i < HEADERS_MAX && file->segment_count < SND_FILE_SEGMENTS &&
                         snd_image_segment(image, i, &header);
         i++) {
        if (header.p_type != PT_LOAD)
            continue;
        file->segments[file->segment_count].offset = header.p_offset;
        file->segments[file->segment_count].size = header.p_filesz;
        file->segments[file->segment_count++].address = header.p_vaddr;
    }
}

static void read_file(struct snd_mapped_file *file)
{
    struct snd_image image;
    char             id[SND_BUILD_ID_TEXT];

    file->is_raw = true;
    if (!open_image(file, &image))
        return;
    file->is_raw = false;
    read_segments(file, &image);
    snd_image_build_id(&image, id);
    file->build_id = strdup(id);
    snd_image_release(&image);
}

/* Opens what the process has mapped: by its path in the process's own root, or as it is mapped. */
static int open_mapped(const struct snd_map_record *r)
{
    char        path[4200];
    struct stat st;

    for (int way = 0; way < 3; way++) {
        if (way == 0)
            snprintf(path, sizeof path, "/proc/%u/root%s", r->pid, r->path);
        else if (way == 1)
            snprintf(path, sizeof path, "%s", r->path);
        else
            snprintf(path, sizeof path, "/proc/%u/map_files/%" PRIx64 "-%" PRIx64, r->pid, r->start,
                     r->start + r->size);
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
            (r->inode == 0 || st.st_ino == r->inode))
            return fd;
        if (fd >= 0)
            close(fd);
    }
    return -1;
}

/* The number of a new file; UINT32_MAX when memory is out. */
static uint32_t add_file(struct snd_mapped_files *files, const char *path)
{
    if (!snd_grow(&files->list, &files->capacity, files->count, sizeof *files->list))
        return UINT32_MAX;
    files->list[files->count] = (struct snd_mapped_file){ .path = strdup(path), .fd = -1 };
    return files->list[files->count].path ? files->count++ : UINT32_MAX;
}

static bool is_python(const char *path)
{
    const char *name = strrchr(path, '/');

    return name && (strncmp(name, "/python", 7) == 0 || strncmp(name, "/libpython", 10) == 0);
}

static uint32_t find_file(struct snd_mapped_files *files, const struct snd_map_record *r)
{
    uint32_t number, place;

    if (!snd_texts_add(&files->paths, r->path, strlen(r->path), &number))
        return UINT32_MAX;
    struct snd_key key = { (uint64_t)r->major << 32 | r->minor, r->inode, number };
    if (snd_map_get(&files->known, key, &place))
        return place;
    place = add_file(files, r->path);
    if (place == UINT32_MAX || !snd_map_put(&files->known, key, place))
        return UINT32_MAX;
    struct snd_mapped_file *file = &files->list[place];
    if (r->path[0] == '/' && place < FILES_KEPT_OPEN)
        file->fd = open_mapped(r);
    file->is_python = is_python(r->path);
    read_file(file);
    return place;
}

/* Code that no file has: a just-in-time compiler's, which may tell of it in a file of its own. */
static bool name_anonymous(const struct snd_map_record *r, char *path, size_t size)
{
    bool anonymous = strcmp(r->path, "//anon") == 0 || strncmp(r->path, "[anon", 5) == 0 ||
                     r->path[0] == '\0' || strcmp(r->path, "[heap]") == 0 ||
                     strncmp(r->path, "/memfd:", 7) == 0 || strncmp(r->path, "/dev/zero", 9) == 0;

    if (anonymous)
        snprintf(path, size, "/tmp/perf-%u.map", r->pid);
    return anonymous;
}

uint32_t snd_mapped_kernel(struct snd_mapped_files *files)
{
    struct snd_map_record r = { .path = "[kernel]", .pid = 0 };

    return find_file(files, &r);
}

void snd_mapped_files_release(struct snd_mapped_files *files)
{
    for (uint32_t i = 0; i < files->count; i++) {
        free(files->list[i].path);
        free(files->list[i].build_id);
        if (files->list[i].fd >= 0)
            close(files->list[i].fd);
        snd_unwind_table_release(&files->list[i].table);
    }
    free(files->list);
    snd_map_release(&files->known);
    snd_texts_release(&files->paths);
}

/* --------------------------------------------------------------------- tables */

/* A section that is compressed, as Go's linker leaves it. To be freed. NULL: it cannot be read, or there is no zlib. */
static uint8_t *unpack(const struct snd_image *image, const Elf64_Shdr *section, uint64_t *size)
{
#if SND_HAVE_ZLIB
    Elf64_Shdr plain = *section;
    uint64_t   packed;
    Elf64_Chdr head;

    plain.sh_flags &= ~(uint64_t)SHF_COMPRESSED;
    uint8_t *bytes = snd_image_bytes(image, &plain, &packed), *out = NULL;
    if (bytes && packed > sizeof head) {
        memcpy(&head, bytes, sizeof head);
        uLongf length = head.ch_size;
        if (head.ch_type == ELFCOMPRESS_ZLIB && length > 0 && length <= UNPACKED_MOST)
            out = malloc(length);
        if (out && uncompress(out, &length, bytes + sizeof head, packed - sizeof head) != Z_OK) {
            free(out);
            out = NULL;
        }
        *size = length;
    }
    free(bytes);
    return out;
#else
    (void)image, (void)section, (void)size;
    return NULL;
#endif
}

static void add_section(struct snd_mapped_file *file, const struct snd_image *image,
                        const char *name)
{
    const Elf64_Shdr *section = snd_image_section(image, name);
    uint64_t          size = 0;

    if (!section)
        return;
    uint8_t *bytes = section->sh_flags & SHF_COMPRESSED ? unpack(image, section, &size)
                                                        : snd_image_bytes(image, section, &size);
    if (!bytes)
        return;
    bool                   is_debug = name[1] == 'd';
    struct snd_cfi_section it = { bytes, (size_t)size, is_debug ? 0 : section->sh_addr, is_debug };
    if (!snd_unwind_table_add(&file->table, &it))
        snd_unwind_table_release(&file->table); /* out of memory: frame pointers then */
    free(bytes);
}

static void make_table(struct snd_mapped_file *file)
{
    struct snd_image image;

    file->has_table = true;
    if (file->is_raw || !open_image(file, &image))
        return;
    file->entry = image.head.e_entry;
    add_section(file, &image, ".eh_frame");
    if (file->table.count <
        64) /* as good as none: programs of Go have one of the C library's start */
        add_section(file, &image, ".debug_frame");
    snd_unwind_table_sort(&file->table);
    snd_image_release(&image);
}

const struct snd_unwind_row *snd_mapped_row(struct snd_mapped_file *file, uint64_t address)
{
    if (!file->has_table)
        make_table(file);
    return snd_unwind_table_find(&file->table, address);
}

bool snd_mapped_is_start(const struct snd_mapped_file *file, uint64_t address)
{
    enum { START_SIZE = 64 }; /* the loader's is the longest: 61 bytes */

    return file->entry != 0 && address >= file->entry && address - file->entry < START_SIZE;
}

uint64_t snd_mapped_address(const struct snd_mapped_file *file, const struct snd_mapping *m,
                            uint64_t address)
{
    uint64_t at = address - m->start + m->offset;

    if (file->is_raw)
        return file->segment_count == 0 && file->path[0] == '/' && file->fd >= 0 ? at : address;
    for (uint32_t i = 0; i < file->segment_count; i++)
        if (at >= (file->segments[i].offset & ~(uint64_t)4095) &&
            at < ((file->segments[i].offset + file->segments[i].size + 4095) & ~(uint64_t)4095) &&
            at - file->segments[i].offset < file->segments[i].size)
            return at - file->segments[i].offset + file->segments[i].address;
    return at;
}

/* ------------------------------------------------------------------- mappings */

void snd_mappings_clear(struct snd_mappings *m)
{
    free(m->list);
    *m = (struct snd_mappings){ 0 };
}

bool snd_mappings_copy(struct snd_mappings *to, const struct snd_mappings *from)
{
    snd_mappings_clear(to);
    if (from->count == 0)
        return true;
    to->list = malloc(from->count * sizeof *to->list);
    if (!to->list)
        return false;
    memcpy(to->list, from->list, from->count * sizeof *to->list);
    to->count = to->capacity = from->count;
    return true;
}

/* The first that ends after an address. */
static uint32_t first_after(const struct snd_mappings *m, uint64_t address)
{
    uint32_t low = 0, high = m->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (m->list[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct snd_mapping *snd_mappings_find(const struct snd_mappings *m, uint64_t address)
{
    uint32_t at = first_after(m, address);

    return at < m->count && m->list[at].start <= address ? &m->list[at] : NULL;
}

static bool insert(struct snd_mappings *m, uint32_t at, struct snd_mapping it)
{
    if (!snd_grow(&m->list, &m->capacity, m->count, sizeof *m->list))
        return false;
    memmove(m->list + at + 1, m->list + at, (m->count - at) * sizeof *m->list);
    m->list[at] = it;
    m->count++;
    return true;
}

/* Cuts what lies within [start, end) out of the older ones. */
static bool cut(struct snd_mappings *m, uint64_t start, uint64_t end)
{
    uint32_t at = first_after(m, start);

    while (at < m->count && m->list[at].start < end) {
        struct snd_mapping *old = &m->list[at], after = *old;
        after.offset += end - old->start;
        after.start = end;
        bool has_before = old->start<start, has_after = old->end> end;
        if (has_before)
            old->end = start;
        if (has_before && has_after)
            return insert(m, at + 1, after);
        if (has_before) {
            at++;
        } else if (has_after) {
            *old = after;
            return true;
        } else {
            memmove(old, old + 1, (m->count - at - 1) * sizeof *old);
            m->count--;
        }
    }
    return true;
}

bool snd_mappings_add(struct snd_mappings *m, struct snd_mapped_files *files,
                      const struct snd_map_record *record)
{
    struct snd_map_record r = *record;
    char                  path[64];

    if (r.size == 0 || r.start + r.size < r.start)
        return true;
    if (name_anonymous(&r, path, sizeof path)) {
        r.path = path;
        r.inode = r.major = r.minor = 0;
    }
    uint32_t file = find_file(files, &r);
    if (file == UINT32_MAX || !cut(m, r.start, r.start + r.size))
        return false;
    if (r.path == path) { /* no file of code, though it may be one of text */
        files->list[file].is_raw = true;
        if (files->list[file].fd >= 0)
            close(files->list[file].fd);
        files->list[file].fd = -1;
    }
    return insert(m, first_after(m, r.start),
                  (struct snd_mapping){ r.start, r.start + r.size, r.offset, file });
}

bool snd_mappings_read(struct snd_mappings *m, struct snd_mapped_files *files, uint32_t pid)
{
    char   name[64], *line = NULL;
    size_t room = 0;

    snprintf(name, sizeof name, "/proc/%u/maps", pid);
    FILE *file = fopen(name, "re");
    if (!file)
        return false;
    snd_mappings_clear(m);
    while (getline(&line, &room, file) > 0) {
        struct snd_map_record r = { .pid = pid };
        uint64_t              end;
        char                  rights[8];
        int                   path = 0;
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %x:%x %" SCNu64 " %n", &r.start,
                   &end, rights, &r.offset, &r.major, &r.minor, &r.inode, &path) < 7 ||
            rights[2] != 'x')
            continue;
        r.size = end - r.start;
        line[strcspn(line, "\n")] = '\0';
        r.path = path > 0 ? line + path : "";
        if (strcmp(r.path, "[vsyscall]") != 0)
            (void)snd_mappings_add(m, files, &r);
    }
    free(line);
    fclose(file);
    return true;
}
