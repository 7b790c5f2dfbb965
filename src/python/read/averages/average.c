/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python/read/averages/average.c - Average: a row of key_averages(), with the attributes of torch's FunctionEventAvg.
 *
 * A row borrows its texts from its owner: the list that it is of, or, when it was pickled, a list
 * of the texts alone.
 */
#include "python/read/averages/average.h"

#include <stddef.h>
#include <string.h>
#include <structmember.h>

/* ----------------------------------------------------------------- attributes */

static PyObject *index_or_none(uint32_t value)
{
    if (value == SONDE_NONE)
        Py_RETURN_NONE;
    return PyLong_FromUnsignedLong(value);
}

/* Defines the getter `name` of a member of `type`; in its expression, `value` is the row's. */
#define MEMBER_GETTER(name, type, expression)                                      \
    static PyObject *name(struct average_object *self, void *member)               \
    {                                                                              \
        type value;                                                                \
                                                                                   \
        memcpy(&value, (const char *)&self->row + (intptr_t)member, sizeof value); \
        return expression;                                                         \
    }

MEMBER_GETTER(get_bool, bool, PyBool_FromLong(value))
MEMBER_GETTER(get_u8, uint8_t, PyLong_FromLong(value))
MEMBER_GETTER(get_u64, uint64_t, PyLong_FromUnsignedLongLong(value))
MEMBER_GETTER(get_i64, int64_t, PyLong_FromLongLong(value))
MEMBER_GETTER(get_double, double, core_whole(value))
MEMBER_GETTER(get_text, struct sonde_text, core_text(value))
MEMBER_GETTER(get_lines, struct sonde_text, core_split_lines(value.bytes, value.length))
MEMBER_GETTER(get_us, int64_t, core_us(value))
MEMBER_GETTER(get_device_us, int64_t, core_device_us(value))
MEMBER_GETTER(get_device_type, bool, core_device_type(value))
MEMBER_GETTER(get_use_device, bool, core_use_device(value))
MEMBER_GETTER(get_index, uint32_t, index_or_none(value))

static PyObject *get_shapes(struct average_object *self, void *unused)
{
    (void)unused;
    if (!self->by_shape)
        return PyUnicode_FromString("");
    if (self->row.shapes.length == 0)
        return PyList_New(0);
    PyObject *text = core_text(self->row.shapes);
    PyObject *value = text ? core_call("json", "loads", text) : NULL;
    Py_XDECREF(text);
    return value;
}

static PyObject *get_empty_list(struct average_object *self, void *unused)
{
    (void)self;
    (void)unused;
    return PyList_New(0);
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

#define MEMBER(name, getter_, member) GET(name, getter_, offsetof(struct sonde_average, member))
/* A number or a flag: its getter follows from its type. */
#define NUMBER(name, member)                                  \
    MEMBER(name,                                              \
           _Generic(((struct sonde_average *)0)->member, bool \
                    : get_bool, uint8_t                       \
                    : get_u8, uint64_t                        \
                    : get_u64, int64_t                        \
                    : get_i64, double                         \
                    : get_double),                            \
           member)

static PyGetSetDef average_getset[] = {
    MEMBER("key", get_text, name),
    NUMBER("count", count),
    GET("node_id", core_get_number, -1),
    GET("is_remote", core_get_false, 0),
    GET("is_legacy", core_get_false, 0),
    MEMBER("use_device", get_use_device, uses_gpu),
    MEMBER("device_type", get_device_type, on_device),
    NUMBER("is_async", is_async),
    NUMBER("is_user_annotation", is_user_annotation),
    NUMBER("scope", scope),
    GET("input_shapes", get_shapes, 0),
    MEMBER("overload_name", get_text, overload),
    MEMBER("stack", get_lines, stack),
    MEMBER("cpu_time_total", get_us, total_ns),
    MEMBER("self_cpu_time_total", get_us, self_ns),
    MEAN("cpu_time", "cpu_time_total"),
    MEMBER("device_time_total", get_device_us, device_ns),
    MEMBER("self_device_time_total", get_device_us, self_device_ns),
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
    COST_NUMBERS(NUMBER),
    MEMBER("cpu_time_min", get_us, min_ns),
    MEMBER("cpu_time_max", get_us, max_ns),
    MEMBER("module", get_text, module),
    MEMBER("process", get_index, process),
    MEMBER("thread", get_index, thread),
    NUMBER("has_parent", has_parent),
    /* torch has -1 for what it does not know of a row. */
    GET("self_cpu_percent", core_get_number, -1),
    GET("total_cpu_percent", core_get_number, -1),
    GET("total_device_percent", core_get_number, -1),
    GET("cpu_parent", core_get_none, 0),
    GET("cpu_children", get_empty_list, 0),
    { "__class__", (getter)core_torch_class, NULL, NULL, (void *)(uintptr_t) "FunctionEventAvg" },
    END_GETSET,
};

/* As torch's, which takes its argument by name too. */
static PyObject *average_add(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "other", NULL };
    PyObject    *other;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:add", names, &other))
        return NULL;
    return core_average_add(self, other);
}

static PyMethodDef average_methods[] = {
    { "add", METHOD(average_add), METH_VARARGS | METH_KEYWORDS,
      "add($self, other)\n--\n\nAdds up what both have, and returns self." },
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
    return core_add_type(module, "Average", &average_spec, &core_average_type) < 0 ||
                   PyModule_AddFunctions(module, functions) < 0
               ? -1
               : 0;
}
