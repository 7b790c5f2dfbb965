/* SPDX-License-Identifier: Apache-2.0 */
/* probes/python/ways/module_numbers.c - calls of torch's modules, by the module's name. */
#include "probes/python/ways/call_probe.h"

#include <stdio.h>
#include <string.h>

#include "base/data/map.h"

#define MODULES_MAX (1u << 16)

static struct {
    PyCodeObject  *code;      /* owned; NULL: modules have no names */
    struct snd_map numbers;   /* (type, module) to the function's number */
    struct snd_map instances; /* type to how many of it were met */
    uint32_t       count;
} modules;

#ifndef SND_PYFRAMES_MISSING

/* "Linear_3": the fourth instance of its class that was met, as torch numbers them. */
static uint32_t name_module(PyObject *module)
{
    const char    *type_name = Py_TYPE(module)->tp_name, *dot = strrchr(type_name, '.');
    struct snd_key type = { (uintptr_t)Py_TYPE(module), 0, 0 };
    uint32_t       before = 0;
    char           text[256];

    snd_map_get(&modules.instances, type, &before);
    if (!snd_map_put(&modules.instances, type, before + 1))
        return 0;
    int length = snprintf(text, sizeof text, "nn.Module: %.200s_%u", dot ? dot + 1 : type_name,
                          (unsigned)before);
    const struct snd_calls_name name = { .name = text, .name_length = (size_t)length, .file = "" };
    return snd_calls_function(&name);
}

static uint32_t number_of_module(PyObject *module)
{
    if (!module || modules.count >= MODULES_MAX)
        return 0;
    struct snd_key key = { (uintptr_t)Py_TYPE(module), (uintptr_t)module, 0 };
    uint32_t       number;
    if (snd_map_get(&modules.numbers, key, &number))
        return number;
    number = name_module(module);
    if (number != 0 && snd_map_put(&modules.numbers, key, number))
        modules.count++;
    return number;
}

uint32_t snd_py_module_number(const PyCodeObject *code, const struct snd_pyframe *frame)
{
    return code && code == modules.code ? number_of_module(snd_pyframe_self(frame)) : 0;
}

uint32_t snd_py_module_number_here(const PyCodeObject *code)
{
    if (code != modules.code || !code)
        return 0;
    struct snd_pyframe *frame = snd_pyframe_real(snd_pyframe_mine());
    return frame && snd_pyframe_code(frame) == code ? snd_py_module_number(code, frame) : 0;
}

#else /* a module's call has the name of its function */

uint32_t snd_py_module_number_here(const PyCodeObject *code)
{
    (void)code;
    return 0;
}

#endif

void snd_py_modules_start(PyCodeObject *code)
{
    Py_XINCREF(code);
    modules.code = code;
}

void snd_py_modules_stop(void)
{
    PyCodeObject *code = modules.code;

    snd_map_release(&modules.numbers);
    snd_map_release(&modules.instances);
    memset(&modules, 0, sizeof modules);
    Py_XDECREF(code);
}
