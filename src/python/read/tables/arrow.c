/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python/read/tables/arrow.c - tables without a copy, by Arrow's C data interface.
 *
 * Whoever takes a table keeps the object that owns its memory. Arrow's consumers may release it in
 * any thread, so each release takes the interpreter lock.
 */
#include "python/read/tables/arrow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void drop(PyObject *object)
{
    if (!object || !Py_IsInitialized())
        return;
    PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF(object);
    PyGILState_Release(state);
}

/* ------------------------------------------------------------------ schema */

static void release_schema(struct ArrowSchema *schema)
{
    for (int64_t i = 0; i < schema->n_children; i++) {
        struct ArrowSchema *child = schema->children[i];
        if (child && child->release)
            child->release(child);
        free(child);
    }
    if (schema->dictionary && schema->dictionary->release)
        schema->dictionary->release(schema->dictionary);
    free(schema->dictionary);
    free(schema->children);
    schema->release = NULL;
}

static const char *arrow_format(char format)
{
    switch (format) {
    case 'q':
        return "l";
    case 'Q':
        return "L";
    case 'i':
        return "i";
    case 'I':
        return "I";
    case 'B':
        return "C";
    default:
        return "g";
    }
}

/* Names are static: nothing of a schema borrows from the table. */
static bool fill_child_schema(struct ArrowSchema *schema, const struct core_column *column)
{
    *schema = (struct ArrowSchema){ .format = column->kind == CORE_TEXT
                                                  ? "U"
                                                  : arrow_format(column->format),
                                    .name = column->name,
                                    .flags = column->nullable ? 2 : 0, /* ARROW_FLAG_NULLABLE */
                                    .release = release_schema };
    if (column->kind != CORE_DICTIONARY)
        return true;
    schema->dictionary = calloc(1, sizeof *schema->dictionary);
    if (!schema->dictionary)
        return false;
    *schema->dictionary =
        (struct ArrowSchema){ .format = "U", .name = "", .release = release_schema };
    return true;
}

static bool fill_schema(struct ArrowSchema *schema, const struct core_table *table)
{
    *schema = (struct ArrowSchema){ .format = "+s", .name = "", .release = release_schema };
    schema->children = calloc(table->column_count, sizeof *schema->children);
    if (!schema->children)
        return false;
    for (size_t i = 0; i < table->column_count; i++) {
        schema->children[i] = calloc(1, sizeof **schema->children);
        schema->n_children++;
        if (!schema->children[i] || !fill_child_schema(schema->children[i], &table->columns[i]))
            return false;
    }
    return true;
}

int core_arrow_schema(struct ArrowSchema *schema, const struct core_table *table)
{
    if (fill_schema(schema, table))
        return 0;
    if (schema->release)
        schema->release(schema);
    return ENOMEM;
}

/* ------------------------------------------------------------------ arrays */

/* What an array keeps: its owner in Python, buffers of its own. */
struct kept {
    PyObject   *owner;
    const void *buffers[3];
    void       *offsets, *bytes; /* of a dictionary, owned */
};

void core_arrow_release_parts(struct ArrowArray *array)
{
    for (int64_t i = 0; i < array->n_children; i++) {
        struct ArrowArray *child = array->children[i];
        if (child && child->release)
            child->release(child);
        free(child);
    }
    if (array->dictionary && array->dictionary->release)
        array->dictionary->release(array->dictionary);
    free(array->dictionary);
    free(array->children);
    array->release = NULL;
}

static void release_array(struct ArrowArray *array)
{
    struct kept *kept = array->private_data;

    core_arrow_release_parts(array);
    if (kept) {
        drop(kept->owner);
        free(kept->offsets);
        free(kept->bytes);
        free(kept);
    }
}

static bool start_array(struct ArrowArray *array, size_t length, int64_t buffers)
{
    struct kept *kept = calloc(1, sizeof *kept);

    *array = (struct ArrowArray){ .length = (int64_t)length,
                                  .n_buffers = buffers,
                                  .release = release_array,
                                  .private_data = kept };
    if (kept)
        array->buffers = kept->buffers;
    return kept != NULL;
}

/* `count` texts one after another, with 64-bit offsets. */
static bool fill_texts(struct ArrowArray *array, PyObject *texts, Py_ssize_t first,
                       Py_ssize_t count)
{
    if (!start_array(array, (size_t)count, 3))
        return false;
    struct kept *kept = array->private_data;
    int64_t     *offsets = malloc(((size_t)count + 1) * sizeof *offsets);
    char        *bytes = NULL;
    size_t       used = 0, room = 0;
    kept->offsets = offsets;
    if (!offsets)
        return false;
    offsets[0] = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *utf8 = PyUnicode_AsEncodedString(PyList_GetItem(texts, first + i), "utf-8",
                                                   "replace");
        if (!utf8) {
            PyErr_Clear();
            return false;
        }
        size_t length = (size_t)PyBytes_Size(utf8);
        if (used + length > room) {
            room = (used + length) * 2 + 64;
            char *more = realloc(bytes, room);
            if (!more) {
                Py_DECREF(utf8);
                return false;
            }
            bytes = kept->bytes = more;
        }
        if (length > 0)
            memcpy(bytes + used, PyBytes_AsString(utf8), length);
        Py_DECREF(utf8);
        used += length;
        offsets[i + 1] = (int64_t)used;
    }
    if (!bytes)
        bytes = kept->bytes = malloc(1);
    kept->buffers[1] = offsets;
    kept->buffers[2] = bytes;
    return bytes != NULL;
}

