/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python/read/events.h - what a list of events and one of them share.
 */
#ifndef SONDE_CORE_EVENTS_H
#define SONDE_CORE_EVENTS_H

#include "python/read/rows.h"

struct events_object {
    PyObject_HEAD
    struct trace_object  *trace;
    struct sonde_events  *events;
    struct core_table     table;
    PyObject            **texts;       /* by number, made when first asked for */
    uint32_t             *first_child; /* of each event, then the next of the same parent */
    uint32_t             *next_child;
    enum sonde_flops_mode flops;
    PyObject             *result; /* what pickles the trace that this is of, or NULL */
};

struct event_object {
    struct core_row base; /* its owner is a struct events_object */
    size_t          index;
};

extern PyTypeObject *core_event_type;

/* The text of a number, made once. */
PyObject *core_events_text(struct events_object *self, uint32_t number);
/* The event at `index`, made anew each time. */
PyObject *core_events_item(PyObject *self, Py_ssize_t index);

#endif
