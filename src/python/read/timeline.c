/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python/read/timeline.c - Timeline: what a device holds over time.
 */
#include "python/read/rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/count_of.h"
#include "base/text/compare.h"

static PyTypeObject *timeline_type;

struct timeline_object {
    PyObject_HEAD
    struct trace_object   *trace;
    struct sonde_timeline *timeline;
    struct core_table      table;
};

static Py_ssize_t timeline_length(struct timeline_object *self)
{
    return (Py_ssize_t)sonde_timeline_columns(self->timeline)->count;
}

static void timeline_dealloc(struct timeline_object *self)
{
    sonde_timeline_free(self->timeline);
    core_unuse(self->trace);
    core_free_object(self);
}

static PyObject *timeline_column(struct timeline_object *self, PyObject *args)
{
    const char *name;

    return PyArg_ParseTuple(args, "s:column", &name)
               ? core_table_column(&self->table, (PyObject *)self, name)
               : NULL;
}

struct timeline_call {
    struct timeline_object    *self;
    enum sonde_timeline_format format;
};

static enum sonde_status write_timeline(const struct sonde_sink *sink, bool gzip, void *user,
                                        struct sonde_error *err)
{
    const struct timeline_call *asked = user;

    return sonde_timeline_write(asked->self->trace->trace, asked->self->timeline, asked->format,
                                gzip, sink, err);
}

static PyObject *timeline_export(struct timeline_object *self, PyObject *args)
{
    PyObject *path = NULL;

    if (!PyArg_ParseTuple(args, "O&:export", PyUnicode_FSConverter, &path))
        return NULL;
    const char          *bytes = PyBytes_AsString(path);
    struct timeline_call asked = { self, SONDE_TIMELINE_JSON };
    if (snd_ends_with(bytes, ".html"))
        asked.format = SONDE_TIMELINE_HTML;
    else if (snd_ends_with(bytes, "raw.json.gz") || snd_ends_with(bytes, "raw.json"))
        asked.format = SONDE_TIMELINE_RAW;
    PyObject *result = core_write_file(path, write_timeline, &asked);
    Py_DECREF(path);
    return result;
}

static PyObject *timeline_categories(struct timeline_object *self, void *unused)
{
    (void)self, (void)unused;
    return Py_BuildValue("[ssssssss]", "UNKNOWN", "PARAMETER", "OPTIMIZER_STATE", "INPUT",
                         "TEMPORARY", "ACTIVATION", "GRADIENT", "AUTOGRAD_DETAIL");
}

static PyGetSetDef timeline_getset[] = {
    { "categories", (getter)timeline_categories, NULL, NULL, NULL },
    END_GETSET,
};
static PyMethodDef timeline_methods[] = {
    { "column", METHOD(timeline_column), METH_VARARGS,
      "column(name) -> Column: time_ns, bytes, category, address" },
    { "export", METHOD(timeline_export), METH_VARARGS,
      "export(path): .html, .json, .json.gz or .raw.json.gz, as torch's export_memory_timeline" },
    { NULL, NULL, 0, NULL },
};
static PyType_Slot timeline_slots[] = {
    { Py_tp_doc, "Every change of what a device holds, in order of time." },
    { Py_tp_new, (void *)core_no_new },
    { Py_tp_dealloc, (void *)timeline_dealloc },
    { Py_tp_methods, timeline_methods },
    { Py_tp_getset, timeline_getset },
    { Py_sq_length, (void *)timeline_length },
    { 0, NULL },
};
static PyType_Spec timeline_spec = { .name = "sonde.Timeline",
                                     .basicsize = sizeof(struct timeline_object),
                                     .flags = Py_TPFLAGS_DEFAULT,
                                     .slots = timeline_slots };

struct device {
    uint32_t type, index;
};

/* "cpu", "cuda", "cuda:1"; types are torch's numbers. */
static int parse_device(const char *text, struct device *out)
{
    static const struct {
        const char *name;
        uint32_t    type;
    } devices[] = { { "cpu", 0 }, { "cuda", 1 }, { "hip", 6 }, { "xpu", 12 }, { "mps", 13 } };
    size_t length = strcspn(text, ":");

    for (size_t i = 0; i < SND_COUNT_OF(devices); i++) {
        if (strlen(devices[i].name) != length || strncmp(devices[i].name, text, length) != 0)
            continue;
        out->type = devices[i].type;
        out->index = text[length] == ':' && out->type != 0
                         ? (uint32_t)strtoul(text + length + 1, NULL, 10)
                         : SONDE_NONE;
        return 0;
    }
    PyErr_Format(core_error, "unknown device '%s'; devices: cpu, cuda, cuda:N, xpu, xpu:N", text);
    return -1;
}

static_assert(offsetof(struct timeline_object, trace) == offsetof(struct core_made, trace),
              "core_make_from() relies on this layout");

static enum sonde_status compute_timeline(struct sonde_trace *trace, struct core_made *made,
                                          const void *options, struct sonde_error *err)
{
    const struct device *wanted = options;

    return sonde_timeline_new(trace, wanted->type, wanted->index,
                              &((struct timeline_object *)made)->timeline, err);
}

PyObject *core_trace_timeline(struct trace_object *self, PyObject *args, PyObject *kwargs)
{
    static char  *names[] = { "device", NULL };
    const char   *device = "cpu";
    struct device wanted;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|s:memory_timeline", names, &device) ||
        parse_device(device, &wanted) < 0)
        return NULL;
    struct timeline_object *made =
        (struct timeline_object *)core_make_from(self, timeline_type, compute_timeline, &wanted);
    if (!made)
        return NULL;
    const struct sonde_timeline_columns *c = sonde_timeline_columns(made->timeline);
    made->table = (struct core_table){
        .count = c->count,
        .column_count = 4,
        .columns = { { .name = "time_ns", .format = 'q', .data = c->time_ns },
                     { .name = "bytes", .format = 'q', .data = c->bytes },
                     { .name = "category", .format = 'B', .data = c->category },
                     { .name = "address", .format = 'Q', .data = c->address } }
    };
    return (PyObject *)made;
}

int core_timeline_init(PyObject *module)
{
    return core_add_type(module, "Timeline", &timeline_spec, &timeline_type);
}
