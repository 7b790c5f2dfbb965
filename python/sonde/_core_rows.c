/* SPDX-License-Identifier: Apache-2.0 */
/*
 * _core_rows.c - Averages and Events: sequences whose rows are made when they are asked for.
 *
 * Rows have torch's attribute names and torch's units: microseconds, bytes. A row also takes
 * attributes of the user's own, as torch's do.
 */
#include "_core.h"

#include <structmember.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define ITEMS_MAX 4096 /* arguments of an operator, with the elements of lists */

static PyTypeObject *averages_type, *average_type, *events_type, *event_type, *interval_type,
    *timeline_type;

/* --------------------------------------------------------------------- helpers */

static PyObject *new_object(PyTypeObject *type)
{
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);

    return allocate(type, 0);
}

/* Rows and lists come from a trace. */
static PyObject *no_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)type, (void)args, (void)kwargs;
    PyErr_SetString(PyExc_TypeError, "only a Trace makes these");
    return NULL;
}

static void free_object(void *self)
{
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    freefunc      release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    release(self);
    Py_DECREF(type);
}

static PyObject *us(int64_t ns)
{
    return PyFloat_FromDouble((double)ns / 1000.0);
}

/* torch's _format_time. */
static PyObject *time_text(double value)
{
    char text[64];

    if (value >= 1e6)
        snprintf(text, sizeof text, "%.3fs", value / 1e6);
    else if (value >= 1e3)
        snprintf(text, sizeof text, "%.3fms", value / 1e3);
    else
        snprintf(text, sizeof text, "%.3fus", value);
    for (char *at = text; *at; at++)
        if (*at == ',') /* a locale's decimal point */
            *at = '.';
    return PyUnicode_FromString(text);
}

/* torch's DeviceType.CPU where torch is loaded, else its number. */
static PyObject *cpu_type(void)
{
    PyObject *modules = PySys_GetObject("modules"); /* borrowed */
    PyObject *autograd = modules ? PyDict_GetItemString(modules, "torch.autograd") : NULL;
    PyObject *types = autograd ? PyObject_GetAttrString(autograd, "DeviceType") : NULL;
    PyObject *cpu = types ? PyObject_GetAttrString(types, "CPU") : NULL;

    Py_XDECREF(types);
    PyErr_Clear();
    return cpu ? cpu : PyLong_FromLong(0);
}

static PyObject *split_lines(const char *bytes, size_t length)
{
    PyObject   *lines = PyList_New(0);
    const char *at = bytes, *end = bytes + length;

    while (lines && at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        PyObject   *line = core_text((struct sonde_text){ at, (size_t)((stop ? stop : end) - at) });
        if (!line || PyList_Append(lines, line) < 0)
            Py_CLEAR(lines);
        Py_XDECREF(line);
        at = stop ? stop + 1 : end;
    }
    return lines;
}

static PyObject *stack_lines(const struct sonde_trace *trace, uint32_t process, uint32_t stack)
{
    struct sonde_buffer text = { 0 };

    if (stack != 0)
        sonde_stack_text(trace, process, stack, SIZE_MAX, &text);
    PyObject *lines = split_lines(text.length ? text.bytes : "", text.length);
    sonde_buffer_release(&text);
    return lines;
}

static PyObject *call(const char *module, const char *function, PyObject *argument)
{
    PyObject *found = PyImport_ImportModule(module);
    PyObject *result = found ? PyObject_CallMethod(found, function, "O", argument) : NULL;

    Py_XDECREF(found);
    return result;
}

/* Calls `make(i)` for each index of a slice. */
static PyObject *slice_of(PyObject *self, PyObject *key, Py_ssize_t count,
                          PyObject *(*make)(PyObject *self, Py_ssize_t index))
{
    if (PySlice_Check(key)) {
        Py_ssize_t start, stop, step;
        if (PySlice_Unpack(key, &start, &stop, &step) < 0)
            return NULL;
        Py_ssize_t length = PySlice_AdjustIndices(count, &start, &stop, step);
        PyObject  *list = PyList_New(0);
        for (Py_ssize_t i = 0; list && i < length; i++) {
            PyObject *row = make(self, start + i * step);
            if (!row || PyList_Append(list, row) < 0)
                Py_CLEAR(list);
            Py_XDECREF(row);
        }
        return list;
    }
    Py_ssize_t index = PyNumber_AsSsize_t(key, PyExc_IndexError);
    if (index == -1 && PyErr_Occurred())
        return NULL;
    return make(self, index < 0 ? index + count : index);
}

/* ----------------------------------------------------------------- table options */

struct table_options {
    struct sonde_report_options report;
    unsigned                    columns;
};

static int parse_width(PyObject *object, uint32_t *out)
{
    if (object == Py_None) {
        *out = 0; /* no limit */
        return 0;
    }
    unsigned long value = PyLong_AsUnsignedLong(object);
    if (PyErr_Occurred())
        return -1;
    *out = value > 1000000 ? 1000000 : (uint32_t)value;
    return 0;
}

static int parse_unit(const char *unit, enum sonde_time_unit *out)
{
    *out = !unit                    ? SONDE_TIME_AUTO
           : strcmp(unit, "us") == 0 ? SONDE_TIME_US
           : strcmp(unit, "ms") == 0 ? SONDE_TIME_MS
           : strcmp(unit, "s") == 0  ? SONDE_TIME_S
                                     : SONDE_TIME_AUTO; /* as torch: an unknown one is each its own */
    return 0;
}

static int parse_table(PyObject *args, PyObject *kwargs, struct table_options *out)
{
    static char *names[] = { "sort_by", "row_limit", "max_src_column_width",
                             "max_name_column_width", "max_shapes_column_width", "header",
                             "top_level_events_only", "time_unit", "profile_memory", "with_flops",
                             NULL };
    const struct sonde_report_options defaults = SONDE_REPORT_OPTIONS_INIT;
    PyObject   *source = NULL, *name = NULL, *shapes = NULL;
    const char *unit = NULL;
    long long   rows = 100;
    int         top = 0, memory = 0, flops = 0;

    out->report = defaults;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|zLOOOzpz$pp:table", names, &out->report.sort,
                                     &rows, &source, &name, &shapes, &out->report.header, &top,
                                     &unit, &memory, &flops) ||
        (source && parse_width(source, &out->report.max_source) < 0) ||
        (name && parse_width(name, &out->report.max_name) < 0) ||
        (shapes && parse_width(shapes, &out->report.max_shapes) < 0) ||
        parse_unit(unit, &out->report.time_unit) < 0)
        return -1;
    out->report.rows = rows;
    out->report.top_level = top;
    out->columns = (memory ? (unsigned)SONDE_TABLE_MEMORY : 0) |
                   (flops ? (unsigned)SONDE_TABLE_FLOPS : 0);
    return 0;
}

static PyObject *finish_text(enum sonde_status status, struct sonde_buffer *text,
                             const struct sonde_error *err)
{
    PyObject *result = NULL;

    if (status != SONDE_OK)
        core_set_error(err);
    else
        result = core_text((struct sonde_text){ text->length ? text->bytes : "", text->length });
    sonde_buffer_release(text);
    return result;
}

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

static PyObject *make_average(PyObject *owner, const struct sonde_average *row, bool by_shape)
{
    struct average_object *self = (struct average_object *)new_object(average_type);

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
    struct averages_object *self = (struct averages_object *)object;
    const struct sonde_average *row =
        index < 0 ? NULL : sonde_averages_row(self->averages, (size_t)index);

    if (!row) {
        PyErr_SetString(PyExc_IndexError, "there is no such row");
        return NULL;
    }
    return make_average(object, row, self->groups & SONDE_GROUP_SHAPE);
}

