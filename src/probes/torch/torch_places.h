/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/torch/torch_places.h - where in the program an operator was called: module and Python
 * stack.
 *
 * A part of shim.cpp, which includes it once.
 * Layer: probes.
 */
#ifndef SND_PROBES_TORCH_PLACES_H
#define SND_PROBES_TORCH_PLACES_H

#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "pystack/pyframes.h"
#include "probes/torch/shim.h"
#include "probes/torch/torch_scripted.h"
#include "probes/torch/torch_thread.h"

namespace
{

/* -------------------------------------------------------- modules and stacks */

#ifndef SND_PYFRAMES_MISSING

constexpr int FRAMES_MAX = 512; /* the innermost ones of a deep recursion */

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

/* A type's own name. Its text lives as long as the type, which the instance keeps. */
const char *class_name(PyObject *object)
{
    const char *name = Py_TYPE(object)->tp_name;
    const char *dot = strrchr(name, '.');

    return dot ? dot + 1 : name;
}

/* "Linear_3": the fourth instance of its class that was met, as torch numbers them. */
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

/* A string object's UTF-8, without the lock: its own conversion would store the result. */
std::string text_of(PyObject *object)
{
    std::string text;

    if (!object || !PyUnicode_Check(object))
        return text;
    for (Py_ssize_t i = 0, n = PyUnicode_GET_LENGTH(object); i < n; i++) {
        Py_UCS4 c = PyUnicode_READ(PyUnicode_KIND(object), PyUnicode_DATA(object), i);
        if (c < 0x80) {
            text += static_cast<char>(c);
        } else if (c < 0x800) {
            text += static_cast<char>(0xC0 | c >> 6);
            text += static_cast<char>(0x80 | (c & 0x3F));
        } else {
            if (c < 0x10000) {
                text += static_cast<char>(0xE0 | c >> 12);
            } else {
                text += static_cast<char>(0xF0 | c >> 18);
                text += static_cast<char>(0x80 | (c >> 12 & 0x3F));
            }
            text += static_cast<char>(0x80 | (c >> 6 & 0x3F));
            text += static_cast<char>(0x80 | (c & 0x3F));
        }
    }
    return text;
}

/*
 * Walks a model as named_modules() does, by the C API alone: Python code run here would go
 * through TorchDynamo's hook, and could be compiled in the middle of the user's model.
 */
class ModuleWalk
{
  public:
    explicit ModuleWalk(PyObject *root) : root_(root)
    {
        visit(root, class_of(root));
    }
    std::vector<std::pair<const void *, std::string>> paths;
    std::vector<std::pair<std::string, std::string>>  notes;

  private:
    PyObject            *root_;
    std::set<PyObject *> seen_;

    /* module.__dict__[name]; a new reference, or NULL. */
    static PyObject *member_of(PyObject *module, const char *name)
    {
        PyObject *all = PyObject_GetAttrString(module, "__dict__");
        PyObject *one = all && PyDict_Check(all) ? PyDict_GetItemString(all, name) : nullptr;

        Py_XINCREF(one);
        Py_XDECREF(all);
        PyErr_Clear();
        return one;
    }

    /* module.__dict__[name], which is a dict; a new reference, or NULL. */
    static PyObject *dict_of(PyObject *module, const char *name)
    {
        PyObject *one = member_of(module, name);

        if (one && !PyDict_Check(one))
            Py_CLEAR(one);
        return one;
    }

    /* The class that a scripted or traced module was made from, as torch's C++ stores it. */
    static std::string original_class(PyObject *module)
    {
        PyObject   *actual = member_of(module, "_actual_script_module");
        PyObject   *inner = member_of(actual ? actual : module, "_c");
        PyObject   *type = inner ? PyObject_CallMethod(inner, "_type", nullptr) : nullptr;
        PyObject   *name = type ? PyObject_CallMethod(type, "name", nullptr) : nullptr;
        std::string text = text_of(name);

        for (PyObject *one : { name, type, inner, actual })
            Py_XDECREF(one);
        PyErr_Clear();
        return text;
    }

