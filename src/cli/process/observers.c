/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/process/observers.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/data/map.h"
#include "base/system/proc_files.h"
#include "cli/options/options.h"
#include "pystack/outside/observe.h"
#include "pystack/sampling/pace.h"

#define LOOK_NS 50000000u    /* how often new descendants are looked for */
#define WHOLE_NS 1000000000u /* how often in the whole of /proc, at most */
#define WHOLE_SHARE 2000u    /* of the time may be spent on that, on a machine of many processes */
#define NEW_MOST 64          /* more numbers than that: likewise */
#define TRIES_MOST 40u       /* at a process that runs no Python, LOOK_NS apart: two seconds */

enum { WORKER_FINE = 0, WORKER_FAILED = 1, WORKER_NO_PYTHON = 3 };

struct subject {
    pid_t    pid, parent, worker; /* worker 0: none now */
    unsigned tries;
    bool     there, done; /* there: seen in the last look; done: not observed again */
};

struct family {
    const struct snd_observers *o;
    struct subject             *list; /* owned */
    uint32_t                    count, capacity, working;
    pid_t                       newest[2]; /* process of the machine, in the last two looks */
    uint64_t                    whole_ns;  /* when all of /proc is looked at again */
};

/* ------------------------------------------------------------------ workers */

/* Does not return. The handler that sets *quit is older than the fork: no signal is missed. */
static void work(const struct snd_observers *o, pid_t pid, pid_t parent)
{
    struct sonde_error     err = { 0 };
    struct snd_observation observation = { pid, o->folder, o->period_ns, o->nonblocking, o->quit };

    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(WORKER_FAILED);
    enum sonde_status status = snd_observe(&observation, &err);
    if (status == SONDE_OK)
        _exit(WORKER_FINE);
    /* A process that ended, or executed another program, while we attached is not a failure. */
    if (kill(pid, 0) != 0 || status == SONDE_E_STATE ||
        (status == SONDE_E_UNSUPPORTED && pid != o->root))
        _exit(WORKER_NO_PYTHON);
    snd_failure("attach %d: %s", (int)pid, err.message);
    _exit(WORKER_FAILED);
}

static void start_worker(struct family *f, struct subject *subject)
{
    pid_t self = getpid(), worker = fork();

    subject->tries++;
    if (worker == 0)
        work(f->o, subject->pid, self);
    if (worker < 0) {
        snd_failure("attach %d: cannot fork: %s", (int)subject->pid, strerror(errno));
        subject->done = true;
        return;
    }
    subject->worker = worker;
    f->working++;
}

static void note_end(struct family *f, pid_t worker, int status)
{
    for (uint32_t i = 0; i < f->count; i++) {
        struct subject *s = &f->list[i];
        if (s->worker != worker)
            continue;
        s->worker = 0;
        f->working--;
        int code = WIFEXITED(status) ? WEXITSTATUS(status) : WORKER_FAILED;
        if (code == WORKER_FAILED || s->tries >= TRIES_MOST)
            s->done = true;
        if (code == WORKER_FINE) /* it ended, or executed another program, which is checked again */
            s->tries = 0;
    }
}

static void gather(struct family *f, bool wait)
{
    int   status;
    pid_t worker;

    while (f->working > 0 && (worker = waitpid(-1, &status, wait ? 0 : WNOHANG)) != 0) {
        if (worker < 0 && errno != EINTR)
            break;
        if (worker > 0)
            note_end(f, worker, status);
    }
}

/* -------------------------------------------------------------- descendants */

static struct subject *find(struct family *f, pid_t pid)
{
    for (uint32_t i = 0; i < f->count; i++)
        if (f->list[i].pid == pid)
            return &f->list[i];
    return NULL;
}

/* The parent of a process; 0 when it has ended, is a zombie, or is one of our own observers. */
static pid_t parent_of(pid_t pid)
{
    pid_t parent = snd_proc_parent(pid);

    return parent == getpid() ? 0 : parent;
}

static bool add(struct family *f, pid_t pid, pid_t parent)
{
    if (!snd_grow(&f->list, &f->capacity, f->count, sizeof *f->list))
        return false;
    f->list[f->count++] = (struct subject){ .pid = pid, .parent = parent, .there = true };
    return true;
}

/* A child of a known process is added. True: it is new. */
static bool meet(struct family *f, pid_t pid)
{
    pid_t parent = find(f, pid) ? 0 : parent_of(pid);

    return parent != 0 && find(f, parent) && add(f, pid, parent);
}