static Py_ssize_t averages_length(struct averages_object *self)
{
    return (Py_ssize_t)sonde_averages_count(self->averages);
}

static PyObject *averages_subscript(PyObject *self, PyObject *key)
{
    return slice_of(self, key, averages_length((struct averages_object *)self), averages_item);
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
    free_object(self);
}

static PyObject *averages_table(struct averages_object *self, PyObject *args, PyObject *kwargs)
{
    struct table_options options;
    struct sonde_buffer  text = { 0 };
    struct sonde_error   err = { 0 };

    if (parse_table(args, kwargs, &options) < 0)
        return NULL;
    options.report.flops = self->flops;
    struct sonde_sink sink = sonde_sink_buffer(&text);
    enum sonde_status status = sonde_averages_table(self->trace->trace, self->averages,
                                                    &options.report, options.columns, &sink, &err);
    return finish_text(status, &text, &err);
}

static void add_up(struct sonde_average *sum, const struct sonde_average *row)
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

static const struct sonde_average no_average = {
    .name = { "Total", 5 }, .process = SONDE_NONE, .thread = SONDE_NONE, .shapes = { "", 0 },
    .stack = { "", 0 }, .module = { "", 0 }, .overload = { "", 0 },
};

static PyObject *averages_total(PyObject *object, PyObject *unused)
{
    struct averages_object *self = (struct averages_object *)object;
    struct sonde_average    sum = no_average;

    (void)unused;
    for (size_t i = 0; i < sonde_averages_count(self->averages); i++)
        add_up(&sum, sonde_averages_row(self->averages, i));
    return make_average(object, &sum, false);
}

/* Columns of averages: SND(name, format, text?, value). */
#define AVERAGE_COLUMNS(X)                                                                   \
    X("key", uint32_t, 'I', CORE_TEXT, (uint32_t)i)                                               \
    X("count", uint64_t, 'Q', CORE_NUMBER, row->count)                                             \
    X("self_cpu_time_total", double, 'd', CORE_NUMBER, (double)row->self_ns / 1000.0)              \
    X("cpu_time_total", double, 'd', CORE_NUMBER, (double)row->total_ns / 1000.0)                  \
    X("cpu_time_min", double, 'd', CORE_NUMBER, (double)row->min_ns / 1000.0)                      \
    X("cpu_time_max", double, 'd', CORE_NUMBER, (double)row->max_ns / 1000.0)                      \
    X("cpu_memory_usage", int64_t, 'q', CORE_NUMBER, row->cpu_bytes)                               \
    X("self_cpu_memory_usage", int64_t, 'q', CORE_NUMBER, row->self_cpu_bytes)                     \
    X("device_memory_usage", int64_t, 'q', CORE_NUMBER, row->device_bytes)                         \
    X("self_device_memory_usage", int64_t, 'q', CORE_NUMBER, row->self_device_bytes)               \
    X("flops", double, 'd', CORE_NUMBER, row->flops)                                               \
    X("macs", double, 'd', CORE_NUMBER, row->macs)                                                 \
    X("moved_bytes", double, 'd', CORE_NUMBER, row->moved_bytes)                                   \
    X("input_shapes", uint32_t, 'I', CORE_TEXT, (uint32_t)(count + i))                            \
    X("stack", uint32_t, 'I', CORE_TEXT, (uint32_t)(2 * count + i))                               \
    X("module", uint32_t, 'I', CORE_TEXT, (uint32_t)(3 * count + i))                              \
    X("overload_name", uint32_t, 'I', CORE_TEXT, (uint32_t)(4 * count + i))                       \
    X("scope", uint8_t, 'B', CORE_NUMBER, row->scope)                                              \
    X("is_async", uint8_t, 'B', CORE_NUMBER, row->is_async)                                        \
    X("is_user_annotation", uint8_t, 'B', CORE_NUMBER, row->is_user_annotation)

static PyObject *average_texts(const struct sonde_averages *averages, size_t count)
{
    static const size_t places[] = { offsetof(struct sonde_average, name),
                                     offsetof(struct sonde_average, shapes),
                                     offsetof(struct sonde_average, stack),
                                     offsetof(struct sonde_average, module),
                                     offsetof(struct sonde_average, overload) };
    PyObject *texts = PyList_New(0);

    for (size_t k = 0; k < sizeof places / sizeof places[0]; k++) {
        for (size_t i = 0; texts && i < count; i++) {
            const char *row = (const char *)sonde_averages_row(averages, i);
            PyObject   *text = core_text(*(const struct sonde_text *)(const void *)(row + places[k]));
            if (!text || PyList_Append(texts, text) < 0)
                Py_CLEAR(texts);
            Py_XDECREF(text);
        }
    }
    return texts;
}

static int averages_columns(struct averages_object *self)
{
    size_t             count = sonde_averages_count(self->averages);
    struct core_table *table = &self->table;

    if (table->texts)
        return 0;
    /* Eight bytes an element whatever its type: simple, and aligned. */
    char *at = self->columns = malloc(CORE_COLUMNS_MAX * 8 * count + 8);
    if (!at) {
        PyErr_NoMemory();
        return -1;
    }
    table->count = count;
    table->column_count = 0;
#define COLUMN(title, type, code, text, value)                                               \
    {                                                                                        \
        type *column = (type *)(void *)at;                                                   \
        for (size_t i = 0; i < count; i++) {                                                 \
            const struct sonde_average *row = sonde_averages_row(self->averages, i);         \
            (void)row;                                                                       \
            column[i] = value;                                                               \
        }                                                                                    \
        table->columns[table->column_count++] = (struct core_column){ title, code, column, text }; \
        at += 8 * count;                                                                     \
    }
    AVERAGE_COLUMNS(COLUMN)
#undef COLUMN
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

enum total { TOTAL_SELF, TOTAL_MEMORY, TOTAL_SHAPES, TOTAL_STACKS, TOTAL_FLOPS, TOTAL_EVENTS,
             TOTAL_RANGES, TOTAL_UNMATCHED, TOTAL_COLUMNS };

static PyObject *averages_get(struct averages_object *self, void *which)
{
    const struct sonde_averages_totals *t = sonde_averages_totals(self->averages);

    switch ((enum total)(intptr_t)which) {
    case TOTAL_SELF: return us(t->self_ns);
    case TOTAL_MEMORY: return PyBool_FromLong(t->has_memory);
    case TOTAL_SHAPES: return PyBool_FromLong(t->has_shapes);
    case TOTAL_STACKS: return PyBool_FromLong(t->has_stacks);
    case TOTAL_FLOPS: return PyBool_FromLong(t->has_flops);
    case TOTAL_EVENTS: return PyLong_FromUnsignedLongLong(t->events);
    case TOTAL_RANGES: return PyLong_FromUnsignedLongLong(t->ranges);
    case TOTAL_UNMATCHED: return PyLong_FromUnsignedLongLong(t->unmatched_frees);
    case TOTAL_COLUMNS: return averages_columns(self) < 0 ? NULL : core_table_names(&self->table);
    }
    return NULL;
}

#define GET(name, getter_, which) { name, (getter)(getter_), NULL, NULL, (void *)(intptr_t)(which) }
#define END_GETSET { NULL, NULL, NULL, NULL, NULL }

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
    { Py_tp_new, (void *)no_new },
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
    F_KEY, F_COUNT, F_NODE, F_FALSE, F_NONE, F_DEVICE_TYPE, F_ASYNC, F_USER, F_SCOPE, F_SHAPES,
    F_OVERLOAD, F_STACK, F_TOTAL, F_SELF, F_MEAN, F_ZERO, F_TOTAL_TEXT, F_SELF_TEXT, F_MEAN_TEXT,
    F_ZERO_TEXT, F_CPU, F_SELF_CPU, F_DEVICE, F_SELF_DEVICE, F_FLOPS, F_MACS, F_MOVED, F_MIN, F_MAX,
    F_MODULE, F_PROCESS, F_THREAD, F_HAS_PARENT, F_EMPTY,
};

