/* SPDX-License-Identifier: Apache-2.0 */
#include "python/record/start_stop.h"

#include <stdio.h>
#include <string.h>

#include <sonde/record.h>

static PyObject *known_error_class; /* sonde.Error, once it was needed */
static PyObject *cycle_function;    /* owned; NULL without a recording that has one */
static PyObject *cycle_error[3];    /* raised by it, until the call that led there returns */

/* ------------------------------------------------------------------- errors */

/* Loaded on first use: it belongs to the reading side, which a recorded program does not load. */
PyObject *snd_py_error_class(void)
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
    PyObject *exception = PyObject_CallFunction(snd_py_error_class(), "s", err->message);

    if (!exception)
        return NULL;
    PyObject *status = PyLong_FromLong(err->status);
    PyObject *os_error = PyLong_FromLong(err->os_error);
    if (status && os_error && PyObject_SetAttrString(exception, "status", status) == 0 &&
        PyObject_SetAttrString(exception, "os_error", os_error) == 0)
        PyErr_SetObject(snd_py_error_class(), exception);
    Py_XDECREF(status);
    Py_XDECREF(os_error);
    Py_DECREF(exception);
    return NULL;
}

/* ------------------------------------------------------------------- cycles */

/* Runs on the thread in step() or stop(), which has released the interpreter lock. */
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

/* ---------------------------------------------------------------- arguments */

static int parse_schedule(PyObject *object, struct sonde_schedule *s)
{
    if (!object || object == Py_None)
        return 1;
    if (!PyTuple_Check(object)) {
#define SND_SCHEDULE(name) ", " #name
        static const char fields[] =
#include "format/run/schedule_text.def"
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

/* ------------------------------------------------------------------ methods */

PyObject *snd_py_start(PyObject *module, PyObject *args, PyObject *kwargs)
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

PyObject *snd_py_stop(PyObject *module, PyObject *unused)
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

PyObject *snd_py_step(PyObject *module, PyObject *args)
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

PyObject *snd_py_under_run(PyObject *module, PyObject *unused)
{
    bool answer;

    (void)module;
    (void)unused;
    Py_BEGIN_ALLOW_THREADS
    answer = sonde_under_run();
    Py_END_ALLOW_THREADS
    return PyBool_FromLong(answer);
}

PyObject *snd_py_pause(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    Py_BEGIN_ALLOW_THREADS
    sonde_pause();
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

PyObject *snd_py_resume(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    Py_BEGIN_ALLOW_THREADS
    sonde_resume();
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

PyObject *snd_py_schedule_action(PyObject *module, PyObject *args)
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

void snd_py_forget_interpreter(void)
{
    cycle_function = NULL;
    memset(cycle_error, 0, sizeof cycle_error);
    known_error_class = NULL;
}
