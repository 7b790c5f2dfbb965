/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/python/monitor_tool.h - a tool of sys.monitoring: its number, its events, its callbacks.
 *
 * Callbacks are objects with a vectorcall of their own, which saves what a built-in function
 * does around its C function. CPython 3.12 and later.
 *
 * Layer:   probes.
 * Threads: with the interpreter lock held.
 */
#ifndef SND_PROBES_PYTHON_MONITOR_TOOL_H
#define SND_PROBES_PYTHON_MONITOR_TOOL_H

#include "probes/python/common.h"

#if PY_VERSION_HEX >= 0x030C0000

#define SND_PY_TOOL_NUMBERS 3

struct snd_py_tool {
    const char *name;    /* shown to other tools */
    const char *records; /* for messages: "Python calls" */
    /* To be tried in this order. That of profilers (2) comes last: cProfile takes it without
     * asking, and must still work. */
    int       numbers[SND_PY_TOOL_NUMBERS];
    PyObject *monitoring; /* sys.monitoring; NULL: it has no number now */
    bool      live; /* events are passed on: other threads may have some after it was dropped */
    int       number;
    long      events; /* that have callbacks, a bit each */
};

/* These return false (-1) with an exception set. */
bool snd_py_tool_take(struct snd_py_tool *tool);
/* Has `function` called for the event of that name; returns the event. */
long snd_py_tool_on(struct snd_py_tool *tool, const char *event, vectorcallfunc function);
bool snd_py_tool_set_events(const struct snd_py_tool *tool, long events);
bool snd_py_tool_set_local_events(const struct snd_py_tool *tool, PyCodeObject *code, long events);

/* Gives its number back; a pending exception stays. */
void snd_py_tool_drop(struct snd_py_tool *tool);

#endif
#endif
