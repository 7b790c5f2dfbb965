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

static bool holds_only_traces(const char *path)
{
    DIR *dir = opendir(path);
    bool only = dir != NULL;

    for (struct dirent *entry; only && (entry = readdir(dir)) != NULL;)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            strcmp(entry->d_name, SND_INNER_RUN) != 0)
            only = is_trace_at(dirfd(dir), entry->d_name);
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
        return holds_only_traces(path) ? SND_PATH_FOLDER : SND_PATH_OTHER;
    return S_ISREG(st.st_mode) && is_trace_at(AT_FDCWD, path) ? SND_PATH_TRACE : SND_PATH_OTHER;
}