    static std::string class_of(PyObject *module)
    {
        std::string name = class_name(module), original;

        if (name == "RecursiveScriptModule" || name == "TopLevelTracedModule")
            original = original_class(module);
        return original.empty() ? name : original;
    }

    static long long number_of(PyObject *object, const char *method)
    {
        PyObject *result = PyObject_CallMethod(object, method, nullptr);
        long long value = result ? PyLong_AsLongLong(result) : 0;

        Py_XDECREF(result);
        if (PyErr_Occurred()) { /* a parameter without a shape yet */
            PyErr_Clear();
            value = 0;
        }
        return value;
    }

    void note(PyObject *module, const std::string &path)
    {
        PyObject  *parameters = dict_of(module, "_parameters"), *key, *value;
        Py_ssize_t at = 0;
        long long  count = 0, bytes = 0;

        while (parameters && PyDict_Next(parameters, &at, &key, &value)) {
            if (value == Py_None)
                continue;
            long long n = number_of(value, "numel");
            count += n;
            bytes += n * number_of(value, "element_size");
        }
        std::string counts = ", \"parameters\": " + std::to_string(count) +
                             ", \"parameter_bytes\": " + std::to_string(bytes);
        if (!parameters) /* a scripted module keeps them in C++: unknown, not none */
            counts.clear();
        Py_XDECREF(parameters);
        notes.emplace_back(snd_meta_key(SND_META_MODULE) + path,
                           "{\"class\": \"" + class_of(module) + "\"" + counts + "}");
    }

    void visit(PyObject *module, const std::string &path)
    {
        if (!seen_.insert(module).second)
            return;
        paths.emplace_back(module, path);
        note(module, path);
        PyObject  *children = dict_of(module, "_modules"), *key, *value;
        Py_ssize_t at = 0;
        while (children && PyDict_Next(children, &at, &key, &value))
            if (value != Py_None)
                visit(value, path + "." + text_of(key));
        Py_XDECREF(children);
    }
};

/* The interpreter lock for a while, with whatever error was pending put back after. */
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

/* ------------------------------------------- what is known by its address, while it lives */

/*
 * Frames are known by the addresses of their code, modules by their own; both may be freed, and
 * others made in their place. Code is kept alive until the probe stops. A module is not, for it
 * holds tensors: when it goes, what was known by its address is forgotten. All under `shared`.
 */
std::unordered_set<PyObject *>             kept_code;
std::unordered_map<PyObject *, PyObject *> watched; /* module: the weak reference to it, owned */
std::atomic<uint64_t>                      modules_gone{ 0 };

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

/* With the interpreter lock, which a collection inside may hand on. Some take no weak references. */
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

/* Of the calling thread's frames, which live as long as this runs. */
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

/* At stop: forgets all addresses. Entries found by them later belong to another epoch. */
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
    modules_gone++; /* until the next epoch these are not known by their addresses either */
    Interpreter lock;
    for (auto &one : references)
        Py_DECREF(one.second);
    for (PyObject *one : code)
        Py_DECREF(one);
}

