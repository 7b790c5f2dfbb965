/* SPDX-License-Identifier: Apache-2.0 */
/* probes/python/ways/way_switch.c - which way is on, and the change to another. */
#include "probes/python/ways/call_probe.h"

#include <stdio.h>

struct snd_py_on snd_py_on;

void snd_py_functions_switch(const struct snd_py_way *way, const char *why)
{
    static char said[192];
    PyObject   *error[3];

    if (!snd_calls.on || snd_py_on.way == way)
        return;
    /* A call that ends by raising may bring us here: the exception is the program's. */
    PyErr_Fetch(&error[0], &error[1], &error[2]);
    snd_py_on.way->stop();
    snd_py_on.way = way;
    bool started = way->start(snd_py_on.builtins);
    PyErr_Clear();
    snprintf(said, sizeof said, "%s%s", why,
             started ? "" : "; no other mechanism was available: later calls are missing");
    snd_py_on.switched = said;
    /* now: the program may never get to stop */
    sonde_metadata(snd_meta_key(SND_META_PYTHON_FUNCTIONS_SWITCHED), said);
    PyErr_Restore(error[0], error[1], error[2]);
}
