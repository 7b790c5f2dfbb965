/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/python/ways/call_probe.c - the probe of Python calls: on, off, and what functions are called.
 */
#include "probes/python/ways/call_probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/count_of.h"

/* ---------------------------------------------------------------------- on and off */

static const struct snd_py_way *choose_way(bool with_builtins)
{
#ifdef SND_PY_HAS_EVAL_HOOK
    if (!with_builtins)
        return &snd_py_eval_hook;
#else
    (void)with_builtins;
#endif
#if PY_VERSION_HEX >= 0x030C0000
    return &snd_py_monitoring;
#else
    return &snd_py_set_profile;
#endif
}

/* False with an exception set. */
static bool prepare(const char *package, const char *library)
{
    if (snd_py_functions_index < 0)
        snd_py_functions_index = snd_py_extra_index(NULL);
    if (snd_py_functions_index < 0) {
        PyErr_SetString(
            snd_py_error_class(),
            "cannot record Python calls: other tools use all extra slots of code objects");
        return false;
    }
    snd_py_numbers_prepare(package, library);
    return true;
}

/* What a CPython whose frames are not known cannot have: the faster way, and the calls under way. */
static void note_unknown(bool open_frames)
{
#ifdef SND_PYFRAMES_MISSING
    if (snd_py_on.builtins && !open_frames)
        return;
    snd_py_on.switched = SND_PYFRAMES_MISSING;
    sonde_metadata(snd_meta_key(SND_META_PYTHON_FUNCTIONS_SWITCHED), snd_py_on.switched);
#else
    (void)open_frames;
#endif
}