static PyObject *shapes_value(const struct average_object *self)
{
    if (!self->by_shape)
        return PyUnicode_FromString("");
    if (self->row.shapes.length == 0)
        return PyList_New(0);
    PyObject *text = core_text(self->row.shapes);
    PyObject *value = text ? call("json", "loads", text) : NULL;
    Py_XDECREF(text);
    return value;
}

static PyObject *whole(double value)
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
    case F_KEY: return core_text(r->name);
    case F_COUNT: return PyLong_FromUnsignedLongLong(r->count);
    case F_NODE: return PyLong_FromLong(-1);
    case F_FALSE: Py_RETURN_FALSE;
    case F_NONE: Py_RETURN_NONE;
    case F_DEVICE_TYPE: return cpu_type();
    case F_ASYNC: return PyBool_FromLong(r->is_async);
    case F_USER: return PyBool_FromLong(r->is_user_annotation);
    case F_SCOPE: return PyLong_FromLong(r->scope);
    case F_SHAPES: return shapes_value(self);
    case F_OVERLOAD: return core_text(r->overload);
    case F_STACK: return split_lines(r->stack.bytes, r->stack.length);
    case F_TOTAL: return us(r->total_ns);
    case F_SELF: return us(r->self_ns);
    case F_MEAN: return PyFloat_FromDouble(mean_us(r));
    case F_ZERO: return PyLong_FromLong(0);
    case F_TOTAL_TEXT: return time_text((double)r->total_ns / 1000.0);
    case F_SELF_TEXT: return time_text((double)r->self_ns / 1000.0);
    case F_MEAN_TEXT: return time_text(mean_us(r));
    case F_ZERO_TEXT: return time_text(0);
    case F_CPU: return PyLong_FromLongLong(r->cpu_bytes);
    case F_SELF_CPU: return PyLong_FromLongLong(r->self_cpu_bytes);
    case F_DEVICE: return PyLong_FromLongLong(r->device_bytes);
    case F_SELF_DEVICE: return PyLong_FromLongLong(r->self_device_bytes);
    case F_FLOPS: return whole(r->flops);
    case F_MACS: return whole(r->macs);
    case F_MOVED: return whole(r->moved_bytes);
    case F_MIN: return us(r->min_ns);
    case F_MAX: return us(r->max_ns);
    case F_MODULE: return core_text(r->module);
    case F_PROCESS: return index_or_none(r->process);
    case F_THREAD: return index_or_none(r->thread);
    case F_HAS_PARENT: return PyBool_FromLong(r->has_parent);
    case F_EMPTY: return PyList_New(0);
    }
    return NULL;
}

static void average_dealloc(struct average_object *self)
{
    Py_XDECREF(self->owner);
    Py_XDECREF(self->dict);
    free_object(self);
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
    GET("key", average_get, F_KEY), GET("count", average_get, F_COUNT),
    GET("node_id", average_get, F_NODE), GET("is_remote", average_get, F_FALSE),
    GET("is_legacy", average_get, F_FALSE), GET("use_device", average_get, F_NONE),
    GET("device_type", average_get, F_DEVICE_TYPE), GET("is_async", average_get, F_ASYNC),
    GET("is_user_annotation", average_get, F_USER), GET("scope", average_get, F_SCOPE),
    GET("input_shapes", average_get, F_SHAPES), GET("overload_name", average_get, F_OVERLOAD),
    GET("stack", average_get, F_STACK), GET("cpu_time_total", average_get, F_TOTAL),
    GET("self_cpu_time_total", average_get, F_SELF), GET("cpu_time", average_get, F_MEAN),
    GET("device_time_total", average_get, F_ZERO), GET("self_device_time_total", average_get, F_ZERO),
    GET("device_time", average_get, F_ZERO), GET("cuda_time", average_get, F_ZERO),
    GET("cuda_time_total", average_get, F_ZERO), GET("self_cuda_time_total", average_get, F_ZERO),
    GET("cpu_time_str", average_get, F_MEAN_TEXT),
    GET("cpu_time_total_str", average_get, F_TOTAL_TEXT),
    GET("self_cpu_time_total_str", average_get, F_SELF_TEXT),
    GET("device_time_str", average_get, F_ZERO_TEXT),
    GET("device_time_total_str", average_get, F_ZERO_TEXT),
    GET("self_device_time_total_str", average_get, F_ZERO_TEXT),
    GET("cpu_memory_usage", average_get, F_CPU), GET("self_cpu_memory_usage", average_get, F_SELF_CPU),
    GET("device_memory_usage", average_get, F_DEVICE),
    GET("self_device_memory_usage", average_get, F_SELF_DEVICE),
    GET("cuda_memory_usage", average_get, F_DEVICE),
    GET("self_cuda_memory_usage", average_get, F_SELF_DEVICE),
    GET("flops", average_get, F_FLOPS), GET("macs", average_get, F_MACS),
    GET("moved_bytes", average_get, F_MOVED), GET("cpu_time_min", average_get, F_MIN),
    GET("cpu_time_max", average_get, F_MAX), GET("module", average_get, F_MODULE),
    GET("process", average_get, F_PROCESS), GET("thread", average_get, F_THREAD),
    GET("has_parent", average_get, F_HAS_PARENT), GET("cpu_parent", average_get, F_NONE),
    GET("cpu_children", average_get, F_EMPTY), END_GETSET,
};

static PyMemberDef average_members[] = {
    { "__dictoffset__", T_PYSSIZET, offsetof(struct average_object, dict), READONLY, NULL },
    { NULL, 0, 0, 0, NULL },
};

static PyType_Slot average_slots[] = {
    { Py_tp_doc, "A row of key_averages(): torch's FunctionEventAvg." },
    { Py_tp_new, (void *)no_new },
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

PyObject *core_trace_averages(struct trace_object *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "group_by_input_shape", "group_by_stack_n", "group_by_overload_name",
                             "group_by", "flops", "top_level", NULL };
    struct sonde_averages_options options = { 0 };
    const char *groups = "", *flops = "full";
    int         by_shape = 0, by_overload = 0, top = 0, depth = 0;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|pip$ssp:averages", names, &by_shape, &depth,
                                     &by_overload, &groups, &flops, &top) ||
        core_groups(groups, &options.groups) < 0 || core_flops(flops, &options.flops) < 0)
        return NULL;
    options.groups |= (by_shape ? (unsigned)SONDE_GROUP_SHAPE : 0) |
                      (depth > 0 ? (unsigned)SONDE_GROUP_STACK : 0) |
                      (by_overload ? (unsigned)SONDE_GROUP_OVERLOAD : 0);
    options.stack_depth = depth > 0 ? (uint32_t)depth : 0;
    options.top_level = top;
    struct averages_object *made = (struct averages_object *)new_object(averages_type);
    if (!made)
        return NULL;
    struct sonde_trace *trace = core_take(self);
    if (!trace) {
        Py_DECREF(made);
        return NULL;
    }
    struct sonde_error err = { 0 };
    enum sonde_status  status;
    Py_BEGIN_ALLOW_THREADS
    status = sonde_averages_new(trace, &options, &made->averages, &err);
    Py_END_ALLOW_THREADS
    core_let_go(self);
    if (status != SONDE_OK) {
        core_set_error(&err);
        Py_DECREF(made);
        return NULL;
    }
    core_use(self);
    Py_INCREF(self);
    made->trace = self;
    made->groups = options.groups;
    made->flops = options.flops;
    return (PyObject *)made;
}

