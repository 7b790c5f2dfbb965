/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/samples/mixed_stacks.h - samples with the ranges that were open on their thread: mixed stacks.
 *
 * One rule: the ranges of a sample's thread that are open at its time become frames, outermost first,
 * between the innermost run of native frames and what called it. So a stack reads: functions of
 * Python, operators and ranges, functions of native code. In a stack without native frames they are
 * innermost; in one of native frames alone, outermost. A range that a Python function opened and that calls
 * others says how many frames there were (PYTHON_DEPTH): it comes after so many, and what it lies in does not come later.
 *
 * An asynchronous range, which waits for what others do or is ended by another thread, is no frame:
 * its thread does other things meanwhile.
 *
 * Nor is a recorded call of a Python function (--functions --timeline) where Python's stacks were sampled: it
 * is in them already.
 *
 * A sample of a thread that another file of the trace has the ranges of (same process and thread
 * number) has those. A sample has the ranges that were open when its stack was read (SAMPLE_RUN). Older ones do
 * not say when that was: samples in a row are told apart where the ranges differ, by dividing their time evenly.
 *
 * Layer: model (sees base/, format/, read/). Threads: one at a time.
 */
#ifndef SND_MODEL_SAMPLES_MIXED_STACKS_H
#define SND_MODEL_SAMPLES_MIXED_STACKS_H

#include "base/error.h"
#include "base/data/map.h"
#include "model/ranges/assembly.h"
#include "sonde/model.h"

/* Open ranges, outermost last: 0 is none. */
struct snd_chain {
    uint32_t parent, name; /* name: number in trace->names */
    uint32_t depth;
    uint32_t python_depth; /* Python frames around the innermost one; 0: not recorded */
};

struct snd_change {
    int64_t  ns;
    uint32_t chain; /* from then on */
};

/* What is open on a thread now, and was since its last sample. */
struct snd_mixed_thread {
    uint32_t           current, alias; /* alias: the thread that has its ranges */
    bool               has_python;     /* its samples have Python frames */
    struct snd_change *changes;
    uint32_t           count, room;
};

/*
 * A sample, as the public walk shows it; its count and time are those of the part that has this chain.
 * False, if memory is out, ends the walk.
 */
typedef bool snd_mixed_fn(void *user, const struct sonde_event *sample, uint32_t chain);

struct snd_mixed {
    struct sonde_trace      *trace;
    struct snd_chain        *chains; /* 0: not used */
    uint32_t                 chain_count, chain_room;
    struct snd_map           by_name;      /* (parent, name, depth in Python) to a chain */
    struct snd_map           asynchronous; /* ranges, by the number of their begin over the walk */
    struct snd_mixed_thread *threads;
    snd_mixed_fn            *take;
    void                    *user; /* of `take` */
    struct snd_consumer      consumer;
    struct snd_assembly     *assembly; /* while the walk lasts */
    bool                     failed, is_done;
};

/*
 * While a trace has one (trace->only_gil), its walks give the samples of threads that held the interpreter's lock, and
 * no others: what --gil shows. Counts both.
 */
struct snd_only_gil {
    uint64_t held, others;
};
/*
 * Makes mixed->consumer, for a walk that somebody makes (snd_wait()); is_done: the trace has no samples. The samples of
 * one thread come in order. Which ranges are asynchronous must be known before the first sample: where
 * ranges end by a key, this walks the trace for it. `mixed` need not be initialised, must stay where it is, and must be
 * released whatever this returns. Errors: SONDE_E_NOMEM, SONDE_E_UNSUPPORTED.
 */
SND_CHECKED enum sonde_status snd_mixed_prepare(struct snd_mixed *mixed, struct sonde_trace *trace,
                                                snd_mixed_fn *take, void *user,
                                                struct sonde_error *err);
/* The same, and the walk. */
SND_CHECKED enum sonde_status snd_mixed_walk(struct snd_mixed *mixed, struct sonde_trace *trace,
                                             snd_mixed_fn *take, void *user,
                                             struct sonde_error *err);
void                          snd_mixed_release(struct snd_mixed *mixed);

/* One step of a mixed stack: a stack of the process, of which the innermost frame is meant, or a range. */
struct snd_mixed_step {
    uint32_t stack, chain; /* one of them is 0 */
};

/* Where among the frames ranges belong: goes through both, innermost first. */
struct snd_mixed_steps {
    const struct snd_mixed  *mixed;
    const struct snd_tables *tables;
    uint32_t                 stack, chain, frames;
    uint32_t                 python; /* Python frames that are left */
    uint32_t                 depth;  /* ranges from here on come after at most so many */
};
struct snd_mixed_steps snd_mixed_begin(const struct snd_mixed *mixed, uint32_t process,
                                       uint32_t stack, uint32_t chain);
/* False: there is no more. */
bool snd_mixed_next(struct snd_mixed_steps *at, struct snd_mixed_step *step);

/* Errors: SONDE_E_ARGUMENT if none of the samples that were walked over held the interpreter's lock. */
SND_CHECKED enum sonde_status snd_only_gil_check(const struct snd_only_gil *only,
                                                 struct sonde_error        *err);
/* Likewise, of all samples of the trace, which is walked for it. */
SND_CHECKED enum sonde_status snd_only_gil_find(struct sonde_trace *trace, struct sonde_error *err);

/* A frame of a mixed stack. */
struct snd_mixed_frame {
    struct sonde_frame frame;
    bool               is_native, is_range;
    uint32_t           id; /* of the frame in its process; 0: a range */
};
/* The frames, innermost first; returns how many there are, storing at most `size`. */
size_t snd_mixed_frames(const struct snd_mixed *mixed, uint32_t process, uint32_t stack,
                        uint32_t chain, struct snd_mixed_frame *frames, size_t size);

/* Those of a stack without ranges: at least one, "(not known)", and `size` at most. */
size_t snd_mixed_some_frames(const struct snd_mixed *mixed, uint32_t process, uint32_t stack,
                             struct snd_mixed_frame *frames, size_t size);

/* The name of the innermost range of a chain. */
struct sonde_text snd_chain_name(const struct snd_mixed *mixed, uint32_t chain);

#endif
