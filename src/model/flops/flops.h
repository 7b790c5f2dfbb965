/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/flops/flops.h - what an operator computes, from the shapes and arguments of its inputs.
 *
 * flops.def has one line an operator; docs/FLOPS.md says what is counted as what. Answers are
 * remembered, so that an operator called a million times with one shape is worked out once.
 *
 * Layer: model (sees base/, format/, read/). Threads: one at a time.
 */
#ifndef SND_MODEL_FLOPS_FLOPS_H
#define SND_MODEL_FLOPS_FLOPS_H

#include "base/error.h"
#include "sonde/model.h"

/* Multiply-accumulates are two operations each and are among `flops`. */
struct snd_work {
    double flops, macs, moved_bytes;
};

enum snd_flops_answer {
    SND_FLOPS_NO_FORMULA, /* not in flops.def */
    SND_FLOPS_NO_WORK,    /* in it, and computes nothing itself: a view, an allocation, a wrapper */
    SND_FLOPS_UNKNOWN,    /* in it, but the shapes or arguments that it needs were not recorded */
    SND_FLOPS_FOUND,
};

/* Arguments as recorded: `items` flat, as sonde_trace_arguments() has them. */
struct snd_call {
    const struct sonde_argument *items;
    size_t                       item_count;
    struct sonde_text            arguments; /* JSON list of strings, or empty */
};

/* By name alone, for one call; of mode FULL or TORCH. */
enum snd_flops_answer snd_flops_call(struct sonde_text name, enum sonde_flops_mode mode,
                                     const struct snd_call *call, struct snd_work *work);

struct snd_flops; /* opaque: answers for the names of one trace */

/* Keeps `trace`. Owns: the caller, until snd_flops_free(). */
SND_CHECKED enum sonde_status snd_flops_new(const struct sonde_trace *trace,
                                            enum sonde_flops_mode mode, struct snd_flops **out,
                                            struct sonde_error *err);
void                          snd_flops_free(struct snd_flops *flops);

/* What all calls of a name have in common, by its number in trace->names; SND_FLOPS_UNKNOWN: nothing, their shapes tell. */
enum snd_flops_answer snd_flops_of_name(const struct snd_flops *flops, uint32_t name);

/* A call, with shapes, of such a name. The ids are the process's. */
enum snd_flops_answer snd_flops_of(struct snd_flops *flops, uint32_t process, uint32_t name,
                                   uint32_t shapes, uint32_t arguments, struct snd_work *work);

/*
 * Of an operator whose weights are packed, its shapes do not tell (SND_FLOPS_UNKNOWN), but the arguments of an operator inside
 * it do, if that one makes room for the result; from_child is false where it does not. Both are there.
 */
bool snd_flops_asks_children(const struct snd_flops *flops, uint32_t name);
bool snd_flops_from_child(struct snd_flops *flops, uint32_t process, uint32_t name, uint32_t shapes,
                          uint32_t child_arguments, struct snd_work *work);

/* Whether a name reads like an operator's ("aten::mm") rather than a person's or the engine's. */
bool snd_flops_is_operator(struct sonde_text name);

#endif
