/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/python/lines/line_probe.c - the probe of lines: which functions are chosen, on and off.
 */
#include "probes/python/lines/line_events.h"

#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

static const struct snd_line_source *source_of_this_python(void)
{
#if PY_VERSION_HEX >= 0x030C0000
    return &snd_line_monitoring;
#else
    return &snd_line_tracing;
#endif
}

static unsigned  users;  /* sessions that have the probe on */
static PyObject *chosen; /* code objects by address: equal ones are not the same function */

/* ------------------------------------------------------------------------- choosing */

/* Iterates over the chosen functions; *at begins at 0. NULL after the last. */
static struct snd_line_table *next_chosen(Py_ssize_t *at)
{
    PyObject *key, *code;

    while (chosen && PyDict_Next(chosen, at, &key, &code)) {
        struct snd_line_table *table = snd_line_table_of((PyCodeObject *)code);
        if (table)
            return table;
    }
    return NULL;
}

static bool list_chosen(PyCodeObject *code, bool wanted)
{
    if (!chosen)
        chosen = PyDict_New();
    PyObject *key = chosen ? PyLong_FromVoidPtr(code) : NULL;
    if (!key)
        return false;
    int done = wanted                             ? PyDict_SetItem(chosen, key, (PyObject *)code)
               : PyDict_Contains(chosen, key) > 0 ? PyDict_DelItem(chosen, key)
                                                  : 0;
    Py_DECREF(key);
    return done == 0;
}

/* Records the file's state, so that a report can tell whether it has changed since. */
static void note_source(PyObject *file)
{
    struct stat about;
    PyObject   *owned;
    size_t      length;
    const char *path = snd_py_bytes(file, &owned, &length);
    char        key[PATH_MAX + 32], value[64];

    if (stat(path, &about) == 0) {
        snprintf(key, sizeof key, "%s%s", snd_meta_key(SND_META_PYTHON_SOURCE), path);
        snprintf(value, sizeof value, "%lld %lld", (long long)about.st_size,
                 (long long)about.st_mtim.tv_sec * 1000000000 + about.st_mtim.tv_nsec);
        sonde_metadata(key, value);
    }
    Py_XDECREF(owned);
}

/* Writes a chosen function into the trace, even if it is never called. */
static void announce(struct snd_line_table *table)
{
    if (sonde_epoch() == 0 || table->code != table->owner)
        return;
    note_source(table->code->co_filename);
    snd_py_lock();
    if (table->epoch != sonde_epoch())
        snd_line_renew(table);
    uint32_t first = (uint32_t)table->code->co_firstlineno - table->first;
    if (table->wanted & SND_LINE_TIME)
        snd_line_place(table, first, SND_LINE_TIME);
    if (table->wanted & SND_LINE_MEMORY)
        snd_line_place(table, first, SND_LINE_MEMORY);
    snd_line_share_announce(table, first);
    snd_py_unlock();
}

static bool set_wanted(struct snd_line_table *table)
{
    uint32_t before = table->wanted;

    snd_py_lock();
    table->wanted = (table->uses[0] ? SND_LINE_TIME : 0u) | (table->uses[1] ? SND_LINE_MEMORY : 0u);
    snd_line_set_more(table);
    snd_py_unlock();
    if (before == table->wanted)
        return true;
    PyCodeObject *code = table->code;
    Py_INCREF(code);
    if (!before) /* keeps the owner alive: it has the names */
        Py_INCREF(table->owner);
    bool done = list_chosen(code, table->wanted != 0);
    if (done && users > 0)
        done = source_of_this_python()->watch(code, table->wanted);
    if (table->wanted) {
        announce(table);
    } else {
        snd_line_give_up(table);
        Py_DECREF(table->owner);
    }
    Py_DECREF(code);
    return done;
}

static PyObject *lines_choose(PyObject *module, PyObject *args)
{
    PyCodeObject *code, *owner;
    int           memory = 0, more = 1;
    unsigned      session = 0;

    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!p|pI:lines_choose", &PyCode_Type, &code, &PyCode_Type, &owner,
                          &memory, &more, &session))
        return NULL;
    struct snd_line_table *table = snd_line_table_get(code, owner);
    if (!table)
        return NULL;
    if (!table->wanted)
        table->owner = owner;
    uint32_t *uses = &table->uses[memory != 0];
    if (!more && *uses == 0)
        Py_RETURN_NONE;
    snd_py_lock();
    bool shared = session == 0 ||
                  snd_line_share_choose(table, session, memory ? SND_LINE_MEMORY : SND_LINE_TIME,
                                        more != 0);
    snd_py_unlock();
    if (!shared)
        return PyErr_NoMemory();
    *uses += more ? 1u : UINT32_MAX;
    if (!set_wanted(table))
        return NULL;
    Py_RETURN_NONE;
}

/* ----------------------------------------------------------------------- on and off */

static bool watch_all(void)
{
    struct snd_line_table *table;
    Py_ssize_t             at = 0;

    while ((table = next_chosen(&at)))
        if (!source_of_this_python()->watch(table->code, table->wanted))
            return false;
    return true;
}

/* Without this, chosen functions would stay slow after the probe is off. */
static void unwatch_all(void)
{
    struct snd_line_table *table;
    Py_ssize_t             at = 0;
    PyObject              *error[3];

    PyErr_Fetch(&error[0], &error[1], &error[2]);
    while ((table = next_chosen(&at)))
        if (!source_of_this_python()->watch(table->code, 0))
            PyErr_Clear();
    PyErr_Restore(error[0], error[1], error[2]);
}

static bool enter(void)
{
    if (users == 0) {
        if (!source_of_this_python()->start())
            return false;
        if (!watch_all()) {
            unwatch_all();
            source_of_this_python()->stop();
            return false;
        }
        snd_lines_on = true;
    }
    users++;
    return true;
}

static PyObject *lines_enter(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    if (!enter())
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *lines_leave(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    if (users == 0 || --users > 0)
        Py_RETURN_NONE;
    snd_lines_on = false;
    unwatch_all();
    source_of_this_python()->stop();
    snd_line_give_up(NULL); /* lines under way, as line_profiler does */
    Py_RETURN_NONE;
}

void snd_py_lines_renew(void)
{
    snd_lines_on = false;
    users = 0;
    chosen = NULL;
    source_of_this_python()->renew();
    snd_line_tables_renew();
}

static PyObject *lines_announce(PyObject *module, PyObject *unused)
{
    struct snd_line_table *table;
    Py_ssize_t             at = 0;

    (void)module;
    (void)unused;
    while ((table = next_chosen(&at)))
        announce(table);
    if (users > 0 && source_of_this_python()->adopt)
        source_of_this_python()->adopt();
    sonde_metadata(snd_meta_key(SND_META_PYTHON_LINES), source_of_this_python()->name);
    Py_RETURN_NONE;
}

PyMethodDef snd_py_lines_methods[] = {
    { "lines_choose", lines_choose, METH_VARARGS,
      "lines_choose(code, owner, memory, more=True, session=0): its lines are recorded as those of "
      "`owner`, their time or their memory, for a session by itself too; more=False takes one such "
      "call back" },
    { "lines_announce", lines_announce, METH_NOARGS,
      "lines_announce(): what is chosen is known in the recording, and recorded if it runs now" },
    { "lines_enter", lines_enter, METH_NOARGS, "lines_enter(): chosen functions are recorded" },
    { "lines_leave", lines_leave, METH_NOARGS, "lines_leave(): takes one enter back" },
    { NULL, NULL, 0, NULL },
};
