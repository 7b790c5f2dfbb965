/* SPDX-License-Identifier: Apache-2.0 */
#include "read/file/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/fd_io.h"
#include "import/import.h"

/* Without O_NONBLOCK, opening a pipe in the folder would block for ever. */
static int open_file(const char *path)
{
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

enum sonde_status snd_source_open(struct snd_source *source, const char *path, bool keep,
                                  struct sonde_error *err)
{
    enum sonde_status status;
    struct stat       st;

    *source = (struct snd_source){ .fd = -1 };
    int fd = open_file(path);
    if (fd < 0)
        return snd_fail_os(err, SONDE_E_IO, "cannot open the trace %s", path);
    if (fstat(fd, &st) != 0) {
        status = snd_fail_os(err, SONDE_E_IO, "cannot read the trace %s", path);
        goto fail_stat;
    }
    if (!S_ISREG(st.st_mode)) {
        status = snd_fail(err, SONDE_E_IO, "cannot read the trace %s: not a regular file", path);
        goto fail_stat;
    }
    source->path = strdup(path);
    if (!source->path) {
        status = snd_fail(err, SONDE_E_NOMEM, "cannot open the trace %s: out of memory", path);
        goto fail_stat;
    }
    source->size = (uint64_t)st.st_size;
    if (keep)
        source->fd = fd;
    else
        close(fd);
    return SONDE_OK;

fail_stat:
    close(fd);
    return status;
}

bool snd_source_is_foreign(const char *path)
{
    char        head[256];
    struct stat st;
    int         fd = open_file(path);
    ssize_t     got = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)
                          ? read(fd, head, sizeof head)
                          : -1;

    if (fd >= 0)
        close(fd);
    return got > 0 && snd_import_may_be(head, (size_t)got);
}

enum sonde_status snd_source_import(struct snd_source *source, const char *path,
                                    struct sonde_error *err)
{
    struct stat       st;
    int               fd;
    enum sonde_status status = snd_import_aside(path, &fd, err);

    *source = (struct snd_source){ .fd = -1 };
    if (status != SONDE_OK)
        return status;
    source->fd = fd;
    source->path = strdup(path);
    if (!source->path || fstat(fd, &st) != 0) {
        snd_source_release(source);
        return snd_fail(err, SONDE_E_NOMEM, "cannot open the trace %s: out of memory", path);
    }
    source->size = (uint64_t)st.st_size;
    return SONDE_OK;
}

void snd_source_release(struct snd_source *source)
{
    if (source->fd >= 0)
        close(source->fd);
    free((char *)source->path);
    *source = (struct snd_source){ .fd = -1 };
}

size_t snd_source_read(const struct snd_source *source, uint64_t offset, void *out, size_t size)
{
    if (offset >= source->size)
        return 0;
    if (size > source->size - offset)
        size = (size_t)(source->size - offset);
    if (source->memory) {
        memcpy(out, source->memory + offset, size);
        return size;
    }
    int fd = source->fd >= 0 ? source->fd : open_file(source->path);
    if (fd < 0)
        return 0;
    size_t done = snd_read_at(fd, offset, out, size);
    if (fd != source->fd)
        close(fd);
    return done;
}

uint64_t snd_source_skip_hole(const struct snd_source *source, uint64_t offset)
{
    if (source->memory)
        return offset;
    int fd = source->fd >= 0 ? source->fd : open_file(source->path);
    if (fd < 0)
        return source->size;
    off_t data = lseek(fd, (off_t)offset, SEEK_DATA);
    bool  none = data < 0 && errno == ENXIO; /* nothing but hole to the end */
    if (fd != source->fd)
        close(fd);
    if (none)
        return source->size;
    return data > (off_t)offset ? (uint64_t)data : offset;
}
