/* SPDX-License-Identifier: Apache-2.0 */
/*
 * _core_averages.c - Averages and Average: key_averages() and its rows.
 */
#include "_core_rows.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <structmember.h>

static PyTypeObject *averages_type, *average_type;

/* ------------------------------------------------------------------- Averages */

struct averages_object {
    PyObject_HEAD
    struct trace_object   *trace; /* a reference, and a use */
    struct sonde_averages *averages;
    struct core_table      table; /* made when first asked for */
    void                  *columns;
    unsigned               groups;
    enum sonde_flops_mode  flops;
};

struct average_object {
    PyObject_HEAD
    PyObject            *owner; /* whose texts these are */
    PyObject            *dict;
    struct sonde_average row;
    bool                 by_shape;
};

PyObject *core_make_average(PyObject *owner, const struct sonde_average *row, bool by_shape)
{
    struct average_object *self = (struct average_object *)core_new_object(average_type);

    if (!self)
        return NULL;
    Py_INCREF(owner);
    self->owner = owner;
    self->row = *row;
    self->by_shape = by_shape;
    return (PyObject *)self;
}

static PyObject *averages_item(PyObject *object, Py_ssize_t index)
{
    struct averages_object     *self = (struct averages_object *)object;
    const struct sonde_average *row = index < 0 ? NULL
                                                : sonde_averages_row(self->averages, (size_t)index);

    if (!row) {
        PyErr_SetString(PyExc_IndexError, "there is no such row");
        return NULL;
    }
    return core_make_average(object, row, self->groups & SONDE_GROUP_SHAPE);
}

static Py_ssize_t averages_length(struct averages_object *self)
{
    return (Py_ssize_t)sonde_averages_count(self->averages);
}

static PyObject *averages_subscript(PyObject *self, PyObject *key)
{
    return core_slice(self, key, averages_length((struct averages_object *)self), averages_item);
}

static void averages_dealloc(struct averages_object *self)
{
    sonde_averages_free(self->averages);
    free(self->columns);
    Py_XDECREF(self->table.texts);
    if (self->trace) {
        core_unuse(self->trace);
        Py_DECREF(self->trace);
    }
    core_free_object(self);
}

static PyObject *averages_table(struct averages_object *self, PyObject *args, PyObject *kwargs)
{
    struct table_options options;
    struct sonde_buffer  text = { 0 };
    struct sonde_error   err = { 0 };

    if (core_parse_table(args, kwargs, &options) < 0)
        return NULL;
    options.report.flops = self->flops;
    struct sonde_sink sink = sonde_sink_buffer(&text);
    enum sonde_status status = sonde_averages_table(self->trace->trace, self->averages,
                                                    &options.report, options.columns, &sink, &err);
    return core_finish_text(status, &text, &err);
}

void core_add_up(struct sonde_average *sum, const struct sonde_average *row)
{
    sum->count += row->count;
    sum->total_ns += row->total_ns;
    sum->self_ns += row->self_ns;
    sum->cpu_bytes += row->cpu_bytes;
    sum->self_cpu_bytes += row->self_cpu_bytes;
    sum->device_bytes += row->device_bytes;
    sum->self_device_bytes += row->self_device_bytes;
    sum->flops += row->flops;
    sum->macs += row->macs;
    sum->moved_bytes += row->moved_bytes;
}

const struct sonde_average core_no_average = {
    .name = { "Total", 5 },
    .process = SONDE_NONE,
    .thread = SONDE_NONE,
    .shapes = { "", 0 },
    .stack = { "", 0 },
    .module = { "", 0 },
    .overload = { "", 0 },
};

static PyObject *averages_total(PyObject *object, PyObject *unused)
{
    struct averages_object *self = (struct averages_object *)object;
    struct sonde_average    sum = core_no_average;

    (void)unused;
    for (size_t i = 0; i < sonde_averages_count(self->averages); i++)
        core_add_up(&sum, sonde_averages_row(self->averages, i));
    return core_make_average(object, &sum, false);
}

/* Where a column comes from: a member of a row, or the number of one of its texts. */
enum source { FROM_COUNT, FROM_NS, FROM_BYTES, FROM_DOUBLE, FROM_SMALL, FROM_TEXT };

