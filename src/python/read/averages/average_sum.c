/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python/read/averages/average_sum.c - Average.add(): adding up two rows, as torch's FunctionEventAvg does.
 *
 * By attribute, not by member: either row may have attributes that were set, and the other may be torch's.
 */
#include "python/read/averages/average.h"

#include "base/count_of.h"

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

PyObject *core_average_add(PyObject *self, PyObject *other)
{
    if (take_key(self, other) < 0)
        return NULL;
    for (size_t i = 0; i < SND_COUNT_OF(sums); i++)
        if (add_attribute(self, other, sums[i]) < 0)
            return NULL;
    Py_INCREF(self);
    return self;
}
