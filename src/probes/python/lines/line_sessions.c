/* SPDX-License-Identifier: Apache-2.0 */
/* probes/python/lines/line_sessions.c - sessions that count lines for themselves, as Python starts and ends them. */
#include "probes/python/lines/line_events.h"

static PyObject *lines_owner(PyObject *module, PyObject *args)
{
    int      memory;
    unsigned number;

    (void)module;
    if (!PyArg_ParseTuple(args, "pI:lines_owner", &memory, &number))
        return NULL;
    snd_py_lock();
    snd_line_set_owner(memory != 0, number);
    snd_py_unlock();
    Py_RETURN_NONE;
}

static PyObject *lines_split(PyObject *module, PyObject *args)
{
    PyCodeObject *code, *owner;
    int           memory, on;
    unsigned      number;

    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!pIp:lines_split", &PyCode_Type, &code, &PyCode_Type, &owner,
                          &memory, &number, &on))
        return NULL;
    struct snd_line_table *table = snd_line_table_get(code, owner);
    if (!table)
        return NULL;
    snd_py_lock();
    bool done = snd_line_share_split(table, number, memory ? SND_LINE_MEMORY : SND_LINE_TIME,
                                     on != 0);
    snd_py_unlock();
    if (!done)
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyObject *lines_forget(PyObject *module, PyObject *args)
{
    PyCodeObject *code;
    unsigned      number;
    int           has;

    (void)module;
    if (!PyArg_ParseTuple(args, "O!Ip:lines_forget", &PyCode_Type, &code, &number, &has))
        return NULL;
    struct snd_line_table *table = snd_line_index < 0 ? NULL : snd_py_extra(code, snd_line_index);
    snd_py_lock();
    if (table)
        snd_line_share_forget(table, number, has != 0);
    snd_py_unlock();
    Py_RETURN_NONE;
}

PyMethodDef snd_py_line_sessions_methods[] = {
    { "lines_owner", lines_owner, METH_VARARGS,
      "lines_owner(memory, number): all lines from now on are that session's, and nobody else's; "
      "0: several sessions'" },
    { "lines_split", lines_split, METH_VARARGS,
      "lines_split(code, owner, memory, number, on): what was counted so far is that session's" },
    { "lines_forget", lines_forget, METH_VARARGS,
      "lines_forget(code, number, has): a session is gone; has: its counts are in the recording" },
    { NULL, NULL, 0, NULL },
};
