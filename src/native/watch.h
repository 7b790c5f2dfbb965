/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native/watch.h - samples a process and all that it starts into a trace, from outside.
 *
 * For programs of any language: nothing is put into them. It is done by a process of its own, which
 * sleeps while the kernel fills its rings.
 *
 * Layer:   native. Threads: one; a process watches one other.
 */
#ifndef SND_NATIVE_WATCH_H
#define SND_NATIVE_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct snd_watch {
    pid_t       pid;
    const char *program;     /* what it will run; NULL: it does */
    const char *path;        /* of the trace: a file */
    const char *command;     /* as a person types it; NULL: the trace does not say */
    const char *way;         /* "by sonde run" */
    uint64_t    period_ns;   /* 0: by counters alone */
    const char *counters;    /* that take samples, with commas; NULL: none */
    uint64_t    duration_ns; /* 0: without end */
    uint64_t    max_bytes;   /* of the trace; 0: no limit */
    bool        keep_last;
    bool        beside_python; /* threads that run Python are left to their own sampler */
    const char
        *traces;  /* folder with '/': processes with a trace there are left out too; or NULL */
    bool off_cpu; /* where threads wait, too */
    bool on_exec; /* from when it runs another program; else from now on, with its children */
    int  stop;    /* a descriptor: end when it can be read; -1 none */
    const volatile int *quit;  /* not 0: end; may be NULL */
    void (*ready)(void *user); /* may be NULL; called once sampling is on */
    void *user;
    bool *lives; /* set if processes of it live on when sampling ends; may be NULL */
};

/*
 * Samples until it is told to end, or all processes have ended. Without a sample no trace is left.
 * Errors: as snd_perf_open(), snd_recorder_load(); SONDE_E_IO: the trace; SONDE_E_UNSUPPORTED: the
 * program runs with other rights, and the kernel does not let it be sampled.
 */
SND_CHECKED enum sonde_status snd_watch(const struct snd_watch *watch, struct sonde_error *err);

/* Whether a process could be sampled, without doing it. Errors: as snd_watch(). */
SND_CHECKED enum sonde_status snd_watch_check(pid_t pid, struct sonde_error *err);

#endif
