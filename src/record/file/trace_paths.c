/* SPDX-License-Identifier: Apache-2.0 */
#include "record/file/trace_paths.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_folder(const char *path)
{
    size_t length = strlen(path);

    return length > 0 && path[length - 1] == '/';
}

void snd_place_open(void)
{
    char        folder[PATH_MAX];
    const char *slash = strrchr(snd_rec.path, '/');

    snd_place_close();
    snd_rec.folder_length = slash ? (size_t)(slash + 1 - snd_rec.path) : 0;
    memcpy(folder, snd_rec.path, snd_rec.folder_length);
    folder[snd_rec.folder_length] = '\0';
    snd_rec.folder = snd_ownfd_take(
        open(snd_rec.folder_length ? folder : ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
}

void snd_place_close(void)
{
    snd_ownfd_close(&snd_rec.folder);
}

/*
 * One of the file's names for the calls that end in "at": below the open folder, or, once that is
 * closed or was removed, from the root.
 */
struct place {
    int         folder;
    const char *name;
};

static struct place below(const char *path)
{
    struct place place = { AT_FDCWD, path };

    if (snd_ownfd_is(&snd_rec.folder, snd_rec.folder.fd))
        place = (struct place){ snd_rec.folder.fd, path + snd_rec.folder_length };
    return place;
}

static int open_at(const char *path, int flags)
{
    struct place place = below(path);
    int          fd = openat(place.folder, place.name, flags, 0600);

    return fd < 0 && errno == ENOENT && place.folder != AT_FDCWD ? open(path, flags, 0600) : fd;
}

int snd_place_reopen(void)
{
    return open_at(snd_rec.file_path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
}

void snd_place_remove(void)
{
    struct place place = below(snd_rec.file_path);

    unlinkat(place.folder, place.name, 0);
}

/*
 * "a/b.sonde" of cycle 2 is "a/b-3.sonde"; in a folder it is "PID-3.sonde". A child's is
 * "a/b.sonde.PID".
 */
static bool name_file(char *out, size_t size, uint32_t number)
{
    const char *path = snd_rec.path;
    size_t      length = strlen(path);
    char        suffix[32] = "";
    int         n;

    if (number > 0)
        snprintf(suffix, sizeof suffix, "-%u", number + 1);
    if (is_folder(path)) {
        n = snprintf(out, size, "%s%u%s.sonde", path, snd_subject(), suffix);
    } else {
        const char *slash = strrchr(path, '/');
        const char *dot = strrchr(slash ? slash : path, '.');
        int         stem = (int)(dot && dot != path ? (size_t)(dot - path) : length);
        n = snprintf(out, size, "%.*s%s%s", stem, path, suffix, path + stem);
        if (n >= 0 && (size_t)n < size && snd_rec.parent_pid != 0)
            n += snprintf(out + n, size - (size_t)n, ".%d", (int)getpid());
    }
    return n >= 0 && (size_t)n < size;
}

/* A trace, or an empty file (a name reserved with mkstemp). */
static bool is_replaceable(void)
{
    char        magic[8];
    struct stat at;
    int         fd = open_at(snd_rec.file_path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    if (fd < 0)
        return false;
    bool yes = fstat(fd, &at) == 0 && S_ISREG(at.st_mode) &&
               (at.st_size == 0 || (read(fd, magic, sizeof magic) == (ssize_t)sizeof magic &&
                                    memcmp(magic, SND_FILE_MAGIC, sizeof magic) == 0));
    close(fd);
    return yes;
}

static enum sonde_status replace(struct sonde_error *err)
{
    struct place place = below(snd_rec.file_path);

    if (!is_replaceable())
        return snd_fail(err, SONDE_E_IO,
                        "refusing to overwrite %s, which is not a trace; choose another name with "
                        "-o or options.path",
                        snd_rec.file_path);
    /* Not truncated: another process may have the old file mapped, and would fault. */
    if (unlinkat(place.folder, place.name, 0) != 0)
        return snd_fail_os(err, SONDE_E_IO,
                           "cannot replace the trace %s; choose another place with -o or "
                           "options.path",
                           snd_rec.file_path);
    return SONDE_OK;
}

/* A folder may hold traces of earlier programs of the same process (exec): next number. */
enum sonde_status snd_place_create(struct sonde_error *err)
{
    const int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
    uint32_t  number = snd_rec.cycle;
    bool      may_replace = snd_rec.overwrite || snd_rec.parent_pid != 0;

    for (;;) {
        if (!name_file(snd_rec.file_path, sizeof snd_rec.file_path, number))
            return snd_fail(err, SONDE_E_ARGUMENT, "cannot record to %.200s: the path is too long",
                            snd_rec.path);
        snd_rec.file = snd_ownfd_take(open_at(snd_rec.file_path, flags));
        if (snd_rec.file.fd >= 0)
            return SONDE_OK;
        bool exists = errno == EEXIST;
        if (exists && is_folder(snd_rec.path) && number < snd_rec.cycle + 100000) {
            number++;
        } else if (exists && may_replace) {
            may_replace = false;
            enum sonde_status status = replace(err);
            if (status != SONDE_OK)
                return status;
        } else {
            return snd_fail_os(err, SONDE_E_IO,
                               "cannot create the trace %s; choose another place "
                               "with -o or options.path",
                               snd_rec.file_path);
        }
    }
}
