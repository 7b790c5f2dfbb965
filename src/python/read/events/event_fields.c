/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python/read/events/event_fields.c - the attributes of Event: torch's, and a few of our own.
 *
 * A getter receives what it reads as its closure: the offset of a column of struct
 * sonde_events_columns, a flag, or nothing.
 */
#include "python/read/events/event_list.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static struct events_object *events_of(const struct event_object *self)
{
    return (struct events_object *)self->base.owner;
}

static const struct sonde_events_columns *columns_of(const struct event_object *self)
{
    return sonde_events_columns(events_of(self)->events);
}

/* ------------------------------------------------------------------- columns */

/* Defines the getter `name` of a column of `type`; in its expression, `value` is the event's. */
#define COLUMN_GETTER(name, type, expression)                       \
    static PyObject *name(struct event_object *self, void *column)  \
    {                                                               \
        const char *columns = (const char *)columns_of(self);       \
        const type *values;                                         \
                                                                    \
        memcpy(&values, columns + (intptr_t)column, sizeof values); \
        const type value = values[self->index];                     \
        return expression;                                          \
    }

COLUMN_GETTER(get_u8, uint8_t, PyLong_FromLong(value))
COLUMN_GETTER(get_u32, uint32_t, PyLong_FromUnsignedLong(value))
COLUMN_GETTER(get_i32, int32_t, PyLong_FromLong(value))
COLUMN_GETTER(get_i64, int64_t, PyLong_FromLongLong(value))
COLUMN_GETTER(get_double, double, core_whole(value))
COLUMN_GETTER(get_text, uint32_t, core_events_text(events_of(self), value))
COLUMN_GETTER(get_us, int64_t, core_us(value))
COLUMN_GETTER(get_device_us, int64_t, core_device_us(value))
COLUMN_GETTER(get_time_text, int64_t, core_time_text((double)value / 1000.0))
/* torch has -1 for none. */
COLUMN_GETTER(get_python_id, uint32_t, PyLong_FromLong(value != 0 ? (long)value : -1))

static PyObject *get_flag(struct event_object *self, void *flag)
{
    return PyBool_FromLong(columns_of(self)->flags[self->index] & (intptr_t)flag);
}

/* --------------------------------------------------------------------- texts */

static PyObject *get_trace_name(struct event_object *self, void *unused)
{
    uint32_t name = columns_of(self)->trace_name[self->index];

    (void)unused;
    if (name == 0)
        Py_RETURN_NONE;
    return core_events_text(events_of(self), name);
}

/* Kineto's name for this kind of event. */
static const char *activity_of(const struct events_object *owner, size_t i)
{
    static const char *const           works[] = { "", "kernel", "gpu_memcpy", "gpu_memset" };
    const struct sonde_events_columns *c = sonde_events_columns(owner->events);
    uint8_t                            flags = c->flags[i];
    bool                               user = flags & SONDE_EVENT_IS_USER;

    if (flags & SONDE_EVENT_ON_DEVICE)
        return user ? "gpu_user_annotation" : works[c->work_kind[i] < 4 ? c->work_kind[i] : 0];
    return c->trace_name[i] == 0             ? "cpu_instant_event"
           : flags & SONDE_EVENT_IS_FUNCTION ? "python_function"
           : flags & SONDE_EVENT_IS_OVERHEAD ? "overhead"
           : flags & SONDE_EVENT_IS_API ? (c->function[i] & 0x8000 ? "cuda_driver" : "cuda_runtime")
           : user                       ? "user_annotation"
                                        : "cpu_op";
}

static PyObject *get_activity(struct event_object *self, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(activity_of(events_of(self), self->index));
}

/* -------------------------------------------------------------- time on the host */

/* 0 for what a GPU did. */
static int64_t host_ns(const struct sonde_events_columns *c, size_t i)
{
    return c->flags[i] & SONDE_EVENT_ON_DEVICE ? 0 : c->end_ns[i] - c->start_ns[i];
}

static PyObject *get_host_us(struct event_object *self, void *unused)
{
    (void)unused;
    return core_us(host_ns(columns_of(self), self->index));
}

