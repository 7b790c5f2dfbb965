/* SPDX-License-Identifier: Apache-2.0 */
/* probes/python/ways/call_numbers.c - which function a code object or a method is: its number for call_count.h. */
#include "probes/python/ways/call_probe.h"

#include <stdlib.h>
#include <string.h>

#include "base/data/hash.h"
#include "base/data/map.h"
#include "base/hints.h"

#define BUILTINS_CACHED 512u

Py_ssize_t snd_py_functions_index = -1;

static struct {
    char *package; /* folder whose functions are not shown */
    char *library; /* folder of Python's own modules */
} folders;

void snd_py_numbers_prepare(const char *package, const char *library)
{
    if (!folders.package)
        folders.package = strdup(package);
    if (!folders.library)
        folders.library = strdup(library);
}

/* --------------------------------------------------------------- Python functions */

static bool is_ours(const char *file)
{
    size_t length = folders.package ? strlen(folders.package) : 0;

    return length > 0 && strncmp(file, folders.package, length) == 0 && file[length] == '/';
}

/* Python's own function: at the bottom of a stack it starts or ends a program, and is not part of it. */
static bool is_outside(const PyCodeObject *code, const char *file)
{
    size_t length = folders.library ? strlen(folders.library) : 0;

    if (strncmp(file, "<frozen ", 8) == 0)
        return true;
    return code->co_flags & CO_OPTIMIZED && length > 0 &&
           strncmp(file, folders.library, length) == 0 && file[length] == '/' &&
           !strstr(file + length, "/site-packages/") && !strstr(file + length, "/dist-packages/");
}

/* Comprehensions and lambdas of one line have one name, and may lie in each other. */
static uint64_t hash_body(PyCodeObject *code)
{
    Py_hash_t hash = PyObject_Hash((PyObject *)code); /* equal for equal code, made anew */

    if (hash == -1)
        PyErr_Clear();
    return (uint64_t)hash;
}

uint32_t snd_py_number_at(PyCodeObject *code, uint32_t line)
{
    PyObject             *error[3], *name_owner = NULL, *file_owner = NULL;
    struct snd_calls_name name = { .line = line };
    uint32_t              number = 0;

    PyErr_Fetch(&error[0], &error[1], &error[2]); /* a frame may be entered by throwing into it */
    name.name = snd_py_bytes(code->co_name, &name_owner, &name.name_length);
    name.file = snd_py_bytes(code->co_filename, &file_owner, &name.file_length);
    if (!is_ours(name.file)) {
        name.body = hash_body(code);
        name.outside = is_outside(code, name.file);
        name.module = !(code->co_flags & CO_OPTIMIZED) && !name.outside;
        number = snd_calls_function(&name);
    }
    Py_XDECREF(name_owner);
    Py_XDECREF(file_owner);
    PyErr_Restore(error[0], error[1], error[2]);
    return number;
}

uint32_t snd_py_number_slow(PyCodeObject *code)
{
    PyObject *error[3];
    uint32_t  number = snd_py_module_number_here(code);

    if (number != 0)
        return number;
    number = snd_py_number_at(code, (uint32_t)code->co_firstlineno);
    PyErr_Fetch(&error[0], &error[1], &error[2]);
    /* The word is all there is: nothing to free when the code object goes. */
    if (!snd_py_set_extra(code, snd_py_functions_index, (void *)((uintptr_t)number << 1 | 1)))
        PyErr_Clear();
    PyErr_Restore(error[0], error[1], error[2]);
    return number;
}

/* -------------------------------------------------------------------- functions in C */

/* Methods by address and name: an address may be another method's after a while. */
static struct {
    PyMethodDef *method;
    const char  *name;
    const char  *type; /* the name of the type that it is called for; NULL: none, or as cProfile */
    char *type_copy;   /* owned: a type of the program's may be gone, and another's name be there */
    bool  as_torch;
    uint32_t number;
} builtins[BUILTINS_CACHED];
static struct snd_map builtin_map;

/*
 * repr() of the function without the address of `self`, which would give one name to each call. What is
 * called for a module is a function.
 */
static PyObject *describe_as_torch(PyMethodDef *method, PyObject *self)
{
    const char *type = self && !PyModule_Check(self) ? Py_TYPE(self)->tp_name : NULL;

    return type ? PyUnicode_FromFormat("<built-in method %s of %s object>", method->ml_name, type)
                : PyUnicode_FromFormat("<built-in function %s>", method->ml_name);
}

