/* SPDX-License-Identifier: Apache-2.0 */
/* probes/torch/place/torch_kernels.cpp - see torch_kernels.h. */
#include "probes/torch/place/torch_kernels.h"

#include <string>

#include "probes/torch/torch_calls.h"
#include "probes/torch/place/torch_places.h"
#include "probes/torch/torch_thread.h"

namespace snd_torch
{

#ifndef SND_PYFRAMES_MISSING

namespace
{

struct Kernel {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject      *kernel; /* owned */
    std::string   *name;   /* owned */
};

uint32_t kernel_call_slow(const Kernel *kernel, const PlaceSlot *place)
{
    struct sonde_op_call call = {};

    call.struct_size = sizeof call;
    call.name = sonde_intern(kernel->name->data(), kernel->name->size());
    call.stack = place->stack;
    call.module = place->module;
    call.compiled = place->compiled;
    return call.name ? sonde_intern_call(&call) : 0;
}

const PlaceSlot *kernel_place(Thread *thread)
{
    snd_pyframe *top = snd_pyframe_mine();

    if (!top)
        return &NOWHERE;
    return settings.flags & SONDE_TORCH_STACKS
               ? place_of<SONDE_TORCH_STACKS | SONDE_TORCH_MODULES>(thread, top)
               : place_of<SONDE_TORCH_MODULES>(thread, top);
}

/* Whether a range was begun. */
bool begin_kernel(const Kernel *kernel, uint32_t epoch)
{
    Thread *thread = epoch ? this_thread(epoch) : nullptr;

    if (!thread || thread->is_inside || !(settings.flags & SONDE_TORCH_MODULES))
        return false;
    const PlaceSlot *place = kernel_place(thread);
    uint64_t hash = fold(stir(thread->seed + 5, reinterpret_cast<uintptr_t>(kernel->kernel)),
                         ODD ^ place->hash);
    IdSlot  *slot = &thread->frames[hash % FRAME_SLOTS];
    if (slot->hash != hash) {
        slot->id = kernel_call_slow(kernel, place);
        slot->hash = slot->id ? hash : 0;
    }
    if (slot->id)
        begin(thread, epoch, slot->id, { NO_SEQUENCE, 0, 0 });
    return slot->id != 0;
}

PyObject *call_kernel(PyObject *self, PyObject *const *args, size_t count, PyObject *names)
{
    Kernel   *kernel = reinterpret_cast<Kernel *>(self);
    uint32_t  epoch = sonde_epoch();
    bool      is_open = begin_kernel(kernel, epoch);
    PyObject *result = PyObject_Vectorcall(kernel->kernel, args, count, names);

    if (is_open && sonde_epoch() == epoch)
        end(epoch, sonde_clock());
    return result;
}

void free_kernel(PyObject *self)
{
    Kernel *kernel = reinterpret_cast<Kernel *>(self);

    Py_DECREF(kernel->kernel);
    delete kernel->name;
    Py_TYPE(self)->tp_free(self);
}

/* Every attribute lookup goes to the kernel. */
PyObject *kernel_attribute(PyObject *self, PyObject *name)
{
    return PyObject_GetAttr(reinterpret_cast<Kernel *>(self)->kernel, name);
}

PyTypeObject *kernel_type()
{
    static PyTypeObject type = { PyVarObject_HEAD_INIT(nullptr, 0) };
    static bool         is_ready = [] {
        type.tp_name = "sonde.kernel";
        type.tp_basicsize = sizeof(Kernel);
        type.tp_dealloc = free_kernel;
        type.tp_vectorcall_offset = offsetof(Kernel, call);
        type.tp_call = PyVectorcall_Call;
        type.tp_getattro = kernel_attribute;
        type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL;
        return PyType_Ready(&type) == 0;
    }();

    return is_ready ? &type : nullptr;
}

} // namespace

PyObject *make_kernel(PyObject *object, const char *name)
{
    PyTypeObject *type = kernel_type();
    Kernel       *kernel = type ? PyObject_New(Kernel, type) : nullptr;

    if (!kernel)
        return nullptr;
    Py_INCREF(object);
    kernel->call = call_kernel;
    kernel->kernel = object;
    kernel->name = new std::string(name);
    return reinterpret_cast<PyObject *>(kernel);
}

#endif /* SND_PYFRAMES_MISSING */

} // namespace snd_torch
