/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde._python - the probes of Python programs: functions, lines, memory of lines, samples.
 *
 * Only the module and the list of its tables: what they do is in src/probes/python/. Not the
 * limited API: built for one series of CPython, since it depends on its evaluation loop.
 */
#include "probes/python/common.h"

#include "base/count_of.h"

static PyMethodDef *const tables[] = {
    snd_py_functions_methods,     snd_py_imports_methods, snd_py_children_methods,
    snd_py_forks_methods,         snd_py_lines_methods,   snd_py_line_memory_methods,
    snd_py_line_sessions_methods, snd_py_sampler_methods,
};

/* Called when Python is initialized again: see common.h. */
static void (*const renewals[])(void) = {
    snd_py_common_renew, snd_py_functions_renew, snd_py_imports_renew,     snd_py_children_renew,
    snd_py_forks_renew,  snd_py_lines_renew,     snd_py_line_memory_renew, snd_py_sampler_renew,
};

static struct PyModuleDef python_module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "sonde._python",
    .m_doc = "Probes of Python programs: see the package.",
    .m_size = -1,
};

static int fill(PyObject *module)
{
    for (size_t i = 0; i < SND_COUNT_OF(tables); i++) {
        if (PyModule_AddFunctions(module, tables[i]) != 0)
            return -1;
    }
    return 0;
}

PyMODINIT_FUNC PyInit__python(void);
PyMODINIT_FUNC PyInit__python(void)
{
    static bool begun;

    /* Once for each initialization: subinterpreters get the module from the main one. */
    if (begun && PyInterpreterState_Get() == PyInterpreterState_Main())
        for (size_t i = 0; i < SND_COUNT_OF(renewals); i++)
            renewals[i]();
    begun = true;
    PyObject *module = PyModule_Create(&python_module);

    if (module && fill(module) != 0)
        Py_CLEAR(module);
    snd_py_lock_init();
#ifdef Py_GIL_DISABLED
    if (module)
        PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED);
#endif
    return module;
}
