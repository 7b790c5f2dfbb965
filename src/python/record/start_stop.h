/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python/record/start_stop.h - the life of a recording: start, stop, step, pause, and the callback that
 * each finished cycle of a schedule calls.
 *
 * Layer:   python.
 * Threads: with the interpreter lock held, which is released while the recorder works.
 */
#ifndef SND_PYTHON_RECORD_START_STOP_H
#define SND_PYTHON_RECORD_START_STOP_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* sonde.Error, or RuntimeError where the reading side cannot be loaded. Borrowed. */
PyObject *snd_py_error_class(void);

/* Methods; an exception that the callback raised is raised by the call that led to it. */
PyObject *snd_py_start(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *snd_py_stop(PyObject *module, PyObject *unused);
PyObject *snd_py_step(PyObject *module, PyObject *args);
PyObject *snd_py_under_run(PyObject *module, PyObject *unused);
PyObject *snd_py_pause(PyObject *module, PyObject *unused);
PyObject *snd_py_resume(PyObject *module, PyObject *unused);
PyObject *snd_py_schedule_action(PyObject *module, PyObject *args);

/* Drops, without releasing them, the objects of an interpreter that has ended. */
void snd_py_forget_interpreter(void);

#endif
