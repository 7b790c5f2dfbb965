/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde._core - the reading side for Python: a Trace that reports and exports itself.
 *
 * Thin on purpose: every number and every line of text is libsonde's. Built against the
 * limited API of CPython 3.9, so that one binary serves 3.9 and later.
 *
 * Threads: the interpreter lock is let go while libsonde works. A trace is for one thread at
 *          a time, so a second one that comes meanwhile gets an error, not a race.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sonde/sonde.h>

struct trace_object {
    PyObject_HEAD
    struct sonde_trace *trace; /* owned; NULL once closed */
    int                 busy;  /* a call is at work without the interpreter lock */
};

/* Owned by the module; a process has one interpreter that imports this (m_size -1). */
static PyObject *error_class;

/* ------------------------------------------------------------------- errors */

static void set_error(const struct sonde_error *err)
{
    PyObject *exception = PyObject_CallFunction(error_class, "s", err->message);

    if (!exception)
        return;
    PyObject *status = PyLong_FromLong(err->status);
    PyObject *os_error = PyLong_FromLong(err->os_error);
    if (status && os_error && PyObject_SetAttrString(exception, "status", status) == 0 &&
        PyObject_SetAttrString(exception, "os_error", os_error) == 0)
        PyErr_SetObject(error_class, exception);
    Py_XDECREF(status);
    Py_XDECREF(os_error);
    Py_DECREF(exception);
}

/* The trace, reserved for the caller until let_go(); NULL with an exception set. */
static struct sonde_trace *take(struct trace_object *self)
{
    if (!self->trace) {
        PyErr_SetString(error_class, "the trace is closed");
        return NULL;
    }
    if (self->busy) {
        PyErr_SetString(error_class,
                        "the trace is in use by another thread; open it a second time");
        return NULL;
    }
    self->busy = 1;
    return self->trace;
}

static void let_go(struct trace_object *self)
{
    self->busy = 0;
}

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
    Py_END_ALLOW_THREADS
    Py_DECREF(path);
    if (status != SONDE_OK) {
        set_error(&err);
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
    release(self);
    Py_DECREF(type);
}

static PyObject *trace_close(struct trace_object *self, PyObject *unused)
{
    (void)unused;
    if (self->trace) {
        struct sonde_trace *trace = take(self);
        if (!trace)
            return NULL;
        self->trace = NULL;
        let_go(self);
        sonde_trace_close(trace);
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

static const struct {
    const char *name;
    int         value;
} formats[] = { { "text", SONDE_REPORT_TEXT },
                { "json", SONDE_REPORT_JSON },
                { "csv", SONDE_REPORT_CSV } },
  groups[] = { { "shape", SONDE_GROUP_SHAPE },
               { "stack", SONDE_GROUP_STACK },
               { "thread", SONDE_GROUP_THREAD },
               { "process", SONDE_GROUP_PROCESS },
               { "module", SONDE_GROUP_MODULE } };

static int find_format(const char *name, enum sonde_report_format *out)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        if (strcmp(name, formats[i].name) == 0) {
            *out = (enum sonde_report_format)formats[i].value;
            return 0;
        }
    }
    PyErr_Format(error_class, "no format '%s'; there are: text, json, csv", name);
    return -1;
}

/* "shape,thread" as the command line takes it. */
static int find_groups(const char *list, unsigned *out)
{
    while (*list) {
        size_t length = strcspn(list, ",");
        size_t i = 0, count = sizeof groups / sizeof groups[0];
        while (i < count &&
               !(strlen(groups[i].name) == length && strncmp(groups[i].name, list, length) == 0))
            i++;
        if (i == count) {
            PyErr_Format(error_class,
                         "cannot group by '%s'; there are: shape, stack, thread, process, module",
                         list);
            return -1;
        }
        *out |= (unsigned)groups[i].value;
        list += length + (list[length] == ',');
    }
    return 0;
}

