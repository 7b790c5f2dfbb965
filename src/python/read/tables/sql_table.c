/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python/read/tables/sql_table.c - Table: one of the tables of docs/SCHEMA.md, for DuckDB and others that take Arrow.
 *
 * libsonde makes the columns; they are handed out as they are.
 */
#include "python/read/rows.h"

static PyTypeObject *table_type;

struct table_object {
    PyObject_HEAD
    struct sonde_table *rows; /* owned */
    struct core_table   table;
};

static void table_dealloc(struct table_object *self)
{
    Py_XDECREF(self->table.texts);
    sonde_table_free(self->rows);
    core_free_object(self);
}

static PyObject *list_texts(const struct sonde_table *rows)
{
    PyObject *list = PyList_New(0);

    for (size_t i = 0; list && i < sonde_table_text_count(rows); i++) {
        PyObject *text = core_text(sonde_table_text(rows, i));
        if (!text || PyList_Append(list, text) < 0)
            Py_CLEAR(list);
        Py_XDECREF(text);
    }
    return list;
}

struct core_column core_sql_column(const struct sonde_table_column *column)
{
    static const char formats[] = {
        [SONDE_COLUMN_INTEGER] = 'q', [SONDE_COLUMN_REAL] = 'd', [SONDE_COLUMN_TEXT] = 'I'
    };

    return (struct core_column){
        .name = column->name,
        .format = formats[column->type],
        .data = column->data,
        .kind = column->type == SONDE_COLUMN_TEXT ? CORE_DICTIONARY : CORE_NUMBER,
        .nullable = true,
        .valid = column->valid,
        .null_count = column->null_count,
    };
}

static int fill_table(struct table_object *self)
{
    const struct sonde_table_column *column;

    self->table.count = sonde_table_row_count(self->rows);
    for (size_t i = 0; (column = sonde_table_column(self->rows, i)) != NULL; i++)
        self->table.columns[self->table.column_count++] = core_sql_column(column);
    self->table.texts = list_texts(self->rows);
    return self->table.texts ? 0 : -1;
}

PyObject *core_trace_table(struct trace_object *trace, PyObject *args)
{
    struct sonde_table *rows;
    struct sonde_error  err = { 0 };
    enum sonde_status   status;
    const char         *name;

    if (!PyArg_ParseTuple(args, "s:table", &name))
        return NULL;
    struct sonde_trace *opened = core_take(trace);
    if (!opened)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    status = sonde_table_new(opened, name, &rows, &err);
    Py_END_ALLOW_THREADS
    core_let_go(trace);
    if (status != SONDE_OK) {
        core_set_error(&err);
        return NULL;
    }
    allocfunc            allocate = (allocfunc)PyType_GetSlot(table_type, Py_tp_alloc);
    struct table_object *self = (struct table_object *)allocate(table_type, 0);
    if (!self) {
        sonde_table_free(rows);
        return NULL;
    }
    self->rows = rows;
    if (fill_table(self) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

PyObject *core_trace_table_names(struct trace_object *trace, PyObject *unused)
{
    PyObject   *list = PyList_New(0);
    const char *name;

    (void)trace, (void)unused;
    for (size_t i = 0; list && (name = sonde_table_name(i)) != NULL; i++) {
        PyObject *text = PyUnicode_FromString(name);
        if (!text || PyList_Append(list, text) < 0)
            Py_CLEAR(list);
        Py_XDECREF(text);
    }
    return list;
}

PyObject *core_trace_job(struct trace_object *trace, PyObject *unused)
{
    char                job[SONDE_JOB_SIZE];
    struct sonde_trace *opened = core_take(trace);

    (void)unused;
    if (!opened)
        return NULL;
    sonde_trace_job(opened, job);
    core_let_go(trace);
    return PyUnicode_FromString(job);
}

static Py_ssize_t table_length(struct table_object *self)
{
    return (Py_ssize_t)self->table.count;
}

static PyObject *table_schema(struct table_object *self, PyObject *unused)
{
    (void)unused;
    return core_table_schema(&self->table);
}

static PyObject *table_stream(struct table_object *self, PyObject *args, PyObject *kwargs)
{
    (void)args, (void)kwargs; /* a requested schema is a wish */
    return core_table_stream(&self->table, (PyObject *)self);
}

static PyObject *table_columns(struct table_object *self, void *unused)
{
    (void)unused;
    return core_table_names(&self->table);
}

static PyGetSetDef table_getset[] = {
    { "columns", (getter)table_columns, NULL, NULL, NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyMethodDef table_methods[] = {
    { "__arrow_c_schema__", METHOD(table_schema), METH_NOARGS, NULL },
    { "__arrow_c_stream__", METHOD(table_stream), METH_VARARGS | METH_KEYWORDS, NULL },
    { NULL, NULL, 0, NULL },
};

static PyType_Slot table_slots[] = {
    { Py_tp_doc, "A table of a trace (docs/SCHEMA.md), for whatever takes Arrow." },
    { Py_tp_new, (void *)core_no_new },
    { Py_tp_dealloc, (void *)table_dealloc },
    { Py_tp_methods, table_methods },
    { Py_tp_getset, table_getset },
    { Py_sq_length, (void *)table_length },
    { 0, NULL },
};

static PyType_Spec table_spec = {
    .name = "sonde.Table",
    .basicsize = sizeof(struct table_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = table_slots,
};

int core_sqltable_init(PyObject *module)
{
    table_type = (PyTypeObject *)PyType_FromSpec(&table_spec);
    return table_type ? PyObject_SetAttrString(module, "Table", (PyObject *)table_type) : -1;
}
