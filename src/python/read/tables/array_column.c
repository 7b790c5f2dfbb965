/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python/read/tables/array_column.c - Column: a column of a table without a copy, by NumPy's array interface.
 *
 * A column keeps the table that owns its memory. arrow.c hands out whole tables.
 */
#include "python/read/core.h"

#include <string.h>

struct column_object {
    PyObject_HEAD
    PyObject          *owner;
    struct core_column column;
    size_t             count;
};

static PyTypeObject *column_type;

PyObject *core_table_column(const struct core_table *table, PyObject *owner, const char *name)
{
    for (size_t i = 0; i < table->column_count; i++) {
        if (strcmp(table->columns[i].name, name) != 0)
            continue;
        allocfunc             allocate = (allocfunc)PyType_GetSlot(column_type, Py_tp_alloc);
        struct column_object *self = (struct column_object *)allocate(column_type, 0);
        if (!self)
            return NULL;
        Py_INCREF(owner);
        self->owner = owner;
        self->column = table->columns[i];
        self->count = table->count;
        return (PyObject *)self;
    }
    PyErr_Format(PyExc_KeyError, "no column '%s'; `columns` lists them", name);
    return NULL;
}

PyObject *core_table_names(const struct core_table *table)
{
    PyObject *names = PyList_New(0);

    for (size_t i = 0; names && i < table->column_count; i++) {
        PyObject *name = PyUnicode_FromString(table->columns[i].name);
        if (!name || PyList_Append(names, name) < 0)
            Py_CLEAR(names);
        Py_XDECREF(name);
    }
    return names;
}

static void column_dealloc(struct column_object *self)
{
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    freefunc      release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    Py_XDECREF(self->owner);
    release(self);
    Py_DECREF(type);
}

static Py_ssize_t column_length(struct column_object *self)
{
    return (Py_ssize_t)self->count;
}

static PyObject *column_item(struct column_object *self, Py_ssize_t i)
{
    const void *data = self->column.data;

    if (i < 0 || (size_t)i >= self->count) {
        PyErr_SetString(PyExc_IndexError, "row index out of range");
        return NULL;
    }
    switch (self->column.format) {
    case 'q':
        return PyLong_FromLongLong(((const int64_t *)data)[i]);
    case 'Q':
        return PyLong_FromUnsignedLongLong(((const uint64_t *)data)[i]);
    case 'i':
        return PyLong_FromLong(((const int32_t *)data)[i]);
    case 'I':
        return PyLong_FromUnsignedLong(((const uint32_t *)data)[i]);
    case 'B':
        return PyLong_FromLong(((const uint8_t *)data)[i]);
    default:
        return PyFloat_FromDouble(((const double *)data)[i]);
    }
}

static const char *numpy_type(char format)
{
    switch (format) {
    case 'q':
        return "<i8";
    case 'Q':
        return "<u8";
    case 'i':
        return "<i4";
    case 'I':
        return "<u4";
    case 'B':
        return "|u1";
    default:
        return "<f8";
    }
}

static PyObject *column_interface(struct column_object *self, void *unused)
{
    (void)unused;
    return Py_BuildValue("{s:(n),s:s,s:(KO),s:i}", "shape", (Py_ssize_t)self->count, "typestr",
                         numpy_type(self->column.format), "data",
                         (unsigned long long)(uintptr_t)self->column.data, Py_True, "version", 3);
}

static PyObject *column_name(struct column_object *self, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(self->column.name);
}

static PyObject *column_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)type, (void)args, (void)kwargs;
    PyErr_SetString(PyExc_TypeError, "only a table makes columns");
    return NULL;
}

static PyGetSetDef column_getset[] = {
    { "__array_interface__", (getter)column_interface, NULL, "for numpy.asarray()", NULL },
    { "name", (getter)column_name, NULL, NULL, NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot column_slots[] = {
    { Py_tp_doc, "A column of a table; numpy.asarray(column) makes no copy." },
    { Py_tp_new, (void *)column_new },
    { Py_tp_dealloc, (void *)column_dealloc },
    { Py_tp_getset, column_getset },
    { Py_sq_length, (void *)column_length },
    { Py_sq_item, (void *)column_item },
    { 0, NULL },
};

static PyType_Spec column_spec = {
    .name = "sonde.Column",
    .basicsize = sizeof(struct column_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = column_slots,
};

int core_table_init(PyObject *module)
{
    column_type = (PyTypeObject *)PyType_FromSpec(&column_spec);
    return column_type ? PyObject_SetAttrString(module, "Column", (PyObject *)column_type) : -1;
}