/* --------------------------------------------------------------------- Events */

struct events_object {
    PyObject_HEAD
    struct trace_object  *trace;
    struct sonde_events  *events;
    struct core_table     table;
    PyObject            **texts; /* by number, made when first asked for */
    uint32_t             *first_child; /* of each event, then the next of the same parent */
    uint32_t             *next_child;
    enum sonde_flops_mode flops;
};

struct event_object {
    PyObject_HEAD
    struct events_object *owner;
    PyObject             *dict;
    size_t                index;
};

static PyObject *events_text(struct events_object *self, uint32_t number)
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

static PyObject *events_item(PyObject *object, Py_ssize_t index)
{
    struct events_object *owner = (struct events_object *)object;

    if (index < 0 || (size_t)index >= sonde_events_columns(owner->events)->count) {
        PyErr_SetString(PyExc_IndexError, "there is no such event");
        return NULL;
    }
    struct event_object *self = (struct event_object *)new_object(event_type);
    if (!self)
        return NULL;
    Py_INCREF(owner);
    self->owner = owner;
    self->index = (size_t)index;
    return (PyObject *)self;
}

static Py_ssize_t events_length(struct events_object *self)
{
    return (Py_ssize_t)sonde_events_columns(self->events)->count;
}

static PyObject *events_subscript(PyObject *self, PyObject *key)
{
    return slice_of(self, key, events_length((struct events_object *)self), events_item);
}

static void events_dealloc(struct events_object *self)
{
    size_t count = self->events ? sonde_events_text_count(self->events) : 0;

    for (size_t i = 0; self->texts && i < count; i++)
        Py_XDECREF(self->texts[i]);
    free(self->texts);
    free(self->first_child);
    free(self->next_child);
    Py_XDECREF(self->table.texts);
    sonde_events_free(self->events);
    if (self->trace) {
        core_unuse(self->trace);
        Py_DECREF(self->trace);
    }
    free_object(self);
}

static PyObject *events_table(struct events_object *self, PyObject *args, PyObject *kwargs)
{
    struct table_options options;
    struct sonde_buffer  text = { 0 };
    struct sonde_error   err = { 0 };

    if (parse_table(args, kwargs, &options) < 0)
        return NULL;
    options.report.flops = self->flops;
    struct sonde_sink sink = sonde_sink_buffer(&text);
    enum sonde_status status = sonde_events_table(self->trace->trace, self->events, &options.report,
                                                  options.columns, &sink, &err);
    return finish_text(status, &text, &err);
}

static PyObject *events_total(PyObject *object, PyObject *unused)
{
    struct events_object              *self = (struct events_object *)object;
    const struct sonde_events_columns *c = sonde_events_columns(self->events);
    struct sonde_average               sum = no_average;

    (void)unused;
    for (size_t i = 0; i < c->count; i++) {
        struct sonde_average row = { .count = 1, .total_ns = c->end_ns[i] - c->start_ns[i],
                                     .self_ns = c->self_ns[i], .cpu_bytes = c->cpu_bytes[i],
                                     .self_cpu_bytes = c->self_cpu_bytes[i],
                                     .device_bytes = c->device_bytes[i],
                                     .self_device_bytes = c->self_device_bytes[i],
                                     .flops = c->flops[i], .macs = c->macs[i],
                                     .moved_bytes = c->moved_bytes[i] };
        add_up(&sum, &row);
    }
    return make_average(object, &sum, false);
}

#define EVENT_COLUMNS(X)                                                                     \
    X(name, 'I', CORE_DICTIONARY) X(trace_name, 'I', CORE_DICTIONARY) X(overload, 'I', CORE_DICTIONARY) X(process, 'I', CORE_NUMBER) \
    X(thread, 'I', CORE_NUMBER) X(torch_thread, 'I', CORE_NUMBER) X(start_ns, 'q', CORE_NUMBER)                \
    X(end_ns, 'q', CORE_NUMBER) X(self_ns, 'q', CORE_NUMBER) X(parent, 'i', CORE_NUMBER) X(shapes, 'I', CORE_NUMBER) \
    X(strides, 'I', CORE_NUMBER) X(arguments, 'I', CORE_DICTIONARY) X(stack, 'I', CORE_NUMBER) X(module, 'I', CORE_DICTIONARY) \
    X(sequence, 'q', CORE_NUMBER) X(fwd_thread, 'I', CORE_NUMBER) X(scope, 'B', CORE_NUMBER)                   \
    X(flags, 'B', CORE_NUMBER) X(flops, 'd', CORE_NUMBER) X(macs, 'd', CORE_NUMBER) X(moved_bytes, 'd', CORE_NUMBER) \
    X(cpu_bytes, 'q', CORE_NUMBER) X(self_cpu_bytes, 'q', CORE_NUMBER) X(device_bytes, 'q', CORE_NUMBER)       \
    X(self_device_bytes, 'q', CORE_NUMBER)

static void events_columns(struct events_object *self)
{
    const struct sonde_events_columns *c = sonde_events_columns(self->events);
    struct core_table                 *table = &self->table;

    if (table->column_count > 0)
        return;
    table->count = c->count;
#define COLUMN(title, code, text) \
    table->columns[table->column_count++] = (struct core_column){ #title, code, c->title, text };
    EVENT_COLUMNS(COLUMN)
#undef COLUMN
}

/*
 * All texts, for Arrow's dictionaries, which must not have one twice. Of the few texts that have
 * two numbers no event uses the second.
 */
static int events_texts(struct events_object *self)
{
    events_columns(self);
    if (self->table.texts)
        return 0;
    PyObject *texts = PyList_New(0), *seen = PySet_New(NULL);
    for (size_t i = 0; texts && seen && i < sonde_events_text_count(self->events); i++) {
        PyObject *text = events_text(self, (uint32_t)i);
        int       twice = text ? PySet_Contains(seen, text) : -1;
        if (twice > 0) {
            Py_DECREF(text);
            text = PyUnicode_FromFormat("(unused %zu)", i);
        }
        if (twice < 0 || !text || PySet_Add(seen, text) < 0 || PyList_Append(texts, text) < 0)
            Py_CLEAR(texts);
        Py_XDECREF(text);
    }
    if (!seen)
        Py_CLEAR(texts);
    Py_XDECREF(seen);
    self->table.texts = texts;
    return texts ? 0 : -1;
}

static PyObject *events_column(struct events_object *self, PyObject *args)
{
    const char *name;

    if (!PyArg_ParseTuple(args, "s:column", &name))
        return NULL;
    events_columns(self);
    return core_table_column(&self->table, (PyObject *)self, name);
}

static PyObject *events_text_method(struct events_object *self, PyObject *args)
{
    unsigned int number;

    return PyArg_ParseTuple(args, "I:text", &number) ? events_text(self, number) : NULL;
}

static PyObject *events_schema(struct events_object *self, PyObject *unused)
{
    (void)unused;
    events_columns(self);
    return core_table_schema(&self->table);
}

static PyObject *events_array(struct events_object *self, PyObject *args, PyObject *kwargs)
{
    (void)args, (void)kwargs;
    return events_texts(self) < 0 ? NULL : core_table_array(&self->table, (PyObject *)self);
}

static PyObject *events_stream(struct events_object *self, PyObject *args, PyObject *kwargs)
{
    (void)args, (void)kwargs;
    return events_texts(self) < 0 ? NULL : core_table_stream(&self->table, (PyObject *)self);
}

static PyObject *events_names(struct events_object *self, void *unused)
{
    (void)unused;
    events_columns(self);
    return core_table_names(&self->table);
}

static PyObject *events_self_time(struct events_object *self, void *unused)
{
    const struct sonde_events_columns *c = sonde_events_columns(self->events);
    int64_t                            sum = 0;

    (void)unused;
    for (size_t i = 0; i < c->count; i++)
        sum += c->self_ns[i];
    return us(sum);
}

struct stacks_call {
    const struct sonde_trace  *trace;
    const struct sonde_events *events;
    const char                *metric;
};

static enum sonde_status write_stacks(const struct sonde_sink *sink, bool gzip, void *user,
                                      struct sonde_error *err)
{
    const struct stacks_call *asked = user;

    (void)gzip;
    return sonde_events_stacks(asked->trace, asked->events, asked->metric, sink, err);
}

static PyObject *events_stacks(struct events_object *self, PyObject *args, PyObject *kwargs)
{
    static char       *names[] = { "path", "metric", NULL };
    struct stacks_call asked = { self->trace->trace, self->events, "self_cpu_time_total" };
    PyObject          *path = NULL;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|s:export_stacks", names,
                                     PyUnicode_FSConverter, &path, &asked.metric))
        return NULL;
    PyObject *result = core_write_file(path, write_stacks, &asked);
    Py_DECREF(path);
    return result;
}

