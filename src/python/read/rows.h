/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python/read/rows.h - for the files that make rows and lists of them.
 */
#ifndef SONDE_CORE_ROWS_H
#define SONDE_CORE_ROWS_H

#include "python/read/core.h"

/* An entry of a PyGetSetDef whose getter receives `which`. */
#define GET(name, getter_, which)                                      \
    {                                                                  \
        name, (getter)(getter_), NULL, NULL, (void *)(intptr_t)(which) \
    }
#define END_GETSET                   \
    {                                \
        NULL, NULL, NULL, NULL, NULL \
    }

PyObject *core_new_object(PyTypeObject *type);
void      core_free_object(void *self);
/* tp_new of what only a trace makes. */
PyObject *core_no_new(PyTypeObject *type, PyObject *args, PyObject *kwargs);
/* Makes the type and adds it to the module; 0, or -1 with an exception set. */
int core_add_type(PyObject *module, const char *name, PyType_Spec *spec, PyTypeObject **type);

/* The head of every row object: its owner, and attributes that were set. */
struct core_row {
    PyObject_HEAD
    PyObject *owner;
    PyObject *dict;
};
void core_row_dealloc(struct core_row *self);
/* An attribute that was set comes before the row's own, so that rows can be changed as torch's. */
PyObject *core_row_get(PyObject *self, PyObject *name);
int       core_row_set(PyObject *self, PyObject *name, PyObject *value);
PyObject *core_row_setstate(PyObject *self, PyObject *state);
/* The class of torch that a row stands for, for isinstance(); its own where torch is not loaded. */
PyObject *core_torch_class(PyObject *self, void *name);

/* Where a member of an average comes from. */
enum core_source {
    FROM_COUNT,
    FROM_NS,
    FROM_BYTES,
    FROM_DOUBLE,
    FROM_SMALL,
    FROM_TEXT,
    FROM_INDEX
};
struct core_member {
    const char      *name;
    enum core_source source;
    size_t           place; /* in struct sonde_average */
};
#define CORE_AVERAGE_COLUMNS 23 /* the first ones: columns of the list */
#define CORE_AVERAGE_MEMBERS 27
extern const struct core_member core_average_members[CORE_AVERAGE_MEMBERS];

/* The head of every object that is made from a trace and keeps it alive. */
struct core_made {
    PyObject_HEAD
    struct trace_object *trace;
};
typedef enum sonde_status core_compute_fn(struct sonde_trace *trace, struct core_made *made,
                                          const void *options, struct sonde_error *err);
/* A new object of the type, filled by `compute` without the interpreter's lock. */
struct core_made *core_make_from(struct trace_object *trace, PyTypeObject *type,
                                 core_compute_fn *compute, const void *options);

/* Nanoseconds as microseconds; a time as torch writes it; a count that is a double. */
PyObject *core_us(int64_t ns);
PyObject *core_time_text(double us);
PyObject *core_whole(double value);
/* torch's DeviceType.CPU or .CUDA where torch is loaded, else its number. */
PyObject *core_device_type(bool on_device);
/* "cuda", or None. */
PyObject *core_use_device(bool uses_gpu);
/* Time of a GPU in microseconds; none is 0, as torch has it. */
PyObject *core_device_us(int64_t ns);
/* Getters of what torch has and a trace does not: a constant for every row; a number is `which`. */
PyObject *core_get_none(PyObject *self, void *unused);
PyObject *core_get_false(PyObject *self, void *unused);
PyObject *core_get_number(PyObject *self, void *which);
/* Getter of an attribute that torch warns about; it receives the replacement's name. */
PyObject *core_get_deprecated(PyObject *self, void *name);
#define DEPRECATED(name, of)                                                   \
    {                                                                          \
        name, (getter)core_get_deprecated, NULL, NULL, (void *)(uintptr_t)(of) \
    }
/* Attributes that rows of both kinds have; `number(name, member)` is the file's own entry of a number. */
/* clang-format off */
#define COST_NUMBERS(number)                                                 \
    number("cpu_memory_usage", cpu_bytes),                                   \
    number("self_cpu_memory_usage", self_cpu_bytes),                         \
    number("device_memory_usage", device_bytes),                             \
    number("self_device_memory_usage", self_device_bytes),                   \
    DEPRECATED("cuda_memory_usage", "device_memory_usage"),                  \
    DEPRECATED("self_cuda_memory_usage", "self_device_memory_usage"),        \
    number("flops", flops), number("macs", macs), number("moved_bytes", moved_bytes)
/* clang-format on */
/* A kernel of an event's list, as torch's Kernel. */
PyObject *core_kernel(PyObject *name, uint32_t device, int64_t ns);
PyObject *core_split_lines(const char *bytes, size_t length);
/* module.function(argument) */
PyObject *core_call(const char *module, const char *function, PyObject *argument);
/* list[key], of a list of `count` rows that `make` makes. */
PyObject *core_slice(PyObject *self, PyObject *key, Py_ssize_t count,
                     PyObject *(*make)(PyObject *self, Py_ssize_t index));

struct table_options {
    struct sonde_report_options report;
    unsigned                    columns;
};

/* torch's arguments of table(). */
int       core_parse_table(PyObject *args, PyObject *kwargs, struct table_options *out);
PyObject *core_finish_text(enum sonde_status status, struct sonde_buffer *text,
                           const struct sonde_error *err);

/* A row that keeps `owner`, whose texts it has. */
PyObject *core_make_average(PyObject *owner, const struct sonde_average *row, bool by_shape);
void      core_add_up(struct sonde_average *sum, const struct sonde_average *row);
extern const struct sonde_average core_no_average; /* "Total", of nothing */

#endif
