/* SPDX-License-Identifier: Apache-2.0 */
/* python/read/errors.c - sonde.Error, and errors of the words that options have. */
#include "python/read/core.h"

/* Owned by the module; a process has one interpreter that imports this (m_size -1). */
PyObject *core_error;

void core_set_error(const struct sonde_error *err)
{
    PyObject *exception = PyObject_CallFunction(core_error, "s", err->message);

    if (!exception)
        return;
    PyObject *status = PyLong_FromLong(err->status);
    PyObject *os_error = PyLong_FromLong(err->os_error);
    if (status && os_error && PyObject_SetAttrString(exception, "status", status) == 0 &&
        PyObject_SetAttrString(exception, "os_error", os_error) == 0)
        PyErr_SetObject(core_error, exception);
    Py_XDECREF(status);
    Py_XDECREF(os_error);
    Py_DECREF(exception);
}

int core_word(enum sonde_word_list list, const char *text, int *value)
{
    struct sonde_error err = { 0 };

    if (sonde_word_value(list, text, value, &err) == SONDE_OK)
        return 0;
    core_set_error(&err);
    return -1;
}

int core_flops(const char *name, enum sonde_flops_mode *out)
{
    int value = SONDE_FLOPS_FULL;
    int status = core_word(SONDE_WORDS_FLOPS, name, &value);

    *out = (enum sonde_flops_mode)value;
    return status;
}

int core_groups(const char *list, unsigned *out)
{
    int value = 0;
    int status = *list ? core_word(SONDE_WORDS_GROUP, list, &value) : 0;

    *out |= (unsigned)value;
    return status;
}
