/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/after/kept_trace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/run/run_folder.h"

#define FROM ".from" /* a link to the folder where the trace was recorded */

/* ------------------------------------------------------------------ the folder */

static bool put_cache(struct sonde_buffer *path)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

    if (cache && cache[0] == '/')
        snd_buf_text(path, cache);
    else if (home && home[0] == '/')
        snd_buf_format(path, "%s/.cache", home);
    return path->length > 0 && !path->failed;
}

/* Traces have names and arguments of programs in them: nobody else may read or replace them. */
static bool is_private(const char *folder)
{
    struct stat st;

    return lstat(folder, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
           (st.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* "CACHE/sonde", made if `make`; false if it is not there or not the user's alone. */
static bool put_home(struct sonde_buffer *path, bool make)
{
    if (!put_cache(path))
        return false;
    if (make)
        (void)mkdir(snd_buf_string(path), 0700);
    snd_buf_text(path, "/sonde");
    if (make)
        (void)mkdir(snd_buf_string(path), 0700);
    return !path->failed && is_private(snd_buf_string(path));
}

/* --------------------------------------------------------------------- moving */

static bool copy_bytes(int from, int to)
{
    char    block[1 << 16];
    ssize_t n;

    while ((n = read(from, block, sizeof block)) > 0)
        for (ssize_t at = 0, put; at < n; at += put)
            if ((put = write(to, block + at, (size_t)(n - at))) <= 0)
                return false;
    return n == 0;
}

static bool copy_file(const char *from, const char *to)
{
    int  in = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    int  out = in < 0 ? -1 : open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool done = out >= 0 && copy_bytes(in, out);

    if (out >= 0)
        done &= close(out) == 0;
    if (in >= 0)
        close(in);
    return done;
}

/* A folder of traces holds files alone. */
static bool copy_folder(const char *from, const char *to)
{
    DIR *dir = mkdir(to, 0700) == 0 ? opendir(from) : NULL;
    bool done = dir != NULL;

    for (struct dirent *entry; done && (entry = readdir(dir)) != NULL;) {
        char *source = NULL, *copy = NULL;
        if (entry->d_name[0] == '.')
            continue;
        done = asprintf(&source, "%s/%s", from, entry->d_name) > 0 &&
               asprintf(&copy, "%s/%s", to, entry->d_name) > 0 && copy_file(source, copy);
        free(source);
        free(copy);
    }
    if (dir)
        closedir(dir);
    return done;
}

/* The cache may be on another file system than the temporary files. */
static bool move(const char *from, const char *to)
{
    struct stat st;

    if (rename(from, to) == 0) {
        if (stat(to, &st) == 0 && S_ISREG(st.st_mode))
            (void)chmod(to, 0600);
        return true;
    }
    if (errno != EXDEV || stat(from, &st) != 0)
        return false;
    bool done = S_ISDIR(st.st_mode) ? copy_folder(from, to) : copy_file(from, to);
    snd_run_folder_drop(done ? from : to);
    return done;
}

/* Removes a folder with what was kept there. */
static void drop(const char *folder)
{
    DIR *dir = opendir(folder);

    for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
        char *path = NULL;
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            asprintf(&path, "%s/%s", folder, entry->d_name) > 0) {
            if (strcmp(entry->d_name, FROM) == 0)
                (void)unlink(path);
            else
                snd_run_folder_drop(path);
            free(path);
        }
    }
    if (dir)
        closedir(dir);
    (void)rmdir(folder);
}

/* Leaves in `fresh` where the trace came from; an absent one is from nowhere. */
static void note_folder(const char *fresh)
{
    char  here[PATH_MAX];
    char *link = NULL;

    if (getcwd(here, sizeof here) && asprintf(&link, "%s/" FROM, fresh) > 0 &&
        symlink(here, link) != 0)
        (void)unlink(link);
    free(link);
}

/* Puts `fresh` in the place of `last`; another run may do the same at the same moment. */
static bool replace(const char *fresh, const char *last)
{
    for (int tries = 0; tries < 10; tries++) {
        drop(last);
        if (rename(fresh, last) == 0)
            return true;
    }
    return false;
}

/* --------------------------------------------------------------------- the two */

bool snd_kept_store(const char *trace, struct sonde_buffer *path)
{
    const char         *slash = strrchr(trace, '/'), *name = slash ? slash + 1 : trace;
    struct sonde_buffer home = { 0 }, fresh = { 0 }, last = { 0 }, within = { 0 };
    bool                done = put_home(&home, true);

    snd_buf_format(&fresh, "%s/last-XXXXXX", snd_buf_string(&home));
    snd_buf_format(&last, "%s/last", snd_buf_string(&home));
    done = done && !fresh.failed && !last.failed && mkdtemp(fresh.bytes);
    if (done) {
        snd_buf_format(&within, "%s/%s", fresh.bytes, name);
        note_folder(fresh.bytes);
        done = !within.failed && move(trace, within.bytes);
        if (!done)
            drop(fresh.bytes);
        else if (!replace(fresh.bytes, last.bytes))
            snd_buf_text(path, within.bytes); /* there it is, under another name */
        else
            snd_buf_format(path, "%s/%s", last.bytes, name);
    }
    sonde_buffer_release(&home);
    sonde_buffer_release(&fresh);
    sonde_buffer_release(&last);
    sonde_buffer_release(&within);
    return done;
}

static bool is_from_here_at(const char *folder)
{
    char    here[PATH_MAX], from[PATH_MAX], link[PATH_MAX];
    ssize_t n = -1;

    if (snprintf(link, sizeof link, "%s/" FROM, folder) < (int)sizeof link)
        n = readlink(link, from, sizeof from);
    return getcwd(here, sizeof here) && n > 0 && (size_t)n == strlen(here) &&
           memcmp(from, here, (size_t)n) == 0;
}

bool snd_kept_find(struct sonde_buffer *path, bool *is_from_here)
{
    struct sonde_buffer folder = { 0 };
    bool                found = put_home(&folder, false);

    snd_buf_text(&folder, "/last");
    DIR *dir = found && !folder.failed ? opendir(folder.bytes) : NULL;
    found = false;
    for (struct dirent *entry; dir && !found && (entry = readdir(dir)) != NULL;) {
        snd_buf_clear(path);
        snd_buf_format(path, "%s/%s", folder.bytes, entry->d_name);
        found = entry->d_name[0] != '.' && !path->failed;
    }
    if (dir)
        closedir(dir);
    *is_from_here = found && is_from_here_at(folder.bytes);
    sonde_buffer_release(&folder);
    return found;
}
