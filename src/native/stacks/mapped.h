/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native/stacks/mapped.h - the files that observed processes have mapped, and where.
 *
 * A file is known by device, inode and path, once for all processes. It is opened when it is first
 * mapped, while the process lives: it may be gone later, or only be reachable through the process (a
 * container). Its unwind table is made when a stack first leads into it.
 *
 * Layer: native. Threads: one.
 */
#ifndef SND_NATIVE_STACKS_MAPPED_H
#define SND_NATIVE_STACKS_MAPPED_H

#include "base/data/map.h"
#include "native/stacks/unwind_table.h"

#define SND_FILE_SEGMENTS 16u

struct snd_mapped_file {
    char *path;     /* owned: as the process has it, or "[vdso]", "[kernel]", "/tmp/perf-PID.map" */
    char *build_id; /* owned: in hexadecimal, "" none */
    int   fd;       /* or -1 */
    struct {
        uint64_t offset, size, address;
    } segments
        [SND_FILE_SEGMENTS]; /* that are loaded: where they are in the file and in its addresses */
    uint32_t                segment_count;
    bool                    is_raw;    /* not an ELF file: addresses are the process's */
    bool                    is_python; /* an interpreter, or its library */
    bool                    has_table;
    uint64_t                entry; /* where it starts as a program, once it has a table; or 0 */
    struct snd_unwind_table table;
    uint32_t                name, id; /* strings of the recording; 0: not yet */
};

struct snd_mapping {
    uint64_t start, end, offset;
    uint32_t file; /* index in snd_mapped_files */
};

/* What a process has mapped to execute, sorted. */
struct snd_mappings {
    struct snd_mapping *list; /* owned */
    uint32_t            count, capacity;
};

struct snd_mapped_files {
    struct snd_mapped_file *list; /* owned */
    uint32_t                count, capacity;
    struct snd_map          known; /* device, inode, path's number to a place in the list */
    struct snd_texts        paths;
};

/* A mapping as the kernel reports it. */
struct snd_map_record {
    uint32_t    pid;
    uint64_t    start, size, offset, inode;
    uint32_t    major, minor;
    const char *path; /* "//anon": no file */
};

/* False when memory is out. What it covers of older mappings is gone. */
bool snd_mappings_add(struct snd_mappings *mappings, struct snd_mapped_files *files,
                      const struct snd_map_record *record);
bool snd_mappings_copy(struct snd_mappings *to, const struct snd_mappings *from);
void snd_mappings_clear(struct snd_mappings *mappings);
/* The mapping that an address lies in, or NULL. */
const struct snd_mapping *snd_mappings_find(const struct snd_mappings *mappings, uint64_t address);
/* What a living process has mapped now (/proc/PID/maps). False: it cannot be read. */
bool snd_mappings_read(struct snd_mappings *mappings, struct snd_mapped_files *files, uint32_t pid);

/* The file's own address of one in a mapping of it. */
uint64_t snd_mapped_address(const struct snd_mapped_file *file, const struct snd_mapping *mapping,
                            uint64_t address);
/* Whether it is in the first instructions of the program or loader; known once a row was asked for. */
bool snd_mapped_is_start(const struct snd_mapped_file *file, uint64_t address);
/* How to get from there to the caller; NULL: nothing is known of it. */
const struct snd_unwind_row *snd_mapped_row(struct snd_mapped_file *file, uint64_t address);

/* The file that stands for the kernel; UINT32_MAX when memory is out. */
uint32_t snd_mapped_kernel(struct snd_mapped_files *files);

void snd_mapped_files_release(struct snd_mapped_files *files);

#endif