void learn_paths(Thread *thread, PyObject *root)
{
    if (thread->is_inside || is_finalizing())
        return;
    thread->is_inside = true;
    {
        Interpreter lock;
        ModuleWalk  walk(root);
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

/* `chain`: modules whose calls are under way, outermost first. */
std::string module_path(Thread *thread, const std::vector<PyObject *> &chain)
{
    PyObject   *root = chain.front();
    std::string path;

    if (find_path(thread->epoch, root, chain.back(), &path))
        return path;
    learn_paths(thread, root);
    if (find_path(thread->epoch, root, chain.back(), &path))
        return path;
    /* Not registered in the outermost one: made on the fly, or kept in a list. */
    path.clear();
    if (chain.size() > 1)
        path = module_path(thread, std::vector<PyObject *>(chain.begin(), chain.end() - 1)) + ".";
    path += class_name(chain.back());
    std::lock_guard<std::mutex> guard(shared);
    module_paths[{ root, chain.back() }] = path;
    return path;
}

uint32_t frame_id(Thread *thread, const snd_pyframe *frame, PyObject *module)
{
    uint64_t hash = stir(stir(thread->seed + 1, snd_pyframe_place(frame)),
                         reinterpret_cast<uintptr_t>(module));
    if (module)
        hash = stir(hash, modules_gone.load(std::memory_order_relaxed));
    IdSlot *slot = &thread->frames[hash % FRAME_SLOTS];

    if (slot->hash == hash)
        return slot->id;
    if (module) {
        std::string label = module_label(thread, module);
        slot->id = sonde_intern_frame(sonde_intern(label.data(), label.size()), 0, 0);
    } else {
        PyCodeObject *code = snd_pyframe_code(frame);
        std::string   function = text_of(code->co_name), file = text_of(code->co_filename);
        int           line = snd_pyframe_line(frame);
        slot->id = sonde_intern_frame_in(sonde_intern(function.data(), function.size()),
                                         static_cast<uint32_t>(code->co_firstlineno),
                                         sonde_intern(file.data(), file.size()),
                                         line > 0 ? static_cast<uint32_t>(line) : 0);
    }
    slot->hash = slot->id ? hash : 0;
    return slot->id;
}

uint32_t stack_id(Thread *thread, uint32_t parent, uint32_t frame)
{
    uint64_t hash = stir(thread->seed + 2, static_cast<uint64_t>(parent) << 32 | frame);
    IdSlot  *slot = &thread->frames[hash % FRAME_SLOTS];

    if (slot->hash != hash) {
        slot->id = sonde_intern_stack(parent, frame);
        slot->hash = slot->id ? hash : 0;
    }
    return slot->id;
}

inline PyObject *module_of(const snd_pyframe *frame)
{
    return snd_pyframe_code(frame) == settings.module_code ? snd_pyframe_self(frame) : nullptr;
}

/* `scripted`: see scripted_path(). */
NOINLINE void place_slow(Thread *thread, PlaceSlot *slot, uint64_t hash, snd_pyframe *top,
                         const std::string &scripted)
{
    try {
        std::vector<snd_pyframe *> frames;
        std::vector<PyObject *>    modules;
        for (snd_pyframe *f = snd_pyframe_real(top); f && frames.size() < FRAMES_MAX;
             f = snd_pyframe_real(snd_pyframe_caller(f))) {
            frames.push_back(f);
            if (module_of(f))
                modules.insert(modules.begin(), module_of(f));
        }
        keep_known(thread, frames, modules);
        slot->stack = slot->module = 0;
        if (settings.flags & SONDE_TORCH_STACKS)
            for (size_t i = frames.size(); i-- > 0;)
                slot->stack = stack_id(thread, slot->stack,
                                       frame_id(thread, frames[i], module_of(frames[i])));
        if ((settings.flags & SONDE_TORCH_MODULES) && !modules.empty()) {
            std::string path = module_path(thread, modules) + scripted;
            slot->module = sonde_intern(path.data(), path.size());
        }
        slot->hash = hash;
    } catch (const std::exception &) {
        *slot = { 0, 0, 0 };
    }
}

/* Where in the program: all frames, or for modules alone their own. */
template <uint32_t FLAGS> inline const PlaceSlot *place_of(Thread *thread, snd_pyframe *top)
{
    uint64_t    hash = thread->seed + 3 + ODD * modules_gone.load(std::memory_order_relaxed);
    const void *module_code = settings.module_code;
    int         left = FRAMES_MAX;

    for (const snd_pyframe *f = top; f && left > 0; f = snd_pyframe_caller(f), left--) {
        if (FLAGS & SONDE_TORCH_STACKS)
            hash = stir(hash, snd_pyframe_place(f));
        if (snd_pyframe_code(f) == module_code)
            hash = stir(hash, reinterpret_cast<uintptr_t>(snd_pyframe_self(f)));
    }
    std::string scripted;
    if (FLAGS & SONDE_TORCH_MODULES) {
        scripted = scripted_path();
        if (UNLIKELY(!scripted.empty()))
            hash = hash_text(scripted.data(), scripted.size(), hash);
    }
    PlaceSlot *slot = &thread->places[hash % PLACE_SLOTS];
    if (UNLIKELY(slot->hash != hash))
        place_slow(thread, slot, hash, top, scripted);
    return slot;
}

#endif /* SND_PYFRAMES_MISSING */

} // namespace

#endif
