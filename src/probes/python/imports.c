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
    PyObject *answer = PyObject_CallFunctionObjArgs(called, PyTuple_GET_ITEM(args, 0), NULL);
    if (!answer)
        PyErr_WriteUnraisable(called); /* must not reach the program */
    Py_XDECREF(answer);
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
    { NULL, NULL, 0, NULL },
};
