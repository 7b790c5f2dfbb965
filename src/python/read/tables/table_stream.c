/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python/read/tables/table_stream.c - TableStream: a table of a trace for whoever takes Arrow, in batches as they are read.
 *
 * Each stream of it walks the trace anew, in a thread of its own (sonde_table_scan_next()), and neither that thread nor
 * a reader of batches needs the interpreter lock. The trace is lent to the first stream; one that is opened meanwhile
 * opens the files again.
 */
#include "python/read/rows.h"
#include "python/read/tables/arrow.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------------------------- batches */

/* A batch and its texts one after another, which all columns of it share: any of them may live longest. */
struct shared {
    atomic_size_t       users;
    struct sonde_table *batch;
    size_t              text_count;
    int64_t            *offsets;
    char               *bytes;
};

struct piece {
    struct shared *shared;
    const void    *buffers[3];
};

static void leave(struct shared *shared)
{
    if (atomic_fetch_sub(&shared->users, 1) > 1)
        return;
    sonde_table_free(shared->batch);
    free(shared->offsets);
    free(shared->bytes);
    free(shared);
}

static void release_piece(struct ArrowArray *array)
{
    struct piece *piece = array->private_data;

    core_arrow_release_parts(array);
    if (piece) {
        leave(piece->shared);
        free(piece);
    }
}

/* Puts the texts into one piece of memory. */
static bool lay_texts(struct shared *shared)
{
    size_t count = sonde_table_text_count(shared->batch), used = 0;

    for (size_t i = 0; i < count; i++)
        used += sonde_table_text(shared->batch, i).length;
    shared->text_count = count;
    shared->offsets = malloc((count + 1) * sizeof *shared->offsets);
    shared->bytes = malloc(used + 1);
    if (!shared->offsets || !shared->bytes)
        return false;
    used = 0;
    for (size_t i = 0; i < count; i++) {
        struct sonde_text text = sonde_table_text(shared->batch, i);
        shared->offsets[i] = (int64_t)used;
        if (text.length > 0)
            memcpy(shared->bytes + used, text.bytes, text.length);
        used += text.length;
    }
    shared->offsets[count] = (int64_t)used;
    return true;
}

static bool start_piece(struct ArrowArray *array, struct shared *shared, size_t length,
                        int64_t buffers)
{
    struct piece *piece = calloc(1, sizeof *piece);

    *array = (struct ArrowArray){ .length = (int64_t)length,
                                  .n_buffers = buffers,
                                  .release = release_piece,
                                  .private_data = piece };
    if (!piece)
        return false;
    atomic_fetch_add(&shared->users, 1);
    piece->shared = shared;
    array->buffers = piece->buffers;
    return true;
}

static bool fill_column(struct ArrowArray *array, struct shared *shared,
                        const struct sonde_table_column *column)
{
    if (!start_piece(array, shared, sonde_table_row_count(shared->batch), 2))
        return false;
    array->buffers[0] = column->valid;
    array->buffers[1] = column->data;
    array->null_count = (int64_t)column->null_count;
    if (column->type != SONDE_COLUMN_TEXT)
        return true;
    array->dictionary = calloc(1, sizeof *array->dictionary);
    if (!array->dictionary || !start_piece(array->dictionary, shared, shared->text_count, 3))
        return false;
    array->dictionary->buffers[1] = shared->offsets;
    array->dictionary->buffers[2] = shared->bytes;
    return true;
}

static bool fill_columns(struct ArrowArray *array, struct shared *shared, size_t columns)
{
    if (!lay_texts(shared) || !start_piece(array, shared, sonde_table_row_count(shared->batch), 1))
        return false;
    array->children = calloc(columns + 1, sizeof *array->children);
    for (size_t i = 0; array->children && i < columns; i++) {
        array->children[i] = calloc(1, sizeof **array->children);
        array->n_children++;
        if (!array->children[i] ||
            !fill_column(array->children[i], shared, sonde_table_column(shared->batch, i)))
            return false;
    }
    return array->children != NULL;
}

/* Takes the batch. */
static bool fill_batch(struct ArrowArray *array, struct sonde_table *batch, size_t columns)
{
    struct shared *shared = calloc(1, sizeof *shared);

    if (!shared) {
        sonde_table_free(batch);
        return false;
    }
    shared->batch = batch;
    atomic_store(&shared->users, 1);
    bool good = fill_columns(array, shared, columns);
    if (!good && array->release)
        array->release(array);
    leave(shared);
    return good;
}