/* repr() of the method descriptor of `method`; NULL without an exception if it has none. */
static PyObject *describe_descriptor(PyTypeObject *type, PyMethodDef *method)
{
    PyObject *mro = type->tp_mro;

    for (Py_ssize_t i = 0; mro && i < PyTuple_GET_SIZE(mro); i++) {
        PyObject *base = PyTuple_GET_ITEM(mro, i);
        PyObject *dict = PyObject_GetAttrString(base, "__dict__");
        PyObject *found = dict ? PyMapping_GetItemString(dict, method->ml_name) : NULL;
        PyObject *text = found && !PyFunction_Check(found) ? PyObject_Repr(found) : NULL;
        Py_XDECREF(found);
        Py_XDECREF(dict);
        PyErr_Clear();
        if (text)
            return text;
    }
    return NULL;
}

/* What cProfile calls it. NULL with an exception set. */
static PyObject *describe_builtin(PyMethodDef *method, PyObject *callable)
{
    if (!PyCFunction_Check(callable))
        return PyObject_Repr(callable);
    PyCFunctionObject *function = (PyCFunctionObject *)callable;
    PyObject          *module = function->m_module;
    if (!function->m_self)
        return module && PyUnicode_Check(module)
                   ? PyUnicode_FromFormat("<%U.%s>", module, method->ml_name)
                   : PyUnicode_FromFormat("<%s>", method->ml_name);
    PyObject *text = describe_descriptor(Py_TYPE(function->m_self), method);
    if (text)
        return text;
    return module && PyUnicode_Check(module)
               ? PyUnicode_FromFormat("<built-in method %S.%s>", module, method->ml_name)
               : PyUnicode_FromFormat("<built-in method %s>", method->ml_name);
}

static bool is_as_torch(void)
{
    return snd_calls.mode == SND_CALLS_EVENTS;
}

static uint32_t number_builtin(PyMethodDef *method, PyObject *callable, PyObject *self)
{
    PyObject             *error[3], *owner = NULL;
    struct snd_calls_name name = { .file = is_as_torch() ? "" : "~", .outside = true };

    name.file_length = strlen(name.file);
    PyErr_Fetch(&error[0], &error[1], &error[2]);
    PyObject *text = is_as_torch() ? describe_as_torch(method, self)
                                   : describe_builtin(method, callable);
    PyErr_Clear();
    name.name = text ? snd_py_bytes(text, &owner, &name.name_length) : method->ml_name;
    if (!text)
        name.name_length = strlen(name.name);
    uint32_t number = snd_calls_function(&name);
    Py_XDECREF(owner);
    Py_XDECREF(text);
    PyErr_Restore(error[0], error[1], error[2]);
    return number;
}

static bool is_cached(size_t at, const PyMethodDef *method, const char *type)
{
    return builtins[at].method == method && builtins[at].name == method->ml_name &&
           builtins[at].type == type && builtins[at].as_torch == is_as_torch() &&
           (!type || strcmp(builtins[at].type_copy, type) == 0);
}

static void cache(size_t at, PyMethodDef *method, const char *type, uint32_t number)
{
    char *copy = type ? strdup(type) : NULL;

    if (type && !copy)
        return;
    free(builtins[at].type_copy);
    builtins[at].method = method;
    builtins[at].name = method->ml_name;
    builtins[at].type = type;
    builtins[at].type_copy = copy;
    builtins[at].as_torch = is_as_torch();
    builtins[at].number = number;
}

uint32_t snd_py_builtin_number(PyMethodDef *method, PyObject *callable, PyObject *self)
{
    const char *type = is_as_torch() && self ? Py_TYPE(self)->tp_name : NULL;
    size_t      at = ((uintptr_t)method >> 4 ^ (uintptr_t)method >> 13 ^ (uintptr_t)type >> 5) %
                BUILTINS_CACHED;
    uint32_t number;

    if (SND_LIKELY(is_cached(at, method, type)))
        return builtins[at].number;
    struct snd_key key = { (uintptr_t)method, (uintptr_t)method->ml_name,
                           type ? snd_hash_bytes(type, strlen(type), 0).low | 1 : is_as_torch() };
    if (!snd_map_get(&builtin_map, key, &number)) {
        number = number_builtin(method, callable, self);
        if (number == 0 || !snd_map_put(&builtin_map, key, number))
            return number;
    }
    cache(at, method, type, number);
    return number;
}
