/* SPDX-License-Identifier: Apache-2.0 */
/* probes/torch/place/torch_modulecalls.cpp - see torch_modulecalls.h. */
#include "probes/torch/place/torch_modulecalls.h"

#include <string>
#include <vector>

#include "format/limits.h"
#include "probes/torch/place/torch_modules.h"
#include "probes/torch/place/torch_places.h"
#include "probes/torch/torch_thread.h"

namespace snd_torch
{

#ifndef SND_PYFRAMES_MISSING

namespace
{

PyFunctionObject *module_function;      /* owned for ever: calls under way are in it */
vectorcallfunc    module_function_call; /* its own pointer */
bool              module_calls_are_ours;

NOINLINE uint32_t module_call_slow(Thread *thread, IdSlot *slot, uint64_t hash, PyObject *module)
{
    try {
        std::vector<PyObject *> modules = open_modules(snd_pyframe_mine());
        modules.push_back(module);
        keep_known(thread, {}, modules);
        std::string path = module_path(thread, modules);
        slot->id = sonde_intern(path.data(), path.size());
        slot->hash = slot->id ? hash : 0;
        return slot->id;
    } catch (const std::exception &) {
        return 0;
    }
}

/* The path of a module that is about to be called, by the modules whose calls are open; 0: none. */
uint32_t module_call_id(Thread *thread, PyObject *module)
{
    uint64_t hash = thread->seed + 4 + ODD * modules_gone.load(std::memory_order_relaxed);
    int      left = SND_PYTHON_FRAMES_MAX;

    for (const snd_pyframe *f = snd_pyframe_mine(); f && left > 0;
         f = snd_pyframe_caller(f), left--)
        if (snd_pyframe_code(f) == settings.module_code)
            hash = stir(hash, reinterpret_cast<uintptr_t>(snd_pyframe_self(f)));
    hash = stir(hash, reinterpret_cast<uintptr_t>(module));
    IdSlot *slot = &thread->frames[hash % FRAME_SLOTS];
    return LIKELY(slot->hash == hash) ? slot->id : module_call_slow(thread, slot, hash, module);
}

PyObject *call_module(PyObject *function, PyObject *const *args, size_t count, PyObject *names)
{
    uint32_t epoch = sonde_epoch(), path = 0;

    if (epoch != 0 && PyVectorcall_NARGS(count) > 0) {
        Thread *thread = this_thread(epoch);
        if (thread && !thread->is_inside)
            path = module_call_id(thread, args[0]);
    }
    if (path)
        sonde_attr(SONDE_ATTR_MODULE_CALL, path);
    PyObject *result = module_function_call(function, args, count, names);
    if (path && sonde_epoch() == epoch) /* else the id is another recording's */
        sonde_attr(SONDE_ATTR_MODULE_RETURN, path);
    return result;
}

} // namespace

void put_on_module_calls(PyObject *function)
{
    if (!function || !PyFunction_Check(function) || module_calls_are_ours)
        return;
    if (reinterpret_cast<PyObject *>(module_function) != function) {
        Py_INCREF(function);
        module_function = reinterpret_cast<PyFunctionObject *>(function);
    }
    module_function_call = module_function->vectorcall;
#if PY_VERSION_HEX >= 0x030C0000
    PyFunction_SetVectorcall(module_function, call_module); /* specialized calls go by it, too */
#else
    module_function->vectorcall = call_module;
#endif
    module_calls_are_ours = true;
}

void take_off_module_calls()
{
    if (module_calls_are_ours && module_function->vectorcall == call_module)
        module_function->vectorcall = module_function_call;
    module_calls_are_ours = false;
}

#endif /* SND_PYFRAMES_MISSING */

} // namespace snd_torch
