/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native/counters/counter_runs.h - what the counters of a program say, run by run, and the file of a trace that
 * keeps it: facts COUNTER of format/facts.def.
 *
 * Layer: native (sees base/, format/; the recorder's library is loaded when the file is written).
 * Threads: one.
 */
#ifndef SND_NATIVE_COUNTERS_COUNTER_RUNS_H
#define SND_NATIVE_COUNTERS_COUNTER_RUNS_H

#include <sys/resource.h>

#include "native/counters/program_counters.h"

/* One counter in one run. */
struct snd_counter_result {
    struct snd_counter_value value;
    bool                     user_only;
    bool                     by_usage; /* of getrusage(2): the kernel does not let it be counted */
    char                     why[160]; /* not empty: why it was not counted */
};

struct snd_counter_run {
    int64_t                   elapsed_ns, user_ns, system_ns;
    struct snd_counter_result results[SND_COUNTERS_MOST];
};

/* What getrusage(2) has of a process, from before it became the program. */
struct snd_counter_base {
    uint64_t minor, major, switches, cpu_ns;
};

struct snd_counter_runs {
    struct snd_counter_list   list;
    struct snd_counter_opened opened[SND_COUNTERS_MOST];
    struct snd_counter_opened witness; /* faults of user mode, which any program has: was_ended() */
    struct snd_counter_base   base;
    pid_t                     first_pid; /* of the first run */
    struct snd_counter_run   *runs;      /* owned */
    uint32_t                  count, capacity;
    bool                      failed; /* memory ran out: a run is missing */
};

/* The process is there and has not become the program yet. */
void snd_counter_runs_begin(struct snd_counter_runs *runs, pid_t pid);
/* It has ended, after `elapsed_ns`, with this usage of it and of the children that it waited for. */
void snd_counter_runs_end(struct snd_counter_runs *runs, int64_t elapsed_ns,
                          const struct rusage *usage);
void snd_counter_runs_free(struct snd_counter_runs *runs);

/*
 * Writes all runs of `program`, a path, as a file of the folder (which ends in '/'). The recorder is loaded into this process:
 * call it in one that ends after it.
 * Errors: SONDE_E_UNSUPPORTED: no recorder; SONDE_E_IO.
 */
SND_CHECKED enum sonde_status snd_counter_runs_write(const struct snd_counter_runs *runs,
                                                     const char *folder, const char *program,
                                                     const char *command, struct sonde_error *err);

#endif
