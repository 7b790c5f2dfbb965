/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python/read/events/event_list.c - Events: every event of a trace, as a sequence and as columns.
 */
#include "python/read/events/event_list.h"

#include <stdlib.h>
#include <string.h>
#include <structmember.h>

static PyTypeObject *events_type;

/* --------------------------------------------------------------------- Events */

static Py_ssize_t events_length(struct events_object *self)
{
    return (Py_ssize_t)sonde_events_columns(self->events)->count;
}

static PyObject *events_subscript(PyObject *self, PyObject *key)
{
    return core_slice(self, key, events_length((struct events_object *)self), core_events_item);
}

static void events_dealloc(struct events_object *self)
{
    size_t count = self->events ? sonde_events_text_count(self->events) : 0;

    for (size_t i = 0; self->texts && i < count; i++)
        Py_XDECREF(self->texts[i]);
    free(self->texts);
    free(self->first_child);
    free(self->next_child);
    free(self->first_kernel);
    free(self->next_kernel);
    Py_XDECREF(self->table.texts);
    Py_XDECREF(self->result);
    sonde_events_free(self->events);
    core_unuse(self->trace);
    core_free_object(self);
}

static PyObject *events_table(struct events_object *self, PyObject *args, PyObject *kwargs)
{
    struct table_options options;
    struct sonde_buffer  text = { 0 };
    struct sonde_error   err = { 0 };

    if (core_parse_table(args, kwargs, &options) < 0 || core_events_fill(self, NULL) < 0)
        return NULL;
    options.report.flops = self->flops;
    struct sonde_sink sink = sonde_sink_buffer(&text);
    enum sonde_status status = sonde_events_table(self->trace->trace, self->events, &options.report,
                                                  options.columns, &sink, &err);
    return core_finish_text(status, &text, &err);
}

static PyObject *events_total(PyObject *object, PyObject *unused)
{
    struct events_object              *self = (struct events_object *)object;
    const struct sonde_events_columns *c = sonde_events_columns(self->events);
    struct sonde_average               sum = core_no_average;

    (void)unused;
    if (core_events_fill(self, NULL) < 0)
        return NULL;
    for (size_t i = 0; i < c->count; i++) {
        struct sonde_average row = { .count = 1,
                                     .total_ns = c->flags[i] & SONDE_EVENT_ON_DEVICE
                                                     ? 0
                                                     : c->end_ns[i] - c->start_ns[i],
                                     .self_ns = c->self_ns[i],
                                     .cpu_bytes = c->cpu_bytes[i],
                                     .self_cpu_bytes = c->self_cpu_bytes[i],
                                     .device_bytes = c->device_bytes[i],
                                     .self_device_bytes = c->self_device_bytes[i],
                                     .device_ns = c->device_ns[i],
                                     .self_device_ns = c->self_device_ns[i],
                                     .uses_gpu = c->uses_gpu,
                                     .flops = c->flops[i],
                                     .macs = c->macs[i],
                                     .moved_bytes = c->moved_bytes[i] };
        core_add_up(&sum, &row);
    }
    return core_make_average(object, &sum, false);
}

/* clang-format off */
#define EVENT_COLUMNS(X)                                                     \
    X(name, 'I', CORE_DICTIONARY) X(trace_name, 'I', CORE_DICTIONARY)        \
    X(overload, 'I', CORE_DICTIONARY) X(process, 'I', CORE_NUMBER)           \
    X(thread, 'I', CORE_NUMBER) X(torch_thread, 'I', CORE_NUMBER)            \
    X(start_ns, 'q', CORE_NUMBER) X(end_ns, 'q', CORE_NUMBER)                \
    X(self_ns, 'q', CORE_NUMBER) X(parent, 'i', CORE_NUMBER)                 \
    X(shapes, 'I', CORE_NUMBER) X(strides, 'I', CORE_NUMBER)                 \
    X(arguments, 'I', CORE_DICTIONARY) X(keywords, 'I', CORE_DICTIONARY)     \
    X(stack, 'I', CORE_NUMBER)                                               \
    X(module, 'I', CORE_DICTIONARY) X(sequence, 'q', CORE_NUMBER)            \
    X(fwd_thread, 'I', CORE_NUMBER) X(scope, 'B', CORE_NUMBER)               \
    X(flags, 'B', CORE_NUMBER) X(flops, 'd', CORE_NUMBER)                    \
    X(macs, 'd', CORE_NUMBER) X(moved_bytes, 'd', CORE_NUMBER)               \
    X(cpu_bytes, 'q', CORE_NUMBER) X(self_cpu_bytes, 'q', CORE_NUMBER)       \
    X(device_bytes, 'q', CORE_NUMBER) X(self_device_bytes, 'q', CORE_NUMBER) \
    X(device_ns, 'q', CORE_NUMBER) X(self_device_ns, 'q', CORE_NUMBER)       \
    X(device, 'I', CORE_NUMBER) X(stream, 'I', CORE_NUMBER)                  \
    X(correlation, 'I', CORE_NUMBER) X(owner, 'i', CORE_NUMBER)
/* clang-format on */

