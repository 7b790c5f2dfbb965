/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pystack/interpreter/pyframes.h - the Python frames of the calling thread, read without the interpreter lock.
 *
 * torch lets go of the lock before it runs an operator. The thread's own frames stand still
 * meanwhile, and keep their code objects alive, so they can be read; those of another thread
 * cannot. CPython has no interface for that: what its headers do not declare is read at the offsets
 * of py_layouts.def. Whatever is not known there (a newer CPython) has no frames: SND_PYFRAMES_MISSING
 * says why. SND_PY_UNKNOWN, defined, has any CPython be such a one: for tests.
 *
 * A header, in the common subset of C and C++: the torch probe compiles it on the user's machine.
 *
 * Layer: pystack; needs Python.h, so it is for the probes alone.
 */
#ifndef SND_PYSTACK_INTERPRETER_PYFRAMES_H
#define SND_PYSTACK_INTERPRETER_PYFRAMES_H

#if !defined(SND_NO_PYTHON) && __has_include(<Python.h>)
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#if PY_VERSION_HEX < 0x03090000 || PY_VERSION_HEX >= 0x03100000 || defined(SND_PY_UNKNOWN)
#define SND_PYFRAMES_MISSING "the frames of Python " PY_VERSION " are not known; 3.9 to 3.15 are"
#endif
#else
#define SND_PYFRAMES_MISSING "built without Python.h: install python3-dev and start again"
#endif

#ifndef SND_PYFRAMES_MISSING

#include <stdint.h>

#include "pystack/interpreter/py_layout.h"

/* The column of py_layouts.def for the CPython that this is compiled for, as SND_PY_AT_member. */
#if PY_MINOR_VERSION == 9
#define SND_PY_MEMBER(name, v9, v10, v11, v12, v13, v14, v15, v13t, v14t, v15t) \
    SND_PY_AT_##name = (v9),
#elif PY_MINOR_VERSION == 10
#define SND_PY_MEMBER(name, v9, v10, v11, v12, v13, v14, v15, v13t, v14t, v15t) \
    SND_PY_AT_##name = (v10),
#elif PY_MINOR_VERSION == 11
#define SND_PY_MEMBER(name, v9, v10, v11, v12, v13, v14, v15, v13t, v14t, v15t) \
    SND_PY_AT_##name = (v11),
#elif PY_MINOR_VERSION == 12
#define SND_PY_MEMBER(name, v9, v10, v11, v12, v13, v14, v15, v13t, v14t, v15t) \
    SND_PY_AT_##name = (v12),
#elif PY_MINOR_VERSION == 13 && !defined(Py_GIL_DISABLED)
#define SND_PY_MEMBER(name, v9, v10, v11, v12, v13, v14, v15, v13t, v14t, v15t) \
    SND_PY_AT_##name = (v13),
#elif PY_MINOR_VERSION == 14 && !defined(Py_GIL_DISABLED)
#define SND_PY_MEMBER(name, v9, v10, v11, v12, v13, v14, v15, v13t, v14t, v15t) \
    SND_PY_AT_##name = (v14),
#elif !defined(Py_GIL_DISABLED)
#define SND_PY_MEMBER(name, v9, v10, v11, v12, v13, v14, v15, v13t, v14t, v15t) \
    SND_PY_AT_##name = (v15),
#elif PY_MINOR_VERSION == 13
#define SND_PY_MEMBER(name, v9, v10, v11, v12, v13, v14, v15, v13t, v14t, v15t) \
    SND_PY_AT_##name = (v13t),
#elif PY_MINOR_VERSION == 14
#define SND_PY_MEMBER(name, v9, v10, v11, v12, v13, v14, v15, v13t, v14t, v15t) \
    SND_PY_AT_##name = (v14t),
#else
#define SND_PY_MEMBER(name, v9, v10, v11, v12, v13, v14, v15, v13t, v14t, v15t) \
    SND_PY_AT_##name = (v15t),
#endif
enum snd_py_own_layout {
#include "pystack/interpreter/py_layouts.def"
};
#undef SND_PY_MEMBER

/*
 * A code object's word at an index of _PyEval_RequestCodeExtraIndex; NULL: not set, or the index
 * is -1, as before it was asked for.
 */
static inline void *snd_py_extra(const PyCodeObject *code, Py_ssize_t index)
{
    const char *extras = (const char *)code->co_extra;

    if (!extras || (size_t) * (const Py_ssize_t *)extras <= (size_t)index)
        return NULL;
    return ((void *const *)(extras + SND_PY_AT_extras_words))[index];
}

#if PY_VERSION_HEX >= 0x030B0000 /* struct _PyInterpreterFrame */

struct snd_pyframe; /* read at the offsets of the table */

