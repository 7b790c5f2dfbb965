/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/python/program/forks.c - os.fork() and os.forkpty() of a process whose other threads are sonde's.
 *
 * CPython 3.12 and later warn of a fork beside other threads, because the child may wait for a lock
 * that one of them held. The recorder's threads hold none that a child needs, and a program with one
 * thread is not to be warned of ours. With other threads than ours Python's own functions are called.
 */
#include "probes/python/common.h"

#include <dlfcn.h>
#include <errno.h>
#include <unistd.h>

#include "base/count_of.h"
#include "base/system/proc_files.h"

#if PY_VERSION_HEX >= 0x030C0000

#if PY_VERSION_HEX < 0x030D0000
#define Py_IsFinalizing _Py_IsFinalizing
#endif

typedef int forkpty_function(int *master, char *name, const void *settings, const void *size);

static PyObject *call_fork(PyObject *self, PyObject *unused);
static PyObject *call_forkpty(PyObject *self, PyObject *unused);

static struct snd_py_override forks[] = {
    { .module = "posix", .name = "fork", .ours = call_fork },
    { .module = "posix", .name = "forkpty", .ours = call_forkpty },
};

/* All of sonde's threads have such names. Otherwise Python's own function is called, which may refuse, or warn with reason. */
static bool is_ours_to_do(void)
{
    return !Py_IsFinalizing() && PyInterpreterState_Get() == PyInterpreterState_Main() &&
           snd_proc_threads_besides("sonde") == 1;
}

/* As os.fork() does it, up to the warning. `forkpty`: NULL for a plain fork. */
static pid_t fork_now(forkpty_function *forkpty, int *master)
{
    PyOS_BeforeFork();
    pid_t pid = forkpty ? forkpty(master, NULL, NULL, NULL) : fork();
    int   error = errno;
    if (pid == 0)
        PyOS_AfterFork_Child();
    else
        PyOS_AfterFork_Parent();
    errno = error;
    return pid;
}

static PyObject *call_fork(PyObject *self, PyObject *unused)
{
    if (!is_ours_to_do())
        return forks[0].real->ml_meth(self, unused);
    if (PySys_Audit("os.fork", NULL) < 0)
        return NULL;
    pid_t pid = fork_now(NULL, NULL);
    return pid < 0 ? PyErr_SetFromErrno(PyExc_OSError) : PyLong_FromLong(pid);
}

static PyObject *call_forkpty(PyObject *self, PyObject *unused)
{
    /* Python's own: before glibc 2.34 it is in a library of its own. */
    forkpty_function *forkpty = (forkpty_function *)(uintptr_t)dlsym(RTLD_DEFAULT, "forkpty");
    int               master = -1;

    if (!forkpty || !is_ours_to_do())
        return forks[1].real->ml_meth(self, unused);
    if (PySys_Audit("os.forkpty", NULL) < 0)
        return NULL;
    pid_t pid = fork_now(forkpty, &master);
    return pid < 0 ? PyErr_SetFromErrno(PyExc_OSError)
                   : Py_BuildValue("(Ni)", PyLong_FromLong(pid), master);
}

static PyObject *allow_fork(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    for (size_t i = 0; i < SND_COUNT_OF(forks); i++)
        (void)snd_py_override(&forks[i]);
    Py_RETURN_NONE;
}

void snd_py_forks_renew(void)
{
    for (size_t i = 0; i < SND_COUNT_OF(forks); i++)
        forks[i].function = NULL;
}

#else /* which do not warn */

static PyObject *allow_fork(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    Py_RETURN_NONE;
}

void snd_py_forks_renew(void)
{
}

#endif

PyMethodDef snd_py_forks_methods[] = {
    { "allow_fork", allow_fork, METH_NOARGS,
      "allow_fork(): Python does not warn of a fork() beside the recorder's threads" },
    { NULL, NULL, 0, NULL },
};
