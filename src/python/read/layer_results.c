/* SPDX-License-Identifier: Apache-2.0 */
/* sonde._core: a profile of layers into a results file, and what such a file has already. */
#include "python/read/core.h"

#include <stdlib.h>

static PyObject *layers_save(PyObject *module, PyObject *args)
{
    PyObject            *trace_path = NULL, *path = NULL;
    struct sonde_trace  *trace = NULL;
    struct sonde_layers *layers = NULL;
    struct sonde_error   err = { 0 };
    enum sonde_status    status;
    size_t               saved = 0;

    (void)module;
    if (!PyArg_ParseTuple(args, "O&O&:layers_save", PyUnicode_FSConverter, &trace_path,
                          PyUnicode_FSConverter, &path)) {
        Py_XDECREF(trace_path);
        return NULL;
    }
    const char *from = PyBytes_AsString(trace_path), *to = PyBytes_AsString(path);
    Py_BEGIN_ALLOW_THREADS
    status = sonde_trace_open(from, &trace, &err);
    if (status == SONDE_OK)
        status = sonde_layers_new(trace, &layers, &err);
    if (status == SONDE_OK)
        status = sonde_layers_save(layers, to, &saved, &err);
    sonde_layers_free(layers);
    sonde_trace_close(trace);
    Py_END_ALLOW_THREADS
    Py_DECREF(trace_path);
    Py_DECREF(path);
    if (status != SONDE_OK) {
        core_set_error(&err);
        return NULL;
    }
    return PyLong_FromSize_t(saved);
}

static PyObject *list_rows(const struct sonde_results_row *rows, size_t count)
{
    PyObject *list = PyList_New(0);

    for (size_t i = 0; list && i < count; i++) {
        PyObject *pair = Py_BuildValue("(LL)", (long long)rows[i].layer, (long long)rows[i].runs);
        if (!pair || PyList_Append(list, pair) != 0)
            Py_CLEAR(list);
        Py_XDECREF(pair);
    }
    return list;
}

static PyObject *results_layers(PyObject *module, PyObject *args)
{
    struct sonde_results_head head = SONDE_RESULTS_HEAD_INIT;
    PyObject                 *path = NULL, *list = NULL;
    long long                 batch_size, layer_count;
    struct sonde_error        err = { 0 };
    size_t                    count = 0;

    (void)module;
    if (!PyArg_ParseTuple(args, "O&ssLL:results_layers", PyUnicode_FSConverter, &path,
                          &head.model_name, &head.dtype, &batch_size, &layer_count))
        return NULL;
    head.batch_size = batch_size;
    head.layers = layer_count;
    size_t size = layer_count > 0 && layer_count < 1 << 20 ? (size_t)layer_count : 1;
    struct sonde_results_row *rows = calloc(size, sizeof *rows);
    enum sonde_status         status = SONDE_E_NOMEM;
    if (rows)
        status = sonde_results_layers(PyBytes_AsString(path), &head, rows, size, &count, &err);
    if (!rows)
        PyErr_NoMemory();
    else if (status != SONDE_OK)
        core_set_error(&err);
    else
        list = list_rows(rows, count < size ? count : size);
    free(rows);
    Py_DECREF(path);
    return list;
}

static PyMethodDef methods[] = {
    { "layers_save", METHOD(layers_save), METH_VARARGS,
      "layers_save(trace, results) -> int: puts the layers that the trace measured into the file" },
    { "results_layers", METHOD(results_layers), METH_VARARGS,
      "results_layers(path, model_name, dtype, batch_size, layers) -> [(layer, runs)]: what the "
      "file has; an error if it is of something else" },
    { NULL, NULL, 0, NULL },
};

int core_layers_init(PyObject *module)
{
    return PyModule_AddFunctions(module, methods);
}
