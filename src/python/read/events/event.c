/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python/read/events/event.c - Event: one entry of events(), with torch's attributes.
 */
#include "python/read/events/event_list.h"

#include <stddef.h>
#include <structmember.h>

/* Two objects of the same event are equal: a new object is made for each access. */
static PyObject *event_compare(PyObject *left, PyObject *right, int operation)
{
    if ((operation != Py_EQ && operation != Py_NE) || Py_TYPE(left) != Py_TYPE(right)) {
        Py_INCREF(Py_NotImplemented);
        return Py_NotImplemented;
    }
    const struct event_object *a = (struct event_object *)left, *b = (struct event_object *)right;
    bool                       same = a->base.owner == b->base.owner && a->index == b->index;
    return PyBool_FromLong(same == (operation == Py_EQ));
}

static Py_hash_t event_hash(struct event_object *self)
{
    return (Py_hash_t)((uintptr_t)self->base.owner / 16 * 31 + self->index) & PY_SSIZE_T_MAX;
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
                                    "input_shapes=%S>",
                                    id, name, time, thread, shapes);
    Py_XDECREF(id);
    Py_XDECREF(name);
    Py_XDECREF(time);
    Py_XDECREF(thread);
    Py_XDECREF(shapes);
    return text;
}

/* An event is pickled as its list and its index there, with the attributes that were set on it. */
static PyObject *event_reduce(struct event_object *self, PyObject *unused)
{
    (void)unused;
    PyObject *operators = PyImport_ImportModule("operator");
    PyObject *get = operators ? PyObject_GetAttrString(operators, "getitem") : NULL;
    PyObject *reduced = NULL;
    if (get)
        reduced = Py_BuildValue("(O(On)O)", get, self->base.owner, (Py_ssize_t)self->index,
                                self->base.dict ? self->base.dict : Py_None);
    Py_XDECREF(get);
    Py_XDECREF(operators);
    return reduced;
}

static PyMethodDef event_methods[] = {
    { "__reduce__", METHOD(event_reduce), METH_NOARGS, NULL },
    { "__setstate__", METHOD(core_row_setstate), METH_O, NULL },
    { NULL, NULL, 0, NULL },
};

static PyMemberDef event_members[] = {
    { "__dictoffset__", T_PYSSIZET, offsetof(struct core_row, dict), READONLY, NULL },
    { NULL, 0, 0, 0, NULL },
};

static PyType_Slot event_slots[] = {
    { Py_tp_doc, "An entry of events(): torch's FunctionEvent." },
    { Py_tp_new, (void *)core_no_new },
    { Py_tp_dealloc, (void *)core_row_dealloc },
    { Py_tp_repr, (void *)event_repr },
    { Py_tp_richcompare, (void *)event_compare },
    { Py_tp_hash, (void *)event_hash },
    { Py_tp_getattro, (void *)core_row_get },
    { Py_tp_setattro, (void *)core_row_set },
    { Py_tp_methods, event_methods },
    { Py_tp_getset, core_event_getset },
    { Py_tp_members, event_members },
    { 0, NULL },
};
static PyType_Spec event_spec = { .name = "sonde.Event",
                                  .basicsize = sizeof(struct event_object),
                                  .flags = Py_TPFLAGS_DEFAULT,
                                  .slots = event_slots };

int core_event_init(PyObject *module)
{
    return core_interval_init(module) < 0 ||
                   core_add_type(module, "Event", &event_spec, &core_event_type) < 0
               ? -1
               : 0;
}
