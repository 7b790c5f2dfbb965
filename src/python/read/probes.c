/* SPDX-License-Identifier: Apache-2.0 */
/* PROBES: the options of `sonde run` that have something recorded, for `python -m sonde`. */
#include "python/read/core.h"

#define FLAG "flag"
#define LIST "list"
#define RATE "rate"
#define WORDS "words"
static const struct {
    const char *option, *value;
} probes[] = {
#define SND_PROBE(id, option, value, ...) { option, value },
#define SND_PROBE_DETAIL(id, option, ...) { option, FLAG },
#include "base/count_of.h"
#include "probes/probes.def"
#undef SND_PROBE
#undef SND_PROBE_DETAIL
};

int core_probes_init(PyObject *module)
{
    Py_ssize_t count = (Py_ssize_t)SND_COUNT_OF(probes);
    PyObject  *list = PyTuple_New(count);

    for (Py_ssize_t i = 0; list && i < count; i++) {
        PyObject *pair = Py_BuildValue("(ss)", probes[i].option, probes[i].value);
        if (!pair || PyTuple_SetItem(list, i, pair) < 0)
            Py_CLEAR(list);
    }
    int result = list ? PyObject_SetAttrString(module, "PROBES", list) : -1;
    Py_XDECREF(list);
    return result;
}
