/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notices Python children that will not be recorded, because the environment that the program gives
 * them has lost what `sonde run` put there: SONDE_TRACE, or the folder of our start-up code in
 * PYTHONPATH. A message is printed once per process; the program's environment is not changed.
 *
 * The functions of C that start programs are wrapped by functions of C of the same names: an audit
 * hook would cost each id() and open() of the program something, a function of Python would be in
 * its profile.
 */
#include "probes/python/common.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VARIABLE "SONDE_TRACE"
#define START_FOLDER "/_autostart"

/* ------------------------------------------------------------- which program */

static bool is_python_name(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

    return strncmp(name, "python", 6) == 0 || strncmp(name, "pypy", 4) == 0;
}

/* "#!/usr/bin/env python3". */
static bool is_python_script(const char *path)
{
    char head[128];
    int  fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0)
        return false;
    ssize_t n = read(fd, head, sizeof head - 1);
    close(fd);
    head[n > 0 ? n : 0] = '\0';
    head[strcspn(head, "\n")] = '\0';
    return strncmp(head, "#!", 2) == 0 && strstr(head, "python") != NULL;
}

/* The bytes of a str, bytes or path as the system takes them, in `holder`; NULL if it has none. */
static const char *path_bytes(PyObject *path, PyObject **holder)
{
    if (PyUnicode_FSConverter(path, holder))
        return PyBytes_AS_STRING(*holder);
    PyErr_Clear();
    return NULL;
}

static bool is_python(PyObject *path, char *shown, size_t size)
{
    PyObject   *holder = NULL;
    const char *text = path_bytes(path, &holder);
    bool        is = text && (is_python_name(text) || is_python_script(text));

    if (is)
        snprintf(shown, size, "%s", text);
    Py_XDECREF(holder);
    return is;
}

/* --------------------------------------------------------- which environment */

static bool is_variable(const char *text, const char *name)
{
    size_t length = strlen(name);

    return strncmp(text, name, length) == 0 && text[length] == '=';
}

/* Which of the variables that a child needs an environment has. */
struct needed {
    bool trace, path;
};

static void note_own(struct needed *has)
{
    const char *path = getenv("PYTHONPATH");

    has->trace = getenv(VARIABLE) != NULL;
    has->path = path && strstr(path, START_FOLDER);
}

/* fork_exec's: a sequence of b"NAME=value". */
static void note_list(PyObject *list, struct needed *has)
{
    PyObject *fast = PySequence_Fast(list, "");

    if (!fast) {
        PyErr_Clear();
        has->trace = has->path = true; /* assume that all are there */
        return;
    }
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast); i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(fast, i);
        if (!PyBytes_Check(item))
            continue;
        const char *text = PyBytes_AS_STRING(item);
        has->trace |= is_variable(text, VARIABLE);
        has->path |= is_variable(text, "PYTHONPATH") && strstr(text, START_FOLDER);
    }
    Py_DECREF(fast);
}

static bool value_holds(PyObject *value, const char *part)
{
    PyObject   *holder = NULL;
    const char *text = path_bytes(value, &holder);
    bool        does = text && strstr(text, part);

    Py_XDECREF(holder);
    return does;
}

static void note_dict(PyObject *dict, struct needed *has)
{
    PyObject  *key, *value, *holder;
    Py_ssize_t at = 0;

    while (PyDict_Next(dict, &at, &key, &value)) {
        holder = NULL;
        const char *name = path_bytes(key, &holder);
        has->trace |= name && strcmp(name, VARIABLE) == 0;
        has->path |= name && strcmp(name, "PYTHONPATH") == 0 && value_holds(value, START_FOLDER);
        Py_XDECREF(holder);
    }
}

/* None and os.environ are our own environment; other mappings are not read: that runs program code. */
static struct needed find_needed(PyObject *environment)
{
    struct needed has = { false, false };

    if (environment == Py_None || strcmp(Py_TYPE(environment)->tp_name, "_Environ") == 0)
        note_own(&has);
    else if (PyDict_CheckExact(environment))
        note_dict(environment, &has);
    else if (PyList_Check(environment) || PyTuple_Check(environment))
        note_list(environment, &has);
    else
        has.trace = has.path = true;
    return has;
}

/* ---------------------------------------------------------------- the wrappers */

static void say_once(const char *program, const struct needed *has)
{
    static bool said;

    if (said)
        return;
    said = true;
    fprintf(stderr,
            "sonde: %s is started with an environment without %s: it and others like it are not "
            "recorded\n",
            program, has->trace ? "sonde's folder in PYTHONPATH" : VARIABLE);
}

