/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python/read/trace.c - Trace: opened and closed, reported, exported; its ledger and metadata.
 *
 * Threads: the interpreter lock is released while libsonde works. A trace is for one thread at a
 *          time: a second one gets an error meanwhile.
 */
#include "python/read/core.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------ open and close */

static PyObject *trace_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "path", NULL };
    PyObject    *path = NULL;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&:Trace", names, PyUnicode_FSConverter, &path))
        return NULL;
    allocfunc            allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct trace_object *self = (struct trace_object *)allocate(type, 0);
    if (!self) {
        Py_DECREF(path);
        return NULL;
    }
    struct sonde_error err = { 0 };
    enum sonde_status  status;
    const char        *bytes = PyBytes_AsString(path);
    Py_BEGIN_ALLOW_THREADS
    status = sonde_trace_open(bytes, &self->trace, &err);
    self->path = realpath(bytes, NULL);
    Py_END_ALLOW_THREADS
    if (!self->path)
        self->path = strdup(bytes);
    Py_DECREF(path);
    if (status != SONDE_OK) {
        core_set_error(&err);
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static void trace_dealloc(struct trace_object *self)
{
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    freefunc      release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    sonde_trace_close(self->trace);
    free(self->path);
    release(self);
    Py_DECREF(type);
}

static PyObject *trace_close(struct trace_object *self, PyObject *unused)
{
    (void)unused;
    if (!self->closed) {
        if (!self->lent) { /* else it is closed once the stream has ended */
            if (!core_take(self))
                return NULL;
            core_let_go(self);
        }
        self->closed = 1;
        core_close_unused(self);
    }
    Py_RETURN_NONE;
}

static PyObject *trace_enter(PyObject *self, PyObject *unused)
{
    (void)unused;
    Py_INCREF(self);
    return self;
}

static PyObject *trace_exit(struct trace_object *self, PyObject *args)
{
    (void)args;
    return trace_close(self, NULL);
}

/* ------------------------------------------------------------------- reports */

/* What report() takes, into `options`. */
static int parse_report(PyObject *args, PyObject *kwargs, struct sonde_report_options *options)
{
    static char *names[] = { "view",  "sort", "rows",      "group_by",  "format",
                             "flops", "part", "time_unit", "skip_zero", "show_all",
                             "peak",  "gil",  NULL };
    const char  *group_by = "", *format = "text", *flops = "full", *part = "main", *unit = "auto";
    long long    rows = 100;
    int          skip_zero = 0, show_all = 0, peak = 0, gil = 0;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|zzLsss$sspppp:report", names, &options->view,
                                     &options->sort, &rows, &group_by, &format, &flops, &part,
                                     &unit, &skip_zero, &show_all, &peak, &gil))
        return -1;
    int format_value = 0, part_value = 0, unit_value = 0;
    if (core_word(SONDE_WORDS_FORMAT, format, &format_value) < 0 ||
        core_word(SONDE_WORDS_PART, part, &part_value) < 0 ||
        core_word(SONDE_WORDS_TIME_UNIT, unit, &unit_value) < 0 ||
        core_flops(flops, &options->flops) < 0 || core_groups(group_by, &options->groups) < 0)
        return -1;
    options->format = (enum sonde_report_format)format_value;
    options->part = (enum sonde_report_part)part_value;
    options->time_unit = (enum sonde_time_unit)unit_value;
    options->rows = rows;
    options->skip_zero = skip_zero;
    options->show_all = show_all;
    options->peak = peak;
    options->gil = gil;
    return 0;
}

static PyObject *trace_report(struct trace_object *self, PyObject *args, PyObject *kwargs)
{
    struct sonde_report_options options = SONDE_REPORT_OPTIONS_INIT;

    if (parse_report(args, kwargs, &options) != 0)
        return NULL;
    struct sonde_trace *trace = core_take(self);
    if (!trace)
        return NULL;

    struct sonde_buffer text = { 0 };
    struct sonde_sink   sink = sonde_sink_buffer(&text);
    struct sonde_error  err = { 0 };
    enum sonde_status   status;
    Py_BEGIN_ALLOW_THREADS
    status = sonde_report(trace, &options, &sink, &err);
    Py_END_ALLOW_THREADS
    core_let_go(self);

    PyObject *result = NULL;
    if (status != SONDE_OK)
        core_set_error(&err);
    else /* names are bytes; JSON and tables are UTF-8 already, anything else must not raise */
        result = PyUnicode_DecodeUTF8(text.length ? text.bytes : "", (Py_ssize_t)text.length,
                                      "replace");
    sonde_buffer_release(&text);
    return result;
}

/* ------------------------------------------------------------------- exports */

struct export_call {
    struct sonde_trace         *trace;
    const char                 *format;
    struct sonde_export_options options;
};