static PyObject *functions_start(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "package", "library",     "builtins",    "traced",
                             "whole",   "open_frames", "module_code", NULL };
    PyObject    *package = NULL, *library = NULL, *module_code = Py_None;
    int          with_builtins = 1, traced = 0, whole = 0, open_frames = 0;

    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&O&|ppppO:functions_start", names,
                                     PyUnicode_FSConverter, &package, PyUnicode_FSConverter,
                                     &library, &with_builtins, &traced, &whole, &open_frames,
                                     &module_code))
        return NULL;
    bool ready = !snd_calls.on && prepare(PyBytes_AS_STRING(package), PyBytes_AS_STRING(library));
    Py_DECREF(package);
    Py_DECREF(library);
    if (snd_calls.on)
        PyErr_SetString(snd_py_error_class(), "Python calls are already being recorded");
    if (!ready)
        return NULL;
    snd_py_on.builtins = with_builtins != 0;
    snd_py_on.way = choose_way(snd_py_on.builtins);
    snd_py_on.switched = NULL;
    note_unknown(open_frames != 0);
    snd_py_lock();
    snd_calls_start(open_frames                     ? SND_CALLS_EVENTS
                    : traced                        ? SND_CALLS_RANGES
                    : sonde_function_counters() > 0 ? SND_CALLS_COUNTERS
                                                    : SND_CALLS_COUNTED,
                    whole != 0);
    if (open_frames) {
        bool is_code = PyCode_Check(module_code);
        snd_py_open_frames_start(is_code ? (PyCodeObject *)module_code : NULL);
    }
    snd_py_unlock();
    if (!snd_py_on.way->start(snd_py_on.builtins)) {
        snd_py_lock();
        snd_py_open_frames_stop();
        snd_calls_stop();
        snd_py_unlock();
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *functions_stop(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    if (snd_calls.on) {
        snd_py_on.way->stop();
        snd_py_lock();
        snd_calls_stop();
        snd_py_open_frames_stop();
        snd_py_unlock();
    }
    Py_RETURN_NONE;
}

static PyObject *functions_describe(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return Py_BuildValue("{s:O,s:s,s:z,s:K,s:K}", "on", snd_calls.on ? Py_True : Py_False, "way",
                         snd_py_on.way ? snd_py_on.way->name : "", "switched", snd_py_on.switched,
                         "unbalanced", (unsigned long long)snd_calls.unbalanced, "lost",
                         (unsigned long long)snd_calls.lost);
}

void snd_py_functions_renew(void)
{
    static const struct snd_py_way *const ways[] = {
#ifdef SND_PY_HAS_EVAL_HOOK
        &snd_py_eval_hook,
#endif
#if PY_VERSION_HEX >= 0x030C0000
        &snd_py_monitoring,
#else
        &snd_py_set_profile,
#endif
    };

    snd_py_functions_index = -1;
    snd_calls_sessions_renew();
    if (snd_calls.on)
        snd_calls_stop();
    for (size_t i = 0; i < SND_COUNT_OF(ways); i++)
        ways[i]->renew();
}

/* ------------------------------------------------------------------------ sessions */

static PyObject *functions_session(PyObject *module, PyObject *args)
{
    unsigned number;
    int      on;

    (void)module;
    if (!PyArg_ParseTuple(args, "Ip:functions_session", &number, &on))
        return NULL;
    bool done = true;
    snd_py_lock();
    if (!on)
        snd_calls_session_stop(number);
    else
        done = snd_calls_session_start(number);
    snd_py_unlock();
    if (!done)
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyObject *functions_split(PyObject *module, PyObject *args)
{
    unsigned number;
    int      on;

    (void)module;
    if (!PyArg_ParseTuple(args, "Ip:functions_split", &number, &on))
        return NULL;
    snd_py_lock();
    bool done = snd_calls_session_split(number, on != 0 && snd_calls.on);
    snd_py_unlock();
    if (!done)
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyObject *functions_forget(PyObject *module, PyObject *args)
{
    unsigned number;
    int      has;

    (void)module;
    if (!PyArg_ParseTuple(args, "Ip:functions_forget", &number, &has))
        return NULL;
    snd_py_lock();
    snd_calls_session_forget(number, has != 0);
    snd_py_unlock();
    Py_RETURN_NONE;
}

static PyObject *functions_owner(PyObject *module, PyObject *number)
{
    unsigned long value = PyLong_AsUnsignedLong(number);

    (void)module;
    if (PyErr_Occurred())
        return NULL;
    snd_py_lock();
    snd_calls_set_owner((uint32_t)value);
    snd_py_unlock();
    Py_RETURN_NONE;
}

/* For sonde._record's torch_start(), which hands them to the torch probe. */
static PyObject *functions_c_calls(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyCapsule_New((void *)(uintptr_t)&snd_calls_c, SND_C_CALLS_CAPSULE, NULL);
}

PyMethodDef snd_py_functions_methods[] = {
    { "functions_start", SND_PY_METHOD(functions_start), METH_VARARGS | METH_KEYWORDS,
      "functions_start(package, library, builtins=True, traced=False, whole=False, "
      "open_frames=False, module_code=None): every Python call from now on, but those of "
      "`package`, "
      "a folder; traced: as ranges; whole: nor those of `library` that begin and end a program; "
      "open_frames: as events of the timeline, those under way too, and calls of `module_code` by "
      "their module's name" },
    { "collection", snd_py_collection, METH_VARARGS,
      "collection(phase, info): one of gc.callbacks; collections are events of the timeline" },
    { "functions_stop", SND_PY_METHOD(functions_stop), METH_NOARGS, NULL },
    { "functions_session", functions_session, METH_VARARGS,
      "functions_session(number, on): calls are counted for a session by itself too" },
    { "functions_split", functions_split, METH_VARARGS,
      "functions_split(number, on): what was counted so far is that session's" },
    { "functions_forget", functions_forget, METH_VARARGS,
      "functions_forget(number, has): a session is gone; has: its counts are in the recording" },
    { "functions_owner", functions_owner, METH_O,
      "functions_owner(number): all calls from now on are that session's, and nobody else's; 0: "
      "several sessions'" },
    { "functions_describe", SND_PY_METHOD(functions_describe), METH_NOARGS,
      "functions_describe() -> dict: on, way, switched (why not the first way), unbalanced, lost" },
    { "functions_c_calls", SND_PY_METHOD(functions_c_calls), METH_NOARGS,
      "functions_c_calls() -> capsule: calls of functions in C that a thread is in, while calls "
      "are "
      "events" },
    { NULL, NULL, 0, NULL },
};
