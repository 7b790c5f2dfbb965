/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python/read/event.c - Event: one entry of events(), with torch's attributes.
 */
#include "python/read/events.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <structmember.h>

PyTypeObject *core_event_type;

static struct events_object *events_of(const struct event_object *self)
{
    return (struct events_object *)self->base.owner;
}

static PyObject *stack_lines(const struct sonde_trace *trace, uint32_t process, uint32_t stack)
{
    struct sonde_buffer text = { 0 };

    if (stack != 0)
        sonde_stack_text(trace, process, stack, SIZE_MAX, &text);
    PyObject *lines = core_split_lines(text.length ? text.bytes : "", text.length);
    sonde_buffer_release(&text);
    return lines;
}

#define NO_EVENT UINT32_MAX

/* A kernel, a copy or a fill: not a person's range as a stream saw it. */
static bool is_work(uint8_t flags)
{
    return (flags & SONDE_EVENT_ON_DEVICE) && !(flags & SONDE_EVENT_IS_USER);
}

/* Those of each event that `above` says, in order: a list through `next`. Made once. */
static int link_events(size_t count, const int32_t *above, const uint8_t *flags, uint32_t **first,
                       uint32_t **next)
{
    if (*first)
        return 0;
    free(*next);
    *first = malloc((count + 1) * sizeof **first);
    *next = malloc((count + 1) * sizeof **next);
    if (!*first || !*next) {
        free(*first);
        *first = NULL;
        PyErr_NoMemory();
        return -1;
    }
    memset(*first, 0xff, (count + 1) * sizeof **first);
    for (size_t i = count; i-- > 0;) {
        (*next)[i] = NO_EVENT;
        if (above[i] >= 0 && (!flags || is_work(flags[i]))) {
            (*next)[i] = (*first)[above[i]];
            (*first)[above[i]] = (uint32_t)i;
        }
    }
    return 0;
}

/* What GPUs did for an operator. */
static PyObject *kernels_list(struct events_object *owner, size_t i)
{
    const struct sonde_events_columns *c = sonde_events_columns(owner->events);
    PyObject *list = link_events(c->count, c->owner, c->flags, &owner->first_kernel,
                                 &owner->next_kernel) < 0
                         ? NULL
                         : PyList_New(0);

    for (uint32_t at = list ? owner->first_kernel[i] : NO_EVENT; at != NO_EVENT;
         at = owner->next_kernel[at]) {
        if (!core_push(list, core_kernel(core_events_text(owner, c->name[at]),
                                         c->device[at] & 0xffff, c->self_device_ns[at]))) {
            Py_CLEAR(list);
            break;
        }
    }
    return list;
}

static PyObject *children_list(struct events_object *owner, size_t i)
{
    const struct sonde_events_columns *c = sonde_events_columns(owner->events);
    PyObject *list = link_events(c->count, c->parent, NULL, &owner->first_child,
                                 &owner->next_child) < 0
                         ? NULL
                         : PyList_New(0);

    for (uint32_t at = list ? owner->first_child[i] : NO_EVENT; at != NO_EVENT;
         at = owner->next_child[at]) {
        if (!core_push(list, core_events_item((PyObject *)owner, (Py_ssize_t)at))) {
            Py_CLEAR(list);
            break;
        }
    }
    return list;
}

