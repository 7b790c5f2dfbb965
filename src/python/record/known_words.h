/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python/record/known_words.h - what src/format declares, for Python: keys of metadata and names of
 * ranges as dicts, facts as a function.
 *
 * Layer: python. Threads: with the interpreter lock held.
 */
#ifndef SND_PYTHON_RECORD_KNOWN_WORDS_H
#define SND_PYTHON_RECORD_KNOWN_WORDS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

/* Adds METADATA and NAMES. False with an exception. */
bool snd_py_add_schema(PyObject *module);

/* fact(kind, members, subject='', number=0) */
PyObject *snd_py_record_fact(PyObject *module, PyObject *args);

#endif
