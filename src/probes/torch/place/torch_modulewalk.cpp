/* SPDX-License-Identifier: Apache-2.0 */
/* probes/torch/place/torch_modulewalk.cpp - see torch_modulewalk.h. */
#include "probes/torch/place/torch_modulewalk.h"

#include <cstring>
#include <set>

#include "format/metadata.h"

namespace snd_torch
{

#ifndef SND_PYFRAMES_MISSING

const char *class_name(PyObject *object)
{
    const char *name = Py_TYPE(object)->tp_name;
    const char *dot = strrchr(name, '.');

    return dot ? dot + 1 : name;
}

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

namespace
{

/*
 * Walks a model as named_modules() does, by the C API alone: Python code would go through
 * TorchDynamo's hook, which might compile it in the middle of the user's model.
 */
class ModuleWalk
{
  public:
    explicit ModuleWalk(PyObject *root) : root_(root)
    {
        visit(root, class_of(root));
    }
    ModuleNotes found;

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
        found.notes.emplace_back(snd_meta_key(SND_META_MODULE) + path,
                                 "{\"class\": \"" + class_of(module) + "\"" + counts + "}");
    }

    void visit(PyObject *module, const std::string &path)
    {
        if (!seen_.insert(module).second)
            return;
        found.paths.emplace_back(module, path);
        note(module, path);
        PyObject  *children = dict_of(module, "_modules"), *key, *value;
        Py_ssize_t at = 0;
        while (children && PyDict_Next(children, &at, &key, &value))
            if (value != Py_None)
                visit(value, path + "." + text_of(key));
        Py_XDECREF(children);
    }
};

} // namespace

ModuleNotes walk_modules(PyObject *root)
{
    return ModuleWalk(root).found;
}

#endif /* SND_PYFRAMES_MISSING */

} // namespace snd_torch
