/* SPDX-License-Identifier: Apache-2.0 */
/* probes/torch/place/torch_modules.cpp - see torch_modules.h. */
#include "probes/torch/place/torch_modules.h"

#include <map>
#include <unordered_map>
#include <unordered_set>

#include "probes/torch/place/torch_modulewalk.h"

namespace snd_torch
{

#ifndef SND_PYFRAMES_MISSING

std::atomic<uint64_t> modules_gone{ 0 };

namespace
{

/* Both by address, for one epoch: (module), (outermost module, module). Under `shared`. */
uint32_t                                                     modules_epoch;
std::map<std::pair<const void *, const void *>, uint32_t>    module_numbers; /* (type, module) */
std::map<const void *, uint32_t>                             class_counts;
std::map<std::pair<const void *, const void *>, std::string> module_paths; /* (root, module) */

void renew_modules(uint32_t epoch)
{
    if (modules_epoch == epoch)
        return;
    modules_epoch = epoch;
    module_numbers.clear();
    class_counts.clear();
    module_paths.clear();
}

} // namespace

std::string module_label(Thread *thread, PyObject *module)
{
    std::lock_guard<std::mutex> guard(shared);

    renew_modules(thread->epoch);
    auto found = module_numbers.emplace(std::make_pair(Py_TYPE(module), module), 0);
    if (found.second)
        found.first->second = class_counts[Py_TYPE(module)]++;
    return std::string("nn.Module: ") + class_name(module) + "_" +
           std::to_string(found.first->second);
}

namespace
{

/* Holds the interpreter lock, and restores the pending exception at the end. */
class Interpreter
{
  public:
    Interpreter() : state_(PyGILState_Ensure())
    {
        PyErr_Fetch(&type_, &value_, &trace_);
    }
    ~Interpreter()
    {
        PyErr_Restore(type_, value_, trace_);
        PyGILState_Release(state_);
    }

