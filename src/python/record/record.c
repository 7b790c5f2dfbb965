/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde._record - the recording side for Python: start, stop, step, ranges, and the probes.
 *
 * A thin layer over <sonde/record.h>; the probes for torch and CUDA are in torchprobe.c and cuda.c.
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
#include "python/record/cuda.h"
#include "python/record/schema.h"
#include "python/record/torchprobe.h"

static PyObject *known_error_class; /* sonde.Error, once it was needed */

/* ------------------------------------------------------------------- errors */

/* Not loaded before it is needed: it is the reading side's, which a recorded program does without. */
static PyObject *error_class(void)
{
    if (!known_error_class) {
        PyObject *core = PyImport_ImportModule("sonde._core");
        known_error_class = core ? PyObject_GetAttrString(core, "Error") : NULL;
        Py_XDECREF(core);
        PyErr_Clear();
    }
    return known_error_class ? known_error_class : PyExc_RuntimeError;
}

static PyObject *raise_error(const struct sonde_error *err)
{
    PyObject *exception = PyObject_CallFunction(error_class(), "s", err->message);

    if (!exception)
        return NULL;
    PyObject *status = PyLong_FromLong(err->status);
    PyObject *os_error = PyLong_FromLong(err->os_error);
    if (status && os_error && PyObject_SetAttrString(exception, "status", status) == 0 &&
        PyObject_SetAttrString(exception, "os_error", os_error) == 0)
        PyErr_SetObject(error_class(), exception);
    Py_XDECREF(status);
    Py_XDECREF(os_error);
    Py_DECREF(exception);
    return NULL;
}

/* ------------------------------------------------------------ start and stop */

static PyObject *cycle_function; /* owned; NULL without a recording that has one */
static PyObject *cycle_error[3]; /* raised by it, until the call that led there returns */

/* Runs on the thread in step() or stop(), which has let the interpreter lock go. */
static void call_cycle(const struct sonde_cycle *cycle, void *unused)
{
    (void)unused;
    if (!Py_IsInitialized()) /* the process ends with a recording under way */
        return;
    PyGILState_STATE state = PyGILState_Ensure();
    if (cycle_function) {
        PyObject *function = cycle_function;
        Py_INCREF(function);
        PyObject *path = PyUnicode_DecodeFSDefault(cycle->path);
        PyObject *result = path ? PyObject_CallFunction(function, "OIK", path,
                                                        (unsigned)cycle->index,
                                                        (unsigned long long)cycle->step)
                                : NULL;
        if (!result && !cycle_error[0])
            PyErr_Fetch(&cycle_error[0], &cycle_error[1], &cycle_error[2]);
        else if (!result)
            PyErr_WriteUnraisable(function);
        Py_XDECREF(result);
        Py_XDECREF(path);
        Py_DECREF(function);
    }
    PyGILState_Release(state);
}

/* None; or what the callback of a cycle raised meanwhile. */
static PyObject *none_or_cycle_error(void)
{
    if (!cycle_error[0])
        Py_RETURN_NONE;
    PyErr_Restore(cycle_error[0], cycle_error[1], cycle_error[2]);
    memset(cycle_error, 0, sizeof cycle_error);
    return NULL;
}

static void set_cycle_function(PyObject *function)
{
    PyObject *before = cycle_function;

    Py_XINCREF(function);
    cycle_function = function;
    Py_XDECREF(before);
}

static int parse_schedule(PyObject *object, struct sonde_schedule *s)
{
    if (!object || object == Py_None)
        return 1;
    if (!PyTuple_Check(object)) {
#define SND_SCHEDULE(name) ", " #name
        static const char fields[] =
#include "format/schedule.def"
            ;
#undef SND_SCHEDULE
        PyErr_Format(PyExc_TypeError, "schedule: expected a tuple of %s", fields + 2);
        return 0;
    }
    return PyArg_ParseTuple(object, "IIIIII", &s->wait, &s->warmup, &s->active, &s->repeat,
                            &s->skip_first, &s->skip_first_wait);
}

