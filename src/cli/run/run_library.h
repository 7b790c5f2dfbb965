/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/run/run_library.h - has the program load a probe's library: SND_BY_LIBRARY of probes/probes.def.
 *
 * The library's path is put into an environment variable. LD_PRELOAD holds a list, any other
 * variable one path. A path of ours that is there already is that of a `sonde run` which we are
 * part of: it is removed first, so that each run loads exactly what it was asked for.
 *
 * Layer: cli. Threads: one.
 */
#ifndef SND_CLI_RUN_RUN_LIBRARY_H
#define SND_CLI_RUN_RUN_LIBRARY_H

#include "base/error.h"

struct snd_run_library {
    const char *name, *variable; /* src/probes/NAME */
    const char *records;         /* for messages: "kernels" */
};

/* Errors: it is not installed, its path does not fit the variable, the variable is in use. */
SND_CHECKED enum sonde_status snd_run_library_set(const struct snd_run_library *library,
                                                  struct sonde_error           *err);
/* Removes the library from the variable; what else is in it stays. */
void snd_run_library_clear(const struct snd_run_library *library);

#endif