  private:
    PyGILState_STATE state_;
    PyObject        *type_, *value_, *trace_;
};

bool is_finalizing()
{
#if PY_VERSION_HEX >= 0x030D0000
    return Py_IsFinalizing();
#else
    return !Py_IsInitialized() || _Py_IsFinalizing();
#endif
}

/* --------------------------------------------- objects that are identified by address */

/*
 * Frames are identified by the address of their code, modules by their own address; a freed address
 * may be reused. So code is kept alive until the probe stops. Modules are not, for they hold
 * tensors: when one is freed, a weak reference removes all that is stored by its address. All
 * under `shared`.
 */
std::unordered_set<PyObject *>             kept_code;
std::unordered_map<PyObject *, PyObject *> watched; /* module: the weak reference to it, owned */

void forget_module(const void *module)
{
    for (auto it = module_numbers.begin(); it != module_numbers.end();)
        it = it->first.second == module ? module_numbers.erase(it) : std::next(it);
    for (auto it = module_paths.begin(); it != module_paths.end();)
        it = it->first.first == module || it->first.second == module ? module_paths.erase(it)
                                                                     : std::next(it);
}

/* A reference that is no longer in `watched` is released by release_known(). */
PyObject *on_module_gone(PyObject *, PyObject *reference)
{
    bool is_ours = false;
    {
        std::lock_guard<std::mutex> guard(shared);
        for (auto it = watched.begin(); it != watched.end() && !is_ours; ++it) {
            if (it->second != reference)
                continue;
            is_ours = true;
            forget_module(it->first);
            modules_gone++;
            watched.erase(it);
            break;
        }
    }
    if (is_ours)
        Py_DECREF(reference);
    Py_RETURN_NONE;
}

/*
 * Call it with the interpreter lock, which a garbage collection inside may release. Some modules
 * take no weak references.
 */
void watch_module(PyObject *module)
{
    static PyMethodDef method = { "sonde_module_gone", on_module_gone, METH_O, nullptr };
    static PyObject   *callback;
    {
        std::lock_guard<std::mutex> guard(shared);
        if (watched.count(module))
            return;
    }
    if (!callback)
        callback = PyCFunction_New(&method, nullptr);
    PyObject *reference = callback ? PyWeakref_NewRef(module, callback) : nullptr;
    PyErr_Clear();
    if (!reference)
        return;
    bool is_new;
    {
        std::lock_guard<std::mutex> guard(shared);
        is_new = watched.emplace(module, reference).second;
    }
    if (!is_new)
        Py_DECREF(reference);
}

bool is_known(const std::vector<snd_pyframe *> &frames, const std::vector<PyObject *> &modules)
{
    std::lock_guard<std::mutex> guard(shared);

    for (const snd_pyframe *frame : frames)
        if (!kept_code.count(reinterpret_cast<PyObject *>(snd_pyframe_code(frame))))
            return false;
    for (PyObject *module : modules)
        if (!watched.count(module))
            return false;
    return true;
}

} // namespace

void keep_known(Thread *thread, const std::vector<snd_pyframe *> &frames,
                const std::vector<PyObject *> &modules)
{
    if (is_known(frames, modules) || thread->is_inside || is_finalizing())
        return;
    thread->is_inside = true;
    {
        Interpreter lock;
        for (PyObject *module : modules)
            watch_module(module);
        std::lock_guard<std::mutex> guard(shared);
        for (const snd_pyframe *frame : frames) {
            PyObject *code = reinterpret_cast<PyObject *>(snd_pyframe_code(frame));
            if (kept_code.insert(code).second)
                Py_INCREF(code);
        }
    }
    thread->is_inside = false;
}

void release_known()
{
    std::unordered_set<PyObject *>             code;
    std::unordered_map<PyObject *, PyObject *> references;
    {
        std::lock_guard<std::mutex> guard(shared);
        code.swap(kept_code);
        references.swap(watched);
    }
    if ((code.empty() && references.empty()) || is_finalizing())
        return;
    modules_gone++; /* nor are these identified by their addresses until the next epoch */
    Interpreter lock;
    for (auto &one : references)
        Py_DECREF(one.second);
    for (PyObject *one : code)
        Py_DECREF(one);
}

namespace
{

void learn_paths(Thread *thread, PyObject *root)
{
    if (thread->is_inside || is_finalizing())
        return;
    thread->is_inside = true;
    {
        Interpreter lock;
        ModuleNotes walk = walk_modules(root);
        for (auto &path : walk.paths)
            watch_module(static_cast<PyObject *>(const_cast<void *>(path.first)));
        std::lock_guard<std::mutex> guard(shared);
        renew_modules(thread->epoch);
        for (auto &path : walk.paths)
            module_paths[{ root, path.first }] = path.second;
        for (auto &note : walk.notes)
            sonde_metadata(note.first.c_str(), note.second.c_str());
    }
    thread->is_inside = false;
}

bool find_path(uint32_t epoch, PyObject *root, PyObject *module, std::string *path)
{
    std::lock_guard<std::mutex> guard(shared);

    renew_modules(epoch);
    auto found = module_paths.find({ root, module });
    if (found == module_paths.end())
        return false;
    *path = found->second;
    return true;
}

} // namespace

std::string module_path(Thread *thread, const std::vector<PyObject *> &chain)
{
    PyObject   *root = chain.front();
    std::string path;

    if (find_path(thread->epoch, root, chain.back(), &path))
        return path;
    learn_paths(thread, root);
    if (find_path(thread->epoch, root, chain.back(), &path))
        return path;
    /* Not a registered submodule of the outermost one: created on the fly, or kept in a list. */
    path.clear();
    if (chain.size() > 1)
        path = module_path(thread, std::vector<PyObject *>(chain.begin(), chain.end() - 1)) + ".";
    path += class_name(chain.back());
    std::lock_guard<std::mutex> guard(shared);
    module_paths[{ root, chain.back() }] = path;
    return path;
}

#endif /* SND_PYFRAMES_MISSING */

} // namespace snd_torch
