/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pystack/unwind/unwind.h - the native frames of this thread, from the registers that a signal handler has.
 *
 * The walk goes by the tables for exceptions (cfi.h), and reads the stack as another process's
 * memory is read: what is not there ends the walk, and nothing else. A stack need not be what it
 * should be: greenlets and other coroutines copy theirs away and write over what lies beyond their
 * own frames, and a signal may come in the middle of a switch between two of them. What is found
 * beyond is for the caller to leave out (native_frames.h).
 *
 * Layer:   pystack. Threads: any, each with a struct of its own; also in a signal handler.
 */
#ifndef SND_PYSTACK_UNWIND_UNWIND_H
#define SND_PYSTACK_UNWIND_UNWIND_H

#include "pystack/unwind/cfi.h"
#include "pystack/interpreter/frames.h"

/* What a walk needs; the caller's, zero at first. Not for a signal handler's stack. */
struct snd_unwind {
    struct snd_cfi    cfi;
    struct snd_window stack;
    pid_t             pid;
    uint64_t          registers[SND_CFI_REGISTERS];
    bool              known[SND_CFI_REGISTERS];
};

/* At the start, not in a signal handler: false where it cannot be done. */
bool snd_unwind_init(void);

/*
 * Fills stack->native from a handler's third argument. native_cut: there may be more than
 * SND_NATIVE_MAX frames. native_broken: code without unwind data has callers that are not found.
 */
void snd_unwind(struct snd_unwind *unwind, const void *context, struct snd_py_stack *stack);

#endif
