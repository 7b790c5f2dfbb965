/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/run/autostart.h - the part of the Python package that starts probes in unchanged programs.
 *
 * Layer: cli. Threads: one.
 */
#ifndef SND_CLI_RUN_AUTOSTART_H
#define SND_CLI_RUN_AUTOSTART_H

#include <stdbool.h>

#include "base/text/buf.h"

/*
 * Finds the package's folder `_autostart`: of $SONDE_PYTHON, which names the package, or of the
 * package that was installed with this program. False if there is none.
 */
bool snd_autostart_find(struct sonde_buffer *folder);

/* Sets the environment so that Python processes of the program load `probes` ("ops,shapes"). */
bool snd_autostart_set(const char *folder, const char *probes);

#endif
