/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python/read/events/event_list.h - what the files of events() share.
 *
 *     event_row.c     an entry: made, its texts, its children and kernels
 *     arguments.c     arguments of operators: shapes, types, values
 *     interval.c      the time of an event
 *     event_fields.c  the attributes of Event
 *     event.c         Event, the type of an entry
 *     event_list.c    the list
 */
#ifndef SONDE_CORE_EVENTS_H
#define SONDE_CORE_EVENTS_H

#include "python/read/rows.h"

struct events_object {
    PyObject_HEAD
    struct trace_object  *trace;
    struct sonde_events  *events;
    struct core_table     table;
    PyObject            **texts;        /* by number, created on first use */
    uint32_t             *first_child;  /* of each event; NULL until a list is asked for */
    uint32_t             *next_child;   /* its next sibling */
    uint32_t             *first_kernel; /* the same for what GPUs did for an operator */
    uint32_t             *next_kernel;
    enum sonde_flops_mode flops;
    PyObject             *result; /* what pickles the trace that this is of, or NULL */
};

struct event_object {
    struct core_row base; /* its owner is a struct events_object */
    size_t          index;
};

extern PyTypeObject *core_event_type;
extern PyGetSetDef   core_event_getset[];

/* A kernel, a copy or a fill on a GPU: not a range that a person named, as a stream saw it. */
static inline bool core_is_work(uint8_t flags)
{
    return (flags & SONDE_EVENT_ON_DEVICE) && !(flags & SONDE_EVENT_IS_USER);
}

/* Lists: the children of event `i`; what GPUs did for it. */
PyObject *core_event_children(struct events_object *owner, size_t i);
PyObject *core_event_kernels(struct events_object *owner, size_t i);

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
/* The event's arguments that are not tensors: those by position, and the keyword arguments. */
PyObject *core_concrete(struct events_object *owner, size_t i);
PyObject *core_keywords(struct events_object *owner, size_t i);

/* Makes a column, or all for NULL, unless it is there already; 0, or -1 with an exception set. */
int core_events_fill(struct events_object *self, const char *column);
/* The text of a number, made once. */
PyObject *core_events_text(struct events_object *self, uint32_t number);
/* The event at `index`, made anew each time. */
PyObject *core_events_item(PyObject *self, Py_ssize_t index);

#endif
