/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/python/linemonitor.c - lines seen through sys.monitoring: CPython 3.12 and later.
 *
 * Events are those of the chosen code objects alone: any other function runs as if nothing were
 * recorded. Only leaving a frame by an exception has no such local event; that one is asked for
 * everywhere, and comes where frames are unwound.
 */
#include "probes/python/lineevents.h"
#include "probes/python/memorycounts.h"

#if PY_VERSION_HEX >= 0x030C0000

static const int tools[] = { 3, 4, 2 }; /* 2 last: cProfile takes it without asking */

static struct {
    PyObject *monitoring;                         /* sys.monitoring */
    int       tool;                               /* -1: none */
    long      line, start, resume, leave, unwind; /* events */
} state = { .tool = -1 };

/* The innermost frame: that of the code which the event is about. */
static inline const void *frame_running(void)
{
#if PY_VERSION_HEX >= 0x030D0000
    return PyThreadState_GetUnchecked()->current_frame;
#else
    return _PyThreadState_UncheckedGet()->cframe->current_frame;
#endif
}

/* -------------------------------------------------------------------- callbacks */

/* The second argument of every event: a line, or a place in the code. */
static inline void leave_out(PyObject *const *args)
{
    if (SONDE_UNLIKELY_(snd_memory_on))
        snd_memory_leave_out(args[1]);
}

static PyObject *on_line(PyObject *self, PyObject *const *args, size_t count, PyObject *names)
{
    struct snd_line_thread *mine = snd_line_mine();

    (void)self;
    (void)count;
    (void)names;
    leave_out(args);
    if (mine && snd_lines_on)
        snd_line_begin(mine, frame_running(), (PyCodeObject *)args[0], PyLong_AsLong(args[1]));
    Py_RETURN_NONE;
}

static PyObject *on_leave(PyObject *self, PyObject *const *args, size_t count, PyObject *names)
{
    struct snd_line_thread *mine = snd_line_thread_;

    (void)self;
    (void)count;
    (void)names;
    leave_out(args);
    if (mine)
        snd_line_end(mine, frame_running());
    Py_RETURN_NONE;
}

/* Of memory alone: the line of `def`, and that of a `yield` which goes on. */
static PyObject *enter(PyObject *const *args, bool resumed)
{
    PyCodeObject           *code = (PyCodeObject *)args[0];
    struct snd_line_table  *table = snd_line_table_of(code);
    struct snd_line_thread *mine = snd_line_mine();

    leave_out(args);
    if (!table || !mine || !(table->wanted & SND_LINE_MEMORY) || !snd_lines_on)
        Py_RETURN_NONE;
    int line = code->co_firstlineno;
    if (resumed)
        line = PyCode_Addr2Line(code, (int)PyLong_AsLong(args[1]));
    snd_line_enter(mine, frame_running(), table, line, resumed);
    Py_RETURN_NONE;
}

static PyObject *on_start(PyObject *self, PyObject *const *args, size_t count, PyObject *names)
{
    (void)self;
    (void)count;
    (void)names;
    return enter(args, false);
}

static PyObject *on_resume(PyObject *self, PyObject *const *args, size_t count, PyObject *names)
{
    (void)self;
    (void)count;
    (void)names;
    return enter(args, true);
}

/* ------------------------------------------------------------- callables for them */

struct line_callback {
    PyObject_HEAD
    vectorcallfunc call;
};

static PyTypeObject callback_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "sonde._python.line_callback",
    .tp_basicsize = sizeof(struct line_callback),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(struct line_callback, call),
    .tp_call = PyVectorcall_Call,
};

static const struct {
    const char    *name;
    vectorcallfunc call;
    long          *adds_to;
} events[] = {
    { "LINE", on_line, &state.line },          { "PY_RETURN", on_leave, &state.leave },
    { "PY_YIELD", on_leave, &state.leave },    { "PY_START", on_start, &state.start },
    { "PY_RESUME", on_resume, &state.resume }, { "PY_UNWIND", on_leave, &state.unwind },
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
    struct line_callback *callback = NULL;

    if (function) {
        callback = PyObject_New(struct line_callback, &callback_type);
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
        PyErr_SetString(snd_py_error_class, "cannot record lines: no sys.monitoring here");
        return false;
    }
    Py_INCREF(monitoring);
    state.monitoring = monitoring;
    return true;
}

static bool take_tool(void)
{
    for (size_t i = 0; i < sizeof tools / sizeof tools[0]; i++) {
        if (call(PyObject_CallMethod(state.monitoring, "use_tool_id", "is", tools[i],
                                     "sonde lines"))) {
            state.tool = tools[i];
            return true;
        }
        PyErr_Clear();
    }
    PyErr_SetString(snd_py_error_class, "cannot record lines: other tools hold numbers 2, 3 and 4 "
                                        "of sys.monitoring; stop one of them");
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
        if (!set_callback(number_of_event(events[i].name), NULL))
            PyErr_Clear();
    if (!call(PyObject_CallMethod(state.monitoring, "free_tool_id", "i", state.tool)))
        PyErr_Clear();
    state.tool = -1;
    PyErr_Restore(error[0], error[1], error[2]);
}

static bool start(void)
{
    if (!find_monitoring() || !take_tool())
        return false;
    state.line = state.start = state.resume = state.leave = state.unwind = 0;
    for (size_t i = 0; i < EVENT_COUNT; i++) {
        long event = number_of_event(events[i].name);
        if (event < 0 || !set_callback(event, events[i].call)) {
            stop();
            return false;
        }
        *events[i].adds_to |= event;
    }
    if (!call(
            PyObject_CallMethod(state.monitoring, "set_events", "il", state.tool, state.unwind))) {
        stop();
        return false;
    }
    return true;
}

static bool watch(PyCodeObject *code, uint32_t wanted)
{
    long set = 0;

    if (wanted)
        set = state.line | state.leave;
    if (wanted & SND_LINE_MEMORY)
        set |= state.start | state.resume;
    return call(
        PyObject_CallMethod(state.monitoring, "set_local_events", "iOl", state.tool, code, set));
}

const struct snd_line_source snd_line_monitoring = { "sys.monitoring", start, stop, watch, NULL };

#endif
