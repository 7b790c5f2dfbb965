/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/heap/stacks/python_places.h - lines of Python functions that allocate or lead there, each with a number.
 *
 * A code object may be freed long before the trace has a place for its name: a forked child's counts wait
 * (stack_tallies.h). So names are read when a stack is first met, and kept.
 *
 * Threads: under the lock of the stacks, but snd_heap_pyplace() and snd_heap_pycode().
 */
#ifndef SND_PROBES_HEAP_STACKS_PYTHON_PLACES_H
#define SND_PROBES_HEAP_STACKS_PYTHON_PLACES_H

#include "pystack/interpreter/frames.h"

/* Places that are no line's. */
enum {
    SND_PYPLACE_ARENA,  /* memory for small objects, of any line */
    SND_PYPLACE_FRAMES, /* memory for frames of functions */
    SND_PYPLACE_GAP,    /* code without unwind data */
    SND_PYPLACE_CUT,    /* outer frames that are not recorded */
    SND_PYPLACES
};

#define SND_HEAP_PLACE ((uint64_t)1 << 63) /* a number follows: no return address has this bit */
static inline uint64_t snd_heap_pyplace(uint64_t number)
{
    return SND_HEAP_PLACE | number;
}

/* 64 bits that stand for a code object: by its address alone, it might be a later one. */
uint64_t snd_heap_pycode(const struct snd_py_layout *layout, uint64_t code);

/* The place of a frame of this thread; 0: it is not what it should be, or no memory. */
uint64_t snd_heap_pyplace_of(const struct snd_py_frame *frame);
/* Its frame in the trace; 0 where there is no room. */
uint32_t snd_heap_pyplace_frame(uint64_t place);

#endif