static PyGetSetDef events_getset[] = {
    { "columns", (getter)events_names, NULL, NULL, NULL },
    { "self_cpu_time_total", (getter)events_self_time, NULL, NULL, NULL },
    END_GETSET,
};

static PyMethodDef events_methods[] = {
    { "table", METHOD(events_table), METH_VARARGS | METH_KEYWORDS,
      "table(sort_by=None, row_limit=100, ...) -> str: torch's table" },
    { "column", METHOD(events_column), METH_VARARGS, "column(name) -> Column" },
    { "text", METHOD(events_text_method), METH_VARARGS, "text(number) -> str, of a text column" },
    { "total_average", METHOD(events_total), METH_NOARGS, "the sum of all events" },
    { "export_stacks", METHOD(events_stacks), METH_VARARGS | METH_KEYWORDS,
      "export_stacks(path, metric='self_cpu_time_total')" },
    { "__arrow_c_schema__", METHOD(events_schema), METH_NOARGS, NULL },
    { "__arrow_c_array__", METHOD(events_array), METH_VARARGS | METH_KEYWORDS, NULL },
    { "__arrow_c_stream__", METHOD(events_stream), METH_VARARGS | METH_KEYWORDS, NULL },
    { NULL, NULL, 0, NULL },
};

static PyType_Slot events_slots[] = {
    { Py_tp_doc, "Every event, in torch's order." },
    { Py_tp_new, (void *)no_new },
    { Py_tp_dealloc, (void *)events_dealloc },
    { Py_tp_methods, events_methods },
    { Py_tp_getset, events_getset },
    { Py_sq_length, (void *)events_length },
    { Py_sq_item, (void *)events_item },
    { Py_mp_length, (void *)events_length },
    { Py_mp_subscript, (void *)events_subscript },
    { 0, NULL },
};
static PyType_Spec events_spec = { .name = "sonde.Events",
                                   .basicsize = sizeof(struct events_object),
                                   .flags = Py_TPFLAGS_DEFAULT,
                                   .slots = events_slots };

PyObject *core_trace_events(struct trace_object *self, PyObject *args, PyObject *kwargs)
{
    static char                *names[] = { "flops", NULL };
    struct sonde_events_options options = { SONDE_FLOPS_FULL };
    const char                 *flops = "full";

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$s:events", names, &flops) ||
        core_flops(flops, &options.flops) < 0)
        return NULL;
    struct events_object *made = (struct events_object *)new_object(events_type);
    if (!made)
        return NULL;
    struct sonde_trace *trace = core_take(self);
    if (!trace) {
        Py_DECREF(made);
        return NULL;
    }
    struct sonde_error err = { 0 };
    enum sonde_status  status;
    Py_BEGIN_ALLOW_THREADS
    status = sonde_events_new(trace, &options, &made->events, &err);
    Py_END_ALLOW_THREADS
    core_let_go(self);
    if (status != SONDE_OK) {
        core_set_error(&err);
        Py_DECREF(made);
        return NULL;
    }
    core_use(self);
    Py_INCREF(self);
    made->trace = self;
    made->flops = options.flops;
    return (PyObject *)made;
}

PyObject *core_trace_stacks(struct trace_object *self, PyObject *args, PyObject *kwargs)
{
    PyObject *none = PyTuple_New(0), *result = NULL;
    PyObject *events = none ? core_trace_events(self, none, NULL) : NULL;

    if (events)
        result = events_stacks((struct events_object *)events, args, kwargs);
    Py_XDECREF(events);
    Py_XDECREF(none);
    return result;
}

/* ------------------------------------------------------------------ one event */

struct interval_object {
    PyObject_HEAD
    double start, end;
};

static PyObject *interval_elapsed(struct interval_object *self, PyObject *unused)
{
    (void)unused;
    return PyFloat_FromDouble(self->end - self->start);
}

static PyObject *interval_repr(PyObject *self)
{
    PyObject *start = PyObject_GetAttrString(self, "start");
    PyObject *end = PyObject_GetAttrString(self, "end");
    PyObject *text = start && end ? PyUnicode_FromFormat("Interval(%S, %S)", start, end) : NULL;

    Py_XDECREF(start);
    Py_XDECREF(end);
    return text;
}

static void plain_dealloc(PyObject *self)
{
    free_object(self);
}

static PyMemberDef interval_members[] = {
    { "start", T_DOUBLE, offsetof(struct interval_object, start), 0, NULL },
    { "end", T_DOUBLE, offsetof(struct interval_object, end), 0, NULL },
    { NULL, 0, 0, 0, NULL },
};
static PyMethodDef interval_methods[] = {
    { "elapsed_us", METHOD(interval_elapsed), METH_NOARGS, "how long it took" },
    { NULL, NULL, 0, NULL },
};
static PyType_Slot interval_slots[] = {
    { Py_tp_doc, "From start to end, in microseconds since the recording began." },
    { Py_tp_new, (void *)no_new },
    { Py_tp_dealloc, (void *)plain_dealloc },
    { Py_tp_repr, (void *)interval_repr },
    { Py_tp_members, interval_members },
    { Py_tp_methods, interval_methods },
    { 0, NULL },
};
static PyType_Spec interval_spec = { .name = "sonde.Interval",
                                     .basicsize = sizeof(struct interval_object),
                                     .flags = Py_TPFLAGS_DEFAULT,
                                     .slots = interval_slots };

static PyObject *make_interval(int64_t start_ns, int64_t end_ns)
{
    struct interval_object *self = (struct interval_object *)new_object(interval_type);

    if (self) {
        self->start = (double)start_ns / 1000.0;
        self->end = (double)end_ns / 1000.0;
    }
    return (PyObject *)self;
}

/* Appends and lets go of `item`; false with an exception set. */
static bool push(PyObject *list, PyObject *item)
{
    bool good = item && PyList_Append(list, item) == 0;

    Py_XDECREF(item);
    return good;
}

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

enum arguments { ARGUMENTS_FLAT, ARGUMENTS_NESTED, ARGUMENTS_STRIDES, ARGUMENTS_TYPES };

