/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pystack/unwind/loops.h - which native frames of a stack lie between which of its Python frames.
 *
 * Each time that C code calls Python, the evaluation loop has a native frame. From 3.11 on something
 * of Python's own lies in it, by whose address it is found; before, its function is known by name.
 *
 * Layer: pystack. Threads: one at a time uses a struct snd_loops. No memory, no lock.
 */
#ifndef SND_PYSTACK_UNWIND_LOOPS_H
#define SND_PYSTACK_UNWIND_LOOPS_H

#include "pystack/interpreter/frames.h"

#define SND_LOOPS_EVAL "_PyEval_EvalFrameDefault"
#define SND_LOOPS_GAP "(no unwind data)" /* stands for frames that were not found */
#define SND_LOOPS_NOBODY UINT32_MAX      /* of a native frame: it is not shown */

struct snd_loops {
    uint64_t eval, eval_end; /* the evaluation loop's function */
    /* found: */
    uint32_t callers[SND_NATIVE_MAX]; /* by native frame: the Python frame that called it */
    uint32_t gap;                     /* the Python frame that called what was not found */
};

/* False when the native frames of the stack do not fit its Python frames. */
bool snd_loops_match(struct snd_loops *loops, const struct snd_py_stack *stack);

/*
 * Is this function of the interpreter's file the interpreter's own: without a name, or with one that begins
 * with Py? A library that was linked into it has names of its own.
 */
bool snd_loops_is_plumbing(const char *name);

#endif
