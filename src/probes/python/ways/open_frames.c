/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/python/ways/open_frames.c - what the timeline of a torch profile has besides calls: the frames
 * that were open when it began, and garbage collections.
 */
#include "probes/python/ways/call_probe.h"

#include <string.h>

#include "format/limits.h"

#define INSTRUCTION_BYTES 2

#ifndef SND_PYFRAMES_MISSING

/* As torch names them: by the line that each is in, not that of its definition. */
static uint32_t number_of_frame(const struct snd_pyframe *frame)
{
    PyCodeObject *code = snd_pyframe_code(frame);
    int           line = snd_pyframe_line(frame);
    uint32_t      number = snd_py_module_number(code, frame);

    if (number != 0)
        return number;
    return line > 0 ? snd_py_number_at(code, (uint32_t)line) : snd_py_number(code);
}

/*
 * From 3.12 on, what makes an object may have a frame below __init__() that only checks its result: no function,
 * whose code object is the interpreter's own, in memory that cannot be written. It never gets past its first instructions,
 * as functions do before they call anything.
 */
static bool is_function(const struct snd_pyframe *frame)
{
#if PY_VERSION_HEX >= 0x030C0000
    ptrdiff_t done = snd_pyframe_instruction(frame) - snd_pyframe_instructions(frame);

    return done / INSTRUCTION_BYTES >= snd_pyframe_code(frame)->_co_firsttraceable;
#else
    (void)frame;
    return true;
#endif
}

/* Enters the thread's open frames, outermost first, as if they were called now. */
static void adopt(struct snd_calls_thread *t, bool entering)
{
    const struct snd_pyframe *frames[SND_PYTHON_FRAMES_MAX];
    size_t                    count = 0;
    struct snd_pyframe       *frame = snd_pyframe_real(snd_pyframe_mine());

    if (entering && frame)
        frame = snd_pyframe_real(snd_pyframe_caller(frame));
    for (; frame && count < SND_PYTHON_FRAMES_MAX;
         frame = snd_pyframe_real(snd_pyframe_caller(frame)))
        if (is_function(frame))
            frames[count++] = frame;
    while (count-- > 0) {
        uint32_t number = number_of_frame(frames[count]);
        if (number != 0)
            snd_calls_enter(t, number, snd_pyframe_code(frames[count]), false);
    }
}

#else /* a CPython whose frames are not known: its timeline begins with the next calls */

static void adopt(struct snd_calls_thread *t, bool entering)
{
    (void)t;
    (void)entering;
}

#endif

/* ------------------------------------------------------------ garbage collections */

/* One of gc.callbacks: a collection is an event of the timeline, in the call that set it off. */
PyObject *snd_py_collection(PyObject *module, PyObject *args)
{
    static const struct snd_calls_name name = { .name = "Python GC", .name_length = 9, .file = "" };
    const char                        *phase;
    PyObject                          *info;

    (void)module;
    if (!PyArg_ParseTuple(args, "sO:collection", &phase, &info))
        return NULL;
    snd_py_lock();
    struct snd_calls_thread *t = snd_calls.on ? snd_calls_mine(false) : NULL;
    uint32_t                 number = t ? snd_calls_function(&name) : 0;
    if (number != 0 && strcmp(phase, "start") == 0)
        snd_calls_enter(t, number, &name, false);
    else if (number != 0)
        snd_calls_leave_key(t, &name);
    snd_py_unlock();
    Py_RETURN_NONE;
}

/* ------------------------------------------------------------------- on and off */

void snd_py_open_frames_start(PyCodeObject *module_code)
{
    /* A number from an earlier session would be taken for the code's own. */
    if (module_code && !snd_py_set_extra(module_code, snd_py_functions_index, NULL))
        PyErr_Clear();
    snd_py_modules_start(module_code);
    snd_calls.adopt = adopt;
    snd_calls_mine(false); /* this thread's are entered now, the others' at their first event */
}

void snd_py_open_frames_stop(void)
{
    snd_calls.adopt = NULL;
    snd_py_modules_stop();
}