enum event_field {
    E_ID,
    E_NAME,
    E_TRACE_NAME,
    E_OVERLOAD,
    E_TIME_RANGE,
    E_THREAD,
    E_FWD_THREAD,
    E_TID,
    E_ONE,
    E_NODE,
    E_ASYNC,
    E_FALSE,
    E_USER,
    E_NONE,
    E_DEVICE_TYPE,
    E_USE_DEVICE,
    E_DEVICE_INDEX,
    E_RESOURCE,
    E_KERNELS,
    E_LINKED,
    E_FLOW,
    E_FLOW_TYPE,
    E_FLOW_START,
    E_DEVICE_TIME,
    E_SELF_DEVICE_TIME,
    E_KEYWORDS,
    E_SCOPE,
    E_SEQUENCE,
    E_SHAPES,
    E_NESTED_SHAPES,
    E_STRIDES,
    E_TYPES,
    E_CONCRETE,
    E_STACK,
    E_MODULE,
    E_PARENT,
    E_CHILDREN,
    E_TOTAL,
    E_SELF,
    E_TOTAL_TEXT,
    E_SELF_TEXT,
    E_DEVICE_TEXT,
    E_SELF_DEVICE_TEXT,
    E_CPU,
    E_SELF_CPU,
    E_DEVICE,
    E_SELF_DEVICE,
    E_FLOPS,
    E_MACS,
    E_MOVED,
    E_PROCESS,
    E_INDEX,
    E_EXTERNAL,
    E_ACTIVITY,
    E_IS_FUNCTION,
    E_PYTHON_ID,
    E_PYTHON_PARENT,
    E_PYTHON_MODULE,
};

static PyObject *event_parent(const struct event_object *self, int32_t parent)
{
    if (parent < 0)
        Py_RETURN_NONE;
    return core_events_item(self->base.owner, parent);
}

static PyObject *event_types(struct events_object *owner, size_t i)
{
    const struct sonde_events_columns *c = sonde_events_columns(owner->events);
    PyObject                          *values = core_concrete(owner, i);
    PyObject *list = values ? core_arguments(owner->trace->trace, c->process[i], c->shapes[i],
                                             CORE_ARGUMENTS_TYPES, values, false)
                            : NULL;

    Py_XDECREF(values);
    return list;
}

/* Kineto's names. */
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

/* Of the host: none of what a GPU did. */
static int64_t host_ns(const struct sonde_events_columns *c, size_t i)
{
    return c->flags[i] & SONDE_EVENT_ON_DEVICE ? 0 : c->end_ns[i] - c->start_ns[i];
}

/* Texts. */
static PyObject *event_text(struct event_object *self, void *which)
{
    struct events_object              *owner = events_of(self);
    const struct sonde_events_columns *c = sonde_events_columns(owner->events);
    size_t                             i = self->index;
    double                             total_us = (double)host_ns(c, i) / 1000.0;

    switch ((enum event_field)(intptr_t)which) {
    case E_NAME:
        return core_events_text(owner, c->name[i]);
    case E_TRACE_NAME:
        if (c->trace_name[i] == 0)
            Py_RETURN_NONE;
        return core_events_text(owner, c->trace_name[i]);
    case E_OVERLOAD:
        return core_events_text(owner, c->overload[i]);
    case E_MODULE:
        return core_events_text(owner, c->module[i]);
    case E_ACTIVITY:
        return PyUnicode_FromString(activity_of(owner, i));
    case E_TOTAL_TEXT:
        return core_time_text(total_us);
    case E_SELF_TEXT:
        return core_time_text((double)c->self_ns[i] / 1000.0);
    case E_DEVICE_TEXT:
        return core_time_text((double)c->device_ns[i] / 1000.0);
    case E_SELF_DEVICE_TEXT:
        return core_time_text((double)c->self_device_ns[i] / 1000.0);
    default:
        return NULL;
    }
}