static PyObject *get_host_text(struct event_object *self, void *unused)
{
    (void)unused;
    return core_time_text((double)host_ns(columns_of(self), self->index) / 1000.0);
}

static PyObject *get_time_range(struct event_object *self, void *unused)
{
    const struct sonde_events_columns *c = columns_of(self);

    (void)unused;
    return core_make_interval(c->start_ns[self->index], c->end_ns[self->index]);
}

/* ------------------------------------------------------------------------- ids */

static PyObject *get_index(struct event_object *self, void *unused)
{
    (void)unused;
    return PyLong_FromSize_t(self->index);
}

static PyObject *get_tid(struct event_object *self, void *unused)
{
    const struct sonde_trace *trace = events_of(self)->trace->trace;

    (void)unused;
    return PyLong_FromUnsignedLong(
        sonde_trace_thread(trace, columns_of(self)->thread[self->index])->tid);
}

/* The id of the operator that GPU work and API calls belong to; 0: none. */
static size_t owner_id(const struct sonde_events_columns *c, size_t i)
{
    return c->owner[i] < 0 ? 0 : (size_t)c->owner[i] + 1;
}

/* torch's id of an event: an API call and the work that it started share the id of the call. */
static size_t event_id(const struct sonde_events_columns *c, size_t i)
{
    bool user = c->flags[i] & SONDE_EVENT_IS_USER;

    if (c->flags[i] & SONDE_EVENT_IS_API || (c->flags[i] & SONDE_EVENT_ON_DEVICE && !user))
        return c->correlation[i];
    if (c->flags[i] & SONDE_EVENT_ON_DEVICE)
        return owner_id(c, i);
    return i + 1;
}

/* The id of the operator that it is linked to; 0: none. */
static size_t linked_id(const struct sonde_events_columns *c, size_t i)
{
    bool linked = c->flags[i] & SONDE_EVENT_IS_API || core_is_work(c->flags[i]);

    return linked ? owner_id(c, i) : 0;
}

/* 0 for memory events, overhead, and GPU work of no operator. */
static size_t external_id(const struct sonde_events_columns *c, size_t i)
{
    const unsigned gpus = SONDE_EVENT_ON_DEVICE | SONDE_EVENT_IS_API;

    if (c->trace_name[i] == 0 || c->flags[i] & SONDE_EVENT_IS_OVERHEAD)
        return 0;
    return c->flags[i] & gpus ? owner_id(c, i) : i + 1;
}

/* Defines the getter of one of these ids. */
#define ID_GETTER(name, id_of)                                          \
    static PyObject *name(struct event_object *self, void *unused)      \
    {                                                                   \
        (void)unused;                                                   \
        return PyLong_FromSize_t(id_of(columns_of(self), self->index)); \
    }

ID_GETTER(get_id, event_id)
ID_GETTER(get_linked, linked_id)
ID_GETTER(get_external, external_id)

/* ----------------------------------------------------------------------- GPUs */

/* torch's device and, if `part`, its resource: device and stream on a GPU, process and thread on the host. */
static PyObject *device_number(const struct events_object *owner, size_t i, bool part)
{
    const struct sonde_events_columns *c = sonde_events_columns(owner->events);
    const struct sonde_trace          *trace = owner->trace->trace;

    if (c->flags[i] & SONDE_EVENT_ON_DEVICE)
        return PyLong_FromUnsignedLong(part ? c->stream[i] : c->device[i] & 0xffff);
    if (c->flags[i] & SONDE_EVENT_IS_OVERHEAD)
        return PyLong_FromLong(part ? 0 : -1);
    if (c->trace_name[i] == 0)
        return PyLong_FromUnsignedLong(part ? c->torch_thread[i] : 0);
    return PyLong_FromUnsignedLong(part ? sonde_trace_thread(trace, c->thread[i])->tid
                                        : sonde_trace_process(trace, c->process[i])->pid);
}

static PyObject *get_device_index(struct event_object *self, void *unused)
{
    (void)unused;
    return device_number(events_of(self), self->index, false);
}

