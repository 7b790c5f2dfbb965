/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/python/ways/call_monitor.c - calls seen through sys.monitoring: CPython 3.12 and later.
 */
#include "probes/python/ways/call_probe.h"
#include "base/count_of.h"
#include "probes/python/monitor_tool.h"

#if PY_VERSION_HEX >= 0x030C0000

static struct snd_py_tool tool = { .name = "sonde",
                                   .records = "Python calls",
                                   .numbers = { 4, 3, 2 } };
static PyObject          *missing; /* sys.monitoring.MISSING, given for an absent argument */

/* -------------------------------------------------------------------- callbacks */

static PyObject *on_start(PyObject *self, PyObject *const *args, size_t count, PyObject *names)
{
    PyCodeObject            *code = (PyCodeObject *)args[0];
    uint32_t                 number = snd_py_number(code);
    struct snd_calls_thread *t = snd_calls_mine(true);

    (void)self;
    (void)count;
    (void)names;
    if (number != 0 && t)
        snd_calls_enter(t, number, code, false);
    Py_RETURN_NONE;
}

static PyObject *on_return(PyObject *self, PyObject *const *args, size_t count, PyObject *names)
{
    struct snd_calls_thread *t = snd_calls_mine(false);

    (void)self;
    (void)count;
    (void)names;
    if (t)
        snd_calls_leave_key(t, args[0]);
    Py_RETURN_NONE;
}

/* A coroutine's frame is part of it: the frame's address identifies it. */
static const void *frame_of_coroutine(PyCodeObject *code)
{
    return code->co_flags & SND_PY_AWAITS ? snd_py_frame_running() : NULL;
}

static PyObject *on_resume(PyObject *self, PyObject *const *args, size_t count, PyObject *names)
{
    PyCodeObject            *code = (PyCodeObject *)args[0];
    uint32_t                 number = snd_py_number(code);
    struct snd_calls_thread *t = snd_calls_mine(true);

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
    struct snd_calls_thread *t = snd_calls_mine(false);

    (void)self;
    (void)count;
    (void)names;
    if (t && snd_calls_leave_key(t, code)) {
        const void *frame = frame_of_coroutine(code);
        if (frame)
            snd_py_suspend(code, frame, args[2]);
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
    else if (Py_TYPE(callable) == &PyMethodDescr_Type && args[3] != missing)
        method = ((PyMethodDescrObject *)callable)->d_method;
    return method && snd_py_number((PyCodeObject *)args[0]) != 0 ? method : NULL;
}

/* What a function in C is called for; NULL: it is no method. */
static PyObject *self_of(PyObject *const *args)
{
    return PyCFunction_Check(args[2]) ? ((PyCFunctionObject *)args[2])->m_self : args[3];
}

static PyObject *on_call(PyObject *self, PyObject *const *args, size_t count, PyObject *names)
{
    PyMethodDef             *method = method_called(args);
    struct snd_calls_thread *t = method ? snd_calls_mine(false) : NULL;

    (void)self;
    (void)count;
    (void)names;
    if (t) {
        uint32_t number = snd_py_builtin_number(method, args[2], self_of(args));
        if (number != 0)
            snd_calls_enter_c(t, number, method, snd_py_frame_running());
    }
    Py_RETURN_NONE;
}

static PyObject *on_c_return(PyObject *self, PyObject *const *args, size_t count, PyObject *names)
{
    PyMethodDef             *method = method_called(args);
    struct snd_calls_thread *t = method ? snd_calls_mine(false) : NULL;

    (void)self;
    (void)count;
    (void)names;
    if (t)
        snd_calls_leave_key(t, method);
    Py_RETURN_NONE;
}

/* --------------------------------------------------------------------- on and off */

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

static void stop(void)
{
    snd_py_own_profile_stop();
    snd_py_tool_drop(&tool);
}

static bool start_events(bool builtins)
{
    long set = 0;

    if (!missing) /* for as long as Python lives: it is one object */
        missing = PyObject_GetAttrString(tool.monitoring, "MISSING");
    if (!missing)
        return false;
    for (size_t i = 0; i < SND_COUNT_OF(events); i++) {
        if (events[i].for_builtins && !builtins)
            continue;
        long event = snd_py_tool_on(&tool, events[i].event, events[i].call);
        if (event < 0)
            return false;
        set |= event;
    }
    return snd_py_tool_set_events(&tool, set);
}

static bool start(bool builtins)
{
    if (!snd_py_tool_take(&tool))
        return false;
    snd_py_own_profile_start();
    if (start_events(builtins))
        return true;
    stop();
    return false;
}

static void renew(void)
{
    tool.monitoring = NULL;
    missing = NULL;
    snd_py_own_profile_renew();
}

const struct snd_py_way snd_py_monitoring = { "sys.monitoring", start, stop, renew };

#endif
