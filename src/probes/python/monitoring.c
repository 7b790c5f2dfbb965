/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/python/monitoring.c - calls seen through sys.monitoring: CPython 3.12 and later.
 *
 * Callbacks are objects with a vectorcall of their own, which saves what a built-in function
 * does around its C function. Of the tool numbers, that of profilers (2) is taken last: cProfile
 * takes it without asking, and must still work.
 */
#include "probes/python/functions.h"

#if PY_VERSION_HEX >= 0x030C0000

static const int tools[] = { 4, 3, 2 };

static struct {
    PyObject *monitoring; /* sys.monitoring */
    PyObject *missing;    /* what stands for an argument that is not there */
    int       tool;       /* -1: none */
} state = { .tool = -1 };

/* -------------------------------------------------------------------- callbacks */

static PyObject *on_start(PyObject *self, PyObject *const *args, size_t count, PyObject *names)
{
    PyCodeObject            *code = (PyCodeObject *)args[0];
    uint32_t                 number = snd_py_number(code);
    struct snd_calls_thread *t = snd_calls_mine();

    (void)self;
    (void)count;
    (void)names;
    if (number != 0 && t)
        snd_calls_enter(t, number, code, false);
    Py_RETURN_NONE;
}

static PyObject *on_return(PyObject *self, PyObject *const *args, size_t count, PyObject *names)
{
    struct snd_calls_thread *t = snd_calls_mine();

    (void)self;
    (void)count;
    (void)names;
    if (t)
        snd_calls_leave_key(t, args[0]);
    Py_RETURN_NONE;
}

/* The frame of a coroutine lies in it: its address is its name. */
static const void *frame_of_coroutine(PyCodeObject *code)
{
    return code->co_flags & SND_PY_AWAITS ? snd_pyframe_real(snd_pyframe_mine()) : NULL;
}

static PyObject *on_resume(PyObject *self, PyObject *const *args, size_t count, PyObject *names)
{
    PyCodeObject            *code = (PyCodeObject *)args[0];
    uint32_t                 number = snd_py_number(code);
    struct snd_calls_thread *t = snd_calls_mine();

    (void)self;
    (void)count;
    (void)names;
    if (number != 0 && t && snd_calls_enter(t, number, code, true)) {
        const void *frame = frame_of_coroutine(code);
        if (frame)
            snd_calls_resume(t, frame);
    }
    Py_RETURN_NONE;
}

static PyObject *on_yield(PyObject *self, PyObject *const *args, size_t count, PyObject *names)
{
    PyCodeObject            *code = (PyCodeObject *)args[0];
    struct snd_calls_thread *t = snd_calls_mine();

    (void)self;
    (void)count;
    (void)names;
    if (t && snd_calls_leave_key(t, code)) {
        const void *frame = frame_of_coroutine(code);
        if (frame)
            snd_calls_suspend(frame);
    }
    Py_RETURN_NONE;
}

/* The method of a function in C that is called; NULL: of another kind, or one of ours. */
static PyMethodDef *method_called(PyObject *const *args)
{
    PyObject    *callable = args[2];
    PyMethodDef *method = NULL;

    if (PyCFunction_Check(callable))
        method = ((PyCFunctionObject *)callable)->m_ml;
    else if (Py_TYPE(callable) == &PyMethodDescr_Type && args[3] != state.missing)
        method = ((PyMethodDescrObject *)callable)->d_method;
    return method && snd_py_number((PyCodeObject *)args[0]) != 0 ? method : NULL;
}

static PyObject *on_call(PyObject *self, PyObject *const *args, size_t count, PyObject *names)
{
    PyMethodDef             *method = method_called(args);
    struct snd_calls_thread *t = method ? snd_calls_mine() : NULL;

    (void)self;
    (void)count;
    (void)names;
    if (t) {
        uint32_t number = snd_py_builtin_number(method, args[2]);
        if (number != 0)
            snd_calls_enter(t, number, method, false);
    }
    Py_RETURN_NONE;
}

static PyObject *on_c_return(PyObject *self, PyObject *const *args, size_t count, PyObject *names)
{
    PyMethodDef             *method = method_called(args);
    struct snd_calls_thread *t = method ? snd_calls_mine() : NULL;

    (void)self;
    (void)count;
    (void)names;
    if (t)
        snd_calls_leave_key(t, method);
    Py_RETURN_NONE;
}

