/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/run_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/count_of.h"
#include "cli/path_kind.h"
#include "cli/commands.h"
#include "cli/process/living.h"
#include "cli/run/run_others.h"
#include "format/layout.h"

#ifndef RENAME_EXCHANGE
#define RENAME_NOREPLACE (1 << 0)
#define RENAME_EXCHANGE (1 << 1)
#endif
#define NUMBERS_MOST 1000
#define TRIES_MOST 100 /* for one name, while others take it before us */

/* --------------------------------------------------------------- removing */

/* The files of an open folder, which this closes. */
static void remove_files(DIR *dir)
{
    for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;)
        unlinkat(dirfd(dir), entry->d_name, 0); /* . and .. are refused */
    if (dir)
        closedir(dir);
}

static DIR *open_inside(DIR *dir, const char *name)
{
    int  fd = openat(dirfd(dir), name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *inside = fd >= 0 ? fdopendir(fd) : NULL;

    if (fd >= 0 && !inside)
        close(fd);
    return inside;
}

/* A folder of traces, and those of other parts of its job in it. */
static void remove_folder(const char *path)
{
    DIR *dir = opendir(path);

    for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        remove_files(open_inside(dir, entry->d_name));
        unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
    }
    if (dir)
        rewinddir(dir);
    remove_files(dir);
    rmdir(path);
}

void snd_run_folder_drop(const char *path)
{
    if (unlink(path) != 0 && errno != ENOENT)
        remove_folder(path);
}

/* ----------------------------------------------------------------- claiming */

/* The program may change its folder, so it gets an absolute path; it ends in '/': a folder. */
static bool make_full(const char *path, struct sonde_buffer *out)
{
    snd_buf_clear(out);
    if (path[0] != '/') {
        char *here = getcwd(NULL, 0);
        if (!here)
            return false;
        snd_buf_format(out, "%s/", strcmp(here, "/") == 0 ? "" : here);
        free(here);
    }
    snd_buf_format(out, "%s/", path);
    return !out->failed;
}

/* Is what `fd` has open still what is at `path`? */
static bool is_at(int fd, const char *path)
{
    struct stat open_one, there;

    return fstat(fd, &open_one) == 0 && lstat(path, &there) == 0 &&
           open_one.st_dev == there.st_dev && open_one.st_ino == there.st_ino;
}

enum {
    LOCK_TAKEN = -1,   /* another has it */
    LOCK_CHANGED = -2, /* what was at the path is gone */
    LOCK_REFUSED = -3, /* what is there cannot be opened */
};

/* A descriptor that holds the lock of what is at `path`, or one of the above. */
static int lock_at(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    if (fd < 0)
        return errno == ENOENT ? LOCK_CHANGED : LOCK_REFUSED;
    /* Where the file system has no locks, names alone must do. */
    bool taken = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (!taken && is_at(fd, path))
        return fd;
    close(fd);
    return taken ? LOCK_TAKEN : LOCK_CHANGED;
}

/* Does a process still write the trace file? Then its header says that it is not closed. */
static bool is_open_file(int fd)
{
    struct snd_file_header header;
    struct stat            st;

    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) ||
        pread(fd, &header, sizeof header, 0) != (ssize_t)sizeof header)
        return false;
    return !(header.flags & SND_FILE_CLOSED) && header.pid > 0 && header.pid <= INT_MAX &&
           (kill((pid_t)header.pid, 0) == 0 || errno == EPERM);
}

enum claim { CLAIM_DONE, CLAIM_LIVE, CLAIM_AGAIN, CLAIM_FAILED };

