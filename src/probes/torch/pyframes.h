/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/torch/pyframes.h - the Python frames of the calling thread, read without the
 * interpreter lock.
 *
 * torch lets go of the lock before it runs an operator. The thread's own frames stand still
 * meanwhile, and keep their code objects alive, so they can be read; those of another thread
 * cannot. CPython has no interface for that, hence the layouts, one for each series. Whatever
 * is not known here (a newer CPython, a build without the lock) has no frames:
 * SND_PYFRAMES_MISSING says why.
 *
 * Layer: probes.
 */
#ifndef SND_PROBES_TORCH_PYFRAMES_H
#define SND_PROBES_TORCH_PYFRAMES_H

#if !defined(SND_NO_PYTHON) && __has_include(<Python.h>)
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#if defined(Py_GIL_DISABLED)
#define SND_PYFRAMES_MISSING "this Python has no interpreter lock: its frames move"
#elif PY_VERSION_HEX < 0x03090000 || PY_VERSION_HEX >= 0x030E0000
#define SND_PYFRAMES_MISSING "the frames of Python " PY_VERSION " are not known; 3.9 to 3.13 are"
#endif
#else
#define SND_PYFRAMES_MISSING "built without Python.h: install python3-dev and start again"
#endif

#ifndef SND_PYFRAMES_MISSING

#include <stdint.h>

#if PY_VERSION_HEX >= 0x030C0000 /* 3.12, 3.13: the head of struct _PyInterpreterFrame */

struct snd_pyframe {
    PyCodeObject       *code;
    struct snd_pyframe *caller;
    void               *function, *globals, *builtins, *locals, *object;
    uint16_t           *instruction;
    int                 stack_top;
    uint16_t            return_offset;
    char                owner;
    PyObject           *local[1];
};

static inline struct snd_pyframe *snd_pyframe_top(PyThreadState *state)
{
#if PY_VERSION_HEX >= 0x030D0000
    return (struct snd_pyframe *)state->current_frame;
#else
    return (struct snd_pyframe *)state->cframe->current_frame;
#endif
}

/* The entry from C has a frame of its own, which is no function's. */
static inline int snd_pyframe_is_real(const struct snd_pyframe *frame)
{
    return frame->owner != 3; /* FRAME_OWNED_BY_CSTACK */
}

#elif PY_VERSION_HEX >= 0x030B0000 /* 3.11 */

struct snd_pyframe {
    void               *function, *globals, *builtins, *locals;
    PyCodeObject       *code;
    void               *object;
    struct snd_pyframe *caller;
    uint16_t           *instruction;
    int                 stack_top;
    char                is_entry, owner;
    PyObject           *local[1];
};

static inline struct snd_pyframe *snd_pyframe_top(PyThreadState *state)
{
    return (struct snd_pyframe *)state->cframe->current_frame;
}

static inline int snd_pyframe_is_real(const struct snd_pyframe *frame)
{
    (void)frame;
    return 1;
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

#endif

#if PY_VERSION_HEX >= 0x030B0000

static inline PyCodeObject *snd_pyframe_code(const struct snd_pyframe *frame)
{
    return frame->code;
}

static inline struct snd_pyframe *snd_pyframe_caller(const struct snd_pyframe *frame)
{
    return frame->caller;
}

/* The function's first argument: `self` of a method. Borrowed; NULL if it was deleted. */
static inline PyObject *snd_pyframe_self(const struct snd_pyframe *frame)
{
    return frame->local[0];
}

/* One word for function and place in it: the instruction lies inside its code object. */
static inline uint64_t snd_pyframe_place(const struct snd_pyframe *frame)
{
    return (uint64_t)(uintptr_t)frame->instruction;
}

static inline int snd_pyframe_line(const struct snd_pyframe *frame)
{
    const char *first = (const char *)frame->code->co_code_adaptive;

    return PyCode_Addr2Line(frame->code, (int)((const char *)frame->instruction - first));
}

#else

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