static PyObject *trace_report(struct trace_object *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "view", "sort", "rows", "group_by", "format", NULL };
    const char  *group_by = "", *format = "text";
    long long    rows = 100;

    struct sonde_report_options options = SONDE_REPORT_OPTIONS_INIT;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|zzLss:report", names, &options.view,
                                     &options.sort, &rows, &group_by, &format) ||
        find_format(format, &options.format) < 0 || find_groups(group_by, &options.groups) < 0)
        return NULL;
    options.rows = rows;
    struct sonde_trace *trace = take(self);
    if (!trace)
        return NULL;

    struct sonde_buffer text = { 0 };
    struct sonde_sink   sink = sonde_sink_buffer(&text);
    struct sonde_error  err = { 0 };
    enum sonde_status   status;
    Py_BEGIN_ALLOW_THREADS
    status = sonde_report(trace, &options, &sink, &err);
    Py_END_ALLOW_THREADS
    let_go(self);

    PyObject *result = NULL;
    if (status != SONDE_OK)
        set_error(&err);
    else /* names are bytes; JSON and tables are UTF-8 already, anything else must not raise */
        result = PyUnicode_DecodeUTF8(text.length ? text.bytes : "", (Py_ssize_t)text.length,
                                      "replace");
    sonde_buffer_release(&text);
    return result;
}

/* ------------------------------------------------------------------- exports */

static int ends_with(const char *text, const char *ending)
{
    size_t length = strlen(text), tail = strlen(ending);

    return length >= tail && strcmp(text + length - tail, ending) == 0;
}

/* A file that could not be written whole is removed: half an export looks like a whole one. */
static enum sonde_status export_to(struct sonde_trace *trace, const char *path, const char *format,
                                   struct sonde_error *err)
{
    struct sonde_export_options options = SONDE_EXPORT_OPTIONS_INIT;
    int                         fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    if (fd < 0)
        goto fail_open;
    options.gzip = ends_with(path, ".gz");
    struct sonde_sink sink = sonde_sink_fd(fd);
    enum sonde_status status = sonde_export(trace, format, &options, &sink, err);
    if (status != SONDE_OK) {
        close(fd);
        unlink(path);
        return status;
    }
    if (close(fd) == 0)
        return SONDE_OK;
fail_open:
    err->status = SONDE_E_IO;
    err->os_error = errno;
    snprintf(err->message, sizeof err->message, "cannot write %.300s: %s", path, strerror(errno));
    return SONDE_E_IO;
}

static PyObject *trace_export(struct trace_object *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "path", "to", NULL };
    PyObject    *path = NULL;
    const char  *format = "chrome";

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|s:export", names, PyUnicode_FSConverter,
                                     &path, &format))
        return NULL;
    struct sonde_trace *trace = take(self);
    if (!trace) {
        Py_DECREF(path);
        return NULL;
    }
    struct sonde_error err = { 0 };
    enum sonde_status  status;
    const char        *bytes = PyBytes_AsString(path);
    Py_BEGIN_ALLOW_THREADS
    status = export_to(trace, bytes, format, &err);
    Py_END_ALLOW_THREADS
    let_go(self);
    Py_DECREF(path);
    if (status != SONDE_OK) {
        set_error(&err);
        return NULL;
    }
    Py_RETURN_NONE;
}

/* ------------------------------------------------------------------ the module */

#define METHOD(f) ((PyCFunction)(void (*)(void))(f))

static PyMethodDef trace_methods[] = {
    { "report", METHOD(trace_report), METH_VARARGS | METH_KEYWORDS,
      "report(view='ops', sort=None, rows=100, group_by='', format='text') -> str\n\n"
      "sort=None keeps the order of the trace; rows=-1 gives all of them." },
    { "export", METHOD(trace_export), METH_VARARGS | METH_KEYWORDS,
      "export(path, to='chrome'): writes a file for another program; .gz compresses it" },
    { "close", METHOD(trace_close), METH_NOARGS, "close(): lets the files go" },
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

static struct PyModuleDef core_module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "sonde._core",
    .m_doc = "The reading side of sonde: see the package.",
    .m_size = -1,
};

/* Adds `object` under `name` and lets the caller's reference go; false with an exception set. */
static int add_object(PyObject *module, const char *name, PyObject *object)
{
    int result = object ? PyObject_SetAttrString(module, name, object) : -1;

    Py_XDECREF(object);
    return result == 0;
}

PyMODINIT_FUNC PyInit__core(void);
PyMODINIT_FUNC PyInit__core(void)
{
    PyObject *module = PyModule_Create(&core_module);

    if (!module)
        return NULL;
    error_class = PyErr_NewExceptionWithDoc(
        "sonde.Error", "A trace could not be read or written; `status` and `os_error` say more.",
        NULL, NULL);
    Py_XINCREF(error_class);
    if (add_object(module, "Error", error_class) &&
        add_object(module, "Trace", PyType_FromSpec(&trace_spec)) &&
        add_object(module, "__version__", PyUnicode_FromString(sonde_version())))
        return module;
    Py_DECREF(module);
    return NULL;
}