/* ---------------------------------------------------------------------- a stream */

struct stream {
    struct sonde_table_scan *scan;
    struct core_table        shape;  /* columns without data */
    struct trace_object     *lender; /* whose trace it has, until the last batch; or NULL */
    struct sonde_trace      *own;    /* opened for it, or NULL */
    PyObject                *maker;  /* keeps the trace's files open */
    struct sonde_error       why;
};

/* Ends the walk, and gives the trace back. */
static void end_scan(struct stream *stream)
{
    sonde_table_scan_free(stream->scan);
    stream->scan = NULL;
    sonde_trace_close(stream->own);
    stream->own = NULL;
    if (!stream->maker || !Py_IsInitialized())
        return;
    PyGILState_STATE state = PyGILState_Ensure();
    if (stream->lender)
        core_lend_back(stream->lender);
    Py_CLEAR(stream->maker);
    PyGILState_Release(state);
}

static int stream_schema(struct ArrowArrayStream *self, struct ArrowSchema *schema)
{
    struct stream *stream = self->private_data;

    return core_arrow_schema(schema, &stream->shape);
}

static int stream_next(struct ArrowArrayStream *self, struct ArrowArray *array)
{
    struct stream      *stream = self->private_data;
    struct sonde_table *batch = NULL;

    *array = (struct ArrowArray){ 0 };
    if (!stream->scan)
        return stream->why.status == SONDE_OK ? 0 : EIO;
    enum sonde_status status = sonde_table_scan_next(stream->scan, &batch, &stream->why);
    if (status == SONDE_OK && batch)
        return fill_batch(array, batch, stream->shape.column_count) ? 0 : ENOMEM;
    end_scan(stream);
    return status == SONDE_OK ? 0 : status == SONDE_E_NOMEM ? ENOMEM : EIO;
}

static const char *stream_error(struct ArrowArrayStream *self)
{
    const struct stream *stream = self->private_data;

    return stream->why.status != SONDE_OK ? stream->why.message : "out of memory";
}

static void stream_release(struct ArrowArrayStream *self)
{
    struct stream *stream = self->private_data;

    end_scan(stream);
    free(stream);
    self->release = NULL;
}

/* ------------------------------------------------------------------ TableStream */

static PyTypeObject *stream_type;

struct stream_object {
    PyObject_HEAD
    struct trace_object *trace; /* a reference, and a use */
    char                *table;
    const char         **columns; /* names, then NULL; or NULL: all. One block of memory */
    struct core_table    shape;
};

static void stream_dealloc(struct stream_object *self)
{
    core_unuse(self->trace);
    free(self->table);
    free((void *)self->columns);
    core_free_object(self);
}

/* A sequence of str, into one block of memory that the caller frees; NULL with an exception set. */
static const char **list_names(PyObject *sequence)
{
    PyObject   *kept = PySequence_List(sequence);
    Py_ssize_t  count = kept ? PyList_Size(kept) : -1;
    size_t      bytes = 0, at = 0;
    const char *text;

    if (PyUnicode_Check(sequence)) {
        PyErr_SetString(PyExc_TypeError, "columns is a list of names, not a str");
        count = -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *utf8 = PyUnicode_AsUTF8String(PyList_GetItem(kept, i));
        if (!utf8 || PyList_SetItem(kept, i, utf8) < 0) { /* which takes it */
            count = -1;
            break;
        }
        bytes += (size_t)PyBytes_Size(utf8) + 1;
    }
    const char **names = count < 0 ? NULL : malloc(((size_t)count + 1) * sizeof *names + bytes);
    if (count >= 0 && !names)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; names && i < count; i++) {
        text = PyBytes_AsString(PyList_GetItem(kept, i));
        char *copy = (char *)(names + count + 1) + at;
        memcpy(copy, text, strlen(text) + 1);
        names[i] = copy;
        at += strlen(text) + 1;
    }
    if (names)
        names[count] = NULL;
    Py_XDECREF(kept);
    return names;
}

static void shape_from(struct core_table *shape, const struct sonde_table_scan *scan)
{
    const struct sonde_table_column *column;

    for (size_t i = 0; (column = sonde_table_scan_column(scan, i)) != NULL; i++)
        shape->columns[shape->column_count++] = core_sql_column(column);
}