static int parse_number(PyObject *object, uint32_t *out)
{
    if (!object || object == Py_None)
        return 1;
    unsigned long value = PyLong_AsUnsignedLong(object);
    if (PyErr_Occurred())
        return 0;
    if (value >= UINT32_MAX) {
        PyErr_SetString(PyExc_OverflowError, "rank and world_size must be less than 2**32 - 1");
        return 0;
    }
    *out = (uint32_t)value;
    return 1;
}

static PyObject *record_start(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char         *names[] = { "path", "max_bytes",  "keep_last", "schedule", "on_cycle",
                                     "rank", "world_size", "overwrite", NULL };
    struct sonde_options options = SONDE_OPTIONS_INIT;
    PyObject *path = NULL, *schedule = NULL, *on_cycle = Py_None, *rank = NULL, *world = NULL;
    unsigned long long max_bytes = 0;
    int                keep_last = 0, overwrite = 1;

    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O&KpOOOOp:start", names, PyUnicode_FSConverter,
                                     &path, &max_bytes, &keep_last, &schedule, &on_cycle, &rank,
                                     &world, &overwrite))
        return NULL;
    if (!parse_schedule(schedule, &options.schedule) || !parse_number(rank, &options.rank) ||
        !parse_number(world, &options.world_size)) {
        Py_XDECREF(path);
        return NULL;
    }
    options.path = path ? PyBytes_AsString(path) : NULL;
    options.max_bytes = max_bytes;
    options.limit = keep_last ? SONDE_LIMIT_KEEP_LAST : SONDE_LIMIT_STOP;
    options.overwrite = overwrite != 0;
    options.on_cycle = on_cycle == Py_None ? NULL : call_cycle;

    struct sonde_error err = { 0 };
    enum sonde_status  status;
    Py_BEGIN_ALLOW_THREADS
    status = sonde_start(&options, &err);
    Py_END_ALLOW_THREADS
    Py_XDECREF(path);
    if (status != SONDE_OK)
        return raise_error(&err);
    set_cycle_function(on_cycle == Py_None ? NULL : on_cycle);
    return none_or_cycle_error();
}

static PyObject *record_stop(PyObject *module, PyObject *unused)
{
    struct sonde_error err = { 0 };
    enum sonde_status  status;

    (void)module;
    (void)unused;
    Py_BEGIN_ALLOW_THREADS
    status = sonde_stop(&err);
    Py_END_ALLOW_THREADS
    if (status != SONDE_OK)
        return raise_error(&err);
    set_cycle_function(NULL);
    return none_or_cycle_error();
}

static PyObject *record_step(PyObject *module, PyObject *args)
{
    PyObject *given = Py_None;

    (void)module;
    if (!PyArg_ParseTuple(args, "|O:step", &given))
        return NULL;
    unsigned long long number = given == Py_None ? 0 : PyLong_AsUnsignedLongLong(given);
    if (PyErr_Occurred())
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    if (given == Py_None)
        sonde_step();
    else
        sonde_step_number(number);
    Py_END_ALLOW_THREADS
    return none_or_cycle_error();
}

static PyObject *record_under_run(PyObject *module, PyObject *unused)
{
    bool answer;

    (void)module;
    (void)unused;
    Py_BEGIN_ALLOW_THREADS
    answer = sonde_under_run();
    Py_END_ALLOW_THREADS
    return PyBool_FromLong(answer);
}

