/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native/stacks/stack_walk.h - the frames of a thread, from its registers and a copy of the top of its stack.
 *
 * By the unwind tables of the mapped files; by frame pointers where a file has none, or does not
 * cover the code (Go, just-in-time compilers). The walk ends where the copy ends.
 *
 * Layer: native. Threads: one at a time.
 */
#ifndef SND_NATIVE_STACKS_STACK_WALK_H
#define SND_NATIVE_STACKS_STACK_WALK_H

#include "native/stacks/mapped.h"

#define SND_WALK_MAX 192u

struct snd_user_stack {
    uint64_t       registers[SND_CFI_REGISTERS]; /* by DWARF's numbers */
    uint64_t       pc;
    const uint8_t *bytes; /* from the stack pointer on */
    size_t         size;
};

struct snd_walked_frame {
    uint32_t file;    /* index in the files; UINT32_MAX: in no mapping */
    uint64_t address; /* the file's own: of callers, within the call; else the next instruction */
};

enum snd_walk_end {
    SND_WALK_WHOLE, /* it has no caller */
    SND_WALK_CUT,   /* the copy of the stack ends, or there are too many */
    SND_WALK_LOST,  /* how to go on is not known */
};

/* Innermost first; at least one. Returns how many. */
size_t snd_stack_walk(const struct snd_mappings *mappings, struct snd_mapped_files *files,
                      const struct snd_user_stack *stack,
                      struct snd_walked_frame frames[SND_WALK_MAX], enum snd_walk_end *end);

#endif
