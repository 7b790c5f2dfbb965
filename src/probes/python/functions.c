/* SPDX-License-Identifier: Apache-2.0 */
#include "probes/python/common.h"

static PyObject *functions_running(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    Py_RETURN_FALSE;
}

PyMethodDef snd_py_functions_methods[] = {
    { "functions_running", SND_PY_METHOD(functions_running), METH_NOARGS,
      "functions_running() -> bool: Python calls are being recorded" },
    { NULL, NULL, 0, NULL },
};
