/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python/read/rows.c - what the lists of rows have in common.
 */
#include "python/read/rows.h"

#include <string.h>

#include "base/text/buf.h"

PyObject *core_new_object(PyTypeObject *type)
{
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);

    return allocate(type, 0);
}

/* Rows and lists come from a trace. */
PyObject *core_no_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)type, (void)args, (void)kwargs;
    PyErr_SetString(PyExc_TypeError, "only a Trace makes these");
    return NULL;
}

void core_free_object(void *self)
{
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    freefunc      release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    release(self);
    Py_DECREF(type);
}

void core_row_dealloc(struct core_row *self)
{
    Py_XDECREF(self->owner);
    Py_XDECREF(self->dict);
    core_free_object(self);
}

PyObject *core_row_get(PyObject *object, PyObject *name)
{
    struct core_row *self = (struct core_row *)object;
    PyObject        *set = self->dict ? PyDict_GetItemWithError(self->dict, name) : NULL;

    if (!set)
        return PyErr_Occurred() ? NULL : PyObject_GenericGetAttr(object, name);
    Py_INCREF(set);
    return set;
}

int core_row_set(PyObject *object, PyObject *name, PyObject *value)
{
    struct core_row *self = (struct core_row *)object;

    if (!self->dict)
        self->dict = PyDict_New();
    if (!self->dict)
        return -1;
    return value ? PyDict_SetItem(self->dict, name, value) : PyDict_DelItem(self->dict, name);
}

PyObject *core_row_setstate(PyObject *object, PyObject *state)
{
    struct core_row *self = (struct core_row *)object;

    if (state != Py_None) {
        if (!self->dict)
            self->dict = PyDict_New();
        if (!self->dict || PyDict_Update(self->dict, state) < 0)
            return NULL;
    }
    Py_RETURN_NONE;
}

/* A loaded module of torch's; borrowed, or NULL. */
static PyObject *loaded_module(const char *name)
{
    PyObject *modules = PySys_GetObject("modules"); /* borrowed */

    return modules ? PyDict_GetItemString(modules, name) : NULL;
}

PyObject *core_torch_class(PyObject *self, void *name)
{
    PyObject *util = loaded_module("torch.autograd.profiler_util");
    PyObject *class = util ? PyObject_GetAttrString(util, name) : NULL;

    if (class)
        return class;
    PyErr_Clear();
    class = (PyObject *)Py_TYPE(self);
    Py_INCREF(class);
    return class;
}