/* Lists, and other objects. */
static PyObject *event_object(struct event_object *self, void *which)
{
    struct events_object              *owner = events_of(self);
    const struct sonde_events_columns *c = sonde_events_columns(owner->events);
    size_t                             i = self->index;
    const struct sonde_trace          *trace = owner->trace->trace;

    switch ((enum event_field)(intptr_t)which) {
    case E_TIME_RANGE:
        return core_make_interval(c->start_ns[i], c->end_ns[i]);
    case E_NONE:
        Py_RETURN_NONE;
    case E_DEVICE_TYPE:
        return core_device_type(c->flags[i] & SONDE_EVENT_ON_DEVICE);
    case E_USE_DEVICE:
        return core_use_device(c->uses_gpu);
    case E_KERNELS:
        return kernels_list(owner, i);
    case E_KEYWORDS:
        return core_keywords(owner, i);
    case E_SHAPES:
        return core_arguments(trace, c->process[i], c->shapes[i], CORE_ARGUMENTS_FLAT, NULL, false);
    case E_NESTED_SHAPES:
        return core_arguments(trace, c->process[i], c->shapes[i], CORE_ARGUMENTS_NESTED, NULL,
                              false);
    case E_STRIDES: /* not recorded where they follow from the shapes */
        return core_arguments(trace, c->process[i], c->strides[i] ? c->strides[i] : c->shapes[i],
                              CORE_ARGUMENTS_STRIDES, NULL, c->strides[i] == 0);
    case E_TYPES:
        return event_types(owner, i);
    case E_CONCRETE:
        return core_concrete(owner, i);
    case E_STACK:
        return stack_lines(trace, c->process[i], c->stack[i]);
    case E_PARENT:
        return event_parent(self, c->parent[i]);
    case E_CHILDREN:
        return children_list(owner, i);
    default:
        return NULL;
    }
}

/* Of the event that it belongs to; 0: none. */
static size_t owner_id(const struct sonde_events_columns *c, size_t i)
{
    return c->owner[i] < 0 ? 0 : (size_t)c->owner[i] + 1;
}

/* torch's id of an event: a call of a GPU's API and its work have that of the call. */
static size_t event_id(const struct sonde_events_columns *c, size_t i)
{
    bool user = c->flags[i] & SONDE_EVENT_IS_USER;

    if (c->flags[i] & SONDE_EVENT_IS_API || (c->flags[i] & SONDE_EVENT_ON_DEVICE && !user))
        return c->correlation[i];
    if (c->flags[i] & SONDE_EVENT_ON_DEVICE)
        return owner_id(c, i);
    return i + 1;
}

/* The operator that it is linked to; 0: none. */
static size_t linked_id(const struct sonde_events_columns *c, size_t i)
{
    bool linked = c->flags[i] & SONDE_EVENT_IS_API || is_work(c->flags[i]);

    return linked ? owner_id(c, i) : 0;
}

/* Memory has none; nor has what is linked to nothing. */
static size_t external_id(const struct sonde_events_columns *c, size_t i)
{
    const unsigned gpus = SONDE_EVENT_ON_DEVICE | SONDE_EVENT_IS_API;

    if (c->trace_name[i] == 0 || c->flags[i] & SONDE_EVENT_IS_OVERHEAD)
        return 0;
    return c->flags[i] & gpus ? owner_id(c, i) : i + 1;
}

/* What torch takes for the device and its part: of the host, process and thread. */
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

/* torch has -1 where there is none. */
static PyObject *python_number(uint32_t number)
{
    return PyLong_FromLong(number != 0 ? (long)number : -1);
}

/* Numbers of calls of a GPU's API, and of what they asked for. */
static PyObject *gpu_number(const struct events_object *owner, size_t i, void *which)
{
    const struct sonde_events_columns *c = sonde_events_columns(owner->events);

    switch ((enum event_field)(intptr_t)which) {
    case E_LINKED:
        return PyLong_FromSize_t(linked_id(c, i));
    case E_FLOW:
        return PyLong_FromUnsignedLong(c->correlation[i]);
    case E_FLOW_TYPE: /* Kineto's: from a call to what it asked for */
        return PyLong_FromLong(c->correlation[i] != 0 ? 2 : 0);
    case E_FLOW_START:
        return PyBool_FromLong(c->flags[i] & SONDE_EVENT_IS_API && sonde_call_asks(c->function[i]));
    case E_DEVICE_INDEX:
        return device_number(owner, i, false);
    case E_RESOURCE:
        return device_number(owner, i, true);
    case E_DEVICE_TIME:
        return core_device_us(c->device_ns[i]);
    case E_SELF_DEVICE_TIME:
        return core_device_us(c->self_device_ns[i]);
    default:
        return NULL;
    }
}

