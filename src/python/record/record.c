/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde._record - the recording side for Python: start, stop, step, ranges, and the probes.
 *
 * A thin layer over <sonde/record.h>. This file holds the table of functions, and those that mark and
 * query; the recording's start and end are in start_stop.c, the probes in torch_probe.c and cuda_start.c.
 * Built against the limited API of CPython 3.9.
 *
 * Threads: a process has one recording, so this module has one state. The interpreter lock is
 *          released around every call that may wait for the recorder's locks: the callback of a
 *          cycle runs under one of them, and needs the interpreter.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <dlfcn.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sonde/record.h>

#include "probes/torch/shim.h"
#include "python/record/cuda_start.h"
#include "python/record/known_words.h"
#include "python/record/start_stop.h"
#include "python/record/torch_probe.h"

/* ------------------------------------------------------------------- state */

static PyObject *record_epoch(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyLong_FromUnsignedLong(sonde_epoch());
}

static PyObject *record_clock(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyLong_FromUnsignedLongLong(sonde_clock());
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info;
    (void)kind;
    (void)at;
    remove(path);
    return 0;
}

/* In C, so that no function of the standard library is called where the program's are counted. */
static PyObject *record_remove_folder(PyObject *module, PyObject *path)
{
    PyObject *bytes;

    (void)module;
    if (!PyUnicode_FSConverter(path, &bytes))
        return NULL;
    nftw(PyBytes_AsString(bytes), remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
    Py_DECREF(bytes);
    Py_RETURN_NONE;
}

static PyObject *record_path(PyObject *module, PyObject *unused)
{
    char path[PATH_MAX];

    (void)module;
    (void)unused;
    Py_BEGIN_ALLOW_THREADS
    sonde_trace_path(path, sizeof path);
    Py_END_ALLOW_THREADS
    return PyUnicode_DecodeFSDefault(path);
}

/* ------------------------------------------------------------- marks by hand */

static PyObject *record_rank(PyObject *module, PyObject *args)
{
    unsigned    rank, world_size;
    const char *backend;

    (void)module;
    if (!PyArg_ParseTuple(args, "IIs:rank", &rank, &world_size, &backend))
        return NULL;
    sonde_rank(rank, world_size, "torch.distributed", backend);
    Py_RETURN_NONE;
}

static PyObject *record_metadata(PyObject *module, PyObject *args)
{
    PyObject *texts[2], *bytes[2] = { NULL, NULL };

    (void)module;
    if (!PyArg_ParseTuple(args, "UU:metadata", &texts[0], &texts[1]))
        return NULL;
    for (int i = 0; i < 2; i++) /* names of files may have bytes that are no UTF-8 */
        bytes[i] = PyUnicode_AsEncodedString(texts[i], "utf-8", "surrogateescape");
    const char *key = bytes[0] ? PyBytes_AsString(bytes[0]) : NULL;
    const char *value = bytes[1] ? PyBytes_AsString(bytes[1]) : NULL;
    if (key && value) {
        Py_BEGIN_ALLOW_THREADS
        sonde_metadata(key, value);
        Py_END_ALLOW_THREADS
    }
    Py_XDECREF(bytes[0]);
    Py_XDECREF(bytes[1]);
    if (!key || !value)
        return NULL;
    Py_RETURN_NONE;
}

/* Calls `function` with the bytes of a string object; none is made when nothing records. */
static PyObject *with_text(PyObject *text, void (*function)(const char *))
{
    if (!PyUnicode_Check(text)) {
        PyErr_SetString(PyExc_TypeError, "a name must be a str");
        return NULL;
    }
    if (sonde_epoch() != 0) {
        PyObject *bytes = PyUnicode_AsEncodedString(text, "utf-8", "surrogatepass");
        if (!bytes)
            return NULL;
        function(PyBytes_AsString(bytes));
        Py_DECREF(bytes);
    }
    Py_RETURN_NONE;
}

static PyObject *record_begin(PyObject *module, PyObject *name)
{
    (void)module;
    return with_text(name, sonde_begin_text);
}

static PyObject *record_mark(PyObject *module, PyObject *name)
{
    (void)module;
    return with_text(name, sonde_mark);
}

static PyObject *record_thread_name(PyObject *module, PyObject *name)
{
    (void)module;
    return with_text(name, sonde_thread_name);
}

static PyObject *record_counter(PyObject *module, PyObject *args)
{
    const char *name;
    double      value;

    (void)module;
    if (!PyArg_ParseTuple(args, "sd:counter", &name, &value))
        return NULL;
    sonde_counter(name, value);
    Py_RETURN_NONE;
}

static PyObject *record_end(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    sonde_end();
    Py_RETURN_NONE;
}

/* Where the recorder's library is: what is built for this process must be linked to it. */
static PyObject *record_library(PyObject *module, PyObject *unused)
{
    Dl_info info;

    (void)module;
    (void)unused;
    if (dladdr((void *)(uintptr_t)sonde_lane_epoch_page(), &info) == 0 || !info.dli_fname)
        Py_RETURN_NONE;
    return PyUnicode_DecodeFSDefault(info.dli_fname);
}

/* ------------------------------------------------------------------- probes */

static PyObject *torch_start(PyObject *module, PyObject *args, PyObject *kwargs)
{
    (void)module;
    return snd_py_torch_start(snd_py_error_class, args, kwargs);
}

static PyObject *cuda_start(PyObject *module, PyObject *args, PyObject *kwargs)
{
    (void)module;
    return snd_py_cuda_start(snd_py_error_class, args, kwargs);
}

/* Not kept in Python, which a program may end and begin anew within one recording. */
static PyObject *record_new_session(PyObject *module, PyObject *unused)
{
    static unsigned long last;

    (void)module;
    (void)unused;
    return PyLong_FromUnsignedLong(++last);
}

/* ------------------------------------------------------------------ the module */

#define METHOD(f) ((PyCFunction)(void (*)(void))(f))

static PyMethodDef methods[] = {
    { "start", METHOD(snd_py_start), METH_VARARGS | METH_KEYWORDS,
      "start(path=None, max_bytes=0, keep_last=False, schedule=None, on_cycle=None, rank=None, "
      "world_size=None, overwrite=True): begins a recording; on_cycle(path, index, step)" },
    { "stop", METHOD(snd_py_stop), METH_NOARGS, "stop(): ends it and closes the file" },
    { "step", METHOD(snd_py_step), METH_VARARGS,
      "step(number=None): a new step begins; a schedule counts for itself" },
    { "under_run", METHOD(snd_py_under_run), METH_NOARGS,
      "under_run() -> bool: the recording is that of `sonde run`" },
    { "pause", METHOD(snd_py_pause), METH_NOARGS, NULL },
    { "resume", METHOD(snd_py_resume), METH_NOARGS, NULL },
    { "epoch", METHOD(record_epoch), METH_NOARGS, "epoch() -> int: 0 when nothing records" },
    { "clock", METHOD(record_clock), METH_NOARGS, "clock() -> int: of the recorder, raw" },
    { "remove_folder", METHOD(record_remove_folder), METH_O,
      "remove_folder(path): and all that is in it, as far as that can be" },
    { "path", METHOD(record_path), METH_NOARGS, "path() -> str: the file being written, or ''" },
    { "schedule_action", METHOD(snd_py_schedule_action), METH_VARARGS,
      "schedule_action(schedule, step) -> int: 0 none, 1 warm-up, 2 record, 3 record and save" },
    { "new_session", METHOD(record_new_session), METH_NOARGS,
      "new_session() -> int: a number, from 1, that no session of this process has had" },
    { "rank", METHOD(record_rank), METH_VARARGS,
      "rank(rank, world_size, backend): which process of a job this is, as torch.distributed has "
      "it" },
    { "metadata", METHOD(record_metadata), METH_VARARGS, "metadata(key, value): about the run" },
    { "fact", METHOD(snd_py_record_fact), METH_VARARGS,
      "fact(kind, members, subject='', number=0): what is said of the run, typed; members are "
      "pairs "
      "of a field and its value" },
    { "begin", METHOD(record_begin), METH_O, "begin(name): a range of this thread, until end()" },
    { "end", METHOD(record_end), METH_NOARGS, NULL },
    { "mark", METHOD(record_mark), METH_O, "mark(name): a moment" },
    { "counter", METHOD(record_counter), METH_VARARGS, "counter(name, value): a number, now" },
    { "thread_name", METHOD(record_thread_name), METH_O, NULL },
    { "library", METHOD(record_library), METH_NOARGS, "library() -> str: the recorder's file" },
    { "torch_start", METHOD(torch_start), METH_VARARGS | METH_KEYWORDS,
      "torch_start(library, flags, module_function=None, notes=None): torch's operators from now "
      "on" },
    { "torch_collectives", METHOD(snd_py_torch_collectives), METH_NOARGS,
      "torch_collectives(): from now on, what calls of process groups transfer" },
    { "torch_stop", METHOD(snd_py_torch_stop), METH_NOARGS, NULL },
    { "torch_describe", METHOD(snd_py_torch_describe), METH_NOARGS,
      "torch_describe() -> str: what is recorded of torch and how, as JSON" },
    { "torch_compiled", METHOD(snd_py_torch_compiled), METH_VARARGS,
      "torch_compiled(code, is_backward, lines): lines of generated code that call a kernel, and "
      "its module: (first, last, path below the module that the code runs in, path if in none)" },
    { "torch_kernel", METHOD(snd_py_torch_kernel), METH_VARARGS,
      "torch_kernel(kernel, name) -> an object that is called as the kernel is, and is a range "
      "meanwhile; None: the probe has none" },
    { "cuda_start", METHOD(cuda_start), METH_VARARGS | METH_KEYWORDS,
      "cuda_start(library, cupti=None, share=False, light=False) -> str: the GPUs' work from now "
      "on; what is "
      "missing, or ''" },
    { "cuda_stop", METHOD(snd_py_cuda_stop), METH_NOARGS, NULL },
    { "cuda_again", METHOD(snd_py_cuda_again), METH_NOARGS,
      "cuda_again(): another profiler has used CUPTI meanwhile" },
    { "cuda_describe", METHOD(snd_py_cuda_describe), METH_NOARGS,
      "cuda_describe() -> str: what is recorded of CUDA and how, as JSON" },
    { "gpu_energy", METHOD(snd_py_gpu_energy), METH_VARARGS,
      "gpu_energy(uuid) -> int | None: microjoules that the GPU has used, by its own counter" },
    { NULL, NULL, 0, NULL },
};

/*
 * Without m_methods, by which faulthandler knows the modules that it lists when a program crashes:
 * that list is of modules which the program has chosen to load.
 */
static struct PyModuleDef record_module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "sonde._record",
    .m_doc = "The recording side of sonde: see the package.",
    .m_size = -1,
};

