/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/python/evalframes.h - frames as the evaluation of one and a profile function are given
 * them: which code, whether it has run before, whether it is suspended.
 *
 * CPython 3.9 to 3.13 (layouts: probes/torch/pyframes.h). Layer: probes.
 */
#ifndef SND_PROBES_PYTHON_EVALFRAMES_H
#define SND_PROBES_PYTHON_EVALFRAMES_H

#include "probes/python/functions.h"

#if PY_VERSION_HEX >= 0x030B0000

typedef struct _PyInterpreterFrame snd_evalframe;

static inline const struct snd_pyframe *snd_evalframe_fields(const snd_evalframe *frame)
{
    return (const struct snd_pyframe *)frame;
}

/* The data of a frame object, which follows its link to the caller. */
static inline snd_evalframe *snd_evalframe_of(PyFrameObject *object)
{
    struct {
        PyObject_HEAD
        PyFrameObject *back;
        snd_evalframe *data;
    } *head = (void *)object;

    return head->data;
}

static inline PyCodeObject *snd_evalframe_code(const snd_evalframe *frame)
{
    return snd_evalframe_fields(frame)->code;
}

/* Of a generator function: the call that makes the generator, before the function has begun. */
static inline bool snd_evalframe_only_makes(const snd_evalframe *frame)
{
    return snd_evalframe_fields(frame)->owner != 1; /* FRAME_OWNED_BY_GENERATOR */
}

/* Of a generator's frame that is entered: it is past its first traceable instruction. */
static inline bool snd_evalframe_is_resumed(const snd_evalframe *frame)
{
    const struct snd_pyframe *fields = snd_evalframe_fields(frame);
    const uint16_t           *first = (const uint16_t *)(void *)fields->code->co_code_adaptive;

    return fields->instruction - first > fields->code->_co_firsttraceable;
}

/* Of a generator's frame that is left: it did not end. States below 0: created, suspended. */
static inline bool snd_evalframe_is_suspended(const snd_evalframe *frame)
{
    const char *generator = (const char *)frame - offsetof(PyGenObject, gi_iframe);

    return ((const PyGenObject *)generator)->gi_frame_state < 0;
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