static bool fill_child_array(struct ArrowArray *array, const struct core_table *table,
                             const struct core_column *column, PyObject *owner)
{
    if (column->kind == CORE_TEXT) {
        Py_ssize_t first = table->count > 0 ? (Py_ssize_t) * (const uint32_t *)column->data : 0;
        return fill_texts(array, table->texts, first, (Py_ssize_t)table->count);
    }
    if (!start_array(array, table->count, 2))
        return false;
    struct kept *kept = array->private_data;
    Py_INCREF(owner);
    kept->owner = owner;
    kept->buffers[0] = column->valid;
    kept->buffers[1] = column->data;
    array->null_count = (int64_t)column->null_count;
    if (column->kind != CORE_DICTIONARY)
        return true;
    array->dictionary = calloc(1, sizeof *array->dictionary);
    return array->dictionary &&
           fill_texts(array->dictionary, table->texts, 0, PyList_Size(table->texts));
}

static bool fill_array(struct ArrowArray *array, const struct core_table *table, PyObject *owner)
{
    if (!start_array(array, table->count, 1))
        return false;
    array->children = calloc(table->column_count, sizeof *array->children);
    if (!array->children)
        return false;
    for (size_t i = 0; i < table->column_count; i++) {
        array->children[i] = calloc(1, sizeof **array->children);
        array->n_children++;
        if (!array->children[i] ||
            !fill_child_array(array->children[i], table, &table->columns[i], owner))
            return false;
    }
    return true;
}

/* ----------------------------------------------------------------- capsules */

static void end_schema(PyObject *capsule)
{
    struct ArrowSchema *schema = PyCapsule_GetPointer(capsule, "arrow_schema");

    if (schema && schema->release)
        schema->release(schema);
    free(schema);
}

static void end_array(PyObject *capsule)
{
    struct ArrowArray *array = PyCapsule_GetPointer(capsule, "arrow_array");

    if (array && array->release)
        array->release(array);
    free(array);
}

static void end_stream(PyObject *capsule)
{
    struct ArrowArrayStream *stream = PyCapsule_GetPointer(capsule, "arrow_array_stream");

    if (stream && stream->release)
        stream->release(stream);
    free(stream);
}

PyObject *core_arrow_capsule(struct ArrowArrayStream *stream)
{
    PyObject *capsule = PyCapsule_New(stream, "arrow_array_stream", end_stream);

    if (!capsule) {
        stream->release(stream);
        free(stream);
    }
    return capsule;
}

PyObject *core_table_schema(const struct core_table *table)
{
    struct ArrowSchema *schema = calloc(1, sizeof *schema);

    if (!schema || core_arrow_schema(schema, table) != 0) {
        free(schema);
        return PyErr_NoMemory();
    }
    PyObject *capsule = PyCapsule_New(schema, "arrow_schema", end_schema);
    if (!capsule) {
        schema->release(schema);
        free(schema);
    }
    return capsule;
}

PyObject *core_table_array(const struct core_table *table, PyObject *owner)
{
    PyObject *schema = core_table_schema(table);
    if (!schema)
        return NULL;
    struct ArrowArray *array = calloc(1, sizeof *array);
    PyObject          *capsule = NULL, *pair = NULL;
    if (array && fill_array(array, table, owner))
        capsule = PyCapsule_New(array, "arrow_array", end_array);
    else
        PyErr_NoMemory();
    if (capsule) {
        pair = PyTuple_Pack(2, schema, capsule);
        Py_DECREF(capsule);
    } else {
        if (array && array->release)
            array->release(array);
        free(array);
    }
    Py_DECREF(schema);
    return pair;
}

/* One batch: the whole table. */
struct stream {
    struct core_table table;
    PyObject         *owner;
    bool              given;
};

static int stream_schema(struct ArrowArrayStream *self, struct ArrowSchema *schema)
{
    struct stream *stream = self->private_data;

    return core_arrow_schema(schema, &stream->table);
}

static int stream_next(struct ArrowArrayStream *self, struct ArrowArray *array)
{
    struct stream *stream = self->private_data;

    *array = (struct ArrowArray){ 0 };
    if (stream->given)
        return 0;
    stream->given = true;
    PyGILState_STATE state = PyGILState_Ensure();
    bool             good = fill_array(array, &stream->table, stream->owner);
    if (!good && array->release)
        array->release(array);
    PyGILState_Release(state);
    return good ? 0 : ENOMEM;
}

static const char *stream_error(struct ArrowArrayStream *self)
{
    (void)self;
    return "out of memory";
}

static void stream_release(struct ArrowArrayStream *self)
{
    struct stream *stream = self->private_data;

    drop(stream->owner);
    free(stream);
    self->release = NULL;
}

PyObject *core_table_stream(const struct core_table *table, PyObject *owner)
{
    struct ArrowArrayStream *self = calloc(1, sizeof *self);
    struct stream           *stream = calloc(1, sizeof *stream);

    if (!self || !stream) {
        free(self);
        free(stream);
        return PyErr_NoMemory();
    }
    Py_INCREF(owner);
    *stream = (struct stream){ *table, owner, false };
    *self = (struct ArrowArrayStream){ stream_schema, stream_next, stream_error, stream_release,
                                       stream };
    return core_arrow_capsule(self);
}
