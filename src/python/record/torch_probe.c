/* SPDX-License-Identifier: Apache-2.0 */
#define PY_SSIZE_T_CLEAN
#include "python/record/torch_probe.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/count_of.h"
#include "probes/torch/shim.h"

/* The probe's library is never closed: operators under way hold its callbacks. */
static struct {
    void *library;
    int (*start)(const struct sonde_torch_options *);
    void (*stop)(void);
    const char *(*error)(void);
    const char *(*describe)(void);
} probe;

static void *find_symbol(const char *name)
{
    return probe.library ? dlsym(probe.library, name) : NULL;
}

/* False with an exception set. */
static int open_probe(PyObject *(*error_class)(void), const char *path)
{
    if (probe.library)
        return 1;
    probe.library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *symbols[] = { find_symbol("sonde_torch_start"), find_symbol("sonde_torch_stop"),
                        find_symbol("sonde_torch_error"), find_symbol("sonde_torch_describe") };
    for (size_t i = 0; i < SND_COUNT_OF(symbols); i++) {
        if (symbols[i])
            continue;
        const char *why = dlerror();
        PyErr_Format(error_class(), "cannot load the torch probe %s: %s", path,
                     why ? why : "it is not one");
        probe.library = NULL;
        return 0;
    }
    memcpy(&probe.start, &symbols[0], sizeof symbols[0]);
    memcpy(&probe.stop, &symbols[1], sizeof symbols[1]);
    memcpy(&probe.error, &symbols[2], sizeof symbols[2]);
    memcpy(&probe.describe, &symbols[3], sizeof symbols[3]);
    return 1;
}

/* {"key": "value"} as key, value, .., NULL, each owned; NULL with an exception set. */
static char **copy_notes(PyObject *notes)
{
    Py_ssize_t count = notes == Py_None ? 0 : PyDict_Size(notes), at = 0;
    char     **list = count < 0 ? NULL : PyMem_Malloc((size_t)(2 * count + 1) * sizeof *list);
    PyObject  *pair[2];
    size_t     used = 0;

    if (!list)
        return count < 0 ? NULL : (char **)PyErr_NoMemory();
    list[0] = NULL;
    while (count > 0 && PyDict_Next(notes, &at, &pair[0], &pair[1])) {
        for (int i = 0; i < 2; i++) {
            PyObject *bytes = PyUnicode_AsEncodedString(pair[i], "utf-8", "replace");
            char     *copy = bytes ? strdup(PyBytes_AsString(bytes)) : NULL;
            Py_XDECREF(bytes);
            list[used] = copy;
            if (copy) {
                list[++used] = NULL;
                continue;
            }
            if (bytes)
                PyErr_NoMemory();
            while (used > 0)
                free(list[--used]);
            PyMem_Free(list);
            return NULL;
        }
    }
    return list;
}

static void free_notes(char **notes)
{
    for (size_t i = 0; notes[i]; i++)
        free(notes[i]);
    PyMem_Free(notes);
}

PyObject *snd_py_torch_start(PyObject *(*error_class)(void), PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "library", "flags", "module_function", "notes", NULL };
    PyObject    *path = NULL, *function = Py_None, *notes = Py_None;
    unsigned     flags = 0;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&I|OO:torch_start", names,
                                     PyUnicode_FSConverter, &path, &flags, &function, &notes))
        return NULL;
    int opened = open_probe(error_class, PyBytes_AsString(path));
    Py_DECREF(path);
    char **list = opened ? copy_notes(notes) : NULL;
    if (!list)
        return NULL;
    struct sonde_torch_options options = {
        .struct_size = sizeof options,
        .flags = flags,
        .module_function = function == Py_None ? NULL : (void *)function,
        .notes = (const char *const *)list,
    };
    int result = probe.start(&options);
    free_notes(list);
    if (result != 0)
        return PyErr_Format(error_class(), "%s", probe.error());
    Py_RETURN_NONE;
}

PyObject *snd_py_torch_stop(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    if (probe.library) {
        Py_BEGIN_ALLOW_THREADS
        probe.stop();
        Py_END_ALLOW_THREADS
    }
    Py_RETURN_NONE;
}

PyObject *snd_py_torch_describe(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyUnicode_FromString(probe.library ? probe.describe() : "");
}
