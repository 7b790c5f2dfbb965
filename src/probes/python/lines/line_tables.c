/* SPDX-License-Identifier: Apache-2.0 */
/* probes/python/lines/line_tables.c - tables of chosen functions: one for each code object. */
#include "probes/python/lines/line_events.h"

#include <stdlib.h>

/* CPython also calls this for code that has only another tool's word: then ours is NULL. */
static void free_table(void *word)
{
    struct snd_line_table *table = word;

    if (!table)
        return;
    free(table->time);
    free(table->memory);
    snd_line_free_shares(table);
    free(table);
}

/* A table lives as long as its code object, which a running frame keeps alive. */
static struct snd_line_table *new_table(PyCodeObject *code, PyCodeObject *owner, uint32_t first,
                                        uint32_t last)
{
    struct snd_line_table *table = calloc(1, sizeof *table);

    if (!table)
        return NULL;
    table->code = code;
    table->owner = owner;
    table->first = first;
    table->count = last - first + 1;
    table->time = calloc(table->count, sizeof *table->time);
    table->memory = calloc(table->count, sizeof *table->memory);
    if (!table->time || !table->memory) {
        free_table(table);
        return NULL;
    }
    return table;
}

/* The lines that its instructions have; False with an exception set. */
static bool find_lines(PyCodeObject *code, uint32_t *first, uint32_t *last)
{
    PyObject *bytes = PyObject_GetAttrString((PyObject *)code, "co_code");
    if (!bytes)
        return false;
    int size = (int)PyBytes_GET_SIZE(bytes), low = code->co_firstlineno, high = low;
    Py_DECREF(bytes);
    for (int at = 0; at < size; at += 2) {
        int line = PyCode_Addr2Line(code, at);
        if (line > high)
            high = line;
        if (line > 0 && line < low)
            low = line;
    }
    *first = (uint32_t)low;
    *last = (uint32_t)high;
    return true;
}

struct snd_line_table *snd_line_table_get(PyCodeObject *code, PyCodeObject *owner)
{
    uint32_t first = 0, last = 0;

    if (snd_line_index < 0)
        snd_line_index = snd_py_extra_index(free_table);
    if (snd_line_index < 0) {
        PyErr_SetString(snd_py_error_class(),
                        "cannot record lines: other tools use all extra slots of code objects");
        return NULL;
    }
    struct snd_line_table *table = snd_py_extra(code, snd_line_index);
    if (table || !find_lines(code, &first, &last))
        return table;
    table = new_table(code, owner, first, last);
    if (!table) {
        PyErr_NoMemory();
        return NULL;
    }
    if (!snd_py_set_extra(code, snd_line_index, table)) {
        free_table(table);
        return NULL;
    }
    return table;
}