static PyObject *type_text(const struct sonde_argument *items, size_t count, size_t at,
                           PyObject *values, Py_ssize_t place)
{
    const char *type = sonde_argument_type(items, count, at);

    /* A list of numbers is told by its text alone. */
    if (!*type && values && place < PyList_Size(values)) {
        PyObject *value = PyList_GetItem(values, place);
        if (PyList_Check(value))
            type = "ScalarList";
    }
    return PyUnicode_FromString(type);
}

static PyObject *arguments_list(const struct sonde_trace *trace, uint32_t process, uint32_t id,
                                enum arguments what, PyObject *values, bool as_strides)
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
        size_t inside = a->kind == 2 && a->count < count - i ? a->count : 0;
        if (what == ARGUMENTS_TYPES) {
            good = push(list, type_text(items, count, i, values, PyList_Size(list)));
        } else if (a->kind == 1) {
            good = push(list, dims_list(a, as_strides));
        } else {
            PyObject *inner = PyList_New(0);
            for (size_t k = 1; inner && what != ARGUMENTS_FLAT && k <= inside; k++)
                if (a[k].kind == 1 && !push(inner, dims_list(&a[k], as_strides)))
                    Py_CLEAR(inner);
            good = push(list, inner);
        }
        i += inside;
    }
    free(items);
    if (!good)
        Py_CLEAR(list);
    return list;
}

