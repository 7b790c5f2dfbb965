/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native/drain.h - from the kernel's records to the recording: samples of native programs.
 *
 * Layer:   native (the recorder through its public functions alone, loaded at run time).
 * Threads: one; a process drains one recording.
 */
#ifndef SND_NATIVE_DRAIN_H
#define SND_NATIVE_DRAIN_H

#include "format/layout.h"
#include "native/observed.h"
#include "native/perf/perf_events.h"
#include "native/perf/stack_events.h"
#include "native/stacks/stack_walk.h"
#include "sonde/record.h"

struct snd_native_recorder {
    enum sonde_status (*start)(const struct sonde_options *options, struct sonde_error *err);
    enum sonde_status (*stop)(struct sonde_error *err);
    void (*metadata)(const char *key, const char *value);
    uint32_t (*intern)(const char *text, size_t length);
    uint32_t (*address)(uint32_t file, uint32_t build_id, uint64_t address);
    uint32_t (*stack)(uint32_t parent, uint32_t frame);
    void (*symbol)(uint32_t frame, const struct sonde_symbol *symbols, size_t count);
    uint32_t (*thread)(const struct sonde_process_thread *thread, const char *name);
    void (*ended)(uint32_t thread, uint64_t at);
    void (*sample)(const struct sonde_sample *sample);
    uint64_t *(*tally)(enum sonde_tally_kind kind, uint32_t key, uint32_t other, unsigned count);
};

/* A moment on two clocks. */
struct snd_native_moment {
    uint64_t raw, ns; /* the recorder's, CLOCK_MONOTONIC */
};

struct snd_native_frame {
    uint32_t id, file;
    uint64_t address;
};

struct snd_drain {
    struct snd_perf           *perf; /* borrowed */
    struct snd_native_recorder recorder;
    struct snd_observed        observed;
    struct snd_map             frames, stacks; /* file and address; parent and frame */
    struct snd_native_frame   *known;          /* owned: every frame, for their symbols */
    uint32_t                   known_count, known_capacity;
    uint32_t                   kernel; /* its file */
    bool        beside_python;         /* threads that run Python are left to their process */
    const char *traces; /* folder in which a process that samples itself has PID.sonde, or NULL */
    uint32_t    self;   /* the observer's own process: its descendants are not ours */
    struct snd_native_moment before, now;
    uint64_t                 last_raw;
    uint64_t                *tally; /* in the trace; NULL: no room */
    uint64_t                *waits; /* likewise; NULL, too: they are not asked for */
    struct snd_map           ended; /* threads whose remaining time is not recorded yet: rests.h */
    uint32_t                 rest;  /* the stack of time that is in no sample; 0: none yet */
    uint64_t                 counts[SND_NATIVE_WORDS];
    struct snd_stack_events  events; /* of counters, by stack */
};

void snd_drain_init(struct snd_drain *drain, struct snd_perf *perf,
                    const struct snd_native_recorder *recorder, bool off_cpu);
/* Takes what is in the rings, up to now; `all`: to the end. */
void snd_drain_round(struct snd_drain *drain, bool all);
/* A time of the kernel on the recorder's clock: on the line through two moments. Never falls. */
uint64_t snd_drain_raw(struct snd_drain *drain, uint64_t ns);
/* Writes a sample of a thread: `covered` ns up to `ns`. */
void snd_drain_write(struct snd_drain *drain, struct snd_seen_thread *thread, uint32_t stack,
                     uint64_t ns, uint64_t covered, uint32_t state);
/* Finds the functions at all addresses, once: at the end. */
void snd_drain_resolve(struct snd_drain *drain);
void snd_drain_release(struct snd_drain *drain);

/* Decodes a sample from a record; false: the record is not one of our samples. Tests use it, too. */
struct snd_native_sample {
    uint32_t pid, tid;
    uint64_t ns, event;
    uint64_t period; /* how many of its event it stands for, by and large: stack_events.h */
    uint64_t count;  /* what its event has counted in its thread; 0: not known */
    bool     has_user;
    struct snd_user_stack user;
    const uint8_t        *kernel; /* addresses, innermost first, 8 bytes each */
    size_t                kernel_count;
};
bool snd_native_sample_read(const struct snd_perf *perf, const struct perf_event_header *record,
                            struct snd_native_sample *out);

#endif
