/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python/read/core.h - what the files of sonde._core share.
 *
 *     core.c           the module
 *     trace.c          Trace
 *     averages/, events/, timeline.c   what is made of it
 *     tables/          columns for NumPy, whole tables for Arrow, the tables of docs/SCHEMA.md, whole and in batches
 *     layer_results.c  profiles of layers into results files
 *     rows.c           what lists of rows have in common
 *     errors.c, trace_lease.c, write_file.c   what all of them use
 *
 * Built against the limited API of CPython 3.9. All of this runs with the interpreter lock.
 */
#ifndef SONDE_CORE_H
#define SONDE_CORE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include <sonde/sonde.h>

#define METHOD(f) ((PyCFunction)(void (*)(void))(f))

/* -------------------------------------------- errors.c, trace_lease.c, write_file.c */

struct trace_object {
    PyObject_HEAD
    struct sonde_trace *trace;  /* owned; NULL once it is closed and nobody uses it */
    int                 busy;   /* a call is at work without the interpreter lock */
    bool                lent;   /* busy, with a stream of Arrow, until that has ended */
    int                 closed; /* the user let go of it; what was made of it may still live */
    Py_ssize_t          users;  /* averages, events, timelines, streams that borrow from it */
    char               *path;   /* owned: what was opened */
};

extern PyObject *core_error; /* sonde.Error */

void core_set_error(const struct sonde_error *err);

/* sonde.diff (diff_paths.c). */
PyObject *core_diff(PyObject *module, PyObject *args);

/* The trace, reserved for the caller until core_let_go(); NULL with an exception set. */
struct sonde_trace *core_take(struct trace_object *self);
void                core_let_go(struct trace_object *self);
/* The same for longer than a call, of one who uses it (core_use): false, without an exception, while it is in use. */
bool core_lend(struct trace_object *self);
void core_lend_back(struct trace_object *self);

/*
 * For objects that borrow from the trace: it stays open until the last of them is gone. Each owns a
 * reference to it; NULL: it has none.
 */
void core_use(struct trace_object *self);
void core_unuse(struct trace_object *self);
/* Closes it if the user let go of it and nothing borrows from it any more. */
void core_close_unused(struct trace_object *self);

/* Values of words (sonde/export.h): 0, or -1 with an exception set. Groups: of a list, "" too. */
int core_word(enum sonde_word_list list, const char *text, int *value);
int core_flops(const char *name, enum sonde_flops_mode *out);
int core_groups(const char *list, unsigned *out);

/* Opens `path`, lets `write` fill it, and removes it if that fails; NULL or None. */
typedef enum sonde_status core_write_fn(const struct sonde_sink *sink, bool gzip, void *user,
                                        struct sonde_error *err);
PyObject                 *core_write_file(PyObject *path, core_write_fn *write, void *user);

/* Names are bytes; JSON and tables are UTF-8 already, anything else must not raise. */
static inline PyObject *core_text(struct sonde_text text)
{
    return PyUnicode_DecodeUTF8(text.bytes, (Py_ssize_t)text.length, "replace");
}

/* --------------------------------------------------- average_list.c and its siblings */

/* 0, or -1 with an exception set. */
int       core_trace_init(PyObject *module);
int       core_averages_init(PyObject *module);
int       core_average_init(PyObject *module);
int       core_events_init(PyObject *module);
int       core_event_init(PyObject *module);
int       core_timeline_init(PyObject *module);
int       core_layers_init(PyObject *module);
int       core_probes_init(PyObject *module);
int       core_sqltable_init(PyObject *module);
int       core_tablestream_init(PyObject *module);
PyObject *core_trace_averages(struct trace_object *self, PyObject *args, PyObject *kwargs);
PyObject *core_trace_events(struct trace_object *self, PyObject *args, PyObject *kwargs);
PyObject *core_trace_stacks(struct trace_object *self, PyObject *args, PyObject *kwargs);
PyObject *core_trace_timeline(struct trace_object *self, PyObject *args, PyObject *kwargs);
PyObject *core_trace_table(struct trace_object *self, PyObject *args);
PyObject *core_trace_arrow(struct trace_object *self, PyObject *args, PyObject *kwargs);
PyObject *core_trace_table_names(struct trace_object *self, PyObject *unused);
PyObject *core_trace_job(struct trace_object *self, PyObject *unused);

/* ---------------------------------------------------------- array_column.c, arrow.c */

#define CORE_COLUMNS_MAX 40

/*
 * Elements are int64_t q, uint64_t Q, int32_t i, uint32_t I, uint8_t B, double d. Of texts they
 * are numbers in the table's list: any (DICTIONARY), or in a row from the first on (TEXT).
 */
struct core_column {
    const char *name;
    char        format;
    const void *data;
    enum core_text_kind { CORE_NUMBER, CORE_DICTIONARY, CORE_TEXT } kind;
    bool           nullable; /* but for texts in a row */
    const uint8_t *valid;    /* a bit for each row, as Arrow has them; NULL: no row is null */
    size_t         null_count;
};

struct core_table {
    size_t             count;
    size_t             column_count;
    struct core_column columns[CORE_COLUMNS_MAX];
    PyObject          *texts; /* a list of str, or NULL */
};

int core_table_init(PyObject *module);
/* A Column that keeps `owner` alive; NULL with an exception set when there is no such name. */
PyObject *core_table_column(const struct core_table *table, PyObject *owner, const char *name);
PyObject *core_table_names(const struct core_table *table);
PyObject *core_table_schema(const struct core_table *table);
PyObject *core_table_array(const struct core_table *table, PyObject *owner);
PyObject *core_table_stream(const struct core_table *table, PyObject *owner);
/* A column of libsonde's (sql_table.c). */
struct core_column core_sql_column(const struct sonde_table_column *column);

#endif
