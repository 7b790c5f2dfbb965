/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/process/listeners.h - the processes of a `sonde run --standby` that listen in its folder, and
 * what is said to them. Both sides speak lines; python/sonde/torch/_standby.py has the list.
 *
 * Layer: cli. Threads: one.
 */
#ifndef SND_CLI_PROCESS_LISTENERS_H
#define SND_CLI_PROCESS_LISTENERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/text/buf.h"
#include "sonde/error.h"

enum snd_listener_state {
    SND_LISTENER_ASKED, /* it has not answered yet */
    SND_LISTENER_ANSWERED,
    SND_LISTENER_GONE, /* the connection ended */
};

struct snd_listener {
    char                   *name; /* of its socket, without the ending: HOST-PID; owned */
    int                     fd;
    pid_t                   pid;
    int64_t                 rank;  /* -1: it is none of a job */
    int64_t                 world; /* ranks of the job; 0 if it is not known */
    int64_t                 step;
    double                  rate;   /* steps a second */
    bool                    worker; /* loads data for another process */
    bool                    chosen; /* takes part: what is said to the listeners is said to it */
    enum snd_listener_state state;
    struct sonde_buffer     doing, last; /* "idle"; what it recorded last. Owned, as are the next */
    struct sonde_buffer     input;       /* what it said, as far as nobody took it */
    struct sonde_buffer     answer;      /* the line it said last, without its end */
};

struct snd_listeners {
    struct snd_listener *items;
    size_t               count;
};

/*
 * Connects to all that listen in the folder (only to `pid` if that is one of them, unless 0) and
 * asks who they are; sockets that nobody listens at any more are left out. All are chosen. Whatever
 * it returns, the caller releases `all`.
 */
enum sonde_status snd_listeners_find(struct snd_listeners *all, const char *folder, pid_t pid,
                                     struct sonde_error *err);
void              snd_listeners_release(struct snd_listeners *all);

/* Sends a line to one; it is ASKED then, or GONE. */
void snd_listener_say(struct snd_listener *one, const char *format, ...)
    __attribute__((__format__(__printf__, 2, 3)));

/*
 * Waits until every chosen one that was asked has answered or is gone; at most `seconds`, and not
 * longer than `*quit` is 0. False: some have not answered.
 */
bool snd_listeners_wait(struct snd_listeners *all, double seconds, const volatile int *quit);

/* Does its answer begin with this word? The rest of it, or NULL. */
const char *snd_listener_said(const struct snd_listener *one, const char *word);

#endif
