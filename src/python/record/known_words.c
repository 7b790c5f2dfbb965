/* SPDX-License-Identifier: Apache-2.0 */
#include "python/record/known_words.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <sonde/record.h>

#include "format/facts.h"
#include "format/known.h"
#include "format/metadata.h"

/* -------------------------------------------------------------------- names */

/* A dict of names of a list to its texts, as a member of the module. */
static bool add_names(PyObject *module, const char *member, const char *const (*pairs)[2],
                      size_t count)
{
    PyObject *dict = PyDict_New();
    bool      good = dict != NULL;

    for (size_t i = 0; good && i < count; i++) {
        PyObject *text = PyUnicode_FromString(pairs[i][1]);
        good = text && PyDict_SetItemString(dict, pairs[i][0], text) == 0;
        Py_XDECREF(text);
    }
    good = good && PyModule_AddObject(module, member, dict) == 0;
    if (!good)
        Py_XDECREF(dict);
    return good;
}

bool snd_py_add_schema(PyObject *module)
{
    static const char *const metadata[][2] = {
#define SND_META(name, key, value, summary) { #name, key },
#define SND_META_EACH SND_META
#include "format/metadata.def"
#undef SND_META_EACH
#undef SND_META
    };
    static const char *const known[][2] = {
#define SND_KNOWN(name, text, follows, summary) { #name, text },
#include "format/known.def"
#undef SND_KNOWN
    };

    return add_names(module, "METADATA", metadata, SND_META_COUNT) &&
           add_names(module, "NAMES", known, SND_KNOWN_COUNT);
}

/* -------------------------------------------------------------------- facts */

static const struct {
    uint32_t    kind;
    const char *word;
} facts[] = {
#define SND_FACT(name, kind, word, text, summary) { kind, word },
#define SND_FIELD(fact, name, field, type, word, summary)
#include "format/facts.def"
#undef SND_FIELD
#undef SND_FACT
};

/* 0, with an exception: there is no such fact. */
static uint32_t find_fact(const char *word)
{
    for (size_t i = 0; i < SND_COUNT_OF(facts); i++)
        if (strcmp(facts[i].word, word) == 0)
            return facts[i].kind;
    PyErr_Format(PyExc_ValueError, "no fact is called %s", word);
    return 0;
}

static const struct snd_field_entry *find_field(uint32_t kind, PyObject *name)
{
    for (size_t i = 0; PyUnicode_Check(name) && i < SND_FACT_FIELDS; i++)
        if (snd_fact_fields[i].kind == kind &&
            PyUnicode_CompareWithASCIIString(name, snd_fact_fields[i].word) == 0)
            return &snd_fact_fields[i];
    PyErr_Format(PyExc_ValueError, "the fact has no field %R", name);
    return NULL;
}

/* The id of a text; 0 with an exception. While nothing records it is 0 without. */
static uint32_t intern_str(PyObject *text)
{
    PyObject *bytes = PyUnicode_Check(text)
                          ? PyUnicode_AsEncodedString(text, "utf-8", "surrogateescape")
                          : NULL;
    uint32_t  id;

    if (!bytes) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_TypeError, "expected a str, got %R", text);
        return 0;
    }
    id = sonde_intern(PyBytes_AsString(bytes), (size_t)PyBytes_Size(bytes));
    Py_DECREF(bytes);
    return id;
}

#define DIMS_MAX 64

/* (shape, bytes) */
static bool set_tensor(PyObject *pair, struct sonde_fact_member *member)
{
    PyObject           *shape;
    unsigned long long  bytes;
    int64_t             dims[DIMS_MAX];
    struct sonde_tensor tensor = { SONDE_ARG_TENSOR, SONDE_DTYPE_UNKNOWN, 0, dims };

    if (!PyArg_ParseTuple(pair, "OK", &shape, &bytes))
        return false;
    PyObject *list = PySequence_List(shape);
    if (!list)
        return false;
    tensor.ndim = (uint32_t)PyList_Size(list);
    if (PyList_Size(list) > DIMS_MAX)
        PyErr_Format(PyExc_ValueError, "expected a tensor of at most %d dimensions, got %u",
                     DIMS_MAX, tensor.ndim);
    for (uint32_t i = 0; i < tensor.ndim && !PyErr_Occurred(); i++)
        dims[i] = PyLong_AsLongLong(PyList_GetItem(list, (Py_ssize_t)i));
    Py_DECREF(list);
    if (PyErr_Occurred())
        return false;
    member->id = sonde_intern_shapes(&tensor, 1);
    member->value = bytes;
    return true;
}

static bool set_member(uint32_t kind, PyObject *pair, struct sonde_fact_member *member)
{
    PyObject *name, *value;
    double    real;

    if (!PyTuple_Check(pair) || !PyArg_ParseTuple(pair, "OO", &name, &value)) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_TypeError, "expected (field, value), got %R", pair);
        return false;
    }
    const struct snd_field_entry *field = find_field(kind, name);
    if (!field)
        return false;
    *member = (struct sonde_fact_member){ .field = field->field, .type = field->type };
    switch (field->type) {
    case SND_FACT_TEXT:
        member->id = intern_str(value);
        break;
    case SND_FACT_REAL:
        real = PyFloat_AsDouble(value);
        memcpy(&member->value, &real, sizeof real);
        break;
    case SND_FACT_TENSOR:
        return set_tensor(value, member);
    default:
        member->value = (uint64_t)PyLong_AsLongLong(value);
    }
    return !PyErr_Occurred();
}

PyObject *snd_py_record_fact(PyObject *module, PyObject *args)
{
    const char  *word;
    PyObject    *pairs, *subject = NULL;
    unsigned int number = 0;
    uint32_t     id = 0;

    (void)module;
    if (!PyArg_ParseTuple(args, "sO|UI:fact", &word, &pairs, &subject, &number))
        return NULL;
    uint32_t  kind = find_fact(word);
    PyObject *list = kind ? PySequence_List(pairs) : NULL;
    if (!list)
        return NULL;
    size_t                    count = (size_t)PyList_Size(list);
    struct sonde_fact_member *members = calloc(count + 1, sizeof *members);
    bool                      good = members || PyErr_NoMemory();
    for (size_t i = 0; good && i < count; i++)
        good = set_member(kind, PyList_GetItem(list, (Py_ssize_t)i), &members[i]);
    if (good && subject && PyUnicode_GetLength(subject) > 0)
        id = intern_str(subject);
    good = good && !PyErr_Occurred();
    if (good)
        sonde_fact(kind, id, number, members, count);
    free(members);
    Py_DECREF(list);
    if (!good)
        return NULL;
    Py_RETURN_NONE;
}
