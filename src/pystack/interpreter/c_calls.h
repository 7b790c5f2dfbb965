/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pystack/interpreter/c_calls.h - the calls of functions written in C that the calling thread is in.
 *
 * The interpreter has no frames for them. The probe of Python calls sees them begin and end, and the torch probe
 * puts them between the frames of an operator's stack: they are two libraries, so that one is handed this by the other.
 *
 * Layer: pystack. Threads: each asks for itself, with or without the interpreter lock.
 */
#ifndef SND_PYSTACK_INTERPRETER_C_CALLS_H
#define SND_PYSTACK_INTERPRETER_C_CALLS_H

#include <stddef.h>
#include <stdint.h>

struct snd_c_call {
    const void
        *caller; /* the Python frame that called it: only to be compared with those that are open */
    uint32_t frame; /* of the function, in the recording that is on */
};

/* The name of a PyCapsule that points to a struct snd_c_calls, which stays. */
#define SND_C_CALLS_CAPSULE "sonde.c_calls"

struct snd_c_calls {
    /* A number for those that are open, the same for the same ones; 0: none, or they are not recorded. */
    uint64_t (*known)(void);
    /* Innermost first; returns how many, at most `room`. */
    size_t (*list)(struct snd_c_call *calls, size_t room);
};

#endif
