/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python/read/events/arguments.c - what an operator was called with: shapes, strides, types, values.
 */
#include "python/read/events/event_list.h"

#include <stdlib.h>

#define ITEMS_MAX 4096 /* arguments of an operator, with the elements of lists */

/* Dims, or the strides that a tensor of these dims has when it is row-major. */
static PyObject *dims_list(const struct sonde_argument *a, bool as_strides)
{
    PyObject *list = PyList_New((Py_ssize_t)a->count);
    int64_t   stride = 1;

    for (uint32_t i = a->count; list && i-- > 0;) {
        PyObject *number = PyLong_FromLongLong(as_strides ? stride : a->dims[i]);
        if (!number || PyList_SetItem(list, (Py_ssize_t)i, number) < 0) {
            Py_CLEAR(list);
            break;
        }
        stride *= a->dims[i];
    }
    return list;
}

static PyObject *type_text(const struct sonde_argument *items, size_t count, size_t at,
                           PyObject *values, Py_ssize_t place)
{
    const char *type = sonde_argument_type(items, count, at);

    /* A list of numbers is recognised by its text alone. */
    if (!*type && values && place < PyList_Size(values)) {
        PyObject *value = PyList_GetItem(values, place);
        if (PyList_Check(value))
            type = "ScalarList";
    }
    return PyUnicode_FromString(type);
}

PyObject *core_arguments(const struct sonde_trace *trace, uint32_t process, uint32_t id,
                         enum core_arguments what, PyObject *values, bool as_strides)
{
    struct sonde_argument *items = malloc(ITEMS_MAX * sizeof *items);
    PyObject              *list = PyList_New(0);

    if (!items || !list) {
        free(items);
        Py_XDECREF(list);
        return PyErr_NoMemory();
    }
    size_t count = sonde_trace_arguments(trace, process, id, items, ITEMS_MAX);
    count = count < ITEMS_MAX ? count : ITEMS_MAX;
    bool good = true;
    for (size_t i = 0; good && i < count; i++) {
        const struct sonde_argument *a = &items[i];
        size_t                       inside = a->kind == 2 && a->count < count - i ? a->count : 0;
        if (what == CORE_ARGUMENTS_TYPES) {
            good = core_push(list, type_text(items, count, i, values, PyList_Size(list)));
        } else if (a->kind == 1) {
            good = core_push(list, dims_list(a, as_strides));
        } else {
            PyObject *inner = PyList_New(0);
            for (size_t k = 1; inner && what != CORE_ARGUMENTS_FLAT && k <= inside; k++)
                if (a[k].kind == 1 && !core_push(inner, dims_list(&a[k], as_strides)))
                    Py_CLEAR(inner);
            good = core_push(list, inner);
        }
        i += inside;
    }
    free(items);
    if (!good)
        Py_CLEAR(list);
    return list;
}

/* "[1, 1]", "True", "1.5" to what they are; "" to None; anything else stays text. */
static PyObject *concrete_value(PyObject *text)
{
    if (PyUnicode_GetLength(text) == 0)
        Py_RETURN_NONE;
    PyObject *value = core_call("ast", "literal_eval", text);
    if (value)
        return value;
    PyErr_Clear();
    value = PyFloat_FromString(text); /* inf, nan */
    if (value)
        return value;
    PyErr_Clear();
    Py_INCREF(text);
    return text;
}

PyObject *core_concrete(struct events_object *owner, size_t i)
{
    const struct sonde_events_columns *c = sonde_events_columns(owner->events);
    PyObject                          *list = PyList_New(0);

    if (!list)
        return NULL;
    if (c->arguments[i] == 0) { /* all of them are empty */
        PyObject *shapes = core_arguments(owner->trace->trace, c->process[i], c->shapes[i],
                                          CORE_ARGUMENTS_FLAT, NULL, false);
        for (Py_ssize_t k = 0; shapes && k < PyList_Size(shapes); k++) {
            Py_INCREF(Py_None);
            if (!core_push(list, Py_None))
                break;
        }
        Py_XDECREF(shapes);
        return list;
    }
    PyObject *text = core_events_text(owner, c->arguments[i]);
    PyObject *parts = text ? core_call("json", "loads", text) : NULL;
    Py_XDECREF(text);
    if (!parts || !PyList_Check(parts)) {
        PyErr_Clear();
        Py_XDECREF(parts);
        return list;
    }
    for (Py_ssize_t k = 0; list && k < PyList_Size(parts); k++)
        if (!core_push(list, concrete_value(PyList_GetItem(parts, k))))
            Py_CLEAR(list);
    Py_DECREF(parts);
    return list;
}

PyObject *core_keywords(struct events_object *owner, size_t i)
{
    const struct sonde_events_columns *c = sonde_events_columns(owner->events);
    PyObject *text = c->keywords[i] != 0 ? core_events_text(owner, c->keywords[i]) : NULL;
    PyObject *found = text ? core_call("json", "loads", text) : NULL;

    Py_XDECREF(text);
    if (found && PyDict_Check(found))
        return found;
    PyErr_Clear();
    Py_XDECREF(found);
    return PyDict_New();
}
