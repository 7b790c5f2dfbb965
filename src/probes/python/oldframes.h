/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/python/oldframes.h - frames of CPython 3.9 to 3.11, for the ways that need to look into
 * them: which code, whether it has run before, whether it is suspended.
 *
 * From 3.12 on sys.monitoring says all that. Layer: probes.
 */
#ifndef SND_PROBES_PYTHON_OLDFRAMES_H
#define SND_PROBES_PYTHON_OLDFRAMES_H

#include "probes/python/functions.h"

#if PY_VERSION_HEX < 0x030C0000
#include <frameobject.h>

#if PY_VERSION_HEX >= 0x030B0000 /* 3.11 */
#include <opcode.h>

typedef struct _PyInterpreterFrame snd_py_frame; /* what a frame-evaluation function is given */

static inline const struct snd_pyframe *snd_oldframe(const snd_py_frame *frame)
{
    return (const struct snd_pyframe *)frame;
}

/* The data of a frame object, which follows its link to the caller. */
static inline snd_py_frame *snd_oldframe_of(PyFrameObject *object)
{
    struct {
        PyObject_HEAD
        PyFrameObject *back;
        snd_py_frame  *data;
    } *head = (void *)object;

    return head->data;
}

static inline PyCodeObject *snd_oldframe_code(const snd_py_frame *frame)
{
    return snd_oldframe(frame)->code;
}

#define SND_OWNED_BY_GENERATOR 1

/* A call that only makes a generator: the function itself has not begun. */
static inline bool snd_oldframe_only_makes(const snd_py_frame *frame)
{
    return snd_oldframe(frame)->owner != SND_OWNED_BY_GENERATOR;
}

static inline const PyGenObject *snd_oldframe_generator(const snd_py_frame *frame)
{
    return (const PyGenObject *)((const char *)frame - offsetof(PyGenObject, gi_iframe));
}

/* Of a generator's frame that is entered: it did not stop before its first instruction. */
static inline bool snd_oldframe_is_resumed(const snd_py_frame *frame)
{
    const uint8_t *before = (const uint8_t *)snd_oldframe(frame)->instruction;

    /* Entered by evaluation: the one executed last. Seen by a profile function: RESUME itself. */
    return !(before[0] == RETURN_GENERATOR || (before[0] == RESUME && before[1] == 0) ||
             (before[0] == POP_TOP && before[-2] == RETURN_GENERATOR));
}

/* Of a generator's frame that is left: it did not end. */
static inline bool snd_oldframe_is_suspended(const snd_py_frame *frame)
{
    return snd_oldframe_generator(frame)->gi_frame_state == -1; /* FRAME_SUSPENDED */
}

#else /* 3.9, 3.10: frames are objects */

typedef PyFrameObject snd_py_frame;

static inline snd_py_frame *snd_oldframe_of(PyFrameObject *object)
{
    return object;
}

static inline PyCodeObject *snd_oldframe_code(const snd_py_frame *frame)
{
    return frame->f_code;
}

static inline bool snd_oldframe_only_makes(const snd_py_frame *frame)
{
    (void)frame; /* making a generator evaluates nothing */
    return false;
}

static inline bool snd_oldframe_is_resumed(const snd_py_frame *frame)
{
    return frame->f_lasti >= 0;
}

static inline bool snd_oldframe_is_suspended(const snd_py_frame *frame)
{
#if PY_VERSION_HEX >= 0x030A0000
    return frame->f_state == FRAME_SUSPENDED;
#else
    return frame->f_stacktop != NULL;
#endif
}

#endif
#endif
#endif