/* Numbers and flags. */
static PyObject *event_number(struct event_object *self, void *which)
{
    struct events_object              *owner = events_of(self);
    const struct sonde_events_columns *c = sonde_events_columns(owner->events);
    size_t                             i = self->index;
    const struct sonde_trace          *trace = owner->trace->trace;
    double                             total_us = (double)host_ns(c, i) / 1000.0;

    switch ((enum event_field)(intptr_t)which) {
    case E_EXTERNAL:
        return PyLong_FromSize_t(external_id(c, i));
    case E_ID:
        return PyLong_FromSize_t(event_id(c, i));
    case E_THREAD:
        return PyLong_FromUnsignedLong(c->torch_thread[i]);
    case E_FWD_THREAD:
        return PyLong_FromUnsignedLong(c->fwd_thread[i]);
    case E_TID:
        return PyLong_FromUnsignedLong(sonde_trace_thread(trace, c->thread[i])->tid);
    case E_ONE:
        return PyLong_FromLong(1);
    case E_NODE:
        return PyLong_FromLong(-1);
    case E_ASYNC:
        return PyBool_FromLong(c->flags[i] & SONDE_EVENT_IS_ASYNC);
    case E_FALSE:
        Py_RETURN_FALSE;
    case E_IS_FUNCTION:
        return PyBool_FromLong(c->flags[i] & SONDE_EVENT_IS_FUNCTION);
    case E_PYTHON_ID:
        return python_number(c->python_id[i]);
    case E_PYTHON_PARENT:
        return python_number(c->python_parent[i]);
    case E_PYTHON_MODULE:
        return PyLong_FromLong(c->python_module[i]);
    case E_USER:
        return PyBool_FromLong(c->flags[i] & SONDE_EVENT_IS_USER);
    case E_SCOPE:
        return PyLong_FromLong(c->scope[i]);
    case E_SEQUENCE:
        return PyLong_FromLongLong(c->sequence[i]);
    case E_TOTAL:
        return PyFloat_FromDouble(total_us);
    case E_SELF:
        return core_us(c->self_ns[i]);
    case E_CPU:
        return PyLong_FromLongLong(c->cpu_bytes[i]);
    case E_SELF_CPU:
        return PyLong_FromLongLong(c->self_cpu_bytes[i]);
    case E_DEVICE:
        return PyLong_FromLongLong(c->device_bytes[i]);
    case E_SELF_DEVICE:
        return PyLong_FromLongLong(c->self_device_bytes[i]);
    case E_FLOPS:
        return core_whole(c->flops[i]);
    case E_MACS:
        return core_whole(c->macs[i]);
    case E_MOVED:
        return core_whole(c->moved_bytes[i]);
    case E_PROCESS:
        return PyLong_FromUnsignedLong(c->process[i]);
    case E_INDEX:
        return PyLong_FromSize_t(i);
    default:
        return gpu_number(owner, i, which);
    }
}

/* Two objects of the same event are equal: a new object is made for each access. */
static PyObject *event_compare(PyObject *left, PyObject *right, int operation)
{
    if ((operation != Py_EQ && operation != Py_NE) || Py_TYPE(left) != Py_TYPE(right)) {
        Py_INCREF(Py_NotImplemented);
        return Py_NotImplemented;
    }
    const struct event_object *a = (struct event_object *)left, *b = (struct event_object *)right;
    bool                       same = a->base.owner == b->base.owner && a->index == b->index;
    return PyBool_FromLong(same == (operation == Py_EQ));
}

static Py_hash_t event_hash(struct event_object *self)
{
    return (Py_hash_t)((uintptr_t)self->base.owner / 16 * 31 + self->index) & PY_SSIZE_T_MAX;
}

