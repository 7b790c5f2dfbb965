/* SPDX-License-Identifier: Apache-2.0 */
#include "base/files/paged.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/files/folders.h"

/* Room on the disk is taken at once: a write through memory that finds none ends the program. */
static bool has_room(int fd, size_t size)
{
    return posix_fallocate(fd, 0, (off_t)size) == 0;
}

/* What it has goes into a file. False: it stays where it is. */
static bool move_to_file(struct snd_paged *p, size_t size)
{
    int   fd = snd_temporary_file();
    void *bytes = fd >= 0 && has_room(fd, size)
                      ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                      : MAP_FAILED;

    if (bytes == MAP_FAILED) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    if (p->size > 0)
        memcpy(bytes, p->bytes, p->size);
    free(p->bytes);
    *p = (struct snd_paged){ bytes, size, fd + 1 };
    return true;
}

static bool grow_file(struct snd_paged *p, size_t size)
{
    void *bytes = has_room(p->file - 1, size) ? mremap(p->bytes, p->size, size, MREMAP_MAYMOVE)
                                              : MAP_FAILED;

    if (bytes == MAP_FAILED)
        return false;
    p->bytes = bytes;
    p->size = size;
    return true;
}

static bool grow_memory(struct snd_paged *p, size_t size)
{
    char *bytes = p->file ? malloc(size) : realloc(p->bytes, size);

    if (!bytes)
        return false;
    if (p->file) {
        memcpy(bytes, p->bytes, p->size);
        munmap(p->bytes, p->size);
        close(p->file - 1);
    }
    memset(bytes + p->size, 0, size - p->size);
    *p = (struct snd_paged){ bytes, size, 0 };
    return true;
}

bool snd_paged_grow(struct snd_paged *p, size_t size)
{
    if (size <= p->size)
        return true;
    if (p->file ? grow_file(p, size) : size >= SND_PAGED_LEAST && move_to_file(p, size))
        return true;
    return grow_memory(p, size);
}

void snd_paged_release(struct snd_paged *p)
{
    if (p->file) {
        munmap(p->bytes, p->size);
        close(p->file - 1);
    } else {
        free(p->bytes);
    }
    *p = (struct snd_paged){ 0 };
}

void snd_paged_let_go(const struct snd_paged *p)
{
    if (p->file)
        (void)madvise(p->bytes, p->size, MADV_DONTNEED);
}
