/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/process/find_python.h - runs a part of the Python package, in the Python that has what it needs.
 *
 * Layer: cli. Threads: one.
 */
#ifndef SND_CLI_PROCESS_FIND_PYTHON_H
#define SND_CLI_PROCESS_FIND_PYTHON_H

#include <limits.h>

#include "cli/options/options.h"

/* What a part of the package exits with when its Python lacks what it needs: the next one is tried. */
#define SND_EXIT_LACKING 78

/*
 * Calls `main(args)` of the module sonde.MODULE, which needs the package `needs`; `args` ends with NULL. The Pythons are that of
 * $SONDE_PYTHON_EXE alone, or the one installed beside this program, then python3 of the PATH.
 * They find the package that belongs to this program after all of their own.
 * Returns the exit status, having said what went wrong if none of them could be run; 128 and the
 * signal's number, having said so, if a signal ended it.
 */
int snd_python_run(const struct snd_command *self, const char *module, const char *needs,
                   char *const *args);

/*
 * The Python that `sonde run prog.py` runs the script with: $SONDE_PYTHON_EXE; python3 of the PATH
 * within an activated environment (VIRTUAL_ENV, CONDA_PREFIX); the one beside this program;
 * python3 of the PATH. Borrowed from `beside`, the environment, or static.
 */
char *snd_python_for_script(char beside[PATH_MAX]);

#endif
