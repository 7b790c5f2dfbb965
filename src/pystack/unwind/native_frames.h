/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pystack/unwind/native_frames.h - native frames of this process: their places between the Python frames, and
 * their names.
 *
 * Their places: loops.h. Frames of the interpreter itself are left out, as are those further out than the outermost
 * Python frame: what remains are extension modules and libraries. Where code without unwind data has
 * the walk end early, a frame that says so stands for what is between it and its Python caller.
 *
 * Layer:   pystack. Threads: one at a time uses a struct snd_native. dladdr() waits while a library
 *          is being loaded: never in a signal handler.
 */
#ifndef SND_PYSTACK_UNWIND_NATIVE_FRAMES_H
#define SND_PYSTACK_UNWIND_NATIVE_FRAMES_H

#include "pystack/sampling/sampling.h"

struct snd_native; /* opaque */

/* NULL if out of memory. Owns: the caller frees it with snd_native_free(). */
struct snd_native *snd_native_new(void);
void               snd_native_free(struct snd_native *native); /* may be NULL */
/* A new recording has begun: forgets all ids. May be NULL. */
void snd_native_clear(struct snd_native *native);

/* False when the native frames of the stack do not fit its Python frames. */
bool snd_native_match(struct snd_native *native, const struct snd_py_stack *stack);

/*
 * After snd_native_match(), from the outermost Python frame to the innermost: the id of the stack
 * that goes on from `id`, which ends with Python frame `at`, into the native frames called by it.
 */
uint32_t snd_native_stack(struct snd_native *native, const struct snd_recorder *recorder,
                          const struct snd_py_stack *stack, size_t at, uint32_t id);

#endif
