/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python/read/averages/average_pickle.c - the members of an Average, and pickling: a pickled row is a dict of its members.
 */
#include "python/read/averages/average.h"

#include <stddef.h>
#include <string.h>

/* clang-format off */
#define AT(member) offsetof(struct sonde_average, member)
const struct core_member core_average_members[CORE_AVERAGE_MEMBERS] = {
    { "key", FROM_TEXT, AT(name) },
    { "count", FROM_COUNT, AT(count) },
    { "self_cpu_time_total", FROM_NS, AT(self_ns) },
    { "cpu_time_total", FROM_NS, AT(total_ns) },
    { "cpu_time_min", FROM_NS, AT(min_ns) },
    { "cpu_time_max", FROM_NS, AT(max_ns) },
    { "cpu_memory_usage", FROM_BYTES, AT(cpu_bytes) },
    { "self_cpu_memory_usage", FROM_BYTES, AT(self_cpu_bytes) },
    { "device_memory_usage", FROM_BYTES, AT(device_bytes) },
    { "self_device_memory_usage", FROM_BYTES, AT(self_device_bytes) },
    { "self_device_time_total", FROM_NS, AT(self_device_ns) },
    { "device_time_total", FROM_NS, AT(device_ns) },
    { "flops", FROM_DOUBLE, AT(flops) },
    { "macs", FROM_DOUBLE, AT(macs) },
    { "moved_bytes", FROM_DOUBLE, AT(moved_bytes) },
    { "input_shapes", FROM_TEXT, AT(shapes) },
    { "stack", FROM_TEXT, AT(stack) },
    { "module", FROM_TEXT, AT(module) },
    { "overload_name", FROM_TEXT, AT(overload) },
    { "scope", FROM_SMALL, AT(scope) },
    { "is_async", FROM_SMALL, AT(is_async) },
    { "is_user_annotation", FROM_SMALL, AT(is_user_annotation) },
    { "on_device", FROM_SMALL, AT(on_device) },
    /* not columns: */
    { "uses_gpu", FROM_SMALL, AT(uses_gpu) },
    { "has_parent", FROM_SMALL, AT(has_parent) },
    { "process", FROM_INDEX, AT(process) },
    { "thread", FROM_INDEX, AT(thread) },
};
/* clang-format on */

static PyObject *member_value(const struct sonde_average *row, const struct core_member *member)
{
    const char       *at = (const char *)row + member->place;
    struct sonde_text text;
    uint64_t          count;
    int64_t           number;
    uint32_t          index;
    double            value;

    switch (member->source) {
    case FROM_TEXT:
        memcpy(&text, at, sizeof text);
        return core_text(text);
    case FROM_COUNT:
        memcpy(&count, at, sizeof count);
        return PyLong_FromUnsignedLongLong(count);
    case FROM_NS:
    case FROM_BYTES:
        memcpy(&number, at, sizeof number);
        return PyLong_FromLongLong(number);
    case FROM_DOUBLE:
        memcpy(&value, at, sizeof value);
        return PyFloat_FromDouble(value);
    case FROM_SMALL:
        return PyLong_FromLong(*(const uint8_t *)at);
    case FROM_INDEX:
        memcpy(&index, at, sizeof index);
        return PyLong_FromUnsignedLong(index);
    }
    return NULL;
}

/* A text of a row; its bytes are kept in the list `kept`. */
static int set_text(void *at, PyObject *value, PyObject *kept)
{
    PyObject *bytes = PyUnicode_AsEncodedString(value, "utf-8", "surrogatepass");
    if (!bytes || PyList_Append(kept, bytes) < 0) {
        Py_XDECREF(bytes);
        return -1;
    }
    struct sonde_text text = { PyBytes_AsString(bytes), (size_t)PyBytes_Size(bytes) };
    memcpy(at, &text, sizeof text);
    Py_DECREF(bytes); /* the list has it */
    return 0;
}

static int set_member(struct sonde_average *row, const struct core_member *member, PyObject *value,
                      PyObject *kept)
{
    char *at = (char *)row + member->place;

    switch (member->source) {
    case FROM_TEXT:
        return set_text(at, value, kept);
    case FROM_COUNT:
        row->count = PyLong_AsUnsignedLongLong(value);
        break;
    case FROM_NS:
    case FROM_BYTES:
        memcpy(at, &(int64_t){ PyLong_AsLongLong(value) }, sizeof(int64_t));
        break;
    case FROM_DOUBLE:
        memcpy(at, &(double){ PyFloat_AsDouble(value) }, sizeof(double));
        break;
    case FROM_SMALL:
        *(uint8_t *)at = (uint8_t)PyLong_AsLong(value);
        break;
    case FROM_INDEX:
        memcpy(at, &(uint32_t){ (uint32_t)PyLong_AsUnsignedLong(value) }, sizeof(uint32_t));
        break;
    }
    return PyErr_Occurred() ? -1 : 0;
}

PyObject *core_average_unpickle(PyObject *module, PyObject *args)
{
    struct sonde_average row = core_no_average;
    PyObject            *values, *result = NULL;
    int                  by_shape = 0;

    (void)module;
    if (!PyArg_ParseTuple(args, "O!|p:make_average", &PyDict_Type, &values, &by_shape))
        return NULL;
    PyObject *kept = PyList_New(0);
    bool      good = kept != NULL;
    for (size_t i = 0; good && i < CORE_AVERAGE_MEMBERS; i++) {
        PyObject *value = PyDict_GetItemString(values, core_average_members[i].name);
        good = !value || set_member(&row, &core_average_members[i], value, kept) == 0;
    }
    if (good)
        result = core_make_average(kept, &row, by_shape);
    Py_XDECREF(kept);
    return result;
}

PyObject *core_average_reduce(PyObject *object, PyObject *unused)
{
    struct average_object *self = (struct average_object *)object;
    PyObject              *values = PyDict_New();

    (void)unused;
    for (size_t i = 0; values && i < CORE_AVERAGE_MEMBERS; i++) {
        PyObject *value = member_value(&self->row, &core_average_members[i]);
        if (!value || PyDict_SetItemString(values, core_average_members[i].name, value) < 0)
            Py_CLEAR(values);
        Py_XDECREF(value);
    }
    PyObject *core = values ? PyImport_ImportModule("sonde._core") : NULL;
    PyObject *make = core ? PyObject_GetAttrString(core, "make_average") : NULL;
    PyObject *result = NULL;
    if (make)
        result = Py_BuildValue("(O(OO)O)", make, values, self->by_shape ? Py_True : Py_False,
                               self->base.dict ? self->base.dict : Py_None);
    Py_XDECREF(make);
    Py_XDECREF(core);
    Py_XDECREF(values);
    return result;
}
