/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pystack/interpreter/range_depth.h - how many Python frames a range lies in that the calling thread opens.
 *
 * Python functions run in such a range, and samples have their frames: it belongs after those that were there when it
 * began. What only opens it (record_function.__enter__) has returned by then, and does not count.
 *
 * A header, in the common subset of C and C++, as pyframes.h: both torch probes ask for it. Nothing is allocated, and
 * the interpreter lock may be free.
 *
 * Layer: pystack; needs Python.h, so it is for the probes alone.
 */
#ifndef SND_PYSTACK_INTERPRETER_RANGE_DEPTH_H
#define SND_PYSTACK_INTERPRETER_RANGE_DEPTH_H

#include "pystack/interpreter/pyframes.h" /* Python.h comes first, as it asks to */

#ifndef SND_PYFRAMES_MISSING

#include <stdbool.h>
#include <string.h>

#include "format/limits.h"

/* Whether `part`, in ASCII, stands in the text from its `at`-th character on. */
static inline bool snd_range_text_at(PyObject *text, Py_ssize_t at, const char *part)
{
    Py_ssize_t length = (Py_ssize_t)strlen(part);

    if (at < 0 || at + length > PyUnicode_GET_LENGTH(text))
        return false;
    for (Py_ssize_t i = 0; i < length; i++)
        if (PyUnicode_READ_CHAR(text, at + i) != (Py_UCS4)part[i])
            return false;
    return true;
}

static inline bool snd_range_text_is(PyObject *text, const char *whole)
{
    return text && PyUnicode_Check(text) &&
           PyUnicode_GET_LENGTH(text) == (Py_ssize_t)strlen(whole) &&
           snd_range_text_at(text, 0, whole);
}

static inline bool snd_range_text_ends(PyObject *text, const char *end)
{
    return text && PyUnicode_Check(text) &&
           snd_range_text_at(text, PyUnicode_GET_LENGTH(text) - (Py_ssize_t)strlen(end), end);
}

static inline bool snd_range_text_has(PyObject *text, const char *part)
{
    if (!text || !PyUnicode_Check(text))
        return false;
    if (PyUnicode_IS_COMPACT_ASCII(text)) /* nearly all: ends with a NUL */
        return strstr((const char *)PyUnicode_DATA(text), part) != NULL;
    for (Py_ssize_t at = 0; at < PyUnicode_GET_LENGTH(text); at++)
        if (snd_range_text_at(text, at, part))
            return true;
    return false;
}

/* Whether the function only opens a range and returns: it is no part of what runs in the range. */
static inline bool snd_range_only_opens(PyCodeObject *code)
{
    static const char *const files[] = { "/torch/autograd/profiler.py", "/torch/_ops.py",
                                         "/torch/profiler/profiler.py", "/sonde/torch/" };

    if (snd_range_text_is(code->co_name, "__enter__"))
        return true;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (snd_range_text_has(code->co_filename, files[i]))
            return true;
    return false;
}

/* __enter__ of a @contextmanager: the function that it calls returns at its `yield`. */
static inline bool snd_range_is_manager(PyCodeObject *code)
{
    return snd_range_text_is(code->co_name, "__enter__") &&
           snd_range_text_ends(code->co_filename, "/contextlib.py");
}

/* Of a range that begins now; 0: not known, or none. */
static inline unsigned snd_range_depth(void)
{
    unsigned depth = 0, left = 0; /* left: the innermost ones, which will have returned */
    struct snd_pyframe *caller = NULL;

    for (struct snd_pyframe *f = snd_pyframe_real(snd_pyframe_mine()); f; f = caller, depth++) {
        if (depth == SND_PYTHON_FRAMES_MAX)
            return 0; /* samples leave outer ones out */
        caller = snd_pyframe_real(snd_pyframe_caller(f));
        if (left == depth && (snd_range_only_opens(snd_pyframe_code(f)) ||
                              (caller && snd_range_is_manager(snd_pyframe_code(caller)))))
            left++;
    }
    return depth - left;
}

#endif /* SND_PYFRAMES_MISSING */
#endif
