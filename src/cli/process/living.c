/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/process/living.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/data/map.h"
#include "base/text/buf.h"

#define LOOK_NS 10000000
#define LOOKS_MOST 30
#define LISTS_MOST 8 /* a daemon forks twice */

/* A file of /proc, whole; it may hold zeroes. Empty if it cannot be read. */
static void read_all(const char *pid, const char *file, struct sonde_buffer *out)
{
    char    bytes[4096];
    ssize_t n;

    snd_buf_clear(out);
    snprintf(bytes, sizeof bytes, "/proc/%.20s/%s", pid, file);
    int fd = open(bytes, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    while ((n = read(fd, bytes, sizeof bytes)) > 0)
        snd_buf_put(out, bytes, (size_t)n);
    close(fd);
}

static bool holds(const struct sonde_buffer *text, const char *part)
{
    return !text->failed && text->length > 0 &&
           memmem(text->bytes, text->length, part, strlen(part)) != NULL;
}

/* Is "SONDE_TRACE=folder" among its variables? Those are separated by zeroes. */
static bool names_folder(const struct sonde_buffer *environment, const char *variable)
{
    size_t      length = strlen(variable) + 1; /* with the zero at its end */
    const char *at = environment->bytes;
    size_t      left = environment->failed ? 0 : environment->length;

    while (left >= length) {
        const char *found = memmem(at, left, variable, length);
        if (!found)
            return false;
        if (found == environment->bytes || found[-1] == '\0')
            return true;
        left -= (size_t)(found + 1 - at);
        at = found + 1;
    }
    return false;
}

/* Helpers of Python's multiprocessing: they end with the program, and record nothing. */
static bool is_helper(const char *pid, struct sonde_buffer *text)
{
    read_all(pid, "cmdline", text);
    return holds(text, "multiprocessing.resource_tracker");
}

/* Start time of the process, in clock ticks since boot; 0: unknown. */
static unsigned long long read_start(const char *pid, struct sonde_buffer *text)
{
    unsigned long long start = 0;

    read_all(pid, "stat", text);
    const char *at = strrchr(snd_buf_string(text), ')'); /* the name may hold anything */
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    if (at)
        start = strtoull(at + 1, NULL, 10);
    return start;
}

/* Whether it has ended since /proc was listed. Kernel threads have no environment either. */
static bool has_vanished(const char *pid, struct sonde_buffer *text)
{
    char state = 'X';

    read_all(pid, "stat", text);
    const char *at = strrchr(snd_buf_string(text), ')');
    return !at || sscanf(at + 1, " %c", &state) != 1 || state == 'Z' || state == 'X';
}

/* What is looked for, and the result of one look at all processes. */
struct look {
    const char          *folder, *variable;
    unsigned long long   since; /* older processes are none of ours; 0: any may be */
    struct sonde_buffer *text;
    size_t               count;
    bool vanished; /* some ended meanwhile, and may have left children that were not seen */
    /* Those that are older, by rising number: not looked at again. */
    int     *older;
    uint32_t older_count, older_room;
};

static int compare_pids(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;

    return (x > y) - (x < y);
}

/*
 * Whether it is older than the run, and so none of its processes: nearly all of a machine's are, and their variables
 * and mappings, which cost more to read, are not looked at.
 */
static bool is_older(const char *pid, struct look *look)
{
    int number = atoi(pid);

    if (look->since == 0)
        return false;
    if (look->older &&
        bsearch(&number, look->older, look->older_count, sizeof number, compare_pids))
        return true;
    unsigned long long start = read_start(pid, look->text);
    if (start == 0 || start >= look->since)
        return false;
    bool rises = look->older_count == 0 || look->older[look->older_count - 1] < number;
    if (rises && snd_grow(&look->older, &look->older_room, look->older_count, sizeof number))
        look->older[look->older_count++] = number;
    return true;
}

static bool is_of(const char *pid, struct look *look)
{
    if (is_older(pid, look))
        return false;
    read_all(pid, "environ", look->text);
    bool is = names_folder(look->text, look->variable);
    if (look->text->length == 0 && has_vanished(pid, look->text)) {
        look->vanished = true;
        return false;
    }
    if (!is) {
        read_all(pid, "maps", look->text);
        is = holds(look->text, look->folder);
    }
    return is && !is_helper(pid, look->text);
}

static void look_once(struct look *look)
{
    DIR *dir = opendir("/proc");
    int  self = getpid();
    bool seen = false;

    look->count = 0;
    look->vanished = false;
    for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        seen = true;
        if (atoi(entry->d_name) != self)
            look->count += is_of(entry->d_name, look);
    }
    if (dir)
        closedir(dir);
    if (!seen)
        look->count = SND_LIVING_UNKNOWN;
}

/*
 * /proc is listed before the processes are looked at: one that forks and ends in between, as daemons do,
 * is gone, and its child is not in the list. So where one has vanished all are listed anew.
 */
static size_t count_since(const char *folder, unsigned long long since)
{
    struct sonde_buffer text = { 0 }, variable = { 0 };
    struct look         look = { .folder = folder, .since = since, .text = &text };

    snd_buf_format(&variable, "SONDE_TRACE=%s", folder);
    look.variable = snd_buf_string(&variable);
    if (variable.failed)
        look.count = SND_LIVING_UNKNOWN;
    else
        look_once(&look);
    for (int i = 0; i < LISTS_MOST && look.count == 0 && look.vanished; i++)
        look_once(&look);
    free(look.older);
    sonde_buffer_release(&text);
    sonde_buffer_release(&variable);
    return look.count;
}

size_t snd_living_count(const char *folder)
{
    return count_since(folder, 0);
}

size_t snd_living_wait(const char *folder)
{
    const struct timespec rest = { 0, LOOK_NS };
    struct sonde_buffer   text = { 0 };
    unsigned long long    since = read_start("self", &text); /* descendants are younger than us */
    size_t                count = count_since(folder, since);

    sonde_buffer_release(&text);
    for (int i = 0; i < LOOKS_MOST && count > 0 && count != SND_LIVING_UNKNOWN; i++) {
        clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, NULL);
        count = count_since(folder, since);
    }
    return count;
}
