/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native/observed.h - the processes and threads that are sampled, as the kernel tells of them.
 *
 * Layer: native. Threads: one.
 */
#ifndef SND_NATIVE_OBSERVED_H
#define SND_NATIVE_OBSERVED_H

#include "native/perf/rate.h"
#include "native/stacks/mapped.h"

#define SND_COMM_MAX 16u

struct snd_seen_process {
    uint32_t            pid, parent;
    uint32_t            threads;   /* that live */
    bool                is_begun;  /* it is in exec: nothing of the new program is mapped yet */
    bool                is_python; /* it runs an interpreter */
    bool                has_trace; /* it records itself */
    struct snd_mappings mappings;
};

struct snd_seen_thread {
    uint32_t               pid, tid;
    uint32_t               id; /* in the recording; 0: not there yet */
    char                   name[SND_COMM_MAX];
    uint64_t               start_ns;
    bool                   is_python; /* it has run Python code: its process samples it */
    uint32_t               waits_at;  /* its stack when it left the processor */
    uint64_t               waits_ns;  /* and when; 0: it is on one, or was made to leave */
    struct snd_rate_thread rate;      /* of its processor time: what is in samples */
    uint64_t               used_ns;   /* all of it, once it has ended */
    uint32_t               reads;     /* that make up the latter: rests.h */
    uint32_t               parent;    /* of its process, likewise */
    uint64_t               end_ns;
};

/* Pointers are valid until the next one is added. */
struct snd_observed {
    struct snd_seen_process *processes; /* owned, as the next; pid 0: free */
    struct snd_seen_thread  *threads;
    uint32_t                 process_count, process_capacity, thread_count, thread_capacity;
    uint32_t                 living; /* processes */
    struct snd_map           by_pid, by_tid;
    struct snd_mapped_files  files;
};

/* NULL: it is not known, or for the last two, memory is out. */
struct snd_seen_process *snd_observed_process(struct snd_observed *observed, uint32_t pid);
struct snd_seen_process *snd_observed_add_process(struct snd_observed *observed, uint32_t pid,
                                                  uint32_t parent);
/* Adds it where it is not known yet, and then its process, too. */
struct snd_seen_thread *snd_observed_thread(struct snd_observed *observed, uint32_t pid,
                                            uint32_t tid);

/* What the kernel tells. */
void snd_observed_fork(struct snd_observed *observed, uint32_t pid, uint32_t tid, uint32_t parent,
                       uint32_t parent_tid, uint64_t ns);
void snd_observed_exit(struct snd_observed *observed, uint32_t pid, uint32_t tid);
void snd_observed_release(struct snd_observed *observed);

#endif
