/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pystack/interpreter/eval_frames.h - frames as the evaluation of one and a profile function are given them:
 * which code, whether it has run before, whether it is suspended.
 *
 * CPython 3.9 to 3.15. Layer: pystack; needs Python.h, so it is for the probes alone.
 */
#ifndef SND_PYSTACK_INTERPRETER_EVAL_FRAMES_H
#define SND_PYSTACK_INTERPRETER_EVAL_FRAMES_H

#include "pystack/interpreter/pyframes.h"

#if PY_VERSION_HEX >= 0x030B0000

typedef struct _PyInterpreterFrame snd_evalframe;

static inline const struct snd_pyframe *snd_evalframe_fields(const snd_evalframe *frame)
{
    return (const struct snd_pyframe *)frame;
}

/* The data of a frame object: the word after its link to its caller. */
static inline snd_evalframe *snd_evalframe_of(PyFrameObject *object)
{
    return SND_PYFRAME_READ(snd_evalframe *, object, object_frame);
}

static inline PyCodeObject *snd_evalframe_code(const snd_evalframe *frame)
{
    return snd_pyframe_code(snd_evalframe_fields(frame));
}

/* Of a generator function: the call that makes the generator, before the function has begun. */
static inline bool snd_evalframe_only_makes(const snd_evalframe *frame)
{
    return snd_pyframe_owner(snd_evalframe_fields(frame)) != SND_PY_OWNED_BY_GENERATOR;
}

/* Of a generator's frame that is entered: it is past its first traceable instruction. */
static inline bool snd_evalframe_is_resumed(const snd_evalframe *frame)
{
    const PyCodeObject *code = snd_evalframe_code(frame);
    ptrdiff_t           done_bytes = snd_pyframe_instruction(snd_evalframe_fields(frame)) -
                           snd_pyframe_instructions(snd_evalframe_fields(frame));

    return done_bytes / 2 > code->_co_firsttraceable; /* two bytes an instruction */
}

/* Of a generator's frame that is left: it did not end. */
static inline bool snd_evalframe_is_suspended(const snd_evalframe *frame)
{
    const char *generator = (const char *)frame - SND_PY_AT_gen_frame;
    signed char state = (signed char)generator[SND_PY_AT_gen_state];

    return state >= SND_PY_AT_gen_least && state <= SND_PY_AT_gen_most;
}

#else /* 3.9, 3.10: frames are objects */

#include <frameobject.h>

typedef PyFrameObject snd_evalframe;

static inline snd_evalframe *snd_evalframe_of(PyFrameObject *object)
{
    return object;
}

static inline PyCodeObject *snd_evalframe_code(const snd_evalframe *frame)
{
    return frame->f_code;
}

static inline bool snd_evalframe_only_makes(const snd_evalframe *frame)
{
    (void)frame; /* making a generator evaluates nothing */
    return false;
}

static inline bool snd_evalframe_is_resumed(const snd_evalframe *frame)
{
    return frame->f_lasti >= 0;
}

static inline bool snd_evalframe_is_suspended(const snd_evalframe *frame)
{
#if PY_VERSION_HEX >= 0x030A0000
    return frame->f_state == FRAME_SUSPENDED;
#else
    return frame->f_stacktop != NULL;
#endif
}

#endif
#endif
