/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python/read/average.c - Average: a row of key_averages(), with the attributes of torch's FunctionEventAvg.
 *
 * A row borrows its texts from its owner: the list that it is of, or, when it was pickled, a list
 * of the texts alone.
 */
#include "python/read/average.h"

#include <stddef.h>
#include <structmember.h>

static PyTypeObject *average_type;

PyObject *core_make_average(PyObject *owner, const struct sonde_average *row, bool by_shape)
{
    struct average_object *self = (struct average_object *)core_new_object(average_type);

    if (!self)
        return NULL;
    Py_INCREF(owner);
    self->base.owner = owner;
    self->row = *row;
    self->by_shape = by_shape;
    return (PyObject *)self;
}

/* ----------------------------------------------------------------- attributes */

enum field {
    F_KEY,
    F_COUNT,
    F_NODE,
    F_FALSE,
    F_NONE,
    F_DEVICE_TYPE,
    F_ASYNC,
    F_USER,
    F_SCOPE,
    F_SHAPES,
    F_OVERLOAD,
    F_STACK,
    F_TOTAL,
    F_SELF,
    F_DEVICE_TIME,
    F_SELF_DEVICE_TIME,
    F_USE_DEVICE,
    F_CPU,
    F_SELF_CPU,
    F_DEVICE,
    F_SELF_DEVICE,
    F_FLOPS,
    F_MACS,
    F_MOVED,
    F_MIN,
    F_MAX,
    F_MODULE,
    F_PROCESS,
    F_THREAD,
    F_HAS_PARENT,
    F_EMPTY,
};

static PyObject *shapes_value(const struct average_object *self)
{
    if (!self->by_shape)
        return PyUnicode_FromString("");
    if (self->row.shapes.length == 0)
        return PyList_New(0);
    PyObject *text = core_text(self->row.shapes);
    PyObject *value = text ? core_call("json", "loads", text) : NULL;
    Py_XDECREF(text);
    return value;
}

PyObject *core_whole(double value)
{
    return PyLong_FromDouble(value);
}

static PyObject *index_or_none(uint32_t value)
{
    if (value == SONDE_NONE)
        Py_RETURN_NONE;
    return PyLong_FromUnsignedLong(value);
}

static PyObject *average_get(struct average_object *self, void *which)
{
    const struct sonde_average *r = &self->row;

    switch ((enum field)(intptr_t)which) {
    case F_KEY:
        return core_text(r->name);
    case F_COUNT:
        return PyLong_FromUnsignedLongLong(r->count);
    case F_NODE:
        return PyLong_FromLong(-1);
    case F_FALSE:
        Py_RETURN_FALSE;
    case F_NONE:
        Py_RETURN_NONE;
    case F_DEVICE_TYPE:
        return core_device_type(r->on_device);
    case F_ASYNC:
        return PyBool_FromLong(r->is_async);
    case F_USER:
        return PyBool_FromLong(r->is_user_annotation);
    case F_SCOPE:
        return PyLong_FromLong(r->scope);
    case F_SHAPES:
        return shapes_value(self);
    case F_OVERLOAD:
        return core_text(r->overload);
    case F_STACK:
        return core_split_lines(r->stack.bytes, r->stack.length);
    case F_TOTAL:
        return core_us(r->total_ns);
    case F_SELF:
        return core_us(r->self_ns);
    case F_DEVICE_TIME:
        return core_device_us(r->device_ns);
    case F_SELF_DEVICE_TIME:
        return core_device_us(r->self_device_ns);
    case F_USE_DEVICE:
        return core_use_device(r->uses_gpu);
    case F_CPU:
        return PyLong_FromLongLong(r->cpu_bytes);
    case F_SELF_CPU:
        return PyLong_FromLongLong(r->self_cpu_bytes);
    case F_DEVICE:
        return PyLong_FromLongLong(r->device_bytes);
    case F_SELF_DEVICE:
        return PyLong_FromLongLong(r->self_device_bytes);
    case F_FLOPS:
        return core_whole(r->flops);
    case F_MACS:
        return core_whole(r->macs);
    case F_MOVED:
        return core_whole(r->moved_bytes);
    case F_MIN:
        return core_us(r->min_ns);
    case F_MAX:
        return core_us(r->max_ns);
    case F_MODULE:
        return core_text(r->module);
    case F_PROCESS:
        return index_or_none(r->process);
    case F_THREAD:
        return index_or_none(r->thread);
    case F_HAS_PARENT:
        return PyBool_FromLong(r->has_parent);
    case F_EMPTY:
        return PyList_New(0);
    }
    return NULL;
}

