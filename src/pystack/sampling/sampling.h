/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pystack/sampling/sampling.h - rounds of samples: every thread's stack and state, handed to a recorder.
 *
 *     snd_sampling_new(&python, &recorder, period_ns, &sampling, &err);
 *     while (..) { wait until it is time; snd_sampling_round(sampling, missed); }
 *     snd_sampling_free(sampling);
 *
 * A round costs by the threads that did something since the last one: one that did not run has
 * the stack that it had. The thread that holds the interpreter's lock is looked at in every round,
 * the others in turn, as far as a 200th of the period goes.
 *
 * Samples that find a thread as it was, and between which it recorded nothing, are one event, written when
 * that changes or after a tenth of a second (of a new thread sooner). What could not be read is counted, and
 * never shown.
 *
 * A sample has two times. The moment at which its stack was read tells which of its thread's ranges were open:
 * the thread's lane is read before and after, and a stack counts only if nothing was recorded in between. The
 * time that it stands for, since the sample before it, is another matter.
 *
 * Layer:   pystack (the recorder through its public functions alone, as a table: the program that
 *          observes another one loads it at run time).
 * Threads: one at a time.
 */
#ifndef SND_PYSTACK_SAMPLING_SAMPLING_H
#define SND_PYSTACK_SAMPLING_SAMPLING_H

#include "format/layout.h"
#include "pystack/interpreter/frames.h"
#include "pystack/task.h"
#include "sonde/record.h"

/* The recorder: functions of sonde/record.h. */
struct snd_recorder {
    const struct sonde_epoch_page *epoch;
    uint64_t (*clock)(void);
    uint32_t (*intern)(const char *text, size_t length);
    uint32_t (*frame)(uint32_t function, uint32_t first_line, uint32_t file, uint32_t line);
    uint32_t (*native)(uint32_t function, uint32_t file); /* NULL: no native frames */
    uint32_t (*stack)(uint32_t parent, uint32_t frame);
    uint32_t (*thread)(uint32_t tid, const char *name);
    void (*sample)(const struct sonde_sample_run *run);
    uint64_t *(*tally)(enum sonde_tally_kind kind, uint32_t key, uint32_t other, unsigned count);
    /*
     * Offset of a thread's sonde_lane_ from its pthread_t; 0: the recording has no events of its
     * threads.
     */
    int64_t lane_offset;
};

struct snd_sampling; /* opaque */

/*
 * Reads the stack of a thread that holds the interpreter's lock and runs, where looks from outside
 * did not agree; UNREAD: it could not. With native frames, where they are wanted: of any thread
 * that runs. `hint` and `rider` are as in snd_python_stack(), and need not be used, but for rider->last and
 * rider->at, when the thread stood still.
 */
typedef enum snd_py_read snd_running_fn(void *user, struct snd_task *task, uint64_t state,
                                        struct snd_py_hint *hint, struct snd_py_rider *rider,
                                        struct snd_py_stack *stack);

/*
 * `python` and `recorder` are copied.
 * Owns:   the caller owns *out and ends it with snd_sampling_free().
 * Errors: SONDE_E_NOMEM.
 */
SND_CHECKED enum sonde_status snd_sampling_new(const struct snd_python   *python,
                                               const struct snd_recorder *recorder,
                                               uint64_t period_ns, struct snd_sampling **out,
                                               struct sonde_error *err);
/* Writes what has not been written yet. */
void snd_sampling_free(struct snd_sampling *sampling);
/*
 * Likewise, and continues: what is found next is a new event. Returns the recorder's clock: all
 * events written so far are at or before it, all later ones after it.
 */
uint64_t snd_sampling_flush(struct snd_sampling *sampling);
/* In a forked child: only the memory; nothing is written. */
void snd_sampling_drop(struct snd_sampling *sampling);

/*
 * Code objects of functions that start and stop what records: a thread in one of them is not the program's, and its
 * time is nobody's. Keeps `codes`, `count` addresses.
 */
void snd_sampling_own_codes(struct snd_sampling *sampling, const uint64_t *codes, size_t count);

void snd_sampling_on_running(struct snd_sampling *sampling, snd_running_fn *function, void *user);
/* The thread that makes the rounds has a table of descriptors of its own: nobody else closes them. */
void snd_sampling_own_table(struct snd_sampling *sampling);
/*
 * Interrupts every running thread, which then also reads its native frames. Only for this process's
 * own threads, and after snd_sampling_on_running(). False if out of memory.
 */
bool snd_sampling_with_native(struct snd_sampling *sampling);

/*
 * What a round came to. UNREAD is counted in the trace (SAMPLER_GAPS): the process is there, and its
 * threads could not be found. It may have become another program, refuse to be read, or be in the middle of
 * changing its list of interpreters.
 */
enum snd_round {
    SND_ROUND_MADE,      /* or nothing records */
    SND_ROUND_NO_PYTHON, /* the process has ended, or no longer has a thread that runs Python */
    SND_ROUND_UNREAD,
};

/* One round, after `missed` that came too late. */
enum snd_round snd_sampling_round(struct snd_sampling *sampling, uint64_t missed);
/* By the thread that made the rounds, after the last: counts what they cost it. */
void snd_sampling_count_own(struct snd_sampling *sampling);

/* What was counted so far: the words of SAMPLER and of SAMPLER_GAPS (format/tallies.def). */
struct snd_sampling_counts {
    uint64_t words[SND_SAMPLER_WORDS], gaps[SND_SAMPLER_GAPS_WORDS];
    uint64_t interrupted; /* how often a thread stood still for its stack */
};
struct snd_sampling_counts snd_sampling_counts(const struct snd_sampling *sampling);

#endif