static PyObject *event_repr(PyObject *self)
{
    PyObject *id = PyObject_GetAttrString(self, "id"), *name = PyObject_GetAttrString(self, "name");
    PyObject *time = PyObject_GetAttrString(self, "cpu_time_str");
    PyObject *thread = PyObject_GetAttrString(self, "thread");
    PyObject *shapes = PyObject_GetAttrString(self, "input_shapes");
    PyObject *text = NULL;

    if (id && name && time && thread && shapes)
        text = PyUnicode_FromFormat("<FunctionEvent id=%S name=%U cpu_time=%U thread=%S "
                                    "input_shapes=%S>",
                                    id, name, time, thread, shapes);
    Py_XDECREF(id);
    Py_XDECREF(name);
    Py_XDECREF(time);
    Py_XDECREF(thread);
    Py_XDECREF(shapes);
    return text;
}

static PyGetSetDef event_getset[] = {
    GET("id", event_number, E_ID),
    GET("name", event_text, E_NAME),
    GET("key", event_text, E_NAME),
    GET("trace_name", event_text, E_TRACE_NAME),
    GET("overload_name", event_text, E_OVERLOAD),
    GET("time_range", event_object, E_TIME_RANGE),
    GET("thread", event_number, E_THREAD),
    GET("fwd_thread", event_number, E_FWD_THREAD),
    GET("tid", event_number, E_TID),
    GET("count", event_number, E_ONE),
    GET("node_id", event_number, E_NODE),
    GET("is_async", event_number, E_ASYNC),
    GET("is_remote", event_number, E_FALSE),
    GET("is_legacy", event_number, E_FALSE),
    GET("is_user_annotation", event_number, E_USER),
    GET("is_python_function", event_number, E_IS_FUNCTION),
    GET("use_device", event_object, E_USE_DEVICE),
    GET("device_type", event_object, E_DEVICE_TYPE),
    GET("device_index", event_number, E_DEVICE_INDEX),
    GET("device_resource_id", event_number, E_RESOURCE),
    GET("kernels", event_object, E_KERNELS),
    GET("scope", event_number, E_SCOPE),
    GET("sequence_nr", event_number, E_SEQUENCE),
    GET("input_shapes", event_object, E_SHAPES),
    GET("structured_input_shapes", event_object, E_NESTED_SHAPES),
    GET("structured_input_strides", event_object, E_STRIDES),
    GET("input_dtypes", event_object, E_TYPES),
    GET("concrete_inputs", event_object, E_CONCRETE),
    GET("kwinputs", event_object, E_KEYWORDS),
    GET("stack", event_object, E_STACK),
    GET("module", event_text, E_MODULE),
    GET("cpu_parent", event_object, E_PARENT),
    GET("cpu_children", event_object, E_CHILDREN),
    GET("cpu_time_total", event_number, E_TOTAL),
    GET("cpu_time", event_number, E_TOTAL),
    GET("self_cpu_time_total", event_number, E_SELF),
    GET("device_time_total", event_number, E_DEVICE_TIME),
    GET("self_device_time_total", event_number, E_SELF_DEVICE_TIME),
    GET("device_time", event_number, E_DEVICE_TIME),
    DEPRECATED("cuda_time", "device_time"),
    DEPRECATED("cuda_time_total", "device_time_total"),
    DEPRECATED("self_cuda_time_total", "self_device_time_total"),
    GET("cpu_time_str", event_text, E_TOTAL_TEXT),
    GET("cpu_time_total_str", event_text, E_TOTAL_TEXT),
    GET("self_cpu_time_total_str", event_text, E_SELF_TEXT),
    GET("device_time_str", event_text, E_DEVICE_TEXT),
    GET("device_time_total_str", event_text, E_DEVICE_TEXT),
    GET("self_device_time_total_str", event_text, E_SELF_DEVICE_TEXT),
    GET("cpu_memory_usage", event_number, E_CPU),
    GET("self_cpu_memory_usage", event_number, E_SELF_CPU),
    GET("device_memory_usage", event_number, E_DEVICE),
    GET("self_device_memory_usage", event_number, E_SELF_DEVICE),
    DEPRECATED("cuda_memory_usage", "device_memory_usage"),
    DEPRECATED("self_cuda_memory_usage", "self_device_memory_usage"),
    GET("flops", event_number, E_FLOPS),
    GET("macs", event_number, E_MACS),
    GET("moved_bytes", event_number, E_MOVED),
    GET("process", event_number, E_PROCESS),
    GET("index", event_number, E_INDEX),
    GET("external_id", event_number, E_EXTERNAL),
    GET("linked_correlation_id", event_number, E_LINKED),
    GET("activity_type", event_text, E_ACTIVITY),
    GET("flow_id", event_number, E_FLOW),
    GET("flow_type", event_number, E_FLOW_TYPE),
    GET("flow_start", event_number, E_FLOW_START),
    GET("metadata", event_object, E_NONE),
    GET("event_metadata", event_object, E_NONE),
    GET("metadata_json", event_object, E_NONE),
    GET("python_id", event_number, E_PYTHON_ID),
    GET("python_parent_id", event_number, E_PYTHON_PARENT),
    GET("python_module_id", event_number, E_PYTHON_MODULE),
    GET("self_cpu_percent", event_number, E_NODE),
    GET("total_cpu_percent", event_number, E_NODE),
    GET("total_device_percent", event_number, E_NODE),
    { "__class__", (getter)core_torch_class, NULL, NULL, (void *)(uintptr_t) "FunctionEvent" },
    END_GETSET,
};

