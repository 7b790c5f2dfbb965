/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python/read/core.c - sonde._core, the reading side for Python: the module itself, and sessions cut out of
 * a trace.
 *
 * Thin on purpose: every number and every line of text is libsonde's. Built against the
 * limited API of CPython 3.9, so that one binary serves 3.9 and later.
 */
#include "python/read/core.h"

#include <stdlib.h>

/* -------------------------------------------------------------------- words */

/* The names of a list of words, as a tuple. */
static PyObject *words_of(enum sonde_word_list list)
{
    PyObject                *names = PyList_New(0), *tuple = NULL;
    const struct sonde_word *word;

    for (size_t i = 0; names && (word = sonde_word(list, i)) != NULL; i++) {
        PyObject *name = PyUnicode_FromString(word->name);
        if (!name || PyList_Append(names, name) < 0)
            Py_CLEAR(names);
        Py_XDECREF(name);
    }
    if (names)
        tuple = PyList_AsTuple(names);
    Py_XDECREF(names);
    return tuple;
}

/* -------------------------------------------------------------------- sessions */

static bool read_spans(PyObject *numbers, struct sonde_cut *cut, struct sonde_span **out)
{
    Py_ssize_t count = PySequence_Size(numbers);

    *out = count < 0 ? NULL : calloc((size_t)count / 2 + 1, sizeof **out);
    if (!*out)
        return count >= 0 ? PyErr_NoMemory() != NULL : false;
    for (Py_ssize_t i = 0; i + 1 < count; i += 2) {
        uint64_t pair[2] = { 0 };
        for (Py_ssize_t k = 0; k < 2; k++) {
            PyObject *number = PySequence_GetItem(numbers, i + k);
            pair[k] = number ? PyLong_AsUnsignedLongLong(number) : 0;
            Py_XDECREF(number);
            if (PyErr_Occurred())
                return false;
        }
        (*out)[i / 2] = (struct sonde_span){ pair[0], pair[1] };
    }
    cut->spans = *out;
    cut->span_count = (size_t)count / 2;
    return true;
}

/* Owns: takes over `path` and `out`. */
static PyObject *write_cut(PyObject *path, PyObject *out, PyObject *numbers, struct sonde_cut *cut)
{
    struct sonde_error err = { 0 };
    struct sonde_span *spans = NULL;
    bool               written = false;

    if (read_spans(numbers, cut, &spans)) {
        written = sonde_cut_session(PyBytes_AsString(path), PyBytes_AsString(out), cut, &err) ==
                  SONDE_OK;
        if (!written)
            core_set_error(&err);
    }
    free(spans);
    Py_DECREF(path);
    Py_DECREF(out);
    if (!written)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *cut_session(PyObject *module, PyObject *args)
{
    PyObject        *path = NULL, *out = NULL, *numbers;
    struct sonde_cut cut = SONDE_CUT_INIT;
    unsigned         session;
    int              kept[3], ended;

    (void)module;
    if (!PyArg_ParseTuple(args, "O&O&I(ppp)Op", PyUnicode_FSConverter, &path, PyUnicode_FSConverter,
                          &out, &session, &kept[0], &kept[1], &kept[2], &numbers, &ended))
        return NULL;
    cut.session = session;
    cut.samples = kept[0] != 0;
    cut.counters = kept[1] != 0;
    cut.ranges = kept[2] != 0;
    cut.ended = ended != 0;
    return write_cut(path, out, numbers, &cut);
}

static PyObject *cut_report(PyObject *module, PyObject *args)
{
    PyObject        *path = NULL, *out = NULL, *numbers;
    struct sonde_cut cut = {
        .struct_size = sizeof cut, .session = UINT32_MAX, .all = true, .ended = true
    };

    (void)module;
    if (!PyArg_ParseTuple(args, "O&O&Os", PyUnicode_FSConverter, &path, PyUnicode_FSConverter, &out,
                          &numbers, &cut.report))
        return NULL;
    return write_cut(path, out, numbers, &cut);
}

static PyObject *copy_trace(PyObject *module, PyObject *args)
{
    PyObject          *path = NULL, *out = NULL;
    struct sonde_error err = { 0 };

    (void)module;
    if (!PyArg_ParseTuple(args, "O&O&", PyUnicode_FSConverter, &path, PyUnicode_FSConverter, &out))
        return NULL;
    bool copied = sonde_pack(PyBytes_AsString(path), PyBytes_AsString(out), -1, &err) == SONDE_OK;
    if (!copied)
        core_set_error(&err);
    Py_DECREF(path);
    Py_DECREF(out);
    if (!copied)
        return NULL;
    Py_RETURN_NONE;
}

/* ------------------------------------------------------------------ the module */

static PyMethodDef core_methods[] = {
    { "copy_trace", copy_trace, METH_VARARGS,
      "copy_trace(path, out): copies a trace without space that was reserved and not used" },
    { "cut_session", cut_session, METH_VARARGS,
      "cut_session(path, out, session, (samples, counters, ranges), [begin, end, ..], ended): "
      "writes what of a trace file is one session's" },
    { "cut_report", cut_report, METH_VARARGS,
      "cut_report(path, out, [begin, end, ..], subject): writes what happened in these times, and "
      "of the facts on tensors those of this subject" },
    { "diff", core_diff, METH_VARARGS,
      "diff([path, ..], [path, ..], by, fail_if, least_percent, sort, rows, format): the text, and "
      "how many rows fail" },
    { NULL, NULL, 0, NULL },
};

static struct PyModuleDef core_module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "sonde._core",
    .m_doc = "The reading side of sonde: see the package.",
    .m_size = -1,
    .m_methods = core_methods,
};

/* Adds `object` under `name` and lets the caller's reference go; false with an exception set. */
static int add_object(PyObject *module, const char *name, PyObject *object)
{
    int result = object ? PyObject_SetAttrString(module, name, object) : -1;

    Py_XDECREF(object);
    return result == 0;
}

PyMODINIT_FUNC PyInit__core(void);
PyMODINIT_FUNC PyInit__core(void)
{
    PyObject *module = PyModule_Create(&core_module);

    if (!module)
        return NULL;
#ifdef Py_GIL_DISABLED
    PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED);
#endif
    core_error = PyErr_NewExceptionWithDoc(
        "sonde.Error", "A trace could not be read or written; see `status` and `os_error`.", NULL,
        NULL);
    Py_XINCREF(core_error);
    if (add_object(module, "Error", core_error) &&
        add_object(module, "__version__", PyUnicode_FromString(sonde_version())) &&
        add_object(module, "STACK_METRICS", words_of(SONDE_WORDS_METRIC)) &&
        core_trace_init(module) == 0 && core_averages_init(module) == 0 &&
        core_average_init(module) == 0 && core_events_init(module) == 0 &&
        core_event_init(module) == 0 && core_timeline_init(module) == 0 &&
        core_layers_init(module) == 0 && core_probes_init(module) == 0 &&
        core_sqltable_init(module) == 0 && core_tablestream_init(module) == 0 &&
        core_table_init(module) == 0)
        return module;
    Py_DECREF(module);
    return NULL;
}
