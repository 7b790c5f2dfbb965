/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/run/run_name.h - what a command line runs: which program, and of a Python its script or module.
 *
 * Layer: cli. Threads: none of its own.
 */
#ifndef SND_CLI_RUN_RUN_NAME_H
#define SND_CLI_RUN_RUN_NAME_H

#include <stdbool.h>

#include "base/text/buf.h"

struct snd_run_name {
    const char *name;   /* borrowed: "train" of `python -u train.py`, "a.b" of `python -m a.b` */
    size_t      length; /* of it: its ending .py is left out */
    bool        is_python;
    char        deaf; /* 'I', 'E' or 'S': the option that keeps Python from loading probes; 0 */
};

/* `program` is NULL-terminated. */
struct snd_run_name snd_run_name(char *const *program);

/*
 * Does it begin in Python: an interpreter, or a script that names one in its first line? Found as the
 * system finds it.
 */
bool snd_runs_python(char *const *program);

/* Is `path` a Python script that the system cannot run itself: no "#!", or not executable? */
bool snd_is_bare_script(const char *path);

#endif