/* An event is its list and its place there; what was set on it comes along. */
static PyObject *event_reduce(struct event_object *self, PyObject *unused)
{
    (void)unused;
    PyObject *operators = PyImport_ImportModule("operator");
    PyObject *get = operators ? PyObject_GetAttrString(operators, "getitem") : NULL;
    PyObject *reduced = NULL;
    if (get)
        reduced = Py_BuildValue("(O(On)O)", get, self->base.owner, (Py_ssize_t)self->index,
                                self->base.dict ? self->base.dict : Py_None);
    Py_XDECREF(get);
    Py_XDECREF(operators);
    return reduced;
}

static PyMethodDef event_methods[] = {
    { "__reduce__", METHOD(event_reduce), METH_NOARGS, NULL },
    { "__setstate__", METHOD(core_row_setstate), METH_O, NULL },
    { NULL, NULL, 0, NULL },
};

static PyMemberDef event_members[] = {
    { "__dictoffset__", T_PYSSIZET, offsetof(struct core_row, dict), READONLY, NULL },
    { NULL, 0, 0, 0, NULL },
};

static PyType_Slot event_slots[] = {
    { Py_tp_doc, "An entry of events(): torch's FunctionEvent." },
    { Py_tp_new, (void *)core_no_new },
    { Py_tp_dealloc, (void *)core_row_dealloc },
    { Py_tp_repr, (void *)event_repr },
    { Py_tp_richcompare, (void *)event_compare },
    { Py_tp_hash, (void *)event_hash },
    { Py_tp_getattro, (void *)core_row_get },
    { Py_tp_setattro, (void *)core_row_set },
    { Py_tp_methods, event_methods },
    { Py_tp_getset, event_getset },
    { Py_tp_members, event_members },
    { 0, NULL },
};
static PyType_Spec event_spec = { .name = "sonde.Event",
                                  .basicsize = sizeof(struct event_object),
                                  .flags = Py_TPFLAGS_DEFAULT,
                                  .slots = event_slots };

int core_event_init(PyObject *module)
{
    return core_interval_init(module) < 0 ||
                   core_add_type(module, "Event", &event_spec, &core_event_type) < 0
               ? -1
               : 0;
}
