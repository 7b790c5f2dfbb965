/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/process/listeners.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system/clock_ns.h"
#include "cli/run/run_standby.h"

#define ENDING ".sock"
#define HELLO_SECONDS 10 /* a program that holds the interpreter's lock answers when it lets go */
#define LINE_MOST 8192

/* --------------------------------------------------------------------- connections */

static void release_one(struct snd_listener *one)
{
    if (one->fd >= 0)
        close(one->fd);
    free(one->name);
    sonde_buffer_release(&one->doing);
    sonde_buffer_release(&one->last);
    sonde_buffer_release(&one->input);
    sonde_buffer_release(&one->answer);
}

void snd_listeners_release(struct snd_listeners *all)
{
    for (size_t i = 0; i < all->count; i++)
        release_one(&all->items[i]);
    free(all->items);
    *all = (struct snd_listeners){ 0 };
}

/* By the folder's descriptor: an address has room for 107 bytes, a path for more. -1: nobody listens. */
static int connect_to(int folder, const char *name)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    int length = snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", folder,
                          name);
    if (length < 0 || (size_t)length >= sizeof address.sun_path)
        return -1;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* "HOST-PID.sock" */
static bool read_name(const char *name, size_t *length, pid_t *pid)
{
    const char *dash = strrchr(name, '-');
    char       *end;

    if (!dash)
        return false;
    *length = strlen(name) - strlen(ENDING);
    *pid = (pid_t)strtol(dash + 1, &end, 10);
    return *pid > 0 && strcmp(end, ENDING) == 0;
}

static bool add_one(struct snd_listeners *all, int fd, const char *name, size_t length, pid_t pid)
{
    struct snd_listener *more = realloc(all->items, (all->count + 1) * sizeof *more);
    char                *copy = strndup(name, length);

    if (more)
        all->items = more;
    if (!more || !copy) {
        free(copy);
        return false;
    }
    all->items[all->count++] =
        (struct snd_listener){ .name = copy, .fd = fd, .pid = pid, .rank = -1, .chosen = true };
    return true;
}

static enum sonde_status connect_all(struct snd_listeners *all, DIR *folder, pid_t wanted,
                                     struct sonde_error *err)
{
    struct dirent *entry;
    size_t         length;
    pid_t          pid;

    while ((entry = readdir(folder)) != NULL) {
        if (!read_name(entry->d_name, &length, &pid) || (wanted != 0 && pid != wanted))
            continue;
        int fd = connect_to(dirfd(folder), entry->d_name);
        if (fd < 0)
            continue;
        if (!add_one(all, fd, entry->d_name, length, pid)) {
            close(fd);
            return snd_fail(err, SONDE_E_NOMEM, "out of memory");
        }
    }
    return SONDE_OK;
}

/* -------------------------------------------------------------------------- lines */

void snd_listener_say(struct snd_listener *one, const char *format, ...)
{
    char    line[LINE_MOST];
    va_list args;

    va_start(args, format);
    int length = vsnprintf(line, sizeof line - 1, format, args);
    va_end(args);
    if (one->state == SND_LISTENER_GONE)
        return;
    bool fits = length >= 0 && (size_t)length < sizeof line - 1;
    if (fits)
        line[length++] = '\n';
    bool sent = fits && send(one->fd, line, (size_t)length, MSG_NOSIGNAL) == (ssize_t)length;
    one->state = sent ? SND_LISTENER_ASKED : SND_LISTENER_GONE;
}

/* Takes the first whole line of what it said; is there one? */
static bool take_line(struct snd_listener *one)
{
    struct sonde_buffer *input = &one->input;
    const char          *end = input->length ? memchr(input->bytes, '\n', input->length) : NULL;

    if (!end)
        return false;
    size_t length = (size_t)(end - input->bytes);
    one->answer.length = 0;
    snd_buf_put(&one->answer, input->bytes, length);
    input->length -= length + 1;
    memmove(input->bytes, end + 1, input->length);
    one->state = SND_LISTENER_ANSWERED;
    return true;
}

static void read_some(struct snd_listener *one)
{
    char    bytes[1024];
    ssize_t count = recv(one->fd, bytes, sizeof bytes, 0);

    if (count < 0 && errno == EINTR)
        return;
    if (count > 0)
        snd_buf_put(&one->input, bytes, (size_t)count);
    if (count <= 0 || one->input.failed || one->input.length > LINE_MOST)
        one->state = SND_LISTENER_GONE;
    else
        take_line(one);
}

