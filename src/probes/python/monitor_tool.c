/* SPDX-License-Identifier: Apache-2.0 */
#include "probes/python/monitor_tool.h"

#if PY_VERSION_HEX >= 0x030C0000

struct callback {
    PyObject_HEAD
    vectorcallfunc call;
#ifdef Py_GIL_DISABLED
    vectorcallfunc      inner;
    struct snd_py_tool *tool;
#endif
};

#ifdef Py_GIL_DISABLED
/* One event at a time, whichever threads they are of; none after the tool was dropped. */
static PyObject *call_locked(PyObject *self, PyObject *const *args, size_t count, PyObject *names)
{
    struct callback *callback = (struct callback *)self;
    PyObject        *result = Py_None;

    snd_py_lock();
    if (callback->tool->live)
        result = callback->inner(self, args, count, names);
    snd_py_unlock();
    return result;
}
#endif

static PyTypeObject callback_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "sonde._python.callback",
    .tp_basicsize = sizeof(struct callback),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(struct callback, call),
    .tp_call = PyVectorcall_Call,
};

/* Whether a call went well; false with its exception set. */
static bool went_well(PyObject *result)
{
    Py_XDECREF(result);
    return result != NULL;
}

bool snd_py_tool_take(struct snd_py_tool *tool)
{
    PyObject *monitoring = PySys_GetObject("monitoring"); /* borrowed */

    if (!monitoring || PyType_Ready(&callback_type) != 0) {
        PyErr_Format(snd_py_error_class(), "cannot record %s: this Python has no sys.monitoring",
                     tool->records);
        return false;
    }
    for (size_t i = 0; i < SND_PY_TOOL_NUMBERS; i++) {
        if (went_well(PyObject_CallMethod(monitoring, "use_tool_id", "is", tool->numbers[i],
                                          tool->name))) {
            Py_INCREF(monitoring);
            tool->monitoring = monitoring;
            tool->number = tool->numbers[i];
            tool->live = true;
            tool->events = 0;
            return true;
        }
        PyErr_Clear();
    }
    PyErr_Format(
        snd_py_error_class(),
        "cannot record %s: other tools use ids 2, 3 and 4 of sys.monitoring; stop one of them",
        tool->records);
    return false;
}

static long number_of_event(const struct snd_py_tool *tool, const char *name)
{
    PyObject *list = PyObject_GetAttrString(tool->monitoring, "events");
    PyObject *number = list ? PyObject_GetAttrString(list, name) : NULL;
    long      value = number ? PyLong_AsLong(number) : -1;

    Py_XDECREF(number);
    Py_XDECREF(list);
    return value;
}

static bool set_callback(const struct snd_py_tool *tool, long event, PyObject *callback)
{
    return went_well(PyObject_CallMethod(tool->monitoring, "register_callback", "ilO", tool->number,
                                         event, callback));
}

long snd_py_tool_on(struct snd_py_tool *tool, const char *event, vectorcallfunc function)
{
    long             number = number_of_event(tool, event);
    struct callback *callback = number < 0 ? NULL : PyObject_New(struct callback, &callback_type);

    if (!callback)
        return -1;
#ifdef Py_GIL_DISABLED
    callback->call = call_locked;
    callback->inner = function;
    callback->tool = tool;
#else
    callback->call = function;
#endif
    bool done = set_callback(tool, number, (PyObject *)callback);
    Py_DECREF(callback);
    if (!done)
        return -1;
    tool->events |= number;
    return number;
}

bool snd_py_tool_set_events(const struct snd_py_tool *tool, long events)
{
    return went_well(
        PyObject_CallMethod(tool->monitoring, "set_events", "il", tool->number, events));
}

bool snd_py_tool_set_local_events(const struct snd_py_tool *tool, PyCodeObject *code, long events)
{
    return went_well(PyObject_CallMethod(tool->monitoring, "set_local_events", "iOl", tool->number,
                                         code, events));
}

void snd_py_tool_drop(struct snd_py_tool *tool)
{
    PyObject *error[3];

    if (!tool->monitoring)
        return;
    snd_py_lock();
    tool->live = false;
    snd_py_unlock();
    PyErr_Fetch(&error[0], &error[1], &error[2]);
    if (!snd_py_tool_set_events(tool, 0))
        PyErr_Clear();
    for (long left = tool->events; left != 0; left &= left - 1)
        if (!set_callback(tool, left & -left, Py_None))
            PyErr_Clear();
    if (!went_well(PyObject_CallMethod(tool->monitoring, "free_tool_id", "i", tool->number)))
        PyErr_Clear();
    Py_CLEAR(tool->monitoring);
    PyErr_Restore(error[0], error[1], error[2]);
}

#endif
