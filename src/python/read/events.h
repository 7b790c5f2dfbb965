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
    uint32_t             *first_kernel; /* the same of what GPUs did for an operator */
    uint32_t             *next_kernel;
    enum sonde_flops_mode flops;
    PyObject             *result; /* what pickles the trace that this is of, or NULL */
};

struct event_object {
    struct core_row base; /* its owner is a struct events_object */
    size_t          index;
};

extern PyTypeObject *core_event_type;

/* Appends `item` and drops its reference; false with an exception set. */
bool core_push(PyObject *list, PyObject *item);

PyObject *core_make_interval(int64_t start_ns, int64_t end_ns);
int       core_interval_init(PyObject *module);

/* A list of the arguments that tensor list `id` has: their dims, or their types. */
enum core_arguments {
    CORE_ARGUMENTS_FLAT,    /* dims; of a list of tensors [] */
    CORE_ARGUMENTS_NESTED,  /* dims; of a list of tensors each one's */
    CORE_ARGUMENTS_STRIDES, /* as nested */
    CORE_ARGUMENTS_TYPES,
};
PyObject *core_arguments(const struct sonde_trace *trace, uint32_t process, uint32_t id,
                         enum core_arguments what, PyObject *values, bool as_strides);
/* Values of the event's arguments that are no tensors; and those given by name. */
PyObject *core_concrete(struct events_object *owner, size_t i);
PyObject *core_keywords(struct events_object *owner, size_t i);

/* The text of a number, made once. */
PyObject *core_events_text(struct events_object *self, uint32_t number);
/* The event at `index`, made anew each time. */
PyObject *core_events_item(PyObject *self, Py_ssize_t index);

#endif