struct core_made *core_make_from(struct trace_object *self, PyTypeObject *type,
                                 core_compute_fn *compute, const void *options)
{
    struct sonde_error err = { 0 };
    enum sonde_status  status;
    struct core_made  *made = (struct core_made *)core_new_object(type);
    if (!made)
        return NULL;
    struct sonde_trace *trace = core_take(self);
    if (!trace) {
        Py_DECREF(made);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    status = compute(trace, made, options, &err);
    Py_END_ALLOW_THREADS
    core_let_go(self);
    if (status != SONDE_OK) {
        core_set_error(&err);
        Py_DECREF(made);
        return NULL;
    }
    core_use(self);
    made->trace = self;
    return made;
}

PyObject *core_whole(double value)
{
    return PyLong_FromDouble(value);
}

PyObject *core_us(int64_t ns)
{
    return PyFloat_FromDouble((double)ns / 1000.0);
}

PyObject *core_time_text(double us)
{
    char text[SND_NUMBER_MAX];

    return PyUnicode_FromString(snd_time_text(text, us, ""));
}

PyObject *core_device_type(bool on_device)
{
    PyObject *autograd = loaded_module("torch.autograd");
    PyObject *types = autograd ? PyObject_GetAttrString(autograd, "DeviceType") : NULL;
    PyObject *type = types ? PyObject_GetAttrString(types, on_device ? "CUDA" : "CPU") : NULL;

    Py_XDECREF(types);
    PyErr_Clear();
    return type ? type : PyLong_FromLong(on_device);
}

PyObject *core_use_device(bool uses_gpu)
{
    if (!uses_gpu)
        Py_RETURN_NONE;
    return PyUnicode_FromString("cuda");
}

PyObject *core_device_us(int64_t ns)
{
    return ns == 0 ? PyLong_FromLong(0) : core_us(ns);
}

PyObject *core_get_none(PyObject *self, void *unused)
{
    (void)self;
    (void)unused;
    Py_RETURN_NONE;
}

PyObject *core_get_false(PyObject *self, void *unused)
{
    (void)self;
    (void)unused;
    Py_RETURN_FALSE;
}

PyObject *core_get_number(PyObject *self, void *which)
{
    (void)self;
    return PyLong_FromLong((long)(intptr_t)which);
}

/* The warning of cuda_time has another text than the others. */
PyObject *core_get_deprecated(PyObject *self, void *closure)
{
    const char *name = closure, *at = strstr(name, "device");
    bool        is_mean = strcmp(name, "device_time") == 0;
    char        text[160];

    snprintf(text, sizeof text, "`%.*scuda%s` is deprecated%s `%s` instead.", (int)(at - name),
             name, at + strlen("device"), is_mean ? ", please use" : ". Use", name);
    return PyErr_WarnEx(PyExc_FutureWarning, text, 1) < 0 ? NULL
                                                          : PyObject_GetAttrString(self, name);
}

/* Without torch, a tuple with the same names. */
static PyObject *kernel_class(void)
{
    static PyObject *own;
    PyObject        *util = loaded_module("torch.autograd.profiler_util");
    PyObject *class = util ? PyObject_GetAttrString(util, "Kernel") : NULL;

    if (class)
        return class;
    PyErr_Clear();
    if (!own) {
        PyObject *collections = PyImport_ImportModule("collections");
        own = collections ? PyObject_CallMethod(collections, "namedtuple", "s(sss)", "Kernel",
                                                "name", "device", "duration")
                          : NULL;
        Py_XDECREF(collections);
    }
    Py_XINCREF(own);
    return own;
}

PyObject *core_kernel(PyObject *name, uint32_t device, int64_t ns)
{
    PyObject *class = name ? kernel_class() : NULL;
    PyObject *kernel =
        class ? PyObject_CallFunction(class, "OId", name, device, (double)ns / 1000.0) : NULL;

    Py_XDECREF(class);
    Py_XDECREF(name);
    return kernel;
}

PyObject *core_split_lines(const char *bytes, size_t length)
{
    PyObject   *lines = PyList_New(0);
    const char *at = bytes, *end = bytes + length;

    while (lines && at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        PyObject   *line = core_text((struct sonde_text){ at, (size_t)((stop ? stop : end) - at) });
        if (!line || PyList_Append(lines, line) < 0)
            Py_CLEAR(lines);
        Py_XDECREF(line);
        at = stop ? stop + 1 : end;
    }
    return lines;
}

PyObject *core_call(const char *module, const char *function, PyObject *argument)
{
    PyObject *found = PyImport_ImportModule(module);
    PyObject *result = found ? PyObject_CallMethod(found, function, "O", argument) : NULL;

    Py_XDECREF(found);
    return result;
}

/* Calls `make(i)` for each index of a slice. */
PyObject *core_slice(PyObject *self, PyObject *key, Py_ssize_t count,
                     PyObject *(*make)(PyObject *self, Py_ssize_t index))
{
    if (PySlice_Check(key)) {
        Py_ssize_t start, stop, step;
        if (PySlice_Unpack(key, &start, &stop, &step) < 0)
            return NULL;
        Py_ssize_t length = PySlice_AdjustIndices(count, &start, &stop, step);
        PyObject  *list = PyList_New(0);
        for (Py_ssize_t i = 0; list && i < length; i++) {
            PyObject *row = make(self, start + i * step);
            if (!row || PyList_Append(list, row) < 0)
                Py_CLEAR(list);
            Py_XDECREF(row);
        }
        return list;
    }
    Py_ssize_t index = PyNumber_AsSsize_t(key, PyExc_IndexError);
    if (index == -1 && PyErr_Occurred())
        return NULL;
    return make(self, index < 0 ? index + count : index);
}

int core_add_type(PyObject *module, const char *name, PyType_Spec *spec, PyTypeObject **type)
{
    *type = (PyTypeObject *)PyType_FromSpec(spec);
    return *type ? PyObject_SetAttrString(module, name, (PyObject *)*type) : -1;
}

/* ----------------------------------------------------------------- table options */

static int parse_width(PyObject *object, uint32_t *out)
{
    if (object == Py_None) {
        *out = 0; /* no limit */
        return 0;
    }
    unsigned long value = PyLong_AsUnsignedLong(object);
    if (PyErr_Occurred())
        return -1;
    *out = value > 1000000 ? 1000000 : (uint32_t)value;
    return 0;
}

static int parse_unit(const char *unit, enum sonde_time_unit *out)
{
    *out = !unit                     ? SONDE_TIME_AUTO
           : strcmp(unit, "us") == 0 ? SONDE_TIME_US
           : strcmp(unit, "ms") == 0 ? SONDE_TIME_MS
           : strcmp(unit, "s") == 0
               ? SONDE_TIME_S
               : SONDE_TIME_AUTO; /* as torch: an unknown one is each its own */
    return 0;
}

int core_parse_table(PyObject *args, PyObject *kwargs, struct table_options *out)
{
    static char                      *names[] = { "sort_by",
                                                  "row_limit",
                                                  "max_src_column_width",
                                                  "max_name_column_width",
                                                  "max_shapes_column_width",
                                                  "header",
                                                  "top_level_events_only",
                                                  "time_unit",
                                                  "profile_memory",
                                                  "with_flops",
                                                  NULL };
    const struct sonde_report_options defaults = SONDE_REPORT_OPTIONS_INIT;
    PyObject                         *source = NULL, *name = NULL, *shapes = NULL;
    const char                       *unit = NULL;
    long long                         rows = 100;
    int                               top = 0, memory = 0, flops = 0;

    out->report = defaults;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|zLOOOzpz$pp:table", names, &out->report.sort,
                                     &rows, &source, &name, &shapes, &out->report.header, &top,
                                     &unit, &memory, &flops) ||
        (source && parse_width(source, &out->report.max_source) < 0) ||
        (name && parse_width(name, &out->report.max_name) < 0) ||
        (shapes && parse_width(shapes, &out->report.max_shapes) < 0) ||
        parse_unit(unit, &out->report.time_unit) < 0)
        return -1;
    out->report.rows = rows;
    out->report.top_level = top;
    out->columns = (memory ? (unsigned)SONDE_TABLE_MEMORY : 0) |
                   (flops ? (unsigned)SONDE_TABLE_FLOPS : 0);
    return 0;
}

PyObject *core_finish_text(enum sonde_status status, struct sonde_buffer *text,
                           const struct sonde_error *err)
{
    PyObject *result = NULL;

    if (status != SONDE_OK)
        core_set_error(err);
    else
        result = core_text((struct sonde_text){ text->length ? text->bytes : "", text->length });
    sonde_buffer_release(text);
    return result;
}
