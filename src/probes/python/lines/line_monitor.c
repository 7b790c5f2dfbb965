/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/python/lines/line_monitor.c - lines seen through sys.monitoring: CPython 3.12 and later.
 *
 * Events are those of the chosen code objects alone: any other function runs as if nothing were
 * recorded. Only leaving a frame by an exception has no such local event; that one is asked for
 * everywhere, and comes where frames are unwound.
 */
#include "probes/python/lines/line_events.h"
#include "base/count_of.h"
#include "base/hints.h"
#include "probes/python/memory/memory_counts.h"
#include "probes/python/monitor_tool.h"

#if PY_VERSION_HEX >= 0x030C0000

static struct snd_py_tool tool = { .name = "sonde lines",
                                   .records = "lines",
                                   .numbers = { 3, 4, 2 } };
static struct {
    long line, start, resume, leave, unwind;
} events;

/* -------------------------------------------------------------------- callbacks */

/* The second argument of every event: a line, or a place in the code. */
static inline void leave_out(PyObject *const *args)
{
    if (SND_UNLIKELY(snd_memory_on))
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
        snd_line_begin(mine, snd_py_frame_running(), (PyCodeObject *)args[0],
                       PyLong_AsLong(args[1]));
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
        snd_line_end(mine, snd_py_frame_running());
    Py_RETURN_NONE;
}

/* For memory only: the line of `def`, and that of a `yield` that is resumed. */
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
    snd_line_enter(mine, snd_py_frame_running(), table, line, resumed);
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

/* --------------------------------------------------------------------- on and off */

static const struct {
    const char    *name;
    vectorcallfunc call;
    long          *adds_to;
} callbacks[] = {
    { "LINE", on_line, &events.line },          { "PY_RETURN", on_leave, &events.leave },
    { "PY_YIELD", on_leave, &events.leave },    { "PY_START", on_start, &events.start },
    { "PY_RESUME", on_resume, &events.resume }, { "PY_UNWIND", on_leave, &events.unwind },
};

static void stop(void)
{
    snd_py_tool_drop(&tool);
}

static bool start(void)
{
    if (!snd_py_tool_take(&tool))
        return false;
    memset(&events, 0, sizeof events);
    for (size_t i = 0; i < SND_COUNT_OF(callbacks); i++) {
        long event = snd_py_tool_on(&tool, callbacks[i].name, callbacks[i].call);
        if (event < 0) {
            stop();
            return false;
        }
        *callbacks[i].adds_to |= event;
    }
    if (snd_py_tool_set_events(&tool, events.unwind))
        return true;
    stop();
    return false;
}

static bool watch(PyCodeObject *code, uint32_t wanted)
{
    long set = 0;

    if (wanted)
        set = events.line | events.leave;
    if (wanted & SND_LINE_MEMORY)
        set |= events.start | events.resume;
    return snd_py_tool_set_local_events(&tool, code, set);
}

static void renew(void)
{
    tool.monitoring = NULL;
}

const struct snd_line_source snd_line_monitoring = {
    "sys.monitoring", start, stop, watch, NULL, renew
};

#endif