#define AT(member) offsetof(struct sonde_average, member)
static const struct {
    const char *name;
    enum source source;
    size_t      place; /* of the member, or which text */
} columns[] = {
    { "key", FROM_TEXT, 0 },
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
    { "input_shapes", FROM_TEXT, 1 },
    { "stack", FROM_TEXT, 2 },
    { "module", FROM_TEXT, 3 },
    { "overload_name", FROM_TEXT, 4 },
    { "scope", FROM_SMALL, AT(scope) },
    { "is_async", FROM_SMALL, AT(is_async) },
    { "is_user_annotation", FROM_SMALL, AT(is_user_annotation) },
};
#define COLUMN_COUNT (sizeof columns / sizeof columns[0])

static const char column_formats[] = { [FROM_COUNT] = 'Q',  [FROM_NS] = 'd',    [FROM_BYTES] = 'q',
                                       [FROM_DOUBLE] = 'd', [FROM_SMALL] = 'B', [FROM_TEXT] = 'I' };

static PyObject *average_texts(const struct sonde_averages *averages, size_t count)
{
    static const size_t places[] = { offsetof(struct sonde_average, name),
                                     offsetof(struct sonde_average, shapes),
                                     offsetof(struct sonde_average, stack),
                                     offsetof(struct sonde_average, module),
                                     offsetof(struct sonde_average, overload) };
    PyObject           *texts = PyList_New(0);

    for (size_t k = 0; k < sizeof places / sizeof places[0]; k++) {
        for (size_t i = 0; texts && i < count; i++) {
            const char *row = (const char *)sonde_averages_row(averages, i);
            PyObject *text = core_text(*(const struct sonde_text *)(const void *)(row + places[k]));
            if (!text || PyList_Append(texts, text) < 0)
                Py_CLEAR(texts);
            Py_XDECREF(text);
        }
    }
    return texts;
}

/* Element `i` of column `k`, stored as its format says. */
static void fill_element(const struct sonde_averages *averages, size_t k, size_t i, size_t count,
                         void *column)
{
    const char *member = (const char *)sonde_averages_row(averages, i) + columns[k].place;
    int64_t     ns;

    switch (columns[k].source) {
    case FROM_COUNT:
        memcpy((uint64_t *)column + i, member, sizeof(uint64_t));
        break;
    case FROM_NS:
        memcpy(&ns, member, sizeof ns);
        ((double *)column)[i] = (double)ns / 1000.0;
        break;
    case FROM_BYTES:
        memcpy((int64_t *)column + i, member, sizeof(int64_t));
        break;
    case FROM_DOUBLE:
        memcpy((double *)column + i, member, sizeof(double));
        break;
    case FROM_SMALL:
        memcpy((uint8_t *)column + i, member, 1);
        break;
    case FROM_TEXT: /* the texts of all rows come one kind after another */
        ((uint32_t *)column)[i] = (uint32_t)(columns[k].place * count + i);
        break;
    }
}

static int averages_columns(struct averages_object *self)
{
    size_t             count = sonde_averages_count(self->averages);
    struct core_table *table = &self->table;

    if (table->texts)
        return 0;
    /* Eight bytes an element whatever its type: simple, and aligned. */
    char *at = self->columns = malloc(COLUMN_COUNT * 8 * count + 8);
    if (!at) {
        PyErr_NoMemory();
        return -1;
    }
    table->count = count;
    table->column_count = COLUMN_COUNT;
    for (size_t k = 0; k < COLUMN_COUNT; k++, at += 8 * count) {
        for (size_t i = 0; i < count; i++)
            fill_element(self->averages, k, i, count, at);
        table->columns[k] =
            (struct core_column){ columns[k].name, column_formats[columns[k].source], at,
                                  columns[k].source == FROM_TEXT ? CORE_TEXT : CORE_NUMBER };
    }
    table->texts = average_texts(self->averages, count);
    return table->texts ? 0 : -1;
}

static PyObject *averages_column(struct averages_object *self, PyObject *args)
{
    const char *name;

    if (!PyArg_ParseTuple(args, "s:column", &name) || averages_columns(self) < 0)
        return NULL;
    return core_table_column(&self->table, (PyObject *)self, name);
}

static PyObject *averages_schema(struct averages_object *self, PyObject *unused)
{
    (void)unused;
    return averages_columns(self) < 0 ? NULL : core_table_schema(&self->table);
}

static PyObject *averages_array(struct averages_object *self, PyObject *args, PyObject *kwargs)
{
    (void)args, (void)kwargs; /* a requested schema is a wish */
    return averages_columns(self) < 0 ? NULL : core_table_array(&self->table, (PyObject *)self);
}

