/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python/record/torch_probe.h - loads the torch probe, a library that is built for the installed torch
 * (sonde/torch/_probe.py), and starts and stops it.
 *
 * Layer:   python.
 * Threads: with the interpreter's lock, which is released while the probe stops.
 */
#ifndef SND_PYTHON_RECORD_TORCH_PROBE_H
#define SND_PYTHON_RECORD_TORCH_PROBE_H

#include <Python.h>

/* torch_start(library, flags, module_function=None, notes=None); `error_class` gives what it raises. */
PyObject *snd_py_torch_start(PyObject *(*error_class)(void), PyObject *args, PyObject *kwargs);
/* Methods without arguments. */
/* There is a process group: what its collectives transfer is recorded from now on. */
PyObject *snd_py_torch_collectives(PyObject *module, PyObject *unused);
PyObject *snd_py_torch_stop(PyObject *module, PyObject *unused);
PyObject *snd_py_torch_describe(PyObject *module, PyObject *unused);
/* torch_compiled(code, is_backward, lines), torch_kernel(kernel, name): see their docstrings. */
PyObject *snd_py_torch_compiled(PyObject *module, PyObject *args);
PyObject *snd_py_torch_kernel(PyObject *module, PyObject *args);

#endif
