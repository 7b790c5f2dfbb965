/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/runfolder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "cli/commands.h"

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static void remove_folder(const char *path)
{
    DIR *dir = opendir(path);

    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
        if (!is_dots(entry->d_name))
            unlinkat(dirfd(dir), entry->d_name, 0);
    closedir(dir);
    rmdir(path);
}

int snd_run_folder_make(const char *path, const char *aside)
{
    enum snd_path_kind kind = snd_path_kind(path);

    if (kind == SND_PATH_OTHER)
        return snd_failure("will not replace %s, which is not a trace; give another name "
                           "with -o",
                           path);
    if (kind != SND_PATH_NONE && rename(path, aside) != 0)
        return snd_failure("cannot replace %s: %s", path, strerror(errno));
    if (mkdir(path, 0700) == 0)
        return -1;
    int status = snd_failure("cannot create %s: %s; give another place with -o", path,
                             strerror(errno));
    if (kind != SND_PATH_NONE && rename(aside, path) != 0)
        snd_failure("the older trace is in %s", aside);
    return status;
}

void snd_run_folder_undo(const char *path, const char *aside)
{
    rmdir(path);
    if (rename(aside, path) != 0 && errno != ENOENT)
        snd_failure("the older trace is in %s", aside);
}

void snd_run_folder_drop(const char *path)
{
    if (unlink(path) != 0 && errno != ENOENT)
        remove_folder(path);
}

/* How many files are in the folder; the name of the last one seen in `name`. */
static size_t count_files(const char *folder, char name[NAME_MAX + 1])
{
    DIR   *dir = opendir(folder);
    size_t count = 0;

    if (!dir)
        return 0;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (is_dots(entry->d_name))
            continue;
        count++;
        snprintf(name, NAME_MAX + 1, "%s", entry->d_name);
    }
    closedir(dir);
    return count;
}

/* TRACE/PID.sonde becomes TRACE. If any step fails the folder stays, which reads as well. */
static void flatten(const char *folder, const char *name)
{
    struct sonde_buffer from = { 0 }, aside = { 0 };

    snd_buf_format(&from, "%s/%s", folder, name);
    snd_buf_format(&aside, "%s.%ld.sonde", folder, (long)getpid());
    if (!from.failed && !aside.failed && rename(from.bytes, aside.bytes) == 0) {
        if (rmdir(folder) != 0) {
            if (rename(aside.bytes, from.bytes) != 0)
                snd_failure("the trace is in %s", aside.bytes);
        } else if (rename(aside.bytes, folder) != 0) {
            snd_failure("the trace is in %s", aside.bytes);
        }
    }
    sonde_buffer_release(&from);
    sonde_buffer_release(&aside);
}

size_t snd_run_folder_settle(const char *path, const char *aside)
{
    char   name[NAME_MAX + 1] = "";
    size_t count = count_files(path, name);

    if (count == 0) {
        snd_run_folder_undo(path, aside);
        return 0;
    }
    snd_run_folder_drop(aside);
    if (count == 1)
        flatten(path, name);
    return count;
}