/* Describes the columns; their data may have been made since. */
static void events_columns(struct events_object *self)
{
    const struct sonde_events_columns *c = sonde_events_columns(self->events);
    struct core_table                 *table = &self->table;

    table->count = c->count;
    table->column_count = 0;
#define COLUMN(title, code, text)           \
    table->columns[table->column_count++] = \
        (struct core_column){ .name = #title, .format = code, .data = c->title, .kind = text };
    EVENT_COLUMNS(COLUMN)
#undef COLUMN
}

static bool has_column(const struct core_table *table, const char *name)
{
    for (size_t i = 0; i < table->column_count; i++)
        if (strcmp(table->columns[i].name, name) == 0)
            return true;
    return false;
}

/*
 * All texts, for Arrow's dictionaries, which must not have one twice. Of the few texts that have
 * two numbers no event uses the second.
 */
static int events_texts(struct events_object *self)
{
    if (core_events_fill(self, NULL) < 0)
        return -1;
    events_columns(self);
    if (self->table.texts)
        return 0;
    PyObject *texts = PyList_New(0), *seen = PySet_New(NULL);
    for (size_t i = 0; texts && seen && i < sonde_events_text_count(self->events); i++) {
        PyObject *text = core_events_text(self, (uint32_t)i);
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
    if (has_column(&self->table, name) && core_events_fill(self, name) < 0)
        return NULL;
    events_columns(self);
    return core_table_column(&self->table, (PyObject *)self, name);
}

static PyObject *events_text_method(struct events_object *self, PyObject *args)
{
    unsigned int number;

    return PyArg_ParseTuple(args, "I:text", &number) ? core_events_text(self, number) : NULL;
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
    if (core_events_fill(self, "self_ns") < 0)
        return NULL;
    for (size_t i = 0; i < c->count; i++)
        sum += c->self_ns[i];
    return core_us(sum);
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
    PyObject *result = core_events_fill(self, NULL) == 0
                           ? core_write_file(path, write_stacks, &asked)
                           : NULL;
    Py_DECREF(path);
    return result;
}

/* Of a profile's result, which pickles its trace: `result` is set by whoever has one. */
static PyObject *events_reduce(struct events_object *self, PyObject *unused)
{
    (void)unused;
    if (!self->result || self->result == Py_None) {
        PyErr_SetString(PyExc_TypeError, "events of a Trace cannot be pickled: those of a profile "
                                         "can; or hand on the path of the trace");
        return NULL;
    }
    PyObject *lists = PyImport_ImportModule("sonde.torch._lists");
    PyObject *load = lists ? PyObject_GetAttrString(lists, "rows_of") : NULL;
    PyObject *reduced = load ? Py_BuildValue("(O(O))", load, self->result) : NULL;
    Py_XDECREF(load);
    Py_XDECREF(lists);
    return reduced;
}

static PyMemberDef events_members[] = {
    { "result", T_OBJECT, offsetof(struct events_object, result), 0, NULL },
    { NULL, 0, 0, 0, NULL },
};

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
    { "__reduce__", METHOD(events_reduce), METH_NOARGS, NULL },
    { "__arrow_c_schema__", METHOD(events_schema), METH_NOARGS, NULL },
    { "__arrow_c_array__", METHOD(events_array), METH_VARARGS | METH_KEYWORDS, NULL },
    { "__arrow_c_stream__", METHOD(events_stream), METH_VARARGS | METH_KEYWORDS, NULL },
    { NULL, NULL, 0, NULL },
};

static PyType_Slot events_slots[] = {
    { Py_tp_doc, "Every event, in torch's order." },
    { Py_tp_new, (void *)core_no_new },
    { Py_tp_dealloc, (void *)events_dealloc },
    { Py_tp_methods, events_methods },
    { Py_tp_members, events_members },
    { Py_tp_getset, events_getset },
    { Py_sq_length, (void *)events_length },
    { Py_sq_item, (void *)core_events_item },
    { Py_mp_length, (void *)events_length },
    { Py_mp_subscript, (void *)events_subscript },
    { 0, NULL },
};
static PyType_Spec events_spec = { .name = "sonde.Events",
                                   .basicsize = sizeof(struct events_object),
                                   .flags = Py_TPFLAGS_DEFAULT,
                                   .slots = events_slots };

static_assert(offsetof(struct events_object, trace) == offsetof(struct core_made, trace),
              "core_make_from() relies on this layout");

static enum sonde_status compute_events(struct sonde_trace *trace, struct core_made *made,
                                        const void *options, struct sonde_error *err)
{
    return sonde_events_new(trace, options, &((struct events_object *)made)->events, err);
}

PyObject *core_trace_events(struct trace_object *self, PyObject *args, PyObject *kwargs)
{
    static char                *names[] = { "flops", NULL };
    struct sonde_events_options options = { .struct_size = sizeof options,
                                            .flops = SONDE_FLOPS_FULL,
                                            .on_demand = true };
    const char                 *flops = "full";

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$s:events", names, &flops) ||
        core_flops(flops, &options.flops) < 0)
        return NULL;
    struct events_object *made = (struct events_object *)core_make_from(self, events_type,
                                                                        compute_events, &options);
    if (!made)
        return NULL;
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

int core_events_init(PyObject *module)
{
    return core_add_type(module, "Events", &events_spec, &events_type);
}
