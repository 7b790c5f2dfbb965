/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python/record/cuda_start.h - loads the CUDA probe (probes/cuda/cuda.h) on first use, and starts and
 * stops it.
 *
 * Layer:   python.
 * Threads: with the interpreter's lock, which is let go of while the GPU is waited for.
 */
#ifndef SND_PYTHON_RECORD_CUDA_START_H
#define SND_PYTHON_RECORD_CUDA_START_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* cuda_start(library, cupti=None, share=False, light=False) -> str: "" or what is missing; raises error_class(). */
PyObject *snd_py_cuda_start(PyObject *(*error_class)(void), PyObject *args, PyObject *kwargs);
PyObject *snd_py_cuda_stop(PyObject *module, PyObject *unused);
PyObject *snd_py_cuda_again(PyObject *module, PyObject *unused);
PyObject *snd_py_cuda_describe(PyObject *module, PyObject *unused);

/* gpu_energy(uuid) -> int | None: microjoules that the GPU has used, by NVML. */
PyObject *snd_py_gpu_energy(PyObject *module, PyObject *args);

#endif