PyObject *core_trace_arrow(struct trace_object *trace, PyObject *args, PyObject *kwargs)
{
    static char             *names[] = { "table", "columns", NULL };
    const char              *table;
    PyObject                *columns = Py_None;
    struct sonde_table_scan *scan = NULL;
    struct sonde_error       err = { 0 };

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "s|O:arrow", names, &table, &columns))
        return NULL;
    if (trace->closed) {
        PyErr_SetString(core_error, "the trace is closed");
        return NULL;
    }
    struct stream_object *self = (struct stream_object *)core_new_object(stream_type);
    if (!self)
        return NULL;
    self->table = strdup(table);
    if (columns != Py_None && !(self->columns = list_names(columns)))
        goto failed;
    if (!self->table) {
        PyErr_NoMemory();
        goto failed;
    }
    core_use(trace);
    self->trace = trace;
    if (sonde_table_scan_new(trace->trace, table, self->columns, &scan, &err) != SONDE_OK) {
        core_set_error(&err);
        goto failed;
    }
    shape_from(&self->shape, scan);
    sonde_table_scan_free(scan);
    return (PyObject *)self;
failed:
    Py_DECREF(self);
    return NULL;
}

/* The trace itself if nobody uses it, else the same files opened again. */
static struct sonde_trace *take_trace(struct trace_object *trace, struct stream *stream)
{
    struct sonde_error err = { 0 };
    enum sonde_status  status;

    if (core_lend(trace)) {
        stream->lender = trace;
        return trace->trace;
    }
    Py_BEGIN_ALLOW_THREADS
    status = sonde_trace_open(trace->path, &stream->own, &err);
    Py_END_ALLOW_THREADS
    if (status != SONDE_OK)
        core_set_error(&err);
    return stream->own;
}

static PyObject *stream_open(struct stream_object *self, PyObject *args, PyObject *kwargs)
{
    struct ArrowArrayStream *out = calloc(1, sizeof *out);
    struct stream           *stream = calloc(1, sizeof *stream);
    struct sonde_error       err = { 0 };

    (void)args, (void)kwargs; /* a requested schema is a wish */
    if (!out || !stream) {
        free(out);
        free(stream);
        return PyErr_NoMemory();
    }
    Py_INCREF(self);
    stream->maker = (PyObject *)self;
    stream->shape = self->shape;
    *out = (struct ArrowArrayStream){ stream_schema, stream_next, stream_error, stream_release,
                                      stream };
    struct sonde_trace *trace = take_trace(self->trace, stream);
    if (trace &&
        sonde_table_scan_new(trace, self->table, self->columns, &stream->scan, &err) == SONDE_OK)
        return core_arrow_capsule(out);
    if (trace)
        core_set_error(&err);
    stream_release(out);
    free(out);
    return NULL;
}

static PyObject *stream_object_schema(struct stream_object *self, PyObject *unused)
{
    (void)unused;
    return core_table_schema(&self->shape);
}

static PyObject *stream_columns(struct stream_object *self, void *unused)
{
    (void)unused;
    return core_table_names(&self->shape);
}

static PyGetSetDef stream_getset[] = {
    { "columns", (getter)stream_columns, NULL, NULL, NULL },
    END_GETSET,
};

static PyMethodDef stream_methods[] = {
    { "__arrow_c_schema__", METHOD(stream_object_schema), METH_NOARGS, NULL },
    { "__arrow_c_stream__", METHOD(stream_open), METH_VARARGS | METH_KEYWORDS, NULL },
    { NULL, NULL, 0, NULL },
};

static PyType_Slot stream_slots[] = {
    { Py_tp_doc,
      "A table of a trace (docs/SCHEMA.md) for whatever takes Arrow: read in batches, as "
      "often as one likes." },
    { Py_tp_new, (void *)core_no_new },
    { Py_tp_dealloc, (void *)stream_dealloc },
    { Py_tp_methods, stream_methods },
    { Py_tp_getset, stream_getset },
    { 0, NULL },
};

static PyType_Spec stream_spec = {
    .name = "sonde.TableStream",
    .basicsize = sizeof(struct stream_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = stream_slots,
};

int core_tablestream_init(PyObject *module)
{
    return core_add_type(module, "TableStream", &stream_spec, &stream_type);
}
