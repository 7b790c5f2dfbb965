/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native/counters/program_counters.h - counters of a program or a thread, by perf_event_open(2).
 *
 *     snd_counters_parse("cycles:u,page-faults", &list, &err);
 *     fd = snd_counter_open(&list.items[0], pid, whole, &answer);
 *
 * Layer: native (sees base/, format/). Threads: any.
 */
#ifndef SND_NATIVE_COUNTERS_PROGRAM_COUNTERS_H
#define SND_NATIVE_COUNTERS_PROGRAM_COUNTERS_H

#include <sys/types.h>

#include "base/error.h"
#include "format/run/named_counters.h"

#define SND_COUNTERS_MOST 32u /* in one list */
#define SND_COUNTER_NAME 64

/* What a word of a list requests. */
struct snd_counter_event {
    char                      name[SND_COUNTER_NAME]; /* as perf shows it: "cycles:u" */
    const struct snd_counter *known;                  /* NULL: raw */
    uint32_t                  type;                   /* enum snd_counter_type */
    uint64_t                  config;
    bool                      user, kernel; /* neither: both, as far as is permitted */
};

struct snd_counter_list {
    struct snd_counter_event items[SND_COUNTERS_MOST];
    size_t                   count;
};

/*
 * Reads names with commas between them; "" and the name "default" stand for those of `perf stat`.
 * Errors: SONDE_E_ARGUMENT, with the name that is meant, perhaps.
 */
SND_CHECKED enum sonde_status snd_counters_parse(const char *text, struct snd_counter_list *list,
                                                 struct sonde_error *err);

/* How an event is opened. */
enum snd_counter_span {
    SND_COUNT_PROGRAM, /* from the next exec on, with all that it starts */
    SND_COUNT_THREAD,  /* one thread, from now on */
};

struct snd_counter_opened {
    int  fd;        /* -1: it cannot be counted */
    bool user_only; /* more was requested than is permitted: kernel mode is left out */
    char why[160];  /* where fd is -1: the reason */
};

/* Opens one on a process or thread (0: the caller's); `group` is a leader's descriptor or -1. */
void snd_counter_open(const struct snd_counter_event *event, pid_t pid, enum snd_counter_span span,
                      int group, struct snd_counter_opened *opened);

/* Can the thread that it counts read it from its mapped page, without a system call? */
bool snd_counter_is_mapped(int fd);

/* As the kernel counts. False: it cannot be read. */
struct snd_counter_value {
    uint64_t value, enabled_ns, running_ns;
};
bool snd_counter_read(int fd, struct snd_counter_value *value);

#endif