static enum sonde_status write_export(const struct sonde_sink *sink, bool gzip, void *user,
                                      struct sonde_error *err)
{
    struct export_call *asked = user;

    asked->options.gzip = gzip;
    return sonde_export(asked->trace, asked->format, &asked->options, sink, err);
}

/* A format that is a folder: libsonde makes it by itself. */
static PyObject *export_folder(const char *path, const struct export_call *asked)
{
    struct sonde_error err = { 0 };
    enum sonde_status  status;

    Py_BEGIN_ALLOW_THREADS
    status = sonde_export_folder(asked->trace, asked->format, &asked->options, path, &err);
    Py_END_ALLOW_THREADS
    if (status == SONDE_OK)
        Py_RETURN_NONE;
    core_set_error(&err);
    return NULL;
}

/* A str as UTF-8, which `kept` holds; NULL: it is no str, or an exception is set. */
static const char *keep_text(PyObject *text, PyObject *kept)
{
    PyObject *utf8 = PyUnicode_Check(text)
                         ? PyUnicode_AsEncodedString(text, "utf-8", "surrogatepass")
                         : NULL;
    bool      good = utf8 && PyList_Append(kept, utf8) == 0;

    Py_XDECREF(utf8);
    return good ? PyBytes_AsString(utf8) : NULL;
}

/* {name: JSON text} as names and texts in turn, then NULL. `kept` holds what they borrow from. */
static const char **list_metadata(PyObject *metadata, PyObject *kept)
{
    Py_ssize_t   at = 0, count = PyDict_Size(metadata);
    const char **list = calloc(2 * (size_t)(count > 0 ? count : 0) + 1, sizeof *list);
    PyObject    *pair[2];

    if (!list) {
        PyErr_NoMemory();
        return NULL;
    }
    for (size_t n = 0; PyDict_Next(metadata, &at, &pair[0], &pair[1]);) {
        for (int k = 0; k < 2; k++) {
            const char *text = keep_text(pair[k], kept);
            if (!text) {
                if (!PyErr_Occurred())
                    PyErr_SetString(PyExc_TypeError, "metadata is a dict of str to JSON text");
                free(list);
                return NULL;
            }
            list[n++] = text;
        }
    }
    return list;
}

/* ("cpu_op", ..) as texts, then NULL. `kept` holds what they borrow from. */
static const char **list_texts(PyObject *tuple, PyObject *kept)
{
    Py_ssize_t   count = PyTuple_Size(tuple);
    const char **list = calloc((size_t)count + 1, sizeof *list);

    if (!list)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; list && i < count; i++) {
        list[i] = keep_text(PyTuple_GetItem(tuple, i), kept);
        if (list[i])
            continue;
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "left_out is a tuple of str");
        free(list);
        return NULL;
    }
    return list;
}

static PyObject *trace_export(struct trace_object *self, PyObject *args, PyObject *kwargs)
{
    static char       *names[] = { "path", "to", "metadata", "name", "source", "left_out", NULL };
    struct export_call asked = { NULL, "chrome", SONDE_EXPORT_OPTIONS_INIT };
    PyObject          *path = NULL, *metadata = NULL, *left_out = NULL, *result = NULL;
    const char       **list = NULL, **hidden = NULL;
    int                source = 1;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|s$OzpO!:export", names,
                                     PyUnicode_FSConverter, &path, &asked.format, &metadata,
                                     &asked.options.name, &source, &PyTuple_Type, &left_out))
        return NULL;
    asked.options.no_source = !source;
    PyObject *kept = PyList_New(0);
    if (!kept)
        goto done;
    if (metadata && metadata != Py_None) {
        if (!PyDict_Check(metadata)) {
            PyErr_SetString(PyExc_TypeError, "metadata is a dict of str to JSON text");
            goto done;
        }
        list = list_metadata(metadata, kept);
        if (!list)
            goto done;
        asked.options.metadata = list;
    }
    if (left_out && !(hidden = list_texts(left_out, kept)))
        goto done;
    asked.options.left_out = hidden;
    if (!asked.options.name)
        asked.options.name = PyBytes_AsString(path);
    asked.trace = core_take(self);
    if (asked.trace) {
        result = sonde_exporter_is_folder(asked.format)
                     ? export_folder(PyBytes_AsString(path), &asked)
                     : core_write_file(path, write_export, &asked);
        core_let_go(self);
    }
done:
    free(list);
    free(hidden);
    Py_XDECREF(kept);
    Py_DECREF(path);
    return result;
}

/* --------------------------------------------------------- ledger and metadata */

