/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls a watcher with the code of each module, script and exec() before it runs.
 *
 * CPython announces it to audit hooks, and only to them: also that of the main script, which no
 * import hook ever sees. A hook stays until Python ends, so there is at most one, in C, and
 * only once somebody asks.
 */
#include "probes/python/common.h"

#include <string.h>

static PyObject           *watcher; /* called with each code object; owned */
static PyInterpreterState *home;    /* whose object it is */
static bool                hooked;

static int on_event(const char *event, PyObject *args, void *user)
{
    (void)user;
    if (!watcher || event[0] != 'e' || strcmp(event, "exec") != 0 ||
        PyInterpreterState_Get() != home || PyTuple_GET_SIZE(args) != 1 ||
        !PyCode_Check(PyTuple_GET_ITEM(args, 0)))
        return 0;
    PyObject *called = watcher;
    Py_INCREF(called);
    snd_py_hide_begin();
    PyObject *answer = PyObject_CallFunctionObjArgs(called, PyTuple_GET_ITEM(args, 0), NULL);
    if (!answer)
        PyErr_WriteUnraisable(called); /* must not reach the program */
    Py_XDECREF(answer);
    snd_py_hide_end();
    Py_DECREF(called);
    return 0;
}

static PyObject *watch_code(PyObject *module, PyObject *callable)
{
    (void)module;
    if (callable != Py_None && !hooked) {
        if (PySys_AddAuditHook(on_event, NULL) != 0) {
            if (!PyErr_Occurred())
                PyErr_SetString(snd_py_error_class(),
                                "an audit hook of the program refuses another");
            return NULL;
        }
        hooked = true;
    }
    home = PyInterpreterState_Get();
    Py_INCREF(callable);
    Py_XSETREF(watcher, callable);
    if (watcher == Py_None)
        Py_CLEAR(watcher);
    Py_RETURN_NONE;
}

/* ---------------------------------------------------------- what code mentions */

static bool is_one_of(PyObject *text, PyObject *words)
{
    if (!PyUnicode_Check(text))
        return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(words); i++)
        if (PyUnicode_Compare(text, PyTuple_GET_ITEM(words, i)) == 0)
            return true;
    return false;
}

static bool has_one_of(PyObject *tuple, PyObject *words)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++)
        if (is_one_of(PyTuple_GET_ITEM(tuple, i), words))
            return true;
    return false;
}

/* `depth`: code inside code; compilers nest it no deeper than the source is indented. */
static bool code_mentions(PyCodeObject *code, PyObject *words, int depth)
{
    if (has_one_of(code->co_names, words) || has_one_of(code->co_consts, words))
        return true;
    for (Py_ssize_t i = 0; depth > 0 && i < PyTuple_GET_SIZE(code->co_consts); i++) {
        PyObject *inner = PyTuple_GET_ITEM(code->co_consts, i);
        if (PyCode_Check(inner) && code_mentions((PyCodeObject *)inner, words, depth - 1))
            return true;
    }
    return false;
}

static PyObject *mentions(PyObject *module, PyObject *args)
{
    PyObject *code, *words;

    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!", &PyCode_Type, &code, &PyTuple_Type, &words))
        return NULL;
    return PyBool_FromLong(code_mentions((PyCodeObject *)code, words, 100));
}

/* Hooks end with the interpreter. */
void snd_py_imports_renew(void)
{
    watcher = NULL;
    home = NULL;
    hooked = false;
}

PyMethodDef snd_py_imports_methods[] = {
    { "watch_code", watch_code, METH_O,
      "watch_code(callable): it is called with the code of each module before that runs; None: "
      "no more" },
    { "mentions", mentions, METH_VARARGS,
      "mentions(code, words) -> bool: one of these str is a name or a constant of the code, or of "
      "code in it" },
    { NULL, NULL, 0, NULL },
};