/* "[1, 1]", "True", "1.5" to what they are; "" to None; what is no value stays text. */
static PyObject *concrete_value(PyObject *text)
{
    if (PyUnicode_GetLength(text) == 0)
        Py_RETURN_NONE;
    PyObject *value = call("ast", "literal_eval", text);
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

static PyObject *concrete_list(struct events_object *owner, size_t i)
{
    const struct sonde_events_columns *c = sonde_events_columns(owner->events);
    PyObject                          *list = PyList_New(0);

    if (!list)
        return NULL;
    if (c->arguments[i] == 0) { /* all of them are nothing to show */
        PyObject *shapes = arguments_list(owner->trace->trace, c->process[i], c->shapes[i],
                                          ARGUMENTS_FLAT, NULL, false);
        for (Py_ssize_t k = 0; shapes && k < PyList_Size(shapes); k++) {
            Py_INCREF(Py_None);
            if (!push(list, Py_None))
                break;
        }
        Py_XDECREF(shapes);
        return list;
    }
    PyObject *text = events_text(owner, c->arguments[i]);
    PyObject *parts = text ? call("json", "loads", text) : NULL;
    Py_XDECREF(text);
    if (!parts || !PyList_Check(parts)) {
        PyErr_Clear();
        Py_XDECREF(parts);
        return list;
    }
    for (Py_ssize_t k = 0; k < PyList_Size(parts); k++)
        if (!push(list, concrete_value(PyList_GetItem(parts, k))))
            Py_CLEAR(list);
    Py_DECREF(parts);
    return list;
}

#define NO_EVENT UINT32_MAX

/* Children of each event, in order: a list through next_child. */
static int link_children(struct events_object *owner)
{
    const struct sonde_events_columns *c = sonde_events_columns(owner->events);

    if (owner->first_child)
        return 0;
    owner->first_child = malloc((c->count + 1) * sizeof *owner->first_child);
    owner->next_child = malloc((c->count + 1) * sizeof *owner->next_child);
    if (!owner->first_child || !owner->next_child) {
        free(owner->first_child);
        owner->first_child = NULL;
        PyErr_NoMemory();
        return -1;
    }
    memset(owner->first_child, 0xff, (c->count + 1) * sizeof *owner->first_child);
    for (size_t i = c->count; i-- > 0;) {
        owner->next_child[i] = NO_EVENT;
        if (c->parent[i] >= 0) {
            owner->next_child[i] = owner->first_child[c->parent[i]];
            owner->first_child[c->parent[i]] = (uint32_t)i;
        }
    }
    return 0;
}

static PyObject *children_list(struct events_object *owner, size_t i)
{
    PyObject *list = link_children(owner) < 0 ? NULL : PyList_New(0);

    for (uint32_t at = list ? owner->first_child[i] : NO_EVENT; at != NO_EVENT;
         at = owner->next_child[at]) {
        if (!push(list, events_item((PyObject *)owner, (Py_ssize_t)at))) {
            Py_CLEAR(list);
            break;
        }
    }
    return list;
}

enum event_field {
    E_ID, E_NAME, E_TRACE_NAME, E_OVERLOAD, E_TIME_RANGE, E_THREAD, E_FWD_THREAD, E_TID, E_ONE,
    E_NODE, E_ASYNC, E_FALSE, E_USER, E_NONE, E_DEVICE_TYPE, E_ZERO, E_EMPTY_LIST, E_EMPTY_DICT,
    E_SCOPE, E_SEQUENCE, E_SHAPES, E_NESTED_SHAPES, E_STRIDES, E_TYPES, E_CONCRETE, E_STACK, E_MODULE,
    E_PARENT, E_CHILDREN, E_TOTAL, E_SELF, E_TOTAL_TEXT, E_SELF_TEXT, E_ZERO_TEXT, E_CPU, E_SELF_CPU,
    E_DEVICE, E_SELF_DEVICE, E_FLOPS, E_MACS, E_MOVED, E_PROCESS, E_INDEX,
};

static PyObject *event_parent(const struct event_object *self, int32_t parent)
{
    if (parent < 0)
        Py_RETURN_NONE;
    return events_item((PyObject *)self->owner, parent);
}

static PyObject *event_types(struct events_object *owner, size_t i)
{
    const struct sonde_events_columns *c = sonde_events_columns(owner->events);
    PyObject *values = concrete_list(owner, i);
    PyObject *list = values ? arguments_list(owner->trace->trace, c->process[i], c->shapes[i],
                                             ARGUMENTS_TYPES, values, false)
                            : NULL;

    Py_XDECREF(values);
    return list;
}

static PyObject *event_get(struct event_object *self, void *which)
{
    struct events_object              *owner = self->owner;
    const struct sonde_trace          *trace = owner->trace->trace;
    const struct sonde_events_columns *c = sonde_events_columns(owner->events);
    size_t                             i = self->index;
    double total_us = (double)(c->end_ns[i] - c->start_ns[i]) / 1000.0;

    switch ((enum event_field)(intptr_t)which) {
    case E_ID: return PyLong_FromSize_t(i + 1);
    case E_NAME: return events_text(owner, c->name[i]);
    case E_TRACE_NAME:
        if (c->trace_name[i] == 0)
            Py_RETURN_NONE;
        return events_text(owner, c->trace_name[i]);
    case E_OVERLOAD: return events_text(owner, c->overload[i]);
    case E_TIME_RANGE: return make_interval(c->start_ns[i], c->end_ns[i]);
    case E_THREAD: return PyLong_FromUnsignedLong(c->torch_thread[i]);
    case E_FWD_THREAD: return PyLong_FromUnsignedLong(c->fwd_thread[i]);
    case E_TID: return PyLong_FromUnsignedLong(sonde_trace_thread(trace, c->thread[i])->tid);
    case E_ONE: return PyLong_FromLong(1);
    case E_NODE: return PyLong_FromLong(-1);
    case E_ASYNC: return PyBool_FromLong(c->flags[i] & SONDE_EVENT_IS_ASYNC);
    case E_FALSE: Py_RETURN_FALSE;
    case E_USER: return PyBool_FromLong(c->flags[i] & SONDE_EVENT_IS_USER);
    case E_NONE: Py_RETURN_NONE;
    case E_DEVICE_TYPE: return cpu_type();
    case E_ZERO: return PyLong_FromLong(0);
    case E_EMPTY_LIST: return PyList_New(0);
    case E_EMPTY_DICT: return PyDict_New();
    case E_SCOPE: return PyLong_FromLong(c->scope[i]);
    case E_SEQUENCE: return PyLong_FromLongLong(c->sequence[i]);
    case E_SHAPES:
        return arguments_list(trace, c->process[i], c->shapes[i], ARGUMENTS_FLAT, NULL, false);
    case E_NESTED_SHAPES:
        return arguments_list(trace, c->process[i], c->shapes[i], ARGUMENTS_NESTED, NULL, false);
    case E_STRIDES: /* not recorded where they follow from the shapes */
        return arguments_list(trace, c->process[i], c->strides[i] ? c->strides[i] : c->shapes[i],
                              ARGUMENTS_STRIDES, NULL, c->strides[i] == 0);
    case E_TYPES: return event_types(owner, i);
    case E_CONCRETE: return concrete_list(owner, i);
    case E_STACK: return stack_lines(trace, c->process[i], c->stack[i]);
    case E_MODULE: return events_text(owner, c->module[i]);
    case E_PARENT: return event_parent(self, c->parent[i]);
    case E_CHILDREN: return children_list(owner, i);
    case E_TOTAL: return PyFloat_FromDouble(total_us);
    case E_SELF: return us(c->self_ns[i]);
    case E_TOTAL_TEXT: return time_text(total_us);
    case E_SELF_TEXT: return time_text((double)c->self_ns[i] / 1000.0);
    case E_ZERO_TEXT: return time_text(0);
    case E_CPU: return PyLong_FromLongLong(c->cpu_bytes[i]);
    case E_SELF_CPU: return PyLong_FromLongLong(c->self_cpu_bytes[i]);
    case E_DEVICE: return PyLong_FromLongLong(c->device_bytes[i]);
    case E_SELF_DEVICE: return PyLong_FromLongLong(c->self_device_bytes[i]);
    case E_FLOPS: return whole(c->flops[i]);
    case E_MACS: return whole(c->macs[i]);
    case E_MOVED: return whole(c->moved_bytes[i]);
    case E_PROCESS: return PyLong_FromUnsignedLong(c->process[i]);
    case E_INDEX: return PyLong_FromSize_t(i);
    }
    return NULL;
}

static void event_dealloc(struct event_object *self)
{
    Py_XDECREF((PyObject *)self->owner);
    Py_XDECREF(self->dict);
    free_object(self);
}

/* Two objects of one event are one: rows are made anew each time they are asked for. */
static PyObject *event_compare(PyObject *left, PyObject *right, int operation)
{
    if ((operation != Py_EQ && operation != Py_NE) || Py_TYPE(left) != Py_TYPE(right)) {
        Py_INCREF(Py_NotImplemented);
        return Py_NotImplemented;
    }
    const struct event_object *a = (struct event_object *)left, *b = (struct event_object *)right;
    bool                       same = a->owner == b->owner && a->index == b->index;
    return PyBool_FromLong(same == (operation == Py_EQ));
}

static Py_hash_t event_hash(struct event_object *self)
{
    return (Py_hash_t)((uintptr_t)self->owner / 16 * 31 + self->index) & PY_SSIZE_T_MAX;
}

static PyObject *event_repr(PyObject *self)
{
    PyObject *id = PyObject_GetAttrString(self, "id"), *name = PyObject_GetAttrString(self, "name");
    PyObject *time = PyObject_GetAttrString(self, "cpu_time_str");
    PyObject *thread = PyObject_GetAttrString(self, "thread");
    PyObject *shapes = PyObject_GetAttrString(self, "input_shapes");
    PyObject *text = NULL;

    if (id && name && time && thread && shapes)
        text = PyUnicode_FromFormat("<FunctionEvent id=%S name=%U cpu_time=%U thread=%S "
                                    "input_shapes=%S>", id, name, time, thread, shapes);
    Py_XDECREF(id);
    Py_XDECREF(name);
    Py_XDECREF(time);
    Py_XDECREF(thread);
    Py_XDECREF(shapes);
    return text;
}

static PyGetSetDef event_getset[] = {
    GET("id", event_get, E_ID), GET("name", event_get, E_NAME), GET("key", event_get, E_NAME),
    GET("trace_name", event_get, E_TRACE_NAME), GET("overload_name", event_get, E_OVERLOAD),
    GET("time_range", event_get, E_TIME_RANGE), GET("thread", event_get, E_THREAD),
    GET("fwd_thread", event_get, E_FWD_THREAD), GET("tid", event_get, E_TID),
    GET("count", event_get, E_ONE), GET("node_id", event_get, E_NODE),
    GET("is_async", event_get, E_ASYNC), GET("is_remote", event_get, E_FALSE),
    GET("is_legacy", event_get, E_FALSE), GET("is_user_annotation", event_get, E_USER),
    GET("is_python_function", event_get, E_FALSE), GET("use_device", event_get, E_NONE),
    GET("device_type", event_get, E_DEVICE_TYPE), GET("device_index", event_get, E_ZERO),
    GET("device_resource_id", event_get, E_THREAD), GET("kernels", event_get, E_EMPTY_LIST),
    GET("scope", event_get, E_SCOPE), GET("sequence_nr", event_get, E_SEQUENCE),
    GET("input_shapes", event_get, E_SHAPES),
    GET("structured_input_shapes", event_get, E_NESTED_SHAPES),
    GET("structured_input_strides", event_get, E_STRIDES), GET("input_dtypes", event_get, E_TYPES),
    GET("concrete_inputs", event_get, E_CONCRETE), GET("kwinputs", event_get, E_EMPTY_DICT),
    GET("stack", event_get, E_STACK), GET("module", event_get, E_MODULE),
    GET("cpu_parent", event_get, E_PARENT), GET("cpu_children", event_get, E_CHILDREN),
    GET("cpu_time_total", event_get, E_TOTAL), GET("cpu_time", event_get, E_TOTAL),
    GET("self_cpu_time_total", event_get, E_SELF), GET("device_time_total", event_get, E_ZERO),
    GET("self_device_time_total", event_get, E_ZERO), GET("device_time", event_get, E_ZERO),
    GET("cuda_time", event_get, E_ZERO), GET("cuda_time_total", event_get, E_ZERO),
    GET("self_cuda_time_total", event_get, E_ZERO), GET("cpu_time_str", event_get, E_TOTAL_TEXT),
    GET("cpu_time_total_str", event_get, E_TOTAL_TEXT),
    GET("self_cpu_time_total_str", event_get, E_SELF_TEXT),
    GET("device_time_str", event_get, E_ZERO_TEXT),
    GET("device_time_total_str", event_get, E_ZERO_TEXT),
    GET("self_device_time_total_str", event_get, E_ZERO_TEXT),
    GET("cpu_memory_usage", event_get, E_CPU), GET("self_cpu_memory_usage", event_get, E_SELF_CPU),
    GET("device_memory_usage", event_get, E_DEVICE),
    GET("self_device_memory_usage", event_get, E_SELF_DEVICE),
    GET("cuda_memory_usage", event_get, E_DEVICE),
    GET("self_cuda_memory_usage", event_get, E_SELF_DEVICE),
    GET("flops", event_get, E_FLOPS), GET("macs", event_get, E_MACS),
    GET("moved_bytes", event_get, E_MOVED), GET("process", event_get, E_PROCESS),
    GET("index", event_get, E_INDEX), END_GETSET,
};

static PyMemberDef event_members[] = {
    { "__dictoffset__", T_PYSSIZET, offsetof(struct event_object, dict), READONLY, NULL },
    { NULL, 0, 0, 0, NULL },
};

static PyType_Slot event_slots[] = {
    { Py_tp_doc, "An entry of events(): torch's FunctionEvent." },
    { Py_tp_new, (void *)no_new },
    { Py_tp_dealloc, (void *)event_dealloc },
    { Py_tp_repr, (void *)event_repr },
    { Py_tp_richcompare, (void *)event_compare },
    { Py_tp_hash, (void *)event_hash },
    { Py_tp_getset, event_getset },
    { Py_tp_members, event_members },
    { 0, NULL },
};
static PyType_Spec event_spec = { .name = "sonde.Event",
                                  .basicsize = sizeof(struct event_object),
                                  .flags = Py_TPFLAGS_DEFAULT,
                                  .slots = event_slots };

/* ------------------------------------------------------------------- Timeline */

struct timeline_object {
    PyObject_HEAD
    struct trace_object   *trace;
    struct sonde_timeline *timeline;
    struct core_table      table;
};

static Py_ssize_t timeline_length(struct timeline_object *self)
{
    return (Py_ssize_t)sonde_timeline_columns(self->timeline)->count;
}

static void timeline_dealloc(struct timeline_object *self)
{
    sonde_timeline_free(self->timeline);
    if (self->trace) {
        core_unuse(self->trace);
        Py_DECREF(self->trace);
    }
    free_object(self);
}

static PyObject *timeline_column(struct timeline_object *self, PyObject *args)
{
    const char *name;

    return PyArg_ParseTuple(args, "s:column", &name)
               ? core_table_column(&self->table, (PyObject *)self, name)
               : NULL;
}

static bool ends_with(const char *text, const char *ending)
{
    size_t length = strlen(text), tail = strlen(ending);

    return length >= tail && strcmp(text + length - tail, ending) == 0;
}

struct timeline_call {
    struct timeline_object    *self;
    enum sonde_timeline_format format;
};

static enum sonde_status write_timeline(const struct sonde_sink *sink, bool gzip, void *user,
                                        struct sonde_error *err)
{
    const struct timeline_call *asked = user;

    return sonde_timeline_write(asked->self->trace->trace, asked->self->timeline, asked->format,
                                gzip, sink, err);
}

static PyObject *timeline_export(struct timeline_object *self, PyObject *args)
{
    PyObject *path = NULL;

    if (!PyArg_ParseTuple(args, "O&:export", PyUnicode_FSConverter, &path))
        return NULL;
    const char          *bytes = PyBytes_AsString(path);
    struct timeline_call asked = { self, SONDE_TIMELINE_JSON };
    if (ends_with(bytes, ".html"))
        asked.format = SONDE_TIMELINE_HTML;
    else if (ends_with(bytes, "raw.json.gz") || ends_with(bytes, "raw.json"))
        asked.format = SONDE_TIMELINE_RAW;
    PyObject *result = core_write_file(path, write_timeline, &asked);
    Py_DECREF(path);
    return result;
}

static PyObject *timeline_categories(struct timeline_object *self, void *unused)
{
    (void)self, (void)unused;
    return Py_BuildValue("[ssssssss]", "UNKNOWN", "PARAMETER", "OPTIMIZER_STATE", "INPUT",
                         "TEMPORARY", "ACTIVATION", "GRADIENT", "AUTOGRAD_DETAIL");
}

static PyGetSetDef timeline_getset[] = {
    { "categories", (getter)timeline_categories, NULL, NULL, NULL },
    END_GETSET,
};
static PyMethodDef timeline_methods[] = {
    { "column", METHOD(timeline_column), METH_VARARGS,
      "column(name) -> Column: time_ns, bytes, category, address" },
    { "export", METHOD(timeline_export), METH_VARARGS,
      "export(path): .html, .json, .json.gz or .raw.json.gz, as torch's export_memory_timeline" },
    { NULL, NULL, 0, NULL },
};
static PyType_Slot timeline_slots[] = {
    { Py_tp_doc, "Every change of what a device holds, in order of time." },
    { Py_tp_new, (void *)no_new },
    { Py_tp_dealloc, (void *)timeline_dealloc },
    { Py_tp_methods, timeline_methods },
    { Py_tp_getset, timeline_getset },
    { Py_sq_length, (void *)timeline_length },
    { 0, NULL },
};
static PyType_Spec timeline_spec = { .name = "sonde.Timeline",
                                     .basicsize = sizeof(struct timeline_object),
                                     .flags = Py_TPFLAGS_DEFAULT,
                                     .slots = timeline_slots };

/* "cpu", "cuda", "cuda:1"; types are torch's numbers. */
static int parse_device(const char *text, uint32_t *type, uint32_t *index)
{
    static const struct {
        const char *name;
        uint32_t    type;
    } devices[] = { { "cpu", 0 }, { "cuda", 1 }, { "hip", 6 }, { "xpu", 12 }, { "mps", 13 } };
    size_t length = strcspn(text, ":");

    for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++) {
        if (strlen(devices[i].name) != length || strncmp(devices[i].name, text, length) != 0)
            continue;
        *type = devices[i].type;
        *index = text[length] == ':' && *type != 0 ? (uint32_t)strtoul(text + length + 1, NULL, 10)
                                                   : SONDE_NONE;
        return 0;
    }
    PyErr_Format(core_error, "no device '%s'; there are: cpu, cuda, cuda:N, xpu, xpu:N", text);
    return -1;
}