static PyObject *trace_ledger(struct trace_object *self, PyObject *unused)
{
    struct sonde_trace   *trace = core_take(self);
    struct sonde_summary *summary;
    struct sonde_error    err = { 0 };
    enum sonde_status     status;

    (void)unused;
    if (!trace)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    status = sonde_summary_new(trace, &summary, &err);
    Py_END_ALLOW_THREADS
    core_let_go(self);
    if (status != SONDE_OK) {
        core_set_error(&err);
        return NULL;
    }
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < sonde_summary_ledger_count(summary); i++) {
        const struct sonde_ledger_item *item = sonde_summary_ledger(summary, i);
        PyObject *text = core_text((struct sonde_text){ item->text, strlen(item->text) });
        PyObject *row =
            text ? Py_BuildValue("(sKN)", item->key, (unsigned long long)item->count, text) : NULL;
        if (!row || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    sonde_summary_free(summary);
    return list;
}

static PyObject *trace_metadata(struct trace_object *self, PyObject *args, PyObject *kwargs)
{
    static char      *names[] = { "process", NULL };
    unsigned int      process = 0;
    struct sonde_text key, value;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|I:metadata", names, &process))
        return NULL;
    struct sonde_trace *trace = core_take(self);
    if (!trace)
        return NULL;
    PyObject *dict = PyDict_New();
    for (uint32_t n = 0; dict && sonde_trace_metadata(trace, process, n, &key, &value); n++) {
        PyObject *name = core_text(key), *text = core_text(value);
        if (!name || !text || PyDict_SetItem(dict, name, text) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(name);
        Py_XDECREF(text);
    }
    core_let_go(self);
    return dict;
}

/* -------------------------------------------------------------------- the type */

static PyMethodDef trace_methods[] = {
    { "report", METHOD(trace_report), METH_VARARGS | METH_KEYWORDS,
      "report(view='ops', sort=None, rows=100, group_by='', format='text', flops='full', *, "
      "part='main', time_unit='auto', skip_zero=False, show_all=False, peak=False, gil=False) -> "
      "str" },
    { "averages", METHOD(core_trace_averages), METH_VARARGS | METH_KEYWORDS,
      "averages(group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False, *, "
      "group_by='', flops='full', top_level=False) -> Averages" },
    { "events", METHOD(core_trace_events), METH_VARARGS | METH_KEYWORDS,
      "events(*, flops='full') -> Events" },
    { "memory_timeline", METHOD(core_trace_timeline), METH_VARARGS | METH_KEYWORDS,
      "memory_timeline(device='cpu') -> Timeline" },
    { "export_stacks", METHOD(core_trace_stacks), METH_VARARGS | METH_KEYWORDS,
      "export_stacks(path, metric='self_cpu_time_total')" },
    { "export", METHOD(trace_export), METH_VARARGS | METH_KEYWORDS,
      "export(path, to='chrome', *, metadata=None, name=None, source=True, left_out=()): writes a "
      "file for another program; "
      ".gz compresses it" },
    { "table", METHOD(core_trace_table), METH_VARARGS,
      "table(name) -> Table: one of the tables of docs/SCHEMA.md, for whatever takes Arrow" },
    { "arrow", METHOD(core_trace_arrow), METH_VARARGS | METH_KEYWORDS,
      "arrow(table, columns=None) -> TableStream: the same in batches, as they are read; of the "
      "columns with these names alone" },
    { "table_names", METHOD(core_trace_table_names), METH_NOARGS, "table_names() -> list of str" },
    { "job", METHOD(core_trace_job), METH_NOARGS, "job() -> str: the id of the recording" },
    { "ledger", METHOD(trace_ledger), METH_NOARGS, "ledger() -> [(key, count, sentence)]" },
    { "metadata", METHOD(trace_metadata), METH_VARARGS | METH_KEYWORDS,
      "metadata(process=0) -> dict" },
    { "close", METHOD(trace_close), METH_NOARGS, "close(): closes the files" },
    { "__enter__", METHOD(trace_enter), METH_NOARGS, NULL },
    { "__exit__", METHOD(trace_exit), METH_VARARGS, NULL },
    { NULL, NULL, 0, NULL },
};

static PyType_Slot trace_slots[] = {
    { Py_tp_doc, "Trace(path): a recorded trace, a file or a folder" },
    { Py_tp_new, (void *)trace_new },
    { Py_tp_dealloc, (void *)trace_dealloc },
    { Py_tp_methods, trace_methods },
    { 0, NULL },
};

static PyType_Spec trace_spec = {
    .name = "sonde.Trace",
    .basicsize = sizeof(struct trace_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = trace_slots,
};

int core_trace_init(PyObject *module)
{
    PyObject *type = PyType_FromSpec(&trace_spec);
    int       result = type ? PyObject_SetAttrString(module, "Trace", type) : -1;

    Py_XDECREF(type);
    return result;
}