static PyObject *get_resource(struct event_object *self, void *unused)
{
    (void)unused;
    return device_number(events_of(self), self->index, true);
}

/* Kineto's: 2 is the arrow from a call to the work that it started. */
static PyObject *get_flow_type(struct event_object *self, void *unused)
{
    (void)unused;
    return PyLong_FromLong(columns_of(self)->correlation[self->index] != 0 ? 2 : 0);
}

static PyObject *get_flow_start(struct event_object *self, void *unused)
{
    const struct sonde_events_columns *c = columns_of(self);
    size_t                             i = self->index;

    (void)unused;
    return PyBool_FromLong(c->flags[i] & SONDE_EVENT_IS_API && sonde_call_asks(c->function[i]));
}

static PyObject *get_device_type(struct event_object *self, void *unused)
{
    (void)unused;
    return core_device_type(columns_of(self)->flags[self->index] & SONDE_EVENT_ON_DEVICE);
}

static PyObject *get_use_device(struct event_object *self, void *unused)
{
    (void)unused;
    return core_use_device(columns_of(self)->uses_gpu);
}

/* ---------------------------------------------------------- arguments and stacks */

static PyObject *get_shapes(struct event_object *self, void *which)
{
    const struct sonde_events_columns *c = columns_of(self);
    size_t                             i = self->index;

    return core_arguments(events_of(self)->trace->trace, c->process[i], c->shapes[i],
                          (enum core_arguments)(intptr_t)which, NULL, false);
}

/* Strides are not recorded where they follow from the shapes. */
static PyObject *get_strides(struct event_object *self, void *unused)
{
    const struct sonde_events_columns *c = columns_of(self);
    size_t                             i = self->index;

    (void)unused;
    return core_arguments(events_of(self)->trace->trace, c->process[i],
                          c->strides[i] ? c->strides[i] : c->shapes[i], CORE_ARGUMENTS_STRIDES,
                          NULL, c->strides[i] == 0);
}

static PyObject *get_types(struct event_object *self, void *unused)
{
    const struct sonde_events_columns *c = columns_of(self);
    size_t                             i = self->index;
    PyObject                          *values = core_concrete(events_of(self), i);
    PyObject                          *list = NULL;

    (void)unused;
    if (values)
        list = core_arguments(events_of(self)->trace->trace, c->process[i], c->shapes[i],
                              CORE_ARGUMENTS_TYPES, values, false);
    Py_XDECREF(values);
    return list;
}

static PyObject *get_stack(struct event_object *self, void *unused)
{
    const struct sonde_events_columns *c = columns_of(self);
    size_t                             i = self->index;
    struct sonde_buffer                text = { 0 };

    (void)unused;
    if (c->stack[i] != 0)
        sonde_stack_text(events_of(self)->trace->trace, c->process[i], c->stack[i], SIZE_MAX,
                         &text);
    PyObject *lines = core_split_lines(text.length ? text.bytes : "", text.length);
    sonde_buffer_release(&text);
    return lines;
}

/* ----------------------------------------------------------------- other events */

static PyObject *get_parent(struct event_object *self, void *unused)
{
    int32_t parent = columns_of(self)->parent[self->index];

    (void)unused;
    if (parent < 0)
        Py_RETURN_NONE;
    return core_events_item(self->base.owner, parent);
}

/* Defines the getter of an attribute that `make` makes of the list and the event's index. */
#define MADE_GETTER(name, make)                                    \
    static PyObject *name(struct event_object *self, void *unused) \
    {                                                              \
        (void)unused;                                              \
        return make(events_of(self), self->index);                 \
    }

MADE_GETTER(get_concrete, core_concrete)
MADE_GETTER(get_keywords, core_keywords)
MADE_GETTER(get_children, core_event_children)
MADE_GETTER(get_kernels, core_event_kernels)

/* ------------------------------------------------------------------------ table */

#define COLUMN(name, getter_, column) \
    GET(name, getter_, offsetof(struct sonde_events_columns, column))