static int add_flags(PyObject *module)
{
    return PyModule_AddIntConstant(module, "TORCH_SHAPES", SONDE_TORCH_SHAPES) == 0 &&
           PyModule_AddIntConstant(module, "TORCH_MEMORY", SONDE_TORCH_MEMORY) == 0 &&
           PyModule_AddIntConstant(module, "TORCH_STACKS", SONDE_TORCH_STACKS) == 0 &&
           PyModule_AddIntConstant(module, "TORCH_MODULES", SONDE_TORCH_MODULES) == 0 &&
           PyModule_AddIntConstant(module, "TORCH_OVERLOADS", SONDE_TORCH_OVERLOADS) == 0 &&
           PyModule_AddIntConstant(module, "TORCH_WRAP_ALLOCATOR", SONDE_TORCH_WRAP_ALLOCATOR) ==
               0 &&
           PyModule_AddIntConstant(module, "TORCH_EMPTY", SONDE_TORCH_EMPTY) == 0 &&
           PyModule_AddIntConstant(module, "TORCH_OPEN_FRAMES", SONDE_TORCH_OPEN_FRAMES) == 0;
}

PyMODINIT_FUNC PyInit__record(void);
PyMODINIT_FUNC PyInit__record(void)
{
    PyObject *module = PyModule_Create(&record_module);

    if (module) {
        snd_py_forget_interpreter();
        if (PyModule_AddFunctions(module, methods) != 0 || !add_flags(module) ||
            !snd_py_add_schema(module)) {
            Py_DECREF(module);
            module = NULL;
        }
    }
#ifdef Py_GIL_DISABLED /* what the recorder has is made for any number of threads */
    if (module)
        PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED);
#endif
    return module;
}
