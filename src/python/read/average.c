/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python/read/average.c - Average: a row of key_averages(), with the attributes of torch's FunctionEventAvg.
 *
 * A row borrows its texts from its owner: the list that it is of, or, when it was pickled, a list
 * of the texts alone. Pickled it is a dict of what is in core_average_members[].
 */
#include "python/read/rows.h"

#include <math.h>
#include <stddef.h>
#include <string.h>
#include <structmember.h>

static PyTypeObject *average_type;

struct average_object {
    struct core_row      base;
    struct sonde_average row;
    bool                 by_shape;
};

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
    /* not columns: */
    { "has_parent", FROM_SMALL, AT(has_parent) },
    { "process", FROM_INDEX, AT(process) },
    { "thread", FROM_INDEX, AT(thread) },
};
/* clang-format on */

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
    F_NOUGHT,
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
        return core_cpu_type();
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
    case F_NOUGHT:
        return PyLong_FromLong(0);
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

/* ------------------------------------------------------------------- pickling */

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

/* make_average({name: value}, by_shape): a row that belongs to no list. */
static PyObject *make_average(PyObject *module, PyObject *args)
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

static PyObject *average_reduce(PyObject *object, PyObject *unused)
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

/* ------------------------------------------------------------------------ adding */

/* What add() adds up, by the names of torch's attributes. */
static const char *const sums[] = {
    "count",
    "cpu_time_total",
    "self_cpu_time_total",
    "cpu_memory_usage",
    "self_cpu_memory_usage",
    "device_memory_usage",
    "self_device_memory_usage",
    "device_time_total",
    "self_device_time_total",
    "flops",
    "macs",
    "moved_bytes",
};

/* self.name += other.name; what torch's rows do not have, or have None of, counts as 0. */
static int add_attribute(PyObject *self, PyObject *other, const char *name)
{
    PyObject *theirs = PyObject_GetAttrString(other, name);
    if (!theirs || theirs == Py_None) {
        if (!theirs && !PyErr_ExceptionMatches(PyExc_AttributeError))
            return -1;
        PyErr_Clear();
        Py_XDECREF(theirs);
        return 0;
    }
    PyObject *ours = PyObject_GetAttrString(self, name);
    PyObject *sum = ours ? PyNumber_Add(ours, theirs) : NULL;
    int       result = sum ? PyObject_SetAttrString(self, name, sum) : -1;
    Py_XDECREF(sum);
    Py_XDECREF(ours);
    Py_DECREF(theirs);
    return result;
}

/* Rows of one key may be added up; one without a key takes the other's, as torch's does. */
static int take_key(PyObject *self, PyObject *other)
{
    PyObject *ours = PyObject_GetAttrString(self, "key");
    PyObject *theirs = ours ? PyObject_GetAttrString(other, "key") : NULL;
    int       result = -1;

    if (theirs && ours == Py_None)
        result = PyObject_SetAttrString(self, "key", theirs);
    else if (theirs)
        result = PyObject_RichCompareBool(ours, theirs, Py_EQ) - 1;
    if (result < 0 && theirs && !PyErr_Occurred())
        PyErr_Format(PyExc_AssertionError, "Expected keys to match, but got %S vs %S", theirs,
                     ours);
    Py_XDECREF(theirs);
    Py_XDECREF(ours);
    return result;
}

static PyObject *average_add(PyObject *self, PyObject *other)
{
    if (take_key(self, other) < 0)
        return NULL;
    for (size_t i = 0; i < sizeof sums / sizeof sums[0]; i++)
        if (add_attribute(self, other, sums[i]) < 0)
            return NULL;
    Py_INCREF(self);
    return self;
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

/* Entries whose getter is told the attribute that they follow from. */
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
    GET("use_device", average_get, F_NONE),
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
    GET("device_time_total", average_get, F_NOUGHT),
    GET("self_device_time_total", average_get, F_NOUGHT),
    MEAN("device_time", "device_time_total"),
    MEAN("cuda_time", "device_time_total"),
    GET("cuda_time_total", average_get, F_NOUGHT),
    GET("self_cuda_time_total", average_get, F_NOUGHT),
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
    GET("cuda_memory_usage", average_get, F_DEVICE),
    GET("self_cuda_memory_usage", average_get, F_SELF_DEVICE),
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
    { "add", METHOD(average_add), METH_O, "add(other): adds up what both have, and returns self" },
    { "__reduce__", METHOD(average_reduce), METH_NOARGS, NULL },
    { "__setstate__", METHOD(core_row_setstate), METH_O, NULL },
    { NULL, NULL, 0, NULL },
};

static PyMethodDef functions[] = {
    { "make_average", METHOD(make_average), METH_VARARGS,
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
    { Py_nb_inplace_add, (void *)average_add },
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