/* The texts of times follow from the times, which may have been added up. */
static PyObject *average_time_text(PyObject *self, void *name)
{
    PyObject *value = PyObject_GetAttrString(self, name);
    double    us = value ? PyFloat_AsDouble(value) : -1;

    Py_XDECREF(value);
    return PyErr_Occurred() ? NULL : core_time_text(us);
}

/* Total over count, of which either may have been added up. */
static PyObject *average_mean(PyObject *self, void *name)
{
    PyObject *total = PyObject_GetAttrString(self, name);
    PyObject *count = total ? PyObject_GetAttrString(self, "count") : NULL;
    double    us = total ? PyFloat_AsDouble(total) : 0, calls = count ? PyFloat_AsDouble(count) : 0;

    Py_XDECREF(total);
    Py_XDECREF(count);
    return PyErr_Occurred() ? NULL : PyFloat_FromDouble(calls > 0 ? us / calls : 0.0);
}

static PyObject *average_repr(PyObject *self)
{
    PyObject *key = PyObject_GetAttrString(self, "key");
    PyObject *own = PyObject_GetAttrString(self, "self_cpu_time_total_str");
    PyObject *mean = PyObject_GetAttrString(self, "cpu_time_str");
    PyObject *shapes = PyObject_GetAttrString(self, "input_shapes");
    PyObject *memory = PyObject_GetAttrString(self, "cpu_memory_usage");
    PyObject *text = NULL;

    if (key && own && mean && shapes && memory)
        text = PyUnicode_FromFormat("<FunctionEventAvg key=%U self_cpu_time=%U cpu_time=%U "
                                    "input_shapes=%S cpu_memory_usage=%S>",
                                    key, own, mean, shapes, memory);
    Py_XDECREF(key);
    Py_XDECREF(own);
    Py_XDECREF(mean);
    Py_XDECREF(shapes);
    Py_XDECREF(memory);
    return text;
}

/* Entries whose getter receives the attribute that they derive from. */
#define TIME(name, of)                                                       \
    {                                                                        \
        name, (getter)average_time_text, NULL, NULL, (void *)(uintptr_t)(of) \
    }
#define MEAN(name, of)                                                  \
    {                                                                   \
        name, (getter)average_mean, NULL, NULL, (void *)(uintptr_t)(of) \
    }