/* A column of numbers: its getter follows from its type. */
#define NUMBER(name, column) \
    COLUMN(name,                                                                    \
           _Generic(((struct sonde_events_columns *)0)->column, const uint8_t *     \
                    : get_u8, const uint32_t *                                      \
                    : get_u32, const int32_t *                                      \
                    : get_i32, const int64_t *                                      \
                    : get_i64, const double *                                       \
                    : get_double),                                                  \
           column)
#define MADE(name, getter_) GET(name, getter_, 0)

PyGetSetDef core_event_getset[] = {
    MADE("id", get_id),
    COLUMN("name", get_text, name),
    COLUMN("key", get_text, name),
    MADE("trace_name", get_trace_name),
    COLUMN("overload_name", get_text, overload),
    MADE("time_range", get_time_range),
    NUMBER("thread", torch_thread),
    NUMBER("fwd_thread", fwd_thread),
    MADE("tid", get_tid),
    GET("count", core_get_number, 1),
    GET("node_id", core_get_number, -1),
    GET("is_async", get_flag, SONDE_EVENT_IS_ASYNC),
    MADE("is_remote", core_get_false),
    MADE("is_legacy", core_get_false),
    GET("is_user_annotation", get_flag, SONDE_EVENT_IS_USER),
    GET("is_python_function", get_flag, SONDE_EVENT_IS_FUNCTION),
    MADE("use_device", get_use_device),
    MADE("device_type", get_device_type),
    MADE("device_index", get_device_index),
    MADE("device_resource_id", get_resource),
    MADE("kernels", get_kernels),
    NUMBER("scope", scope),
    NUMBER("sequence_nr", sequence),
    GET("input_shapes", get_shapes, CORE_ARGUMENTS_FLAT),
    GET("structured_input_shapes", get_shapes, CORE_ARGUMENTS_NESTED),
    MADE("structured_input_strides", get_strides),
    MADE("input_dtypes", get_types),
    MADE("concrete_inputs", get_concrete),
    MADE("kwinputs", get_keywords),
    MADE("stack", get_stack),
    COLUMN("module", get_text, module),
    MADE("cpu_parent", get_parent),
    MADE("cpu_children", get_children),
    MADE("cpu_time_total", get_host_us),
    MADE("cpu_time", get_host_us),
    COLUMN("self_cpu_time_total", get_us, self_ns),
    COLUMN("device_time_total", get_device_us, device_ns),
    COLUMN("self_device_time_total", get_device_us, self_device_ns),
    COLUMN("device_time", get_device_us, device_ns),
    DEPRECATED("cuda_time", "device_time"),
    DEPRECATED("cuda_time_total", "device_time_total"),
    DEPRECATED("self_cuda_time_total", "self_device_time_total"),
    MADE("cpu_time_str", get_host_text),
    MADE("cpu_time_total_str", get_host_text),
    COLUMN("self_cpu_time_total_str", get_time_text, self_ns),
    COLUMN("device_time_str", get_time_text, device_ns),
    COLUMN("device_time_total_str", get_time_text, device_ns),
    COLUMN("self_device_time_total_str", get_time_text, self_device_ns),
    COST_NUMBERS(NUMBER),
    NUMBER("process", process),
    MADE("index", get_index),
    MADE("external_id", get_external),
    MADE("linked_correlation_id", get_linked),
    MADE("activity_type", get_activity),
    NUMBER("flow_id", correlation),
    MADE("flow_type", get_flow_type),
    MADE("flow_start", get_flow_start),
    MADE("metadata", core_get_none),
    MADE("event_metadata", core_get_none),
    MADE("metadata_json", core_get_none),
    COLUMN("python_id", get_python_id, python_id),
    COLUMN("python_parent_id", get_python_id, python_parent),
    NUMBER("python_module_id", python_module),
    GET("self_cpu_percent", core_get_number, -1),
    GET("total_cpu_percent", core_get_number, -1),
    GET("total_device_percent", core_get_number, -1),
    { "__class__", (getter)core_torch_class, NULL, NULL, (void *)(uintptr_t) "FunctionEvent" },
    END_GETSET,
};