static PyObject *averages_stream(struct averages_object *self, PyObject *args, PyObject *kwargs)
{
    (void)args, (void)kwargs;
    return averages_columns(self) < 0 ? NULL : core_table_stream(&self->table, (PyObject *)self);
}

enum total {
    TOTAL_SELF,
    TOTAL_MEMORY,
    TOTAL_SHAPES,
    TOTAL_STACKS,
    TOTAL_FLOPS,
    TOTAL_EVENTS,
    TOTAL_RANGES,
    TOTAL_UNMATCHED,
    TOTAL_COLUMNS
};

static PyObject *averages_get(struct averages_object *self, void *which)
{
    const struct sonde_averages_totals *t = sonde_averages_totals(self->averages);

    switch ((enum total)(intptr_t)which) {
    case TOTAL_SELF:
        return core_us(t->self_ns);
    case TOTAL_MEMORY:
        return PyBool_FromLong(t->has_memory);
    case TOTAL_SHAPES:
        return PyBool_FromLong(t->has_shapes);
    case TOTAL_STACKS:
        return PyBool_FromLong(t->has_stacks);
    case TOTAL_FLOPS:
        return PyBool_FromLong(t->has_flops);
    case TOTAL_EVENTS:
        return PyLong_FromUnsignedLongLong(t->events);
    case TOTAL_RANGES:
        return PyLong_FromUnsignedLongLong(t->ranges);
    case TOTAL_UNMATCHED:
        return PyLong_FromUnsignedLongLong(t->unmatched_frees);
    case TOTAL_COLUMNS:
        return averages_columns(self) < 0 ? NULL : core_table_names(&self->table);
    }
    return NULL;
}

static PyGetSetDef averages_getset[] = {
    GET("self_cpu_time_total", averages_get, TOTAL_SELF),
    GET("has_memory", averages_get, TOTAL_MEMORY),
    GET("has_shapes", averages_get, TOTAL_SHAPES),
    GET("has_stacks", averages_get, TOTAL_STACKS),
    GET("has_flops", averages_get, TOTAL_FLOPS),
    GET("events", averages_get, TOTAL_EVENTS),
    GET("ranges", averages_get, TOTAL_RANGES),
    GET("unmatched_frees", averages_get, TOTAL_UNMATCHED),
    GET("columns", averages_get, TOTAL_COLUMNS),
    END_GETSET,
};

static PyMethodDef averages_methods[] = {
    { "table", METHOD(averages_table), METH_VARARGS | METH_KEYWORDS,
      "table(sort_by=None, row_limit=100, ...) -> str: torch's table" },
    { "column", METHOD(averages_column), METH_VARARGS, "column(name) -> Column" },
    { "total_average", METHOD(averages_total), METH_NOARGS, "the sum of all rows" },
    { "__arrow_c_schema__", METHOD(averages_schema), METH_NOARGS, NULL },
    { "__arrow_c_array__", METHOD(averages_array), METH_VARARGS | METH_KEYWORDS, NULL },
    { "__arrow_c_stream__", METHOD(averages_stream), METH_VARARGS | METH_KEYWORDS, NULL },
    { NULL, NULL, 0, NULL },
};

static PyType_Slot averages_slots[] = {
    { Py_tp_doc, "The rows of key_averages(), in the order in which their first ranges began." },
    { Py_tp_new, (void *)core_no_new },
    { Py_tp_dealloc, (void *)averages_dealloc },
    { Py_tp_methods, averages_methods },
    { Py_tp_getset, averages_getset },
    { Py_sq_length, (void *)averages_length },
    { Py_sq_item, (void *)averages_item },
    { Py_mp_length, (void *)averages_length },
    { Py_mp_subscript, (void *)averages_subscript },
    { 0, NULL },
};
static PyType_Spec averages_spec = { .name = "sonde.Averages",
                                     .basicsize = sizeof(struct averages_object),
                                     .flags = Py_TPFLAGS_DEFAULT,
                                     .slots = averages_slots };

/* --------------------------------------------------------------- one average */

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
    F_MEAN,
    F_NOUGHT,
    F_TOTAL_TEXT,
    F_SELF_TEXT,
    F_MEAN_TEXT,
    F_ZERO_TEXT,
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

