/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/trace_path.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/path_kind.h"
#include "cli/after/kept_trace.h"
#include "cli/console.h"
#include "cli/run/run_folder.h"
#include "format/layout.h"

#define SND_STAMP(time) ((int64_t)(time).tv_sec * 1000000000 + (time).tv_nsec)

/* When a trace was last written; of a folder, the latest of its files. 0: not a trace. */
static int64_t written_at(const char *path)
{
    struct stat st;
    int64_t     latest = 0;

    switch (snd_path_kind(path)) {
    case SND_PATH_TRACE:
        return stat(path, &st) == 0 ? SND_STAMP(st.st_mtim) : 0;
    case SND_PATH_FOLDER:
        break;
    default:
        return 0;
    }
    DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;)
        if (entry->d_name[0] != '.' && fstatat(dirfd(dir), entry->d_name, &st, 0) == 0 &&
            SND_STAMP(st.st_mtim) > latest)
            latest = SND_STAMP(st.st_mtim);
    if (dir)
        closedir(dir);
    return latest;
}

/* The latest NAME.sonde of the current folder; NULL if there is none. */
static char *find_latest(void)
{
    static char name[NAME_MAX + 1];
    DIR        *dir = opendir(".");
    int64_t     latest = 0;

    for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
        size_t length = strlen(entry->d_name), tail = strlen(".sonde");
        if (length <= tail || strcmp(entry->d_name + length - tail, ".sonde") != 0)
            continue;
        int64_t at = written_at(entry->d_name);
        if (at > latest) {
            latest = at;
            snprintf(name, sizeof name, "%s", entry->d_name);
        }
    }
    if (dir)
        closedir(dir);
    return latest > 0 ? name : NULL;
}

/*
 * The trace of the last --print, if none of the current folder is as good: it is from here, and later;
 * or there is none here at all. NULL otherwise.
 */
static char *find_kept(const char *here)
{
    static char         name[PATH_MAX];
    struct sonde_buffer path = { 0 };
    bool                is_from_here;

    int64_t kept = snd_kept_find(&path, &is_from_here) ? written_at(path.bytes) : 0;
    bool    found = kept > 0 && (!here || (is_from_here && kept > written_at(here)));
    if (found)
        snprintf(name, sizeof name, "%s", path.bytes);
    sonde_buffer_release(&path);
    return found ? name : NULL;
}

int snd_take_trace(const struct snd_command *command, int operands, char **argv)
{
    if (operands > 1)
        return snd_usage_error(command, "expected one trace");
    if (operands == 1 && strcmp(argv[0], "-") == 0)
        return snd_usage_error(command, "cannot read a trace from standard input; give its name");
    if (operands == 1)
        return -1;
    argv[0] = find_latest();
    char *kept = find_kept(argv[0]);
    if (kept) {
        argv[0] = kept;
        fprintf(stderr, "sonde: %s %s: the trace of the last --print\n", command->name, kept);
        return -1;
    }
    if (!argv[0])
        return snd_usage_error(command, "missing TRACE: there is none in the current folder");
    fprintf(stderr, "sonde: %s %s: the latest trace here\n", command->name, argv[0]);
    return -1;
}

int snd_open_trace(const struct snd_command *command, int operands, char **argv,
                   struct sonde_trace **trace)
{
    struct sonde_error err;
    int                status = snd_take_trace(command, operands, argv);

    if (status >= 0)
        return status;
    if (sonde_trace_open(argv[0], trace, &err) != SONDE_OK)
        return snd_report_error(command, argv[0], &err);
    return -1;
}
