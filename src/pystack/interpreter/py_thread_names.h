/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pystack/interpreter/py_thread_names.h - what a Python program calls its threads, read from its memory.
 *
 * Layer: pystack. Threads: one.
 */
#ifndef SND_PYSTACK_INTERPRETER_PY_THREAD_NAMES_H
#define SND_PYSTACK_INTERPRETER_PY_THREAD_NAMES_H

#include "pystack/interpreter/interpreters.h"

/* threading._active of an interpreter, once it was found. All zero: not yet. */
struct snd_py_active {
    uint64_t interp, dict;
};

/*
 * The name of a thread; NULL where it cannot be had: the program did not import threading, has just
 * begun the thread, or changes the table meanwhile. Owns: the caller frees it.
 */
char *snd_python_thread_name(const struct snd_python *python, const struct snd_py_thread *thread,
                             struct snd_py_active *active);

#endif
