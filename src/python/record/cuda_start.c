/* SPDX-License-Identifier: Apache-2.0 */
#include "python/record/cuda_start.h"

#include <dlfcn.h>
#include <string.h>

#include "probes/cuda/cuda.h"
#include "probes/cuda/energy.h"

/* The library is never closed: CUPTI's thread may be in it. */
static struct {
    void *library;
    int (*start)(const struct sonde_cuda_options *);
    void (*stop)(void);
    void (*again)(void);
    const char *(*error)(void);
    const char *(*describe)(void);
} probe;

static int bind(const char *name, void *function, size_t size)
{
    void *symbol = probe.library ? dlsym(probe.library, name) : NULL;

    memcpy(function, &symbol, size);
    return symbol != NULL;
}
#define BIND(name) bind("sonde_cuda_" #name, &probe.name, sizeof probe.name)

/* False with an exception set. */
static int open_probe(PyObject *(*error_class)(void), const char *path)
{
    if (probe.library)
        return 1;
    probe.library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (BIND(start) && BIND(stop) && BIND(again) && BIND(error) && BIND(describe))
        return 1;
    const char *why = dlerror();
    PyErr_Format(error_class(), "cannot load the CUDA probe %s: %s", path,
                 why ? why : "it is not one");
    probe.library = NULL;
    return 0;
}

PyObject *snd_py_cuda_start(PyObject *(*error_class)(void), PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "library", "cupti", "share", "light", NULL };
    PyObject    *path = NULL;
    const char  *cupti = NULL;
    int          share = 0, light = 0, result = -1;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|zpp:cuda_start", names,
                                     PyUnicode_FSConverter, &path, &cupti, &share, &light))
        return NULL;
    int opened = open_probe(error_class, PyBytes_AsString(path));
    Py_DECREF(path);
    if (!opened)
        return NULL;
    struct sonde_cuda_options options = { sizeof options, cupti, share != 0, light != 0 };
    Py_BEGIN_ALLOW_THREADS
    result = probe.start(&options);
    Py_END_ALLOW_THREADS
    if (result < 0)
        return PyErr_Format(error_class(), "%s", probe.error());
    return PyUnicode_FromString(probe.error());
}

/* Calls the probe, if it is open, without the interpreter's lock. */
static PyObject *call(void (*function)(void))
{
    PyThreadState *state = function ? PyEval_SaveThread() : NULL;

    if (function) {
        function();
        PyEval_RestoreThread(state);
    }
    Py_RETURN_NONE;
}

PyObject *snd_py_cuda_stop(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return call(probe.stop);
}

PyObject *snd_py_cuda_again(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return call(probe.again);
}

PyObject *snd_py_cuda_describe(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyUnicode_FromString(probe.library ? probe.describe() : "");
}

PyObject *snd_py_gpu_energy(PyObject *module, PyObject *args)
{
    const char *uuid;
    uint64_t    microjoules = 0;
    bool        is_told = false;

    (void)module;
    if (!PyArg_ParseTuple(args, "s:gpu_energy", &uuid))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    is_told = snd_gpu_energy(uuid, &microjoules);
    Py_END_ALLOW_THREADS
    if (is_told)
        return PyLong_FromUnsignedLongLong(microjoules);
    Py_RETURN_NONE;
}
