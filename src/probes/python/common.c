/* SPDX-License-Identifier: Apache-2.0 */
#include "probes/python/common.h"

#include <pthread.h>

#ifdef Py_GIL_DISABLED
PyMutex snd_py_mutex_;
#endif

void snd_py_lock_init(void)
{
#ifdef Py_GIL_DISABLED
    static bool done;

    if (!done)
        done = pthread_atfork(snd_py_lock, snd_py_unlock, snd_py_unlock) == 0;
#endif
}

static PyObject *error_class; /* sonde.Error, once it was needed */

PyObject *snd_py_error_class(void)
{
    PyObject *core = error_class ? NULL : PyImport_ImportModule("sonde._core");

    if (core)
        error_class = PyObject_GetAttrString(core, "Error");
    Py_XDECREF(core);
    PyErr_Clear();
    return error_class ? error_class : PyExc_RuntimeError;
}

const char *snd_py_bytes(PyObject *text, PyObject **owned, size_t *length)
{
    Py_ssize_t  size = 0;
    const char *bytes = PyUnicode_AsUTF8AndSize(text, &size);

    *owned = NULL;
    for (int tries = 0; !bytes && tries < 2; tries++) {
        static const char *const errors[] = { "surrogateescape", "surrogatepass" };
        PyErr_Clear(); /* lone surrogates: mostly bytes of a file name that is not UTF-8 */
        *owned = PyUnicode_AsEncodedString(text, "utf-8", errors[tries]);
        if (*owned) {
            bytes = PyBytes_AS_STRING(*owned);
            size = PyBytes_GET_SIZE(*owned);
        }
    }
    PyErr_Clear();
    *length = bytes ? (size_t)size : 1;
    return bytes ? bytes : "?";
}

uint32_t snd_py_intern(PyObject *text)
{
    PyObject   *owned;
    size_t      length;
    const char *bytes = snd_py_bytes(text, &owned, &length);
    uint32_t    id = sonde_intern(bytes, length);

    Py_XDECREF(owned);
    return id;
}

Py_ssize_t snd_py_extra_index(freefunc release)
{
#if PY_VERSION_HEX >= 0x030C0000
    return PyUnstable_Eval_RequestCodeExtraIndex(release);
#else
    return _PyEval_RequestCodeExtraIndex(release);
#endif
}

bool snd_py_set_extra(PyCodeObject *code, Py_ssize_t index, void *extra)
{
#if PY_VERSION_HEX >= 0x030C0000
    return PyUnstable_Code_SetExtra((PyObject *)code, index, extra) == 0;
#else
    return _PyCode_SetExtra((PyObject *)code, index, extra) == 0;
#endif
}

/* ---------------------------------------------------------------------- hooks */

static PyObject *nothing; /* kept: it is used at every start */

void snd_py_common_renew(void)
{
    nothing = error_class = NULL;
}

bool snd_py_is_reached(bool *reached)
{
    if (!nothing) {
        PyObject *names = PyDict_New();
        nothing = names ? PyRun_String("lambda: None", Py_eval_input, names, names) : NULL;
        Py_XDECREF(names);
    }
    *reached = false;
    PyObject *result = nothing ? PyObject_CallObject(nothing, NULL) : NULL;
    Py_XDECREF(result);
    PyErr_Clear();
    return *reached;
}

/* ---------------------------------------------------------------------- hooks */

bool snd_py_override(struct snd_py_override *override)
{
    if (override->function)
        return true;
    PyObject *module = PyImport_ImportModule(override->module);
    PyObject *found = module ? PyObject_GetAttrString(module, override->name) : NULL;
    Py_XDECREF(module);
    if (!found || !PyCFunction_Check(found)) {
        PyErr_Clear();
        Py_XDECREF(found);
        return false;
    }
    override->function = (PyCFunctionObject *)found;
    override->real = override->function->m_ml;
    override->definition = *override->real;
    override->definition.ml_meth = override->ours;
    override->function->m_ml = &override->definition;
    return true;
}

void snd_py_override_undo(struct snd_py_override *override)
{
    if (!override->function)
        return;
    override->function->m_ml = override->real;
    Py_CLEAR(override->function);
}

#if PY_VERSION_HEX < 0x030C0000
void snd_py_update_tracing(PyThreadState *thread)
{
    bool any = thread->c_tracefunc || thread->c_profilefunc;

#if PY_VERSION_HEX >= 0x030B0000
    thread->cframe->use_tracing = any && thread->tracing == 0 ? 255 : 0;
#elif PY_VERSION_HEX >= 0x030A0000
    thread->cframe->use_tracing = any;
#else
    thread->use_tracing = any;
#endif
}
#endif

#if PY_VERSION_HEX >= 0x030B0000
void snd_py_hide_begin(void)
{
    PyThreadState_EnterTracing(PyThreadState_Get());
}

void snd_py_hide_end(void)
{
    PyThreadState_LeaveTracing(PyThreadState_Get());
}
#else
void snd_py_hide_begin(void)
{
    PyThreadState_Get()->tracing++;
}

void snd_py_hide_end(void)
{
    PyThreadState_Get()->tracing--;
}
#endif
