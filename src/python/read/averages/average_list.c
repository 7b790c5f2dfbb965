/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python/read/averages/average_list.c - Averages: the list of key_averages().
 */
#include "python/read/rows.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static PyTypeObject *averages_type;

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

static PyObject *averages_item(PyObject *object, Py_ssize_t index)
{
    struct averages_object *self = (struct averages_object *)object;

    if (index < 0 || (size_t)index >= sonde_averages_count(self->averages)) {
        PyErr_SetString(PyExc_IndexError, "row index out of range");
        return NULL;
    }
    const struct sonde_average row = sonde_averages_get(self->averages, (size_t)index);
    return core_make_average(object, &row, self->groups & SONDE_GROUP_SHAPE);
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
    core_unuse(self->trace);
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

static PyObject *averages_total(PyObject *object, PyObject *unused)
{
    struct averages_object *self = (struct averages_object *)object;
    struct sonde_average    sum = core_no_average;

    (void)unused;
    for (size_t i = 0; i < sonde_averages_count(self->averages); i++) {
        const struct sonde_average row = sonde_averages_get(self->averages, i);
        core_add_up(&sum, &row);
    }
    return core_make_average(object, &sum, false);
}

#define COLUMN_COUNT CORE_AVERAGE_COLUMNS

static const char column_formats[] = { [FROM_COUNT] = 'Q',  [FROM_NS] = 'd',    [FROM_BYTES] = 'q',
                                       [FROM_DOUBLE] = 'd', [FROM_SMALL] = 'B', [FROM_TEXT] = 'I' };

/* The texts of all rows, one column after another. */
static PyObject *average_texts(const struct sonde_averages *averages, size_t count)
{
    PyObject *texts = PyList_New(0);

    for (size_t k = 0; k < COLUMN_COUNT; k++) {
        for (size_t i = 0; texts && core_average_members[k].source == FROM_TEXT && i < count; i++) {
            const struct sonde_average row = sonde_averages_get(averages, i);
            struct sonde_text          bytes;
            memcpy(&bytes, (const char *)&row + core_average_members[k].place, sizeof bytes);
            PyObject *text = core_text(bytes);
            if (!text || PyList_Append(texts, text) < 0)
                Py_CLEAR(texts);
            Py_XDECREF(text);
        }
    }
    return texts;
}

/* How many columns of texts come before column `k`. */
static size_t texts_before(size_t k)
{
    size_t before = 0;

    while (k-- > 0)
        before += core_average_members[k].source == FROM_TEXT;
    return before;
}

/* Element `i` of column `k`, stored as its format says. */
static void fill_element(const struct sonde_averages *averages, size_t k, size_t i, size_t count,
                         void *column)
{
    const struct sonde_average row = sonde_averages_get(averages, i);
    const char                *member = (const char *)&row + core_average_members[k].place;
    int64_t                    ns;

    switch (core_average_members[k].source) {
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
    case FROM_TEXT:
        ((uint32_t *)column)[i] = (uint32_t)(texts_before(k) * count + i);
        break;
    case FROM_INDEX: /* no column is one */
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
        table->columns[k] = (struct core_column){
            .name = core_average_members[k].name,
            .format = column_formats[core_average_members[k].source],
            .data = at,
            .kind = core_average_members[k].source == FROM_TEXT ? CORE_TEXT : CORE_NUMBER,
        };
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
    (void)args, (void)kwargs; /* a requested schema may be ignored */
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

/* ---------------------------------------------------------------- from a trace */

static_assert(offsetof(struct averages_object, trace) == offsetof(struct core_made, trace),
              "core_make_from() relies on this layout");

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
    struct sonde_averages_options options = SONDE_AVERAGES_OPTIONS_INIT;
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
    return core_add_type(module, "Averages", &averages_spec, &averages_type);
}
