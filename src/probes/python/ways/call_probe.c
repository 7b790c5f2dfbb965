/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/python/ways/call_probe.c - the probe of Python calls: on, off, and what functions are called.
 */
#include "probes/python/ways/call_probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/data/map.h"

#define BUILTINS_CACHED 512u

Py_ssize_t snd_py_functions_index = -1;

static struct {
    const struct snd_py_way *way;
    bool                     builtins;
    const char              *switched; /* why it is not the way that was chosen first; or NULL */
    char                    *package;  /* folder whose functions are not shown */
    char                    *library;  /* folder of Python's own modules */
} probe;

/* --------------------------------------------------------------- Python functions */

static bool is_ours(const char *file)
{
    size_t length = probe.package ? strlen(probe.package) : 0;

    return length > 0 && strncmp(file, probe.package, length) == 0 && file[length] == '/';
}

/* Python's own function: at the bottom of a stack it begins or ends a program, and is none of it. */
static bool is_outside(const PyCodeObject *code, const char *file)
{
    size_t length = probe.library ? strlen(probe.library) : 0;

    if (strncmp(file, "<frozen ", 8) == 0)
        return true;
    return code->co_flags & CO_OPTIMIZED && length > 0 &&
           strncmp(file, probe.library, length) == 0 && file[length] == '/' &&
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
    uint32_t  number = snd_py_module_number(code);

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
    uint32_t     number;
} builtins[BUILTINS_CACHED];
static struct snd_map builtin_map;

/* repr() of the method descriptor that `method` is of; NULL without an exception if none. */
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

static uint32_t number_builtin(PyMethodDef *method, PyObject *callable)
{
    PyObject             *error[3], *owner = NULL;
    struct snd_calls_name name = { .file = "~", .file_length = 1, .outside = true };

    PyErr_Fetch(&error[0], &error[1], &error[2]);
    PyObject *text = describe_builtin(method, callable);
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

uint32_t snd_py_builtin_number(PyMethodDef *method, PyObject *callable)
{
    size_t         at = ((uintptr_t)method >> 4 ^ (uintptr_t)method >> 13) % BUILTINS_CACHED;
    struct snd_key key = { (uintptr_t)method, (uintptr_t)method->ml_name, 0 };
    uint32_t       number;

    if (SONDE_LIKELY_(builtins[at].method == method && builtins[at].name == method->ml_name))
        return builtins[at].number;
    if (!snd_map_get(&builtin_map, key, &number)) {
        number = number_builtin(method, callable);
        if (number == 0 || !snd_map_put(&builtin_map, key, number))
            return number;
    }
    builtins[at].method = method;
    builtins[at].name = method->ml_name;
    builtins[at].number = number;
    return number;
}

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

void snd_py_functions_switch(const struct snd_py_way *way, const char *why)
{
    static char said[192];
    PyObject   *error[3];

    if (!snd_calls.on || probe.way == way)
        return;
    /* A call that ends by raising may bring us here: the exception is the program's. */
    PyErr_Fetch(&error[0], &error[1], &error[2]);
    probe.way->stop();
    probe.way = way;
    bool started = way->start(probe.builtins);
    PyErr_Clear();
    snprintf(said, sizeof said, "%s%s", why,
             started ? "" : "; no other mechanism was available: later calls are missing");
    probe.switched = said;
    /* now: the program may never get to stop */
    sonde_metadata(snd_meta_key(SND_META_PYTHON_FUNCTIONS_SWITCHED), said);
    PyErr_Restore(error[0], error[1], error[2]);
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
    if (!probe.package)
        probe.package = strdup(package);
    if (!probe.library)
        probe.library = strdup(library);
    return true;
}

/* What a CPython whose frames are not known cannot have: the faster way, and the calls under way. */
static void note_unknown(bool open_frames)
{
#ifdef SND_PYFRAMES_MISSING
    if (probe.builtins && !open_frames)
        return;
    probe.switched = SND_PYFRAMES_MISSING;
    sonde_metadata(snd_meta_key(SND_META_PYTHON_FUNCTIONS_SWITCHED), probe.switched);
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
    probe.builtins = with_builtins != 0;
    probe.way = choose_way(probe.builtins);
    probe.switched = NULL;
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
    if (!probe.way->start(probe.builtins)) {
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
        probe.way->stop();
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
                         probe.way ? probe.way->name : "", "switched", probe.switched, "unbalanced",
                         (unsigned long long)snd_calls.unbalanced, "lost",
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
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
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
    { NULL, NULL, 0, NULL },
};
