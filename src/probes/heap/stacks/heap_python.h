/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/heap/stacks/heap_python.h - the Python frames of an allocation, in place of the interpreter's own.
 *
 * As samples with --native show them (pystack/unwind/loops.h): Python frames, each followed by the frames of
 * extension modules and libraries that it called. Those of the interpreter itself, and what is further out
 * than the outermost Python frame, are left out. Native frames that do not fit the Python ones are left out, too.
 */
#ifndef SND_PROBES_HEAP_STACKS_HEAP_PYTHON_H
#define SND_PROBES_HEAP_STACKS_HEAP_PYTHON_H

#include "probes/heap/stacks/python_places.h"
#include "probes/heap/stacks/heap_walk.h"

#define SND_HEAP_PLACES (SND_HEAP_FRAMES + SND_PYTHON_FRAMES_MAX + 2)

/* A stack as it is shown, innermost first: return addresses, and places of python_places.h. */
struct snd_heap_places {
    const uint64_t *at;
    uint32_t        count;
    bool            cut;
};

/* Reads the thread's Python frames into `frames`, and makes the stack's 128 bits stand for them, too. */
void snd_heap_python_read(struct snd_py_stack *frames, struct snd_heap_stack *stack);

/* Of a stack that is filled. Valid until the next call. Under the lock of the stacks. */
struct snd_heap_places snd_heap_python_places(const struct snd_heap_stack *stack);

/*
 * Is it the interpreter that maps memory of this size for itself, for the objects or the frames of any line?
 * Then the stack is that, and no line's: which line needs the next piece is chance.
 */
bool snd_heap_python_maps(const struct snd_heap_caller *caller, size_t size,
                          struct snd_heap_stack *stack);

#endif
