/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/python/common.h - what the probes of Python programs share: names of code objects,
 * a probe's extra word in each code object, errors.
 *
 * sonde._python is one extension module, built for one CPython. Each probe is a file here with a
 * table of methods; src/python/record/python.c joins the tables.
 *
 * Layer:   probes.
 * Threads: everything is called with the interpreter lock held; in a CPython without one, with the
 *          probes' own (snd_py_lock).
 */
#ifndef SND_PROBES_PYTHON_COMMON_H
#define SND_PROBES_PYTHON_COMMON_H

#include "pystack/interpreter/pyframes.h" /* Python.h comes first, as it asks to */

#include <stdbool.h>
#include <stdint.h>

#include <sonde/record.h>

#include "format/layout.h"
#include "format/metadata.h"

#if PY_VERSION_HEX < 0x03090000
#error "CPython 3.9 or later"
#endif

/*
 * The frame that runs now, of the code that an event is about: an address that no other frame has while
 * this one lives. Of a CPython whose frames are not known it is the frame's object, which lives as long.
 */
static inline const void *snd_py_frame_running(void)
{
#ifdef SND_PYFRAMES_MISSING
    return PyEval_GetFrame();
#elif PY_VERSION_HEX >= 0x030D0000
    return snd_pyframe_top(PyThreadState_GetUnchecked());
#elif PY_VERSION_HEX >= 0x030B0000
    return snd_pyframe_real(snd_pyframe_top(_PyThreadState_UncheckedGet()));
#else
    return snd_pyframe_top(_PyThreadState_UncheckedGet());
#endif
}

#ifdef SND_PYFRAMES_MISSING
/* As pyframes.h has it, by the interface that every CPython has. */
static inline void *snd_py_extra(PyCodeObject *code, Py_ssize_t index)
{
    void *extra = NULL;

    if (index >= 0 && PyUnstable_Code_GetExtra((PyObject *)code, index, &extra) != 0)
        PyErr_Clear();
    return extra;
}
#endif

/* METH_FASTCALL, METH_KEYWORDS and METH_NOARGS functions in a table of PyMethodDef. */
#define SND_PY_METHOD(f) ((PyCFunction)(void (*)(void))(f))

/* Methods of each probe, ended by a NULL name. */
extern PyMethodDef snd_py_functions_methods[];
extern PyMethodDef snd_py_imports_methods[];
extern PyMethodDef snd_py_children_methods[];
extern PyMethodDef snd_py_forks_methods[];
extern PyMethodDef snd_py_lines_methods[], snd_py_line_sessions_methods[];
extern PyMethodDef snd_py_line_memory_methods[];
extern PyMethodDef snd_py_sampler_methods[];

/*
 * sonde.Error, borrowed. It is loaded when it is first needed: it is the reading side's, which a
 * recorded program does without.
 */
PyObject *snd_py_error_class(void);

/* ---------------------------------------------------------------------- lives */

/*
 * A program may end Python (Py_FinalizeEx) and begin it anew; this library stays. As the module is
 * made again, each probe turns off what the interpreter that ended had left on, and forgets its
 * objects, places in code objects and hooks. They are not released: they are gone.
 */
void snd_py_common_renew(void);
void snd_py_functions_renew(void);
void snd_py_imports_renew(void);
void snd_py_children_renew(void);
void snd_py_forks_renew(void);
void snd_py_lines_renew(void);
void snd_py_line_memory_renew(void);
void snd_py_sampler_renew(void);

/* ----------------------------------------------------------------------- lock */

/*
 * Where there is no interpreter lock, the probes have one of their own around each event and each change of
 * what is recorded, as cProfile has. It is CPython's kind of mutex: a thread that waits for it does not keep
 * others from stopping the world. Not held while Python code may run: that has events, too.
 */
#ifdef Py_GIL_DISABLED
extern PyMutex snd_py_mutex_;

static inline void snd_py_lock(void)
{
    PyMutex_Lock(&snd_py_mutex_);
}

static inline void snd_py_unlock(void)
{
    PyMutex_Unlock(&snd_py_mutex_);
}
#else
static inline void snd_py_lock(void)
{
}

static inline void snd_py_unlock(void)
{
}
#endif

/* Once a process: a forked child finds the lock free, and what it guards whole. */
void snd_py_lock_init(void);

/* ---------------------------------------------------------------------- names */

/*
 * Bytes of a str: of a file name, those of the file system. Borrowed from the str or from *owned,
 * which the caller releases. No exception is left.
 */
const char *snd_py_bytes(PyObject *text, PyObject **owned, size_t *length);

/* The id of a str in the current recording; 0: nothing records, or out of memory (no exception). */
uint32_t snd_py_intern(PyObject *text);

/* ---------------------------------------------------------------------- hooks */

/*
 * A C function of a module whose calls are redirected to one of ours, which calls real->ml_meth.
 * The Python object stays the same, so that callers that hold it reach ours as well.
 */
struct snd_py_override {
    const char        *module, *name;
    PyCFunction        ours;
    PyCFunctionObject *function; /* owned; NULL: not overridden */
    PyMethodDef       *real, definition;
};
/* False, without an exception, if there is no such function. */
bool snd_py_override(struct snd_py_override *override);
void snd_py_override_undo(struct snd_py_override *override);

/*
 * Between these two no trace or profile function of this thread is called: what runs there is our own
 * Python code, in the middle of the program's.
 */
void snd_py_hide_begin(void);
void snd_py_hide_end(void);

#if PY_VERSION_HEX < 0x030C0000
/* After a change of a thread's trace or profile function. */
void snd_py_update_tracing(PyThreadState *thread);
#endif

/*
 * Calls an empty Python function of ours and returns whether our hook, which is off, was called and
 * set *reached. If so, another tool's hook still calls ours, and installing ours again over theirs
 * would make the two call each other without end.
 */
bool snd_py_is_reached(bool *reached);

/* -------------------------- a probe's own word in a code object (read by snd_py_extra) */

/*
 * Takes an index of code objects' extra words; `release` is called with the word of a code object
 * that is freed, if it has one. Once for each probe and process: CPython has 255. Returns -1 when
 * there is none left.
 */
Py_ssize_t snd_py_extra_index(freefunc release);

/* False when memory ran out, with an exception set. A word that was there is not released. */
bool snd_py_set_extra(PyCodeObject *code, Py_ssize_t index, void *extra);

#endif
