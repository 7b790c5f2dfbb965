/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pystack/interpreter/stack_ids.h - the recorder's ids of Python stacks, cached.
 *
 * Layer:   pystack.
 * Threads: one at a time.
 */
#ifndef SND_PYSTACK_INTERPRETER_STACK_IDS_H
#define SND_PYSTACK_INTERPRETER_STACK_IDS_H

#include "base/data/map.h"
#include "pystack/interpreter/code_objects.h"
#include "pystack/sampling/sampling.h"

struct snd_names {
    struct snd_map stacks; /* (parent, serial of the code, line) to id */
    struct snd_map lines;  /* (serial of the code, offset) to line */
};

void snd_names_release(struct snd_names *names);
/* A new recording has begun: forgets all ids. */
void snd_names_clear(struct snd_names *names);

/* The id of the stack that goes on from `parent` into `code` at `offset`. */
uint32_t snd_names_stack(struct snd_names *names, const struct snd_recorder *recorder,
                         enum snd_py_lines lines, uint32_t parent, const struct snd_code *code,
                         int64_t offset);

/* The stack that stands for frames too many to be read. */
uint32_t snd_names_cut(struct snd_names *names, const struct snd_recorder *recorder);

#endif
