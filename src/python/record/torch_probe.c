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
    /* NULL: the probe that needs no C++ compiler has no modules. */
    void (*compiled)(void *, int, const struct sonde_torch_line *, size_t);
    void *(*kernel)(void *, const char *);
    void (*collectives)(void);
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
    void *more[] = { find_symbol("sonde_torch_compiled"), find_symbol("sonde_torch_kernel"),
                     find_symbol("sonde_torch_collectives") };
    memcpy(&probe.compiled, &more[0], sizeof more[0]);
    memcpy(&probe.kernel, &more[1], sizeof more[1]);
    memcpy(&probe.collectives, &more[2], sizeof more[2]);
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
    static char *names[] = { "library", "flags", "module_function", "notes", "c_calls", NULL };
    PyObject    *path = NULL, *function = Py_None, *notes = Py_None, *capsule = Py_None;
    unsigned     flags = 0;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&I|OOO:torch_start", names,
                                     PyUnicode_FSConverter, &path, &flags, &function, &notes,
                                     &capsule))
        return NULL;
    const struct snd_c_calls *c_calls = capsule == Py_None
                                            ? NULL
                                            : PyCapsule_GetPointer(capsule, SND_C_CALLS_CAPSULE);
    if (!c_calls && PyErr_Occurred()) {
        Py_DECREF(path);
        return NULL;
    }
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
        .c_calls = c_calls,
    };
    int result = probe.start(&options);
    free_notes(list);
    if (result != 0)
        return PyErr_Format(error_class(), "%s", probe.error());
    Py_RETURN_NONE;
}

PyObject *snd_py_torch_collectives(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    if (probe.collectives) {
        Py_BEGIN_ALLOW_THREADS
        probe.collectives();
        Py_END_ALLOW_THREADS
    }
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

/* (first, last, within, alone) as a line; false with an exception set. */
static int read_line(PyObject *item, struct sonde_torch_line *line)
{
    return PyArg_ParseTuple(item, "iiss", &line->first, &line->last, &line->within, &line->alone);
}

PyObject *snd_py_torch_compiled(PyObject *module, PyObject *args)
{
    PyObject *code = NULL, *list = NULL;
    int       is_backward = 0;

    (void)module;
    if (!PyArg_ParseTuple(args, "OpO!:torch_compiled", &code, &is_backward, &PyList_Type, &list))
        return NULL;
    Py_ssize_t               count = PyList_Size(list);
    struct sonde_torch_line *lines = PyMem_Calloc((size_t)count + 1, sizeof *lines);
    if (!lines)
        return PyErr_NoMemory();
    int good = 1;
    for (Py_ssize_t i = 0; i < count && good; i++)
        good = read_line(PyList_GetItem(list, i), &lines[i]);
    if (good && probe.compiled)
        probe.compiled(code, is_backward, lines, (size_t)count);
    PyMem_Free(lines);
    if (!good)
        return NULL;
    Py_RETURN_NONE;
}

PyObject *snd_py_torch_kernel(PyObject *module, PyObject *args)
{
    PyObject   *kernel = NULL;
    const char *name = NULL;

    (void)module;
    if (!PyArg_ParseTuple(args, "Os:torch_kernel", &kernel, &name))
        return NULL;
    PyObject *made = probe.kernel ? probe.kernel(kernel, name) : NULL;
    if (!made && PyErr_Occurred())
        return NULL;
    if (!made)
        Py_RETURN_NONE;
    return made;
}