/* ------------------------------------------------------------- callables for them */

struct callback {
    PyObject_HEAD
    vectorcallfunc call;
};

static PyTypeObject callback_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "sonde._python.callback",
    .tp_basicsize = sizeof(struct callback),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(struct callback, call),
    .tp_call = PyVectorcall_Call,
};

static const struct {
    const char    *event;
    vectorcallfunc call;
    bool           for_builtins;
} events[] = {
    { "PY_START", on_start, false },   { "PY_RETURN", on_return, false },
    { "PY_UNWIND", on_return, false }, { "PY_RESUME", on_resume, false },
    { "PY_THROW", on_resume, false },  { "PY_YIELD", on_yield, false },
    { "CALL", on_call, true },         { "C_RETURN", on_c_return, true },
    { "C_RAISE", on_c_return, true },
};
#define EVENT_COUNT (sizeof events / sizeof events[0])

/* False with an exception set. */
static bool call(PyObject *result)
{
    Py_XDECREF(result);
    return result != NULL;
}

static long number_of_event(const char *name)
{
    PyObject *list = PyObject_GetAttrString(state.monitoring, "events");
    PyObject *number = list ? PyObject_GetAttrString(list, name) : NULL;
    long      value = number ? PyLong_AsLong(number) : -1;

    Py_XDECREF(number);
    Py_XDECREF(list);
    return value;
}

static bool set_callback(long event, vectorcallfunc function)
{
    struct callback *callback = NULL;

    if (function) {
        callback = PyObject_New(struct callback, &callback_type);
        if (!callback)
            return false;
        callback->call = function;
    }
    bool done = call(PyObject_CallMethod(state.monitoring, "register_callback", "ilO", state.tool,
                                         event, callback ? (PyObject *)callback : Py_None));
    Py_XDECREF(callback);
    return done;
}

/* --------------------------------------------------------------------- on and off */

static bool find_monitoring(void)
{
    if (state.monitoring)
        return true;
    PyObject *monitoring = PySys_GetObject("monitoring"); /* borrowed */
    if (!monitoring || PyType_Ready(&callback_type) != 0) {
        PyErr_SetString(snd_py_error_class, "cannot record Python calls: no sys.monitoring here");
        return false;
    }
    state.missing = PyObject_GetAttrString(monitoring, "MISSING");
    if (!state.missing)
        return false;
    Py_INCREF(monitoring);
    state.monitoring = monitoring;
    return true;
}

static bool take_tool(void)
{
    for (size_t i = 0; i < sizeof tools / sizeof tools[0]; i++) {
        if (call(PyObject_CallMethod(state.monitoring, "use_tool_id", "is", tools[i], "sonde"))) {
            state.tool = tools[i];
            return true;
        }
        PyErr_Clear();
    }
    PyErr_SetString(snd_py_error_class, "cannot record Python calls: other tools hold numbers 2, 3 "
                                        "and 4 of sys.monitoring; stop one of them");
    return false;
}

static void stop(void)
{
    if (state.tool < 0)
        return;
    PyObject *error[3];
    PyErr_Fetch(&error[0], &error[1], &error[2]);
    if (!call(PyObject_CallMethod(state.monitoring, "set_events", "ii", state.tool, 0)))
        PyErr_Clear();
    for (size_t i = 0; i < EVENT_COUNT; i++)
        if (!set_callback(number_of_event(events[i].event), NULL))
            PyErr_Clear();
    if (!call(PyObject_CallMethod(state.monitoring, "free_tool_id", "i", state.tool)))
        PyErr_Clear();
    state.tool = -1;
    PyErr_Restore(error[0], error[1], error[2]);
}

static bool start(bool builtins)
{
    long set = 0;

    if (!find_monitoring() || !take_tool())
        return false;
    for (size_t i = 0; i < EVENT_COUNT; i++) {
        if (events[i].for_builtins && !builtins)
            continue;
        long event = number_of_event(events[i].event);
        if (event < 0 || !set_callback(event, events[i].call)) {
            stop();
            return false;
        }
        set |= event;
    }
    if (!call(PyObject_CallMethod(state.monitoring, "set_events", "il", state.tool, set))) {
        stop();
        return false;
    }
    return true;
}

const struct snd_py_way snd_py_monitoring = { "sys.monitoring", start, stop };

#endif