static PyObject *record_pause(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    Py_BEGIN_ALLOW_THREADS
    sonde_pause();
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static PyObject *record_resume(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    Py_BEGIN_ALLOW_THREADS
    sonde_resume();
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

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

static PyObject *record_action(PyObject *module, PyObject *args)
{
    struct sonde_schedule schedule = { 0, 0, 0, 0, 0, 0 };
    unsigned long long    step;
    PyObject             *tuple;

    (void)module;
    if (!PyArg_ParseTuple(args, "OK:schedule_action", &tuple, &step) ||
        !parse_schedule(tuple, &schedule))
        return NULL;
    return PyLong_FromLong(sonde_schedule_action(&schedule, step));
}

/* ------------------------------------------------------------- marks by hand */

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
    if (dladdr((void *)(uintptr_t)&sonde_epoch_, &info) == 0 || !info.dli_fname)
        Py_RETURN_NONE;
    return PyUnicode_DecodeFSDefault(info.dli_fname);
}

/* ------------------------------------------------------------------- probes */

static PyObject *torch_start(PyObject *module, PyObject *args, PyObject *kwargs)
{
    (void)module;
    return snd_py_torch_start(error_class, args, kwargs);
}

static PyObject *cuda_start(PyObject *module, PyObject *args, PyObject *kwargs)
{
    (void)module;
    return snd_py_cuda_start(error_class, args, kwargs);
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
    { "start", METHOD(record_start), METH_VARARGS | METH_KEYWORDS,
      "start(path=None, max_bytes=0, keep_last=False, schedule=None, on_cycle=None, rank=None, "
      "world_size=None, overwrite=True): begins a recording; on_cycle(path, index, step)" },
    { "stop", METHOD(record_stop), METH_NOARGS, "stop(): ends it and closes the file" },
    { "step", METHOD(record_step), METH_VARARGS,
      "step(number=None): a new step begins; a schedule counts for itself" },
    { "under_run", METHOD(record_under_run), METH_NOARGS,
      "under_run() -> bool: the recording is that of `sonde run`" },
    { "pause", METHOD(record_pause), METH_NOARGS, NULL },
    { "resume", METHOD(record_resume), METH_NOARGS, NULL },
    { "epoch", METHOD(record_epoch), METH_NOARGS, "epoch() -> int: 0 when nothing records" },
    { "clock", METHOD(record_clock), METH_NOARGS, "clock() -> int: of the recorder, raw" },
    { "remove_folder", METHOD(record_remove_folder), METH_O,
      "remove_folder(path): and all that is in it, as far as that can be" },
    { "path", METHOD(record_path), METH_NOARGS, "path() -> str: the file being written, or ''" },
    { "schedule_action", METHOD(record_action), METH_VARARGS,
      "schedule_action(schedule, step) -> int: 0 none, 1 warm-up, 2 record, 3 record and save" },
    { "new_session", METHOD(record_new_session), METH_NOARGS,
      "new_session() -> int: a number, from 1, that no session of this process has had" },
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
      "torch_start(library, flags, module_code=None, notes=None): torch's operators from now on" },
    { "torch_stop", METHOD(snd_py_torch_stop), METH_NOARGS, NULL },
    { "torch_describe", METHOD(snd_py_torch_describe), METH_NOARGS,
      "torch_describe() -> str: what is recorded of torch and how, as JSON" },
    { "cuda_start", METHOD(cuda_start), METH_VARARGS | METH_KEYWORDS,
      "cuda_start(library, cupti=None, share=False) -> str: the GPUs' work from now on; what is "
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

static struct PyModuleDef record_module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "sonde._record",
    .m_doc = "The recording side of sonde: see the package.",
    .m_size = -1,
    .m_methods = methods,
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
           PyModule_AddIntConstant(module, "TORCH_EMPTY", SONDE_TORCH_EMPTY) == 0;
}

PyMODINIT_FUNC PyInit__record(void);
PyMODINIT_FUNC PyInit__record(void)
{
    PyObject *module = PyModule_Create(&record_module);

    if (module) {
        cycle_function = NULL; /* an interpreter's that has ended, if there is one */
        memset(cycle_error, 0, sizeof cycle_error);
        known_error_class = NULL; /* likewise */
        if (!add_flags(module) || !snd_py_add_schema(module)) {
            Py_DECREF(module);
            module = NULL;
        }
    }
    return module;
}
