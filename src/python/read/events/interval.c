/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python/read/events/interval.c - Interval: when an event began and ended, as torch's.
 */
#include "python/read/events/event_list.h"

#include <stddef.h>
#include <structmember.h>

static PyTypeObject *interval_type;

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
    core_free_object(self);
}

static PyObject *interval_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "start", "end", NULL };
    double       start, end;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "dd:Interval", names, &start, &end))
        return NULL;
    struct interval_object *self = (struct interval_object *)core_new_object(type);
    if (self) {
        self->start = start;
        self->end = end;
    }
    return (PyObject *)self;
}

static PyObject *interval_reduce(struct interval_object *self, PyObject *unused)
{
    (void)unused;
    return Py_BuildValue("(O(dd))", Py_TYPE((PyObject *)self), self->start, self->end);
}

static PyMemberDef interval_members[] = {
    { "start", T_DOUBLE, offsetof(struct interval_object, start), 0, NULL },
    { "end", T_DOUBLE, offsetof(struct interval_object, end), 0, NULL },
    { NULL, 0, 0, 0, NULL },
};
static PyMethodDef interval_methods[] = {
    { "elapsed_us", METHOD(interval_elapsed), METH_NOARGS, "how long it took" },
    { "__reduce__", METHOD(interval_reduce), METH_NOARGS, NULL },
    { NULL, NULL, 0, NULL },
};
static PyType_Slot interval_slots[] = {
    { Py_tp_doc, "From start to end, in microseconds since the recording began." },
    { Py_tp_new, (void *)interval_new },
    { Py_tp_dealloc, (void *)plain_dealloc },
    { Py_tp_repr, (void *)interval_repr },
    { Py_tp_members, interval_members },
    { Py_tp_methods, interval_methods },
    { 0, NULL },
};
static PyType_Spec interval_spec = { .name = "sonde._core.Interval",
                                     .basicsize = sizeof(struct interval_object),
                                     .flags = Py_TPFLAGS_DEFAULT,
                                     .slots = interval_slots };

PyObject *core_make_interval(int64_t start_ns, int64_t end_ns)
{
    struct interval_object *self = (struct interval_object *)core_new_object(interval_type);

    if (self) {
        self->start = (double)start_ns / 1000.0;
        self->end = (double)end_ns / 1000.0;
    }
    return (PyObject *)self;
}

int core_interval_init(PyObject *module)
{
    return core_add_type(module, "Interval", &interval_spec, &interval_type);
}