/* `paths` is one path or a sequence of candidates, the first of which that exists is run. */
static void judge(PyObject *paths, PyObject *environment)
{
    char          program[256] = "";
    bool          python = false;
    struct needed has = find_needed(environment);

    if (has.trace && has.path)
        return;
    if (PyList_Check(paths) || PyTuple_Check(paths)) {
        PyObject *fast = PySequence_Fast(paths, "");
        for (Py_ssize_t i = 0; fast && !python && i < PySequence_Fast_GET_SIZE(fast); i++)
            python = is_python(PySequence_Fast_GET_ITEM(fast, i), program, sizeof program);
        Py_XDECREF(fast);
    } else if (PyUnicode_Check(paths) || PyBytes_Check(paths)) {
        python = is_python(paths, program, sizeof program);
    }
    if (python)
        say_once(program, &has);
}

/* What is wrapped, and which of its arguments are the program and its environment. */
enum { FORK_EXEC, EXECVE, POSIX_SPAWN, POSIX_SPAWNP, WRAPPED };
static struct {
    const char *module, *name;
    Py_ssize_t  path, environment;
    PyObject   *real; /* owned, for as long as Python lives */
} wrapped[WRAPPED] = {
    [FORK_EXEC] = { "_posixsubprocess", "fork_exec", 1, 5, NULL },
    [EXECVE] = { "posix", "execve", 0, 2, NULL },
    [POSIX_SPAWN] = { "posix", "posix_spawn", 0, 2, NULL },
    [POSIX_SPAWNP] = { "posix", "posix_spawnp", 0, 2, NULL },
};

static PyObject *call(int which, PyObject *args, PyObject *keywords)
{
    Py_ssize_t last = wrapped[which].environment;

    if (PyTuple_GET_SIZE(args) > last)
        judge(PyTuple_GET_ITEM(args, wrapped[which].path), PyTuple_GET_ITEM(args, last));
    return PyObject_Call(wrapped[which].real, args, keywords);
}

#define WRAPPER(function, which)                                                  \
    static PyObject *function(PyObject *self, PyObject *args, PyObject *keywords) \
    {                                                                             \
        (void)self;                                                               \
        return call(which, args, keywords);                                       \
    }
WRAPPER(call_fork_exec, FORK_EXEC)
WRAPPER(call_execve, EXECVE)
WRAPPER(call_posix_spawn, POSIX_SPAWN)
WRAPPER(call_posix_spawnp, POSIX_SPAWNP)

static PyMethodDef definitions[WRAPPED] = {
    [FORK_EXEC] = { "fork_exec", (PyCFunction)(void (*)(void))call_fork_exec,
                    METH_VARARGS | METH_KEYWORDS, NULL },
    [EXECVE] = { "execve", (PyCFunction)(void (*)(void))call_execve, METH_VARARGS | METH_KEYWORDS,
                 NULL },
    [POSIX_SPAWN] = { "posix_spawn", (PyCFunction)(void (*)(void))call_posix_spawn,
                      METH_VARARGS | METH_KEYWORDS, NULL },
    [POSIX_SPAWNP] = { "posix_spawnp", (PyCFunction)(void (*)(void))call_posix_spawnp,
                       METH_VARARGS | METH_KEYWORDS, NULL },
};

/* Replaces it in the module that defines it, and in `os`, which re-exports posix. */
static bool wrap(int which)
{
    PyObject *module = PyImport_ImportModule(wrapped[which].module);
    PyObject *real = module ? PyObject_GetAttrString(module, wrapped[which].name) : NULL;
    PyObject *name = real ? PyUnicode_FromString(wrapped[which].module) : NULL;
    PyObject *ours = NULL, *os = NULL;
    bool      done = false;

    if (name && PyCFunction_Check(real)) {
        definitions[which].ml_doc = ((PyCFunctionObject *)real)->m_ml->ml_doc;
        ours = PyCFunction_NewEx(&definitions[which], PyCFunction_GET_SELF(real), name);
    }
    if (ours) {
        wrapped[which].real = real;
        Py_INCREF(real);
        done = PyObject_SetAttrString(module, wrapped[which].name, ours) == 0;
        os = done && which != FORK_EXEC ? PyImport_ImportModule("os") : NULL;
        done = done && (!os || PyObject_SetAttrString(os, wrapped[which].name, ours) == 0);
    }
    Py_XDECREF(os);
    Py_XDECREF(ours);
    Py_XDECREF(name);
    Py_XDECREF(real);
    Py_XDECREF(module);
    return done;
}

static PyObject *watch_children(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    for (int i = 0; i < WRAPPED; i++)
        if (!wrapped[i].real && !wrap(i))
            PyErr_Clear(); /* a Python without it starts no children by it */
    Py_RETURN_NONE;
}

void snd_py_children_renew(void)
{
    for (int i = 0; i < WRAPPED; i++)
        wrapped[i].real = NULL;
}

PyMethodDef snd_py_children_methods[] = {
    { "watch_children", watch_children, METH_NOARGS,
      "watch_children(): says on stderr when a Python child gets an environment that keeps it from "
      "being recorded" },
    { NULL, NULL, 0, NULL },
};