/* Adds children of known processes. False: there was no new one. */
static bool look_once(struct family *f)
{
    DIR *dir = opendir("/proc");
    bool found = false;

    for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;)
        if (isdigit((unsigned char)entry->d_name[0]))
            found |= meet(f, (pid_t)atoi(entry->d_name));
    if (dir)
        closedir(dir);
    return found;
}

/* The number that a process or thread was given last, on this machine; 0: not known. */
static pid_t find_newest(void)
{
    char line[128];
    int  newest;

    snd_proc_line("/proc/loadavg", line, sizeof line);
    return sscanf(line, "%*s %*s %*s %*s %d", &newest) == 1 ? newest : 0;
}

/* Threads have numbers like processes, and are not listed in /proc. */
static bool is_process(pid_t pid)
{
    char text[512];
    int  leader;

    snd_proc_read(pid, "status", text, sizeof text);
    const char *at = strstr(text, "\nTgid:"); /* a name before it has no end of line */
    return at && sscanf(at, "\nTgid: %d", &leader) == 1 && leader == pid;
}

/*
 * New processes have the numbers after the newest one of the look before last: one that was being
 * made in the last look was not listed yet. False: all of /proc must be looked at.
 */
static bool look_at_newest(struct family *f, pid_t newest)
{
    pid_t from = f->newest[0];

    if (from == 0 || newest < from || newest - from > NEW_MOST ||
        snd_clock_ns(CLOCK_MONOTONIC) >= f->whole_ns)
        return false;
    for (pid_t pid = from + 1; pid <= newest; pid++)
        if (!find(f, pid) && find(f, parent_of(pid)) && is_process(pid))
            meet(f, pid);
    return true;
}

static void look_at_whole(struct family *f)
{
    uint64_t begin = snd_clock_ns(CLOCK_MONOTONIC);

    while (look_once(f))
        ;
    uint64_t end = snd_clock_ns(CLOCK_MONOTONIC), rest = (end - begin) * WHOLE_SHARE;
    f->whole_ns = end + (rest > WHOLE_NS ? rest : WHOLE_NS);
}

static void look(struct family *f)
{
    pid_t newest = find_newest();

    for (uint32_t i = 0; i < f->count; i++)
        f->list[i].there = parent_of(f->list[i].pid) != 0;
    /* Forgets processes that ended: the PID may be used again. */
    for (uint32_t i = 0; i < f->count;)
        if (f->list[i].there || f->list[i].worker != 0)
            i++;
        else
            f->list[i] = f->list[--f->count];
    if (!look_at_newest(f, newest))
        look_at_whole(f);
    f->newest[0] = f->newest[1];
    f->newest[1] = newest;
}

/* -------------------------------------------------------------------- whole */

static void start_missing(struct family *f)
{
    for (uint32_t i = 0; i < f->count; i++) {
        struct subject *s = &f->list[i];
        if (s->there && !s->done && s->worker == 0)
            start_worker(f, s);
    }
}

static bool is_anyone_left(const struct family *f)
{
    for (uint32_t i = 0; i < f->count; i++)
        if (f->list[i].worker != 0 || (f->list[i].there && !f->list[i].done))
            return true;
    return false;
}

static void end_all(struct family *f)
{
    for (uint32_t i = 0; i < f->count; i++)
        if (f->list[i].worker != 0)
            kill(f->list[i].worker, SIGTERM);
    gather(f, true);
}

void snd_observers_run(const struct snd_observers *o)
{
    struct family         f = { .o = o };
    const struct timespec rest = { 0, LOOK_NS };
    uint64_t end = o->duration_ns ? snd_clock_ns(CLOCK_MONOTONIC) + o->duration_ns : UINT64_MAX;

    if (!add(&f, o->root, 0))
        return;
    while (!*o->quit && snd_clock_ns(CLOCK_MONOTONIC) < end) {
        look(&f);
        start_missing(&f);
        if (!is_anyone_left(&f))
            break;
        uint64_t        now = snd_clock_ns(CLOCK_MONOTONIC), left = end > now ? end - now : 0;
        struct timespec last = { 0, (long)(left < LOOK_NS ? left : LOOK_NS) };
        clock_nanosleep(CLOCK_MONOTONIC, 0, left < LOOK_NS ? &last : &rest, NULL);
        gather(&f, false);
    }
    end_all(&f);
    free(f.list);
}