/* One poll of all that have not answered; false if there is none. */
static bool wait_once(struct snd_listeners *all, int milliseconds)
{
    struct pollfd *polled = calloc(all->count + 1, sizeof *polled);
    nfds_t         count = 0;

    for (size_t i = 0; polled && i < all->count; i++) {
        struct snd_listener *one = &all->items[i];
        bool waits = one->chosen && one->state == SND_LISTENER_ASKED && !take_line(one);
        polled[i] = (struct pollfd){ .fd = waits ? one->fd : -1, .events = POLLIN };
        count += waits;
    }
    if (count > 0 && poll(polled, all->count, milliseconds) > 0)
        for (size_t i = 0; i < all->count; i++)
            if (polled[i].revents != 0)
                read_some(&all->items[i]);
    free(polled);
    return count > 0;
}

bool snd_listeners_wait(struct snd_listeners *all, double seconds, const volatile int *quit)
{
    int64_t until = (int64_t)snd_clock_ns(CLOCK_MONOTONIC) + (int64_t)(seconds * 1e9);

    while (!*quit) {
        int64_t left = (until - (int64_t)snd_clock_ns(CLOCK_MONOTONIC)) / 1000000;
        if (!wait_once(all, left > 200 ? 200 : left > 0 ? (int)left : 0))
            return true;
        if (left <= 0)
            break;
    }
    return false;
}

const char *snd_listener_said(const struct snd_listener *one, const char *word)
{
    size_t length = strlen(word);

    if (one->state != SND_LISTENER_ANSWERED || one->answer.length < length ||
        memcmp(one->answer.bytes, word, length) != 0)
        return NULL;
    const char *rest = snd_buf_string(&one->answer) + length;
    return *rest == ' ' ? rest + 1 : *rest == '\0' ? rest : NULL;
}

/* ------------------------------------------------------------------------- finding */

/* "pid=12 rank=0 .. last=any words" */
static void read_hello(struct snd_listener *one)
{
    const char *text = snd_listener_said(one, "listening");
    const char *at;
    int         worker = 0;

    if (!text) {
        one->state = SND_LISTENER_GONE;
        return;
    }
    long long rank = -1, world = 0, step = 0;
    sscanf(text, "pid=%*d rank=%lld world=%lld step=%lld rate=%lf", &rank, &world, &step,
           &one->rate);
    one->rank = rank;
    one->world = world;
    one->step = step;
    if ((at = strstr(text, "state=")) != NULL)
        snd_buf_put(&one->doing, at + 6, strcspn(at + 6, " "));
    if ((at = strstr(text, "worker=")) != NULL)
        worker = atoi(at + 7);
    one->worker = worker != 0;
    if ((at = strstr(text, "last=")) != NULL)
        snd_buf_text(&one->last, at + 5);
}

static int by_rank(const void *a, const void *b)
{
    const struct snd_listener *x = a, *y = b;

    if (x->rank != y->rank)
        return (x->rank > y->rank) - (x->rank < y->rank);
    return (x->pid > y->pid) - (x->pid < y->pid);
}

/* Those that went meanwhile are no listeners. */
static void drop_gone(struct snd_listeners *all)
{
    size_t kept = 0;

    for (size_t i = 0; i < all->count; i++) {
        if (all->items[i].state == SND_LISTENER_ANSWERED)
            all->items[kept++] = all->items[i];
        else
            release_one(&all->items[i]);
    }
    all->count = kept;
}

enum sonde_status snd_listeners_find(struct snd_listeners *all, const char *folder, pid_t pid,
                                     struct sonde_error *err)
{
    struct sonde_buffer path = { 0 };
    static const int    never = 0;

    *all = (struct snd_listeners){ 0 };
    snd_buf_format(&path, "%s/" SND_STANDBY_FOLDER, folder);
    DIR              *sockets = path.failed ? NULL : opendir(path.bytes);
    enum sonde_status status = SONDE_OK;
    if (!sockets)
        status =
            snd_fail(err, SONDE_E_STATE,
                     "no process stands by here: start the program with sonde run --standby -o "
                     "FOLDER, and ask once it has imported torch");
    else
        status = connect_all(all, sockets, pid, err);
    sonde_buffer_release(&path);
    if (sockets)
        closedir(sockets);
    for (size_t i = 0; i < all->count; i++)
        snd_listener_say(&all->items[i], "hello");
    snd_listeners_wait(all, HELLO_SECONDS, &never);
    for (size_t i = 0; i < all->count; i++)
        read_hello(&all->items[i]);
    drop_gone(all);
    if (all->count > 0)
        qsort(all->items, all->count, sizeof *all->items, by_rank);
    return status;
}
