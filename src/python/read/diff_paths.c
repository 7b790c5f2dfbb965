/* SPDX-License-Identifier: Apache-2.0 */
/* python/read/diff_paths.c - sonde.diff(): sonde_diff() of traces by their paths. */
#include "python/read/core.h"

#include <stdlib.h>

/* Traces that are open, of A and then of B. */
struct sides {
    struct sonde_trace **traces;
    size_t               room, count;
};

static int open_side(struct sides *sides, PyObject *paths)
{
    Py_ssize_t count = PyList_Size(paths);

    for (Py_ssize_t i = 0; i < count; i++) {
        struct sonde_error err = { 0 };
        PyObject          *path = NULL;
        if (!PyUnicode_FSConverter(PyList_GetItem(paths, i), &path))
            return -1;
        bool opened = sonde_trace_open(PyBytes_AsString(path), &sides->traces[sides->count],
                                       &err) == SONDE_OK;
        Py_DECREF(path);
        if (!opened) {
            core_set_error(&err);
            return -1;
        }
        sides->count++;
    }
    return 0;
}

static PyObject *compare(struct sides *sides, size_t a_runs, const struct sonde_diff_options *diff,
                         const struct sonde_report_options *report)
{
    struct sonde_buffer text = { 0 };
    struct sonde_sink   sink = sonde_sink_buffer(&text);
    struct sonde_error  err = { 0 };
    size_t              failed = 0;
    PyObject           *result = NULL;
    enum sonde_status   status;

    Py_BEGIN_ALLOW_THREADS
    status = sonde_diff(sides->traces, a_runs, sides->count - a_runs, diff, report, &sink, &failed,
                        &err);
    Py_END_ALLOW_THREADS
    if (status != SONDE_OK)
        core_set_error(&err);
    else
        result = Py_BuildValue("s#n", text.length ? text.bytes : "", (Py_ssize_t)text.length,
                               (Py_ssize_t)failed);
    sonde_buffer_release(&text);
    return result;
}

PyObject *core_diff(PyObject *module, PyObject *args)
{
    struct sonde_diff_options   diff = SONDE_DIFF_OPTIONS_INIT;
    struct sonde_report_options report = SONDE_REPORT_OPTIONS_INIT;
    PyObject                   *a, *b;
    const char                 *format;
    int                         format_value = 0;
    long long                   rows;

    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!zzdzLs", &PyList_Type, &a, &PyList_Type, &b, &diff.by,
                          &diff.fail_if, &diff.least_percent, &report.sort, &rows, &format) ||
        core_word(SONDE_WORDS_FORMAT, format, &format_value) < 0)
        return NULL;
    report.format = (enum sonde_report_format)format_value;
    report.rows = rows;
    struct sides sides = { .room = (size_t)PyList_Size(a) + (size_t)PyList_Size(b) };
    PyObject    *result = NULL;
    sides.traces = calloc(sides.room + 1, sizeof *sides.traces);
    if (!sides.traces)
        return PyErr_NoMemory();
    if (open_side(&sides, a) == 0) {
        size_t a_runs = sides.count;
        if (open_side(&sides, b) == 0)
            result = compare(&sides, a_runs, &diff, &report);
    }
    while (sides.count > 0)
        sonde_trace_close(sides.traces[--sides.count]);
    free(sides.traces);
    return result;
}