static double mean_us(const struct sonde_average *row)
{
    return row->count ? (double)row->total_ns / 1000.0 / (double)row->count : 0.0;
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
    case F_MEAN:
        return PyFloat_FromDouble(mean_us(r));
    case F_NOUGHT:
        return PyLong_FromLong(0);
    case F_TOTAL_TEXT:
        return core_time_text((double)r->total_ns / 1000.0);
    case F_SELF_TEXT:
        return core_time_text((double)r->self_ns / 1000.0);
    case F_MEAN_TEXT:
        return core_time_text(mean_us(r));
    case F_ZERO_TEXT:
        return core_time_text(0);
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

static void average_dealloc(struct average_object *self)
{
    Py_XDECREF(self->owner);
    Py_XDECREF(self->dict);
    core_free_object(self);
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
    GET("cpu_time", average_get, F_MEAN),
    GET("device_time_total", average_get, F_NOUGHT),
    GET("self_device_time_total", average_get, F_NOUGHT),
    GET("device_time", average_get, F_NOUGHT),
    GET("cuda_time", average_get, F_NOUGHT),
    GET("cuda_time_total", average_get, F_NOUGHT),
    GET("self_cuda_time_total", average_get, F_NOUGHT),
    GET("cpu_time_str", average_get, F_MEAN_TEXT),
    GET("cpu_time_total_str", average_get, F_TOTAL_TEXT),
    GET("self_cpu_time_total_str", average_get, F_SELF_TEXT),
    GET("device_time_str", average_get, F_ZERO_TEXT),
    GET("device_time_total_str", average_get, F_ZERO_TEXT),
    GET("self_device_time_total_str", average_get, F_ZERO_TEXT),
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
    GET("cpu_parent", average_get, F_NONE),
    GET("cpu_children", average_get, F_EMPTY),
    END_GETSET,
};

static PyMemberDef average_members[] = {
    { "__dictoffset__", T_PYSSIZET, offsetof(struct average_object, dict), READONLY, NULL },
    { NULL, 0, 0, 0, NULL },
};

static PyType_Slot average_slots[] = {
    { Py_tp_doc, "A row of key_averages(): torch's FunctionEventAvg." },
    { Py_tp_new, (void *)core_no_new },
    { Py_tp_dealloc, (void *)average_dealloc },
    { Py_tp_repr, (void *)average_repr },
    { Py_tp_getset, average_getset },
    { Py_tp_members, average_members },
    { 0, NULL },
};
static PyType_Spec average_spec = { .name = "sonde.Average",
                                    .basicsize = sizeof(struct average_object),
                                    .flags = Py_TPFLAGS_DEFAULT,
                                    .slots = average_slots };

static_assert(offsetof(struct averages_object, trace) == offsetof(struct core_made, trace),
              "it begins as core_make_from() takes it to");

static enum sonde_status compute_averages(struct sonde_trace *trace, struct core_made *made,
                                          const void *options, struct sonde_error *err)
{
    return sonde_averages_new(trace, options, &((struct averages_object *)made)->averages, err);
}

PyObject *core_trace_averages(struct trace_object *self, PyObject *args, PyObject *kwargs)
{
    static char                  *names[] = { "group_by_input_shape",
                                              "group_by_stack_n",
                                              "group_by_overload_name",
                                              "group_by",
                                              "flops",
                                              "top_level",
                                              NULL };
    struct sonde_averages_options options = { 0 };
    const char                   *groups = "", *flops = "full";
    int                           by_shape = 0, by_overload = 0, top = 0, depth = 0;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|pip$ssp:averages", names, &by_shape, &depth,
                                     &by_overload, &groups, &flops, &top) ||
        core_groups(groups, &options.groups) < 0 || core_flops(flops, &options.flops) < 0)
        return NULL;
    options.groups |= (by_shape ? (unsigned)SONDE_GROUP_SHAPE : 0) |
                      (depth > 0 ? (unsigned)SONDE_GROUP_STACK : 0) |
                      (by_overload ? (unsigned)SONDE_GROUP_OVERLOAD : 0);
    options.stack_depth = depth > 0 ? (uint32_t)depth : 0;
    options.top_level = top;
    struct averages_object *made =
        (struct averages_object *)core_make_from(self, averages_type, compute_averages, &options);
    if (!made)
        return NULL;
    made->groups = options.groups;
    made->flops = options.flops;
    return (PyObject *)made;
}

int core_averages_init(PyObject *module)
{
    return core_add_type(module, "Averages", &averages_spec, &averages_type) < 0 ||
                   core_add_type(module, "Average", &average_spec, &average_type) < 0
               ? -1
               : 0;
}