static PyGetSetDef average_getset[] = {
    GET("key", average_get, F_KEY),
    GET("count", average_get, F_COUNT),
    GET("node_id", average_get, F_NODE),
    GET("is_remote", average_get, F_FALSE),
    GET("is_legacy", average_get, F_FALSE),
    GET("use_device", average_get, F_USE_DEVICE),
    GET("device_type", average_get, F_DEVICE_TYPE),
    GET("is_async", average_get, F_ASYNC),
    GET("is_user_annotation", average_get, F_USER),
    GET("scope", average_get, F_SCOPE),
    GET("input_shapes", average_get, F_SHAPES),
    GET("overload_name", average_get, F_OVERLOAD),
    GET("stack", average_get, F_STACK),
    GET("cpu_time_total", average_get, F_TOTAL),
    GET("self_cpu_time_total", average_get, F_SELF),
    MEAN("cpu_time", "cpu_time_total"),
    GET("device_time_total", average_get, F_DEVICE_TIME),
    GET("self_device_time_total", average_get, F_SELF_DEVICE_TIME),
    MEAN("device_time", "device_time_total"),
    DEPRECATED("cuda_time", "device_time"),
    DEPRECATED("cuda_time_total", "device_time_total"),
    DEPRECATED("self_cuda_time_total", "self_device_time_total"),
    TIME("cpu_time_str", "cpu_time"),
    TIME("cpu_time_total_str", "cpu_time_total"),
    TIME("self_cpu_time_total_str", "self_cpu_time_total"),
    TIME("device_time_str", "device_time"),
    TIME("device_time_total_str", "device_time_total"),
    TIME("self_device_time_total_str", "self_device_time_total"),
    GET("cpu_memory_usage", average_get, F_CPU),
    GET("self_cpu_memory_usage", average_get, F_SELF_CPU),
    GET("device_memory_usage", average_get, F_DEVICE),
    GET("self_device_memory_usage", average_get, F_SELF_DEVICE),
    DEPRECATED("cuda_memory_usage", "device_memory_usage"),
    DEPRECATED("self_cuda_memory_usage", "self_device_memory_usage"),
    GET("flops", average_get, F_FLOPS),
    GET("macs", average_get, F_MACS),
    GET("moved_bytes", average_get, F_MOVED),
    GET("cpu_time_min", average_get, F_MIN),
    GET("cpu_time_max", average_get, F_MAX),
    GET("module", average_get, F_MODULE),
    GET("process", average_get, F_PROCESS),
    GET("thread", average_get, F_THREAD),
    GET("has_parent", average_get, F_HAS_PARENT),
    GET("self_cpu_percent", average_get, F_NODE),
    GET("total_cpu_percent", average_get, F_NODE),
    GET("total_device_percent", average_get, F_NODE),
    GET("cpu_parent", average_get, F_NONE),
    GET("cpu_children", average_get, F_EMPTY),
    { "__class__", (getter)core_torch_class, NULL, NULL, (void *)(uintptr_t) "FunctionEventAvg" },
    END_GETSET,
};

static PyMethodDef average_methods[] = {
    { "add", METHOD(core_average_add), METH_O,
      "add(other): adds up what both have, and returns self" },
    { "__reduce__", METHOD(core_average_reduce), METH_NOARGS, NULL },
    { "__setstate__", METHOD(core_row_setstate), METH_O, NULL },
    { NULL, NULL, 0, NULL },
};

static PyMethodDef functions[] = {
    { "make_average", METHOD(core_average_unpickle), METH_VARARGS,
      "make_average(values, by_shape=False) -> Average, of no list" },
    { NULL, NULL, 0, NULL },
};

static PyMemberDef average_members[] = {
    { "__dictoffset__", T_PYSSIZET, offsetof(struct core_row, dict), READONLY, NULL },
    { NULL, 0, 0, 0, NULL },
};

static PyType_Slot average_slots[] = {
    { Py_tp_doc, "A row of key_averages(): torch's FunctionEventAvg." },
    { Py_tp_new, (void *)core_no_new },
    { Py_tp_dealloc, (void *)core_row_dealloc },
    { Py_tp_repr, (void *)average_repr },
    { Py_tp_getattro, (void *)core_row_get },
    { Py_tp_setattro, (void *)core_row_set },
    { Py_nb_inplace_add, (void *)core_average_add },
    { Py_tp_methods, average_methods },
    { Py_tp_getset, average_getset },
    { Py_tp_members, average_members },
    { 0, NULL },
};
static PyType_Spec average_spec = { .name = "sonde.Average",
                                    .basicsize = sizeof(struct average_object),
                                    .flags = Py_TPFLAGS_DEFAULT,
                                    .slots = average_slots };

int core_average_init(PyObject *module)
{
    return core_add_type(module, "Average", &average_spec, &average_type) < 0 ||
                   PyModule_AddFunctions(module, functions) < 0
               ? -1
               : 0;
}
