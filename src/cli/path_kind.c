/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/path_kind.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/run/run_folder.h"
#include "format/layout.h"

static bool is_trace_at(int folder, const char *name)
{
    char magic[sizeof SND_FILE_MAGIC - 1];
    /* Does not block on a pipe, nor follow a link out of the folder. */
    int  fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    bool is = false;

    if (fd >= 0) {
        is = read(fd, magic, sizeof magic) == (ssize_t)sizeof magic &&
             memcmp(magic, SND_FILE_MAGIC, sizeof magic) == 0;
        close(fd);
    }
    return is;
}

static bool is_own_name(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, SND_INNER_RUN) == 0 ||
           strcmp(name, SND_RUN_HOST) == 0;
}

/* `parts`: folders of other parts of a job may be in it. */
static bool holds_only_traces(int folder, const char *path, bool parts)
{
    int  fd = openat(folder, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    bool only = dir != NULL;

    if (fd >= 0 && !dir)
        close(fd);
    for (struct dirent *entry; only && (entry = readdir(dir)) != NULL;)
        if (!is_own_name(entry->d_name))
            only = is_trace_at(dirfd(dir), entry->d_name) ||
                   (parts && holds_only_traces(dirfd(dir), entry->d_name, false));
    if (dir)
        closedir(dir);
    return only;
}

enum snd_path_kind snd_path_kind(const char *path)
{
    struct stat st;

    if (lstat(path, &st) != 0)
        return SND_PATH_NONE; /* or not accessible: creating it gives the actual reason */
    if (S_ISDIR(st.st_mode))
        return holds_only_traces(AT_FDCWD, path, true) ? SND_PATH_FOLDER : SND_PATH_OTHER;
    return S_ISREG(st.st_mode) && is_trace_at(AT_FDCWD, path) ? SND_PATH_TRACE : SND_PATH_OTHER;
}