/* Does another part of a job still record into a folder inside this one? */
static bool has_living_parts(int fd)
{
    int  again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = again >= 0 ? fdopendir(again) : NULL;
    bool found = false;

    if (again >= 0 && !dir)
        close(again);
    for (struct dirent *entry; dir && !found && (entry = readdir(dir)) != NULL;) {
        int part = entry->d_name[0] == '.'
                       ? -1
                       : openat(again, entry->d_name,
                                O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        found = part >= 0 && flock(part, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
        if (part >= 0)
            close(part);
    }
    if (dir)
        closedir(dir);
    return found;
}

/* What is at the path gets out of the way if it is a finished trace. `old` is its lock. */
static enum claim put_aside(struct snd_run_folder *f, int old)
{
    /* A file was a folder while its processes lived: only a folder may have some that still do. */
    bool   is_folder = snd_path_kind(f->path.bytes) == SND_PATH_FOLDER;
    size_t living = is_folder ? snd_living_count(f->full.bytes) : 0;

    if ((living > 0 && living != SND_LIVING_UNKNOWN) || is_open_file(old) || has_living_parts(old))
        return CLAIM_LIVE;
    if (snd_path_kind(f->path.bytes) == SND_PATH_OTHER) {
        (void)
            snd_failure("refusing to overwrite %s, which is not a trace; give another name with -o",
                        f->path.bytes);
        return CLAIM_FAILED;
    }
    if (rename(f->path.bytes, f->aside.bytes) == 0)
        return CLAIM_AGAIN;
    (void)snd_failure("cannot replace %s: %s", f->path.bytes, strerror(errno));
    return CLAIM_FAILED;
}

static enum claim claim_once(struct snd_run_folder *f)
{
    if (mkdir(f->path.bytes, 0700) == 0) {
        f->fd = lock_at(f->path.bytes);
        return f->fd >= 0 ? CLAIM_DONE : CLAIM_AGAIN;
    }
    if (errno != EEXIST) {
        (void)snd_failure("cannot create %s: %s; give another place with -o", f->path.bytes,
                          strerror(errno));
        return CLAIM_FAILED;
    }
    int old = lock_at(f->path.bytes);
    if (old == LOCK_TAKEN)
        return CLAIM_LIVE;
    if (old == LOCK_CHANGED)
        return CLAIM_AGAIN; /* without its lock, it may belong to a run that has just begun */
    enum claim claim = put_aside(f, old);
    if (old >= 0)
        close(old);
    return claim;
}

/* The older trace has its name again, unless another run has taken that meanwhile. */
static void put_back(struct snd_run_folder *f)
{
    const char *from = f->aside.bytes, *to = f->path.bytes;

    if (access(from, F_OK) != 0)
        return;
    int rc = (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);
    if (rc != 0 && errno == EINVAL && access(to, F_OK) != 0)
        rc = rename(from, to); /* a file system that cannot */
    if (rc != 0)
        (void)snd_failure("the older trace is in %s", from);
}

/* "a/b.sonde" and 2: "a/b-2.sonde". */
static void name_path(struct snd_run_folder *f, const char *path, int number)
{
    static const char ending[] = ".sonde";
    size_t            length = strlen(path), tail = sizeof ending - 1;
    bool              has = length > tail && strcmp(path + length - tail, ending) == 0;

    snd_buf_clear(&f->path);
    if (number > 1)
        snd_buf_format(&f->path, "%.*s-%d%s", (int)(has ? length - tail : length), path, number,
                       has ? ending : "");
    else
        snd_buf_text(&f->path, path);
    snd_buf_clear(&f->aside);
    snd_buf_format(&f->aside, "%s.%ld.old", f->path.bytes, (long)getpid());
}

static enum claim claim_name(struct snd_run_folder *f, const char *path, int number)
{
    enum claim claim = CLAIM_AGAIN;

    name_path(f, path, number);
    if (!make_full(f->path.bytes, &f->full) || f->path.failed || f->aside.failed) {
        (void)snd_failure("cannot get the current folder: %s", strerror(errno));
        return CLAIM_FAILED;
    }
    for (int i = 0; i < TRIES_MOST && claim == CLAIM_AGAIN; i++)
        claim = claim_once(f);
    if (claim != CLAIM_DONE)
        put_back(f);
    return claim == CLAIM_AGAIN ? CLAIM_LIVE : claim;
}

/* Whether this run is a part of a job that other hosts, or other processes of this one, run parts of. */
static bool is_part_of_job(void)
{
    static const char *const variables[] = { "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK",
                                             "RANK" };

    for (size_t i = 0; i < SND_COUNT_OF(variables); i++)
        if (getenv(variables[i]))
            return true;
    return false;
}

/*
 * The host that records at the path has left its name there. The lock says that somebody does, not who: flock reaches
 * other hosts where the file system does.
 */
static bool is_of_other_host(const char *path)
{
    char                host[HOST_NAME_MAX + 1] = "", other[HOST_NAME_MAX + 1] = "";
    struct sonde_buffer name = { 0 };

    snd_buf_format(&name, "%s/%s", path, SND_RUN_HOST);
    int fd = name.failed ? -1 : open(name.bytes, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    ssize_t n = fd < 0 ? 0 : read(fd, other, sizeof other - 1);
    if (fd >= 0)
        close(fd);
    sonde_buffer_release(&name);
    return n > 0 && gethostname(host, sizeof host - 1) == 0 && strcmp(host, other) != 0;
}

static void leave_host(const struct snd_run_folder *f)
{
    char host[HOST_NAME_MAX + 1] = "";
    int  fd = openat(f->fd, SND_RUN_HOST, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                     0600);

    if (fd < 0)
        return;
    if (gethostname(host, sizeof host - 1) == 0) {
        ssize_t n = write(fd, host, strlen(host));
        (void)n; /* without it, another host is refused */
    }
    close(fd);
}

/* Parts of one job share a folder: this one records into PATH/HOST-PID.sonde. */
static enum claim join_job(struct snd_run_folder *f, const char *path)
{
    char                host[HOST_NAME_MAX + 1] = "host";
    struct sonde_buffer name = { 0 };

    gethostname(host, sizeof host - 1);
    snd_buf_format(&name, "%s/%s-%ld.sonde", path, host, (long)getpid());
    enum claim claim = name.failed ? CLAIM_FAILED : CLAIM_LIVE;
    for (int number = 1; claim == CLAIM_LIVE && number <= NUMBERS_MOST; number++)
        claim = claim_name(f, name.bytes, number);
    sonde_buffer_release(&name);
    return claim;
}

int snd_run_folder_make(struct snd_run_folder *f, const char *path, bool numbered)
{
    enum claim claim = CLAIM_LIVE;

    *f = (struct snd_run_folder){ .fd = -1 };
    for (int number = 1; claim == CLAIM_LIVE && number <= (numbered ? NUMBERS_MOST : 1); number++)
        claim = claim_name(f, path, number);
    struct stat st;
    if (claim == CLAIM_LIVE && stat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
        (is_part_of_job() || is_of_other_host(path)))
        claim = join_job(f, path);
    if (claim == CLAIM_DONE)
        leave_host(f);
    if (claim == CLAIM_LIVE)
        return snd_failure("%s is in use by another recording; give another name with -o", path);
    return claim == CLAIM_DONE ? -1 : SND_EXIT_FAILED;
}

void snd_run_folder_release(struct snd_run_folder *f)
{
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
    sonde_buffer_release(&f->path);
    sonde_buffer_release(&f->full);
    sonde_buffer_release(&f->aside);
    sonde_buffer_release(&f->others);
}

void snd_run_folder_undo(struct snd_run_folder *f)
{
    snd_run_others_collect(f);
    unlinkat(f->fd, SND_RUN_HOST, 0);
    rmdir(f->path.bytes);
    put_back(f);
}

/* -------------------------------------------------------------- what is in it */

void snd_run_folder_note_inner(const char *outer, const char *inner)
{
    struct sonde_buffer path = { 0 };
    size_t              length = strlen(outer);

    if (length == 0 || outer[length - 1] != '/')
        return;
    snd_buf_format(&path, "%s%s", outer, SND_INNER_RUN);
    int fd = path.failed
                 ? -1
                 : open(path.bytes, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0) {
        ssize_t n = write(fd, inner, strlen(inner));
        (void)n; /* a shorter name does as well */
        close(fd);
    }
    sonde_buffer_release(&path);
}

void snd_run_folder_read_inner(const struct snd_run_folder *f, char *inner, size_t size)
{
    int     fd = openat(f->fd, SND_INNER_RUN, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 ? 0 : read(fd, inner, size - 1);

    if (n > 0 && inner[n - 1] == '/')
        n--;
    inner[n > 0 ? n : 0] = '\0';
    if (fd >= 0)
        close(fd);
    unlinkat(f->fd, SND_INNER_RUN, 0);
}

int snd_run_folder_try(const struct snd_run_folder *f)
{
    static const char name[] = ".try";
    int               fd = openat(f->fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0)
        return errno;
    int why = posix_fallocate(fd, 0, (off_t)(2 * SND_GRAIN));
    close(fd);
    unlinkat(f->fd, name, 0);
    return why;
}

/* How many traces are in the folder; the name of the last one seen in `name`. */
static size_t count_files(const struct snd_run_folder *f, char name[NAME_MAX + 1],
                          const char *left_out)
{
    int    again = openat(f->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR   *dir = again >= 0 ? fdopendir(again) : NULL;
    size_t count = 0;

    if (!dir) {
        if (again >= 0)
            close(again);
        return 0;
    }
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] == '.' || strcmp(entry->d_name, left_out) == 0)
            continue;
        count++;
        snprintf(name, NAME_MAX + 1, "%s", entry->d_name);
    }
    closedir(dir);
    return count;
}

bool snd_run_folder_has_others(const struct snd_run_folder *f, const char *name)
{
    char other[NAME_MAX + 1];

    return count_files(f, other, name) > 0;
}

/* ---------------------------------------------------------------- settling */

/* The file takes the folder's name; at every moment the name is one of the two. */
static bool swap(const char *file, const char *folder)
{
    if (syscall(SYS_renameat2, AT_FDCWD, file, AT_FDCWD, folder, RENAME_EXCHANGE) == 0)
        return rmdir(file) == 0;
    return rmdir(folder) == 0 && rename(file, folder) == 0; /* a file system that cannot */
}

/* TRACE/PID.sonde becomes TRACE. If any step fails the folder stays, which reads as well. */
static void flatten(struct snd_run_folder *f, const char *name)
{
    struct sonde_buffer from = { 0 }, beside = { 0 };
    const char         *path = f->path.bytes;

    snd_buf_format(&from, "%s/%s", path, name);
    snd_buf_format(&beside, "%s.%ld.sonde", path, (long)getpid());
    if (!from.failed && !beside.failed && rename(from.bytes, beside.bytes) == 0 &&
        !swap(beside.bytes, path) && rename(beside.bytes, from.bytes) != 0)
        (void)snd_failure("the trace is in %s", beside.bytes);
    sonde_buffer_release(&from);
    sonde_buffer_release(&beside);
}

void snd_run_folder_settle(struct snd_run_folder *f)
{
    char name[NAME_MAX + 1] = "";

    f->living = snd_living_wait(f->full.bytes);
    unlinkat(f->fd, SND_RUN_HOST, 0);
    snd_run_others_collect(f);
    f->files = count_files(f, name, "");
    f->moved = !is_at(f->fd, f->path.bytes);
    if (f->moved) { /* the name is free again */
        put_back(f);
        return;
    }
    if (f->files == 0 && f->living == 0)
        return; /* the caller finds out why, then calls _undo */
    snd_run_folder_drop(f->aside.bytes);
    if (f->files == 1 && f->living == 0)
        flatten(f, name);
}