#define SND_PYFRAME_READ(type, frame, member) \
    (*(type const *)((const char *)(frame) + SND_PY_AT_##member))

static inline struct snd_pyframe *snd_pyframe_top(PyThreadState *state)
{
#if PY_VERSION_HEX >= 0x030D0000
    return (struct snd_pyframe *)state->current_frame;
#else
    return (struct snd_pyframe *)state->cframe->current_frame;
#endif
}

static inline char snd_pyframe_owner(const struct snd_pyframe *frame)
{
    return SND_PYFRAME_READ(char, frame, frame_owner);
}

/* From 3.12 on the entry from C has a frame of its own, which is no function's. */
static inline int snd_pyframe_is_real(const struct snd_pyframe *frame)
{
    return !SND_PY_AT_has_entries || snd_pyframe_owner(frame) < SND_PY_OWNED_BY_C;
}

/* What a frame's reference refers to: from 3.14 on its lowest bits say who counts it. */
static inline void *snd_pyframe_untag(uintptr_t reference)
{
    return (void *)(reference & ~(uintptr_t)SND_PY_AT_ref_tags);
}

static inline PyCodeObject *snd_pyframe_code(const struct snd_pyframe *frame)
{
    return (PyCodeObject *)snd_pyframe_untag(SND_PYFRAME_READ(uintptr_t, frame, frame_code));
}

static inline struct snd_pyframe *snd_pyframe_caller(const struct snd_pyframe *frame)
{
    return SND_PYFRAME_READ(struct snd_pyframe *, frame, frame_previous);
}

/* The function's first argument: `self` of a method. Borrowed; NULL if it was deleted. */
static inline PyObject *snd_pyframe_self(const struct snd_pyframe *frame)
{
    return (PyObject *)snd_pyframe_untag(SND_PYFRAME_READ(uintptr_t, frame, frame_locals));
}

/* Where it is in its code object's instructions. */
static inline const char *snd_pyframe_instruction(const struct snd_pyframe *frame)
{
    return SND_PYFRAME_READ(const char *, frame, frame_instr);
}

/* Where the instructions are that the frame runs: where there is no lock, a thread may have its own. */
static inline const char *snd_pyframe_instructions(const struct snd_pyframe *frame)
{
    PyCodeObject *code = snd_pyframe_code(frame);

#if defined(Py_GIL_DISABLED) && PY_VERSION_HEX >= 0x030E0000
    return code->co_tlbc->entries[SND_PYFRAME_READ(int32_t, frame, frame_tlbc)];
#else
    return (const char *)code->co_code_adaptive;
#endif
}

/* One word for function and place in it: the instruction lies inside its code object. */
static inline uint64_t snd_pyframe_place(const struct snd_pyframe *frame)
{
    return (uint64_t)(uintptr_t)snd_pyframe_instruction(frame);
}

static inline int snd_pyframe_line(const struct snd_pyframe *frame)
{
    return PyCode_Addr2Line(snd_pyframe_code(frame), (int)(snd_pyframe_instruction(frame) -
                                                           snd_pyframe_instructions(frame)));
}

#else /* 3.9, 3.10: frame objects */

#include <frameobject.h>

struct snd_pyframe {
    PyFrameObject frame;
};

static inline struct snd_pyframe *snd_pyframe_top(PyThreadState *state)
{
    return (struct snd_pyframe *)state->frame;
}

static inline int snd_pyframe_is_real(const struct snd_pyframe *frame)
{
    (void)frame;
    return 1;
}

static inline PyCodeObject *snd_pyframe_code(const struct snd_pyframe *frame)
{
    return frame->frame.f_code;
}

static inline struct snd_pyframe *snd_pyframe_caller(const struct snd_pyframe *frame)
{
    return (struct snd_pyframe *)frame->frame.f_back;
}

static inline PyObject *snd_pyframe_self(const struct snd_pyframe *frame)
{
    return frame->frame.f_localsplus[0];
}

static inline uint64_t snd_pyframe_place(const struct snd_pyframe *frame)
{
    return (uint64_t)(uintptr_t)frame->frame.f_code ^ (uint64_t)(uint32_t)frame->frame.f_lasti
                                                          << 44;
}

static inline int snd_pyframe_line(const struct snd_pyframe *frame)
{
#if PY_VERSION_HEX >= 0x030A0000
    return PyCode_Addr2Line(frame->frame.f_code, frame->frame.f_lasti * 2);
#else
    return PyCode_Addr2Line(frame->frame.f_code, frame->frame.f_lasti);
#endif
}

#endif

/* The calling thread's innermost frame, with or without the lock; NULL if it runs no Python. */
static inline struct snd_pyframe *snd_pyframe_mine(void)
{
    PyThreadState *state = PyGILState_GetThisThreadState();

    return state ? snd_pyframe_top(state) : NULL;
}

static inline struct snd_pyframe *snd_pyframe_real(struct snd_pyframe *frame)
{
    while (frame && !snd_pyframe_is_real(frame))
        frame = snd_pyframe_caller(frame);
    return frame;
}

#endif /* SND_PYFRAMES_MISSING */
#endif
