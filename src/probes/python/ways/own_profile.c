/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/python/ways/own_profile.c - the program's own sys.setprofile() beside ours, CPython 3.12 and later.
 *
 * Without us a program's first profile function does not see the call of sys.setprofile() return that
 * has set it: no instruction is watched for profile functions when that call begins. With us it is
 * watched, and the interpreter tells everybody who watches by then. So the first event of a new profile
 * function goes through here.
 */
#include "probes/python/ways/call_probe.h"

#if PY_VERSION_HEX >= 0x030C0000

static PyObject *call_setprofile(PyObject *self, PyObject *function);

static struct snd_py_override set = { .module = "sys",
                                      .name = "setprofile",
                                      .ours = call_setprofile };
static Py_tracefunc           call_function; /* of CPython: calls a profile function in Python */
static bool                   is_watched;    /* the interpreter watches for profile functions */

static int on_first_event(PyObject *object, PyFrameObject *frame, int what, PyObject *arg)
{
    PyThreadState *thread = PyThreadState_Get();

    if (thread->c_profilefunc == on_first_event)
        thread->c_profilefunc = call_function;
    if (what == PyTrace_C_RETURN && arg == (PyObject *)set.function)
        return 0;
    return call_function(object, frame, what, arg);
}

/* CPython decides it whenever one is set or removed, not when a thread ends that has one. */
static bool has_profile_function(void)
{
    PyThreadState *thread = PyInterpreterState_ThreadHead(PyInterpreterState_Get());

    while (thread && !thread->c_profilefunc)
        thread = PyThreadState_Next(thread);
    return thread != NULL;
}

static PyObject *call_setprofile(PyObject *self, PyObject *function)
{
    PyThreadState *thread = PyThreadState_Get();
    PyObject      *answer = set.real->ml_meth(self, function);

    if (answer && !is_watched && thread->c_profilefunc) {
        call_function = thread->c_profilefunc;
        thread->c_profilefunc = on_first_event;
    }
    is_watched = answer ? has_profile_function() : is_watched;
    return answer;
}

void snd_py_own_profile_start(void)
{
    is_watched = has_profile_function();
    (void)snd_py_override(&set);
}

/* Where `call_function` is still awaited, it comes all the same. */
void snd_py_own_profile_stop(void)
{
    snd_py_override_undo(&set);
}

void snd_py_own_profile_renew(void)
{
    set.function = NULL;
}

#endif