PyObject *core_trace_timeline(struct trace_object *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "device", NULL };
    const char  *device = "cpu";
    uint32_t     type, index;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|s:memory_timeline", names, &device) ||
        parse_device(device, &type, &index) < 0)
        return NULL;
    struct timeline_object *made = (struct timeline_object *)new_object(timeline_type);
    if (!made)
        return NULL;
    struct sonde_trace *trace = core_take(self);
    if (!trace) {
        Py_DECREF(made);
        return NULL;
    }
    struct sonde_error err = { 0 };
    enum sonde_status  status;
    Py_BEGIN_ALLOW_THREADS
    status = sonde_timeline_new(trace, type, index, &made->timeline, &err);
    Py_END_ALLOW_THREADS
    core_let_go(self);
    if (status != SONDE_OK) {
        core_set_error(&err);
        Py_DECREF(made);
        return NULL;
    }
    core_use(self);
    Py_INCREF(self);
    made->trace = self;
    const struct sonde_timeline_columns *c = sonde_timeline_columns(made->timeline);
    made->table = (struct core_table){ .count = c->count,
                                       .column_count = 4,
                                       .columns = { { "time_ns", 'q', c->time_ns, CORE_NUMBER },
                                                    { "bytes", 'q', c->bytes, CORE_NUMBER },
                                                    { "category", 'B', c->category, CORE_NUMBER },
                                                    { "address", 'Q', c->address, CORE_NUMBER } } };
    return (PyObject *)made;
}

/* ---------------------------------------------------------------------- types */

int core_rows_init(PyObject *module)
{
    static const struct {
        const char    *name;
        PyType_Spec   *spec;
        PyTypeObject **type;
    } types[] = {
        { "Averages", &averages_spec, &averages_type }, { "Average", &average_spec, &average_type },
        { "Events", &events_spec, &events_type },       { "Event", &event_spec, &event_type },
        { "Interval", &interval_spec, &interval_type }, { "Timeline", &timeline_spec, &timeline_type },
    };

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        *types[i].type = (PyTypeObject *)PyType_FromSpec(types[i].spec);
        if (!*types[i].type ||
            PyObject_SetAttrString(module, types[i].name, (PyObject *)*types[i].type) < 0)
            return -1;
    }
    return 0;
}
