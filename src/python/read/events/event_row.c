/* SPDX-License-Identifier: Apache-2.0 */
/* python/read/events/event_row.c - an entry of events(): made, its texts, its children and kernels. */
#include "python/read/events/event_list.h"

#include <stdlib.h>
#include <string.h>

PyTypeObject *core_event_type;

bool core_push(PyObject *list, PyObject *item)
{
    bool good = item && PyList_Append(list, item) == 0;

    Py_XDECREF(item);
    return good;
}

PyObject *core_events_text(struct events_object *self, uint32_t number)
{
    size_t count = sonde_events_text_count(self->events);

    if (!self->texts)
        self->texts = calloc(count, sizeof *self->texts);
    if (!self->texts)
        return PyErr_NoMemory();
    if (number >= count)
        number = 0;
    if (!self->texts[number])
        self->texts[number] = core_text(sonde_events_text(self->events, number));
    Py_XINCREF(self->texts[number]);
    return self->texts[number];
}

int core_events_fill(struct events_object *self, const char *column)
{
    struct sonde_error err = { 0 };

    if (sonde_events_fill(self->events, column, &err) == SONDE_OK)
        return 0;
    core_set_error(&err);
    return -1;
}

PyObject *core_events_item(PyObject *object, Py_ssize_t index)
{
    struct events_object *owner = (struct events_object *)object;

    if (core_events_fill(owner, NULL) < 0)
        return NULL;
    if (index < 0 || (size_t)index >= sonde_events_columns(owner->events)->count) {
        PyErr_SetString(PyExc_IndexError, "event index out of range");
        return NULL;
    }
    struct event_object *self = (struct event_object *)core_new_object(core_event_type);
    if (!self)
        return NULL;
    Py_INCREF(object);
    self->base.owner = object;
    self->index = (size_t)index;
    return (PyObject *)self;
}

/* --------------------------------------------------------- children and kernels */

#define NO_EVENT UINT32_MAX

/*
 * Makes, once, a list of the events below each event, in order: the first is (*first)[i], each next
 * one (*next)[..]. above[i] is the event that i is below, or -1; with `flags`, only GPU work counts.
 */
static int link_events(size_t count, const int32_t *above, const uint8_t *flags, uint32_t **first,
                       uint32_t **next)
{
    if (*first)
        return 0;
    free(*next);
    *first = malloc((count + 1) * sizeof **first);
    *next = malloc((count + 1) * sizeof **next);
    if (!*first || !*next) {
        free(*first);
        *first = NULL;
        PyErr_NoMemory();
        return -1;
    }
    memset(*first, 0xff, (count + 1) * sizeof **first);
    for (size_t i = count; i-- > 0;) {
        (*next)[i] = NO_EVENT;
        if (above[i] >= 0 && (!flags || core_is_work(flags[i]))) {
            (*next)[i] = (*first)[above[i]];
            (*first)[above[i]] = (uint32_t)i;
        }
    }
    return 0;
}

PyObject *core_event_kernels(struct events_object *owner, size_t i)
{
    const struct sonde_events_columns *c = sonde_events_columns(owner->events);
    PyObject *list = link_events(c->count, c->owner, c->flags, &owner->first_kernel,
                                 &owner->next_kernel) < 0
                         ? NULL
                         : PyList_New(0);

    for (uint32_t at = list ? owner->first_kernel[i] : NO_EVENT; at != NO_EVENT;
         at = owner->next_kernel[at]) {
        if (!core_push(list, core_kernel(core_events_text(owner, c->name[at]),
                                         c->device[at] & 0xffff, c->self_device_ns[at]))) {
            Py_CLEAR(list);
            break;
        }
    }
    return list;
}

PyObject *core_event_children(struct events_object *owner, size_t i)
{
    const struct sonde_events_columns *c = sonde_events_columns(owner->events);
    PyObject *list = link_events(c->count, c->parent, NULL, &owner->first_child,
                                 &owner->next_child) < 0
                         ? NULL
                         : PyList_New(0);

    for (uint32_t at = list ? owner->first_child[i] : NO_EVENT; at != NO_EVENT;
         at = owner->next_child[at]) {
        if (!core_push(list, core_events_item((PyObject *)owner, (Py_ssize_t)at))) {
            Py_CLEAR(list);
            break;
        }
    }
    return list;
}
